//! Order-preserving, self-delimiting encodings of single values: what entry keys are made of (DESIGN.md §4).
//!
//! A term is a type byte and a body. Under `memcmp` null is below everything, and values of one type are in their own
//! order. Integers and timestamps are big-endian with the sign bit flipped; floats by the sign trick; decimals by sign, place
//! of the point and pairs of digits; text and bytes have each 0x00 written as 0x00 0xFF and end in 0x00 0x01.
//!
//! In entry keys a term may be cut and inverted ([`Shape`]). A text that is longer than the limit is cut before the character
//! that passes it, and ends in 0x00 0x02 and the xxh3-128 of the whole text. So terms of texts whose first `limit` − 3 bytes
//! differ are in the order of the texts; those of others may not be.

use super::{Decimal, Float, Value};
use crate::error::{Error, Result};
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_128;

/// Type byte of null: below all others.
pub const NULL: u8 = 0x05;
const BOOL: u8 = 0x10;
const INT: u8 = 0x20;
const FLOAT: u8 = 0x28;
const DECIMAL: u8 = 0x30;
const TIMESTAMP: u8 = 0x40;
const TEXT: u8 = 0x50;
const BYTES: u8 = 0x60;

const END: u8 = 0x01;
const CUT: u8 = 0x02;
/// Bytes of the hash of a cut text.
const HASH: usize = 16;

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

/// How an escaped run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// Its length, without the terminator and what follows.
    body: usize,
    /// Its length with them.
    whole: usize,
    /// It ends in the hash of a longer text.
    is_cut: bool,
    /// Something in it is escaped.
    escapes: bool,
}

/// The length of an escaped run at the start of `bytes`, its terminator included, and whether anything in it was escaped.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) when there is no terminator or an unknown byte follows a 0x00.
pub fn escaped_len(bytes: &[u8]) -> Result<(usize, bool)> {
    match run(bytes, 0)? {
        Run { is_cut: true, .. } => {
            Err(Error::corrupt("expected 0xFF or 0x01 after 0x00 in an escaped run, found 0x02"))
        }
        run => Ok((run.whole, run.escapes)),
    }
}

/// Finds the end of an escaped run at the start of `bytes`, each of which is inverted by `mask`.
fn run(bytes: &[u8], mask: u8) -> Result<Run> {
    let (mut at, mut escapes) = (0, false);
    loop {
        let zero = bytes[at..].iter().position(|b| *b == mask).map(|i| at + i);
        match zero.and_then(|z| bytes.get(z + 1).map(|next| (z, *next ^ mask))) {
            Some((z, END)) => return Ok(Run { body: z, whole: z + 2, is_cut: false, escapes }),
            Some((z, CUT)) if bytes.len() >= z + 2 + HASH => {
                return Ok(Run { body: z, whole: z + 2 + HASH, is_cut: true, escapes });
            }
            Some((_, CUT)) => return Err(Error::corrupt("expected a hash of 16 bytes after 0x00 0x02, found the end")),
            Some((z, 0xFF)) => {
                escapes = true;
                at = z + 2;
            }
            Some((_, next)) => {
                return Err(Error::corrupt(format!(
                    "expected 0xFF, 0x01 or 0x02 after 0x00 in an escaped run, found {next:#04x}"
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
    masked_len(bytes, 0)
}

fn masked_len(bytes: &[u8], mask: u8) -> Result<usize> {
    let fixed = match bytes.first().map(|b| b ^ mask) {
        Some(NULL) => 1,
        Some(BOOL) => 2,
        Some(INT | FLOAT | TIMESTAMP) => 9,
        Some(DECIMAL) => return Ok(1 + Decimal::encoded_len(&bytes[1..], mask)?),
        Some(TEXT | BYTES) => return Ok(1 + run(&bytes[1..], mask)?.whole),
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
            let ordered = number();
            let bits = if ordered & SIGN == 0 { !ordered } else { ordered ^ SIGN };
            let float = Float::new(f64::from_bits(bits));
            if float.get().to_bits() != bits {
                return Err(Error::corrupt(format!(
                    "expected a float, found {bits:#018x}: there is one zero and one NaN"
                )));
            }
            Value::Float(float)
        }
        DECIMAL => Value::Decimal(Decimal::decode(body)?),
        TIMESTAMP => Value::Timestamp((number() ^ SIGN).cast_signed()),
        kind => {
            let run = run(body, 0)?;
            if run.is_cut {
                return Err(Error::corrupt("expected a whole term, found one that is cut"));
            }
            let bytes = unescape(&body[..run.body]);
            if kind == BYTES {
                return Ok(Some(Value::Bytes(bytes.into())));
            }
            Value::Text(
                String::from_utf8(bytes).map_err(|e| Error::corrupt("expected UTF-8 in a text term").with_source(e))?,
            )
        }
    }))
}

/// How the values of one term stand in entry keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Inverted bitwise, so that the largest value comes first.
    pub descending: bool,
    /// Longer texts are cut, in bytes; 0 cuts none.
    pub limit: u32,
}

impl Shape {
    fn mask(self) -> u8 {
        if self.descending { 0xFF } else { 0 }
    }

    /// The key form of a whole term.
    ///
    /// # Errors
    /// [`Corrupt`](crate::error::ErrorKind::Corrupt) when `term` is no whole term.
    pub fn encode<'a>(self, term: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let cut = self.cut(term)?;
        let mut encoded = match cut {
            Some((text, kept)) => {
                let mut out = Vec::with_capacity(kept + 19);
                out.push(term[0]);
                escape(&text[..kept], &mut out);
                let end = out.len() - 1;
                out[end] = CUT;
                out.extend(xxh3_128(&text).to_be_bytes());
                Cow::Owned(out)
            }
            None => Cow::Borrowed(term),
        };
        if self.descending {
            encoded.to_mut().iter_mut().for_each(|b| *b = !*b);
        }
        Ok(encoded)
    }

    /// The text of a term that is to be cut, and how much of it is kept.
    fn cut(self, term: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
        let limit = self.limit as usize;
        // An escaped text is at least as long as the text.
        if limit == 0 || term.len() <= limit || !has_run(term) {
            return Ok(None);
        }
        let text = unescape(&term[1..1 + run(&term[1..], 0)?.body]);
        if text.len() <= limit {
            return Ok(None);
        }
        let kept = boundary(term[0], &text, limit);
        Ok(Some((text, kept)))
    }

    /// What the key forms of a term, and of everything that may be out of order with it, start with: the whole of a term
    /// that is short, the start of a long text without its end.
    ///
    /// # Errors
    /// As [`Shape::encode`].
    pub fn reach<'a>(self, term: &'a [u8]) -> Result<(Cow<'a, [u8]>, bool)> {
        let limit = self.limit as usize;
        if limit == 0 || term.len() < limit || !has_run(term) {
            return Ok((self.encode(term)?, false));
        }
        let text = unescape(&term[1..1 + run(&term[1..], 0)?.body]);
        if text.len() + 3 < limit {
            return Ok((self.encode(term)?, false));
        }
        let mut out = vec![term[0]];
        escape(&text[..boundary(term[0], &text, limit.saturating_sub(3))], &mut out);
        out.truncate(out.len() - 2);
        if self.descending {
            out.iter_mut().for_each(|b| *b = !*b);
        }
        Ok((out.into(), true))
    }

    /// The length of the key form at the start of `bytes`.
    ///
    /// # Errors
    /// As [`len`].
    pub fn len(self, bytes: &[u8]) -> Result<usize> {
        masked_len(bytes, self.mask())
    }

    /// The whole term of a key form; none when it is cut.
    ///
    /// # Errors
    /// As [`len`].
    pub fn decode(self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        let mask = self.mask();
        if has_run(&[key.first().copied().unwrap_or_default() ^ mask]) && run(&key[1..], mask)?.is_cut {
            return Ok(None);
        }
        Ok(Some(if self.descending { key.iter().map(|b| !b).collect::<Vec<_>>().into() } else { key.into() }))
    }
}

/// Whether a term's body is an escaped run.
fn has_run(term: &[u8]) -> bool {
    matches!(term.first(), Some(&TEXT | &BYTES))
}

/// The last place at or before `limit` where a text may be cut.
fn boundary(kind: u8, text: &[u8], limit: usize) -> usize {
    let mut at = limit.min(text.len());
    // Only a text in UTF-8 has characters of several bytes; those after the first are 0b10xxxxxx.
    while kind == TEXT && at > 0 && text.get(at).is_some_and(|b| b & 0xC0 == 0x80) {
        at -= 1;
    }
    at
}
