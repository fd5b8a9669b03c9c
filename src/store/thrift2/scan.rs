//! Scans: one call for a short one, a scanner at the gateway for a long one.

use super::gateway::{TResult, TTHBaseServiceSyncClient};
use super::read::{Bounds, Plan, cells};
use super::{Client, Place, Pool, Table};
use crate::error::{Action, Error, Result};
use crate::model::Row;
use crate::store::{Page, Scan, Scanner};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The first call asks for so many rows when nothing is known of their size …
const FIRST_ROWS: usize = 8;
/// … and for so many at most.
const SHORT_ROWS: usize = 256;
/// No call asks for more rows.
const MOST_ROWS: usize = 10_000;
/// An answer is to hold about so many bytes.
const PAGE_BYTES: usize = 4 << 20;
/// So many scanners in a row may end before they gave a row.
const FRUITLESS: u32 = 3;

/// An open scan. After an error that can be retried, the next page goes on after the last row that was given.
pub(super) struct GatewayScanner {
    pool: Pool<Client>,
    table: Arc<Table>,
    plan: Plan,
    bounds: Option<Bounds>,
    reversed: bool,
    page_rows: usize,
    state: State,
    /// How many rows to ask for.
    ask: usize,
    /// The row whose rest is still to come.
    partial: Option<Row>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was read yet.
    Fresh,
    /// There is no scanner at the gateway, and more to read.
    Closed,
    /// A gateway's scanner of this number.
    Open(Place, i32),
    Done,
}

impl GatewayScanner {
    pub(super) fn new(pool: Pool<Client>, table: Arc<Table>, scan: &Scan, plan: Plan) -> Result<Self> {
        if scan.page_rows == 0 {
            return Err(Error::invalid("expected at least 1 row a page, found 0"));
        }
        let bounds = Bounds::new(scan).filter(|_| !plan.nothing);
        let state = if bounds.is_none() { State::Done } else { State::Fresh };
        let ask = match table.row_bytes.load(Ordering::Relaxed) {
            0 => FIRST_ROWS,
            bytes => (PAGE_BYTES / bytes).clamp(1, SHORT_ROWS),
        };
        let ask = ask.min(scan.page_rows);
        let (reversed, page_rows) = (scan.reversed, scan.page_rows);
        Ok(Self { pool, table, plan, bounds, reversed, page_rows, state, ask, partial: None })
    }

    /// Results, and whether they are the last ones.
    async fn fetch(&mut self) -> Result<(Vec<TResult>, bool)> {
        let Some(bounds) = &self.bounds else { return Ok((Vec::new(), true)) };
        let rows = self.ask as i32;
        let scan = self.plan.scan(&bounds.from, &bounds.to, self.reversed, self.ask);
        let table = self.table.descriptor.name.clone().into_bytes();
        let results = if self.state == State::Fresh {
            self.pool.call(move |client| client.get_scanner_results(table, scan, rows)).await?
        } else {
            let (place, id) = match self.state {
                State::Open(place, id) => (place, id),
                _ => self.pool.open(move |client| client.open_scanner(table, scan)).await?,
            };
            self.state = State::Open(place, id);
            let results = self.pool.call_at(place, move |client| client.get_scanner_rows(id, rows)).await;
            // A scanner that failed may have gone on: what it gives next is not known.
            results.inspect_err(|_| self.close())?
        };
        let last = results.len() < self.ask;
        if self.state == State::Fresh {
            self.state = State::Closed;
        }
        Ok((results, last))
    }

    /// Gives the gateway's scanner back, if there is one.
    fn close(&mut self) {
        let State::Open(place, id) = std::mem::replace(&mut self.state, State::Closed) else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let pool = self.pool.clone();
            // It may be gone already; what is left ends by itself.
            runtime.spawn(async move { pool.call_at(place, move |client| client.close_scanner(id)).await.ok() });
        }
    }

    fn finish(&mut self) {
        self.close();
        self.state = State::Done;
    }

    /// Adds a whole row to a page.
    fn give(&mut self, mut row: Row, page: &mut Page) {
        page.examined += 1;
        let Some(bounds) = &mut self.bounds else { return };
        let held = bounds.hold(&row.key);
        bounds.resume_after(&row.key, self.reversed);
        if !held || self.plan.is_over() {
            return;
        }
        self.plan.finish(&mut row);
        if !row.cells.is_empty() {
            page.rows.push(row);
        }
    }

    fn take_in(&mut self, results: Vec<TResult>, last: bool, page: &mut Page) -> Result<()> {
        let (mut bytes, count) = (0, results.len());
        for result in results {
            let key = Bytes::from(result.row.clone().unwrap_or_default());
            let part = cells(result)?;
            bytes += part.iter().map(|c| c.size(&key)).sum::<usize>();
            let whole = self.plan.is_last_part(part.len());
            let row = match self.partial.take() {
                Some(mut row) if row.key == key => {
                    row.cells.extend(part);
                    row
                }
                before => {
                    before.into_iter().for_each(|row| self.give(row, page));
                    Row { key, cells: part }
                }
            };
            if whole {
                self.give(row, page);
            } else {
                self.partial = Some(row);
            }
        }
        if last && let Some(row) = self.partial.take() {
            self.give(row, page);
        }
        if let Some(bytes) = bytes.checked_div(count) {
            let bytes = bytes.max(1);
            self.table.row_bytes.store(bytes, Ordering::Relaxed);
            self.ask = (PAGE_BYTES / bytes).clamp(1, self.page_rows.min(MOST_ROWS));
        }
        Ok(())
    }
}

#[async_trait]
impl Scanner for GatewayScanner {
    async fn next_page(&mut self) -> Result<Page> {
        let mut page = Page::default();
        let mut fruitless = 0;
        while self.state != State::Done && page.examined == 0 {
            if !matches!(self.state, State::Open(..)) {
                // A new scanner begins with the whole row.
                self.partial = None;
            }
            let (results, last) = match self.fetch().await {
                Ok(fetched) => fetched,
                Err(e) if e.action() == Action::Retry && fruitless < FRUITLESS => {
                    fruitless += 1;
                    continue;
                }
                Err(e) => return Err(e),
            };
            self.take_in(results, last, &mut page)?;
            if last || self.plan.is_over() {
                self.finish();
            }
        }
        page.done = self.state == State::Done;
        Ok(page)
    }
}

impl Drop for GatewayScanner {
    fn drop(&mut self) {
        self.close();
    }
}
