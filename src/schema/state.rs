//! State rows: the candidates of all indexed attributes of one base row (DESIGN.md §4).
//!
//! `rowkey…`, family `s`, qualifier = attribute code(2) settled(1) xxh3-128(value)(16), timestamp = as-of,
//! cell value = kind(1) source(8) value.

use super::{AttributeValue, Code, term};
use crate::error::{Error, Result};
use crate::model::{Cell, CellKind, Timestamp};
use bytes::{BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::Xxh3;

/// Family of state tables.
pub const FAMILY: &[u8] = b"s";

const TOMBSTONE: u8 = 0;
const LIVE: u8 = 1;
const QUALIFIER: usize = 2 + 1 + 16;

/// A term's possible value: the concatenated encodings of an attribute's distinct elements in order, or a tombstone.
/// An array without elements is live and holds the encoding of null alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TermValue {
    /// No value.
    Tombstone,
    /// A value.
    Live(Bytes),
}

impl TermValue {
    /// The term value of a decoded attribute.
    pub fn of(value: &AttributeValue) -> Self {
        let mut out = Vec::new();
        match value {
            AttributeValue::One(value) => term::encode(value, &mut out),
            AttributeValue::Many(values) => {
                let mut elements: Vec<Vec<u8>> = values
                    .iter()
                    .map(|v| {
                        let mut one = Vec::new();
                        term::encode(v, &mut one);
                        one
                    })
                    .collect();
                elements.sort_unstable();
                elements.dedup();
                if elements.is_empty() {
                    term::encode_null(&mut out);
                }
                out.extend(elements.concat());
            }
        }
        Self::Live(out.into())
    }

    /// The encoded elements; none for a tombstone and for an empty array.
    ///
    /// # Errors
    /// [`Corrupt`](crate::error::ErrorKind::Corrupt) when the bytes are not terms.
    pub fn elements(&self) -> Result<Vec<&[u8]>> {
        match self {
            Self::Tombstone => Ok(Vec::new()),
            Self::Live(bytes) => {
                let mut terms = term::split(bytes)?;
                terms.retain(|t| *t != [term::NULL]);
                Ok(terms)
            }
        }
    }

    /// Whether this is a tombstone.
    pub fn is_tombstone(&self) -> bool {
        matches!(self, Self::Tombstone)
    }

    fn parts(&self) -> (u8, &[u8]) {
        match self {
            Self::Tombstone => (TOMBSTONE, &[]),
            Self::Live(bytes) => (LIVE, bytes),
        }
    }
}

/// One possible current value of a term.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Candidate {
    /// When it was known to be possible: the timestamp candidates compete by.
    pub as_of: Timestamp,
    /// Timestamp of the cell it came from.
    pub source: Timestamp,
    /// The value or a tombstone.
    pub value: TermValue,
}

impl Candidate {
    /// The candidate of a cell that decides by itself.
    pub fn own(timestamp: Timestamp, value: TermValue) -> Self {
        Self { as_of: timestamp, source: timestamp, value }
    }

    /// A settled candidate is kept apart from a put's own, so that a replayed put never overwrites it.
    pub fn is_settled(&self) -> bool {
        self.source < self.as_of
    }

    fn qualifier(&self, code: Code) -> Bytes {
        let (kind, bytes) = self.value.parts();
        let mut hasher = Xxh3::new();
        hasher.update(&[kind]);
        hasher.update(bytes);
        let mut out = BytesMut::with_capacity(QUALIFIER);
        out.put_u16(code);
        out.put_u8(u8::from(self.is_settled()));
        out.put_u128(hasher.digest128());
        out.freeze()
    }

    /// The cell that puts this candidate of the attribute `code` into a state row.
    pub fn put(&self, code: Code) -> Cell {
        let (kind, bytes) = self.value.parts();
        let mut value = BytesMut::with_capacity(9 + bytes.len());
        value.put_u8(kind);
        value.put_i64(self.source);
        value.put_slice(bytes);
        Cell::put(FAMILY, self.qualifier(code), self.as_of, value.freeze())
    }

    /// The marker that prunes this candidate of the attribute `code` at or below `upto`.
    pub fn prune(&self, code: Code, upto: Timestamp) -> Cell {
        Cell::delete(CellKind::DeleteColumn, FAMILY, self.qualifier(code), upto)
    }
}

/// Reads one cell of a state row.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) when it is not what [`Candidate::put`] writes.
pub fn decode(cell: &Cell) -> Result<(Code, Candidate)> {
    let broken = |what: &str| Error::corrupt(format!("expected a candidate in a state row, found {what}"));
    if cell.qualifier.len() != QUALIFIER {
        return Err(broken(&format!("a qualifier of {} bytes", cell.qualifier.len())));
    }
    let code = Code::from_be_bytes([cell.qualifier[0], cell.qualifier[1]]);
    let (Some(&kind), Some(source)) = (cell.value.first(), cell.value.get(1..9)) else {
        return Err(broken(&format!("a value of {} bytes", cell.value.len())));
    };
    let mut eight = [0; 8];
    eight.copy_from_slice(source);
    let value = match kind {
        TOMBSTONE if cell.value.len() == 9 => TermValue::Tombstone,
        TOMBSTONE => return Err(broken(&format!("a tombstone of {} bytes", cell.value.len()))),
        LIVE => TermValue::Live(cell.value.slice(9..)),
        other => return Err(broken(&format!("the kind {other}"))),
    };
    Ok((code, Candidate { as_of: cell.timestamp, source: Timestamp::from_be_bytes(eight), value }))
}
