//! Taking records out of quarantine, and what that means for the definitions they concern.

use super::{Quarantined, Record, Which, concerned, list};
use crate::error::{Error, ErrorKind, Result};
use crate::index::maintainer::{Maintainer, Mode};
use crate::model::{Cell, CellKind, ChangeEvent, RowMutation};
use crate::schema::{Catalog, Definition, Function, QUARANTINE_FAMILY, QUARANTINE_TABLE, TableSchema};
use crate::store::{Columns, Durability, ReadSpec};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Records taken up together.
const PAGE: usize = 200;

/// What became of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Released {
    /// Their events went through.
    pub replayed: u64,
    /// They don't fit any better, but the base row has another value by now: nothing is missing.
    pub superseded: u64,
    /// They don't fit any better, and are kept.
    pub kept: u64,
    /// They were dropped.
    pub dropped: u64,
    /// Definitions that no longer are degraded.
    pub cleared: Vec<String>,
    /// Definitions that stay degraded until they are verified, because records of them were dropped.
    pub unverified: Vec<String>,
}

/// Applies the events of records again, by the schema as it is now, and removes the records of those that go through. So an
/// event can be taken in after the declaration of its attribute was corrected, or its row shrank. A definition of which
/// nothing is left in quarantine no longer is degraded, unless records of it were dropped.
///
/// # Errors
/// [`ErrorKind::NotFound`] for an unknown table, and those of the store; what was replayed before stays so.
pub async fn replay(catalog: &Catalog, table: &str, which: &Which) -> Result<Released> {
    let mut released = Released::default();
    let mut from = None;
    loop {
        let _at_work = catalog.at_work().await;
        let schema = Arc::new(catalog.table(table).await?);
        let page = list(&**catalog.store(), &schema, which, from.as_ref(), PAGE).await?;
        replay_page(catalog, &schema, &page.records, &mut released).await?;
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    let schema = catalog.table(table).await?;
    // One built under another version of Unicode is for a verification as well as one of which records were dropped.
    for definition in schema.definitions().iter().filter(|d| d.degraded) {
        if definition.unverified {
            released.unverified.push(definition.name.clone());
        } else if definition.is_of_this_unicode() && clear(catalog, table, &definition.name).await? {
            released.cleared.push(definition.name.clone());
        }
    }
    catalog.store().sync().await?;
    Ok(released)
}

async fn replay_page(
    catalog: &Catalog,
    schema: &Arc<TableSchema>,
    records: &[Record],
    released: &mut Released,
) -> Result<()> {
    let events: Vec<ChangeEvent> = records.iter().filter_map(|r| r.event.clone()).collect();
    let maintainer = Maintainer::new(Arc::clone(catalog.store()), Arc::clone(schema));
    let outcome = maintainer.apply(&events, Mode::Stream).await?;
    // The base shows these events since long.
    let again = maintainer.apply(&outcome.late, Mode::Again).await?;
    maintainer.flush().await?;
    if !outcome.counts.add_up() {
        return Err(Error::new(ErrorKind::Internal, format!("events are unaccounted for: {:?}", outcome.counts)));
    }
    let refused: Vec<Quarantined> = outcome.quarantined.into_iter().chain(again.quarantined).collect();
    let there: BTreeSet<&Bytes> = records.iter().map(|r| &r.key).collect();
    let (old, new): (Vec<_>, Vec<_>) = refused.into_iter().partition(|q| there.contains(&q.key(&schema.name)));
    super::keep(catalog, schema, &new).await?;
    let refused: BTreeSet<Bytes> = old.iter().map(|q| q.key(&schema.name)).collect();
    let mut done = Vec::new();
    for record in records {
        if record.event.is_none() {
            released.kept += 1;
        } else if !refused.contains(&record.key) {
            released.replayed += 1;
            done.push(record);
        } else if is_superseded(catalog, schema, record).await? {
            released.superseded += 1;
            done.push(record);
        } else {
            released.kept += 1;
        }
    }
    remove(catalog, &done).await
}

/// Whether the base row shows another value than the one that does not fit.
async fn is_superseded(catalog: &Catalog, schema: &TableSchema, record: &Record) -> Result<bool> {
    let attribute = record.attribute.as_deref().and_then(|name| schema.attribute(name));
    let (Some(attribute), Some(event)) = (attribute, &record.event) else { return Ok(false) };
    let column = (Bytes::from(attribute.family.clone()), Bytes::from(attribute.qualifier.clone()));
    let spec = ReadSpec { columns: Columns::Exact(vec![column]), ..ReadSpec::default() };
    let rows = catalog.store().get(&schema.name, std::slice::from_ref(&event.row), &spec).await?;
    let shown = rows.first().and_then(|row| row.cells.first());
    Ok(shown.is_none_or(|cell| !event.cells.contains(cell)))
}

/// Removes records without applying their events. The definitions they concern stay degraded until they are verified.
///
/// # Errors
/// [`ErrorKind::NotFound`] for an unknown table, and those of the store.
pub async fn discard(catalog: &Catalog, table: &str, which: &Which) -> Result<Released> {
    let schema = catalog.table(table).await?;
    let mut released = Released::default();
    let mut unverified = BTreeSet::new();
    let mut from = None;
    loop {
        let page = list(&**catalog.store(), &schema, which, from.as_ref(), PAGE).await?;
        for record in &page.records {
            let hit = concerned(&schema, record.attribute.as_deref(), record.definition.as_deref());
            for definition in hit.filter(|d| unverified.insert(d.name.clone())) {
                // First: what was dropped must not be forgotten.
                let flag = |d: &mut Definition| (d.degraded, d.unverified) = (true, true);
                catalog.update(table, &definition.name, flag).await?;
            }
        }
        remove(catalog, &page.records.iter().collect::<Vec<_>>()).await?;
        released.dropped += page.records.len() as u64;
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    released.unverified = unverified.into_iter().collect();
    catalog.store().sync().await?;
    Ok(released)
}

async fn remove(catalog: &Catalog, records: &[&Record]) -> Result<()> {
    let marker = |r: &&Record| {
        RowMutation::new(r.key.clone(), vec![Cell::delete(CellKind::DeleteFamily, QUARANTINE_FAMILY, "", r.written)])
    };
    catalog.store().mutate(QUARANTINE_TABLE, records.iter().map(marker).collect(), Durability::Relaxed).await
}

/// Takes the flag `degraded` off a definition that was found to say what its table says, unless something of it is in
/// quarantine; whether it was taken off.
///
/// # Errors
/// Those of the store.
pub async fn clear_degraded(catalog: &Catalog, table: &str, definition: &str) -> Result<bool> {
    let schema = catalog.table(table).await?;
    Ok(schema.definition(definition).is_some_and(|d| d.degraded) && clear(catalog, table, definition).await?)
}

async fn clear(catalog: &Catalog, table: &str, definition: &str) -> Result<bool> {
    if holds(catalog, table, definition).await? {
        return Ok(false);
    }
    let before = catalog.update(table, definition, |_| {}).await?;
    catalog
        .update(table, definition, |d| {
            (d.degraded, d.unverified) = (false, false);
            // Whatever version it was built by, it is what this one makes of its table.
            d.unicode = d.unicode.map(|_| Function::UNICODE);
        })
        .await?;
    // Something may have come in between; its record is written before its flag.
    if holds(catalog, table, definition).await? {
        let flags = (true, before.unverified);
        catalog.update(table, definition, |d| (d.degraded, d.unverified) = flags).await?;
        return Ok(false);
    }
    Ok(true)
}

/// Whether anything of a definition is in quarantine.
async fn holds(catalog: &Catalog, table: &str, definition: &str) -> Result<bool> {
    let schema = catalog.table(table).await?;
    let which = Which { index: Some(definition.to_owned()), ..Which::default() };
    Ok(!list(&**catalog.store(), &schema, &which, None, 1).await?.records.is_empty())
}
