//! A query whose names are looked up and whose literals have the types of their columns.

use crate::error::Result;
use crate::query::Mode;
use crate::schema::domain::Domain;
use crate::schema::state::TermValue;
use crate::schema::{Attribute, AttributeValue, Condition, Function, Operand, encoding, function};
use std::fmt;
use std::sync::Arc;

/// What the binder made of a [`ParsedQuery`](crate::query::ParsedQuery). The next stage is
/// [`Plan`](crate::query::Plan).
#[derive(Debug, Clone, PartialEq)]
pub struct BoundQuery {
    /// What is to be done.
    pub mode: Mode,
    /// The base table.
    pub table: String,
    /// The attributes the query mentions, each once with the same functions; [`Column::Attribute`] counts into it.
    pub slots: Vec<Slot>,
    /// What is asked for.
    pub output: Output,
    /// What the columns of the answer are called.
    pub names: Vec<String>,
    /// What must hold; an empty [`Predicate::And`] without a WHERE clause.
    pub predicate: Predicate,
    /// How the rows are sorted: the first key decides first, and no column stands twice. Nothing follows the row key.
    pub order: Vec<Order>,
    /// At most so many rows.
    pub limit: Option<u64>,
    /// So many rows are left out first.
    pub offset: u64,
}

/// What a query asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// These columns, in this order.
    Columns(Vec<Column>),
    /// How many rows there are.
    Count,
}

/// An attribute as a query sees it: under functions, perhaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The attribute.
    pub attribute: Attribute,
    /// Functions of its values, the innermost first.
    pub functions: Vec<Function>,
}

impl Slot {
    /// What a term of a definition has to be to hold it.
    pub fn operand(&self) -> Operand {
        Operand { code: self.attribute.code, functions: self.functions.clone() }
    }

    /// As a query spells it.
    pub fn name(&self) -> String {
        function::call(&self.functions, &self.attribute.name)
    }

    /// Decodes a cell of the attribute: the value, and what is compared.
    ///
    /// # Errors
    /// [`WrongType`](crate::error::ErrorKind::WrongType).
    pub(crate) fn decode(&self, cell: &[u8]) -> Result<(AttributeValue, TermValue)> {
        Ok(self.seen(encoding::decode(&self.attribute, cell)?))
    }

    /// The attribute's value under the functions: the value, and what is compared.
    pub(crate) fn seen(&self, value: AttributeValue) -> (AttributeValue, TermValue) {
        let value = match value {
            value if self.functions.is_empty() => value,
            AttributeValue::One(value) => AttributeValue::One(function::apply(&self.functions, value)),
            AttributeValue::Many(values) => {
                AttributeValue::Many(values.into_iter().map(|v| function::apply(&self.functions, v)).collect())
            }
        };
        let term = TermValue::of(&value);
        (value, term)
    }
}

/// A column of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// `id`, the row key.
    RowKey,
    /// The attribute at this place of [`BoundQuery::slots`].
    Attribute(usize),
}

/// A key rows are sorted by. Rows for which all keys are equal come in the order, or the reverse order, of what they are read
/// by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The column; not an array.
    pub column: Column,
    /// From the largest to the smallest.
    pub descending: bool,
    /// Rows without a value come first. Unless the query says so, null counts as the largest value, as in PostgreSQL.
    pub nulls_first: bool,
}

/// What a row must satisfy.
///
/// A test of a null is unknown. There is no negation in the tree: the binder pushes it down to the tests. So a node is true exactly if its tests make it true with unknown taken for false, and more true tests never make
/// a node false.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// All hold; true when empty.
    And(Vec<Predicate>),
    /// One holds; false when empty.
    Or(Vec<Predicate>),
    /// A column satisfies a condition.
    Test(Arc<Test>),
}

/// A test of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The column.
    pub column: Column,
    pub(crate) condition: Condition,
    pub(crate) text: String,
}

impl Test {
    /// The set that the value, or some element, has to be in, if that is the test.
    pub(crate) fn some(&self) -> Option<&Domain> {
        match &self.condition {
            Condition::Some(domain) => Some(domain),
            _ => None,
        }
    }

    /// A set that some element of every row that passes is in.
    pub(crate) fn within(&self) -> Option<&Domain> {
        match &self.condition {
            Condition::Some(domain) | Condition::Every(domain) => Some(domain),
            _ => None,
        }
    }
}

impl Predicate {
    /// Evaluates the tree over `test`.
    pub(crate) fn holds(&self, test: &mut dyn FnMut(&Test) -> bool) -> bool {
        match self {
            Self::And(parts) => parts.iter().all(|p| p.holds(test)),
            Self::Or(parts) => parts.iter().any(|p| p.holds(test)),
            Self::Test(one) => test(one),
        }
    }

    /// Whether it holds for every row.
    pub(crate) fn is_true(&self) -> bool {
        matches!(self, Self::And(parts) if parts.is_empty())
    }

    /// Whether it holds for no row: in the form the binder leaves, an empty [`Predicate::Or`].
    pub(crate) fn is_false(&self) -> bool {
        match self {
            Self::Or(parts) => parts.is_empty(),
            Self::And(_) => false,
            Self::Test(test) => test.condition.is_empty(),
        }
    }

    /// The parts that must all hold.
    pub(crate) fn conjuncts(&self) -> &[Predicate] {
        match self {
            Self::And(parts) => parts,
            one => std::slice::from_ref(one),
        }
    }

    /// Calls `see` with every test of the tree.
    pub(crate) fn visit(&self, see: &mut dyn FnMut(&Arc<Test>)) {
        match self {
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|p| p.visit(see)),
            Self::Test(test) => see(test),
        }
    }

    /// Whether it can only hold for rows in which some column of an attribute is present.
    pub(crate) fn needs_a_column(&self, slots: &[Slot]) -> bool {
        match self {
            Self::And(parts) => parts.iter().any(|p| p.needs_a_column(slots)),
            Self::Or(parts) => parts.iter().all(|p| p.needs_a_column(slots)),
            Self::Test(test) => match test.column {
                Column::RowKey => false,
                Column::Attribute(slot) => {
                    slots[slot].attribute.key_part.is_none() && test.condition != Condition::Null
                }
            },
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, between, empty) = match self {
            Self::And(parts) => (parts, " AND ", "true"),
            Self::Or(parts) => (parts, " OR ", "false"),
            Self::Test(test) => return f.write_str(&test.text),
        };
        if parts.is_empty() {
            return f.write_str(empty);
        }
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                f.write_str(between)?;
            }
            if matches!(part, Self::Test(_)) { part.fmt(f)? } else { write!(f, "({part})")? }
        }
        Ok(())
    }
}
