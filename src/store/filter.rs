//! Filters the store applies: HBase's `SingleColumnValueFilter` with its two switches set the safe way.

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
