//! Base encodings: a cell's bytes ↔ a value.

use super::value::{bytes_from_base64, bytes_from_hex};
use super::{
    Attribute, AttributeType, AttributeValue, BaseEncoding, Decimal, Float, ScalarType, Value, calendar, hbase,
};
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;

fn wrong(attribute: &Attribute, found: &str) -> Error {
    let mut shown: String = found.chars().take(80).collect();
    if shown.len() < found.len() {
        shown.push('…');
    }
    let form = match (attribute.kind.scalar, attribute.encoding) {
        (ScalarType::Timestamp, BaseEncoding::Utf8 | BaseEncoding::Json) => {
            " (2026-12-01T00:00:00Z, a date, or milliseconds since 1970)"
        }
        (ScalarType::Bytes, BaseEncoding::Utf8) => r" (like \x00ff)",
        (ScalarType::Bytes, _) => " (base64 in JSON)",
        (ScalarType::Decimal, BaseEncoding::Json) => r#" (text like "12.50", or a number of at most 15 digits)"#,
        _ => "",
    };
    Error::new(ErrorKind::WrongType, format!("expected {}{form}, found {shown}", attribute.kind))
        .within(format!("attribute {}", attribute.name))
}

/// Decodes a cell's value.
///
/// # Errors
/// [`ErrorKind::WrongType`] says which attribute, what was expected and what was found.
pub fn decode(attribute: &Attribute, bytes: &[u8]) -> Result<AttributeValue> {
    match attribute.encoding {
        BaseEncoding::Utf8 => {
            let text = std::str::from_utf8(bytes)
                .map_err(|_| wrong(attribute, &format!("bytes that are not UTF-8: {}", bytes.escape_ascii())))?;
            parse(attribute, text).map(AttributeValue::One)
        }
        BaseEncoding::Json => {
            if attribute.kind == (AttributeType { scalar: ScalarType::Text, array: true }) {
                // The common case by far: no detour over a JSON tree.
                if let Ok(texts) = serde_json::from_slice::<Vec<String>>(bytes) {
                    return Ok(AttributeValue::Many(texts.into_iter().map(Value::Text).collect()));
                }
            }
            let json: serde_json::Value = serde_json::from_slice(bytes).map_err(|e| {
                wrong(attribute, &format!("{:?}, which is not JSON ({e})", bytes.escape_ascii().to_string()))
            })?;
            match from_json(attribute, &json)? {
                Some(value) => Ok(value),
                None if attribute.kind.array && json.is_array() => Ok(AttributeValue::Many(Vec::new())),
                None => Err(wrong(attribute, "null")),
            }
        }
        BaseEncoding::Hbase => hbase::decode(attribute.kind.scalar, bytes)
            .map_err(|e| e.within(format!("attribute {}", attribute.name)))?
            .map(AttributeValue::One)
            .ok_or_else(|| wrong(attribute, &format!("{} bytes that are none: {}", bytes.len(), bytes.escape_ascii()))),
    }
}

/// Reads the text of a scalar, as `Display` writes it.
///
/// # Errors
/// [`ErrorKind::WrongType`], as for [`decode`].
pub fn parse(attribute: &Attribute, text: &str) -> Result<Value> {
    let value = match attribute.kind.scalar {
        ScalarType::Text => Some(Value::Text(text.to_owned())),
        ScalarType::Int => text.parse().ok().map(Value::Int),
        ScalarType::Float => text.parse().ok().map(|f| Value::Float(Float::new(f))),
        ScalarType::Bool => text.parse().ok().map(Value::Bool),
        ScalarType::Decimal => Some(Value::Decimal(decimal(attribute, text)?)),
        ScalarType::Timestamp => calendar::parse(text).map(Value::Timestamp),
        ScalarType::Bytes => bytes_from_hex(text).map(Value::Bytes),
    };
    value.ok_or_else(|| wrong(attribute, &format!("{text:?}")))
}

fn decimal(attribute: &Attribute, text: &str) -> Result<Decimal> {
    text.parse().map_err(|e: Error| e.within(format!("attribute {}", attribute.name)))
}

/// Encodes a value for a cell. The value must be of the attribute's type, as those made by [`from_json`] and [`decode`] are.
pub fn encode(attribute: &Attribute, value: &AttributeValue) -> Bytes {
    match attribute.encoding {
        BaseEncoding::Utf8 => value.to_string().into(),
        BaseEncoding::Json => value.to_json().to_string().into(),
        BaseEncoding::Hbase => value.elements().first().map(hbase::encode).unwrap_or_default(),
    }
}

/// Reads a JSON value as the attribute's type. Null, and an array without elements, are no value at all.
///
/// # Errors
/// [`ErrorKind::WrongType`], as for [`decode`].
pub fn from_json(attribute: &Attribute, json: &serde_json::Value) -> Result<Option<AttributeValue>> {
    match json {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::Array(items) if attribute.kind.array => {
            let values = items.iter().map(|item| scalar(attribute, item)).collect::<Result<Vec<_>>>()?;
            Ok((!values.is_empty()).then_some(AttributeValue::Many(values)))
        }
        _ if attribute.kind.array => Err(wrong(attribute, &json.to_string())),
        _ => Ok(Some(AttributeValue::One(scalar(attribute, json)?))),
    }
}

fn scalar(attribute: &Attribute, json: &serde_json::Value) -> Result<Value> {
    let found = match (attribute.kind.scalar, json) {
        (ScalarType::Text, serde_json::Value::String(text)) => Some(Value::Text(text.clone())),
        (ScalarType::Int, serde_json::Value::Number(n)) => n.as_i64().map(Value::Int),
        (ScalarType::Float, serde_json::Value::Number(n)) => n.as_f64().map(|f| Value::Float(Float::new(f))),
        // What `Value::to_json` writes for the floats that JSON has no number for.
        (ScalarType::Float, serde_json::Value::String(text)) if matches!(text.as_str(), "NaN" | "inf" | "-inf") => {
            text.parse().ok().map(|f| Value::Float(Float::new(f)))
        }
        (ScalarType::Bool, serde_json::Value::Bool(b)) => Some(Value::Bool(*b)),
        (ScalarType::Decimal, serde_json::Value::String(text)) => Some(Value::Decimal(decimal(attribute, text)?)),
        (ScalarType::Decimal, serde_json::Value::Number(n)) => exact(n).map(Value::Decimal),
        (ScalarType::Timestamp, serde_json::Value::String(text)) => calendar::parse(text).map(Value::Timestamp),
        (ScalarType::Timestamp, serde_json::Value::Number(n)) => n.as_i64().map(Value::Timestamp),
        (ScalarType::Bytes, serde_json::Value::String(text)) => bytes_from_base64(text).map(Value::Bytes),
        _ => None,
    };
    found.ok_or_else(|| wrong(attribute, &json.to_string()))
}

/// A JSON number as a decimal. One with a fraction has been read as a 64-bit float, which brings back any 15 digits and no
/// more.
fn exact(number: &serde_json::Number) -> Option<Decimal> {
    if let Some(int) = number.as_i64() {
        return Some(int.into());
    }
    if let Some(int) = number.as_u64() {
        return Some(int.into());
    }
    let text = number.to_string();
    let digits = text.split(['e', 'E']).next()?.bytes().filter(u8::is_ascii_digit).count();
    let zeros = text.bytes().filter(|b| !matches!(b, b'-' | b'.')).take_while(|b| *b == b'0').count();
    (digits - zeros.min(digits) <= 15).then(|| text.parse().ok())?
}

/// The type of a JSON value seen for the first time; none for null and for an empty array, which show no type.
///
/// # Errors
/// [`ErrorKind::WrongType`] for objects, nested arrays and arrays of mixed types.
pub fn infer(json: &serde_json::Value) -> Result<Option<AttributeType>> {
    let unfit = || {
        Error::new(
            ErrorKind::WrongType,
            format!("expected text, a number, true or false, or an array of one of them, found {json}"),
        )
    };
    let scalar_type = |value: &serde_json::Value| match value {
        serde_json::Value::String(_) => Ok(ScalarType::Text),
        serde_json::Value::Number(n) if n.as_i64().is_some() => Ok(ScalarType::Int),
        serde_json::Value::Number(_) => Ok(ScalarType::Float),
        serde_json::Value::Bool(_) => Ok(ScalarType::Bool),
        _ => Err(unfit()),
    };
    match json {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::Array(items) => {
            let mut found = None;
            for item in items {
                let t = scalar_type(item)?;
                found = match (found, t) {
                    (None, t) => Some(t),
                    (Some(ScalarType::Int), ScalarType::Float) | (Some(ScalarType::Float), ScalarType::Int) => {
                        Some(ScalarType::Float)
                    }
                    (Some(f), t) if f == t => Some(t),
                    _ => return Err(unfit()),
                };
            }
            Ok(found.map(|scalar| AttributeType { scalar, array: true }))
        }
        one => Ok(Some(AttributeType { scalar: scalar_type(one)?, array: false })),
    }
}
