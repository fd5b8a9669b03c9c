//! What is indexed.

use super::Code;
use crate::model::Timestamp;
use serde::{Deserialize, Serialize};

/// The floor of a definition that was built over nothing: every event decides by itself.
pub const NO_FLOOR: Timestamp = -1;

/// Where a definition is in its life (DESIGN.md §7). Readers use only active ones; the maintainer keeps all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Entries of the rows that were there before are being written.
    Building,
    /// Complete and kept in step.
    Active,
}

/// What the user asks to be indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionSpec {
    /// The definition's name, unique in its table.
    pub name: String,
    /// Names of the attributes, in order; several make a composite.
    pub on: Vec<String>,
    /// Whether ranges of the first term can be read in order.
    pub ordered: bool,
    /// Number of salts S, 1 to 255; none takes the store's default.
    pub salts: Option<u8>,
}

/// A definition as it is kept in `sx_meta`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Format of the definition's entries. A binary that doesn't know it refuses.
    pub format: u32,
    /// The definition's name, unique in its table.
    pub name: String,
    /// Its number in the table's dictionary, part of every entry key.
    pub code: Code,
    /// Codes of the attributes, in order.
    pub terms: Vec<Code>,
    /// Salt by row key instead of by value, so that ranges are spread and read in order.
    pub ordered: bool,
    /// Number of salts S; fixed for life.
    pub salts: u8,
    /// Events with cells at or below it are settled by the base row.
    pub floor: Timestamp,
    /// Which rebuild this is.
    pub generation: u32,
    /// Counts the changes of this record.
    pub epoch: u64,
    /// Where it is in its life.
    pub state: Lifecycle,
    /// Something of it is in quarantine.
    #[serde(default)]
    pub degraded: bool,
}

impl Definition {
    /// The format this binary writes.
    pub const FORMAT: u32 = 1;

    /// A definition at the start of its life: building, unsalted, not ordered, built over nothing.
    pub fn new(name: impl Into<String>, code: Code, terms: Vec<Code>) -> Self {
        Self {
            format: Self::FORMAT,
            name: name.into(),
            code,
            terms,
            ordered: false,
            salts: 1,
            floor: NO_FLOOR,
            generation: 1,
            epoch: 1,
            state: Lifecycle::Building,
            degraded: false,
        }
    }
}
