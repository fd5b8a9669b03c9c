//! Functions that bring texts into one form before they are compared: normalisers.

use super::Value;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use unicode_normalization::UnicodeNormalization;

/// A function of one text, for definitions and queries alike. Values of other types are left as they are; binders refuse
/// them.
///
/// ```
/// use sideindex::schema::Function;
/// let lower: Function = "lower".parse()?;
/// assert_eq!(lower.apply("Straße").as_ref(), "straße");
/// assert!("upper".parse::<Function>().unwrap_err().to_string().contains("trim, lower or nfkc"));
/// # Ok::<(), sideindex::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// Without white space at both ends.
    Trim,
    /// In lower case, by Unicode's rules and no language's.
    Lower,
    /// In Unicode's normalisation form KC.
    Nfkc,
}

impl Function {
    /// The version of Unicode that [`Function::apply`] goes by.
    pub const UNICODE: (u8, u8, u8) = char::UNICODE_VERSION;

    /// Applies the function.
    pub fn apply(self, text: &str) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Trim => text.trim().into(),
            Self::Lower => text.to_lowercase().into(),
            Self::Nfkc => text.nfkc().collect::<String>().into(),
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trim => "trim",
            Self::Lower => "lower",
            Self::Nfkc => "nfkc",
        })
    }
}

impl FromStr for Function {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name.to_ascii_lowercase().as_str() {
            "trim" => Ok(Self::Trim),
            "lower" => Ok(Self::Lower),
            "nfkc" => Ok(Self::Nfkc),
            _ => Err(Error::invalid(format!("unknown function {name:?}: expected trim, lower or nfkc"))),
        }
    }
}

/// Applies functions in order, the innermost first.
pub fn apply(functions: &[Function], value: Value) -> Value {
    match value {
        Value::Text(text) => Value::Text(functions.iter().fold(text, |text, f| f.apply(&text).into_owned())),
        other => other,
    }
}

/// `lower(trim(name))` for functions in order, the innermost first.
pub fn call(functions: &[Function], name: &str) -> String {
    functions.iter().fold(name.to_owned(), |inner, f| format!("{f}({inner})"))
}
