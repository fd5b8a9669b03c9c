//! Named, typed values of a row and the columns they live in.

use super::Code;
use crate::error::{Error, ErrorKind, Result};
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
    /// Exact decimal number.
    Decimal,
    /// Milliseconds since 1970.
    Timestamp,
    /// Any bytes.
    Bytes,
}

impl ScalarType {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Text, Self::Int, Self::Float, Self::Bool, Self::Decimal, Self::Timestamp, Self::Bytes];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Decimal => "decimal",
            Self::Timestamp => "timestamp",
            Self::Bytes => "bytes",
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A scalar type, or an array of it. Written `int`, `text[]`.
///
/// ```
/// use sideindex::schema::{AttributeType, ScalarType};
/// let tags: AttributeType = "text[]".parse()?;
/// assert_eq!(tags, AttributeType { scalar: ScalarType::Text, array: true });
/// assert!("colour".parse::<AttributeType>().unwrap_err().to_string().contains("text, int, float"));
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
        let scalar = ScalarType::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| {
            let names = ScalarType::ALL.map(ScalarType::name).join(", ");
            Error::invalid(format!(
                "unknown attribute type {text:?}: expected one of {names}, or one of them followed by []"
            ))
        })?;
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
    /// The value's text: `red`, `42`, `1.5`, `true`, `2026-12-01T00:00:00.000Z`, `\x00ff`. Scalars only.
    Utf8,
    /// A JSON value: `"red"`, `42`, `["a","b"]`.
    Json,
    /// What HBase's class `Bytes` writes. Scalars only.
    ///
    /// | type | bytes |
    /// |---|---|
    /// | text | UTF-8 |
    /// | int | 8, big-endian, two's complement; 4 and 2 are read too |
    /// | float | 8, IEEE 754, big-endian; 4 are read too |
    /// | bool | 0xFF is true, 0 is false; any other byte is read as true |
    /// | decimal | the scale (4, as an int) and the unscaled value, big-endian, two's complement |
    /// | timestamp | its milliseconds as an int |
    /// | bytes | as they are |
    Hbase,
}

impl BaseEncoding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Utf8, Self::Json, Self::Hbase];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Json => "json",
            Self::Hbase => "hbase",
        }
    }

    /// The encoding of a type that nothing else was said of: arrays as JSON, scalars as UTF-8.
    pub fn usual(kind: AttributeType) -> Self {
        if kind.array { Self::Json } else { Self::Utf8 }
    }
}

impl fmt::Display for BaseEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BaseEncoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|e| e.name() == text).ok_or_else(|| {
            Error::invalid(format!("unknown encoding {text:?}: expected {}", Self::ALL.map(Self::name).join(", ")))
        })
    }
}

/// An attribute that is to be declared. Written `name:type[:encoding[:family:qualifier]]`; a qualifier may hold colons.
///
/// ```
/// use sideindex::schema::AttributeSpec;
/// let price: AttributeSpec = "price:decimal:hbase:d:p".parse()?;
/// assert_eq!((price.family.as_deref(), price.qualifier.as_deref()), (Some("d"), Some("p")));
/// assert_eq!(price.to_string(), "price:decimal:hbase:d:p");
/// # Ok::<(), sideindex::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeSpec {
    /// The name queries use.
    pub name: String,
    /// The type.
    pub kind: AttributeType,
    /// How the cells are written; none takes [`BaseEncoding::usual`].
    pub encoding: Option<BaseEncoding>,
    /// Column family; none takes the table's first.
    pub family: Option<String>,
    /// Column qualifier; none takes the name.
    pub qualifier: Option<String>,
}

impl AttributeSpec {
    /// An attribute of which nothing but its type is said.
    pub fn new(name: impl Into<String>, kind: AttributeType) -> Self {
        Self { name: name.into(), kind, encoding: None, family: None, qualifier: None }
    }

    /// The attribute in a table whose first family is `family`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::error::ErrorKind::Unsupported) for an array in an encoding that has none.
    pub fn resolve(&self, family: &str, code: Code) -> Result<Attribute> {
        let inferred = Attribute::inferred(&self.name, self.kind, family, code);
        let attribute = Attribute {
            encoding: self.encoding.unwrap_or(inferred.encoding),
            family: self.family.clone().unwrap_or(inferred.family),
            qualifier: self.qualifier.clone().unwrap_or(inferred.qualifier),
            ..inferred
        };
        if attribute.kind.array && attribute.encoding != BaseEncoding::Json {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "attribute {}: expected the encoding json for {}, found {}, which has no arrays",
                    self.name, self.kind, attribute.encoding
                ),
            ));
        }
        Ok(attribute)
    }

    /// What it says that differs from an attribute that is there, in words.
    pub(super) fn differs_from(&self, known: &Attribute) -> Option<String> {
        let other = |is: &dyn fmt::Display, cannot: &dyn fmt::Display| {
            Some(format!("attribute {} is {is}, and cannot be {cannot} as well", self.name))
        };
        if self.kind != known.kind {
            return other(&known.kind, &self.kind);
        }
        if known.key_part.is_some() && (self.encoding.is_some() || self.family.is_some()) {
            return other(&known.place(), &"in a column");
        }
        if let Some(encoding) = self.encoding.filter(|e| *e != known.encoding) {
            return other(&format!("encoded as {}", known.encoding), &encoding);
        }
        let family = self.family.as_deref().unwrap_or(&known.family);
        let qualifier = self.qualifier.as_deref().unwrap_or(&known.qualifier);
        if (family, qualifier) != (known.family.as_str(), known.qualifier.as_str()) {
            return other(&format!("in column {}", known.place()), &format!("in column {family}:{qualifier}"));
        }
        None
    }
}

impl FromStr for AttributeSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.splitn(5, ':');
        let (Some(name), Some(kind)) = (parts.next(), parts.next()) else {
            return Err(Error::invalid(format!(
                "expected an attribute as name:type[:encoding[:family:qualifier]], found {text:?}"
            )));
        };
        let place = |e: Error| e.within(format!("attribute {name}"));
        let mut spec = Self::new(name, kind.parse().map_err(place)?);
        spec.encoding = parts.next().map(str::parse).transpose().map_err(place)?;
        spec.family = parts.next().map(str::to_owned);
        spec.qualifier = parts.next().map(str::to_owned);
        if spec.family.is_some() && spec.qualifier.as_ref().is_none_or(String::is_empty) {
            return Err(Error::invalid(format!(
                "attribute {name}: expected family:qualifier after the encoding, found {text:?}"
            )));
        }
        Ok(spec)
    }
}

impl fmt::Display for AttributeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.kind)?;
        let column = self.family.as_ref().zip(self.qualifier.as_ref());
        if self.encoding.is_some() || column.is_some() {
            write!(f, ":{}", self.encoding.unwrap_or(BaseEncoding::usual(self.kind)))?;
        }
        column.map_or(Ok(()), |(family, qualifier)| write!(f, ":{family}:{qualifier}"))
    }
}

/// A named, typed column of a base table, or part of its row key.
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
    /// The place of the part of the row key that it is, from 0; such an attribute has no column: family and qualifier are
    /// empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_part: Option<usize>,
}

impl Attribute {
    /// An attribute that is a part of the row key.
    pub fn of_key(name: &str, kind: AttributeType, place: usize, code: Code) -> Self {
        let inferred = Self::inferred(name, kind, "", code);
        Self { qualifier: String::new(), key_part: Some(place), ..inferred }
    }

    /// Where it is, in words: `family:qualifier`, or the part of the row key.
    pub fn place(&self) -> String {
        match self.key_part {
            Some(place) => format!("row key, part {}", place + 1),
            None => format!("{}:{}", self.family, self.qualifier),
        }
    }

    /// An attribute as it is recorded when it is first seen: named after its qualifier, in the usual encoding.
    pub fn inferred(name: &str, kind: AttributeType, family: &str, code: Code) -> Self {
        Self {
            name: name.to_owned(),
            code,
            kind,
            encoding: BaseEncoding::usual(kind),
            family: family.to_owned(),
            qualifier: name.to_owned(),
            key_part: None,
        }
    }
}
