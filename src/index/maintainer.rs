//! Reading and writing for the rules of `change`, `settle` and `derive`.

use super::candidates::{Own, View};
use super::change::{self, TermChange};
use super::derive;
use super::quarantine::{self, Quarantined};
use super::settle::{self, Shown, Unsettled};
use crate::error::{Error, Result};
use crate::model::{Cell, ChangeEvent, Position, Row, RowMutation, Timestamp};
use crate::schema::state::TermValue;
use crate::schema::{Catalog, Code, TableSchema, encoding};
use crate::store::{Columns, Durability, ReadSpec, Store};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};

/// Entries that are collected before they are written: rows with large arrays have many.
const WRITES: usize = 20_000;

/// What kind of events a batch holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Events of the change stream.
    Stream,
    /// Events applied once more from the recheck list: none goes on the list again.
    Again,
    /// Rows of a snapshot: candidates are put and derived without settling, whatever the floor.
    Snapshot,
}

/// The rules of §3 that tests switch off, to see that the tests notice. All are on everywhere else.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Settle by the base row what timestamps can't prove.
    pub settle: bool,
    /// Settle at or below the floor of a build.
    pub floor: bool,
    /// Remove outdated entries at M − 1, not at M.
    pub marker_guard: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { settle: true, floor: true, marker_guard: true }
    }
}

/// Promise 1 in numbers: `received = applied + quarantined + irrelevant`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events taken in.
    pub received: u64,
    /// Events whose every term was applied.
    pub applied: u64,
    /// Events of which at least one term went to quarantine; the others were applied.
    pub quarantined: u64,
    /// Events that touch no indexed attribute.
    pub irrelevant: u64,
    /// Rows of the index table that were written.
    pub entry_writes: u64,
    /// Events that were settled by the base row.
    pub settled: u64,
}

impl Counts {
    /// Whether every event is accounted for.
    pub fn add_up(&self) -> bool {
        self.received == self.applied + self.quarantined + self.irrelevant
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.applied += other.applied;
        self.quarantined += other.quarantined;
        self.irrelevant += other.irrelevant;
        self.entry_writes += other.entry_writes;
        self.settled += other.settled;
    }
}

/// What applying a batch left to do. Both lists must be durable before the batch is acknowledged.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What happened to the events.
    pub counts: Counts,
    /// What could not be indexed.
    pub quarantined: Vec<Quarantined>,
    /// Events to be applied exactly once more, later: the base may not have shown their effect yet.
    pub late: Vec<ChangeEvent>,
}

impl Outcome {
    /// Adds another part's outcome to this one.
    pub fn merge(&mut self, other: Self) {
        self.counts += other.counts;
        self.quarantined.extend(other.quarantined);
        self.late.extend(other.late);
    }

    /// Writes the quarantined terms. Durable at the next durable write.
    pub(crate) async fn keep_quarantined(&self, catalog: &Catalog, schema: &TableSchema) -> Result<()> {
        quarantine::keep(catalog, schema, &self.quarantined).await
    }
}

/// Keeps the definitions of one table in step. Any number of maintainers may touch a row in any order: everything is written
/// as blind puts and markers with explicit timestamps.
pub struct Maintainer {
    store: Arc<dyn Store>,
    schema: Arc<TableSchema>,
    rules: Rules,
    /// Prune markers wait for the next batch's state put: losing them costs space, never an answer.
    prunes: Mutex<Vec<RowMutation>>,
}

/// The cells of one event with one timestamp, on their way.
struct Work {
    event: usize,
    row: Bytes,
    timestamp: Timestamp,
    changes: Vec<TermChange>,
    own: Own,
    settled: bool,
}

impl Maintainer {
    /// A maintainer of the schema's definitions, all of them whatever their state.
    pub fn new(store: Arc<dyn Store>, schema: Arc<TableSchema>) -> Self {
        Self::with_rules(store, schema, Rules::default())
    }

    /// For tests of the tests.
    #[doc(hidden)]
    pub fn with_rules(store: Arc<dyn Store>, schema: Arc<TableSchema>, rules: Rules) -> Self {
        Self { store, schema, rules, prunes: Mutex::default() }
    }

    /// The schema it keeps.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Applies a batch of events. On success all that was written is visible, and durable after the next durable write or
    /// sync; on failure any part of it was written, and the whole batch is to be applied again.
    ///
    /// A batch costs one state put, one state read and one index write for all its rows together; rows that settle cost two
    /// more state reads and a base read. Events of one row are applied one after another.
    ///
    /// # Errors
    /// Those of the store, and [`Corrupt`](crate::error::ErrorKind::Corrupt) for a damaged state row.
    pub async fn apply(&self, events: &[ChangeEvent], mode: Mode) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut unfit = BTreeSet::new();
        // Parts of each event that are not applied yet.
        let mut open = vec![0usize; events.len()];
        let mut waves: Vec<Vec<Work>> = Vec::new();
        let mut rows: HashMap<&Bytes, usize> = HashMap::new();
        for (i, event) in events.iter().enumerate() {
            outcome.counts.received += 1;
            let groups = change::read(&self.schema, &event.cells);
            if groups.is_empty() {
                outcome.counts.irrelevant += 1;
            }
            open[i] = groups.len();
            for (timestamp, group) in groups {
                for cell in group.unfit {
                    unfit.insert(i);
                    outcome.quarantined.push(Quarantined::term(event, &cell));
                }
                let turn = rows.entry(&event.row).or_default();
                if waves.len() == *turn {
                    waves.push(Vec::new());
                }
                let own = Own::of(&group.changes);
                let row = event.row.clone();
                waves[*turn].push(Work { event: i, row, timestamp, changes: group.changes, own, settled: false });
                *turn += 1;
            }
        }
        for wave in waves {
            let parts: Vec<usize> = wave.iter().map(|work| work.event).collect();
            self.wave(events, wave, mode, &mut outcome, &mut unfit).await?;
            for event in parts {
                open[event] -= 1;
                if open[event] == 0 {
                    let counted = if unfit.contains(&event) {
                        &mut outcome.counts.quarantined
                    } else {
                        &mut outcome.counts.applied
                    };
                    *counted += 1;
                }
            }
        }
        Ok(outcome)
    }

    /// Writes what waits for a next batch.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn flush(&self) -> Result<()> {
        let waiting = self.take_prunes();
        self.write_state(waiting).await
    }

    /// Applies work on distinct rows.
    async fn wave(
        &self,
        events: &[ChangeEvent],
        mut wave: Vec<Work>,
        mode: Mode,
        outcome: &mut Outcome,
        unfit: &mut BTreeSet<usize>,
    ) -> Result<()> {
        let mut puts = self.take_prunes();
        puts.extend(wave.iter().filter_map(|w| state_puts(&w.row, w.own.iter().map(|(code, c)| c.put(*code)))));
        self.write_state(puts).await?;
        let mut views = self.read_state(wave.iter().map(|w| w.row.clone()).collect()).await?;
        if mode != Mode::Snapshot && self.rules.settle {
            self.settle(events, &mut wave, &mut views, mode, outcome).await?;
        }
        let mut writes = Vec::new();
        let mut prunes = Vec::new();
        for (work, view) in wave.iter().zip(&views) {
            self.plan(events, work, view, mode, &mut writes, &mut prunes, outcome, unfit)?;
            if writes.len() >= WRITES {
                outcome.counts.entry_writes += self.write_entries(std::mem::take(&mut writes)).await?;
            }
        }
        outcome.counts.entry_writes += self.write_entries(writes).await?;
        // Only now: a crash between pruning and removing would leave entries that nobody knows of any more.
        self.prunes.lock().unwrap_or_else(PoisonError::into_inner).extend(prunes);
        Ok(())
    }

    /// Step 3 for the works that need it; their views are read again.
    async fn settle(
        &self,
        events: &[ChangeEvent],
        wave: &mut [Work],
        views: &mut [View],
        mode: Mode,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let floor = |code| if self.rules.floor { self.schema.floor(code) } else { crate::schema::NO_FLOOR };
        let open: Vec<(usize, Vec<Unsettled>)> = wave
            .iter()
            .zip(views.iter())
            .map(|(work, view)| settle::unsettled(&work.changes, view, floor))
            .enumerate()
            .filter(|(_, unsettled)| !unsettled.is_empty())
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let rows: Vec<Bytes> = open.iter().map(|(i, _)| wave[*i].row.clone()).collect();
        let raises = open.iter().zip(&rows).filter_map(|((_, unsettled), row)| {
            state_puts(row, unsettled.iter().map(|u| settle::raise(u).put(u.change.code)))
        });
        self.write_state(raises.collect()).await?;
        let raised = self.read_state(rows.clone()).await?;
        let codes = open.iter().flat_map(|(_, unsettled)| unsettled).map(|u| u.change.code).collect();
        let shown = self.read_base(&codes, rows.clone()).await?;
        let mut puts = Vec::new();
        for (((i, unsettled), view), (row, shown)) in open.iter().zip(&raised).zip(rows.iter().zip(&shown)) {
            let work = &mut wave[*i];
            work.settled = true;
            let mut late = false;
            let mut cells = Vec::new();
            for u in unsettled {
                let resolution = settle::resolve(u, &work.own, view, &self.shown(u.change.code, shown));
                late |= resolution.late;
                cells.extend(resolution.candidates.iter().map(|c| c.put(u.change.code)));
            }
            puts.extend(state_puts(row, cells.into_iter()));
            if late && mode == Mode::Stream {
                let event = &events[work.event];
                let cells = event.cells.iter().filter(|c| c.timestamp == work.timestamp).cloned().collect();
                outcome.late.push(ChangeEvent { cells, ..event.clone() });
            }
        }
        self.write_state(puts).await?;
        for ((i, _), view) in open.iter().zip(self.read_state(rows).await?) {
            views[*i] = view;
        }
        outcome.counts.settled += open.len() as u64;
        Ok(())
    }

    /// Steps 4 and 5 for one row.
    #[expect(clippy::too_many_arguments, reason = "what one row adds to the lists of its wave")]
    fn plan(
        &self,
        events: &[ChangeEvent],
        work: &Work,
        view: &View,
        mode: Mode,
        writes: &mut Vec<RowMutation>,
        prunes: &mut Vec<RowMutation>,
        outcome: &mut Outcome,
        unfit: &mut BTreeSet<usize>,
    ) -> Result<()> {
        let touched: BTreeSet<Code> = work.changes.iter().map(|c| c.code).collect();
        let mut prunable: BTreeMap<Code, bool> = touched.iter().map(|code| (*code, true)).collect();
        for definition in self.schema.definitions().iter().filter(|d| touched.iter().any(|code| d.mentions(*code))) {
            let place = |e: Error| e.within(format!("row {}", work.row.escape_ascii()));
            let derivation = derive::derive(definition, view, &work.own, work.settled).map_err(place)?;
            let raised = derivation.as_ref().is_some_and(|d| d.raised);
            if let Some(derivation) = derivation {
                let planned =
                    derive::writes(definition, &derivation, &work.row, self.rules.marker_guard).map_err(place)?;
                let overlong = planned.current.iter().map(|m| &m.row).find(|key| !self.store.row_key_fits(key));
                let overlong = overlong.map(|key| {
                    Error::invalid(format!("an entry of {} bytes is longer than a row key can be", key.len()))
                });
                for reason in derivation.refused.iter().chain(&overlong) {
                    outcome.quarantined.push(Quarantined::definition(&events[work.event], definition, reason));
                    unfit.insert(work.event);
                }
                // An overlong entry was never written, so there is none to remove either.
                let all = planned.current.into_iter().chain(planned.outdated);
                writes.extend(all.filter(|m| self.store.row_key_fits(&m.row)));
            }
            for code in definition.codes() {
                if let Some(prunable) = prunable.get_mut(&code) {
                    *prunable &= raised;
                }
            }
        }
        if mode != Mode::Snapshot {
            let cells = prunable.iter().filter(|(_, yes)| **yes).flat_map(|(code, _)| derive::prunes(*code, view));
            prunes.extend(state_puts(&work.row, cells));
        }
        Ok(())
    }

    /// What a base row shows of a term.
    pub(super) fn shown(&self, code: Code, row: &Row) -> Shown {
        let attribute = self.schema.attribute_by_code(code)?;
        let cell = row.newest(attribute.family.as_bytes(), attribute.qualifier.as_bytes())?;
        // A value that can't be decoded is on its way to quarantine, or there already; no value is in the index for it.
        let value = encoding::decode(attribute, &cell.value).map_or(TermValue::Tombstone, |v| TermValue::of(&v));
        Some((cell.timestamp, value))
    }

    /// Writes entries; how many.
    async fn write_entries(&self, mutations: Vec<RowMutation>) -> Result<u64> {
        let count = mutations.len() as u64;
        let steps = if self.store.capabilities().atomic_put_and_delete {
            vec![mutations]
        } else {
            // A disputed entry is never wrong, so it comes before the marker that takes away what was there before.
            let (puts, markers) = RowMutation::puts_and_markers(mutations);
            vec![puts, markers]
        };
        for step in steps.into_iter().filter(|step| !step.is_empty()) {
            self.store.mutate(&self.schema.index_table(), step, Durability::Relaxed).await?;
        }
        Ok(count)
    }

    /// Reads some attributes of base rows.
    pub(super) async fn read_base(&self, codes: &BTreeSet<Code>, rows: Vec<Bytes>) -> Result<Vec<Row>> {
        let columns = codes
            .iter()
            .filter_map(|code| self.schema.attribute_by_code(*code))
            .map(|a| (Bytes::from(a.family.clone()), Bytes::from(a.qualifier.clone())))
            .collect();
        let spec = ReadSpec { columns: Columns::Exact(columns), ..ReadSpec::default() };
        self.store.get(&self.schema.name, &rows, &spec).await
    }

    pub(super) async fn read_state(&self, rows: Vec<Bytes>) -> Result<Vec<View>> {
        let rows = self.store.get(&self.schema.state_table(), &rows, &ReadSpec::default()).await?;
        rows.iter()
            .map(|row| {
                let view = View::decode(row).map_err(|e| e.within(format!("state row {}", row.key.escape_ascii())))?;
                Ok(view.with_key(&self.schema, &row.key))
            })
            .collect()
    }

    async fn write_state(&self, mutations: Vec<RowMutation>) -> Result<()> {
        if mutations.is_empty() {
            return Ok(());
        }
        self.store.mutate(&self.schema.state_table(), mutations, Durability::Relaxed).await
    }

    fn take_prunes(&self) -> Vec<RowMutation> {
        std::mem::take(&mut *self.prunes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A state row's mutation, unless there is nothing in it.
fn state_puts(row: &Bytes, cells: impl Iterator<Item = Cell>) -> Option<RowMutation> {
    let cells: Vec<Cell> = cells.collect();
    (!cells.is_empty()).then(|| RowMutation::new(row.clone(), cells))
}

/// Splits a batch into parts that share no row, for as many workers.
pub(super) fn by_row(events: Vec<ChangeEvent>, parts: usize) -> Vec<Vec<ChangeEvent>> {
    let mut split: Vec<Vec<ChangeEvent>> = vec![Vec::new(); parts.max(1)];
    for event in events {
        let part = xxhash_rust::xxh3::xxh3_64(&event.row) % split.len() as u64;
        // A remainder of a division by a usize fits one.
        split[part as usize].push(event);
    }
    split.retain(|part| !part.is_empty());
    split
}

/// The last position of a batch in source order.
pub(super) fn last_position(events: &[ChangeEvent]) -> Option<Position> {
    events.last().map(|e| e.position.clone())
}
