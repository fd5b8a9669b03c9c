//! A query as it was written: names and literals, nothing looked up yet.

use crate::schema::{Function, function};
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
    /// The ORDER BY keys, the first decides first.
    pub order_by: Vec<ParsedOrder>,
    /// The LIMIT, if there is one: a number or a parameter.
    pub limit: Option<Literal>,
    /// The OFFSET, if there is one: a number or a parameter.
    pub offset: Option<Literal>,
}

/// What a query asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedSelect {
    /// These columns, in this order.
    Columns(Vec<ParsedColumn>),
    /// `COUNT(*)`.
    Count,
}

/// One item of the SELECT list.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedColumn {
    /// `*`: the row key, then every attribute by name.
    All,
    /// A column, perhaps under another name.
    One {
        /// The column.
        operand: ParsedOperand,
        /// What it is called in the answer; none is its spelling in the query.
        alias: Option<String>,
    },
}

/// A column, perhaps under functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedOperand {
    /// The column's name.
    pub name: String,
    /// Functions of its values, the innermost first.
    pub functions: Vec<Function>,
}

/// One key of ORDER BY.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedOrder {
    /// What is compared.
    pub operand: ParsedOperand,
    /// From the largest to the smallest.
    pub descending: bool,
    /// Rows without a value first; none where the query doesn't say.
    pub nulls_first: Option<bool>,
}

/// A WHERE clause. Lists of AND and OR are flat: none directly holds another of its own kind.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedPredicate {
    /// All of them hold.
    And(Vec<ParsedPredicate>),
    /// One of them holds.
    Or(Vec<ParsedPredicate>),
    /// It is false, not unknown.
    Not(Box<ParsedPredicate>),
    /// One column is tested.
    Test {
        /// The column.
        operand: ParsedOperand,
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
    /// `LIKE 'a%'`.
    Like {
        /// What it is like.
        pattern: Literal,
        /// What takes the meaning from a `%`, a `_` or itself; none where nothing does.
        escape: Option<char>,
    },
    /// `IS NULL`.
    IsNull,
}

/// A literal. Its type is settled by the column it is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Literal {
    /// `'text'`.
    Text(String),
    /// `X'00ff'`.
    Bytes(Vec<u8>),
    /// A number as it was written, its sign included.
    Number(String),
    /// `TRUE` or `FALSE`.
    Bool(bool),
    /// `NULL`.
    Null,
    /// A text that is read as whatever is expected where it stands, as from a command line. SQL has no spelling for it.
    Untyped(String),
    /// `$1`: the value of this number, from 1 up, under functions, the innermost first.
    Parameter(usize, Vec<Function>),
}

impl fmt::Display for ParsedOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&function::call(&self.functions, &self.name))
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
            Self::Null => f.write_str("NULL"),
            Self::Untyped(text) => f.write_str(text),
            Self::Parameter(number, functions) => f.write_str(&function::call(functions, &format!("${number}"))),
        }
    }
}

impl ParsedCondition {
    /// The test of a column as SQL spells it.
    pub(crate) fn spelled(&self, operand: &ParsedOperand, negated: bool) -> String {
        let not = if negated { "NOT " } else { "" };
        match self {
            Self::Compare(..) if negated => format!("NOT ({operand} {self})"),
            Self::IsNull => format!("{operand} IS {not}NULL"),
            _ => format!("{operand} {not}{self}"),
        }
    }
}

impl fmt::Display for ParsedCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare(comparison, literal) => write!(f, "{} {literal}", comparison.symbol()),
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
            Self::Like { pattern, escape: Some('\\') } => write!(f, "LIKE {pattern}"),
            Self::Like { pattern, escape } => {
                let escape = escape.map(String::from).unwrap_or_default();
                write!(f, "LIKE {pattern} ESCAPE {}", Literal::Text(escape))
            }
            Self::IsNull => f.write_str("IS NULL"),
        }
    }
}
