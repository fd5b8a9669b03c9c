//! What is written to and read from one row.

use super::{Cell, CellKind, Timestamp};
use bytes::Bytes;

/// Cells written to one row atomically: a reader sees all of them or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowMutation {
    /// The row key.
    pub row: Bytes,
    /// Puts and markers, each with its own timestamp.
    pub cells: Vec<Cell>,
}

impl RowMutation {
    /// A mutation of `row`.
    pub fn new(row: impl Into<Bytes>, cells: Vec<Cell>) -> Self {
        Self { row: row.into(), cells }
    }

    /// Whether it holds both puts and markers.
    pub fn is_mixed(&self) -> bool {
        let puts = self.cells.iter().filter(|c| c.kind == CellKind::Put).count();
        puts > 0 && puts < self.cells.len()
    }

    /// The puts of mutations, and their markers.
    pub fn puts_and_markers(mutations: Vec<Self>) -> (Vec<Self>, Vec<Self>) {
        let (mut puts, mut markers) = (Vec::new(), Vec::new());
        for Self { row, cells } in mutations {
            let (put, marker): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(|c| c.kind == CellKind::Put);
            if !put.is_empty() {
                puts.push(Self { row: row.clone(), cells: put });
            }
            if !marker.is_empty() {
                markers.push(Self { row, cells: marker });
            }
        }
        (puts, markers)
    }
}

/// What a read found in one row: cells in HBase's order (family, qualifier, newest first).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The row key.
    pub key: Bytes,
    /// The cells; none when the row does not exist.
    pub cells: Vec<Cell>,
}

impl Row {
    /// The newest cell of a column, if the row has one.
    pub fn newest(&self, family: &[u8], qualifier: &[u8]) -> Option<&Cell> {
        self.cells.iter().find(|c| c.family == family && c.qualifier == qualifier)
    }

    /// The largest timestamp in the row.
    pub fn newest_timestamp(&self) -> Option<Timestamp> {
        self.cells.iter().map(|c| c.timestamp).max()
    }
}

/// A row key as text: UTF-8 as it is, other bytes as `\xNN`.
///
/// ```
/// assert_eq!(sideindex::model::escaped(b"caf\xc3\xa9 \xff"), "café \\xff");
/// ```
pub fn escaped(key: &[u8]) -> String {
    let mut out = String::with_capacity(key.len());
    for chunk in key.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}
