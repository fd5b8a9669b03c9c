//! Places in a source.

use super::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A typed place in a source. Positions of one partition are totally ordered; positions of different partitions are not
/// comparable, which is why this type has no `Ord`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// A record of the embedded store's own change log; numbers start at 1 and have no holes.
    Changelog {
        /// Number of the record in its table's log.
        number: u64,
    },
    /// An intent of a store without change logs.
    Intent {
        /// When it was written, in milliseconds since 1970.
        time: Timestamp,
        /// Tells it from others of that time.
        random: u64,
        /// Number of the mutation in it, from 0.
        number: u32,
    },
    /// A line of a JSON-lines file; numbers start at 1.
    File {
        /// Number of the line.
        line: u64,
    },
    /// A row of a snapshot: not in the stream at all.
    Snapshot,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changelog { number } => write!(f, "changelog:{number}"),
            Self::Intent { time, random, number } => write!(f, "intent:{time}:{random:016x}:{number}"),
            Self::File { line } => write!(f, "line:{line}"),
            Self::Snapshot => f.write_str("snapshot"),
        }
    }
}

impl Position {
    /// A text that sorts as the positions of one partition do, for use in row keys.
    pub fn sort_key(&self) -> String {
        match self {
            Self::Changelog { number } => format!("changelog:{number:020}"),
            Self::Intent { time, random, number } => format!("intent:{time:020}:{random:016x}:{number:010}"),
            Self::File { line } => format!("line:{line:020}"),
            Self::Snapshot => "snapshot".to_owned(),
        }
    }
}
