//! Dropping a definition (DESIGN.md §7).
//!
//! Marked, it is no longer read nor kept; then its entries are removed, the candidates that only it needed, and what it has in
//! quarantine; its record goes last. All of it may be begun again: after a crash the mark stands, and the same call goes on
//! from there. Codes are never used again, so markers over what was theirs hide nothing that could come back.

use super::quarantine::{self, Which};
use crate::error::Result;
use crate::model::{Cell, CellKind, RowMutation, Timestamp};
use crate::schema::{Catalog, Code, Definition, entry, orphans, state};
use crate::store::{Durability, Scan};
use bytes::Bytes;
use std::collections::BTreeSet;

/// What was removed with a definition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Entries.
    pub entries: u64,
    /// Candidates of attributes that nothing else is made of.
    pub candidates: u64,
    /// Records of the quarantine.
    pub quarantined: u64,
}

/// Drops a definition, or goes on with one that is being dropped. Its name can be given to another afterwards. Queries that
/// read it fail when they notice.
///
/// # Errors
/// [`NotFound`](crate::error::ErrorKind::NotFound), and those of the store; the same call then goes on.
pub async fn drop_definition(
    catalog: &Catalog,
    table: &str,
    name: &str,
    mut progress: impl FnMut(Dropped),
) -> Result<Dropped> {
    let definition = catalog.begin_drop(table, name).await?;
    let schema = catalog.table(table).await?;
    let mut dropped = Dropped::default();
    for salt in 0..definition.salts {
        let scan = Scan::prefix(&entry::prefix(salt, definition.code, &[]));
        let mut scanner = catalog.store().scan(&schema.index_table(), scan).await?;
        loop {
            let page = scanner.next_page().await?;
            dropped.entries += page.rows.len() as u64;
            let markers = page.rows.into_iter().filter_map(|row| {
                let at = row.newest_timestamp()?;
                Some(RowMutation::new(row.key, vec![Cell::delete(CellKind::DeleteFamily, entry::FAMILY, "", at)]))
            });
            catalog.store().mutate(&schema.index_table(), markers.collect(), Durability::Relaxed).await?;
            progress(dropped);
            if page.done {
                break;
            }
        }
    }
    let codes: BTreeSet<Code> = orphans(&schema, &definition).into_iter().collect();
    if !codes.is_empty() {
        let mut scanner = catalog.store().scan(&schema.state_table(), Scan::all()).await?;
        loop {
            let page = scanner.next_page().await?;
            let markers: Vec<RowMutation> =
                page.rows.into_iter().filter_map(|row| forget(row.key, &row.cells, &codes)).collect();
            dropped.candidates += markers.iter().map(|m| m.cells.len() as u64).sum::<u64>();
            catalog.store().mutate(&schema.state_table(), markers, Durability::Relaxed).await?;
            progress(dropped);
            if page.done {
                break;
            }
        }
    }
    dropped.quarantined = empty_quarantine(catalog, table, &definition, &codes).await?;
    catalog.finish_drop(table, &definition).await?;
    Ok(dropped)
}

/// The markers on a state row's candidates of some attributes. One that can't be read is told by its qualifier, too.
fn forget(row: Bytes, cells: &[Cell], codes: &BTreeSet<Code>) -> Option<RowMutation> {
    let marker = |cell: &Cell| {
        let code = Code::from_be_bytes(cell.qualifier.get(..2)?.try_into().ok()?);
        let (qualifier, at): (Bytes, Timestamp) = (cell.qualifier.clone(), cell.timestamp);
        codes.contains(&code).then(|| Cell::delete(CellKind::DeleteColumn, state::FAMILY, qualifier, at))
    };
    let markers: Vec<Cell> = cells.iter().filter_map(marker).collect();
    (!markers.is_empty()).then(|| RowMutation::new(row, markers))
}

/// Removes what concerns nothing but the definition.
async fn empty_quarantine(
    catalog: &Catalog,
    table: &str,
    definition: &Definition,
    codes: &BTreeSet<Code>,
) -> Result<u64> {
    let schema = catalog.table(table).await?;
    let attributes = codes.iter().filter_map(|code| schema.attribute_by_code(*code)).map(|a| a.name.clone());
    let mut which: Vec<Which> = attributes.map(|name| Which { attribute: Some(name), ..Which::default() }).collect();
    which.push(Which { index: Some(definition.name.clone()), ..Which::default() });
    let mut removed = 0;
    for which in which {
        removed += quarantine::discard(catalog, table, &which).await?.dropped;
    }
    Ok(removed)
}
