//! Rows of an answer.

use super::found::{Found, key_value};
use crate::error::Result;
use crate::query::bind::{Column, Output};
use crate::schema::{AttributeValue, Value};

/// One row of an answer: values in the order of [`Prepared::columns`](crate::query::Prepared::columns).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRow {
    /// The values; none where the row has none. `id` is text, see [`escaped`](crate::model::escaped).
    pub values: Vec<Option<AttributeValue>>,
}

impl ResultRow {
    /// The row as a JSON object, with null for what the row does not have. `names` are those of
    /// [`Prepared::columns`](crate::query::Prepared::columns).
    pub fn to_json(&self, names: &[String]) -> serde_json::Map<String, serde_json::Value> {
        let value = |v: &Option<AttributeValue>| v.as_ref().map_or(serde_json::Value::Null, AttributeValue::to_json);
        names.iter().cloned().zip(self.values.iter().map(value)).collect()
    }

    /// The columns asked for of a row that was found.
    pub(super) fn of(found: &Found<'_>, output: &Output) -> Result<Self> {
        let Output::Columns(columns) = output else { return Ok(Self { values: Vec::new() }) };
        let values = columns.iter().map(|column| match column {
            Column::RowKey => Ok(Some(key_value(found.key()))),
            Column::Attribute(slot) => found.value(*slot),
        });
        Ok(Self { values: values.collect::<Result<_>>()? })
    }

    /// What it takes in memory, in bytes.
    pub(super) fn weight(&self) -> u64 {
        let outside = |value: &Value| match value {
            Value::Text(text) => text.capacity(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Decimal(decimal) => decimal.size(),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Timestamp(_) => 0,
        };
        let elements = |value: &AttributeValue| match value {
            AttributeValue::One(value) => outside(value),
            AttributeValue::Many(values) => values.iter().map(|v| outside(v) + size_of::<Value>()).sum(),
        };
        let values: usize = self.values.iter().flatten().map(elements).sum();
        (values + size_of::<Self>() + self.values.capacity() * size_of::<Option<AttributeValue>>()) as u64
    }
}
