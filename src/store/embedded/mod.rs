//! The embedded store: HBase's cell semantics in one process, on an LSM tree (`docs/decisions/0002-fjall.md`).
//!
//! ```text
//!  mutate ─► write (check, encode) ─► commit (one thread: group, number, fsync) ─► fjall
//!  get, scan ◄─ row (cells → row, what markers hide) ◄─ cells ◄─ fjall
//! ```
//!
//! One keyspace per table holds its cells, one key-value pair each; one holds all change logs; one the descriptors.
//! Everything of one commit is in one fjall batch, so cells and their change-log records appear and survive together.

mod batch;
mod cells;
mod commit;
mod compact;
mod decide;
mod directory;
mod error;
mod hot;
mod inspect;
mod journal;
mod key;
mod layout;
mod log;
mod moment;
mod plan;
mod purge;
mod read;
mod resolve;
mod row;
mod scan;
mod split;
mod tables;
mod write;

pub use compact::Compaction;
pub use inspect::Inspection;
pub use log::LogHold;

use super::{Capabilities, ColumnCheck, Durability, Read, ReadSpec, Scan, Scanner, Store, TableDescriptor};
use crate::error::Result;
use crate::model::{ChangeEvent, Row, RowMutation};
use async_trait::async_trait;
use bytes::Bytes;
use moment::Moments;
use read::View;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tables::Tables;

/// What an acknowledged durable write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DurabilityMode {
    /// The end of the process and of the machine: one `fsync` per group of durable writes.
    #[default]
    Fsync,
    /// The end of the process, not of the machine: the operating system has it.
    Os,
}

/// How an embedded store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What an acknowledged durable write survives.
    pub durability: DurabilityMode,
    /// Memory for cached blocks of all tables together, in bytes.
    pub cache_bytes: u64,
    /// How much each table (and the change logs together) collects in memory before it is written to a file, in bytes. A
    /// table keeps what it was created with. Up to five times this may be held while files are being written.
    pub memtable_bytes: u64,
    /// How large the change log of a table may get, in bytes of records. A writer that would make it larger waits, and is
    /// refused after [`log_wait`](Self::log_wait), or at once when nobody reads the log.
    pub log_bytes: u64,
    /// How long a writer waits for room in a change log.
    pub log_wait: Duration,
}

impl Default for Options {
    /// `Fsync`, 32 MiB of cache, 8 MiB per table, 1 GiB of change log, 30 seconds of waiting.
    fn default() -> Self {
        Self {
            durability: DurabilityMode::Fsync,
            cache_bytes: 32 << 20,
            memtable_bytes: 8 << 20,
            log_bytes: 1 << 30,
            log_wait: Duration::from_secs(30),
        }
    }
}

/// A store in a directory of this process. Clones are handles to the same store.
///
/// * Reads run where they are called and block for one page, or one `get`, at most.
/// * Writes of all callers are grouped by one thread. A caller that drops the future of a write doesn't learn whether it
///   happened.
/// * The directory stays locked until the last handle, snapshot and scanner is dropped; that drop waits for writes under
///   way.
/// * A failed commit ends all writing: what is durable is then known only after reopening. Reads go on.
///
/// What markers hide stays in the files until [`compact`](Self::compact), except in rows that gather many markers: of those
/// what is hidden is removed on the way, and the markers that hide most stay.
///
/// ```
/// use futures::executor::block_on;
/// use sideindex::model::{Cell, RowMutation};
/// use sideindex::store::embedded::{EmbeddedStore, Options};
/// use sideindex::store::{Durability, Read, ReadSpec, Store, TableDescriptor};
/// # fn main() -> sideindex::error::Result<()> {
/// # let directory = tempfile::tempdir()?;
/// let store = EmbeddedStore::open(directory.path(), Options::default())?;
/// block_on(async {
///     store.create_table(&TableDescriptor::new("things", &["c"], 1).with_change_log()).await?;
///     let put = RowMutation::new("thing-1", vec![Cell::put("c", "color", 1, "red")]);
///     store.mutate("things", vec![put], Durability::Durable).await?;
///     let rows = store.get("things", &["thing-1".into()], &ReadSpec::default()).await?;
///     assert_eq!(rows[0].cells[0].value, "red");
///     assert_eq!(store.log_head("things")?, 1);
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone)]
pub struct EmbeddedStore(Arc<Shared>);

/// What handles, snapshots and scanners share. Fields are dropped in order: the committer ends before the database is
/// closed, and the lock goes last.
struct Shared {
    committer: commit::Committer,
    tables: Arc<Tables>,
    moments: Arc<Moments>,
    _lock: directory::Lock,
}

impl EmbeddedStore {
    /// Opens the store in `path`, creating the directory and the store where there is none.
    ///
    /// # Errors
    /// * [`Busy`](crate::error::ErrorKind::Busy) when the directory is open already, here or in another process.
    /// * [`InvalidInput`](crate::error::ErrorKind::InvalidInput) when it holds something else.
    /// * [`Corrupt`](crate::error::ErrorKind::Corrupt) when it is of an unknown format, or damaged.
    /// * [`Store`](crate::error::ErrorKind::Store) when files cannot be read or written.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let (database, lock) = directory::open(path, options)?;
        let tables = Tables::open(&database, options).map_err(|e| e.within(path.display().to_string()))?;
        let tables = Arc::new(tables);
        let moments = Arc::new(Moments::new(database));
        let committer = commit::Committer::start(&moments, &tables, options.durability)?;
        Ok(Self(Arc::new(Shared { committer, tables, moments, _lock: lock })))
    }

    /// Whether there is a store in `path`.
    pub fn is_at(path: &Path) -> bool {
        directory::is_store(path)
    }

    /// The number of the last record in a table's change log; 0 when there is none yet.
    ///
    /// # Errors
    /// [`NotFound`](crate::error::ErrorKind::NotFound) for an unknown table,
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for a table without a change log.
    pub fn log_head(&self, table: &str) -> Result<u64> {
        Ok(self.0.tables.get(table)?.log()?.head())
    }

    /// Reads change-log records after number `after`, in order and without holes: at most `max_records`, and no more once
    /// their stored size reaches `max_bytes`; one at least, if there is one and `max_records` is not 0.
    ///
    /// # Errors
    /// As [`log_head`](Self::log_head); [`NotFound`](crate::error::ErrorKind::NotFound) when some of them were trimmed,
    /// [`Corrupt`](crate::error::ErrorKind::Corrupt) for a missing or broken record.
    pub fn read_log(&self, table: &str, after: u64, max_records: usize, max_bytes: usize) -> Result<Vec<ChangeEvent>> {
        let table = self.0.tables.get(table)?;
        let snapshot = self.0.moments.now();
        log::read(table.log()?, &snapshot, self.0.tables.log_keyspace(), after, max_records, max_bytes)
            .map_err(|e| e.within(format!("change log of table {}", table.descriptor.name)))
    }

    /// Waits until the last record of a table's change log has a number above `number`, and returns its number.
    ///
    /// # Errors
    /// As [`log_head`](Self::log_head); [`Store`](crate::error::ErrorKind::Store) when writing has ended by a failed
    /// commit.
    pub async fn log_beyond(&self, table: &str, number: u64) -> Result<u64> {
        self.0.tables.get(table)?.log()?.beyond(number).await
    }

    /// The bytes of a table's change log that were not trimmed: keys and values of its records.
    ///
    /// # Errors
    /// As [`log_head`](Self::log_head).
    pub fn log_bytes(&self, table: &str) -> Result<u64> {
        Ok(self.0.tables.get(table)?.log()?.tail().bytes)
    }

    /// Keeps records of a table's change log from being trimmed: those after number `after`, or those that come after the last
    /// one. Whoever reads the log holds it.
    ///
    /// # Errors
    /// As [`log_head`](Self::log_head).
    pub fn hold_log(&self, table: &str, after: Option<u64>) -> Result<LogHold> {
        Ok(self.0.tables.get(table)?.log()?.hold(after))
    }

    /// Removes records of a table's change log up to number `upto`, but none that somebody holds, and a bounded number of
    /// them: what is left over goes with the next call. Returns the number up to which all are gone.
    ///
    /// # Errors
    /// As [`log_head`](Self::log_head); those of reading and writing.
    pub async fn trim_log(&self, table: &str, upto: u64) -> Result<u64> {
        let table = self.0.tables.get(table)?;
        let old = log::old(table.log()?, &self.0.moments.now(), self.0.tables.log_keyspace(), upto)?;
        self.0.committer.decide(Durability::Relaxed, move |batch| batch.trim(&table, &old)).await
    }

    /// Removes for good what no read of a table shows, or of all tables: delete markers, what they hide, and versions beyond
    /// those that the families keep, as HBase's major compaction does. Then merges its files, which gives the space back.
    ///
    /// * Snapshots and open scans go on seeing what they saw. Writers are held up for one batch of rows at a time.
    /// * A put that comes later, at or below the timestamp of a marker that was removed, is visible, exactly as in HBase.
    ///   A base table's raw reads no longer tell of removed markers: the write helper takes the clock and what is left as
    ///   the newest timestamp of a row, and the floor of an index built later is above what is left. Whoever writes with
    ///   timestamps of its own compacts only when no older ones are to come.
    /// * Beside a running follower of an index, an entry that was on its way may become visible after it was removed: it costs
    ///   a `verified` read a check, and an `indexed` one shows it until the row changes again.
    /// * Each row is purged at once: a crash leaves it as it was, or purged.
    /// * Memory is bounded by one batch of rows. It runs in a thread of its own, to its end or until the future is dropped.
    ///
    /// # Errors
    /// [`NotFound`](crate::error::ErrorKind::NotFound) for an unknown table; those of reading and writing, after which some
    /// rows are purged and others not.
    pub async fn compact(&self, table: Option<&str>) -> Result<Compaction> {
        let tables = match table {
            Some(name) => vec![self.0.tables.get(name)?],
            None => self.0.tables.current().values().cloned().collect(),
        };
        compact::run(Arc::clone(&self.0), tables, table.is_none()).await
    }

    fn now(&self) -> View {
        View::new(Arc::clone(&self.0))
    }
}

#[async_trait]
impl Read for EmbeddedStore {
    async fn get(&self, table: &str, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>> {
        self.now().get(table, keys, spec).await
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        self.now().scan(table, scan).await
    }
}

#[async_trait]
impl Store for EmbeddedStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshots: true,
            raw_reads: true,
            atomic_put_and_delete: true,
            version_markers: true,
            versions_in_scans: true,
            reverse_scans: true,
            atomic_updates: true,
            timed_checks: true,
            change_logs: true,
            regions: false,
        }
    }

    fn row_key_fits(&self, key: &[u8]) -> bool {
        key::check_row(key).is_ok()
    }

    async fn create_table(&self, table: &TableDescriptor) -> Result<()> {
        self.0.tables.create(&self.0.moments.database, table)
    }

    async fn list_tables(&self) -> Result<Vec<String>> {
        Ok(self.0.tables.current().keys().cloned().collect())
    }

    async fn describe_table(&self, table: &str) -> Result<TableDescriptor> {
        Ok(self.0.tables.get(table)?.descriptor.clone())
    }

    async fn mutate(&self, table: &str, mutations: Vec<RowMutation>, durability: Durability) -> Result<()> {
        let table = self.0.tables.get(table)?;
        let mut write =
            write::prepare(&table, mutations).map_err(|e| e.within(format!("table {}", table.descriptor.name)))?;
        if write.cells.is_empty() {
            return Ok(());
        }
        write.reserve(&table).await?;
        self.0.committer.write(table, write, durability).await
    }

    async fn increment(&self, table: &str, row: &Bytes, family: &Bytes, qualifier: &Bytes, amount: i64) -> Result<i64> {
        let table = self.0.tables.get(table)?;
        let counter = decide::Counter::new(&table, row, family, qualifier).await?;
        self.0.committer.decide(Durability::Durable, move |batch| counter.add(amount, batch)).await
    }

    async fn check_and_mutate(&self, table: &str, check: &ColumnCheck, mutation: RowMutation) -> Result<bool> {
        let table = self.0.tables.get(table)?;
        let mut checked = decide::Checked::new(&table, check, mutation)?;
        checked.reserve().await?;
        self.0.committer.decide(Durability::Durable, move |batch| checked.apply(batch)).await
    }

    async fn split_points(&self, table: &str, parts: usize) -> Result<Vec<Bytes>> {
        split::points(&self.0.moments.now(), &*self.0.tables.get(table)?, parts)
    }

    async fn sync(&self) -> Result<()> {
        self.0.committer.sync().await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Read>> {
        Ok(Arc::new(self.now()))
    }
}
