//! What is indexed.

use super::term::Shape;
use super::{Code, Filter, Function, function};
use crate::error::{Error, Result};
use crate::model::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The floor of a definition that was built over nothing: every event decides by itself.
pub const NO_FLOOR: Timestamp = -1;

/// Where a definition is in its life (DESIGN.md §7). Readers use only active ones; the maintainer keeps those and the ones
/// that are being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Entries of the rows that were there before are being written.
    Building,
    /// Complete and kept in step.
    Active,
    /// No longer read or kept; what is left of it is being removed.
    Dropping,
}

impl fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Building => "building",
            Self::Active => "active",
            Self::Dropping => "dropping",
        })
    }
}

/// A term as it is asked for: an attribute by name, under functions, in a direction.
///
/// ```
/// use sideindex::schema::{Function, TermSpec};
/// let term: TermSpec = "lower(trim(brand)) desc".parse()?;
/// assert_eq!((term.name.as_str(), term.descending), ("brand", true));
/// assert_eq!(term.functions, [Function::Trim, Function::Lower]);
/// assert_eq!(term.to_string(), "lower(trim(brand)) desc");
/// # Ok::<(), sideindex::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermSpec {
    /// The attribute's name.
    pub name: String,
    /// Functions of its values, the innermost first.
    pub functions: Vec<Function>,
    /// From the largest value to the smallest.
    pub descending: bool,
}

impl FromStr for TermSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let malformed = || {
            Error::invalid(format!(
                "expected an attribute, function(attribute), or one of them followed by asc or desc, found {text:?}"
            ))
        };
        let (mut inner, descending) = match text.trim().rsplit_once(char::is_whitespace) {
            Some((rest, word)) if word.eq_ignore_ascii_case("desc") => (rest.trim(), true),
            Some((rest, word)) if word.eq_ignore_ascii_case("asc") => (rest.trim(), false),
            _ => (text.trim(), false),
        };
        let mut functions = Vec::new();
        while let Some((name, rest)) = inner.split_once('(') {
            functions.push(name.trim().parse()?);
            inner = rest.trim().strip_suffix(')').ok_or_else(malformed)?.trim();
        }
        functions.reverse();
        if inner.is_empty() || inner.contains(|c: char| c.is_whitespace() || c == ')') {
            return Err(malformed());
        }
        Ok(Self { name: inner.to_owned(), functions, descending })
    }
}

impl fmt::Display for TermSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", function::call(&self.functions, &self.name), if self.descending { " desc" } else { "" })
    }
}

/// What the user asks to be indexed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefinitionSpec {
    /// The definition's name, unique in its table.
    pub name: String,
    /// Its terms, in order, as [`TermSpec`] reads them; several make a composite.
    pub on: Vec<String>,
    /// Whether ranges of the first term can be read in order.
    pub ordered: bool,
    /// Number of salts S, 1 to 255; none takes the store's default.
    pub salts: Option<u8>,
    /// Names of attributes whose values are packed into the entries.
    pub covered: Vec<String>,
    /// Only rows for which it is true are indexed.
    pub filter: Option<Filter>,
    /// Longest text or bytes that stand whole in a key, in bytes; none takes [`Definition::VALUE_LIMIT`].
    pub value_limit: Option<u32>,
}

/// An attribute, seen through functions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Operand {
    /// The attribute.
    pub code: Code,
    /// Functions of its values, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
}

/// One place of a definition's keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "TermRecord", into = "TermRecord")]
pub struct Term {
    /// Whose values.
    pub operand: Operand,
    /// From the largest value to the smallest: the encoding is inverted bitwise.
    pub descending: bool,
}

impl From<Code> for Term {
    fn from(code: Code) -> Self {
        Self { operand: Operand { code, functions: Vec::new() }, descending: false }
    }
}

/// A term at rest: the bare code where there is nothing more to say, which is all that format 1 has.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum TermRecord {
    Plain(Code),
    Full {
        #[serde(flatten)]
        operand: Operand,
        #[serde(default)]
        descending: bool,
    },
}

impl From<TermRecord> for Term {
    fn from(record: TermRecord) -> Self {
        match record {
            TermRecord::Plain(code) => code.into(),
            TermRecord::Full { operand, descending } => Self { operand, descending },
        }
    }
}

impl From<Term> for TermRecord {
    fn from(Term { operand, descending }: Term) -> Self {
        if operand.functions.is_empty() && !descending {
            return Self::Plain(operand.code);
        }
        Self::Full { operand, descending }
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
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
    /// What its keys are made of, in order.
    pub terms: Vec<Term>,
    /// Salt by row key instead of by value, so that ranges are spread and read in order.
    pub ordered: bool,
    /// Number of salts S; fixed for life.
    pub salts: u8,
    /// Attributes whose values are packed into the entries; none is an array.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covered: Vec<Code>,
    /// Only rows for which it is true have entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// Texts and bytes longer than this, in bytes, are cut in the keys; 0 cuts none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub value_limit: u32,
    /// The version of Unicode its functions went by when it was built; none without functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unicode: Option<(u8, u8, u8)>,
    /// Events with cells at or below it are settled by the base row.
    pub floor: Timestamp,
    /// Which rebuild this is.
    pub generation: u32,
    /// Counts the changes of this record.
    pub epoch: u64,
    /// Where it is in its life.
    pub state: Lifecycle,
    /// Something of it is in quarantine, or was dropped from it.
    #[serde(default)]
    pub degraded: bool,
    /// Something of it was dropped from quarantine: only a verification can tell that nothing is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
}

impl Definition {
    /// The newest format this binary knows, and the one it writes. Format 1 had plain terms, all of them whole.
    pub const FORMAT: u32 = 2;
    /// The longest text or bytes that stand whole in a key unless asked otherwise, in bytes.
    pub const VALUE_LIMIT: u32 = 256;

    /// A definition at the start of its life: building, unsalted, not ordered, built over nothing.
    pub fn new(name: impl Into<String>, code: Code, terms: impl IntoIterator<Item = impl Into<Term>>) -> Self {
        let terms: Vec<Term> = terms.into_iter().map(Into::into).collect();
        let functions = terms.iter().any(|t| !t.operand.functions.is_empty());
        Self {
            format: Self::FORMAT,
            name: name.into(),
            code,
            terms,
            ordered: false,
            salts: 1,
            covered: Vec::new(),
            filter: None,
            value_limit: Self::VALUE_LIMIT,
            unicode: functions.then_some(Function::UNICODE),
            floor: NO_FLOOR,
            generation: 1,
            epoch: 1,
            state: Lifecycle::Building,
            degraded: false,
            unverified: false,
        }
    }

    /// Whether it is what `spec`, of which `asked` was made, asks for; what the spec leaves open fits.
    pub(super) fn is_as_asked(&self, asked: &Self, spec: &DefinitionSpec) -> bool {
        let limit_fits = spec.value_limit.is_none() || self.value_limit == asked.value_limit;
        let salts_fit = spec.salts.is_none() || self.salts == asked.salts;
        let same_filter = self.filter.as_ref().map(|f| &f.tree) == asked.filter.as_ref().map(|f| &f.tree);
        (&self.terms, self.ordered, &self.covered) == (&asked.terms, asked.ordered, &asked.covered)
            && limit_fits
            && salts_fit
            && same_filter
    }

    /// Whether its entries are what this binary would write: functions go by the same version of Unicode.
    pub fn is_of_this_unicode(&self) -> bool {
        self.unicode.is_none_or(|version| version == Function::UNICODE)
    }

    /// How the term at a place stands in its keys.
    pub fn shape(&self, place: usize) -> Shape {
        Shape { descending: self.terms.get(place).is_some_and(|t| t.descending), limit: self.value_limit }
    }

    /// The attributes it depends on, each once: those of its terms, its covered columns and its filter. All of them count
    /// as terms of M.
    pub fn codes(&self) -> Vec<Code> {
        let mut codes: Vec<Code> =
            self.terms.iter().map(|t| t.operand.code).chain(self.covered.iter().copied()).collect();
        if let Some(filter) = &self.filter {
            filter.tree.codes(&mut |code| codes.push(code));
        }
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// Whether it depends on an attribute.
    pub fn mentions(&self, code: Code) -> bool {
        let mut found = self.terms.iter().any(|t| t.operand.code == code) || self.covered.contains(&code);
        if let Some(filter) = &self.filter {
            filter.tree.codes(&mut |c| found |= c == code);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_or_refused_by_name() {
        for (text, shown) in
            [("a", "a"), (" a ASC", "a"), ("lower( a )", "lower(a)"), ("NFKC(trim(a))  DESC", "nfkc(trim(a)) desc")]
        {
            assert_eq!(text.parse::<TermSpec>().unwrap().to_string(), shown);
        }
        for text in ["", "lower(a", "lower(a))", "a b", "lower()", "upper(a)", "lower(a)b", "(a)", "desc a"] {
            assert!(text.parse::<TermSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn definitions_of_format_1_are_read() {
        let written = r#"{"format":1,"name":"d","code":3,"terms":[1,2],"ordered":false,"salts":1,"floor":-1,"generation":1,"epoch":1,"state":"active"}"#;
        let definition: Definition = serde_json::from_str(written).unwrap();
        assert_eq!(definition.terms, [Term::from(1), Term::from(2)]);
        assert_eq!((definition.value_limit, definition.degraded), (0, false));
    }
}
