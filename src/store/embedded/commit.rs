//! The committer: one thread that groups the writes of all callers into batches.
//!
//! Being one, it can number change-log records in the order in which they are committed, and one `fsync` serves every
//! write that was waiting.

use super::batch::Batch;
use super::hot::Hot;
use super::key;
use super::moment::Moments;
use super::purge::{self, Extent};
use super::tables::{Table, Tables};
use super::write::Write;
use super::{DurabilityMode, error};
use crate::error::{Error, ErrorKind, Result};
use crate::store::Durability;
use bytes::Bytes;
use fjall::PersistMode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// A group takes in no more requests once it holds this many bytes.
const GROUP_BYTES: usize = 8 << 20;
/// Bytes that may wait for the committer, in units of [`UNIT`]; callers wait outside.
const QUEUE_UNITS: u32 = 64 << 10;
const UNIT: usize = 1 << 10;

/// What a caller wants.
struct Request {
    work: Work,
    durable: bool,
    done: oneshot::Sender<Result<()>>,
    _waits: Option<OwnedSemaphorePermit>,
}

enum Work {
    /// Nothing but that everything before is durable.
    Sync,
    Write(Arc<Table>, Write),
    /// What to write depends on what is stored. Whoever decides adds to the batch last of all, when nothing can fail.
    Decide(Decision),
}

/// Adds to a batch what follows from what is stored.
type Decision = Box<dyn FnOnce(&mut Batch<'_>) -> Result<()> + Send>;

impl Work {
    /// Roughly, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Write(_, write) => write.size,
            Self::Sync | Self::Decide(_) => 0,
        }
    }
}

/// The handle of the thread. Dropping it waits until all requests are answered.
pub(super) struct Committer {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    room: Arc<Semaphore>,
    failed: Arc<AtomicBool>,
}

impl Committer {
    pub(super) fn start(moments: &Arc<Moments>, tables: &Arc<Tables>, mode: DurabilityMode) -> Result<Self> {
        let (requests, incoming) = mpsc::channel();
        let failed = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            moments: Arc::clone(moments),
            tables: Arc::clone(tables),
            mode,
            incoming,
            failed: Arc::clone(&failed),
            hot: Hot::default(),
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
        self.request(Work::Write(table, write), durability == Durability::Durable, waits).await
    }

    /// Lets the committer decide what to write, with everything committed before in sight.
    pub(super) async fn decide<T: Send + 'static>(
        &self,
        durability: Durability,
        decide: impl FnOnce(&mut Batch<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&answer);
        let work = Work::Decide(Box::new(move |batch| {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(decide(batch)?);
            Ok(())
        }));
        self.request(work, durability == Durability::Durable, None).await?;
        let decided = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        decided.ok_or_else(|| Error::new(ErrorKind::Internal, "expected an answer of the committer"))
    }

    /// Makes everything committed before durable.
    pub(super) async fn sync(&self) -> Result<()> {
        self.request(Work::Sync, true, None).await
    }

    async fn request(&self, work: Work, durable: bool, waits: Option<OwnedSemaphorePermit>) -> Result<()> {
        if self.failed.load(Ordering::Acquire) {
            return Err(ended());
        }
        let (done, answer) = oneshot::channel();
        let request = Request { work, durable, done, _waits: waits };
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
    moments: Arc<Moments>,
    tables: Arc<Tables>,
    mode: DurabilityMode,
    incoming: mpsc::Receiver<Request>,
    failed: Arc<AtomicBool>,
    hot: Hot,
}

impl Worker {
    fn run(mut self) {
        // Callers whose request goes unanswered take it for a failed commit; this is for all others.
        let _fail_if_panicking = FailOnPanic { failed: Arc::clone(&self.failed), tables: Arc::clone(&self.tables) };
        while let Ok(first) = self.incoming.recv() {
            let mut size = first.work.size();
            let mut group = vec![first];
            while size < GROUP_BYTES
                && let Ok(next) = self.incoming.try_recv()
            {
                size += next.work.size();
                group.push(next);
            }
            self.commit(group);
        }
        if self.mode == DurabilityMode::Fsync
            && let Err(e) = self.moments.database.persist(PersistMode::SyncAll)
        {
            tracing::error!("closing an embedded store: {e}");
        }
    }

    fn commit(&mut self, group: Vec<Request>) {
        let durable = self.mode == DurabilityMode::Fsync && group.iter().any(|r| r.durable);
        let mode = if durable { PersistMode::SyncAll } else { PersistMode::Buffer };
        let mut answers = Vec::with_capacity(group.len());
        let pairs = |work: &Work| match work {
            Work::Write(_, write) => write.cells.len() + write.logged.len(),
            Work::Sync | Work::Decide(_) => 0,
        };
        let pairs = group.iter().map(|r| pairs(&r.work)).sum();
        let mut batch = Batch::new(&self.moments, &self.tables, pairs);
        let mut remains: Vec<(Arc<Table>, Bytes)> = Vec::new();
        let mut result = if self.failed.load(Ordering::Acquire) { Err(None) } else { Ok(()) };
        for request in group {
            let mut decided = Ok(());
            match request.work {
                Work::Sync => {}
                Work::Write(table, write) => {
                    let hot = |(row, cell): &(u64, usize)| {
                        self.hot.marked(&table.keyspace, *row).then(|| write.cells[*cell].0.clone())
                    };
                    let found: Vec<Bytes> = write.marks.iter().filter_map(hot).collect();
                    remains.extend(found.into_iter().map(|key| (Arc::clone(&table), key)));
                    batch.write(&table, write);
                }
                Work::Decide(decide) if result.is_ok() => {
                    result = batch.settle().map_err(|e| Some(Arc::new(e)));
                    if result.is_ok() {
                        decided = decide(&mut batch);
                        // A batch writes and removes no pair twice.
                        result = batch.settle().map_err(|e| Some(Arc::new(e)));
                    }
                }
                Work::Decide(_) => {}
            }
            answers.push((request.done, request._waits, decided));
        }
        if result.is_ok() {
            result = batch.commit(mode).map_err(|e| Some(Arc::new(e)));
        }
        if result.is_err() {
            fail(&self.failed, &self.tables);
        }
        for (done, _room, decided) in answers {
            // Nobody listens when the caller dropped its future.
            let _ = done.send(match &result {
                Ok(()) => decided,
                Err(None) => Err(ended()),
                Err(Some(e)) => Err(error::commit(e)),
            });
        }
        if result.is_ok() {
            remains.iter().for_each(|(table, cell)| self.purge(table, cell));
        }
    }

    /// Removes what markers hide in the row of a cell, and has it written to files, where what was removed is dropped: in
    /// memory both would still be read past. Whoever wrote has been answered already, and a row that isn't purged costs
    /// time, nothing else.
    fn purge(&self, table: &Table, cell: &Bytes) {
        let mut batch = Batch::new(&self.moments, &self.tables, 0);
        let purged = key::split_row(cell)
            .and_then(|(row, _)| purge::row(&mut batch, table, &row, Extent::Hidden))
            .and_then(|_| batch.commit(PersistMode::Buffer).map_err(|e| error::store("removing what is hidden", e)))
            .and_then(|()| table.keyspace.rotate_memtable().map_err(|e| error::store("writing files", e)));
        if let Err(e) = purged {
            tracing::warn!("table {}: {e}", table.descriptor.name);
        }
    }
}

/// Nothing more will be written.
fn fail(failed: &AtomicBool, tables: &Tables) {
    failed.store(true, Ordering::Release);
    tables.fail_logs();
}

struct FailOnPanic {
    failed: Arc<AtomicBool>,
    tables: Arc<Tables>,
}

impl Drop for FailOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            fail(&self.failed, &self.tables);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use crate::error::{Action, ErrorKind};
    use crate::model::{Cell, RowMutation};
    use crate::store::embedded::{EmbeddedStore, Options};
    use crate::store::{Durability, Read, ReadSpec, Store, TableDescriptor};
    use futures::FutureExt;
    use futures::executor::block_on;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_failed_commit_ends_writing_but_not_reading() {
        let directory = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(directory.path(), Options::default()).unwrap();
        block_on(store.create_table(&TableDescriptor::new("t", &["c"], 1).with_change_log())).unwrap();
        let put = || vec![RowMutation::new("r", vec![Cell::put("c", "q", 1, "v")])];
        block_on(store.mutate("t", put(), Durability::Durable)).unwrap();
        assert!(store.log_beyond("t", 1).now_or_never().is_none());

        // What the committer does when fjall reports a failure.
        store.0.committer.failed.store(true, Ordering::Release);
        store.0.tables.fail_logs();

        let errors = [
            block_on(store.mutate("t", put(), Durability::Relaxed)).unwrap_err(),
            block_on(store.sync()).unwrap_err(),
            block_on(store.log_beyond("t", 1)).unwrap_err(),
        ];
        for error in errors {
            assert_eq!((error.kind(), error.action()), (ErrorKind::Store, Action::Stop));
            assert!(error.to_string().contains("reopen"), "{error}");
        }
        assert_eq!(block_on(store.log_beyond("t", 0)).unwrap(), 1);
        let rows = block_on(store.get("t", &["r".into()], &ReadSpec::default())).unwrap();
        assert_eq!(rows[0].cells.len(), 1);
    }
}
