//! Change logs: what was written to a table, in the order in which it was committed.
//!
//! A record's key is the table's escaped name and its number, 8 bytes big-endian; its value is
//! [`wire::encode`](crate::model::wire::encode). Numbers start at 1 and have no holes. A record is committed in the same
//! batch as the cells it tells of.

use super::cells::pair;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{ChangeEvent, Position, Timestamp, wire};
use crate::schema::term;
use bytes::Bytes;
use fjall::{Keyspace, Readable, Snapshot};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The change log of one table.
pub(super) struct Log {
    prefix: Vec<u8>,
    tail: Mutex<Tail>,
    published: watch::Sender<Published>,
}

/// Where the next record goes; only the committer moves it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    pub(super) number: u64,
    pub(super) append_time: Timestamp,
}

/// What readers may know.
#[derive(Debug, Clone, Copy)]
struct Published {
    head: u64,
    failed: bool,
}

impl Log {
    /// Finds the end of a table's log.
    pub(super) fn open(logs: &Keyspace, table: &str) -> Result<Self> {
        let mut prefix = Vec::new();
        term::escape(table.as_bytes(), &mut prefix);
        let last = pair(logs.prefix(&prefix).next_back())?;
        let tail = match last {
            None => Tail { number: 0, append_time: 0 },
            Some((key, value)) => {
                let event = decode(&prefix, &key, value)?;
                Tail { number: event.0, append_time: event.1.append_time }
            }
        };
        let (published, _) = watch::channel(Published { head: tail.number, failed: false });
        Ok(Self { prefix, tail: Mutex::new(tail), published })
    }

    /// The number of the last published record.
    pub(super) fn head(&self) -> u64 {
        self.published.borrow().head
    }

    /// Waits for a head above `number`.
    pub(super) async fn beyond(&self, number: u64) -> Result<u64> {
        let mut published = self.published.subscribe();
        let now = published.wait_for(|p| p.head > number || p.failed).await.map(|p| *p);
        match now {
            Ok(Published { head, .. }) if head > number => Ok(head),
            _ => {
                Err(Error::new(ErrorKind::Store, "a commit has failed, nothing more will be written; reopen the store"))
            }
        }
    }

    /// The end of the log, for the committer.
    pub(super) fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells readers of all records up to the tail.
    pub(super) fn publish(&self) {
        let head = self.tail().number;
        self.published.send_modify(|p| p.head = head);
    }

    /// Tells readers that no more records will come.
    pub(super) fn fail(&self) {
        self.published.send_modify(|p| p.failed = true);
    }

    /// The key of a record.
    pub(super) fn key(&self, number: u64) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix.len() + 8);
        key.extend_from_slice(&self.prefix);
        key.extend(number.to_be_bytes());
        key
    }
}

/// See [`EmbeddedStore::read_log`](super::EmbeddedStore::read_log).
pub(super) fn read(
    log: &Log,
    snapshot: &Snapshot,
    logs: &Keyspace,
    after: u64,
    max_records: usize,
    max_bytes: usize,
) -> Result<Vec<ChangeEvent>> {
    let mut events = Vec::new();
    let Some(first) = after.checked_add(1) else { return Ok(events) };
    // By a snapshot: a record is seen together with the cells it tells of, never before them.
    let mut records = snapshot.range(logs, log.key(first)..=log.key(u64::MAX));
    let (mut expected, mut bytes) = (first, 0);
    while events.len() < max_records && (bytes < max_bytes || events.is_empty()) {
        let Some((key, value)) = pair(records.next())? else { break };
        bytes += value.len();
        let (number, event) = decode(&log.prefix, &key, value)?;
        if number != expected {
            return Err(Error::corrupt(format!("expected record {expected}, found {number}")));
        }
        expected = number.wrapping_add(1);
        events.push(event);
    }
    Ok(events)
}

fn decode(prefix: &[u8], key: &[u8], value: Bytes) -> Result<(u64, ChangeEvent)> {
    let number = key
        .strip_prefix(prefix)
        .and_then(|n| <[u8; 8]>::try_from(n).ok())
        .map(u64::from_be_bytes)
        .ok_or_else(|| Error::corrupt(format!("expected the key of a record, found \"{}\"", key.escape_ascii())))?;
    Ok((number, wire::decode(value, Position::Changelog { number })?))
}
