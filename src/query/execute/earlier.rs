//! Whether a row was met before the place where a page starts, told from its values: pages need to remember no rows.

use super::found::BaseRow;
use crate::error::Result;
use crate::query::page::Place;
use crate::query::plan::{IndexPath, Path, Plan};

/// Whether some path finds a row at `place` or before it. A row that satisfies the query was returned there, if it has not
/// changed since.
pub(super) fn was_met(base: &BaseRow, plan: &Plan, place: &Place) -> Result<bool> {
    let Place::Read { path: number, key } = place else { return Ok(false) };
    let backwards = plan.sorting.is_reversed();
    for (i, path) in plan.paths().iter().enumerate().take(number + 1) {
        let passed = |one: &[u8]| match (i == *number, backwards) {
            (false, _) => true,
            (true, false) => one <= key.as_ref(),
            (true, true) => one >= key.as_ref(),
        };
        let met = match path {
            Path::Get(get) => get.keys.binary_search(&base.key).is_ok() && passed(&base.key),
            Path::Rows(rows) => rows.contains(&base.key) && passed(&base.key),
            // A row of another arm of an OR is left to the path of that arm.
            Path::Index(index) => base.satisfies(&index.residual)? && has_entry(base, index, &passed)?,
        };
        if met {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the row has an entry in the ranges of a path, among those passed.
fn has_entry(base: &BaseRow, index: &IndexPath, passed: &dyn Fn(&[u8]) -> bool) -> Result<bool> {
    let mut found = false;
    base.entries(index, &mut |key| {
        found |= passed(key) && index.ranges.iter().any(|range| range.contains(key));
        !found
    })?;
    Ok(found)
}
