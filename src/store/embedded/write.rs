//! From mutations to key-value pairs, in the caller's own task.

use super::key;
use super::log::Reservation;
use super::tables::Table;
use crate::error::{Error, Result};
use crate::model::{Cell, CellKind, RowMutation};
use crate::schema::term;
use crate::store::rules;
use bytes::{Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

/// The longest value, in bytes.
const VALUE_LIMIT: usize = 256 << 20;
/// Keys and values are cut from pieces of memory of this size. A piece lives until the last of them was written to a
/// file, or is no longer read.
const PIECE: usize = 64 << 10;

/// What a call writes, checked and encoded.
pub(super) struct Write {
    /// Key-value pairs of cells.
    pub(super) cells: Vec<(Bytes, Bytes)>,
    /// The mutations for the change log; none when the table has no log.
    pub(super) logged: Vec<RowMutation>,
    /// Room in the change log, until the records are in it.
    pub(super) room: Option<Reservation>,
    /// For each marker that hides more than one version: a hash of its row, and which cell it is.
    pub(super) marks: Vec<(u64, usize)>,
    /// How much memory this takes, roughly, in bytes.
    pub(super) size: usize,
}

impl Write {
    /// Waits for room in the table's change log.
    ///
    /// # Errors
    /// [`Busy`](crate::error::ErrorKind::Busy) when there is none.
    pub(super) async fn reserve(&mut self, table: &Table) -> Result<()> {
        if let Ok(log) = table.log() {
            // Half of it is for the log, whose records are about as large as the cells.
            self.room = Some(log.reserve(self.size as u64 / 2).await?);
        }
        Ok(())
    }
}

/// Checks all mutations, then encodes them. Mutations without cells are dropped.
///
/// Values are copied: a value may be a slice of something large, which would live as long as the table's memory does.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput), naming the row and what is wrong with it.
pub(super) fn prepare(table: &Table, mutations: Vec<RowMutation>) -> Result<Write> {
    let (mut count, mut size) = (0, 0);
    for mutation in &mutations {
        size += check(table, mutation).map_err(|e| {
            let shown = &mutation.row[..mutation.row.len().min(64)];
            e.within(format!("row \"{}\"", shown.escape_ascii()))
        })?;
        count += mutation.cells.len();
    }
    let mut write = Write { cells: Vec::with_capacity(count), logged: Vec::new(), room: None, marks: Vec::new(), size };
    let mut memory = Memory { piece: BytesMut::new(), needed: size };
    let (mut prefix, mut escaped) = (Vec::new(), Vec::new());
    // In key order, so that neighbours in the batch become neighbours in memory; stable, so that the last one wins.
    let mut order: Vec<&RowMutation> = mutations.iter().collect();
    order.sort_by(|a, b| a.row.cmp(&b.row));
    for mutation in order {
        prefix.clear();
        term::escape(&mutation.row, &mut prefix);
        let hash = xxh3_64(&prefix);
        for cell in &mutation.cells {
            if matches!(cell.kind, CellKind::DeleteColumn | CellKind::DeleteFamily) {
                write.marks.push((hash, write.cells.len()));
            }
            escaped.clear();
            term::escape(&cell.qualifier, &mut escaped);
            let tail = key::tail(cell.timestamp, cell.kind);
            let key = memory.put(&[&prefix, &cell.family, &[0], &escaped, &tail]);
            let value = if cell.value.is_empty() { Bytes::new() } else { memory.put(&[&cell.value]) };
            write.cells.push((key, value));
        }
    }
    if table.is_logged() {
        write.size *= 2;
        write.logged = mutations;
        write.logged.retain(|m| !m.cells.is_empty());
    }
    Ok(write)
}

/// The bytes of all keys and values of the mutation.
fn check(table: &Table, mutation: &RowMutation) -> Result<usize> {
    key::check_row(&mutation.row)?;
    let row = key::escaped_size(&mutation.row);
    mutation.cells.iter().map(|cell| check_cell(table, row, cell)).sum()
}

/// The bytes of the cell's key and value.
fn check_cell(table: &Table, row: usize, cell: &Cell) -> Result<usize> {
    rules::check_cell(&table.descriptor, cell)?;
    let length = row + key::column_size(&cell.family, &cell.qualifier);
    if length > key::KEY_LIMIT {
        return Err(Error::invalid(format!(
            "expected at most {} bytes of row key, family and qualifier together with their encoding, found {length}",
            key::KEY_LIMIT
        )));
    }
    if cell.value.len() > VALUE_LIMIT {
        return Err(Error::invalid(format!(
            "expected a value of at most {VALUE_LIMIT} bytes, found {}",
            cell.value.len()
        )));
    }
    Ok(length + cell.value.len())
}

/// Small allocations out of larger ones.
struct Memory {
    piece: BytesMut,
    /// Bytes still to come, so that no piece is larger than what it will hold.
    needed: usize,
}

impl Memory {
    fn put(&mut self, parts: &[&[u8]]) -> Bytes {
        let length = parts.iter().map(|p| p.len()).sum();
        if self.piece.capacity() < length {
            self.piece = BytesMut::with_capacity(self.needed.min(PIECE).max(length));
        }
        for part in parts {
            self.piece.extend_from_slice(part);
        }
        self.needed = self.needed.saturating_sub(length);
        self.piece.split().freeze()
    }
}
