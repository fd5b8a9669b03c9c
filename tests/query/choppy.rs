//! A reader whose pages are short and sometimes empty, as any store's may be: what is read over the end of a page has to be
//! right also in small tables.

use async_trait::async_trait;
use bytes::Bytes;
use fastrand::Rng;
use sideindex::error::Result;
use sideindex::model::Row;
use sideindex::store::embedded::EmbeddedStore;
use sideindex::store::{Page, Read, ReadSpec, Scan, Scanner};
use std::sync::Arc;

/// The store, every other time with pages of a few rows.
pub fn reader(store: &EmbeddedStore, rng: &mut Rng) -> Arc<dyn Read> {
    let inner = Arc::new(store.clone());
    if rng.bool() { inner } else { Arc::new(Choppy { inner, page_rows: rng.usize(1..6) }) }
}

struct Choppy {
    inner: Arc<EmbeddedStore>,
    page_rows: usize,
}

#[async_trait]
impl Read for Choppy {
    async fn get(&self, table: &str, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>> {
        self.inner.get(table, keys, spec).await
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        let page_rows = scan.page_rows.min(self.page_rows);
        let inner = self.inner.scan(table, Scan { page_rows, ..scan }).await?;
        Ok(Box::new(ChoppyScanner { inner, pages: 0 }))
    }
}

struct ChoppyScanner {
    inner: Box<dyn Scanner>,
    pages: usize,
}

#[async_trait]
impl Scanner for ChoppyScanner {
    async fn next_page(&mut self) -> Result<Page> {
        self.pages += 1;
        if self.pages % 3 == 1 { Ok(Page::default()) } else { self.inner.next_page().await }
    }
}
