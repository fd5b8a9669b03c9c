//! Where HBase does not keep its own rules, each by name. What is left out here is left out of the histories.

use crate::history::filters_of;
use bytes::Bytes;
use sideindex::model::{Cell, RowMutation};
use sideindex::store::{Filter, ReadSpec};
use std::collections::HashSet;

/// `empty-qualifier-under-family-marker` (HBASE-HFILE.md, 2.6.1): where a row holds a cell with an empty qualifier newer than a
/// family marker, HBase often skips that marker, and shows what it hides. So rows get the one or the other, never both.
pub fn empty_qualifier_under_family_marker(mutations: &mut [RowMutation]) {
    let marked: HashSet<_> = mutations
        .iter()
        .flat_map(|m| m.cells.iter().filter(|c| c.kind.is_family_wide()).map(|c| (m.row.clone(), c.family.clone())))
        .collect();
    for mutation in mutations {
        let row = mutation.row.clone();
        let troubles = |c: &Cell| !c.kind.is_family_wide() && c.qualifier.is_empty();
        mutation.cells.retain(|c| !(troubles(c) && marked.contains(&(row.clone(), c.family.clone()))));
    }
}

/// `empty-qualifier-counts-each-version` (2.6.1): told by a filter to go on with the next column, HBase goes on with the next
/// version where the qualifier is empty (since HBASE-18471), and a column page counts each. So a history has the one or the other.
pub fn empty_qualifier_counts_each_version<'a>(
    seed: u64,
    mutations: &mut [RowMutation],
    reads: impl Iterator<Item = &'a mut ReadSpec>,
) {
    if seed.is_multiple_of(3) {
        for mutation in mutations {
            mutation.cells.retain(|c| c.kind.is_family_wide() || !c.qualifier.is_empty());
        }
        return;
    }
    for filter in reads.flat_map(|spec| &mut spec.filter) {
        filters_of(filter, &mut |f| {
            if matches!(f, Filter::ColumnPage { .. }) {
                *f = Filter::FirstKeyOnly;
            }
        });
    }
}

/// `sum-under-a-future-marker` (2.6.1): a sum that a marker ahead of the clock hides is written all the same; the embedded store
/// refuses. So rows have the one or the other.
pub fn sum_under_a_future_marker(counters: &HashSet<(Bytes, Bytes)>, mutations: &mut [RowMutation]) {
    for mutation in mutations {
        let row = mutation.row.clone();
        let ahead = |c: &Cell| c.kind.is_family_wide() && c.timestamp > 1 << 32;
        mutation.cells.retain(|c| !(ahead(c) && counters.contains(&(row.clone(), c.family.clone()))));
    }
}
