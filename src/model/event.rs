//! What a source says happened.

use super::{Cell, Position, Timestamp};
use bytes::Bytes;

/// The cells of one atomic row mutation with their timestamps, and where it stands in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeEvent {
    /// The row key.
    pub row: Bytes,
    /// Puts and markers, each with its own timestamp.
    pub cells: Vec<Cell>,
    /// Where the source has it.
    pub position: Position,
    /// When the source took it in, in milliseconds since 1970. Watermarks and recheck delays count from here, never from
    /// cell timestamps, which writers choose.
    pub append_time: Timestamp,
}
