//! From what to read to calls, and from results to rows.

use super::filter;
use super::gateway::{TColumn, TColumnValue, TGet, TResult, TScan};
use crate::error::{Error, Result};
use crate::model::{Cell, CellKind};
use crate::store::thrift::{Plan, RESULT_CELLS};
use bytes::Bytes;
use std::collections::BTreeMap;

fn columns(plan: &Plan) -> Option<Vec<TColumn>> {
    let column = |(family, qualifier): &(Bytes, Bytes)| TColumn::new(family.to_vec(), qualifier.to_vec(), None);
    plan.columns.as_ref().map(|columns| columns.iter().map(column).collect())
}

/// A get of one row.
pub(super) fn get(plan: &Plan, key: &[u8]) -> TGet {
    let filter = plan.pushed.as_ref().map(filter::encode);
    TGet::new(key.to_vec(), columns(plan), None, plan.max_versions, None, None, filter)
}

/// A scan between two keys in the order the server reads them; `start` is included, `stop` is not.
pub(super) fn scan(plan: &Plan, start: &[u8], stop: &[u8], reversed: bool, caching: usize) -> TScan {
    let attributes = plan.raw.then(|| BTreeMap::from([(b"_raw_".to_vec(), vec![0xff])]));
    // The server refuses parts of rows under filters that look at whole rows.
    let batch = plan.pushed.is_none().then_some(RESULT_CELLS as i32);
    let filter = plan.pushed.as_ref().map(filter::encode);
    let caching = i32::try_from(caching).unwrap_or(i32::MAX);
    TScan::new(
        start.to_vec(),
        stop.to_vec(),
        columns(plan),
        caching,
        plan.max_versions,
        None,
        batch,
        attributes,
        reversed,
        None,
        None,
        filter,
    )
}

/// A row's cells out of a result.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for a cell that cannot be.
pub(super) fn cells(result: TResult) -> Result<Vec<Cell>> {
    let cell = |c: TColumnValue| {
        let kind = match c.type_ {
            None => CellKind::Put,
            Some(code) => CellKind::from_code(code.cast_unsigned())
                .ok_or_else(|| Error::corrupt(format!("expected a cell of type 4, 8, 10, 12 or 14, found {code}")))?,
        };
        let timestamp = c.timestamp.ok_or_else(|| Error::corrupt("expected a cell with a timestamp, found none"))?;
        Ok(Cell { family: c.family.into(), qualifier: c.qualifier.into(), timestamp, kind, value: c.value.into() })
    };
    result.column_values.into_iter().map(cell).collect()
}
