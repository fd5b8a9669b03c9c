//! Decoded values.

use super::{Decimal, calendar};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use std::cmp::Ordering;
use std::fmt;

/// A float with a total order that agrees with its encoding: −0.0 is 0.0, there is one NaN, and it is above all others.
#[derive(Debug, Clone, Copy)]
pub struct Float(f64);

impl Float {
    /// The canonical form of `value`.
    pub fn new(value: f64) -> Self {
        if value.is_nan() {
            Self(f64::NAN)
        } else if value == 0.0 {
            Self(0.0)
        } else {
            Self(value)
        }
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Float {}
impl PartialOrd for Float {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Float {
    fn cmp(&self, other: &Self) -> Ordering {
        // Canonical values have one zero and one positive NaN, so the total order of IEEE 754 is the order we want.
        self.0.total_cmp(&other.0)
    }
}
impl std::hash::Hash for Float {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// One scalar value. The order within a type is the order of its encoding; values of different types are never compared
/// by queries, and are ordered here by type only so that the type is `Ord`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// False before true.
    Bool(bool),
    /// 64 bits, signed.
    Int(i64),
    /// 64 bits.
    Float(Float),
    /// Exact, of any precision.
    Decimal(Decimal),
    /// Milliseconds since 1970.
    Timestamp(i64),
    /// Ordered by its UTF-8 bytes.
    Text(String),
    /// Ordered byte by byte.
    Bytes(Bytes),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}
impl From<bool> for Value {
    fn from(bool: bool) -> Self {
        Self::Bool(bool)
    }
}
impl From<f64> for Value {
    fn from(float: f64) -> Self {
        Self::Float(Float::new(float))
    }
}

impl From<Decimal> for Value {
    fn from(decimal: Decimal) -> Self {
        Self::Decimal(decimal)
    }
}

impl Value {
    /// The value as JSON. What JSON cannot carry exactly becomes a string: a decimal, a timestamp, bytes in base64, a float
    /// that is no number by its name.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Bool(b) => (*b).into(),
            Self::Int(i) => (*i).into(),
            Self::Float(f) => serde_json::Number::from_f64(f.get())
                .map_or_else(|| f.get().to_string().into(), serde_json::Value::Number),
            Self::Decimal(d) => d.to_string().into(),
            Self::Timestamp(ms) => calendar::show(*ms).into(),
            Self::Text(t) => t.as_str().into(),
            Self::Bytes(bytes) => STANDARD.encode(bytes).into(),
        }
    }
}

/// Reads bytes as [`Value::to_json`] writes them: base64, padded.
pub(super) fn bytes_from_base64(text: &str) -> Option<Bytes> {
    STANDARD.decode(text).ok().map(Bytes::from)
}

/// Reads bytes as `Display` writes them: `\\x` and hexadecimal digits.
pub(super) fn bytes_from_hex(text: &str) -> Option<Bytes> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    let digit = |d: &u8| char::from(*d).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    };
    digits.chunks(2).map(byte).collect()
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(b) => b.fmt(f),
            Self::Int(i) => i.fmt(f),
            Self::Float(x) => x.get().fmt(f),
            Self::Decimal(d) => d.fmt(f),
            Self::Timestamp(ms) => f.write_str(&calendar::show(*ms)),
            Self::Text(t) => f.write_str(t),
            Self::Bytes(bytes) => {
                f.write_str("\\x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// What one attribute of one row holds. Null is the absence of an `AttributeValue`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A scalar attribute's value.
    One(Value),
    /// An array attribute's elements in their stored order, repetitions included.
    Many(Vec<Value>),
}

impl AttributeValue {
    /// The value, or every element of the array.
    pub fn elements(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }

    /// The value as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::One(value) => value.to_json(),
            Self::Many(values) => values.iter().map(Value::to_json).collect(),
        }
    }
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(value) => value.fmt(f),
            Self::Many(values) => {
                for (i, value) in values.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    value.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}
