//! Base encodings: a cell's bytes ↔ a value.

use super::{Attribute, AttributeType, AttributeValue, BaseEncoding, Float, ScalarType, Value};
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;

fn wrong(attribute: &Attribute, found: &str) -> Error {
    let mut shown: String = found.chars().take(80).collect();
    if shown.len() < found.len() {
        shown.push('…');
    }
    Error::new(ErrorKind::WrongType, format!("expected {}, found {shown}", attribute.kind))
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
            let value = match attribute.kind.scalar {
                ScalarType::Text => Value::Text(text.to_owned()),
                ScalarType::Int => Value::Int(text.parse().map_err(|_| wrong(attribute, &format!("{text:?}")))?),
                ScalarType::Float => {
                    Value::Float(Float::new(text.parse().map_err(|_| wrong(attribute, &format!("{text:?}")))?))
                }
                ScalarType::Bool => Value::Bool(text.parse().map_err(|_| wrong(attribute, &format!("{text:?}")))?),
            };
            Ok(AttributeValue::One(value))
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
            from_json(attribute, &json)?.ok_or_else(|| wrong(attribute, "null"))
        }
    }
}

/// Encodes a value for a cell. The value must be of the attribute's type, as those made by [`from_json`] and [`decode`] are.
pub fn encode(attribute: &Attribute, value: &AttributeValue) -> Bytes {
    match attribute.encoding {
        BaseEncoding::Utf8 => value.to_string().into(),
        BaseEncoding::Json => value.to_json().to_string().into(),
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
        _ => None,
    };
    found.ok_or_else(|| wrong(attribute, &json.to_string()))
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
