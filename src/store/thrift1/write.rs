//! From mutations to calls.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Cell, CellKind, RowMutation, Timestamp};
use crate::store::TableDescriptor;
use crate::store::thrift::{Batch, check_mutations, waves, within_row};
use hbase_thrift::hbase::{BatchMutation, Mutation};
use std::collections::BTreeMap;

/// `mutateRowsTs`: cells of one timestamp.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) timestamp: Timestamp,
    pub(super) rows: Vec<BatchMutation>,
}

/// Checks mutations as HBase would, and that the gateway can apply them.
///
/// # Errors
/// [`InvalidInput`](ErrorKind::InvalidInput), naming the row and what is wrong with it;
/// [`Unsupported`](ErrorKind::Unsupported) for markers on one version, and for puts and markers in one mutation.
pub(super) fn check(table: &TableDescriptor, mutations: &[RowMutation]) -> Result<()> {
    check_mutations(table, mutations)?;
    mutations.iter().try_for_each(|mutation| {
        let kinds = || mutation.cells.iter().map(|c| c.kind);
        let unsupported = |message: &str| {
            Err(within_row(Error::new(ErrorKind::Unsupported, message), table, mutation))
        };
        if kinds().any(|kind| matches!(kind, CellKind::DeleteVersion | CellKind::DeleteFamilyVersion)) {
            return unsupported(
                "expected markers on columns and families, found one on a single version: a Thrift 1 gateway has no call for \
                 it; use the store thrift2",
            );
        }
        if mutation.is_mixed() {
            return unsupported(
                "expected puts or markers, found both in one mutation: a Thrift 1 gateway applies them apart, and a reader \
                 could see the one without the other; use the store thrift2, or write them one after the other",
            );
        }
        Ok(())
    })
}

/// The calls that apply mutations, in [`waves`].
pub(super) fn calls(mutations: Vec<RowMutation>) -> Vec<Vec<Call>> {
    waves(mutations).into_iter().map(calls_of_wave).collect()
}

fn calls_of_wave(mutations: Vec<RowMutation>) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut batches: BTreeMap<Timestamp, Batch<BatchMutation>> = BTreeMap::new();
    for mutation in mutations {
        let mut by_timestamp: BTreeMap<Timestamp, Vec<&Cell>> = BTreeMap::new();
        for cell in &mutation.cells {
            by_timestamp.entry(cell.timestamp).or_default().push(cell);
        }
        for (timestamp, cells) in by_timestamp {
            let bytes = cells.iter().map(|c| c.size(&mutation.row)).sum();
            let row = BatchMutation::new(mutation.row.to_vec(), cells.into_iter().map(one).collect::<Vec<_>>());
            let full = batches.entry(timestamp).or_default().add(row, bytes);
            calls.extend(full.map(|rows| Call { timestamp, rows }));
        }
    }
    calls.extend(batches.into_iter().map(|(timestamp, batch)| Call { timestamp, rows: batch.items }));
    calls
}

/// One cell; its timestamp is the call's. A family alone stands for all its columns.
pub(super) fn one(cell: &Cell) -> Mutation {
    let column = if cell.kind.is_family_wide() { cell.family.to_vec() } else { column(&cell.family, &cell.qualifier) };
    Mutation::new(cell.kind != CellKind::Put, column, cell.value.to_vec(), true)
}

/// A column as the gateway takes it: `family:qualifier`.
pub(super) fn column(family: &[u8], qualifier: &[u8]) -> Vec<u8> {
    [family, b":", qualifier].concat()
}
