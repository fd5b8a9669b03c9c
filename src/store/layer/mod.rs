//! Layers around a store: the same trait outside and inside, something done around each call.
//!
//! ```text
//!  Stop ─► Retry (deadline, back-off) ─► Meter (counts, times) ─► a store (which gateway: its pool's breaker)
//! ```

mod meter;
mod retry;
mod stop;

pub use meter::Meter;
pub use retry::Retry;
pub use stop::Stop;

use super::{Capabilities, ColumnCheck, Durability, Page, Read, ReadSpec, Scan, Scanner, Store, TableDescriptor};
use crate::error::Result;
use crate::model::{Row, RowMutation};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use std::sync::Arc;
use tokio::sync::Mutex;

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// [`Read::get`]
    Get,
    /// [`Read::scan`]
    Scan,
    /// [`Scanner::next_page`]
    Page,
    /// [`Store::create_table`]
    CreateTable,
    /// [`Store::list_tables`]
    ListTables,
    /// [`Store::describe_table`]
    DescribeTable,
    /// [`Store::mutate`]
    Mutate,
    /// [`Store::increment`]
    Increment,
    /// [`Store::check_and_mutate`]
    CheckAndMutate,
    /// [`Store::split_points`]
    SplitPoints,
    /// [`Store::sync`]
    Sync,
    /// [`Store::snapshot`]
    Snapshot,
}

impl Operation {
    /// Its name, as metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Scan => "scan",
            Self::Page => "page",
            Self::CreateTable => "create_table",
            Self::ListTables => "list_tables",
            Self::DescribeTable => "describe_table",
            Self::Mutate => "mutate",
            Self::Increment => "increment",
            Self::CheckAndMutate => "check_and_mutate",
            Self::SplitPoints => "split_points",
            Self::Sync => "sync",
            Self::Snapshot => "snapshot",
        }
    }

    /// Whether calling it twice does what calling it once does.
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Self::CreateTable | Self::Increment | Self::CheckAndMutate)
    }
}

/// A call, which can be made more than once.
pub type Call<'a, T> = dyn FnMut() -> BoxFuture<'a, Result<T>> + Send + 'a;

/// What is done around each call.
pub trait Layer: Clone + Send + Sync + 'static {
    /// Whether a call may be made more than once.
    const REPEATS: bool;

    /// Makes the call.
    fn around<'a, T: Send + 'a>(
        &'a self,
        operation: Operation,
        call: &'a mut Call<'a, T>,
    ) -> impl Future<Output = Result<T>> + Send + 'a;
}

/// A store or reader with a layer around it.
pub struct Layered<S: ?Sized, L> {
    inner: Arc<S>,
    layer: L,
}

impl<S: ?Sized, L: Layer> Layered<S, L> {
    /// Puts the layer around a store.
    pub fn new(inner: Arc<S>, layer: L) -> Self {
        Self { inner, layer }
    }
}

#[async_trait]
impl<S: Read + ?Sized, L: Layer> Read for Layered<S, L> {
    async fn get(&self, table: &str, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>> {
        self.layer.around(Operation::Get, &mut || self.inner.get(table, keys, spec)).await
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        let inner = self.layer.around(Operation::Scan, &mut || self.inner.scan(table, scan.clone())).await?;
        Ok(Box::new(LayeredScanner { inner: Arc::new(Mutex::new(inner)), layer: self.layer.clone() }))
    }
}

struct LayeredScanner<L> {
    /// Never waited for: pages are asked for one after the other.
    inner: Arc<Mutex<Box<dyn Scanner>>>,
    layer: L,
}

#[async_trait]
impl<L: Layer> Scanner for LayeredScanner<L> {
    async fn next_page(&mut self) -> Result<Page> {
        let inner = &self.inner;
        let mut call = || {
            let inner = Arc::clone(inner);
            async move { inner.lock().await.next_page().await }.boxed()
        };
        self.layer.around(Operation::Page, &mut call).await
    }
}

#[async_trait]
impl<S: Store + ?Sized, L: Layer> Store for Layered<S, L> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn row_key_fits(&self, key: &[u8]) -> bool {
        self.inner.row_key_fits(key)
    }

    async fn create_table(&self, table: &TableDescriptor) -> Result<()> {
        self.layer.around(Operation::CreateTable, &mut || self.inner.create_table(table)).await
    }

    async fn list_tables(&self) -> Result<Vec<String>> {
        self.layer.around(Operation::ListTables, &mut || self.inner.list_tables()).await
    }

    async fn describe_table(&self, table: &str) -> Result<TableDescriptor> {
        self.layer.around(Operation::DescribeTable, &mut || self.inner.describe_table(table)).await
    }

    async fn mutate(&self, table: &str, mut mutations: Vec<RowMutation>, durability: Durability) -> Result<()> {
        let mut call = || {
            let mutations = if L::REPEATS { mutations.clone() } else { std::mem::take(&mut mutations) };
            self.inner.mutate(table, mutations, durability)
        };
        self.layer.around(Operation::Mutate, &mut call).await
    }

    async fn increment(&self, table: &str, row: &Bytes, family: &Bytes, qualifier: &Bytes, amount: i64) -> Result<i64> {
        let mut call = || self.inner.increment(table, row, family, qualifier, amount);
        self.layer.around(Operation::Increment, &mut call).await
    }

    async fn check_and_mutate(&self, table: &str, check: &ColumnCheck, mutation: RowMutation) -> Result<bool> {
        let mut call = || self.inner.check_and_mutate(table, check, mutation.clone());
        self.layer.around(Operation::CheckAndMutate, &mut call).await
    }

    async fn split_points(&self, table: &str, parts: usize) -> Result<Vec<Bytes>> {
        self.layer.around(Operation::SplitPoints, &mut || self.inner.split_points(table, parts)).await
    }

    async fn sync(&self) -> Result<()> {
        self.layer.around(Operation::Sync, &mut || self.inner.sync()).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Read>> {
        let inner = self.layer.around(Operation::Snapshot, &mut || self.inner.snapshot()).await?;
        Ok(Arc::new(Layered::new(inner, self.layer.clone())))
    }
}
