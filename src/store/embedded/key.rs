//! The key of a cell: `escape(row) family 0x00 escape(qualifier) !timestamp(8) !type(1)`.
//!
//! Under `memcmp` cells are in HBase's order: row, family, qualifier, newest first, markers before puts of the same
//! timestamp. [`term::escape`] ends a run by itself, so no row's cells lie among another's.

use crate::error::{Error, Result};
use crate::model::{CellKind, Timestamp};
use crate::schema::term;
use crate::store::rules::check_row_key;
use bytes::Bytes;
use std::ops::Bound;

/// fjall's longest key, in bytes.
pub(super) const KEY_LIMIT: usize = 65_535;
/// What a row key leaves of [`KEY_LIMIT`] to family and qualifier.
const COLUMN_ROOM: usize = 2_048;
/// Timestamp and type.
const TAIL: usize = 9;

/// The length of `bytes` when escaped, terminator included.
pub(super) fn escaped_size(bytes: &[u8]) -> usize {
    bytes.len() + bytes.iter().filter(|b| **b == 0).count() + 2
}

/// Whether a row of this key can be stored.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput), saying why not.
pub(super) fn check_row(row: &[u8]) -> Result<()> {
    check_row_key(row)?;
    let limit = KEY_LIMIT - COLUMN_ROOM;
    if row.len() > limit / 2 - 1 && escaped_size(row) > limit {
        return Err(Error::invalid(format!(
            "expected a row key of at most {limit} bytes with its 0x00 bytes counted twice, found {}",
            escaped_size(row)
        )));
    }
    Ok(())
}

/// The prefix that all cells of a row share, and no others.
pub(super) fn row_prefix(row: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(row.len() + 8);
    term::escape(row, &mut prefix);
    prefix
}

/// The lowest key of the rows at or after `row`, cut to what fjall takes.
pub(super) fn row_start(row: &[u8]) -> Vec<u8> {
    let mut key = row_prefix(row);
    key.truncate(KEY_LIMIT);
    key
}

/// Makes a key that ends in an escaped run the lowest one above all that start with it.
pub(super) fn after_run(key: &mut [u8]) {
    if let Some(last) = key.last_mut() {
        *last = 0x02;
    }
}

/// The length of a cell's key behind its row prefix.
pub(super) fn column_size(family: &[u8], qualifier: &[u8]) -> usize {
    family.len() + 1 + escaped_size(qualifier) + TAIL
}

/// Timestamp and type as a key ends.
pub(super) fn tail(timestamp: Timestamp, kind: CellKind) -> [u8; TAIL] {
    let mut tail = [0; TAIL];
    tail[..8].copy_from_slice(&(!timestamp.cast_unsigned()).to_be_bytes());
    tail[8] = !kind.code();
    tail
}

/// Decodes what [`tail`] wrote.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for another length, a negative timestamp or an unknown type.
pub(super) fn split_tail(bytes: &[u8]) -> Result<(Timestamp, CellKind)> {
    let (timestamp, kind) = bytes
        .split_first_chunk::<8>()
        .filter(|(_, kind)| kind.len() == 1)
        .ok_or_else(|| Error::corrupt(format!("expected {TAIL} bytes of timestamp and type, found {}", bytes.len())))?;
    let timestamp = (!u64::from_be_bytes(*timestamp)).cast_signed();
    if timestamp < 0 {
        return Err(Error::corrupt(format!("expected a timestamp, found {timestamp}")));
    }
    let code = !kind[0];
    let kind =
        CellKind::from_code(code).ok_or_else(|| Error::corrupt(format!("expected a cell type, found {code}")))?;
    Ok((timestamp, kind))
}

/// The row prefix at the start of a cell's key, and the row key in it. Both share the key's memory, unless the row key
/// was escaped.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for anything that is no escaped run.
pub(super) fn split_row(key: &Bytes) -> Result<(Bytes, Bytes)> {
    let (end, escapes) = term::escaped_len(key)?;
    Ok((key.slice(..end), run(key, 0, end, escapes)))
}

/// The escaped run in `key[start..end]`, its terminator included, undone.
pub(super) fn run(key: &Bytes, start: usize, end: usize, escapes: bool) -> Bytes {
    let run = start..end - 2;
    if escapes { term::unescape(&key[run]).into() } else { key.slice(run) }
}

/// A range of stored keys.
pub(super) type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys of the rows from `start`, included, to `stop`, excluded; none if there can't be any.
///
/// A bound too long for fjall is cut: no stored key is longer than the cut, so one is at or above the bound exactly if it
/// is above the cut.
pub(super) fn rows_between(start: Option<&[u8]>, stop: Option<&[u8]>) -> Option<KeyRange> {
    if let (Some(start), Some(stop)) = (start, stop)
        && start >= stop
    {
        return None;
    }
    if stop.is_some_and(<[u8]>::is_empty) {
        return None;
    }
    let lower = match start.map(row_prefix) {
        None => Bound::Unbounded,
        Some(mut key) if key.len() > KEY_LIMIT => {
            key.truncate(KEY_LIMIT);
            Bound::Excluded(key)
        }
        Some(key) => Bound::Included(key),
    };
    let upper = match stop.map(row_prefix) {
        None => Bound::Unbounded,
        Some(mut key) if key.len() > KEY_LIMIT => {
            key.truncate(KEY_LIMIT);
            Bound::Included(key)
        }
        Some(key) => Bound::Excluded(key),
    };
    let range = (lower, upper);
    (!is_empty(&range)).then_some(range)
}

/// Whether no key can be in a range; fjall is not asked then.
pub(super) fn is_empty(range: &KeyRange) -> bool {
    let (Bound::Included(lower) | Bound::Excluded(lower), Bound::Included(upper) | Bound::Excluded(upper)) = range
    else {
        return false;
    };
    lower > upper || (lower == upper && !matches!(range, (Bound::Included(_), Bound::Included(_))))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Bytes that are often 0x00, 0x01 and 0xFF.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        vec(prop_oneof![Just(0), Just(1), Just(0xFF), any::<u8>()], 0..12)
    }

    fn kind() -> impl Strategy<Value = CellKind> {
        (0..16u8).prop_filter_map("a type code", CellKind::from_code)
    }

    fn encode(row: &[u8], qualifier: &[u8], timestamp: Timestamp, kind: CellKind) -> Bytes {
        let mut key = row_prefix(row);
        key.extend(b"f\0");
        term::escape(qualifier, &mut key);
        key.extend(tail(timestamp, kind));
        assert_eq!(key.len(), escaped_size(row) + column_size(b"f", qualifier));
        key.into()
    }

    proptest! {
        #[test]
        fn keys_sort_as_cells_do(
            a in (bytes(), bytes(), 0..=Timestamp::MAX, kind()),
            b in (bytes(), bytes(), 0..=Timestamp::MAX, kind()),
            same in 0..4,
        ) {
            // Random cells seldom share anything, so they are made to.
            let b = (
                if same > 0 { a.0.clone() } else { b.0 },
                if same > 1 { a.1.clone() } else { b.1 },
                if same > 2 { a.2 } else { b.2 },
                b.3,
            );
            let newest_first = |t: Timestamp, k: CellKind| (std::cmp::Reverse(t), std::cmp::Reverse(k.code()));
            let expected =
                (&a.0, &a.1, newest_first(a.2, a.3)).cmp(&(&b.0, &b.1, newest_first(b.2, b.3)));
            prop_assert_eq!(encode(&a.0, &a.1, a.2, a.3).cmp(&encode(&b.0, &b.1, b.2, b.3)), expected);
        }

        #[test]
        fn decoding_undoes_encoding(row in bytes(), qualifier in bytes(), t in 0..=Timestamp::MAX, kind in kind()) {
            let key = encode(&row, &qualifier, t, kind);
            let (prefix, found) = split_row(&key).unwrap();
            prop_assert_eq!(&prefix[..], &row_prefix(&row)[..]);
            prop_assert_eq!(&found[..], &row[..]);
            prop_assert_eq!(split_tail(&key[key.len() - TAIL..]).unwrap(), (t, kind));
        }

        #[test]
        fn random_bytes_are_refused_or_read(bytes in bytes()) {
            let bytes = Bytes::from(bytes);
            let _ = split_row(&bytes);
            let _ = split_tail(&bytes);
        }
    }

    #[test]
    fn keys_have_a_fixed_form() {
        let key = encode(b"r\0", b"q", 1, CellKind::Put);
        assert_eq!(&key[..], b"r\0\xff\0\x01f\0q\0\x01\xff\xff\xff\xff\xff\xff\xff\xfe\xfb");
    }
}
