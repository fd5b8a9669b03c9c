//! Entry keys: `salt(1) code(2) value… rowkey…` (DESIGN.md §4).

use super::{Code, Definition};
use crate::error::{Error, Result};
use bytes::Bytes;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Family of index tables.
pub const FAMILY: &[u8] = b"i";
/// Qualifier of an entry's only cell.
pub const QUALIFIER: &[u8] = b"e";
/// The longest row key HBase takes, in bytes.
pub const MAX_ROW: usize = 32_767;

const FORMAT: u8 = 1;
const DISPUTED: u8 = 1;
/// Bytes before the first term.
const HEAD: usize = 3;

/// The value of an entry's cell: `format(1) flags(1) covered…`, `covered` being whole terms, one for each covered column.
pub fn encode_value(disputed: bool, covered: &[u8]) -> Bytes {
    let flags = if disputed { DISPUTED } else { 0 };
    [&[FORMAT, flags], covered].concat().into()
}

/// Whether an entry is disputed, and its covered terms.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for an unknown format.
pub fn decode_value(value: &[u8]) -> Result<(bool, &[u8])> {
    match value {
        [FORMAT, flags, covered @ ..] => Ok((flags & DISPUTED != 0, covered)),
        other => Err(Error::corrupt(format!(
            "expected an entry of format {FORMAT}, found {}: it was written by a newer sideindex",
            other.escape_ascii()
        ))),
    }
}

/// The salt of an entry. Equality definitions salt by code and first term, so that every lookup that fixes the first term
/// reads one range; ordered definitions by row key, so that every range is spread.
pub fn salt(definition: &Definition, first_term: &[u8], row: &[u8]) -> u8 {
    if definition.salts <= 1 {
        return 0;
    }
    let hash = if definition.ordered {
        xxh3_64(row)
    } else {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(&definition.code.to_be_bytes());
        hasher.update(first_term);
        hasher.digest()
    };
    // The remainder of a division by a u8 fits one.
    (hash % u64::from(definition.salts)) as u8
}

/// `salt code value…`: the start of all entries whose leading terms are the encoded `terms`.
pub fn prefix(salt: u8, code: Code, terms: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(HEAD + terms.len());
    key.push(salt);
    key.extend(code.to_be_bytes());
    key.extend_from_slice(terms);
    key
}

/// The entry key of `row` under `terms`, the key forms of all terms of the definition in order.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) when `terms` does not start with a term.
pub fn encode(definition: &Definition, terms: &[u8], row: &[u8]) -> Result<Vec<u8>> {
    let first = &terms[..definition.shape(0).len(terms)?];
    let mut key = prefix(salt(definition, first, row), definition.code, terms);
    key.extend_from_slice(row);
    Ok(key)
}

/// An entry key taken apart; ranges index into the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryKey {
    /// The encoded terms.
    pub terms: Range<usize>,
    /// The base row key.
    pub row: Range<usize>,
}

/// Takes an entry key apart.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) when the key is not an entry of the definition.
pub fn decode(key: &[u8], definition: &Definition) -> Result<EntryKey> {
    if key.len() < HEAD {
        return Err(Error::corrupt(format!("expected an entry key, found {}", key.escape_ascii())));
    }
    let mut at = HEAD;
    for place in 0..definition.terms.len() {
        at += definition.shape(place).len(&key[at..])?;
    }
    Ok(EntryKey { terms: HEAD..at, row: at..key.len() })
}

/// The smallest key above every key that starts with `prefix`; none when there is no such key.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|b| *b != 0xFF)?;
    let mut next = prefix[..=keep].to_vec();
    next[keep] += 1;
    Some(next)
}
