//! What of a row can be removed for good.
//!
//! Cells are removed row by row, each row in one batch, by the committer: no reader sees, and no crash leaves, a row without
//! its markers but with what they hid.

use super::batch::Batch;
use super::cells;
use super::key;
use super::plan::Plan;
use super::resolve::Effect;
use super::row::RowBuilder;
use super::tables::Table;
use crate::error::Result;
use crate::store::ReadSpec;
use bytes::Bytes;
use fjall::{Readable, Snapshot};
use std::ops::Bound;

/// How much is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// What HBase's major compaction removes: all that no read shows, markers included.
    Everything,
    /// What markers hide, and markers that another one makes needless. No read changes, whatever is written later.
    Hidden,
}

/// Rows with something to remove, from one stretch of a table.
pub(super) struct Stretch {
    /// The prefix of each row's keys.
    pub(super) dirty: Vec<Bytes>,
    /// Rows looked at.
    pub(super) rows: u64,
    /// Where the next stretch starts; none at the end of the table.
    pub(super) next: Option<Vec<u8>>,
}

/// Cells looked at in one stretch, more or less one row.
const STRETCH_CELLS: u64 = 20_000;

fn builder(table: &Table) -> Result<RowBuilder> {
    Ok(RowBuilder::new(Plan::new(table, &ReadSpec { max_versions: u32::MAX, ..ReadSpec::default() })?))
}

impl Extent {
    fn removes(self, (effect, read): (Effect, bool)) -> bool {
        match self {
            Self::Everything => !read,
            Self::Hidden => matches!(effect, Effect::Hidden | Effect::Superseded),
        }
    }
}

/// Finds rows with something to remove by a compaction.
pub(super) fn survey(snapshot: &Snapshot, table: &Table, start: Vec<u8>) -> Result<Stretch> {
    let mut stretch = Stretch { dirty: Vec::new(), rows: 0, next: None };
    let mut builder = builder(table)?;
    let mut row: Option<Bytes> = None;
    let mut examined = 0;
    let mut cells = snapshot.range::<Vec<u8>, _>(&table.keyspace, (Bound::Included(start), Bound::Unbounded));
    while let Some(key) = cells::key(cells.next())? {
        if row.as_ref().is_none_or(|prefix| !key.starts_with(prefix)) {
            if examined >= STRETCH_CELLS {
                stretch.next = Some(key.to_vec());
                break;
            }
            builder.finish();
            builder.start(&key)?;
            row = Some(key::split_row(&key)?.0);
            stretch.rows += 1;
        }
        examined += 1;
        if Extent::Everything.removes(builder.push(&key, Bytes::new())?)
            && let Some(prefix) = &row
            && stretch.dirty.last() != Some(prefix)
        {
            stretch.dirty.push(prefix.clone());
        }
    }
    Ok(stretch)
}

/// Removes what can be removed of the row with this prefix, as it is committed; how many cells.
pub(super) fn row(batch: &mut Batch<'_>, table: &Table, prefix: &Bytes, extent: Extent) -> Result<u64> {
    let mut end = prefix.to_vec();
    key::after_run(&mut end);
    let mut builder = builder(table)?;
    builder.start(prefix)?;
    let mut gone = Vec::new();
    let mut cells = batch.committed().range::<Vec<u8>, _>(&table.keyspace, prefix.to_vec()..end);
    while let Some(key) = cells::key(cells.next())? {
        if extent.removes(builder.push(&key, Bytes::new())?) {
            gone.push(key);
        }
    }
    let count = gone.len() as u64;
    gone.into_iter().for_each(|key| batch.remove(table, key));
    Ok(count)
}
