//! One cell, with HBase's own parts.

use crate::error::{Error, Result};
use bytes::Bytes;

/// A cell's time: milliseconds since 1970 by convention, between 0 and [`MAX_TIMESTAMP`]. HBase compares it and nothing else.
pub type Timestamp = i64;

/// The largest timestamp a cell can have: HBase takes the one above it, `LATEST_TIMESTAMP`, for "the server's clock".
pub const MAX_TIMESTAMP: Timestamp = Timestamp::MAX - 1;

/// The largest cell a writer may write, in bytes, counted as HBase's `KeyValue` is: HBase's own default limit
/// (`hbase.client.keyvalue.maxsize`).
pub const MAX_CELL: usize = 10 << 20;

/// The bytes of a `KeyValue` besides row, family, qualifier and value: lengths, timestamp and type.
const KEY_VALUE_OVERHEAD: usize = 4 + 4 + 2 + 1 + 8 + 1;

/// Checks that a cell can have this timestamp.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) outside 0 to [`MAX_TIMESTAMP`].
pub fn check_timestamp(timestamp: Timestamp) -> Result<()> {
    if (0..=MAX_TIMESTAMP).contains(&timestamp) {
        return Ok(());
    }
    Err(Error::invalid(format!("expected a timestamp between 0 and {MAX_TIMESTAMP}, found {timestamp}")))
}

/// The type of a cell, HBase's `KeyValue.Type`.
///
/// Masking is classic: a marker hides puts at or below its timestamp (or exactly at it, for the version markers),
/// whether they were written before or after the marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum CellKind {
    /// A value.
    Put = 4,
    /// Hides the put of this column at exactly this timestamp.
    DeleteVersion = 8,
    /// Hides the puts of every column of the family at exactly this timestamp. The qualifier is empty.
    DeleteFamilyVersion = 10,
    /// Hides the puts of this column at or below this timestamp.
    DeleteColumn = 12,
    /// Hides the puts of every column of the family at or below this timestamp. The qualifier is empty.
    DeleteFamily = 14,
}

impl CellKind {
    /// The kind of an HBase type code.
    ///
    /// ```
    /// use sideindex::model::CellKind;
    /// assert_eq!(CellKind::from_code(12), Some(CellKind::DeleteColumn));
    /// assert_eq!(CellKind::from_code(5), None);
    /// ```
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            4 => Self::Put,
            8 => Self::DeleteVersion,
            10 => Self::DeleteFamilyVersion,
            12 => Self::DeleteColumn,
            14 => Self::DeleteFamily,
            _ => return None,
        })
    }

    /// HBase's type code.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Whether the marker concerns the whole family and so has no qualifier.
    pub fn is_family_wide(self) -> bool {
        matches!(self, Self::DeleteFamily | Self::DeleteFamilyVersion)
    }
}

/// One cell of a row; the row key stands beside it, in [`RowMutation`](super::RowMutation) or [`Row`](super::Row).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Column family.
    pub family: Bytes,
    /// Column qualifier; empty for family-wide markers.
    pub qualifier: Bytes,
    /// Version.
    pub timestamp: Timestamp,
    /// Put or one of the four delete markers.
    pub kind: CellKind,
    /// The value; empty for markers.
    pub value: Bytes,
}

impl Cell {
    /// A put.
    pub fn put(
        family: impl Into<Bytes>,
        qualifier: impl Into<Bytes>,
        timestamp: Timestamp,
        value: impl Into<Bytes>,
    ) -> Self {
        Self { family: family.into(), qualifier: qualifier.into(), timestamp, kind: CellKind::Put, value: value.into() }
    }

    /// Its size as HBase's `KeyValue` in a row of this key, in bytes.
    pub fn size(&self, row: &[u8]) -> usize {
        KEY_VALUE_OVERHEAD + row.len() + self.family.len() + self.qualifier.len() + self.value.len()
    }

    /// A marker of `kind` on a column, or on the family when the kind is family-wide (the qualifier is then ignored).
    pub fn delete(kind: CellKind, family: impl Into<Bytes>, qualifier: impl Into<Bytes>, timestamp: Timestamp) -> Self {
        let qualifier = if kind.is_family_wide() { Bytes::new() } else { qualifier.into() };
        Self { family: family.into(), qualifier, timestamp, kind, value: Bytes::new() }
    }
}
