//! Mutations on their way to calls, and rows on their way back.

use crate::error::{Error, Result};
use crate::model::{Cell, MAX_CELL, Row, RowMutation};
use crate::store::{TableDescriptor, rules};
use bytes::Bytes;
use std::collections::{HashMap, HashSet};

/// Checks mutations as HBase would, so that a call is refused as a whole.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput), naming the row and what is wrong with it.
pub(in crate::store) fn check_mutations(table: &TableDescriptor, mutations: &[RowMutation]) -> Result<()> {
    for mutation in mutations {
        check_mutation(table, mutation).map_err(|e| within_row(e, table, mutation))?;
    }
    Ok(())
}

/// The error with the place where it is.
pub(in crate::store) fn within_row(error: Error, table: &TableDescriptor, mutation: &RowMutation) -> Error {
    let shown = &mutation.row[..mutation.row.len().min(64)];
    error.within(format!("row \"{}\"", shown.escape_ascii())).within(format!("table {}", table.name))
}

fn check_mutation(table: &TableDescriptor, mutation: &RowMutation) -> Result<()> {
    rules::check_row_key(&mutation.row)?;
    mutation.cells.iter().try_for_each(|cell| {
        rules::check_cell(table, cell)?;
        let size = cell.size(&mutation.row);
        if size > MAX_CELL {
            return Err(Error::invalid(format!(
                "expected a cell of at most {MAX_CELL} bytes, HBase's default limit, found one of {size}"
            )));
        }
        Ok(())
    })
}

/// A call holds at most so many rows …
const CALL_ROWS: usize = 1_000;
/// … and bytes, unless a single row has more. A framed gateway takes 2 MiB unless it is told otherwise.
const CALL_BYTES: usize = 1 << 20;

/// What goes into one call.
pub(in crate::store) struct Batch<T> {
    pub(in crate::store) items: Vec<T>,
    bytes: usize,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self { items: Vec::new(), bytes: 0 }
    }
}

impl<T> Batch<T> {
    /// Adds an item; what was there before, if there is no room for both.
    pub(in crate::store) fn add(&mut self, item: T, bytes: usize) -> Option<Vec<T>> {
        let full = self.items.len() >= CALL_ROWS || (self.bytes + bytes > CALL_BYTES && !self.items.is_empty());
        let before = full.then(|| std::mem::take(self).items);
        self.items.push(item);
        self.bytes += bytes;
        before
    }
}

/// Mutations in waves: those of one wave are of different rows and may run side by side, and a wave begins after the one before
/// it, so that of two puts of one cell the later wins.
pub(in crate::store) fn waves(mutations: Vec<RowMutation>) -> Vec<Vec<RowMutation>> {
    let mut waves: Vec<Vec<RowMutation>> = Vec::new();
    let mut next: HashMap<Bytes, usize> = HashMap::new();
    for mutation in join(mutations) {
        let wave = next.entry(mutation.row.clone()).or_insert(0);
        if *wave == waves.len() {
            waves.push(Vec::new());
        }
        waves[*wave].push(mutation);
        *wave += 1;
    }
    waves
}

/// A row for each key; the rows that were found are in the order of the keys.
pub(in crate::store) fn row_of_each(keys: &[Bytes], found: Vec<Row>) -> Vec<Row> {
    let mut found = found.into_iter().peekable();
    let row = |key: &Bytes| found.next_if(|r| r.key == *key).unwrap_or(Row { key: key.clone(), cells: Vec::new() });
    keys.iter().map(row).collect()
}

/// Mutations of one row are joined up to so many bytes.
const JOINED_BYTES: usize = 256 << 10;

/// Joins mutations of one row, so that a row that changes often takes few calls.
fn join(mutations: Vec<RowMutation>) -> Vec<RowMutation> {
    let mut joined: Vec<(RowMutation, usize)> = Vec::with_capacity(mutations.len());
    let mut last: HashMap<Bytes, usize> = HashMap::new();
    for mutation in mutations.into_iter().filter(|m| !m.cells.is_empty()) {
        let bytes: usize = mutation.cells.iter().map(|c| c.size(&mutation.row)).sum();
        match last.get(&mutation.row).map(|at| &mut joined[*at]) {
            Some((before, size)) if *size + bytes <= JOINED_BYTES => {
                before.cells.extend(mutation.cells);
                *size += bytes;
            }
            _ => {
                last.insert(mutation.row.clone(), joined.len());
                joined.push((mutation, bytes));
            }
        }
    }
    joined.into_iter().map(|(mutation, _)| last_of_each(mutation)).collect()
}

/// Leaves the last of cells that differ by nothing but their value: it is the one that counts.
fn last_of_each(mut mutation: RowMutation) -> RowMutation {
    let mut seen = HashSet::with_capacity(mutation.cells.len());
    let key = |c: &Cell| (c.kind, c.timestamp, c.family.clone(), c.qualifier.clone());
    let mut keep: Vec<bool> = mutation.cells.iter().rev().map(|c| seen.insert(key(c))).collect();
    mutation.cells.retain(|_| keep.pop().unwrap_or(true));
    mutation
}
