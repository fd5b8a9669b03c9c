//! What the committer writes at once: cells, removals, change-log records.

use super::log::Log;
use super::tables::{Table, Tables};
use super::write::Write;
use crate::clock;
use crate::model::wire;
use bytes::Bytes;
use fjall::{Database, OwnedWriteBatch, PersistMode, Snapshot};
use std::sync::Arc;

/// A batch in the making.
pub(super) struct Batch<'a> {
    database: &'a Database,
    tables: &'a Tables,
    batch: OwnedWriteBatch,
    /// Tables whose log has records that readers don't know of yet.
    logged: Vec<Arc<Table>>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(database: &'a Database, tables: &'a Tables, capacity: usize) -> Self {
        let batch = OwnedWriteBatch::with_capacity(database.clone(), capacity);
        Self { database, tables, batch, logged: Vec::new() }
    }

    /// Adds a write with its change-log records.
    pub(super) fn write(&mut self, table: &Arc<Table>, write: Write) {
        if let Ok(log) = table.log() {
            let mut tail = log.tail();
            tail.append_time = tail.append_time.max(clock::now());
            for mutation in &write.logged {
                tail.number += 1;
                let record = wire::encode(mutation, tail.append_time);
                self.batch.insert(self.tables.log_keyspace(), log.key(tail.number), record);
            }
            if !self.logged.iter().any(|t| Arc::ptr_eq(t, table)) {
                self.logged.push(Arc::clone(table));
            }
        }
        for (key, value) in write.cells {
            self.batch.insert(&table.keyspace, key, value);
        }
    }

    /// Removes a cell, without a marker in its place.
    pub(super) fn remove(&mut self, table: &Table, key: Bytes) {
        self.batch.remove(&table.keyspace, key);
    }

    /// Everything committed, this batch not included.
    pub(super) fn committed(&self) -> Snapshot {
        self.database.snapshot()
    }

    /// Writes what there is so far, without waiting for the disk, so that [`Self::committed`] shows it.
    pub(super) fn settle(&mut self) -> fjall::Result<()> {
        let next = OwnedWriteBatch::with_capacity(self.database.clone(), 0);
        std::mem::replace(&mut self.batch, next).durability(Some(PersistMode::Buffer)).commit()
    }

    /// Writes all, and tells the readers of change logs.
    pub(super) fn commit(self, mode: PersistMode) -> fjall::Result<()> {
        if self.batch.is_empty() {
            self.database.persist(mode)?;
        } else {
            self.batch.durability(Some(mode)).commit()?;
        }
        self.logged.iter().filter_map(|t| t.log().ok()).for_each(Log::publish);
        Ok(())
    }
}
