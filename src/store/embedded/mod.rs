//! The embedded store: HBase's cell semantics in one process, on an LSM tree (`docs/decisions/0002-fjall.md`).
//!
//! ```text
//!  mutate ─► write (check, encode) ─► commit (one thread: group, number, fsync) ─► fjall
//!  get, scan ◄─ row (cells → row, what markers hide) ◄─ cells ◄─ fjall
//! ```
//!
//! One keyspace per table holds its cells, one key-value pair each; one holds all change logs; one the descriptors.
//! Everything of one commit is in one fjall batch, so cells and their change-log records appear and survive together.

mod cells;
mod commit;
mod directory;
mod error;
mod inspect;
mod journal;
mod key;
mod layout;
mod log;
mod plan;
mod read;
mod resolve;
mod row;
mod scan;
mod tables;
mod write;

pub use inspect::Inspection;

use super::{Capabilities, Durability, Read, ReadSpec, Scan, Scanner, Store, TableDescriptor};
use crate::error::Result;
use crate::model::{ChangeEvent, Row, RowMutation};
use async_trait::async_trait;
use bytes::Bytes;
use read::View;
use std::path::Path;
use std::sync::Arc;
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
}

impl Default for Options {
    /// `Fsync`, 64 MiB of cache, 16 MiB per table.
    fn default() -> Self {
        Self { durability: DurabilityMode::Fsync, cache_bytes: 64 << 20, memtable_bytes: 16 << 20 }
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
/// Nothing is ever purged: hidden cells, markers and superseded versions stay in the files, and so do change-log records.
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
    database: fjall::Database,
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
        let committer = commit::Committer::start(&database, &tables, options.durability)?;
        Ok(Self(Arc::new(Shared { committer, tables, database, _lock: lock })))
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
    /// As [`log_head`](Self::log_head); [`Corrupt`](crate::error::ErrorKind::Corrupt) for a missing or broken record.
    pub fn read_log(&self, table: &str, after: u64, max_records: usize, max_bytes: usize) -> Result<Vec<ChangeEvent>> {
        let table = self.0.tables.get(table)?;
        let snapshot = self.0.database.snapshot();
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
        Capabilities { snapshots: true, raw_reads: true, atomic_put_and_delete: true, reverse_scans: true }
    }

    fn row_key_fits(&self, key: &[u8]) -> bool {
        key::check_row(key).is_ok()
    }

    async fn create_table(&self, table: &TableDescriptor) -> Result<()> {
        self.0.tables.create(&self.0.database, table)
    }

    async fn list_tables(&self) -> Result<Vec<String>> {
        Ok(self.0.tables.current().keys().cloned().collect())
    }

    async fn describe_table(&self, table: &str) -> Result<TableDescriptor> {
        Ok(self.0.tables.get(table)?.descriptor.clone())
    }

    async fn mutate(&self, table: &str, mutations: Vec<RowMutation>, durability: Durability) -> Result<()> {
        let table = self.0.tables.get(table)?;
        let write =
            write::prepare(&table, mutations).map_err(|e| e.within(format!("table {}", table.descriptor.name)))?;
        if write.cells.is_empty() {
            return Ok(());
        }
        self.0.committer.write(table, write, durability).await
    }

    async fn sync(&self) -> Result<()> {
        self.0.committer.sync().await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Read>> {
        Ok(Arc::new(self.now()))
    }
}
