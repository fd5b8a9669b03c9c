//! Named, typed values of a row and the columns they live in.

use super::Code;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The type of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScalarType {
    /// UTF-8 text.
    Text,
    /// Signed 64-bit integer.
    Int,
    /// 64-bit float.
    Float,
    /// True or false.
    Bool,
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
        })
    }
}

/// A scalar type, or an array of it. Written `int`, `text[]`.
///
/// ```
/// use sideindex::schema::{AttributeType, ScalarType};
/// let tags: AttributeType = "text[]".parse()?;
/// assert_eq!(tags, AttributeType { scalar: ScalarType::Text, array: true });
/// assert!("colour".parse::<AttributeType>().unwrap_err().to_string().contains("text, int, float, bool"));
/// # Ok::<(), sideindex::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct AttributeType {
    /// Type of the value, or of the elements.
    pub scalar: ScalarType,
    /// Whether a row has a list of them.
    pub array: bool,
}

impl fmt::Display for AttributeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.scalar, if self.array { "[]" } else { "" })
    }
}

impl FromStr for AttributeType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, array) = text.strip_suffix("[]").map_or((text, false), |name| (name, true));
        let scalar = match name {
            "text" => ScalarType::Text,
            "int" => ScalarType::Int,
            "float" => ScalarType::Float,
            "bool" => ScalarType::Bool,
            _ => {
                return Err(Error::invalid(format!(
                    "unknown attribute type {text:?}: expected one of text, int, float, bool, or one of them followed by []"
                )));
            }
        };
        Ok(Self { scalar, array })
    }
}

impl From<AttributeType> for String {
    fn from(t: AttributeType) -> Self {
        t.to_string()
    }
}

impl TryFrom<String> for AttributeType {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

/// How a cell's bytes stand for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseEncoding {
    /// The value's text: `red`, `42`, `1.5`, `true`. Scalars only.
    Utf8,
    /// A JSON value: `"red"`, `42`, `["a","b"]`.
    Json,
}

/// A named, typed column of a base table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// The name queries use.
    pub name: String,
    /// Its number in the table's dictionary.
    pub code: Code,
    /// The declared type.
    #[serde(rename = "type")]
    pub kind: AttributeType,
    /// How the cells are written.
    pub encoding: BaseEncoding,
    /// Column family.
    pub family: String,
    /// Column qualifier.
    pub qualifier: String,
}

impl Attribute {
    /// An attribute as it is recorded when it is first seen: named after its qualifier, arrays as JSON, scalars as UTF-8.
    pub fn inferred(name: &str, kind: AttributeType, family: &str, code: Code) -> Self {
        Self {
            name: name.to_owned(),
            code,
            kind,
            encoding: if kind.array { BaseEncoding::Json } else { BaseEncoding::Utf8 },
            family: family.to_owned(),
            qualifier: name.to_owned(),
        }
    }
}
