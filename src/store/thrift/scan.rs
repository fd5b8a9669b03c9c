//! Scans: one call for a short one, a scanner at the gateway for a long one.

use super::bounds::Bounds;
use super::plan::Plan;
use super::pool::{Place, Pool};
use super::tables::Table;
use crate::error::{Action, Error, Result};
use crate::model::Row;
use crate::store::sieve::Step;
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
/// A leap takes three calls, as long as about so many rows take in a scan that goes on.
const LEAP_ROWS: u64 = 512;
/// So many scanners in a row may end before they gave a row.
const FRUITLESS: u32 = 3;

/// How a kind of gateway scans.
pub(in crate::store) trait Dialect: 'static {
    /// Its client.
    type Client: Send + 'static;
    /// A scan as its calls take it.
    type Scan: Send + 'static;
    /// A row, or a part of one, as its calls give it.
    type Part: Send + 'static;

    /// A scan between two keys in the order the server reads them; `from` is included, `to` is not.
    fn scan(plan: &Plan, from: &[u8], to: &[u8], reversed: bool, caching: usize) -> Self::Scan;
    /// The first so many parts, without a scanner that stays open.
    fn first(
        client: &mut Self::Client,
        table: Vec<u8>,
        scan: Self::Scan,
        parts: i32,
    ) -> thrift::Result<Vec<Self::Part>>;
    /// Opens a scanner, and gives its number.
    fn open(client: &mut Self::Client, table: Vec<u8>, scan: Self::Scan) -> thrift::Result<i32>;
    /// The next so many parts; fewer at the end only.
    fn next(client: &mut Self::Client, id: i32, parts: i32) -> thrift::Result<Vec<Self::Part>>;
    /// Closes a scanner.
    fn close(client: &mut Self::Client, id: i32) -> thrift::Result<()>;
    /// The part as a row.
    fn row(part: Self::Part) -> Result<Row>;
}

/// An open scan. After an error that can be retried, the next page goes on after the last row that was given.
pub(in crate::store) struct GatewayScanner<D: Dialect> {
    pool: Pool<D::Client>,
    table: Arc<Table>,
    plan: Plan,
    bounds: Option<Bounds>,
    reversed: bool,
    page_rows: usize,
    state: State,
    /// How many rows to ask for.
    ask: usize,
    /// How fast that may grow from one call to the next.
    growth: usize,
    /// The last row that was given.
    last: Bytes,
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

impl<D: Dialect> GatewayScanner<D> {
    pub(in crate::store) fn new(pool: Pool<D::Client>, table: Arc<Table>, scan: &Scan, plan: Plan) -> Result<Self> {
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
        let last = Bytes::new();
        Ok(Self { pool, table, plan, bounds, reversed, page_rows, state, ask, growth: MOST_ROWS, last, partial: None })
    }

    /// Results, and whether they are the last ones.
    async fn fetch(&mut self) -> Result<(Vec<D::Part>, bool)> {
        let Some(bounds) = &self.bounds else { return Ok((Vec::new(), true)) };
        let rows = self.ask as i32;
        let scan = D::scan(&self.plan, &bounds.from, &bounds.to, self.reversed, self.ask);
        let table = self.table.descriptor.name.clone().into_bytes();
        let results = if self.state == State::Fresh {
            self.pool.call(move |client| D::first(client, table, scan, rows)).await?
        } else {
            let (place, id) = match self.state {
                State::Open(place, id) => (place, id),
                _ => self.pool.open(move |client| D::open(client, table, scan)).await?,
            };
            self.state = State::Open(place, id);
            let results = self.pool.call_at(place, move |client| D::next(client, id, rows)).await;
            // A scanner that failed may have gone on: what it gives next is not known.
            results.inspect_err(|_| self.close())?
        };
        let last = results.len() < self.ask;
        if self.state == State::Fresh {
            self.state = State::Closed;
        }
        Ok((results, last))
    }

    /// Leaves out a stretch that the keys say cannot pass, where the server doesn't do it and few rows passed lately.
    fn fast_forward(&mut self, page: &Page) {
        let Some(bounds) = self.bounds.as_mut().filter(|_| !self.reversed) else { return };
        if page.examined < LEAP_ROWS / 2 || page.rows.len() as u64 * LEAP_ROWS >= page.examined {
            return;
        }
        match self.plan.skips(&self.last) {
            Some(Step::SkipTo(key)) => {
                bounds.resume_at(&key);
                let over = bounds.is_empty();
                self.close();
                // A short call each time, as long as it goes like this.
                (self.state, self.ask, self.growth) = (State::Fresh, FIRST_ROWS.min(self.page_rows), 4);
                if over {
                    self.finish();
                }
            }
            Some(_) => self.finish(),
            None => {}
        }
    }

    /// Gives the gateway's scanner back, if there is one.
    fn close(&mut self) {
        let State::Open(place, id) = std::mem::replace(&mut self.state, State::Closed) else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let pool = self.pool.clone();
            // It may be gone already; what is left ends by itself.
            runtime.spawn(async move { pool.call_at(place, move |client| D::close(client, id)).await.ok() });
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
        self.last = row.key.clone();
        if !held || self.plan.is_over() {
            return;
        }
        self.plan.finish(&mut row);
        if !row.cells.is_empty() {
            page.rows.push(row);
        }
    }

    fn take_in(&mut self, results: Vec<D::Part>, last: bool, page: &mut Page) -> Result<()> {
        let (mut bytes, count) = (0, results.len());
        for result in results {
            let Row { key, cells: part } = D::row(result)?;
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
            let most = self.page_rows.min(MOST_ROWS);
            self.ask = (PAGE_BYTES / bytes).min(self.ask * self.growth).clamp(1, most);
        }
        Ok(())
    }
}

#[async_trait]
impl<D: Dialect> Scanner for GatewayScanner<D> {
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
            } else if self.plan.pushed.is_none() && self.partial.is_none() {
                self.fast_forward(&page);
            }
        }
        page.done = self.state == State::Done;
        Ok(page)
    }
}

impl<D: Dialect> Drop for GatewayScanner<D> {
    fn drop(&mut self) {
        self.close();
    }
}
