//! From what to read to calls, and from results to rows.

use super::{Client, filter, write};
use crate::error::{Error, Result};
use crate::model::{Cell, Row};
use crate::store::thrift::{Dialect, Plan, RESULT_CELLS};
use bytes::Bytes;
use hbase_thrift::hbase::{TCell, THbaseSyncClient, TRowResult, TScan};
use std::collections::BTreeMap;

/// How it scans.
pub(super) struct Thrift1;

impl Dialect for Thrift1 {
    type Client = Client;
    type Scan = TScan;
    type Part = TRowResult;

    fn scan(plan: &Plan, from: &[u8], to: &[u8], reversed: bool, caching: usize) -> TScan {
        // The server refuses parts of rows under filters that look at whole rows.
        let batch = plan.pushed.is_none().then_some(RESULT_CELLS as i32);
        let caching = i32::try_from(caching).unwrap_or(i32::MAX);
        let bound = |key: &[u8]| (!key.is_empty()).then(|| key.to_vec());
        let told = plan.pushed.as_ref().map(filter::tell);
        TScan::new(bound(from), bound(to), None, columns(plan), caching, told, batch, false, reversed, None)
    }

    fn first(client: &mut Client, table: Vec<u8>, scan: TScan, parts: i32) -> thrift::Result<Vec<TRowResult>> {
        let id = Self::open(client, table, scan)?;
        let rows = Self::next(client, id, parts)?;
        Self::close(client, id)?;
        Ok(rows)
    }

    fn open(client: &mut Client, table: Vec<u8>, scan: TScan) -> thrift::Result<i32> {
        client.scanner_open_with_scan(table, scan, BTreeMap::new())
    }

    fn next(client: &mut Client, id: i32, parts: i32) -> thrift::Result<Vec<TRowResult>> {
        client.scanner_get_list(id, parts)
    }

    fn close(client: &mut Client, id: i32) -> thrift::Result<()> {
        client.scanner_close(id)
    }

    fn row(part: TRowResult) -> Result<Row> {
        let cells = part.columns.unwrap_or_default().into_iter().map(|(column, value)| cell(&column, value));
        let mut cells = cells.collect::<Result<Vec<Cell>>>()?;
        // The gateway's order is that of `family:qualifier`, where "a0:" is before "a:".
        cells.sort_by(|a, b| (&a.family, &a.qualifier).cmp(&(&b.family, &b.qualifier)));
        Ok(Row { key: part.row.unwrap_or_default().into(), cells })
    }
}

/// The columns to ask for.
pub(super) fn columns(plan: &Plan) -> Option<Vec<Vec<u8>>> {
    let column = |(family, qualifier): &(Bytes, Bytes)| write::column(family, qualifier);
    plan.columns.as_ref().map(|columns| columns.iter().map(column).collect())
}

/// A cell out of an answer.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for one that cannot be.
pub(super) fn cell(column: &[u8], cell: TCell) -> Result<Cell> {
    let colon = column.iter().position(|b| *b == b':');
    let colon =
        colon.ok_or_else(|| Error::corrupt("expected a column as family:qualifier, found one without a colon"))?;
    let timestamp = cell.timestamp.ok_or_else(|| Error::corrupt("expected a cell with a timestamp, found none"))?;
    let part = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
    Ok(Cell::put(part(&column[..colon]), part(&column[colon + 1..]), timestamp, cell.value.unwrap_or_default()))
}
