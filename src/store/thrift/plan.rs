//! What is read of the rows, divided between the server and this side.

use crate::error::{Error, Result};
use crate::model::Row;
use crate::store::sieve::{Sieve, Step};
use crate::store::{Columns, Filter, ReadSpec, TableDescriptor, rules};
use bytes::Bytes;

/// A result holds at most so many cells of a row; more come in the next.
pub(in crate::store) const RESULT_CELLS: usize = 10_000;

/// What the server reads, and what is left to do here.
#[derive(Debug, Clone)]
pub(in crate::store) struct Plan {
    pub(in crate::store) columns: Option<Vec<(Bytes, Bytes)>>,
    pub(in crate::store) max_versions: i32,
    pub(in crate::store) raw: bool,
    /// What the server leaves out.
    pub(in crate::store) pushed: Option<Filter>,
    /// What is left out here.
    sieve: Option<Sieve>,
    /// With a raw read of columns: the families and columns to keep. HBase's raw scans take no columns.
    raw_columns: Option<Vec<(Bytes, Bytes)>>,
    /// Whether there is nothing to read: exact columns, and none of them.
    pub(in crate::store) nothing: bool,
}

impl Plan {
    /// Filters for which `pushes` holds, with all that are in their list, go to the server.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for columns of an unknown family, 0 versions or a filter that
    /// cannot be.
    pub(in crate::store) fn new(
        table: &TableDescriptor,
        spec: &ReadSpec,
        pushes: fn(&Filter) -> bool,
        reversed: bool,
    ) -> Result<Self> {
        if spec.max_versions == 0 {
            return Err(Error::invalid("expected at least 1 version, found 0"));
        }
        let exact = match &spec.columns {
            Columns::All => None,
            Columns::Exact(columns) => Some(columns.clone()),
        };
        for (family, _) in exact.iter().flatten() {
            rules::check_family(table, family)?;
        }
        let filter = spec.filter.as_ref().filter(|_| !spec.raw);
        if let Some(filter) = &spec.filter {
            filter.check()?;
        }
        let (pushed, kept) = filter.map_or((None, None), |f| divide(f, pushes, reversed));
        let nothing = exact.as_ref().is_some_and(Vec::is_empty);
        Ok(Self {
            columns: exact.clone().filter(|_| !spec.raw),
            max_versions: if spec.raw { i32::MAX } else { i32::try_from(spec.max_versions).unwrap_or(i32::MAX) },
            raw: spec.raw,
            pushed,
            sieve: kept.as_ref().map(Sieve::new).transpose()?,
            raw_columns: exact.filter(|_| spec.raw),
            nothing,
        })
    }

    /// The keys to ask for: there is no row of a key that no row can have.
    pub(in crate::store) fn possible(&self, keys: &[Bytes]) -> Vec<Bytes> {
        keys.iter().filter(|k| !self.nothing && rules::check_row_key(k).is_ok()).cloned().collect()
    }

    /// Whether a result with so many cells is the last of its row.
    pub(in crate::store) fn is_last_part(&self, cells: usize) -> bool {
        self.pushed.is_some() || cells < RESULT_CELLS
    }

    /// Whether no further row can pass.
    pub(in crate::store) fn is_over(&self) -> bool {
        self.sieve.as_ref().is_some_and(Sieve::is_over)
    }

    /// Where rows that may pass begin again after one, as far as keys tell; none if they may right there.
    pub(super) fn skips(&self, key: &[u8]) -> Option<Step> {
        let step = self.sieve.as_ref()?.step(key);
        matches!(step, Step::SkipTo(_) | Step::SkipAll).then_some(step)
    }

    /// What is left of a row after what is done here.
    pub(in crate::store) fn finish(&mut self, row: &mut Row) {
        if let Some(columns) = &self.raw_columns {
            row.cells.retain(|cell| {
                columns.iter().any(|(family, qualifier)| {
                    *family == cell.family && (cell.kind.is_family_wide() || *qualifier == cell.qualifier)
                })
            });
        }
        if let Some(sieve) = &mut self.sieve {
            sieve.apply(row);
        }
    }
}

/// What the server filters, and what is filtered here.
///
/// * The fuzzy filter is sent alone and never in a reversed scan, and what it gives is tested again: the server takes keys that
///   are shorter than the pattern.
/// * A filter by a column lets the server read the other families later, which it refuses in a reversed scan.
/// * Pages are counted here: the server counts for each region.
fn divide(filter: &Filter, pushes: fn(&Filter) -> bool, reversed: bool) -> (Option<Filter>, Option<Filter>) {
    if contains(filter, &|f| !pushes(f)) {
        return (None, Some(filter.clone()));
    }
    if contains(filter, &|f| matches!(f, Filter::Fuzzy(_))) {
        let (members, _) = filter.split_page();
        let fuzzy = members.into_iter().find(|f| matches!(f, Filter::Fuzzy(_)));
        return (fuzzy.filter(|_| !reversed), Some(filter.clone()));
    }
    if reversed && contains(filter, &|f| matches!(f, Filter::Column(_))) {
        return (None, Some(filter.clone()));
    }
    match filter.split_page() {
        (_, None) => (Some(filter.clone()), None),
        (mut rest, Some(rows)) => {
            // A reversed scan begins with a row that is not asked for.
            rest.push(Filter::Page(rows.saturating_add(u64::from(reversed))));
            (Some(Filter::All(rest)), Some(Filter::Page(rows)))
        }
    }
}

/// Whether a filter, or one of its list, is such.
fn contains(filter: &Filter, is_it: &impl Fn(&Filter) -> bool) -> bool {
    match filter {
        Filter::All(list) | Filter::Any(list) => list.iter().any(|f| contains(f, is_it)),
        one => is_it(one),
    }
}
