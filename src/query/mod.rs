//! Answers queries: SQL text → [`ParsedQuery`] → [`BoundQuery`] → [`Plan`] → [`Cursor`].
//!
//! * [`parse`] reads the text and refuses by name what is not supported.
//! * [`bind`] looks names up and gives literals the types of their columns.
//! * [`prepare`] does both, lists every path to the rows, estimates them where there is a choice, and chooses.
//! * [`Prepared::cursor`] answers page by page in bounded memory; [`Prepared::explain`] says what was considered.
//!
//! Logic is three-valued: a comparison with a null is unknown, so is its negation, and a row is returned only where the
//! WHERE clause is true. On an array a comparison, `!=` included, means "some element", its negation (NOT, NOT IN, NOT
//! BETWEEN, NOT LIKE) "there are elements, and none", and COUNT(*) counts rows. `SELECT *` gives `id`, then every
//! attribute by name. Rows are verified, then filtered, then limited.
//!
//! ```
//! use sideindex::query::{self, Options};
//! use sideindex::schema::{Attribute, AttributeType, BaseEncoding, ScalarType, TableSchema};
//! # let schema = TableSchema::new("packages".into(), vec!["a".into()], vec![Attribute {
//! #     name: "section".into(), code: 1, kind: AttributeType { scalar: ScalarType::Text, array: false },
//! #     encoding: BaseEncoding::Utf8, family: "a".into(), qualifier: "section".into(),
//! #     key_part: None }], vec![]);
//! let parsed = query::parse("SELECT id FROM packages WHERE section = 'net'")?;
//! let bound = query::bind(&parsed, &schema, &[])?;
//! assert_eq!(bound.predicate.to_string(), "section = 'net'");
//! # Ok::<(), sideindex::error::Error>(())
//! ```

mod bind;
mod execute;
mod explain;
mod page;
mod parse;
mod plan;
mod prepare;
mod probe;
#[cfg(test)]
mod testing;

pub use bind::{BoundQuery, Column, Order, Output, Predicate, Slot, Test, bind, filter};
pub use execute::{Actuals, Cursor, ResultRow};
pub use explain::{Considered, Explain, Means, grouped};
pub use page::{Paging, TokenKey};
pub use parse::{
    Literal, Mode, ParsedColumn, ParsedCondition, ParsedOperand, ParsedOrder, ParsedPredicate, ParsedQuery,
    ParsedSelect, parse, table_of,
};
pub use plan::Plan;
pub use prepare::{Prepared, prepare};

use serde::Serialize;
use std::fmt;
use std::time::Instant;

/// What is promised of the rows a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// Every entry is checked against its base row: no row is returned whose values are not those of the entry now, or that
    /// does not satisfy the query.
    #[default]
    Verified,
    /// Only disputed entries are checked, the others answer as of the watermark. Base rows are read, and checked then,
    /// where the query needs more than the entries hold.
    Indexed,
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Verified => "verified",
            Self::Indexed => "indexed",
        })
    }
}

/// How a query may be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What is promised of the rows.
    pub consistency: Consistency,
    /// Whether the base table may be scanned when no index answers.
    pub allow_scan: bool,
    /// Estimate the paths even where there is no choice, so that [`Prepared::explain`] can show what they cost. EXPLAIN and
    /// EXPLAIN ANALYZE always do.
    pub estimate: bool,
    /// The values of `$1`, `$2`, ….
    pub parameters: Vec<Literal>,
    /// The most bytes held at a time: rows to be sorted, hashes of rows met, pages. A query that needs more is refused.
    pub memory: u64,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Asks for one page of the answer; none asks for all of it.
    pub paging: Option<Paging>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            consistency: Consistency::default(),
            allow_scan: false,
            estimate: false,
            parameters: Vec::new(),
            memory: Self::MEMORY,
            deadline: None,
            paging: None,
        }
    }
}

impl Options {
    /// The memory a query may hold by default: 256 MiB.
    pub const MEMORY: u64 = 256 << 20;
}
