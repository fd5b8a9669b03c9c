//! A layer that ends work under way: each call asks first whether to go on.

use super::{Capabilities, ColumnCheck, Durability, Page, Read, ReadSpec, Scan, Scanner, Store, TableDescriptor};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Row, RowMutation};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::watch;

/// Told once to stop. Clones are told together.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Tells everybody to stop.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Returns once told to stop.
    pub async fn stopped(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|told| *told).await;
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] once told to stop.
    pub fn check(&self) -> Result<()> {
        if *self.0.borrow() {
            return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        Ok(())
    }
}

/// A store or reader that fails once told to stop. What was handed to the store before is not taken back.
pub struct Stoppable<S: ?Sized> {
    stop: Stop,
    inner: Arc<S>,
}

impl<S: ?Sized> Stoppable<S> {
    /// Puts the layer around a store.
    pub fn new(inner: Arc<S>, stop: Stop) -> Self {
        Self { stop, inner }
    }
}

#[async_trait]
impl<S: Read + ?Sized> Read for Stoppable<S> {
    async fn get(&self, table: &str, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>> {
        self.stop.check()?;
        self.inner.get(table, keys, spec).await
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        self.stop.check()?;
        let inner = self.inner.scan(table, scan).await?;
        Ok(Box::new(StoppableScanner { stop: self.stop.clone(), inner }))
    }
}

struct StoppableScanner {
    stop: Stop,
    inner: Box<dyn Scanner>,
}

#[async_trait]
impl Scanner for StoppableScanner {
    async fn next_page(&mut self) -> Result<Page> {
        self.stop.check()?;
        self.inner.next_page().await
    }
}

#[async_trait]
impl<S: Store + ?Sized> Store for Stoppable<S> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn row_key_fits(&self, key: &[u8]) -> bool {
        self.inner.row_key_fits(key)
    }

    async fn create_table(&self, table: &TableDescriptor) -> Result<()> {
        self.stop.check()?;
        self.inner.create_table(table).await
    }

    async fn list_tables(&self) -> Result<Vec<String>> {
        self.stop.check()?;
        self.inner.list_tables().await
    }

    async fn describe_table(&self, table: &str) -> Result<TableDescriptor> {
        self.stop.check()?;
        self.inner.describe_table(table).await
    }

    async fn mutate(&self, table: &str, mutations: Vec<RowMutation>, durability: Durability) -> Result<()> {
        self.stop.check()?;
        self.inner.mutate(table, mutations, durability).await
    }

    async fn increment(&self, table: &str, row: &Bytes, family: &Bytes, qualifier: &Bytes, amount: i64) -> Result<i64> {
        self.stop.check()?;
        self.inner.increment(table, row, family, qualifier, amount).await
    }

    async fn check_and_mutate(&self, table: &str, check: &ColumnCheck, mutation: RowMutation) -> Result<bool> {
        self.stop.check()?;
        self.inner.check_and_mutate(table, check, mutation).await
    }

    async fn split_points(&self, table: &str, parts: usize) -> Result<Vec<Bytes>> {
        self.stop.check()?;
        self.inner.split_points(table, parts).await
    }

    async fn sync(&self) -> Result<()> {
        self.stop.check()?;
        self.inner.sync().await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Read>> {
        self.stop.check()?;
        let inner = self.inner.snapshot().await?;
        Ok(Arc::new(Stoppable { stop: self.stop.clone(), inner }))
    }
}
