//! A store that lets a test stand between any two of its operations.
//!
//! Every poll of a future that uses it does one operation. A call with several mutations is done one mutation at a time, in
//! any order: what the contract allows a store to do, and what a crash in the middle leaves behind.

use async_trait::async_trait;
use bytes::Bytes;
use futures::executor::block_on;
use sideindex::error::Result;
use sideindex::model::{Row, RowMutation};
use sideindex::store::{Capabilities, ColumnCheck, Durability, Read, ReadSpec, Scan, Scanner, Store, TableDescriptor};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

pub struct Stepped {
    pub inner: Arc<dyn Store>,
    pub rng: Mutex<fastrand::Rng>,
}

/// Gives the turn back once.
#[derive(Default)]
pub struct Turn(bool);

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// One step of a future; whether it is done.
pub fn step<F: Future<Output = ()> + ?Sized>(future: &mut Pin<Box<F>>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[async_trait]
impl Read for Stepped {
    async fn get(&self, table: &str, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>> {
        let rows = block_on(self.inner.get(table, keys, spec));
        Turn::default().await;
        rows
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        self.inner.scan(table, scan).await
    }
}

#[async_trait]
impl Store for Stepped {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn row_key_fits(&self, key: &[u8]) -> bool {
        self.inner.row_key_fits(key)
    }

    async fn create_table(&self, table: &TableDescriptor) -> Result<()> {
        self.inner.create_table(table).await
    }

    async fn list_tables(&self) -> Result<Vec<String>> {
        self.inner.list_tables().await
    }

    async fn describe_table(&self, table: &str) -> Result<TableDescriptor> {
        self.inner.describe_table(table).await
    }

    async fn mutate(&self, table: &str, mut mutations: Vec<RowMutation>, durability: Durability) -> Result<()> {
        self.rng.lock().unwrap().shuffle(&mut mutations);
        for mutation in mutations {
            block_on(self.inner.mutate(table, vec![mutation], durability))?;
            Turn::default().await;
        }
        Ok(())
    }

    async fn increment(&self, table: &str, row: &Bytes, family: &Bytes, qualifier: &Bytes, amount: i64) -> Result<i64> {
        self.inner.increment(table, row, family, qualifier, amount).await
    }

    async fn check_and_mutate(&self, table: &str, check: &ColumnCheck, mutation: RowMutation) -> Result<bool> {
        self.inner.check_and_mutate(table, check, mutation).await
    }

    async fn split_points(&self, table: &str, parts: usize) -> Result<Vec<Bytes>> {
        self.inner.split_points(table, parts).await
    }

    async fn sync(&self) -> Result<()> {
        self.inner.sync().await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Read>> {
        self.inner.snapshot().await
    }
}
