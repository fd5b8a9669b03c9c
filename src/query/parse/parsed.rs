//! A query as it was written: names and literals, nothing looked up yet.

use crate::store::Comparison;
use std::fmt;

/// What is to be done with the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Answer it.
    #[default]
    Run,
    /// `EXPLAIN`: show how it would be answered.
    Explain,
    /// `EXPLAIN ANALYZE`: answer it, and show how that went instead of the answer.
    Analyze,
}

/// What the parser read. The next stage is [`BoundQuery`](crate::query::BoundQuery).
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedQuery {
    /// What is to be done.
    pub mode: Mode,
    /// The table's name.
    pub table: String,
    /// What is asked for.
    pub select: ParsedSelect,
    /// The WHERE clause, if there is one.
    pub predicate: Option<ParsedPredicate>,
    /// The ORDER BY keys: one at most today.
    pub order_by: Vec<ParsedOrder>,
    /// The LIMIT, if there is one.
    pub limit: Option<u64>,
}

/// What a query asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedSelect {
    /// These columns, in this order.
    Columns(Vec<String>),
    /// `COUNT(*)`.
    Count,
}

/// One key of ORDER BY.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedOrder {
    /// The column.
    pub column: String,
    /// From the largest to the smallest.
    pub descending: bool,
}

/// A WHERE clause. Lists of AND and OR are flat: none directly holds another of its own kind.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedPredicate {
    /// All of them hold.
    And(Vec<ParsedPredicate>),
    /// One of them holds.
    Or(Vec<ParsedPredicate>),
    /// One column is tested.
    Test {
        /// The column.
        column: String,
        /// What its value has to satisfy.
        condition: ParsedCondition,
    },
}

/// What one value has to satisfy.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedCondition {
    /// `= 5`.
    Compare(Comparison, Literal),
    /// `BETWEEN 1 AND 5`, both included.
    Between(Literal, Literal),
    /// `IN (1, 5)`.
    In(Vec<Literal>),
}

/// A literal. Its type is settled by the column it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `'text'`.
    Text(String),
    /// `X'00ff'`.
    Bytes(Vec<u8>),
    /// A number as it was written, its sign included.
    Number(String),
    /// `TRUE` or `FALSE`.
    Bool(bool),
}

/// The SQL spelling of a comparison.
fn symbol(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Equal => "=",
        Comparison::NotEqual => "!=",
        Comparison::GreaterOrEqual => ">=",
        Comparison::Greater => ">",
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Bytes(bytes) => {
                f.write_str("X'")?;
                for byte in bytes {
                    write!(f, "{byte:02x}")?;
                }
                f.write_str("'")
            }
            Self::Number(number) => f.write_str(number),
            Self::Bool(true) => f.write_str("TRUE"),
            Self::Bool(false) => f.write_str("FALSE"),
        }
    }
}

impl fmt::Display for ParsedCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare(comparison, literal) => write!(f, "{} {literal}", symbol(*comparison)),
            Self::Between(low, high) => write!(f, "BETWEEN {low} AND {high}"),
            Self::In(literals) => {
                const SHOWN: usize = 8;
                f.write_str("IN (")?;
                for (i, literal) in literals.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{literal}", if i > 0 { ", " } else { "" })?;
                }
                if literals.len() > SHOWN {
                    write!(f, ", … {} values", literals.len())?;
                }
                f.write_str(")")
            }
        }
    }
}
