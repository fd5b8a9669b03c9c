//! The stored form of a row mutation: `proto/sideindex/v1/mutation.proto`.

use super::{Cell, CellKind, ChangeEvent, Position, RowMutation, Timestamp};
use crate::error::{Error, Result};
use bytes::Bytes;
use prost::Message;

/// `sideindex.v1.Mutation`.
#[derive(Clone, PartialEq, Message)]
pub struct Mutation {
    /// The row key.
    #[prost(bytes = "bytes", tag = "1")]
    pub row: Bytes,
    /// When the log took it in, milliseconds since 1970.
    #[prost(int64, tag = "2")]
    pub append_time: i64,
    /// The cells.
    #[prost(message, repeated, tag = "3")]
    pub cells: Vec<CellRecord>,
}

/// `sideindex.v1.CellRecord`.
#[derive(Clone, PartialEq, Message)]
pub struct CellRecord {
    /// Column family.
    #[prost(bytes = "bytes", tag = "1")]
    pub family: Bytes,
    /// Column qualifier.
    #[prost(bytes = "bytes", tag = "2")]
    pub qualifier: Bytes,
    /// Version.
    #[prost(int64, tag = "3")]
    pub timestamp: i64,
    /// HBase's type code.
    #[prost(uint32, tag = "4")]
    pub kind: u32,
    /// The value.
    #[prost(bytes = "bytes", tag = "5")]
    pub value: Bytes,
}

/// Encodes a mutation for a log.
pub fn encode(mutation: &RowMutation, append_time: Timestamp) -> Bytes {
    let cells = mutation
        .cells
        .iter()
        .map(|c| CellRecord {
            family: c.family.clone(),
            qualifier: c.qualifier.clone(),
            timestamp: c.timestamp,
            kind: u32::from(c.kind.code()),
            value: c.value.clone(),
        })
        .collect();
    Mutation { row: mutation.row.clone(), append_time, cells }.encode_to_vec().into()
}

/// Decodes what [`encode`] wrote; `position` is where the log has it.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for anything that is not such a mutation. Values share `bytes`' memory.
pub fn decode(bytes: Bytes, position: Position) -> Result<ChangeEvent> {
    let broken =
        |what: String| Error::corrupt(format!("expected a row mutation, found {what}")).within(position.to_string());
    let mutation = Mutation::decode(bytes).map_err(|e| broken(e.to_string()))?;
    let mut cells = Vec::with_capacity(mutation.cells.len());
    for c in mutation.cells {
        let kind = u8::try_from(c.kind)
            .ok()
            .and_then(CellKind::from_code)
            .ok_or_else(|| broken(format!("the unknown cell type {}", c.kind)))?;
        super::check_timestamp(c.timestamp).map_err(|_| broken(format!("the timestamp {}", c.timestamp)))?;
        cells.push(Cell { family: c.family, qualifier: c.qualifier, timestamp: c.timestamp, kind, value: c.value });
    }
    Ok(ChangeEvent { row: mutation.row, cells, position, append_time: mutation.append_time })
}
