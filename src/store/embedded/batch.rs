//! What the committer writes at once: cells, removals, change-log records.

use super::log::Old;
use super::moment::Moments;
use super::tables::{Table, Tables};
use super::write::Write;
use crate::clock;
use crate::error::Result;
use crate::model::wire;
use bytes::Bytes;
use fjall::{OwnedWriteBatch, PersistMode, Snapshot};
use std::sync::Arc;

/// A batch in the making.
pub(super) struct Batch<'a> {
    moments: &'a Moments,
    tables: &'a Tables,
    batch: OwnedWriteBatch,
    /// Tables whose log has records that readers don't know of yet.
    logged: Vec<Arc<Table>>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(moments: &'a Moments, tables: &'a Tables, capacity: usize) -> Self {
        let batch = OwnedWriteBatch::with_capacity(moments.database.clone(), capacity);
        Self { moments, tables, batch, logged: Vec::new() }
    }

    /// Adds a write with its change-log records.
    pub(super) fn write(&mut self, table: &Arc<Table>, write: Write) {
        if let Ok(log) = table.log() {
            let mut tail = log.tail();
            tail.append_time = tail.append_time.max(clock::now());
            for mutation in &write.logged {
                tail.number += 1;
                let (key, record) = (log.key(tail.number), wire::encode(mutation, tail.append_time));
                tail.bytes += (key.len() + record.len()) as u64;
                self.batch.insert(self.tables.log_keyspace(), key, record);
            }
            self.touch(table);
        }
        for (key, value) in write.cells {
            self.batch.insert(&table.keyspace, key, value);
        }
    }

    /// Removes the first records of a change log, if nobody has done so before and nobody holds them; up to which number.
    pub(super) fn trim(&mut self, table: &Arc<Table>, old: &Old) -> Result<u64> {
        let log = table.log()?;
        let upto = log.trimmable(old.after + old.sizes.len() as u64);
        let mut tail = log.tail();
        if tail.trimmed == old.after {
            for size in &old.sizes {
                if tail.trimmed >= upto {
                    break;
                }
                tail.trimmed += 1;
                tail.bytes = tail.bytes.saturating_sub(*size);
                self.batch.remove(self.tables.log_keyspace(), log.key(tail.trimmed));
            }
            self.touch(table);
        }
        Ok(tail.trimmed)
    }

    fn touch(&mut self, table: &Arc<Table>) {
        if !self.logged.iter().any(|t| Arc::ptr_eq(t, table)) {
            self.logged.push(Arc::clone(table));
        }
    }

    /// Adds what is known of each change log that this batch moved.
    fn seal(&mut self) {
        for log in self.logged.iter().filter_map(|t| t.log().ok()) {
            let tail = log.tail().encode();
            self.batch.insert(self.tables.log_keyspace(), log.key(0), tail);
        }
    }

    /// Removes a cell, without a marker in its place.
    pub(super) fn remove(&mut self, table: &Table, key: Bytes) {
        self.batch.remove(&table.keyspace, key);
    }

    /// Everything committed, this batch not included.
    pub(super) fn committed(&self) -> Snapshot {
        self.moments.now()
    }

    /// Writes what there is so far, without waiting for the disk, so that [`Self::committed`] shows it.
    pub(super) fn settle(&mut self) -> fjall::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.seal();
        let next = OwnedWriteBatch::with_capacity(self.moments.database.clone(), 0);
        self.moments.apply(std::mem::replace(&mut self.batch, next).durability(Some(PersistMode::Buffer)))
    }

    /// Writes all, and tells the readers of change logs.
    pub(super) fn commit(mut self, mode: PersistMode) -> fjall::Result<()> {
        if self.batch.is_empty() {
            self.moments.database.persist(mode)?;
        } else {
            self.seal();
            self.moments.apply(self.batch.durability(Some(mode)))?;
        }
        self.logged.iter().filter_map(|t| t.log().ok()).for_each(|log| log.publish());
        Ok(())
    }
}
