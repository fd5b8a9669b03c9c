//! The committer: one thread that groups the writes of all callers into batches.
//!
//! Being one, it can number change-log records in the order in which they are committed, and one `fsync` serves every
//! write that was waiting.

use super::log::Log;
use super::tables::{Table, Tables};
use super::write::Write;
use super::{DurabilityMode, error};
use crate::clock;
use crate::error::{Error, ErrorKind, Result};
use crate::model::wire;
use crate::store::Durability;
use fjall::{Database, OwnedWriteBatch, PersistMode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// A group takes in no more requests once it holds this many bytes.
const GROUP_BYTES: usize = 8 << 20;
/// Bytes that may wait for the committer, in units of [`UNIT`]; callers wait outside.
const QUEUE_UNITS: u32 = 64 << 10;
const UNIT: usize = 1 << 10;

/// A write, or nothing but a wish for durability.
struct Request {
    write: Option<(Arc<Table>, Write)>,
    durable: bool,
    done: oneshot::Sender<Result<()>>,
    _waits: Option<OwnedSemaphorePermit>,
}

/// The handle of the thread. Dropping it waits until all requests are answered.
pub(super) struct Committer {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    room: Arc<Semaphore>,
    failed: Arc<AtomicBool>,
}

impl Committer {
    pub(super) fn start(database: &Database, tables: &Arc<Tables>, mode: DurabilityMode) -> Result<Self> {
        let (requests, incoming) = mpsc::channel();
        let failed = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            database: database.clone(),
            tables: Arc::clone(tables),
            mode,
            incoming,
            failed: Arc::clone(&failed),
        };
        let thread = std::thread::Builder::new().name("sideindex-commit".to_owned()).spawn(move || worker.run())?;
        let room = Arc::new(Semaphore::new(QUEUE_UNITS as usize));
        Ok(Self { requests: Some(requests), thread: Some(thread), room, failed })
    }

    /// Commits a write.
    pub(super) async fn write(&self, table: Arc<Table>, write: Write, durability: Durability) -> Result<()> {
        let units = u32::try_from(write.size / UNIT + 1).unwrap_or(QUEUE_UNITS).min(QUEUE_UNITS);
        // Nobody closes the semaphore; were it closed, there would be no bound, and nothing else would be wrong.
        let waits = Arc::clone(&self.room).acquire_many_owned(units).await.ok();
        self.request(Some((table, write)), durability == Durability::Durable, waits).await
    }

    /// Makes everything committed before durable.
    pub(super) async fn sync(&self) -> Result<()> {
        self.request(None, true, None).await
    }

    async fn request(
        &self,
        write: Option<(Arc<Table>, Write)>,
        durable: bool,
        waits: Option<OwnedSemaphorePermit>,
    ) -> Result<()> {
        if self.failed.load(Ordering::Acquire) {
            return Err(ended());
        }
        let (done, answer) = oneshot::channel();
        let request = Request { write, durable, done, _waits: waits };
        self.requests.as_ref().and_then(|r| r.send(request).ok()).ok_or_else(ended)?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the committer of an embedded store panicked");
        }
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Store, "a commit has failed before, nothing more will be written; reopen the store")
}

struct Worker {
    database: Database,
    tables: Arc<Tables>,
    mode: DurabilityMode,
    incoming: mpsc::Receiver<Request>,
    failed: Arc<AtomicBool>,
}

impl Worker {
    fn run(self) {
        // Callers whose request goes unanswered take it for a failed commit; this is for all others.
        let _fail_if_panicking = FailOnPanic(&self);
        while let Ok(first) = self.incoming.recv() {
            let mut size = first.write.as_ref().map_or(0, |(_, w)| w.size);
            let mut group = vec![first];
            while size < GROUP_BYTES
                && let Ok(next) = self.incoming.try_recv()
            {
                size += next.write.as_ref().map_or(0, |(_, w)| w.size);
                group.push(next);
            }
            self.commit(group);
        }
        if self.mode == DurabilityMode::Fsync
            && let Err(e) = self.database.persist(PersistMode::SyncAll)
        {
            tracing::error!("closing an embedded store: {e}");
        }
    }

    fn commit(&self, group: Vec<Request>) {
        let durable = self.mode == DurabilityMode::Fsync && group.iter().any(|r| r.durable);
        let mode = if durable { PersistMode::SyncAll } else { PersistMode::Buffer };
        let mut answers = Vec::with_capacity(group.len());
        let mut logged: Vec<Arc<Table>> = Vec::new();
        let cells = group.iter().filter_map(|r| r.write.as_ref()).map(|(_, w)| w.cells.len() + w.logged.len()).sum();
        let mut batch = OwnedWriteBatch::with_capacity(self.database.clone(), cells).durability(Some(mode));
        for request in group {
            if let Some((table, write)) = request.write {
                self.append(&mut batch, &table, &write);
                for (key, value) in write.cells {
                    batch.insert(&table.keyspace, key, value);
                }
                if table.is_logged() && !logged.iter().any(|t| Arc::ptr_eq(t, &table)) {
                    logged.push(table);
                }
            }
            answers.push((request.done, request._waits));
        }
        let result = if self.failed.load(Ordering::Acquire) {
            Err(None)
        } else if batch.is_empty() {
            self.database.persist(mode).map_err(|e| Some(Arc::new(e)))
        } else {
            batch.commit().map_err(|e| Some(Arc::new(e)))
        };
        if result.is_ok() {
            logged.iter().filter_map(|t| t.log().ok()).for_each(Log::publish);
        } else {
            self.fail();
        }
        for (done, _room) in answers {
            // Nobody listens when the caller dropped its future.
            let _ = done.send(match &result {
                Ok(()) => Ok(()),
                Err(None) => Err(ended()),
                Err(Some(e)) => Err(error::commit(e)),
            });
        }
    }

    /// Nothing more will be written.
    fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.tables.fail_logs();
    }

    /// Adds the change-log records of a write.
    fn append(&self, batch: &mut OwnedWriteBatch, table: &Table, write: &Write) {
        let Ok(log) = table.log() else { return };
        let mut tail = log.tail();
        tail.append_time = tail.append_time.max(clock::now());
        for mutation in &write.logged {
            tail.number += 1;
            batch.insert(self.tables.log_keyspace(), log.key(tail.number), wire::encode(mutation, tail.append_time));
        }
    }
}

struct FailOnPanic<'a>(&'a Worker);

impl Drop for FailOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}
