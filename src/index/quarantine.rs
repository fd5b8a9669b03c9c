//! What could not be indexed: `sx_quarantine`.
//!
//! Row `<table>/<name>/<position>/<row key>`, qualifiers `record` (JSON of what and why) and `event` (the mutation itself).
//! A replayed event writes the same row again.

use super::change::Unfit;
use crate::error::{Error, Result};
use crate::model::{Cell, ChangeEvent, Position, RowMutation, wire};
use crate::schema::{Catalog, Definition, QUARANTINE_FAMILY, QUARANTINE_TABLE, TableSchema};
use crate::store::Durability;
use bytes::Bytes;
use serde::Serialize;
use std::collections::BTreeSet;

/// One term of one event that could not be indexed, or one definition that could not be kept for a row.
#[derive(Debug, Clone)]
pub struct Quarantined {
    /// The event.
    pub event: ChangeEvent,
    /// The attribute whose value does not fit; none when a definition refused the row.
    pub attribute: Option<String>,
    /// The definition that refused the row.
    pub definition: Option<String>,
    /// Why.
    pub reason: String,
}

#[derive(Serialize)]
struct Record<'a> {
    row: String,
    position: &'a Position,
    attribute: Option<&'a str>,
    definition: Option<&'a str>,
    reason: &'a str,
}

impl Quarantined {
    pub(super) fn term(event: &ChangeEvent, unfit: &Unfit) -> Self {
        Self {
            event: event.clone(),
            attribute: Some(unfit.attribute.clone()),
            definition: None,
            reason: unfit.reason.to_string(),
        }
    }

    pub(super) fn definition(event: &ChangeEvent, definition: &Definition, reason: &Error) -> Self {
        Self {
            event: event.clone(),
            attribute: None,
            definition: Some(definition.name.clone()),
            reason: reason.to_string(),
        }
    }

    fn mutation(&self, table: &str) -> Result<RowMutation> {
        let name = self.attribute.as_ref().or(self.definition.as_ref()).map_or("", String::as_str);
        let mut key = format!("{table}/{name}/{}/", self.event.position.sort_key()).into_bytes();
        // A row key too long for a row key of ours is cut: the event holds it whole.
        key.extend_from_slice(&self.event.row[..self.event.row.len().min(1_024)]);
        let record = Record {
            row: self.event.row.escape_ascii().to_string(),
            position: &self.event.position,
            attribute: self.attribute.as_deref(),
            definition: self.definition.as_deref(),
            reason: &self.reason,
        };
        let record = serde_json::to_vec(&record).map_err(|e| Error::invalid(e.to_string()).with_source(e))?;
        let event = RowMutation::new(self.event.row.clone(), self.event.cells.clone());
        let event = wire::encode(&event, self.event.append_time);
        let put = |qualifier: &'static str, value: Bytes| {
            Cell::put(QUARANTINE_FAMILY, qualifier, self.event.append_time.max(0), value)
        };
        Ok(RowMutation::new(key, vec![put("record", record.into()), put("event", event)]))
    }
}

/// Writes quarantined terms and flags their definitions as degraded. Durable at the next durable write.
pub(super) async fn keep(catalog: &Catalog, schema: &TableSchema, quarantined: &[Quarantined]) -> Result<()> {
    if quarantined.is_empty() {
        return Ok(());
    }
    for q in quarantined {
        tracing::warn!(
            table = %schema.name, row = %q.event.row.escape_ascii(), position = %q.event.position, reason = %q.reason,
            "quarantined"
        );
    }
    let mutations = quarantined.iter().map(|q| q.mutation(&schema.name)).collect::<Result<Vec<_>>>()?;
    catalog.store().mutate(QUARANTINE_TABLE, mutations, Durability::Relaxed).await?;
    let mut degraded = BTreeSet::new();
    for q in quarantined {
        let code = q.attribute.as_deref().and_then(|name| schema.attribute(name)).map(|a| a.code);
        let hit = schema
            .definitions()
            .iter()
            .filter(|d| code.is_some_and(|code| d.mentions(code)) || q.definition.as_ref() == Some(&d.name));
        degraded.extend(hit.map(|d| d.name.as_str()));
    }
    for name in degraded {
        catalog.update(&schema.name, name, |d| d.degraded = true).await?;
    }
    Ok(())
}
