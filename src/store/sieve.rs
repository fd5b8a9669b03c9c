//! Filters at work, row after row.

use super::Filter;
use crate::error::Result;
use crate::model::{Cell, Row};
use bytes::Bytes;

/// A filter on its way through a scan.
#[derive(Debug, Clone)]
pub(crate) struct Sieve {
    /// All of them must pass; none counts rows.
    filters: Vec<Filter>,
    /// How many rows may pass.
    page: Option<u64>,
    passed: u64,
}

/// What a key tells before its row is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The row may pass.
    Read,
    /// It doesn't.
    Skip,
    /// Neither does any up to this key.
    SkipTo(Bytes),
    /// Neither does any greater one.
    SkipAll,
}

impl Sieve {
    /// # Errors
    /// Those of [`Filter::check`].
    pub(crate) fn new(filter: &Filter) -> Result<Self> {
        filter.check()?;
        let (filters, page) = filter.split_page();
        Ok(Self { filters, page, passed: 0 })
    }

    /// What to do with the row of a key.
    pub(crate) fn step(&self, key: &[u8]) -> Step {
        self.filters.iter().map(|f| step(f, key)).max().unwrap_or(Step::Read)
    }

    /// Leaves the cells that pass.
    pub(crate) fn apply(&mut self, row: &mut Row) {
        let mut keep = vec![true; row.cells.len()];
        for filter in &self.filters {
            let kept = kept(filter, row);
            keep.iter_mut().zip(kept).for_each(|(all, one)| *all &= one);
        }
        if self.filters.iter().any(drops_values) {
            row.cells.iter_mut().for_each(|c| c.value = Bytes::new());
        }
        let mut keep = keep.into_iter();
        row.cells.retain(|_| keep.next().unwrap_or(false));
        self.passed += u64::from(!row.cells.is_empty());
    }

    /// Whether no further row can pass.
    pub(crate) fn is_over(&self) -> bool {
        self.page.is_some_and(|page| self.passed >= page)
    }

    /// Starts counting anew.
    pub(crate) fn restart(&mut self) {
        self.passed = 0;
    }
}

fn step(filter: &Filter, key: &[u8]) -> Step {
    match filter {
        Filter::Row { comparison, operand } if !comparison.accepts(key.cmp(operand.as_ref())) => Step::Skip,
        Filter::Fuzzy(keys) if !keys.iter().any(|k| k.fits(key)) => {
            keys.iter().filter_map(|k| k.next_after(key)).min().map_or(Step::SkipAll, Step::SkipTo)
        }
        Filter::All(list) => list.iter().map(|f| step(f, key)).max().unwrap_or(Step::Read),
        Filter::Any(list) => list.iter().map(|f| step(f, key)).min().unwrap_or(Step::Read),
        _ => Step::Read,
    }
}

/// For each cell of a row, whether it passes.
fn kept<'a>(filter: &Filter, row: &'a Row) -> Vec<bool> {
    let all = |passes: bool| vec![passes; row.cells.len()];
    match filter {
        Filter::Column(column) => all(column.accepts(row)),
        Filter::Row { .. } | Filter::Fuzzy(_) => all(step(filter, &row.key) == Step::Read),
        Filter::ColumnPrefix(prefixes) => {
            row.cells.iter().map(|c| prefixes.iter().any(|p| c.qualifier.starts_with(p))).collect()
        }
        Filter::ColumnPage { limit, offset } => {
            let mut column = 0;
            let mut last: Option<&'a Cell> = None;
            let keep = |cell: &'a Cell| {
                let another = |l: &Cell| (&l.family, &l.qualifier) != (&cell.family, &cell.qualifier);
                let newest = last.replace(cell).is_none_or(another);
                column += usize::from(newest);
                newest && column > *offset && column - *offset <= *limit
            };
            row.cells.iter().map(keep).collect()
        }
        Filter::FirstKeyOnly => (0..row.cells.len()).map(|i| i == 0).collect(),
        // A page is none of a sieve's filters.
        Filter::KeyOnly | Filter::Page(_) => all(true),
        Filter::All(list) => merge(list, row, true, |a, b| a & b),
        Filter::Any(list) => merge(list, row, false, |a, b| a | b),
    }
}

fn merge(list: &[Filter], row: &Row, start: bool, merge: fn(bool, bool) -> bool) -> Vec<bool> {
    list.iter().fold(vec![start; row.cells.len()], |all, filter| {
        all.into_iter().zip(kept(filter, row)).map(|(a, b)| merge(a, b)).collect()
    })
}

fn drops_values(filter: &Filter) -> bool {
    match filter {
        Filter::KeyOnly => true,
        Filter::All(list) => list.iter().any(drops_values),
        _ => false,
    }
}
