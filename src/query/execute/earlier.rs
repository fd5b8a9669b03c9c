//! Whether a row was met before the place where a page starts, told from its values: pages need to remember no rows.

use super::found::BaseRow;
use crate::error::Result;
use crate::query::page::Place;
use crate::query::plan::{IndexPath, Path, Plan};
use bytes::Bytes;

/// Whether some path finds a row at `place` or before it. A row that satisfies the query was returned there, if it has not
/// changed since.
pub(super) fn was_met(base: &BaseRow, plan: &Plan, place: &Place) -> Result<bool> {
    let Place::Read { path: number, key } = place else { return Ok(false) };
    for (i, path) in plan.paths().iter().enumerate().take(number + 1) {
        let until = (i == *number).then_some(key);
        let met = match path {
            Path::Get(get) => get.keys.binary_search(&base.key).is_ok() && until.is_none_or(|key| base.key <= *key),
            Path::Rows(rows) => rows.contains(&base.key) && until.is_none_or(|key| base.key <= *key),
            Path::Index(index) => has_entry(base, index, until)?,
        };
        if met {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the row has an entry in the ranges of a path, up to a place.
fn has_entry(base: &BaseRow, index: &IndexPath, until: Option<&Bytes>) -> Result<bool> {
    let mut found = false;
    base.entries(index, &mut |key| {
        let before = until.is_none_or(|until| key <= until.as_ref());
        found |= before && index.ranges.iter().any(|range| range.contains(key));
        !found
    })?;
    Ok(found)
}
