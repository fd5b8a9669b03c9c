//! Purging what rows have left behind (DESIGN.md §3): tombstones, superseded candidates and lingering entries.
//!
//! Tombstones say how late a term was known to have no value, and superseded candidates which entries may linger; both are
//! kept until M can no longer fall back below them. The floor F sees to that: once F of every definition is above the
//! horizon, whatever comes is settled at F or above, so a row that has been quiet since can forget what is below. What is in
//! doubt there is decided by the base row, which has long shown all of it.

use super::candidates::{Own, View};
use super::derive;
use super::maintainer::Maintainer;
use crate::error::Result;
use crate::model::{Cell, CellKind, RowMutation, Timestamp};
use crate::schema::state::{Candidate, TermValue};
use crate::schema::{Catalog, Code, TableSchema, entry};
use crate::store::{Durability, Scan, Store};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::sync::Arc;

/// What a purge found and did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// State rows looked at.
    pub rows: u64,
    /// State rows of which something was purged.
    pub purged: u64,
    /// Candidates that are hidden now.
    pub candidates: u64,
    /// Keys at which an entry may have lingered, removed.
    pub entries: u64,
}

impl AddAssign for Purged {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.purged += other.purged;
        self.candidates += other.candidates;
        self.entries += other.entries;
    }
}

/// Whether a row has been quiet since the horizon, and has anything to purge.
fn is_due(schema: &TableSchema, view: &View, horizon: Timestamp) -> bool {
    let mut all = schema.indexed().iter().flat_map(|a| view.of(a.code));
    let is_plain = |code| matches!(view.of(code), [] | [Candidate { value: TermValue::Live(_), .. }]);
    all.all(|c| c.as_of <= horizon) && !schema.indexed().iter().all(|a| is_plain(a.code))
}

/// The writes that purge one row.
#[derive(Debug, Default)]
struct Plan {
    /// What is current, for rows that were in doubt, and removals of what is not.
    entries: Vec<RowMutation>,
    /// Markers on candidates.
    state: Option<RowMutation>,
    counts: Purged,
}

/// Plans the purge of a row that is due; nothing where its entries cannot be listed.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for candidates that are not terms.
fn plan(schema: &TableSchema, row: &Bytes, view: &View, horizon: Timestamp) -> Result<Plan> {
    let mut plan = Plan { counts: Purged { purged: 1, ..Purged::default() }, ..Plan::default() };
    for definition in schema.definitions() {
        let Some(derivation) = derive::derive(definition, view, &Own::default(), true)? else { continue };
        if derivation.refused.is_some() {
            // What can't be listed can't be removed, and has to be remembered.
            return Ok(Plan::default());
        }
        if derivation.m > horizon {
            plan.entries.extend(derive::writes(definition, &derivation, row, true)?.current);
        }
        plan.counts.entries += derivation.outdated.len() as u64;
        for terms in &derivation.outdated {
            // Whatever was written is at or below the horizon; whoever writes it again does so above.
            let marker = Cell::delete(CellKind::DeleteFamily, entry::FAMILY, Bytes::new(), horizon);
            plan.entries.push(RowMutation::new(entry::encode(definition, terms, row)?, vec![marker]));
        }
    }
    let mut cells = Vec::new();
    for attribute in schema.indexed() {
        let newest = view.newest(attribute.code);
        let Some(at) = newest.first().map(|c| c.as_of) else { continue };
        // In one mutation, older values included: an older one would become the newest. Nothing may be settled at or below
        // these markers, so a tombstone at the floor itself stays.
        let is_gone = at <= horizon && newest.iter().all(|c| c.value.is_tombstone());
        let hidden = view.of(attribute.code).iter().filter(|c| is_gone || c.as_of < at);
        cells.extend(hidden.map(|c| c.prune(attribute.code, if is_gone { at } else { at - 1 })));
    }
    plan.counts.candidates = cells.len() as u64;
    plan.state = (!cells.is_empty()).then(|| RowMutation::new(row.clone(), cells));
    Ok(plan)
}

/// Raises the floor of every definition of a table above `horizon`. On return the records are durable; whoever keeps the
/// table has to take them over before anything is purged.
pub(super) async fn raise_floors(catalog: &Catalog, table: &str, horizon: Timestamp) -> Result<TableSchema> {
    for definition in catalog.table(table).await?.definitions() {
        catalog.update(table, &definition.name, |d| d.floor = d.floor.max(horizon.saturating_add(1))).await?;
    }
    catalog.store().sync().await?;
    catalog.table(table).await
}

/// Purges the rows of a table's state that have nothing above `horizon`, page by page. The maintainer's floors are above it.
pub(super) async fn rows(maintainer: &Maintainer, store: &Arc<dyn Store>, horizon: Timestamp) -> Result<Purged> {
    let schema = maintainer.schema();
    let mut purged = Purged::default();
    let mut scanner = store.scan(&schema.state_table(), Scan::all()).await?;
    loop {
        let page = scanner.next_page().await?;
        let keys: Vec<Bytes> = page.rows.into_iter().map(|row| row.key).collect();
        purged += some_rows(maintainer, store, keys, horizon).await?;
        if page.done {
            return Ok(purged);
        }
    }
}

async fn some_rows(
    maintainer: &Maintainer,
    store: &Arc<dyn Store>,
    keys: Vec<Bytes>,
    horizon: Timestamp,
) -> Result<Purged> {
    let schema = maintainer.schema();
    let mut purged = Purged { rows: keys.len() as u64, ..Purged::default() };
    let views = maintainer.read_state(keys.clone()).await?;
    let due: Vec<(Bytes, View)> =
        keys.into_iter().zip(views).filter(|(_, view)| is_due(schema, view, horizon)).collect();
    let rows: Vec<Bytes> = due.iter().map(|(row, _)| row.clone()).collect();
    decide(maintainer, store, &due, horizon).await?;
    let (mut entries, mut states) = (Vec::new(), Vec::new());
    for (row, view) in rows.iter().zip(maintainer.read_state(rows.clone()).await?) {
        let plan = plan(schema, row, &view, horizon)?;
        purged += plan.counts;
        entries.extend(plan.entries.into_iter().filter(|m| store.row_key_fits(&m.row)));
        states.extend(plan.state);
    }
    // Entries first: a crash in between must not leave some that nobody knows of any more.
    if !entries.is_empty() {
        store.mutate(&schema.index_table(), entries, Durability::Relaxed).await?;
    }
    if !states.is_empty() {
        store.mutate(&schema.state_table(), states, Durability::Relaxed).await?;
    }
    Ok(purged)
}

/// Where attributes have several newest candidates, the base row decides: what it shows becomes the only one, as of the
/// first moment above the horizon.
async fn decide(
    maintainer: &Maintainer,
    store: &Arc<dyn Store>,
    due: &[(Bytes, View)],
    horizon: Timestamp,
) -> Result<()> {
    let schema = maintainer.schema();
    let doubtful = |view: &View| -> Vec<Code> {
        schema.indexed().iter().map(|a| a.code).filter(|code| view.newest(*code).len() > 1).collect()
    };
    let open: Vec<(Bytes, Vec<Code>)> =
        due.iter().map(|(row, view)| (row.clone(), doubtful(view))).filter(|(_, codes)| !codes.is_empty()).collect();
    let codes: BTreeSet<Code> = open.iter().flat_map(|(_, codes)| codes).copied().collect();
    let base = maintainer.read_base(&codes, open.iter().map(|(row, _)| row.clone()).collect()).await?;
    let mut puts = Vec::new();
    for ((row, codes), base) in open.into_iter().zip(&base) {
        let cells = codes.into_iter().map(|code| {
            let (source, value) = maintainer.shown(code, base).unwrap_or((horizon + 1, TermValue::Tombstone));
            Candidate { as_of: source.max(horizon + 1), source, value }.put(code)
        });
        puts.push(RowMutation::new(row, cells.collect()));
    }
    if puts.is_empty() {
        return Ok(());
    }
    store.mutate(&schema.state_table(), puts, Durability::Relaxed).await
}

/// Purges one row, whatever the order its events came in.
#[doc(hidden)]
pub async fn one_row(
    maintainer: &Maintainer,
    store: &Arc<dyn Store>,
    row: Bytes,
    horizon: Timestamp,
) -> Result<Purged> {
    some_rows(maintainer, store, vec![row], horizon).await
}
