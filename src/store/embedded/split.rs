//! Keys that divide a table.

use super::tables::Table;
use super::{cells, key};
use crate::error::Result;
use bytes::Bytes;
use fjall::{Readable, Snapshot};
use std::ops::Bound;

/// Keys looked up for each one that is given: where rows are sparse they run out, so that most end up where there are many.
const SAMPLES: usize = 16;
/// How often the half of a range that has no row is left aside in search for one that has.
const HALVINGS: usize = 24;

/// See [`Store::split_points`](crate::store::Store::split_points).
pub(super) fn points(snapshot: &Snapshot, table: &Table, parts: usize) -> Result<Vec<Bytes>> {
    let first = row_from(snapshot, table, &[])?;
    let last = cells::key(snapshot.range::<Vec<u8>, _>(&table.keyspace, ..).next_back())?;
    let (Some(first), Some(last)) = (first, last) else { return Ok(Vec::new()) };
    let mut keys = vec![first, key::split_row(&last)?.1];
    keys.dedup();
    // Each round divides every range once.
    while keys.len() < parts.saturating_mul(SAMPLES) {
        let mut finer = Vec::with_capacity(keys.len() * 2);
        for (i, lower) in keys.iter().enumerate() {
            finer.push(lower.clone());
            if let Some(upper) = keys.get(i + 1) {
                finer.extend(between(snapshot, table, lower, upper)?);
            }
        }
        let done = finer.len() == keys.len();
        keys = finer;
        if done {
            break;
        }
    }
    let parts = parts.min(keys.len());
    Ok((1..parts).map(|i| keys[i * keys.len() / parts].clone()).collect())
}

/// A row between two others, near the middle between them if there is one.
fn between(snapshot: &Snapshot, table: &Table, lower: &Bytes, upper: &Bytes) -> Result<Option<Bytes>> {
    let common = lower.iter().zip(upper).take_while(|(a, b)| a == b).count();
    let number = |key: &Bytes| {
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(&key[common..]).for_each(|(to, from)| *to = *from);
        u128::from_be_bytes(bytes)
    };
    let (from, mut to) = (number(lower), number(upper));
    for _ in 0..HALVINGS {
        let middle = from + (to - from) / 2;
        if middle <= from {
            break;
        }
        let found = row_from(snapshot, table, &[&lower[..common], &middle.to_be_bytes()].concat())?;
        if let Some(found) = found.filter(|row| row < upper) {
            return Ok(Some(found));
        }
        to = middle;
    }
    Ok(None)
}

/// The first row at or after a key.
fn row_from(snapshot: &Snapshot, table: &Table, start: &[u8]) -> Result<Option<Bytes>> {
    let start = if start.is_empty() { Vec::new() } else { key::row_start(start) };
    let mut cells = snapshot.range::<Vec<u8>, _>(&table.keyspace, (Bound::Included(start), Bound::Unbounded));
    cells::key(cells.next())?.map(|key| key::split_row(&key).map(|(_, row)| row)).transpose()
}
