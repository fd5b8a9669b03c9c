//! A running query.

use super::Actuals;
use super::entries::{Entry, EntryStream};
use super::found::{BaseRow, EntryRow, Found};
use super::sink::{PAGE, ResultRow, Sink};
use crate::error::{Error, ErrorKind, Result};
use crate::model::Row;
use crate::query::bind::{Column, Output};
use crate::query::plan::{IndexPath, Path, Plan, Reading, Sorting, columns_of};
use crate::store::{Read, ReadSpec, Scan, Scanner};
use bytes::Bytes;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_128;

/// Base rows got in one call, at most.
const BATCH: usize = 500;
/// Base rows got in the first call, at least.
const FIRST_BATCH: usize = 16;
/// Entries a page under a LIMIT, where not every entry is a row of the answer.
const SIFTED_PAGE: usize = 256;

/// A running query. Memory is bounded by a page, apart from the hashes of row keys (16 bytes a row) where a row may be met
/// twice, and the rows kept where they have to be sorted.
///
/// After an error, or a call of [`next_page`](Self::next_page) that was not awaited to its end, the answer is incomplete and
/// further pages are errors.
pub struct Cursor {
    reader: Arc<dyn Read>,
    plan: Arc<Plan>,
    sink: Sink,
    /// The next path to open.
    next_path: usize,
    source: Option<Source>,
    batch: usize,
    /// Hashes of the rows already taken, where a row may be met twice.
    seen: Option<HashSet<u128>>,
    state: State,
    actuals: Actuals,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    /// Everything is read; the sink may still hold rows.
    Over,
    Failed,
}

/// What is being read.
enum Source {
    /// Rows by key.
    Keys { keys: std::vec::IntoIter<Bytes>, spec: ReadSpec },
    /// The base table.
    Rows { scanner: Box<dyn Scanner> },
    /// The entries of the path of this number.
    Entries { path: usize, stream: EntryStream, how: EntryReading },
}

/// How the entries of a path are treated.
struct EntryReading {
    /// Undisputed entries answer without their base rows.
    from_entries: bool,
    /// Something of what is left to test is in the entry.
    test_early: bool,
    /// Terms or covered columns are looked at one by one.
    split: bool,
    spec: ReadSpec,
    /// The attributes decoded from base rows.
    slots: Vec<usize>,
}

impl Cursor {
    pub(in crate::query) fn new(reader: Arc<dyn Read>, plan: Arc<Plan>) -> Self {
        let sink = Sink::new(&plan);
        let batch = match (plan.sorting, plan.query.limit) {
            (Sorting::Unordered | Sorting::Served { .. }, Some(limit)) if plan.query.output != Output::Count => {
                usize::try_from(limit).unwrap_or(BATCH).clamp(FIRST_BATCH, BATCH)
            }
            _ => BATCH,
        };
        Self {
            reader,
            sink,
            next_path: 0,
            source: None,
            batch,
            seen: plan.repeats.then(HashSet::new),
            state: State::Reading,
            actuals: Actuals::default(),
            plan,
        }
    }

    /// The next rows of the answer, at least one; none at its end.
    ///
    /// # Errors
    /// Those of the store; [`ErrorKind::Corrupt`] for entries that do not decode; [`ErrorKind::TooCostly`] when too many rows
    /// would have to be sorted, or the plan is a refusal.
    pub async fn next_page(&mut self) -> Result<Option<Vec<ResultRow>>> {
        let started = Instant::now();
        let page = self.advance().await;
        self.actuals.elapsed += started.elapsed();
        if let Ok(Some(rows)) = &page {
            self.actuals.returned += rows.len() as u64;
        }
        page
    }

    /// What the query took so far.
    pub fn actuals(&self) -> Actuals {
        self.actuals
    }

    async fn advance(&mut self) -> Result<Option<Vec<ResultRow>>> {
        if self.state == State::Failed {
            return Err(Error::new(ErrorKind::Internal, "the query has failed or was given up; run it again"));
        }
        loop {
            if let Some(page) = self.sink.page(self.state == State::Over) {
                return Ok(Some(page));
            }
            if self.state == State::Over {
                return Ok(None);
            }
            if self.sink.is_full() {
                self.state = State::Over;
                continue;
            }
            // A step that fails, or is given up half way, has lost what it read.
            self.state = State::Failed;
            let more = self.step().await?;
            self.state = if more { State::Reading } else { State::Over };
        }
    }

    /// Reads one batch into the sink; false when there is no more.
    async fn step(&mut self) -> Result<bool> {
        if self.source.is_none() {
            self.source = self.open().await?;
        }
        let (source, more) = match self.source.take() {
            None => return Ok(false),
            Some(Source::Keys { mut keys, spec }) => {
                let batch: Vec<Bytes> = keys.by_ref().take(self.grown_batch()).collect();
                let more = keys.len() > 0;
                let rows = self.base_rows(&batch, &spec).await?;
                self.take_rows(rows)?;
                (Source::Keys { keys, spec }, more)
            }
            Some(Source::Rows { mut scanner }) => {
                let page = scanner.next_page().await?;
                self.actuals.base_rows += page.examined;
                page.rows.iter().for_each(|row| self.actuals.weigh(row));
                self.take_rows(page.rows)?;
                (Source::Rows { scanner }, !page.done)
            }
            Some(Source::Entries { path, mut stream, how }) => {
                let most = if how.from_entries { PAGE } else { self.grown_batch() };
                let mut entries = Vec::with_capacity(most);
                let table = &self.plan.index_table;
                let more = stream.next(self.reader.as_ref(), table, most, &mut entries, &mut self.actuals).await?;
                self.take_entries(path, &entries, &how).await?;
                (Source::Entries { path, stream, how }, more)
            }
        };
        if more {
            self.source = Some(source);
        }
        Ok(true)
    }

    /// The size of the next batch: each is twice the one before, so that a small LIMIT reads little.
    fn grown_batch(&mut self) -> usize {
        let batch = self.batch;
        self.batch = (batch * 2).min(BATCH);
        batch
    }

    /// Opens what is to be read next.
    async fn open(&mut self) -> Result<Option<Source>> {
        let plan = Arc::clone(&self.plan);
        let reversed = matches!(plan.sorting, Sorting::Served { reversed: true });
        let number = self.next_path;
        self.next_path += 1;
        match &plan.reading {
            Reading::Nothing => Ok(None),
            Reading::Refused(_) => Err(plan
                .refusal()
                .unwrap_or_else(|| Error::new(ErrorKind::Internal, "a query that may not be run was run"))),
            Reading::Scan(_) if number > 0 => Ok(None),
            Reading::Scan(path) => {
                let spec =
                    ReadSpec { columns: path.columns.clone(), filter: path.filter.clone(), ..ReadSpec::default() };
                let (start, stop) = (path.start.clone(), path.stop.clone());
                let scan = Scan { start, stop, reversed, spec, page_rows: Scan::PAGE_ROWS };
                self.actuals.seeks += 1;
                Ok(Some(Source::Rows { scanner: self.reader.scan(&plan.query.table, scan).await? }))
            }
            Reading::Paths(paths) => Ok(paths.get(number).map(|path| match path {
                Path::Get(get) => {
                    let mut keys = get.keys.clone();
                    if reversed {
                        keys.reverse();
                    }
                    // All columns: a row without any of those asked for exists all the same.
                    Source::Keys { keys: keys.into_iter(), spec: ReadSpec::default() }
                }
                Path::Index(index) => {
                    let page_rows = match (self.batch < BATCH, index.residual.is_true()) {
                        (true, true) => self.batch,
                        (true, false) => SIFTED_PAGE,
                        (false, _) => PAGE,
                    };
                    let stream = EntryStream::new(index, reversed, page_rows);
                    Source::Entries { path: number, stream, how: EntryReading::new(&plan, index) }
                }
            })),
        }
    }

    async fn base_rows(&mut self, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.reader.get(&self.plan.query.table, keys, spec).await?;
        if rows.len() != keys.len() {
            return Err(Error::new(
                ErrorKind::Internal,
                format!("expected one row per key of a get: {} for {} keys", rows.len(), keys.len()),
            ));
        }
        self.actuals.seeks += keys.len() as u64;
        self.actuals.base_rows += rows.len() as u64;
        rows.iter().for_each(|row| self.actuals.weigh(row));
        Ok(rows)
    }

    /// Filters base rows that were read directly.
    fn take_rows(&mut self, rows: Vec<Row>) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let slots: Vec<usize> = (0..plan.query.slots.len()).collect();
        for row in rows {
            if row.cells.is_empty() {
                continue;
            }
            let base = BaseRow::decode(row, &plan.slots, &slots);
            if base.satisfies(&plan.query.predicate)? {
                self.accept(&Found::Base(&base))?;
            }
            if self.sink.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Checks a batch of entries, and their base rows where they are needed, in their order.
    async fn take_entries(&mut self, path: usize, entries: &[Entry], how: &EntryReading) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let Reading::Paths(paths) = &plan.reading else { return Ok(()) };
        let Some(Path::Index(index)) = paths.get(path) else { return Ok(()) };
        // What can be told from the entry is told first; the base rows of the rest are got together.
        let mut keys = Vec::new();
        let mut pending: Vec<(&Entry, bool)> = Vec::with_capacity(entries.len());
        for entry in entries {
            let row = entry_row(entry, index, &plan, how)?;
            let seen = self.seen.as_ref().is_some_and(|seen| seen.contains(&xxh3_128(&row.key)));
            if seen || (how.test_early && !row.may_satisfy(&index.residual)) {
                continue;
            }
            let direct = how.from_entries && !entry.disputed && !row.is_cut;
            if direct && keys.is_empty() {
                self.accept(&Found::Entry(&row))?;
                if self.sink.is_full() {
                    break;
                }
            } else {
                if !direct {
                    keys.push(row.key);
                }
                pending.push((entry, direct));
            }
        }
        let mut rows = self.base_rows(&keys, &how.spec).await?.into_iter();
        for (entry, direct) in pending {
            if self.sink.is_full() {
                break;
            }
            if direct {
                let row = entry_row(entry, index, &plan, how)?;
                self.accept(&Found::Entry(&row))?;
                continue;
            }
            let Some(row) = rows.next() else { break };
            let base = BaseRow::decode(row, &plan.slots, &how.slots);
            if !base.gives(entry.terms(), index)? {
                self.actuals.dropped_by_verification += 1;
            } else if base.satisfies(&plan.query.predicate)? {
                self.accept(&Found::Base(&base))?;
            }
        }
        Ok(())
    }

    /// Takes a row into the answer, unless it is there already.
    fn accept(&mut self, found: &Found<'_>) -> Result<()> {
        if let Some(seen) = &mut self.seen
            && !seen.insert(xxh3_128(found.key()))
        {
            return Ok(());
        }
        self.sink.push(found, &self.plan.query.output)
    }
}

fn entry_row<'a>(entry: &'a Entry, index: &IndexPath, plan: &Plan, how: &EntryReading) -> Result<EntryRow<'a>> {
    if !how.split {
        return Ok(EntryRow::bare(entry.row()));
    }
    EntryRow::new(entry.row(), entry.terms(), entry.covered()?, index, &plan.slots)
}

impl EntryReading {
    fn new(plan: &Plan, index: &IndexPath) -> Self {
        let known = |slot: usize| {
            (index.terms.contains(&slot) && !plan.slots[slot].attribute.kind.array) || index.covered.contains(&slot)
        };
        let (mut test_early, mut split) = (false, false);
        index.residual.visit(&mut |test| match test.column {
            Column::RowKey => test_early = true,
            Column::Attribute(slot) => {
                test_early |= known(slot);
                split |= known(slot);
            }
        });
        let from_entries = plan.answers_from_entries(index);
        let attribute = |column: &Column| matches!(column, Column::Attribute(_));
        if from_entries {
            split |= plan.query.order.is_some_and(|order| attribute(&order.column));
            split |= matches!(&plan.query.output, Output::Columns(columns) if columns.iter().any(attribute));
        }
        let mut slots: Vec<usize> = (0..plan.query.slots.len()).chain(index.terms.iter().copied()).collect();
        slots.sort_unstable();
        slots.dedup();
        let columns = columns_of(&plan.slots, slots.iter().copied());
        Self { from_entries, test_early, split, spec: ReadSpec { columns, ..ReadSpec::default() }, slots }
    }
}
