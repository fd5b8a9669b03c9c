//! Scans, page by page over one snapshot.

use super::Shared;
use super::cells::Rows;
use super::key;
use super::plan::Plan;
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Page, Scan, Scanner};
use async_trait::async_trait;
use fjall::{Keyspace, Snapshot};
use std::sync::Arc;

/// A page ends once its rows hold so many bytes.
const PAGE_BYTES: usize = 4 << 20;
/// A page ends once so many rows were looked at for each row it may hold …
const EXAMINED_PER_ROW: u64 = 10;
/// … but not before this many.
const EXAMINED_AT_LEAST: u64 = 10_000;
/// A page ends once so many bytes were looked at.
const EXAMINED_BYTES: usize = 64 << 20;

/// An open scan. It sees the table as it was when the scan was opened, and keeps the store open.
pub(super) struct PageScanner {
    state: State,
    page_rows: usize,
    _shared: Arc<Shared>,
}

enum State {
    Unread(Box<Unread>),
    Reading(Box<Rows>),
    Done,
    Failed,
}

struct Unread {
    snapshot: Snapshot,
    keyspace: Keyspace,
    range: key::KeyRange,
    reversed: bool,
    plan: Plan,
}

impl PageScanner {
    pub(super) fn new(
        shared: Arc<Shared>,
        snapshot: Snapshot,
        keyspace: Keyspace,
        scan: &Scan,
        plan: Plan,
    ) -> Result<Self> {
        if scan.page_rows == 0 {
            return Err(Error::invalid("expected at least 1 row a page, found 0"));
        }
        let state = match key::rows_between(scan.start.as_deref(), scan.stop.as_deref()) {
            None => State::Done,
            Some(range) => State::Unread(Box::new(Unread { snapshot, keyspace, range, reversed: scan.reversed, plan })),
        };
        Ok(Self { state, page_rows: scan.page_rows, _shared: shared })
    }

    fn fill(rows: &mut Rows, page_rows: usize) -> Result<Page> {
        let most = EXAMINED_PER_ROW.saturating_mul(page_rows as u64).max(EXAMINED_AT_LEAST);
        let mut page = Page::default();
        let (mut kept, mut examined) = (0, 0);
        while !rows.at_end()
            && page.rows.len() < page_rows
            && page.examined < most
            && kept < PAGE_BYTES
            && examined < EXAMINED_BYTES
        {
            let Some(found) = rows.next_row()? else { break };
            page.examined += 1;
            examined += found.examined;
            if !found.row.cells.is_empty() {
                kept += found.kept;
                page.rows.push(found.row);
            }
        }
        page.done = rows.at_end();
        Ok(page)
    }
}

#[async_trait]
impl Scanner for PageScanner {
    async fn next_page(&mut self) -> Result<Page> {
        let mut rows = match std::mem::replace(&mut self.state, State::Failed) {
            State::Unread(unread) => {
                let Unread { snapshot, keyspace, range, reversed, plan } = *unread;
                Box::new(Rows::new(snapshot, keyspace, range, reversed, plan))
            }
            State::Reading(rows) => rows,
            State::Done => {
                self.state = State::Done;
                return Ok(Page { done: true, ..Page::default() });
            }
            State::Failed => return Err(Error::new(ErrorKind::Store, "this scan has failed before; open another")),
        };
        let page = Self::fill(&mut rows, self.page_rows)?;
        self.state = if page.done { State::Done } else { State::Reading(rows) };
        Ok(page)
    }
}
