//! What running a query took.

use crate::model::Row;
use serde::{Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// What running a query took so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Actuals {
    /// Ranges opened and rows got by key.
    pub seeks: u64,
    /// Entries read.
    pub entries: u64,
    /// Base rows read, by key or by a scan; those a filter held back in the store included.
    pub base_rows: u64,
    /// Bytes of keys and values that came back from the store.
    pub bytes: u64,
    /// Rows of the answer.
    pub returned: u64,
    /// Entries whose base row did not have their values.
    pub dropped_by_verification: u64,
    /// Time spent in [`Cursor::next_page`](super::Cursor::next_page); in JSON as `elapsed_ms`, in milliseconds.
    #[serde(rename = "elapsed_ms", serialize_with = "milliseconds")]
    pub elapsed: Duration,
}

fn milliseconds<S: Serializer>(elapsed: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(elapsed.as_secs_f64() * 1_000.0)
}

impl Actuals {
    /// Counts what a row from the store weighs, in bytes.
    pub(super) fn weigh(&mut self, row: &Row) -> u64 {
        let cells: usize = row.cells.iter().map(|c| c.value.len() + c.qualifier.len()).sum();
        let weight = (row.key.len() + cells) as u64;
        self.bytes += weight;
        weight
    }
}

impl fmt::Display for Actuals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        write!(
            f,
            "{}, {}, {}, {}, {} returned, {} dropped by verification, {:.3} ms",
            counted(self.seeks, "seek", "seeks"),
            counted(self.entries, "entry", "entries"),
            counted(self.base_rows, "base row", "base rows"),
            counted(self.bytes, "byte", "bytes"),
            self.returned,
            self.dropped_by_verification,
            self.elapsed.as_secs_f64() * 1_000.0
        )
    }
}
