//! Building indexes over rows that are already there (DESIGN.md §7).
//!
//! 1. remember the source position, 2. take a snapshot, 3. put the snapshot's cells as candidates and write their entries,
//! 4. apply what the source has had since, 5. activate.

use crate::error::{Error, ErrorKind, Result};
use crate::index::{Counts, Maintainer, Mode};
use crate::model::{ChangeEvent, Position, Timestamp};
use crate::schema::{Catalog, Definition, DefinitionSpec, Lifecycle, NO_FLOOR, TableSchema};
use crate::source::{Changes, Source};
use crate::store::embedded::EmbeddedStore;
use crate::store::{Columns, Read, ReadSpec, Scan, Store};
use bytes::Bytes;
use std::sync::Arc;

/// Rows that are put and derived together.
const CHUNK: usize = 2_000;

/// How far a build is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Rows of the snapshot done.
    pub rows: u64,
    /// Rows of the snapshot, once they are counted.
    pub of: u64,
    /// Entries written.
    pub entries: u64,
}

/// Builds definitions in one pass over the table, and activates them. Those that are there already,
/// active, are left as they are; those whose build was interrupted are built again from the start, which is harmless.
/// The definitions are given in the order of the specs.
///
/// # Errors
/// [`ErrorKind::NotFound`] for an unknown table or attribute, [`ErrorKind::AlreadyExists`] for another definition of a name,
/// [`ErrorKind::InvalidInput`] for a name that stands twice.
pub async fn create(
    catalog: &Catalog,
    changes: impl Into<Changes>,
    table: &str,
    specs: &[DefinitionSpec],
    mut progress: impl FnMut(Progress),
) -> Result<(Vec<Definition>, Progress)> {
    let mut done = Progress::default();
    let schema = catalog.table(table).await?;
    let mut open: Vec<&DefinitionSpec> = Vec::new();
    for spec in specs {
        if open.iter().any(|other| other.name == spec.name) {
            return Err(Error::invalid(format!("definition {} is asked for twice", spec.name)));
        }
        match schema.definition(&spec.name) {
            Some(there) if there.state == Lifecycle::Active => {
                // Says so if it is another one.
                catalog.define(table, spec, NO_FLOOR).await?;
            }
            _ => {
                // All are checked before one is begun.
                schema.definition_of(spec)?;
                open.push(spec);
            }
        }
    }
    if !open.is_empty() {
        let mut step = |step: Progress| {
            done.rows += step.rows;
            done.of += step.of;
            done.entries += step.entries;
            progress(done);
        };
        match changes.into() {
            Changes::Log(store) => from_snapshot(catalog, &store, table, &open, &mut step).await?,
            changes @ Changes::Intents(_) => from_scan(catalog, &changes, table, &open, &mut step).await?,
        }
        catalog.store().sync().await?;
        for spec in open {
            catalog
                .update(table, &spec.name, |d| {
                    // One that was dropped meanwhile stays so.
                    if d.state == Lifecycle::Building {
                        d.state = Lifecycle::Active;
                    }
                })
                .await?;
        }
    }
    let schema = catalog.table(table).await?;
    Ok((specs.iter().map(|spec| named(&schema, &spec.name)).collect::<Result<_>>()?, done))
}

/// Builds from a snapshot, and from what the log has had since.
async fn from_snapshot(
    catalog: &Catalog,
    store: &EmbeddedStore,
    table: &str,
    specs: &[&DefinitionSpec],
    step: &mut impl FnMut(Progress),
) -> Result<()> {
    // Held to the end: what comes meanwhile is replayed.
    let log = store.hold_log(table, None)?;
    let snapshot = store.snapshot().await?;
    let (of, floor) = survey(&*snapshot, table).await?;
    step(Progress { of, ..Progress::default() });
    let building = define(catalog, table, specs, floor).await?;
    fill(catalog, &*snapshot, &catalog.table(table).await?, building, step).await?;
    replay(catalog, store, table, log.after(), store.log_head(table)?).await
}

/// Builds from a scan of the table as it changes.
///
/// Whoever applies a change after the definition is there keeps it. A change that was under way by then is an intent, and is
/// applied here, too. All others had reached the base table, and the scan sees them.
async fn from_scan(
    catalog: &Catalog,
    changes: &Changes,
    table: &str,
    specs: &[&DefinitionSpec],
    step: &mut impl FnMut(Progress),
) -> Result<()> {
    let store = Arc::clone(catalog.store());
    let (_, floor) = survey(&*store, table).await?;
    define(catalog, table, specs, floor).await?;
    // Once more: a marker may have come in between that no state row knows of.
    let (of, floor) = survey(&*store, table).await?;
    step(Progress { of, ..Progress::default() });
    let building = define(catalog, table, specs, floor).await?;
    apply_waiting(catalog, changes, table).await?;
    fill(catalog, &*store, &catalog.table(table).await?, building, step).await
}

/// Records definitions with a floor, or raises it.
async fn define(
    catalog: &Catalog,
    table: &str,
    specs: &[&DefinitionSpec],
    floor: Timestamp,
) -> Result<Vec<Definition>> {
    let mut building = Vec::with_capacity(specs.len());
    for spec in specs {
        catalog.define(table, spec, floor).await?;
        // An interrupted build was defined with the floor of its own snapshot.
        building.push(catalog.update(table, &spec.name, |d| d.floor = d.floor.max(floor)).await?);
    }
    Ok(building)
}

/// Applies the changes that wait.
async fn apply_waiting(catalog: &Catalog, changes: &Changes, table: &str) -> Result<()> {
    let mut source: Box<dyn Source> = changes.source(table).await?;
    loop {
        let events = source.next_batch().await?;
        let Some(position) = events.last().map(|e| e.position.clone()) else { return Ok(()) };
        let _at_work = catalog.at_work().await;
        let schema = Arc::new(catalog.table(table).await?);
        let maintainer = Maintainer::new(Arc::clone(catalog.store()), Arc::clone(&schema));
        apply(catalog, &maintainer, &events).await?;
        source.acknowledge(&position).await?;
    }
}

async fn apply(catalog: &Catalog, maintainer: &Maintainer, events: &[ChangeEvent]) -> Result<()> {
    let outcome = maintainer.apply(events, Mode::Stream).await?;
    outcome.keep_quarantined(catalog, maintainer.schema()).await?;
    // Base rows are written before their changes are given out: their effect shows already.
    maintainer.apply(&outcome.late, Mode::Again).await?.keep_quarantined(catalog, maintainer.schema()).await?;
    maintainer.flush().await
}

fn named(schema: &TableSchema, name: &str) -> Result<Definition> {
    schema.definition(name).cloned().ok_or_else(|| gone(name))
}

fn gone(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("index {name} was dropped while it was built"))
}

/// Counts the rows and finds the floor: the largest timestamp in the table, hidden cells and markers included. Whatever the
/// state rows can't know of is at or below it.
async fn survey(reader: &dyn Read, table: &str) -> Result<(u64, Timestamp)> {
    let spec = ReadSpec { raw: true, ..ReadSpec::default() };
    let mut scanner = reader.scan(table, Scan { spec, ..Scan::all() }).await?;
    let (mut rows, mut floor) = (0, NO_FLOOR);
    loop {
        let page = scanner.next_page().await?;
        rows += page.rows.len() as u64;
        floor = page.rows.iter().filter_map(|row| row.newest_timestamp()).fold(floor, Timestamp::max);
        if page.done {
            return Ok((rows, floor));
        }
    }
}

/// Puts and derives the cells of a snapshot, for some definitions.
async fn fill(
    catalog: &Catalog,
    snapshot: &dyn Read,
    schema: &TableSchema,
    definitions: Vec<Definition>,
    step: &mut impl FnMut(Progress),
) -> Result<()> {
    let only = schema.with_definitions(definitions);
    let columns = only
        .indexed()
        .iter()
        .filter(|a| a.key_part.is_none())
        .map(|a| (Bytes::from(a.family.clone()), Bytes::from(a.qualifier.clone())))
        .collect();
    let maintainer = Arc::new(Maintainer::new(Arc::clone(catalog.store()), Arc::new(only)));
    let spec = ReadSpec { columns: Columns::Exact(columns), ..ReadSpec::default() };
    let mut scanner = snapshot.scan(&schema.name, Scan { spec, page_rows: CHUNK, ..Scan::all() }).await?;
    let mut previous: Option<tokio::task::JoinHandle<Result<(u64, Counts)>>> = None;
    loop {
        // One chunk is read while the one before it is written.
        let page = scanner.next_page().await?;
        if let Some(previous) = previous.take() {
            let (rows, counts) = previous.await.map_err(|e| {
                Error::new(ErrorKind::Internal, format!("a worker of the build died: {e}")).with_source(e)
            })??;
            step(Progress { rows, of: 0, entries: counts.entry_writes });
        }
        if page.rows.is_empty() && page.done {
            return Ok(());
        }
        let maintainer = Arc::clone(&maintainer);
        let catalog = catalog.clone();
        previous = Some(tokio::spawn(async move {
            let rows = page.rows.len() as u64;
            let events: Vec<ChangeEvent> = page
                .rows
                .into_iter()
                .map(|row| ChangeEvent {
                    row: row.key,
                    cells: row.cells,
                    position: Position::Snapshot,
                    append_time: crate::clock::now(),
                })
                .collect();
            let _at_work = catalog.at_work().await;
            let schema = catalog.table(&maintainer.schema().name).await?;
            for definition in maintainer.schema().definitions() {
                if named(&schema, &definition.name)?.code != definition.code {
                    return Err(gone(&definition.name));
                }
            }
            let outcome = maintainer.apply(&events, Mode::Snapshot).await?;
            outcome.keep_quarantined(&catalog, maintainer.schema()).await?;
            Ok((rows, outcome.counts))
        }));
    }
}

/// Applies the records that came while the snapshot was read, up to number `until`: whoever follows the log may have taken
/// them in before the definition was there. Whoever takes later ones in knows of it.
async fn replay(catalog: &Catalog, store: &EmbeddedStore, table: &str, mut after: u64, until: u64) -> Result<()> {
    while after < until {
        let _at_work = catalog.at_work().await;
        let schema = Arc::new(catalog.table(table).await?);
        let maintainer = Maintainer::new(Arc::clone(catalog.store()), Arc::clone(&schema));
        let events = store.read_log(table, after, CHUNK, 8 << 20)?;
        let Some(Position::Changelog { number }) = events.last().map(|e| &e.position) else {
            break;
        };
        after = *number;
        apply(catalog, &maintainer, &events).await?;
    }
    Ok(())
}
