//! A running query.

use super::Actuals;
use super::budget::{Budget, Held};
use super::earlier::was_met;
use super::entries::{Entry, EntryStream};
use super::found::{BaseRow, EntryRow, Found};
use super::result::ResultRow;
use super::sink::{PAGE, Sink};
use crate::error::{Error, ErrorKind, Result};
use crate::model::Row;
use crate::query::Consistency;
use crate::query::bind::{Column, Output};
use crate::query::page::Place;
use crate::query::plan::{IndexPath, Path, Plan, Reading, RowsPath, Sorting, columns_of};
use crate::schema::is_active;
use crate::store::{Columns, Filter, Read, ReadSpec, Scan, Scanner};
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

/// A hash of a row met, and its share of the table that holds it.
const SEEN: u64 = 40;

/// A running query. It holds pages, hashes of row keys where a row may be met twice, and rows where they have to be sorted:
/// [`Options::memory`](crate::query::Options::memory) bytes at most.
///
/// After an error, or a call of [`next_page`](Self::next_page) that was not awaited to its end, the answer is incomplete and
/// further pages are errors.
pub struct Cursor {
    reader: Arc<dyn Read>,
    plan: Arc<Plan>,
    sink: Sink,
    budget: Budget,
    /// The next path to open.
    next_path: usize,
    /// The place after which the first path opened is read.
    after: Option<Bytes>,
    source: Option<Source>,
    batch: usize,
    /// The size of the largest base row read, in bytes.
    largest: u64,
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
    Keys { path: usize, keys: std::vec::IntoIter<Bytes>, spec: ReadSpec },
    /// Rows in ranges of keys, the next of them last.
    Rows { path: usize, scanner: Option<Box<dyn Scanner>>, ranges: Vec<(Option<Bytes>, Option<Bytes>)> },
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
        let wanted = plan.page.as_ref().map(|page| page.size).into_iter().chain(plan.query.limit).min();
        let batch = match (plan.sorting, wanted) {
            (sorting, Some(wanted)) if sorting != Sorting::Sorted && plan.query.output != Output::Count => {
                usize::try_from(wanted.saturating_add(plan.query.offset)).unwrap_or(BATCH).clamp(FIRST_BATCH, BATCH)
            }
            _ => BATCH,
        };
        let (next_path, after) = match plan.page.as_ref().and_then(|page| page.from.as_ref()).map(|from| &from.place) {
            Some(Place::Read { path, key }) => (*path, Some(key.clone())),
            Some(Place::Sorted { .. }) | None => (0, None),
        };
        Self {
            reader,
            sink,
            budget: Budget::new(&plan),
            next_path,
            after,
            source: None,
            batch,
            largest: 0,
            seen: plan.repeats.then(HashSet::new),
            state: State::Reading,
            actuals: Actuals::default(),
            plan,
        }
    }

    /// The next rows of the answer, at least one; none at its end.
    ///
    /// # Errors
    /// Those of the store; [`ErrorKind::Corrupt`] for entries that do not decode; [`ErrorKind::TooCostly`] when more than
    /// [`Options::memory`](crate::query::Options::memory) would have to be held, or the plan is a refusal;
    /// [`ErrorKind::Busy`] after [`Options::deadline`](crate::query::Options::deadline).
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

    /// The token of the next page, where one page was asked for, it has been fetched to its end, and there may be another.
    pub fn token(&self) -> Option<String> {
        let page = self.plan.page.as_ref().filter(|_| self.state == State::Over)?;
        Some(page.token(self.sink.end(&self.plan)?))
    }

    async fn advance(&mut self) -> Result<Option<Vec<ResultRow>>> {
        if self.state == State::Failed {
            return Err(Error::new(ErrorKind::Internal, "the query has failed or was given up; run it again"));
        }
        loop {
            if let Some(page) = self.sink.page(self.state == State::Over, &mut self.budget) {
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
            self.budget.check_time(&self.actuals)?;
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
            Some(Source::Keys { path, mut keys, spec }) => {
                let batch: Vec<Bytes> = keys.by_ref().take(self.grown_batch()).collect();
                let more = keys.len() > 0;
                let rows = self.base_rows(&batch, &spec).await?;
                self.take_rows(path, rows)?;
                (Source::Keys { path, keys, spec }, more)
            }
            Some(Source::Rows { path, scanner, mut ranges }) => {
                let mut scanner = match scanner {
                    Some(scanner) => scanner,
                    None => {
                        let Some(range) = ranges.pop() else { return Ok(true) };
                        self.scan(path, range).await?
                    }
                };
                let page = scanner.next_page().await?;
                self.actuals.base_rows += page.examined;
                let weight = page.rows.iter().map(|row| self.actuals.weigh(row)).sum();
                self.budget.hold(Held::Page, weight)?;
                self.take_rows(path, page.rows)?;
                self.budget.release(Held::Page, weight);
                let more = !page.done || !ranges.is_empty();
                (Source::Rows { path, scanner: (!page.done).then_some(scanner), ranges }, more)
            }
            Some(Source::Entries { path, mut stream, how }) => {
                let most = if how.from_entries { PAGE } else { self.grown_batch() };
                let mut entries = Vec::with_capacity(most);
                let table = &self.plan.index_table;
                let more = stream.next(self.reader.as_ref(), table, most, &mut entries, &mut self.actuals).await?;
                still_active(&*self.reader, &self.plan, path).await?;
                let weight = entries.iter().map(Entry::weight).sum();
                self.budget.hold(Held::Page, weight)?;
                self.take_entries(path, &entries, &how).await?;
                self.budget.release(Held::Page, weight);
                (Source::Entries { path, stream, how }, more)
            }
        };
        if more {
            self.source = Some(source);
        }
        Ok(true)
    }

    /// The size of the next batch: each is twice the one before, so that a small LIMIT reads little, and large rows are read
    /// a few at a time.
    fn grown_batch(&mut self) -> usize {
        let batch = self.batch;
        self.batch = (batch * 2).min(BATCH);
        batch.min(self.budget.rows_at_once(self.largest))
    }

    async fn scan(&mut self, path: usize, range: (Option<Bytes>, Option<Bytes>)) -> Result<Box<dyn Scanner>> {
        let plan = Arc::clone(&self.plan);
        let (columns, filter) = match plan.paths().get(path) {
            // Whether a row was on an earlier page may depend on other columns.
            Some(Path::Rows(RowsPath { filter, .. })) if plan.looks_back() => (Columns::All, filter.clone()),
            Some(Path::Rows(RowsPath { columns, filter, .. })) => (columns.clone(), filter.clone()),
            _ => (Columns::All, None),
        };
        let spec = ReadSpec { columns, filter: filter.map(Filter::Column), ..ReadSpec::default() };
        let reversed = plan.sorting.is_reversed();
        let (start, stop) = range;
        self.actuals.seeks += 1;
        let scan = Scan { start, stop, reversed, spec, page_rows: Scan::PAGE_ROWS };
        self.reader.scan(&plan.query.table, scan).await
    }

    /// Opens what is to be read next.
    async fn open(&mut self) -> Result<Option<Source>> {
        let plan = Arc::clone(&self.plan);
        let reversed = plan.sorting.is_reversed();
        let number = self.next_path;
        self.next_path += 1;
        let after = self.after.take();
        match &plan.reading {
            Reading::Nothing => Ok(None),
            Reading::Refused(_) => Err(plan
                .refusal()
                .unwrap_or_else(|| Error::new(ErrorKind::Internal, "a query that may not be run was run"))),
            Reading::Paths(paths) => Ok(paths.get(number).map(|path| match path {
                Path::Get(get) => {
                    let mut keys = get.keys.clone();
                    if let Some(after) = &after {
                        keys.retain(|key| if reversed { key < after } else { key > after });
                    }
                    if reversed {
                        keys.reverse();
                    }
                    // All columns: a row without any of those asked for exists all the same.
                    Source::Keys { path: number, keys: keys.into_iter(), spec: ReadSpec::default() }
                }
                Path::Rows(rows) => {
                    let mut ranges = rows.after(after.as_ref(), reversed);
                    if !reversed {
                        ranges.reverse();
                    }
                    Source::Rows { path: number, scanner: None, ranges }
                }
                Path::Index(index) => {
                    let page_rows = match (self.batch < BATCH, index.residual.is_true()) {
                        (true, true) => self.batch,
                        (true, false) => SIFTED_PAGE,
                        (false, _) => PAGE,
                    };
                    let stream = EntryStream::new(index, reversed, page_rows, after.as_ref());
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
        for row in &rows {
            self.largest = self.largest.max(self.actuals.weigh(row));
        }
        Ok(rows)
    }

    /// Filters base rows that were read directly.
    fn take_rows(&mut self, path: usize, rows: Vec<Row>) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let slots: Vec<usize> = (0..plan.asked()).collect();
        for row in rows {
            if row.cells.is_empty() {
                continue;
            }
            let base = BaseRow::decode(row, &plan.slots, &slots, plan.key.as_deref());
            if base.satisfies(&plan.query.predicate)? {
                self.accept(&Found::Base(&base), (path, base.key.clone()))?;
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
        // Which path returns a row must not depend on what its entries tell early.
        let pages = plan.looks_back();
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
                self.accept(&Found::Entry(&row), (path, entry.place()))?;
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
                self.accept(&Found::Entry(&row), (path, entry.place()))?;
                continue;
            }
            let Some(row) = rows.next() else { break };
            let base = BaseRow::decode(row, &plan.slots, &how.slots, plan.key.as_deref());
            if !base.gives(entry.terms(), index)? {
                self.actuals.dropped_by_verification += 1;
            } else if base.satisfies(&plan.query.predicate)? && (!pages || base.satisfies(&index.residual)?) {
                self.accept(&Found::Base(&base), (path, entry.place()))?;
            }
        }
        Ok(())
    }

    /// Takes a row into the answer, unless it is there already, or on an earlier page.
    fn accept(&mut self, found: &Found<'_>, place: (usize, Bytes)) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        if plan.scattered
            && let Some(from) = plan.page.as_ref().and_then(|page| page.from.as_ref())
            && let Found::Base(base) = found
            && was_met(base, &plan, &from.place)?
        {
            return Ok(());
        }
        if let Some(seen) = &mut self.seen {
            if !seen.insert(xxh3_128(found.key())) {
                return Ok(());
            }
            self.budget.hold(Held::Seen, SEEN)?;
        }
        self.sink.push(found, place, &plan, &mut self.budget)
    }
}

fn entry_row<'a>(entry: &'a Entry, index: &IndexPath, plan: &Plan, how: &EntryReading) -> Result<EntryRow<'a>> {
    if !how.split {
        return Ok(EntryRow::bare(entry.row()));
    }
    // Unlike its terms, what a right entry covers may be wrong where it is disputed.
    let is_certain = plan.consistency == Consistency::Indexed && !entry.disputed;
    let covered = if is_certain { entry.covered()? } else { &[] };
    EntryRow::new(entry.row(), entry.terms(), covered, index, &plan.slots)
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
            split |= plan.query.order.iter().any(|order| attribute(&order.column));
            split |= matches!(&plan.query.output, Output::Columns(columns) if columns.iter().any(attribute));
        }
        let mut slots: Vec<usize> = (0..plan.asked()).chain(index.terms.iter().copied()).collect();
        index.filter.visit(&mut |test| {
            if let Column::Attribute(slot) = test.column {
                slots.push(slot);
            }
        });
        slots.sort_unstable();
        slots.dedup();
        let columns = columns_of(&plan.slots, slots.iter().copied());
        Self { from_entries, test_early, split, spec: ReadSpec { columns, ..ReadSpec::default() }, slots }
    }
}

/// Fails when the definition of a path is no longer active: entries may have been missing from what was just read.
async fn still_active(reader: &dyn Read, plan: &Plan, path: usize) -> Result<()> {
    let Reading::Paths(paths) = &plan.reading else { return Ok(()) };
    let Some(Path::Index(index)) = paths.get(path) else { return Ok(()) };
    if is_active(reader, &plan.query.table, &index.definition).await? {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::NotFound,
        format!("index {} was dropped while the query read it; run the query again", index.definition.name),
    ))
}
