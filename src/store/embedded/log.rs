//! Change logs: what was written to a table, in the order in which it was committed.
//!
//! A record's key is the table's escaped name and its number, 8 bytes big-endian; its value is
//! [`wire::encode`](crate::model::wire::encode). Numbers start at 1 and have no holes. A record is committed in the same
//! batch as the cells it tells of. Number 0 is no record but what is known of the log: [`Tail`], 8 bytes each.
//!
//! The log is trimmed from its start, and bounded: a writer that would make it too large waits for whoever applies it.

use super::cells::pair;
use super::{Options, error};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{ChangeEvent, Position, Timestamp, wire};
use crate::schema::term;
use bytes::Bytes;
use fjall::{Keyspace, Readable, Snapshot};
use futures::future::{Either, select};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Records that are trimmed at once, at most.
const TRIM_RECORDS: usize = 20_000;

/// The change log of one table.
pub(super) struct Log {
    table: String,
    prefix: Vec<u8>,
    tail: Mutex<Tail>,
    room: Mutex<Room>,
    published: watch::Sender<Published>,
    limit: u64,
    wait: Duration,
}

/// Where the next record goes, and what is there; only the committer moves it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tail {
    /// Of the last record.
    pub(super) number: u64,
    /// Of the last record.
    pub(super) append_time: Timestamp,
    /// The last record that is gone, with all before it.
    pub(super) trimmed: u64,
    /// Keys and values of the records that are there.
    pub(super) bytes: u64,
}

impl Tail {
    pub(super) fn encode(self) -> Vec<u8> {
        [self.number, self.append_time.cast_unsigned(), self.trimmed, self.bytes].map(u64::to_be_bytes).concat()
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let ([number, time, trimmed, size], []) = (numbers, rest) else {
            return Err(Error::corrupt(format!("expected 32 bytes about a change log, found {}", bytes.len())));
        };
        let [number, time, trimmed, bytes] = [number, time, trimmed, size].map(|n| u64::from_be_bytes(*n));
        Ok(Self { number, append_time: time.cast_signed(), trimmed, bytes })
    }
}

/// Who needs the log, and who wants to add to it.
#[derive(Debug, Default)]
struct Room {
    /// Records after these numbers are needed, by how many.
    holds: BTreeMap<u64, usize>,
    /// Bytes that are on their way to the committer.
    reserved: u64,
}

/// What readers may know.
#[derive(Debug, Clone, Copy)]
struct Published {
    head: u64,
    failed: bool,
}

impl Log {
    /// Finds the end of a table's log.
    pub(super) fn open(logs: &Keyspace, table: &str, options: Options) -> Result<Self> {
        let mut prefix = Vec::new();
        term::escape(table.as_bytes(), &mut prefix);
        let stored = logs.get(key(&prefix, 0)).map_err(|e| error::store("reading a change log", e))?;
        let tail = stored.map_or_else(|| survey(logs, &prefix), |stored| Tail::decode(&stored))?;
        let (published, _) = watch::channel(Published { head: tail.number, failed: false });
        Ok(Self {
            table: table.to_owned(),
            prefix,
            tail: Mutex::new(tail),
            room: Mutex::default(),
            published,
            limit: options.log_bytes,
            wait: options.log_wait,
        })
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
        key(&self.prefix, number)
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all who wait for room.
    fn wake(&self) {
        self.published.send_modify(|_| ());
    }

    /// How far the log may be trimmed, asked for `upto`. Whoever holds it later holds what is there after that.
    pub(super) fn trimmable(&self, upto: u64) -> u64 {
        let held = self.room().holds.first_key_value().map_or(u64::MAX, |(after, _)| *after);
        upto.min(held)
    }

    /// Waits until there is room for so many bytes more.
    pub(super) async fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation> {
        let mut published = self.published.subscribe();
        let mut timeout = None;
        loop {
            published.mark_unchanged();
            {
                let mut room = self.room();
                let taken = self.tail().bytes + room.reserved;
                // Alone in the log, anything fits: else it never would.
                if taken == 0 || taken.saturating_add(bytes) <= self.limit {
                    room.reserved += bytes;
                    return Ok(Reservation { log: Arc::clone(self), bytes });
                }
                if room.holds.is_empty() {
                    return Err(self.full("and nobody applies it".to_owned()));
                }
            }
            let (_stop, over) = timeout.get_or_insert_with(|| alarm(self.wait));
            if let Either::Right(_) = select(std::pin::pin!(published.changed()), over).await {
                return Err(self.full(format!("and whoever applies it has made no room in {:?}", self.wait)));
            }
        }
    }

    fn full(&self, why: String) -> Error {
        let Tail { number, trimmed, bytes, .. } = *self.tail();
        Error::new(
            ErrorKind::Busy,
            format!(
                "the change log of table {} is full, {why}: {} changes in {bytes} bytes wait for the indexes, {} bytes are \
                 allowed; `apply {0}` makes room. Nothing of this write was applied",
                self.table,
                number - trimmed,
                self.limit
            ),
        )
    }

    /// Keeps records from being trimmed: those after a number, or after the last one.
    pub(super) fn hold(self: &Arc<Self>, after: Option<u64>) -> LogHold {
        let mut room = self.room();
        let after = after.unwrap_or_else(|| self.head());
        *room.holds.entry(after).or_default() += 1;
        LogHold { log: Arc::clone(self), after }
    }
}

/// Ends after so long; or never, when what it comes with is dropped.
fn alarm(after: Duration) -> (mpsc::Sender<()>, oneshot::Receiver<()>) {
    let (stop, stopped) = mpsc::channel();
    let (ring, rings) = oneshot::channel();
    // Not by a runtime's timer: the store works without a runtime. Without a thread it rings at once.
    let wait = move || {
        if stopped.recv_timeout(after) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = ring.send(());
        }
    };
    if let Err(e) = std::thread::Builder::new().name("sideindex-wait".to_owned()).spawn(wait) {
        tracing::warn!("waiting for room in a change log: {e}");
    }
    (stop, rings)
}

/// Bytes on their way into a log. Dropped once they are counted there, or given up.
pub(super) struct Reservation {
    log: Arc<Log>,
    bytes: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.log.room().reserved -= self.bytes;
        self.log.wake();
    }
}

/// Keeps the records of a change log after a number from being trimmed, until it is dropped. While somebody holds a log,
/// writers wait for room in it; nobody else could make any.
pub struct LogHold {
    log: Arc<Log>,
    after: u64,
}

impl LogHold {
    /// The number after which all records stay.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Lets go of the records up to a number. Never takes back what it has let go of.
    pub fn advance(&mut self, upto: u64) {
        if upto <= self.after {
            return;
        }
        let mut room = self.log.room();
        *room.holds.entry(upto).or_default() += 1;
        release(&mut room.holds, self.after);
        self.after = upto;
    }
}

impl Drop for LogHold {
    fn drop(&mut self) {
        release(&mut self.log.room().holds, self.after);
        self.log.wake();
    }
}

fn release(holds: &mut BTreeMap<u64, usize>, after: u64) {
    if let Some(count) = holds.get_mut(&after) {
        *count -= 1;
        if *count == 0 {
            holds.remove(&after);
        }
    }
}

fn key(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

/// Reads a log that was written before its size was kept.
fn survey(logs: &Keyspace, prefix: &[u8]) -> Result<Tail> {
    let mut tail = Tail::default();
    let mut records = logs.prefix(prefix);
    while let Some((key, value)) = pair(records.next())? {
        tail.bytes += (key.len() + value.len()) as u64;
        let (number, event) = decode(prefix, &key, value)?;
        tail = Tail { number, append_time: event.append_time, ..tail };
    }
    Ok(tail)
}

/// Records that may be trimmed: those after `after`, by their size with their key.
pub(super) struct Old {
    pub(super) after: u64,
    pub(super) sizes: Vec<u64>,
}

/// Finds the first records up to a number, a bounded number of them.
pub(super) fn old(log: &Log, snapshot: &Snapshot, logs: &Keyspace, upto: u64) -> Result<Old> {
    let Tail { trimmed: after, number, .. } = *log.tail();
    let upto = log.trimmable(upto.min(number));
    let mut sizes = Vec::new();
    if upto > after {
        let mut records = snapshot.range(logs, log.key(after + 1)..=log.key(upto));
        while sizes.len() < TRIM_RECORDS
            && let Some(record) = records.next()
        {
            let value = record.size().map_err(|e| error::store("reading a change log", e))?;
            sizes.push(u64::from(value) + log.key(0).len() as u64);
        }
    }
    Ok(Old { after, sizes })
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
    let tail = snapshot.get(logs, log.key(0)).map_err(|e| error::store("reading a change log", e))?;
    let trimmed = tail.map_or(Ok(0), |stored| Tail::decode(&stored).map(|t| t.trimmed))?;
    if after < trimmed {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!(
                "records up to {trimmed} were trimmed, and those after {after} were asked for: what was not applied of them \
                 is in the base table only; build the indexes anew"
            ),
        ));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzz_log_records() {
        let mut prefix = Vec::new();
        term::escape(b"t", &mut prefix);
        let value = wire::encode(&crate::model::RowMutation::new("r", Vec::new()), 5);
        crate::fuzz::run("log_records", &["t\0\u{1}"], |input| {
            let tail = Tail::decode(input);
            if let Ok(tail) = &tail {
                assert_eq!(tail.encode(), input);
            }
            let read = decode(&prefix, input, value.clone());
            match &read {
                Ok((number, event)) => {
                    assert_eq!(key(&prefix, *number), input);
                    assert_eq!(event.position, Position::Changelog { number: *number });
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt),
            }
            format!("{} {}", crate::fuzz::outcome(&tail), crate::fuzz::outcome(&read))
        });
    }
}
