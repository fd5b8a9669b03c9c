//! From mutations to calls.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Cell, CellKind, RowMutation, Timestamp};
use crate::store::TableDescriptor;
use crate::store::thrift::{check_mutations, join_rows};
use bytes::Bytes;
use hbase_thrift::hbase::{BatchMutation, Mutation};
use std::collections::{BTreeMap, HashMap};

/// A call holds at most so many rows …
const CALL_ROWS: usize = 1_000;
/// … and bytes, unless a single row has more.
const CALL_BYTES: usize = 1 << 20;

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
            Err(Error::new(ErrorKind::Unsupported, message)
                .within(format!("row \"{}\"", mutation.row[..mutation.row.len().min(64)].escape_ascii()))
                .within(format!("table {}", table.name)))
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

/// The calls that apply mutations, in waves: those of one wave touch different cells and may run side by side, and a wave
/// begins after the one before it, so that of two puts of one cell the later wins.
pub(super) fn calls(mutations: Vec<RowMutation>) -> Vec<Vec<Call>> {
    let mut waves: Vec<BTreeMap<Timestamp, Batch>> = Vec::new();
    let mut next: HashMap<Bytes, usize> = HashMap::new();
    for mutation in join_rows(mutations) {
        let wave = next.entry(mutation.row.clone()).or_insert(0);
        if *wave == waves.len() {
            waves.push(BTreeMap::new());
        }
        let mut by_timestamp: BTreeMap<Timestamp, Vec<&Cell>> = BTreeMap::new();
        for cell in &mutation.cells {
            by_timestamp.entry(cell.timestamp).or_default().push(cell);
        }
        for (timestamp, cells) in by_timestamp {
            let bytes = cells.iter().map(|c| c.size(&mutation.row)).sum();
            let row = BatchMutation::new(mutation.row.to_vec(), cells.into_iter().map(one).collect::<Vec<_>>());
            waves[*wave].entry(timestamp).or_default().add(row, bytes);
        }
        *wave += 1;
    }
    let calls = |wave: BTreeMap<Timestamp, Batch>| {
        let calls = |(timestamp, batch): (Timestamp, Batch)| {
            batch.full.into_iter().chain([batch.rows]).map(move |rows| Call { timestamp, rows })
        };
        wave.into_iter().flat_map(calls).collect()
    };
    waves.into_iter().map(calls).collect()
}

#[derive(Default)]
struct Batch {
    full: Vec<Vec<BatchMutation>>,
    rows: Vec<BatchMutation>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, row: BatchMutation, bytes: usize) {
        if self.rows.len() >= CALL_ROWS || (self.bytes + bytes > CALL_BYTES && !self.rows.is_empty()) {
            self.full.push(std::mem::take(&mut self.rows));
            self.bytes = 0;
        }
        self.rows.push(row);
        self.bytes += bytes;
    }
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
