//! Filters the store applies. They are HBase's own, and mean what they mean there.

use crate::error::{Error, Result};
use crate::model::Row;
use bytes::Bytes;
use std::cmp::Ordering;

/// How a cell's bytes are compared, by `memcmp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// The cell is less than the operand.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Greater or equal.
    GreaterOrEqual,
    /// The cell is greater than the operand.
    Greater,
}

impl Comparison {
    /// How it is written, in SQL and in the filters of a Thrift 1 gateway.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::GreaterOrEqual => ">=",
            Self::Greater => ">",
        }
    }

    /// Whether an ordering satisfies the comparison.
    pub fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Greater => ordering.is_gt(),
        }
    }
}

/// What a read leaves out. A row of which no cell is left is left out as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Rows by the newest value of a column: `SingleColumnValueFilter`.
    Column(ColumnFilter),
    /// Rows by their key: `RowFilter` with a `BinaryComparator`.
    Row {
        /// How the key is compared.
        comparison: Comparison,
        /// What it is compared with.
        operand: Bytes,
    },
    /// Rows whose key fits one of several patterns: `FuzzyRowFilter`.
    Fuzzy(Vec<FuzzyKey>),
    /// Columns whose qualifier starts with one of these: `ColumnPrefixFilter`, `MultipleColumnPrefixFilter`.
    ColumnPrefix(Vec<Bytes>),
    /// Of the columns of a row, the newest version of `limit`, after `offset` others: `ColumnPaginationFilter`.
    ColumnPage {
        /// So many columns at most.
        limit: usize,
        /// After so many others.
        offset: usize,
    },
    /// The first cell of a row: `FirstKeyOnlyFilter`.
    FirstKeyOnly,
    /// Cells without their values: `KeyOnlyFilter`.
    KeyOnly,
    /// The first so many rows of a scan: `PageFilter`. A store of several regions may give so many of each; whoever counts
    /// stops by itself.
    Page(u64),
    /// What passes all: `FilterList` with `MUST_PASS_ALL`.
    All(Vec<Filter>),
    /// What passes one at least: `FilterList` with `MUST_PASS_ONE`.
    Any(Vec<Filter>),
}

impl Filter {
    /// Whether all stores give the same answer. HBase's server steps over cells as some filters tell it to, and what stands
    /// beside them in a list doesn't see those cells. What depends on that is refused:
    ///
    /// * At most one of [`ColumnPrefix`](Self::ColumnPrefix), [`ColumnPage`](Self::ColumnPage) and
    ///   [`FirstKeyOnly`](Self::FirstKeyOnly), and no [`Column`](Self::Column) beside it.
    /// * Under [`Any`](Self::Any), none but [`Column`](Self::Column), [`Row`](Self::Row), [`Fuzzy`](Self::Fuzzy),
    ///   [`ColumnPrefix`](Self::ColumnPrefix) and lists.
    /// * [`Page`](Self::Page) alone, or last in a list of [`All`](Self::All) that is not part of another.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput), also for lists of nothing.
    pub fn check(&self) -> Result<()> {
        let (rest, _) = self.split_page();
        let mut seen = Seen::default();
        rest.iter().try_for_each(|f| f.survey(false, &mut seen))?;
        if seen.by_cell > 1 || (seen.by_cell == 1 && seen.by_column) {
            return Err(Error::invalid(
                "expected one filter at most that leaves out cells, and no column filter beside it, found both in one list",
            ));
        }
        if matches!(self, Self::All(list) if list.is_empty()) {
            return Err(nothing("a list of filters"));
        }
        Ok(())
    }

    /// Prefixes of a column filter, sorted, without those that begin with another: HBase's server looks at the nearest one only,
    /// and would miss what begins with a shorter one.
    pub(crate) fn shortest_prefixes(prefixes: &[Bytes]) -> Vec<Bytes> {
        let mut sorted = prefixes.to_vec();
        sorted.sort();
        sorted.dedup_by(|prefix, before| prefix.starts_with(before));
        sorted
    }

    /// The filters that must all pass, and how many rows may.
    pub(crate) fn split_page(&self) -> (Vec<Self>, Option<u64>) {
        match self {
            Self::Page(rows) => (Vec::new(), Some(*rows)),
            Self::All(list) => match list.split_last() {
                Some((Self::Page(rows), rest)) => (rest.to_vec(), Some(*rows)),
                _ => (list.clone(), None),
            },
            one => (vec![one.clone()], None),
        }
    }

    fn survey(&self, in_any: bool, seen: &mut Seen) -> Result<()> {
        match self {
            Self::Column(_) => seen.by_column = true,
            Self::Row { .. } => {}
            Self::Fuzzy(keys) if keys.is_empty() => return Err(nothing("a fuzzy filter")),
            Self::Fuzzy(_) => {}
            Self::ColumnPrefix(prefixes) if prefixes.is_empty() => return Err(nothing("a column prefix filter")),
            Self::ColumnPrefix(_) => seen.by_cell += 1,
            Self::Page(_) => {
                return Err(Error::invalid(
                    "expected a page filter alone or last in a list of all, found it elsewhere",
                ));
            }
            Self::ColumnPage { .. } | Self::FirstKeyOnly | Self::KeyOnly if in_any => {
                return Err(Error::invalid(format!(
                    "expected filters by key or column in a list of any, found {self:?}"
                )));
            }
            Self::ColumnPage { .. } | Self::FirstKeyOnly => seen.by_cell += 1,
            Self::KeyOnly => {}
            Self::All(list) | Self::Any(list) if list.is_empty() => return Err(nothing("a list of filters")),
            Self::All(list) => list.iter().try_for_each(|f| f.survey(in_any, seen))?,
            Self::Any(list) => list.iter().try_for_each(|f| f.survey(true, seen))?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct Seen {
    /// Filters that leave out cells.
    by_cell: usize,
    by_column: bool,
}

fn nothing(what: &str) -> Error {
    Error::invalid(format!("expected something in {what}, found nothing"))
}

/// A pattern of row keys: some bytes are fixed, others may be any. A longer key fits if its start does; a shorter one may be
/// given where it fits as far as it goes, so what comes is to be tested again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FuzzyKey {
    pattern: Bytes,
    mask: Bytes,
}

impl FuzzyKey {
    /// In a mask: this byte is fixed.
    pub const FIXED: u8 = 0xff;
    /// In a mask: this byte may be any.
    pub const ANY: u8 = 0x02;

    /// A pattern with its mask, HBase's second version of it. The pattern's bytes at places that may be any don't count.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for an empty pattern, a mask of another length or of other bytes.
    pub fn new(pattern: &[u8], mask: impl Into<Bytes>) -> Result<Self> {
        let mask = mask.into();
        if pattern.is_empty() || pattern.len() != mask.len() {
            return Err(Error::invalid(format!(
                "expected a pattern and a mask of one length of at least 1, found {} and {} bytes",
                pattern.len(),
                mask.len()
            )));
        }
        if let Some(byte) = mask.iter().find(|b| **b != Self::FIXED && **b != Self::ANY) {
            return Err(Error::invalid(format!("expected 0xff (fixed) or 0x02 (any) in a mask, found 0x{byte:02x}")));
        }
        // The server wants zeros there.
        let pattern = pattern.iter().zip(&mask).map(|(p, m)| if *m == Self::FIXED { *p } else { 0 }).collect();
        Ok(Self { pattern, mask })
    }

    /// The bytes, zero where any will do.
    pub fn pattern(&self) -> &Bytes {
        &self.pattern
    }

    /// [`Self::FIXED`] or [`Self::ANY`] for each byte.
    pub fn mask(&self) -> &Bytes {
        &self.mask
    }

    /// Whether a key fits, as far as it goes.
    pub fn fits(&self, key: &[u8]) -> bool {
        self.mismatch(key).is_none()
    }

    /// The first fixed byte that is another one.
    fn mismatch(&self, key: &[u8]) -> Option<usize> {
        let differs = |i: &usize| self.mask[*i] == Self::FIXED && self.pattern[*i] != key[*i];
        (0..self.pattern.len().min(key.len())).find(differs)
    }

    /// Where the keys that fit start again after one that doesn't: all keys from that one on to the next that fits are below
    /// it. None if no greater key fits.
    pub fn next_after(&self, key: &[u8]) -> Option<Bytes> {
        let at = self.mismatch(key)?;
        if key[at] < self.pattern[at] {
            return Some([&key[..at], &[self.pattern[at]]].concat().into());
        }
        // Too large already: a byte before it that may be any has to go up.
        let raised = (0..at).rev().find(|i| self.mask[*i] == Self::ANY && key[*i] < u8::MAX)?;
        Some([&key[..raised], &[key[raised] + 1]].concat().into())
    }
}

/// Keeps rows whose newest value of a column compares so with an operand. A row without the column is dropped
/// (`filterIfMissing`); only the newest version is looked at (`latestVersionOnly`). As in HBase, a column that is not
/// among the columns read counts as missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFilter {
    /// Column family.
    pub family: Bytes,
    /// Column qualifier.
    pub qualifier: Bytes,
    /// How to compare.
    pub comparison: Comparison,
    /// What to compare with.
    pub operand: Bytes,
}

impl ColumnFilter {
    /// Whether a row passes.
    pub fn accepts(&self, row: &Row) -> bool {
        row.newest(&self.family, &self.qualifier)
            .is_some_and(|cell| self.comparison.accepts(cell.value.as_ref().cmp(&self.operand)))
    }
}
