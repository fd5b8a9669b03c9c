//! Stores: one trait with HBase's cell semantics, several backends behind it.
//!
//! [`Read`] is what queries need, [`Store`] adds writing and tables. Callers take the narrower one.

pub mod embedded;
mod filter;
mod layer;
mod read;
mod rules;
mod sieve;
mod table;
mod thrift;
pub mod thrift1;
pub mod thrift2;

pub use filter::{ColumnFilter, Comparison, Filter, FuzzyKey};
pub use layer::{Call, Layer, Layered, Meter, Operation, Retry, Stop};
pub use read::{Columns, Page, ReadSpec, Scan, Scanner, count_rows};
pub use table::{FamilyDescriptor, Layout, TableDescriptor};
pub use thrift::{Gateway, Transport};

use crate::error::Result;
use crate::model::{Row, RowMutation};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;

/// What a backend can do beyond the common ground. Asking for what is not there is an
/// [`Unsupported`](crate::error::ErrorKind::Unsupported) error, never a no-op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// [`Store::snapshot`] works.
    pub snapshots: bool,
    /// [`ReadSpec::raw`] works.
    pub raw_reads: bool,
    /// Puts and markers of one mutation become visible together. Without it, a mutation with both is refused, and one with
    /// several timestamps becomes visible a timestamp at a time.
    pub atomic_put_and_delete: bool,
    /// Markers on single versions can be written: [`CellKind::DeleteVersion`](crate::model::CellKind::DeleteVersion) and
    /// [`CellKind::DeleteFamilyVersion`](crate::model::CellKind::DeleteFamilyVersion).
    pub version_markers: bool,
    /// Scans can read more than the newest version. Without it, neither does a get see all versions of a row at one moment.
    pub versions_in_scans: bool,
    /// [`Scan::reversed`] works.
    pub reverse_scans: bool,
    /// [`Store::increment`] and [`Store::check_and_mutate`] work.
    pub atomic_updates: bool,
    /// [`Store::check_and_mutate`] takes any mutation, with its timestamps. Without it, it takes one put, which gets the
    /// server's time.
    pub timed_checks: bool,
    /// Tables can have a change log ([`TableDescriptor::change_log`]).
    pub change_logs: bool,
    /// Tables are divided into regions, on several servers: salts and splits spread the work.
    pub regions: bool,
}

/// What [`Store::check_and_mutate`] expects of a column: HBase's `checkAndMutate` with `EQUAL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnCheck {
    /// Column family.
    pub family: Bytes,
    /// Column qualifier.
    pub qualifier: Bytes,
    /// The newest value; none if there must be no cell. Never empty: HBase takes an empty value for none.
    pub expected: Option<Bytes>,
}

/// How much a write waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// On return the mutations are as durable as the store promises.
    Durable,
    /// On return the mutations are visible; they are durable at the next [`Store::sync`] or durable write that returns.
    /// A crash loses, of everything written, no more than a tail. (HBase's ASYNC_WAL; a backend without it waits.)
    Relaxed,
}

/// Reading rows.
///
/// Every call sees each row as of one moment. Two calls, or two rows of one call, may be of different moments, unless the
/// reader is a snapshot.
#[async_trait]
pub trait Read: Send + Sync {
    /// Reads rows by key: one [`Row`] per key, in the order of the keys; a row without cells where there is nothing.
    ///
    /// # Errors
    /// [`NotFound`](crate::error::ErrorKind::NotFound) for an unknown table,
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for columns of an unknown family or 0 versions.
    async fn get(&self, table: &str, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>>;

    /// Opens a scan over rows in key order. Nothing is read before the first page.
    ///
    /// # Errors
    /// [`NotFound`](crate::error::ErrorKind::NotFound) for an unknown table,
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for columns of an unknown family, 0 versions or 0 rows a page.
    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>>;
}

/// A store.
///
/// * Each [`RowMutation`] is atomic and isolated: no reader sees a part of it. A call with several is not a transaction.
/// * Timestamps are always explicit, 0 to [`MAX_TIMESTAMP`](crate::model::MAX_TIMESTAMP). A put at the timestamp of an
///   earlier put of the same column replaces it. Markers mask classically, see [`CellKind`](crate::model::CellKind).
/// * After an error any part of the call's mutations may have been applied; writing them again is harmless, because
///   timestamps are explicit.
/// * Calls may run concurrently; two concurrent mutations of one row are applied in some order.
#[async_trait]
pub trait Store: Read {
    /// What this backend can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether a row of this key can be written.
    fn row_key_fits(&self, key: &[u8]) -> bool;

    /// Creates a table.
    ///
    /// # Errors
    /// [`AlreadyExists`](crate::error::ErrorKind::AlreadyExists);
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for names HBase would refuse, no families or 0 versions.
    async fn create_table(&self, table: &TableDescriptor) -> Result<()>;

    /// The names of all tables, sorted.
    async fn list_tables(&self) -> Result<Vec<String>>;

    /// A table's descriptor.
    ///
    /// # Errors
    /// [`NotFound`](crate::error::ErrorKind::NotFound).
    async fn describe_table(&self, table: &str) -> Result<TableDescriptor>;

    /// Applies mutations.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for an empty or overlong row key, an unknown family, a
    /// timestamp out of bounds or a family-wide marker with a qualifier: nothing of the call is applied then.
    async fn mutate(&self, table: &str, mutations: Vec<RowMutation>, durability: Durability) -> Result<()>;

    /// Adds `amount` to a column and returns the sum. The column holds 8 bytes big-endian, signed; none counts as 0, and the
    /// sum wraps around, as HBase's does. Atomic against all other writes, durable on return, and not to be repeated
    /// blindly: after an error it may have been applied.
    ///
    /// The cell's timestamp is the store's clock, or above the newest cell of the column if that is ahead of it.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for a value that is not 8 bytes long;
    /// [`Unsupported`](crate::error::ErrorKind::Unsupported) without [`Capabilities::atomic_updates`]; those of
    /// [`mutate`](Self::mutate).
    async fn increment(&self, table: &str, row: &Bytes, family: &Bytes, qualifier: &Bytes, amount: i64) -> Result<i64>;

    /// Applies a mutation if a column of its row is as expected; whether it was. Atomic against all other writes, durable
    /// on return.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for an empty expected value and a mutation without cells;
    /// [`Unsupported`](crate::error::ErrorKind::Unsupported) without [`Capabilities::atomic_updates`]; those of
    /// [`mutate`](Self::mutate).
    async fn check_and_mutate(&self, table: &str, check: &ColumnCheck, mutation: RowMutation) -> Result<bool>;

    /// Keys that divide a table for parallel work, in order and without repetition: the ranges from one to the next, with one
    /// before the first and one after the last, cover all rows and share none. At most `parts` ranges, of very different sizes
    /// perhaps; who works in parallel asks for some more than it has workers.
    ///
    /// # Errors
    /// [`NotFound`](crate::error::ErrorKind::NotFound) for an unknown table.
    async fn split_points(&self, table: &str, parts: usize) -> Result<Vec<Bytes>>;

    /// On return everything written before is durable.
    async fn sync(&self) -> Result<()>;

    /// A reader that sees all tables as they are now, for as long as it is kept.
    ///
    /// # Errors
    /// [`Unsupported`](crate::error::ErrorKind::Unsupported) without [`Capabilities::snapshots`].
    async fn snapshot(&self) -> Result<Arc<dyn Read>>;
}
