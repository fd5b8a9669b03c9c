//! Conditions on values, and the filter of a partial definition.

use super::domain::Domain;
use super::state::TermValue;
use super::{Code, Function, Operand, Pattern, Value, function, term};
use crate::error::Result;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// What the value of one column has to satisfy to make a test true. A test of a null is unknown, apart from
/// [`Condition::Null`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The value, or some element, is in the set.
    Some(Domain),
    /// There is a value, and it, or every element, is in the set. On a column with one value the same as `Some`.
    Every(Domain),
    /// There is no value.
    Null,
    /// The text, or some element, matches.
    Like(Pattern),
    /// There is a text, and it, and every other element, does not match.
    Unlike(Pattern),
}

impl Condition {
    /// Whether a term value satisfies it.
    ///
    /// # Errors
    /// [`Corrupt`](crate::error::ErrorKind::Corrupt) when the value does not consist of terms.
    pub fn accepts(&self, value: &TermValue) -> Result<bool> {
        let elements = value.elements()?;
        Ok(match self {
            Self::Some(domain) => elements.iter().any(|e| domain.contains(e)),
            Self::Every(domain) => !elements.is_empty() && elements.iter().all(|e| domain.contains(e)),
            Self::Null => elements.is_empty(),
            Self::Like(pattern) => any_matches(pattern, &elements)?,
            Self::Unlike(pattern) => !elements.is_empty() && !any_matches(pattern, &elements)?,
        })
    }

    /// Whether no value satisfies it.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Some(domain) | Self::Every(domain) => domain.is_empty(),
            Self::Null | Self::Like(_) | Self::Unlike(_) => false,
        }
    }

    /// Whether every value that satisfies this satisfies `other` too, as far as the two alone tell.
    pub fn implies(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Some(a) | Self::Every(a), Self::Some(b)) | (Self::Every(a), Self::Every(b)) => {
                a.intersection(b) == *a
            }
            (Self::Like(a), Self::Like(b)) | (Self::Unlike(a), Self::Unlike(b)) => a == b,
            _ => false,
        }
    }
}

/// Whether some element is a text that matches.
fn any_matches(pattern: &Pattern, elements: &[&[u8]]) -> Result<bool> {
    for element in elements {
        if let Some(Value::Text(text)) = term::decode(element)?
            && pattern.matches(text.as_bytes())
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The filter of a partial definition: only rows for which it is true have entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// As it was written: the WHERE clause.
    pub text: String,
    /// What it means.
    pub tree: FilterTree,
}

/// A filter's meaning. There is no negation: whoever binds the text pushes it down to the conditions. So more true tests
/// never make a node false, and unknown can be taken for false.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterTree {
    /// All hold; true when empty.
    And(Vec<FilterTree>),
    /// One holds; false when empty.
    Or(Vec<FilterTree>),
    /// A column satisfies a condition.
    Test {
        /// The column.
        #[serde(flatten)]
        operand: Operand,
        /// What it satisfies.
        condition: Condition,
    },
}

impl FilterTree {
    /// Evaluates the tree over `test`.
    ///
    /// # Errors
    /// Those of `test`.
    pub fn holds(&self, test: &mut dyn FnMut(&Operand, &Condition) -> Result<bool>) -> Result<bool> {
        match self {
            Self::And(parts) => {
                for part in parts {
                    if !part.holds(test)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Or(parts) => {
                for part in parts {
                    if part.holds(test)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Test { operand, condition } => test(operand, condition),
        }
    }

    /// Calls `see` with every attribute's code.
    pub fn codes(&self, see: &mut dyn FnMut(Code)) {
        match self {
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|p| p.codes(see)),
            Self::Test { operand, .. } => see(operand.code),
        }
    }
}

/// A term value under functions: of each element, each result once, in order.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) when the value does not consist of terms.
pub fn apply(functions: &[Function], value: &TermValue) -> Result<TermValue> {
    let TermValue::Live(bytes) = value else { return Ok(TermValue::Tombstone) };
    if functions.is_empty() {
        return Ok(value.clone());
    }
    let mut elements = Vec::new();
    for element in term::split(bytes)? {
        let mut out = Vec::with_capacity(element.len());
        match term::decode(element)? {
            Some(decoded) => term::encode(&function::apply(functions, decoded), &mut out),
            None => term::encode_null(&mut out),
        }
        elements.push(out);
    }
    elements.sort_unstable();
    elements.dedup();
    Ok(TermValue::Live(Bytes::from(elements.concat())))
}
