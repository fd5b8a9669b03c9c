//! Writing what is wrong anew, by the rules of DESIGN.md §3.
//!
//! A row is repaired as a whole. Its terms are raised to an as-of A above everything its state row and the entries concerned
//! hold, with what the base row shows; so M is A for each of its definitions, its entries are written at A, and what is outdated
//! is removed by markers at A − 1. No later event can be hidden by these: one at or below A is settled by the base row, as after
//! any other settling, and one above A writes above it.
//!
//! Whoever writes the row meanwhile either sees the raise, and settles, or is seen when the row is read again after it; then
//! the maintainer settles the row. The same is left on the recheck list before the raise, and taken off after the entries are
//! written: a crash in between is made up for by the next follower.

use super::expect::{Ought, Values};
use super::pending::Pending;
use super::report::{Class, Finding, Report};
use super::rows::{columns, in_columns};
use crate::error::{Error, ErrorKind, Result};
use crate::index::{self, Maintainer, Mode};
use crate::model::{Cell, CellKind, ChangeEvent, MAX_TIMESTAMP, Position, Row, RowMutation, Timestamp};
use crate::schema::state::{Candidate, TermValue};
use crate::schema::{Catalog, TableSchema, encoding, entry};
use crate::store::embedded::LogHold;
use crate::store::{Durability, ReadSpec, Store};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rows repaired together.
const ROWS: usize = 200;
/// How long the maintainer leaves a row alone that is being repaired, in milliseconds.
const PATIENCE: Timestamp = 60_000;

/// What is wrong with one row.
#[derive(Default)]
struct Broken {
    /// How many findings.
    findings: u64,
    /// Entries to be removed, unless the row gives them.
    wrong: BTreeSet<Bytes>,
}

/// Repairs that are due.
pub(super) struct Repair {
    catalog: Catalog,
    schema: Arc<TableSchema>,
    /// Rows with changes since the verification began.
    changed: Pending,
    hold: LogHold,
    rows: BTreeMap<Bytes, Broken>,
    /// Entries that nothing can ever make true: of no definition, or no entries at all.
    strays: Vec<Bytes>,
}

/// A row on its way.
struct Work {
    row: Bytes,
    findings: u64,
    base: Row,
    state: Row,
    /// The entries it ought to have, with their values.
    current: Vec<(Bytes, Bytes)>,
    /// Entries to be removed, with the timestamp of the newest put of each.
    wrong: Vec<(Bytes, Timestamp)>,
    /// A.
    at: Timestamp,
}

impl Repair {
    pub(super) fn new(catalog: &Catalog, schema: TableSchema, changed: Pending, hold: LogHold) -> Self {
        let (catalog, schema) = (catalog.clone(), Arc::new(schema));
        Self { catalog, schema, changed, hold, rows: BTreeMap::new(), strays: Vec::new() }
    }

    /// Takes in what the log has had since: writers may wait for room in it.
    ///
    /// # Errors
    /// As [`Pending::read_on`].
    pub(super) fn read_on(&mut self) -> Result<()> {
        self.changed.read_on()?;
        self.hold.advance(self.changed.head());
        Ok(())
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.catalog.store()
    }

    /// Notes a finding.
    pub(super) fn add(&mut self, finding: &Finding) {
        let Some(row) = finding.row.clone().filter(|row| !row.is_empty()) else {
            self.strays.push(finding.entry.clone());
            return;
        };
        let broken = self.rows.entry(row).or_default();
        broken.findings += 1;
        if matches!(finding.class, Class::Outdated | Class::Undecodable) {
            broken.wrong.insert(finding.entry.clone());
        }
    }

    /// Whether it is time to write.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() + self.strays.len() >= ROWS
    }

    /// Writes all that is due. Rows that have changed since the verification began, or are about to, are left alone.
    pub(super) async fn write(&mut self, report: &mut Report) -> Result<()> {
        let _at_work = self.catalog.at_work().await;
        // A definition may have been dropped meanwhile.
        self.schema = Arc::new(self.catalog.table(&self.schema.name).await?);
        self.read_on()?;
        let (changing, rows): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.rows).into_iter().partition(|(row, _)| self.changed.holds(row));
        report.changing += changing.iter().map(|(_, broken)| broken.findings).sum::<u64>();
        let strays = std::mem::take(&mut self.strays);
        report.repaired += self.remove_strays(strays).await?;
        let mut works = self.read(rows).await?;
        works.retain(|work| {
            let possible = work.at <= MAX_TIMESTAMP;
            report.unrepairable += if possible { 0 } else { work.findings };
            possible
        });
        if works.is_empty() {
            return Ok(());
        }
        let due = crate::clock::now().saturating_add(PATIENCE);
        let events: Vec<ChangeEvent> = works.iter().map(|work| self.settling(work)).collect();
        let promises = index::promise(&**self.store(), &self.schema.name, &events, due).await?;
        let raises = works.iter().map(|work| self.raise(work)).collect::<Vec<_>>();
        self.store().mutate(&self.schema.state_table(), raises.clone(), Durability::Relaxed).await?;
        let contended = self.contended(&works, &raises).await?;
        let mut entries = Vec::new();
        let mut contended_events = Vec::new();
        for ((work, event), contended) in works.iter().zip(events).zip(contended) {
            if contended {
                report.changing += work.findings;
                contended_events.push(event);
            } else {
                report.repaired += work.findings;
                entries.extend(work.entries());
            }
        }
        if !entries.is_empty() {
            self.store().mutate(&self.schema.index_table(), entries, Durability::Relaxed).await?;
        }
        if !contended_events.is_empty() {
            let maintainer = Maintainer::new(Arc::clone(self.store()), Arc::clone(&self.schema));
            let outcome = maintainer.apply(&contended_events, Mode::Again).await?;
            outcome.keep_quarantined(&self.catalog, &self.schema).await?;
        }
        index::keep_promises(&**self.store(), &promises).await?;
        self.store().sync().await
    }

    /// Hides entries that can never become true, each up to its newest timestamp; how many.
    async fn remove_strays(&self, keys: Vec<Bytes>) -> Result<u64> {
        if keys.is_empty() {
            return Ok(0);
        }
        let spec = ReadSpec { raw: true, ..ReadSpec::default() };
        let rows = self.store().get(&self.schema.index_table(), &keys, &spec).await?;
        let markers: Vec<RowMutation> = rows
            .into_iter()
            .filter_map(|row| {
                let marker = Cell::delete(CellKind::DeleteFamily, entry::FAMILY, "", row.newest_timestamp()?);
                Some(RowMutation::new(row.key, vec![marker]))
            })
            .collect();
        self.store().mutate(&self.schema.index_table(), markers, Durability::Relaxed).await?;
        Ok(keys.len() as u64)
    }

    async fn rows(&self, rows: &[Bytes]) -> Result<(Vec<Row>, Vec<Row>)> {
        let spec = ReadSpec { columns: columns(&self.schema), ..ReadSpec::default() };
        let state = self.store().get(&self.schema.state_table(), rows, &ReadSpec::default()).await?;
        Ok((self.store().get(&self.schema.name, rows, &spec).await?, state))
    }

    /// Reads rows as they are now, and works out what they ought to have.
    async fn read(&self, broken: Vec<(Bytes, Broken)>) -> Result<Vec<Work>> {
        let keys: Vec<Bytes> = broken.iter().map(|(row, _)| row.clone()).collect();
        let (base, state) = self.rows(&keys).await?;
        let raw = ReadSpec { raw: true, ..ReadSpec::default() };
        let raw_base = ReadSpec { columns: columns(&self.schema), ..raw.clone() };
        let now = crate::clock::now();
        // As for any settling: a purge takes what is written anew to be above the floor.
        let floor = self.schema.definitions().iter().map(|d| d.floor).max().unwrap_or(0).max(0);
        let mut works = Vec::with_capacity(broken.len());
        for (((row, broken), base), state) in broken.into_iter().zip(base).zip(state) {
            let one = std::slice::from_ref(&row);
            let mut above = floor;
            // Markers too: what is written at or below them is hidden.
            for (table, spec) in [(self.schema.name.clone(), &raw_base), (self.schema.state_table(), &raw)] {
                let newest = self.store().get(&table, one, spec).await?;
                above = newest.iter().filter_map(Row::newest_timestamp).fold(above, Timestamp::max);
            }
            let values = Values::of(&self.schema, &base);
            let mut current = Vec::new();
            for definition in self.schema.definitions() {
                let ought = Ought::of(definition, &values)?;
                let fitting = ought.keys()?.into_iter().filter(|key| key.len() <= entry::MAX_ROW);
                current.extend(fitting.map(|key| (key, ought.value.clone())));
            }
            let given: BTreeSet<&Bytes> = current.iter().map(|(key, _)| key).collect();
            let wrong: Vec<Bytes> = broken.wrong.into_iter().filter(|key| !given.contains(key)).collect();
            let keys: Vec<Bytes> = given.into_iter().cloned().collect();
            for there in self.store().get(&self.schema.index_table(), &keys, &raw).await? {
                above = above.max(there.newest_timestamp().unwrap_or(0));
            }
            let mut newest = Vec::with_capacity(wrong.len());
            for there in self.store().get(&self.schema.index_table(), &wrong, &raw).await? {
                let at = there.newest_timestamp().unwrap_or(0);
                // One of the future is not worth raising the row for: until then its changes could not decide by themselves.
                if at < now {
                    above = above.max(at);
                }
                newest.push((there.key, at));
            }
            works.push(Work {
                row,
                findings: broken.findings,
                base,
                state,
                current,
                wrong: newest,
                at: above.saturating_add(1),
            });
        }
        Ok(works)
    }

    /// The event that makes the maintainer settle a row at A: deleting versions that are not there says nothing by itself.
    fn settling(&self, work: &Work) -> ChangeEvent {
        let delete = |a: &crate::schema::Attribute| {
            Cell::delete(CellKind::DeleteVersion, a.family.clone(), a.qualifier.clone(), work.at)
        };
        ChangeEvent {
            row: work.row.clone(),
            cells: in_columns(&self.schema).map(delete).collect(),
            position: Position::Snapshot,
            append_time: crate::clock::now(),
        }
    }

    /// What the base row shows, as candidates at A. A term without a value, too: markers may lie over what is put below.
    fn raise(&self, work: &Work) -> RowMutation {
        let cells = in_columns(&self.schema).map(|attribute| {
            let shown = work.base.newest(attribute.family.as_bytes(), attribute.qualifier.as_bytes());
            let candidate = shown.map_or(Candidate::own(work.at, TermValue::Tombstone), |cell| Candidate {
                as_of: work.at,
                source: cell.timestamp,
                value: encoding::decode(attribute, &cell.value)
                    .map_or(TermValue::Tombstone, |value| TermValue::of(&value)),
            });
            candidate.put(attribute.code)
        });
        RowMutation::new(work.row.clone(), cells.collect())
    }

    /// Which rows somebody else has written to since they were read.
    async fn contended(&self, works: &[Work], raises: &[RowMutation]) -> Result<Vec<bool>> {
        let keys: Vec<Bytes> = works.iter().map(|work| work.row.clone()).collect();
        let (base, state) = self.rows(&keys).await?;
        if (base.len(), state.len()) != (works.len(), works.len()) {
            return Err(Error::new(ErrorKind::Internal, "expected one row per key of a get"));
        }
        let changed = works.iter().zip(raises).zip(base.iter().zip(&state)).map(|((work, raise), (base, state))| {
            let ours: BTreeSet<(&Bytes, Timestamp)> = raise.cells.iter().map(|c| (&c.qualifier, c.timestamp)).collect();
            let stranger = |c: &Cell| !ours.contains(&(&c.qualifier, c.timestamp)) && !work.state.cells.contains(c);
            *base != work.base || state.cells.iter().any(stranger)
        });
        Ok(changed.collect())
    }
}

impl Work {
    /// The writes of its entries at A.
    fn entries(&self) -> impl Iterator<Item = RowMutation> {
        let qualifier = || Bytes::from_static(entry::QUALIFIER);
        let current = self.current.iter().map(move |(key, value)| {
            RowMutation::new(key.clone(), vec![Cell::put(entry::FAMILY, qualifier(), self.at, value.clone())])
        });
        let wrong = self.wrong.iter().map(move |(key, newest)| {
            let cell = if *newest < self.at {
                Cell::delete(CellKind::DeleteFamily, entry::FAMILY, "", self.at - 1)
            } else {
                // Out of reach: from now on it is checked by whoever meets it.
                Cell::put(entry::FAMILY, qualifier(), *newest, entry::encode_value(true, &[]))
            };
            RowMutation::new(key.clone(), vec![cell])
        });
        current.chain(wrong)
    }
}
