//! Order-preserving, self-delimiting encodings of single values: what entry keys are made of (DESIGN.md §4).
//!
//! A term is a type byte and a body. Under `memcmp` null is below everything, and values of one type are in their own
//! order. Integers and timestamps are big-endian with the sign bit flipped; floats by the sign trick; decimals by sign, place
//! of the point and pairs of digits; text and bytes have each 0x00 written as 0x00 0xFF and end in 0x00 0x01.

use super::{Decimal, Float, Value};
use crate::error::{Error, Result};

/// Type byte of null: below all others.
pub const NULL: u8 = 0x05;
const BOOL: u8 = 0x10;
const INT: u8 = 0x20;
const FLOAT: u8 = 0x28;
const DECIMAL: u8 = 0x30;
const TIMESTAMP: u8 = 0x40;
const TEXT: u8 = 0x50;
const BYTES: u8 = 0x60;

const SIGN: u64 = 1 << 63;

/// Appends the encoding of a value.
///
/// ```
/// use sideindex::schema::term;
/// let mut red = Vec::new();
/// term::encode(&"red".into(), &mut red);
/// assert_eq!(red, b"\x50red\x00\x01");
/// ```
pub fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(b) => out.extend([BOOL, u8::from(*b)]),
        Value::Int(i) => {
            out.push(INT);
            out.extend((i.cast_unsigned() ^ SIGN).to_be_bytes());
        }
        Value::Float(f) => {
            out.push(FLOAT);
            let bits = f.get().to_bits();
            out.extend(if bits & SIGN == 0 { bits ^ SIGN } else { !bits }.to_be_bytes());
        }
        Value::Decimal(decimal) => {
            out.push(DECIMAL);
            decimal.encode(out);
        }
        Value::Timestamp(ms) => {
            out.push(TIMESTAMP);
            out.extend((ms.cast_unsigned() ^ SIGN).to_be_bytes());
        }
        Value::Text(text) => {
            out.push(TEXT);
            escape(text.as_bytes(), out);
        }
        Value::Bytes(bytes) => {
            out.push(BYTES);
            escape(bytes, out);
        }
    }
}

/// Appends the encoding of null.
pub fn encode_null(out: &mut Vec<u8>) {
    out.push(NULL);
}

/// Appends bytes so that they end themselves and keep their order: 0x00 becomes 0x00 0xFF, the end is 0x00 0x01.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|b| *b == 0) {
        out.extend_from_slice(&rest[..zero]);
        out.extend([0x00, 0xFF]);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend([0x00, 0x01]);
}

/// The length of an escaped run at the start of `bytes`, its terminator included, and whether anything in it was escaped.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) when there is no terminator or an unknown byte follows a 0x00.
pub fn escaped_len(bytes: &[u8]) -> Result<(usize, bool)> {
    let mut at = 0;
    let mut escapes = false;
    loop {
        let zero = bytes[at..].iter().position(|b| *b == 0).map(|i| at + i);
        match zero.and_then(|z| bytes.get(z + 1).map(|next| (z, *next))) {
            Some((z, 0x01)) => return Ok((z + 2, escapes)),
            Some((z, 0xFF)) => {
                escapes = true;
                at = z + 2;
            }
            Some((_, next)) => {
                return Err(Error::corrupt(format!(
                    "expected 0xFF or 0x01 after 0x00 in an escaped run, found {next:#04x}"
                )));
            }
            None => return Err(Error::corrupt("expected a terminator 0x00 0x01 of an escaped run, found the end")),
        }
    }
}

/// Undoes [`escape`]; `run` is a whole run without its terminator.
pub fn unescape(run: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(run.len());
    let mut rest = run;
    while let Some(zero) = rest.iter().position(|b| *b == 0) {
        out.extend_from_slice(&rest[..=zero]);
        rest = rest.get(zero + 2..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

/// The length of the term at the start of `bytes`.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for an unknown type byte or a cut body.
pub fn len(bytes: &[u8]) -> Result<usize> {
    let fixed = match bytes.first() {
        Some(&NULL) => 1,
        Some(&BOOL) => 2,
        Some(&INT | &FLOAT | &TIMESTAMP) => 9,
        Some(&DECIMAL) => return Ok(1 + Decimal::encoded_len(&bytes[1..])?),
        Some(&TEXT | &BYTES) => return Ok(1 + escaped_len(&bytes[1..])?.0),
        Some(other) => return Err(Error::corrupt(format!("expected the type byte of a term, found {other:#04x}"))),
        None => return Err(Error::corrupt("expected a term, found the end")),
    };
    if bytes.len() < fixed {
        return Err(Error::corrupt(format!("expected a term of {fixed} bytes, found {}", bytes.len())));
    }
    Ok(fixed)
}

/// Splits a concatenation of terms.
///
/// # Errors
/// As [`len`].
pub fn split(mut bytes: &[u8]) -> Result<Vec<&[u8]>> {
    let mut terms = Vec::new();
    while !bytes.is_empty() {
        let (term, rest) = bytes.split_at(len(bytes)?);
        terms.push(term);
        bytes = rest;
    }
    Ok(terms)
}

/// Decodes one whole term; none is null.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for anything [`encode`] does not write.
pub fn decode(bytes: &[u8]) -> Result<Option<Value>> {
    if len(bytes)? != bytes.len() {
        return Err(Error::corrupt("expected one term, found more bytes after it"));
    }
    let body = &bytes[1..];
    let number = || {
        let mut eight = [0; 8];
        eight.copy_from_slice(body);
        u64::from_be_bytes(eight)
    };
    Ok(Some(match bytes[0] {
        NULL => return Ok(None),
        BOOL => match body[0] {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            other => return Err(Error::corrupt(format!("expected 0 or 1 in a bool term, found {other}"))),
        },
        INT => Value::Int((number() ^ SIGN).cast_signed()),
        FLOAT => {
            let bits = number();
            Value::Float(Float::new(f64::from_bits(if bits & SIGN == 0 { !bits } else { bits ^ SIGN })))
        }
        DECIMAL => Value::Decimal(Decimal::decode(body)?),
        TIMESTAMP => Value::Timestamp((number() ^ SIGN).cast_signed()),
        BYTES => Value::Bytes(unescape(&body[..body.len() - 2]).into()),
        _ => {
            let text = unescape(&body[..body.len() - 2]);
            Value::Text(
                String::from_utf8(text).map_err(|e| Error::corrupt("expected UTF-8 in a text term").with_source(e))?,
            )
        }
    }))
}
