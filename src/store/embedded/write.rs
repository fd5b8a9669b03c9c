//! From mutations to key-value pairs, in the caller's own task.

use super::key;
use super::tables::Table;
use crate::error::{Error, Result};
use crate::model::{Cell, RowMutation};
use crate::schema::term;
use bytes::{Bytes, BytesMut};

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
    /// How much memory this takes, roughly, in bytes.
    pub(super) size: usize,
}

/// Checks all mutations, then encodes them. Mutations without cells are dropped.
///
/// Values are copied: a value may be a slice of something large, which would live as long as the table's memory does.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput), naming the row and what is wrong with it.
pub(super) fn prepare(table: &Table, mutations: Vec<RowMutation>) -> Result<Write> {
    let mut count = 0;
    for mutation in &mutations {
        check(table, mutation).map_err(|e| {
            let shown = &mutation.row[..mutation.row.len().min(64)];
            e.within(format!("row \"{}\"", shown.escape_ascii()))
        })?;
        count += mutation.cells.len();
    }
    let mut write = Write { cells: Vec::with_capacity(count), logged: Vec::new(), size: 0 };
    let mut memory = Memory::new();
    let (mut prefix, mut escaped) = (Vec::new(), Vec::new());
    for mutation in &mutations {
        prefix.clear();
        term::escape(&mutation.row, &mut prefix);
        for cell in &mutation.cells {
            escaped.clear();
            term::escape(&cell.qualifier, &mut escaped);
            let tail = key::tail(cell.timestamp, cell.kind);
            let key = memory.put(&[&prefix, &cell.family, &[0], &escaped, &tail]);
            let value = if cell.value.is_empty() { Bytes::new() } else { memory.put(&[&cell.value]) };
            write.size += key.len() + value.len();
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

fn check(table: &Table, mutation: &RowMutation) -> Result<()> {
    key::check_row(&mutation.row)?;
    let row = key::escaped_size(&mutation.row);
    for cell in &mutation.cells {
        check_cell(table, row, cell)?;
    }
    Ok(())
}

fn check_cell(table: &Table, row: usize, cell: &Cell) -> Result<()> {
    if !table.families.iter().any(|(name, _)| *name == cell.family) {
        return Err(table.unknown_family(&cell.family));
    }
    if cell.timestamp < 0 {
        return Err(Error::invalid(format!("expected a timestamp of 0 or more, found {}", cell.timestamp)));
    }
    if cell.kind.is_family_wide() && !cell.qualifier.is_empty() {
        return Err(Error::invalid(format!(
            "expected no qualifier on a family-wide marker, found \"{}\"",
            cell.qualifier.escape_ascii()
        )));
    }
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
    Ok(())
}

/// Small allocations out of larger ones.
struct Memory(BytesMut);

impl Memory {
    fn new() -> Self {
        Self(BytesMut::new())
    }

    fn put(&mut self, parts: &[&[u8]]) -> Bytes {
        let length = parts.iter().map(|p| p.len()).sum();
        if self.0.capacity() < length {
            self.0 = BytesMut::with_capacity(length.max(PIECE));
        }
        for part in parts {
            self.0.extend_from_slice(part);
        }
        self.0.split().freeze()
    }
}
