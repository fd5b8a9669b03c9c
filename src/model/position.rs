//! Places in a source.

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
    /// A line of a JSON-lines file; numbers start at 1.
    File {
        /// Number of the line.
        line: u64,
    },
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changelog { number } => write!(f, "changelog:{number}"),
            Self::File { line } => write!(f, "line:{line}"),
        }
    }
}
