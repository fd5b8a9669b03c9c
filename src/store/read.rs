//! What to read.

use super::{Filter, Read};
use crate::error::Result;
use crate::model::Row;
use async_trait::async_trait;
use bytes::Bytes;

/// Which columns to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Columns {
    /// All of them.
    #[default]
    All,
    /// These (family, qualifier) pairs.
    Exact(Vec<(Bytes, Bytes)>),
}

/// What to read of each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSpec {
    /// Which columns.
    pub columns: Columns,
    /// At most so many versions of each column, newest first.
    pub max_versions: u32,
    /// Every stored cell as it is: markers, and what they hide, included, unless a store has removed it meanwhile, which never
    /// takes a row's newest timestamp before a major compaction does. `max_versions` and `filter` are ignored. With
    /// exact columns, the family-wide markers of their families are included.
    pub raw: bool,
    /// What doesn't pass is left out; a row of which nothing is left has no cells in a get. A filter's counts are of one scan,
    /// and begin anew for each row of a get.
    pub filter: Option<Filter>,
}

impl Default for ReadSpec {
    /// The newest version of every column.
    fn default() -> Self {
        Self { columns: Columns::All, max_versions: 1, raw: false, filter: None }
    }
}

/// A scan of rows in key order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// First key, included; none is the start of the table.
    pub start: Option<Bytes>,
    /// First key no longer read; none is the end of the table.
    pub stop: Option<Bytes>,
    /// From the last row to the first; `start` is still the lower bound.
    pub reversed: bool,
    /// What to read of each row.
    pub spec: ReadSpec,
    /// At most so many rows a page.
    pub page_rows: usize,
}

impl Scan {
    /// Rows a page holds by default.
    pub const PAGE_ROWS: usize = 1_000;

    /// All rows, newest versions.
    pub fn all() -> Self {
        Self { start: None, stop: None, reversed: false, spec: ReadSpec::default(), page_rows: Self::PAGE_ROWS }
    }

    /// The rows whose key starts with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        Self {
            start: Some(Bytes::copy_from_slice(prefix)),
            stop: crate::schema::entry::after_prefix(prefix).map(Bytes::from),
            ..Self::all()
        }
    }
}

/// One page of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Rows with at least one cell, in the scan's order. May be empty before the end, when a filter held back a stretch.
    pub rows: Vec<Row>,
    /// Whether the scan is over; the next page would be empty.
    pub done: bool,
    /// Rows looked at, those held back included.
    pub examined: u64,
}

/// An open scan. Memory is bounded by one page: [`Scan::page_rows`] rows, and fewer when they are large.
#[async_trait]
pub trait Scanner: Send {
    /// The next page.
    async fn next_page(&mut self) -> Result<Page>;
}

/// Counts the rows of a scan.
///
/// # Errors
/// Those of the reader.
pub async fn count_rows(reader: &dyn Read, table: &str, scan: Scan) -> Result<u64> {
    let mut scanner = reader.scan(table, scan).await?;
    let mut rows = 0;
    loop {
        let page = scanner.next_page().await?;
        rows += page.rows.len() as u64;
        if page.done {
            return Ok(rows);
        }
    }
}
