//! Mutations on their way to calls.

use crate::error::{Error, Result};
use crate::model::{Cell, MAX_CELL, RowMutation};
use crate::store::{TableDescriptor, rules};
use bytes::Bytes;
use std::collections::{HashMap, HashSet};

/// Checks mutations as HBase would, so that a call is refused as a whole.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput), naming the row and what is wrong with it.
pub(in crate::store) fn check_mutations(table: &TableDescriptor, mutations: &[RowMutation]) -> Result<()> {
    for mutation in mutations {
        check_mutation(table, mutation).map_err(|e| {
            let shown = &mutation.row[..mutation.row.len().min(64)];
            e.within(format!("row \"{}\"", shown.escape_ascii())).within(format!("table {}", table.name))
        })?;
    }
    Ok(())
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

/// Mutations of one row are joined up to so many bytes.
const JOINED_BYTES: usize = 256 << 10;

/// Joins mutations of one row, so that a row that changes often takes few calls.
pub(in crate::store) fn join_rows(mutations: Vec<RowMutation>) -> Vec<RowMutation> {
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
