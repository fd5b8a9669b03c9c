//! Rows with changes that the index has not taken in yet.

use crate::error::{Error, ErrorKind, Result};
use crate::model::Position;
use crate::store::embedded::EmbeddedStore;
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_128;

/// The most rows that may be pending: their hashes are held in memory.
const MOST: usize = 2_000_000;
const RECORDS: usize = 4_000;
const BYTES: usize = 8 << 20;

/// The rows touched by the records of a change log after the applied one.
pub(super) struct Pending {
    store: EmbeddedStore,
    table: String,
    read: u64,
    rows: HashSet<u128>,
}

impl Pending {
    /// Reads the log of `table` after a record, to its end; somebody holds it.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] when too many rows are pending.
    pub(super) fn after(store: &EmbeddedStore, table: &str, read: u64) -> Result<Self> {
        let mut pending = Self { store: store.clone(), table: table.to_owned(), read, rows: HashSet::new() };
        pending.read_on()?;
        Ok(pending)
    }

    /// Adds the rows of what the log has had since.
    ///
    /// # Errors
    /// As [`Pending::after`].
    pub(super) fn read_on(&mut self) -> Result<()> {
        loop {
            let events = self.store.read_log(&self.table, self.read, RECORDS, BYTES)?;
            let Some(Position::Changelog { number }) = events.last().map(|e| &e.position) else { return Ok(()) };
            self.read = *number;
            self.rows.extend(events.iter().map(|e| xxh3_128(&e.row)));
            if self.rows.len() > MOST {
                return Err(Error::new(
                    ErrorKind::TooCostly,
                    format!(
                        "expected at most {MOST} rows with changes that are not applied yet; bring the indexes nearer \
                         with `apply`, then verify"
                    ),
                ));
            }
        }
    }

    /// Adds a row.
    pub(super) fn add(&mut self, row: &[u8]) {
        self.rows.insert(xxh3_128(row));
    }

    /// Whether a change of the row is pending.
    pub(super) fn holds(&self, row: &[u8]) -> bool {
        !self.rows.is_empty() && self.rows.contains(&xxh3_128(row))
    }

    /// How many rows.
    pub(super) fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Number of the last record read.
    pub(super) fn head(&self) -> u64 {
        self.read
    }
}
