//! Paths: the ways to find the rows that may satisfy a predicate.

use crate::error::Result;
use crate::query::bind::Predicate;
use crate::schema::domain::{Edge, Interval, Side};
use crate::schema::{Definition, entry, term};
use crate::store::{ColumnFilter, Columns};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// One way to find rows. What it finds includes every row it stands for, and may include others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Path {
    /// Rows by their keys.
    Get(GetPath),
    /// Rows in ranges of keys.
    Rows(RowsPath),
    /// Rows by the entries of a definition.
    Index(IndexPath),
}

/// Rows by their keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GetPath {
    /// The keys: sorted, each once.
    pub(crate) keys: Vec<Bytes>,
    /// The condition that gives them.
    pub(crate) text: String,
}

/// Rows in ranges of keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowsPath {
    /// The first key of each range and the first after it: sorted, and apart from each other.
    pub(crate) ranges: Vec<(Option<Bytes>, Option<Bytes>)>,
    /// What is read of each row.
    pub(crate) columns: Columns,
    /// What the store lets through.
    pub(crate) filter: Option<ColumnFilter>,
    /// The condition the ranges stand for; none where the whole table has to be gone through.
    pub(crate) text: Option<String>,
}

impl RowsPath {
    /// What is left of the ranges after a row has been read, in the order of reading.
    pub(crate) fn after(&self, row: Option<&Bytes>, reversed: bool) -> Vec<(Option<Bytes>, Option<Bytes>)> {
        let Some(row) = row else { return self.ranges.clone() };
        let next = Bytes::from([row.as_ref(), &[0]].concat());
        let left = self.ranges.iter().map(|(start, stop)| {
            if reversed {
                let stop = stop.as_ref().map_or(row, |stop| stop.min(row));
                (start.clone(), Some(stop.clone()))
            } else {
                let start = start.as_ref().map_or(&next, |start| start.max(&next));
                (Some(start.clone()), stop.clone())
            }
        });
        left.filter(|(start, stop)| match (start, stop) {
            (Some(start), Some(stop)) => start < stop,
            (None, Some(stop)) => !stop.is_empty(),
            (_, None) => true,
        })
        .collect()
    }

    /// Whether a row is in one of the ranges.
    pub(crate) fn contains(&self, row: &Bytes) -> bool {
        let inside = |(start, stop): &(Option<Bytes>, Option<Bytes>)| {
            start.as_ref().is_none_or(|start| start <= row) && stop.as_ref().is_none_or(|stop| row < stop)
        };
        self.ranges.iter().any(inside)
    }
}

/// The range of row keys of an interval.
pub(crate) fn row_range(interval: &Interval) -> (Option<Bytes>, Option<Bytes>) {
    let edge = |edge: &Edge| match edge {
        Edge::Start | Edge::End => None,
        Edge::At(key, Side::Below) => Some(key.clone()),
        Edge::At(key, Side::Above) => Some(Bytes::from([key.as_ref(), &[0]].concat())),
    };
    (edge(&interval.from), edge(&interval.to))
}

/// Rows by the entries of a definition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexPath {
    /// The definition.
    pub(crate) definition: Arc<Definition>,
    /// Where its terms are in [`Plan::slots`](super::Plan::slots).
    pub(crate) terms: Vec<usize>,
    /// Where its covered columns are there.
    pub(crate) covered: Vec<usize>,
    /// What a row must satisfy to have entries; true where the definition is not partial.
    pub(crate) filter: Predicate,
    /// Where its entries are: sorted, and apart from each other.
    pub(crate) ranges: Vec<EntryRange>,
    /// So many leading terms have one and the same value in all entries read.
    pub(crate) fixed: usize,
    /// So many leading terms are restricted by the ranges; they are never null there.
    pub(crate) restricted: usize,
    /// The conditions the ranges stand for.
    pub(crate) text: String,
    /// What a row must satisfy beyond the conditions the ranges stand for.
    pub(crate) residual: Predicate,
}

impl IndexPath {
    /// Whether no two entries can be of one row.
    pub(crate) fn is_distinct(&self) -> bool {
        self.fixed == self.terms.len()
    }
}

/// A range of entry keys, the salt left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryRange {
    /// The salts it is read under.
    pub(crate) salts: Range<u8>,
    start: Vec<u8>,
    stop: Option<Vec<u8>>,
}

impl EntryRange {
    /// The entries whose terms start with `terms`, a list of key forms that is not empty.
    pub(crate) fn prefix(definition: &Definition, terms: &[u8]) -> Self {
        let start = key(definition, terms);
        let stop = entry::after_prefix(&start);
        Self { salts: salts(definition, terms), start, stop }
    }

    /// The entries whose terms start with `terms`, key forms of leading terms, and go on with one of an interval of whole
    /// terms; nulls are left out. Near an edge whose value is cut in the keys, entries beside the interval are among them; whether
    /// that may be so is told.
    ///
    /// # Errors
    /// [`Corrupt`](crate::error::ErrorKind::Corrupt) when an edge is no whole term.
    pub(crate) fn interval(
        definition: &Definition,
        terms: &[u8],
        place: usize,
        interval: &Interval,
    ) -> Result<(Self, bool)> {
        let shape = definition.shape(place);
        let (low, high) =
            if shape.descending { (&interval.to, &interval.from) } else { (&interval.from, &interval.to) };
        // Null is below all values, above them where they descend, and satisfies no condition.
        let (first, last) = if shape.descending {
            (key(definition, terms), Some(key(definition, &[terms, &[!term::NULL]].concat())))
        } else {
            (key(definition, &[terms, &[term::NULL + 1]].concat()), entry::after_prefix(&key(definition, terms)))
        };
        // Whether an edge is on the near side of its value, as keys are read.
        let is_before = |side: Side| (side == Side::Below) != shape.descending;
        let beside = |value: &Bytes| -> Result<(Vec<u8>, bool)> {
            let (form, is_wide) = shape.reach(value)?;
            Ok((key(definition, &[terms, form.as_ref()].concat()), is_wide))
        };
        let mut any_wide = false;
        let start = match low {
            Edge::Start | Edge::End => first,
            Edge::At(value, side) => {
                let (at, is_wide) = beside(value)?;
                any_wide |= is_wide;
                // There is always a key after an encoded value, whose type byte is not 0xFF.
                if is_wide || is_before(*side) { at } else { entry::after_prefix(&at).unwrap_or_default() }
            }
        };
        let stop = match high {
            Edge::Start | Edge::End => last,
            Edge::At(value, side) => {
                let (at, is_wide) = beside(value)?;
                any_wide |= is_wide;
                if !is_wide && is_before(*side) { Some(at) } else { entry::after_prefix(&at) }
            }
        };
        Ok((Self { salts: salts(definition, terms), start, stop }, any_wide))
    }

    /// Ranges of one prefix in the order of the keys, those that overlap as one.
    pub(crate) fn joined(ranges: Vec<Self>) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match joined.last_mut() {
                Some(last) if last.stop.as_ref().is_none_or(|stop| range.start < *stop) => {
                    last.stop = last.stop.take().zip(range.stop).map(|(a, b)| a.max(b));
                }
                _ => joined.push(range),
            }
        }
        joined
    }

    /// What is left of the range after an entry has been read; `key` is the entry's without its salt.
    pub(crate) fn after(&self, key: &[u8], reversed: bool) -> Option<Self> {
        let mut left = self.clone();
        if reversed {
            if self.stop.as_deref().is_none_or(|stop| key < stop) {
                left.stop = Some(key.to_vec());
            }
        } else if self.start.as_slice() <= key {
            left.start = [key, &[0]].concat();
        }
        left.stop.as_ref().is_none_or(|stop| left.start < *stop).then_some(left)
    }

    /// Whether an entry is in the range; `key` is the entry's without its salt.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && self.stop.as_deref().is_none_or(|stop| key < stop)
    }

    /// Its first key under a salt, and the first key after it.
    pub(crate) fn bounds(&self, salt: u8) -> (Bytes, Option<Bytes>) {
        let salted = |key: &Vec<u8>| Bytes::from([&[salt], key.as_slice()].concat());
        let stop = match &self.stop {
            Some(stop) => Some(salted(stop)),
            None => salt.checked_add(1).map(|next| Bytes::from(vec![next])),
        };
        (salted(&self.start), stop)
    }
}

fn key(definition: &Definition, terms: &[u8]) -> Vec<u8> {
    entry::prefix(0, definition.code, terms).split_off(1)
}

/// The salts of entries whose terms start with `terms`.
fn salts(definition: &Definition, terms: &[u8]) -> Range<u8> {
    if definition.ordered {
        return 0..definition.salts.max(1);
    }
    // The terms are encoded by the binder, so the first has a length; a whole list is hashed otherwise.
    let first = definition.shape(0).len(terms).map_or(terms, |len| &terms[..len]);
    let salt = entry::salt(definition, first, &[]);
    salt..salt + 1
}

/// A way to find rows that may be put together from several paths.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Access {
    /// No row can satisfy the predicate.
    Nothing,
    /// The path of this number.
    Path(usize),
    /// All of these, one after the other; each may be found in one of several ways.
    Union(Vec<Vec<Access>>),
}
