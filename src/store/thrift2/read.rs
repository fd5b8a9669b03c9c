//! From what to read to calls, and from results to rows.

use super::filter;
use super::gateway::{TColumn, TColumnValue, TGet, TResult, TScan};
use crate::error::{Error, Result};
use crate::model::{Cell, CellKind, Row};
use crate::store::sieve::Sieve;
use crate::store::{Columns, Filter, ReadSpec, Scan, TableDescriptor, rules};
use bytes::Bytes;
use std::collections::BTreeMap;

/// A result holds at most so many cells of a row; more come in the next.
pub(super) const RESULT_CELLS: usize = 10_000;

/// What the server reads, and what is left to do here.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    columns: Option<Vec<TColumn>>,
    max_versions: i32,
    raw: bool,
    /// What the server leaves out.
    pushed: Option<Filter>,
    /// What is left out here.
    sieve: Option<Sieve>,
    /// With a raw read of columns: the families and columns to keep. HBase's raw scans take no columns.
    raw_columns: Option<Vec<(Bytes, Bytes)>>,
    /// Whether there is nothing to read: exact columns, and none of them.
    pub(super) nothing: bool,
}

impl Plan {
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for columns of an unknown family, 0 versions or a filter that
    /// cannot be.
    pub(super) fn new(table: &TableDescriptor, spec: &ReadSpec, reversed: bool) -> Result<Self> {
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
        let (pushed, kept) = filter.map_or((None, None), |f| divide(f, reversed));
        let nothing = exact.as_ref().is_some_and(Vec::is_empty);
        let columns = exact.as_ref().filter(|_| !spec.raw).map(|columns| {
            columns.iter().map(|(family, qualifier)| TColumn::new(family.to_vec(), qualifier.to_vec(), None)).collect()
        });
        Ok(Self {
            columns,
            max_versions: if spec.raw { i32::MAX } else { i32::try_from(spec.max_versions).unwrap_or(i32::MAX) },
            raw: spec.raw,
            pushed,
            sieve: kept.as_ref().map(Sieve::new).transpose()?,
            raw_columns: exact.filter(|_| spec.raw),
            nothing,
        })
    }

    pub(super) fn is_raw(&self) -> bool {
        self.raw
    }

    /// A get of one row.
    pub(super) fn get(&self, key: &[u8]) -> TGet {
        let filter = self.pushed.as_ref().map(filter::encode);
        TGet::new(key.to_vec(), self.columns.clone(), None, self.max_versions, None, None, filter)
    }

    /// A scan between two keys in the order the server reads them; `start` is included, `stop` is not.
    pub(super) fn scan(&self, start: &[u8], stop: &[u8], reversed: bool, caching: usize) -> TScan {
        let attributes = self.raw.then(|| BTreeMap::from([(b"_raw_".to_vec(), vec![0xff])]));
        // The server refuses parts of rows under filters that look at whole rows.
        let batch = self.pushed.is_none().then_some(RESULT_CELLS as i32);
        let filter = self.pushed.as_ref().map(filter::encode);
        let caching = i32::try_from(caching).unwrap_or(i32::MAX);
        TScan::new(
            start.to_vec(),
            stop.to_vec(),
            self.columns.clone(),
            caching,
            self.max_versions,
            None,
            batch,
            attributes,
            reversed,
            None,
            None,
            filter,
        )
    }

    /// Whether a result with so many cells is the last of its row.
    pub(super) fn is_last_part(&self, cells: usize) -> bool {
        self.pushed.is_some() || cells < RESULT_CELLS
    }

    /// Whether no further row can pass.
    pub(super) fn is_over(&self) -> bool {
        self.sieve.as_ref().is_some_and(Sieve::is_over)
    }

    /// What is left of a row after what is done here.
    pub(super) fn finish(&mut self, row: &mut Row) {
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
fn divide(filter: &Filter, reversed: bool) -> (Option<Filter>, Option<Filter>) {
    if contains(filter, |f| matches!(f, Filter::Fuzzy(_))) {
        let (members, _) = filter.split_page();
        let fuzzy = members.into_iter().find(|f| matches!(f, Filter::Fuzzy(_)));
        return (fuzzy.filter(|_| !reversed), Some(filter.clone()));
    }
    if reversed && contains(filter, |f| matches!(f, Filter::Column(_))) {
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

fn contains(filter: &Filter, is_it: fn(&Filter) -> bool) -> bool {
    match filter {
        Filter::All(list) | Filter::Any(list) => list.iter().any(|f| contains(f, is_it)),
        one => is_it(one),
    }
}

/// The bounds of a scan as the server takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Where the server begins.
    pub(super) from: Vec<u8>,
    /// Where it ends.
    pub(super) to: Vec<u8>,
    low: Bytes,
    high: Option<Bytes>,
}

impl Bounds {
    /// None for a range that is empty.
    pub(super) fn new(scan: &Scan) -> Option<Self> {
        let low = scan.start.clone().unwrap_or_default();
        let high = scan.stop.clone();
        // Longer than any key: the server would refuse it.
        let cut = |key: &[u8]| key[..key.len().min(rules::ROW_KEY_LIMIT)].to_vec();
        if high.as_ref().is_some_and(|high| *high <= low) {
            return None;
        }
        let (from, to) = if scan.reversed {
            (high.as_deref().map(&cut).unwrap_or_default(), cut(&before(&low)))
        } else {
            (cut(&low), high.as_deref().map(|high| above(high, &cut)).unwrap_or_default())
        };
        Some(Self { from, to, low, high })
    }

    /// Whether a key is in the range. The server's may be wider.
    pub(super) fn hold(&self, key: &[u8]) -> bool {
        key >= self.low.as_ref() && self.high.as_ref().is_none_or(|high| key < high.as_ref())
    }

    /// Goes on after a row, which was the last one read.
    pub(super) fn resume_after(&mut self, key: &[u8], reversed: bool) {
        if reversed {
            self.high = Some(Bytes::copy_from_slice(key));
            self.from = key.to_vec();
        } else {
            self.low = [key, &[0]].concat().into();
            self.from = self.low.to_vec();
            self.from.truncate(rules::ROW_KEY_LIMIT);
        }
    }
}

/// An upper bound the server takes, at or above a key of any length.
fn above(key: &[u8], cut: &impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    if key.len() <= rules::ROW_KEY_LIMIT {
        return key.to_vec();
    }
    // Rows between the cut key and the key are told apart by `hold`; the next key of full length is above all of them.
    let mut bound = cut(key);
    while let Some(last) = bound.pop() {
        if last < u8::MAX {
            bound.push(last + 1);
            break;
        }
    }
    bound
}

/// A key below another, and above or at all that are much below it: the server's stop of a reversed scan is not included.
fn before(key: &[u8]) -> Vec<u8> {
    match key.split_last() {
        None => Vec::new(),
        Some((0, rest)) => rest.to_vec(),
        Some((last, rest)) => [rest, &[last - 1], &[u8::MAX; 9]].concat(),
    }
}

/// A row's cells out of a result.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for a cell that cannot be.
pub(super) fn cells(result: TResult) -> Result<Vec<Cell>> {
    let cell = |c: TColumnValue| {
        let kind = match c.type_ {
            None => CellKind::Put,
            Some(code) => CellKind::from_code(code.cast_unsigned())
                .ok_or_else(|| Error::corrupt(format!("expected a cell of type 4, 8, 10, 12 or 14, found {code}")))?,
        };
        let timestamp = c.timestamp.ok_or_else(|| Error::corrupt("expected a cell with a timestamp, found none"))?;
        Ok(Cell { family: c.family.into(), qualifier: c.qualifier.into(), timestamp, kind, value: c.value.into() })
    };
    result.column_values.into_iter().map(cell).collect()
}
