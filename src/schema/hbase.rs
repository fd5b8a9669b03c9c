//! Values as HBase's class `Bytes` writes them; [`BaseEncoding::Hbase`](super::BaseEncoding::Hbase) has the table.

use super::{Decimal, ScalarType, Value};
use crate::error::Result;
use bigdecimal::num_bigint::BigInt;
use bytes::Bytes;

/// Reads a value of a type; none when the length, or the text, is not of that type.
///
/// # Errors
/// [`WrongType`](crate::error::ErrorKind::WrongType) for a decimal out of bounds.
pub(super) fn decode(scalar: ScalarType, bytes: &[u8]) -> Result<Option<Value>> {
    Ok(match scalar {
        ScalarType::Text => std::str::from_utf8(bytes).ok().map(Value::from),
        ScalarType::Int => int(bytes).map(Value::Int),
        ScalarType::Float => float(bytes).map(Value::from),
        ScalarType::Bool => <[u8; 1]>::try_from(bytes).ok().map(|[b]| Value::Bool(b != 0)),
        ScalarType::Decimal => match bytes.split_first_chunk::<4>() {
            Some((scale, unscaled)) if !unscaled.is_empty() => {
                let scale = i64::from(i32::from_be_bytes(*scale));
                Some(Value::Decimal(Decimal::new(BigInt::from_signed_bytes_be(unscaled), scale)?))
            }
            _ => None,
        },
        ScalarType::Timestamp => <[u8; 8]>::try_from(bytes).ok().map(|b| Value::Timestamp(i64::from_be_bytes(b))),
        ScalarType::Bytes => Some(Value::Bytes(Bytes::copy_from_slice(bytes))),
    })
}

/// A `long`, an `int` or a `short`.
pub(super) fn int(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        8 => bytes.try_into().ok().map(i64::from_be_bytes),
        4 => bytes.try_into().ok().map(|b| i64::from(i32::from_be_bytes(b))),
        2 => bytes.try_into().ok().map(|b| i64::from(i16::from_be_bytes(b))),
        _ => None,
    }
}

/// A `double` or a `float`.
fn float(bytes: &[u8]) -> Option<f64> {
    match bytes.len() {
        8 => bytes.try_into().ok().map(f64::from_be_bytes),
        4 => bytes.try_into().ok().map(|b| f64::from(f32::from_be_bytes(b))),
        _ => None,
    }
}

/// Writes a value.
pub(super) fn encode(value: &Value) -> Bytes {
    match value {
        Value::Bool(b) => Bytes::from_static(if *b { &[0xFF] } else { &[0x00] }),
        Value::Int(i) | Value::Timestamp(i) => Bytes::copy_from_slice(&i.to_be_bytes()),
        Value::Float(f) => Bytes::copy_from_slice(&f.get().to_be_bytes()),
        Value::Decimal(decimal) => {
            let (unscaled, scale) = decimal.unscaled();
            // A scale is at most Decimal::MAX_DIGITS, so that the truncation loses nothing.
            [&(scale as i32).to_be_bytes()[..], &unscaled.to_signed_bytes_be()].concat().into()
        }
        Value::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
        Value::Bytes(bytes) => bytes.clone(),
    }
}
