//! One part of a row key: value ↔ bytes.

use crate::error::{Error, ErrorKind, Result};
use crate::schema::{ScalarType, Value, hbase, term};
use bytes::Bytes;
use md5::{Digest, Md5};
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// A named part of a row key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// The attribute's name.
    pub name: String,
    /// What it is.
    pub kind: PartKind,
}

/// What a part holds and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind {
    /// UTF-8 text.
    Text(Extent),
    /// Any bytes.
    Bytes(Extent),
    /// A big-endian integer.
    Int {
        /// Its bytes: 4 or 8.
        width: u8,
        /// With the sign bit flipped, so that the keys are in the order of the numbers.
        ordered: bool,
    },
    /// The first bytes of a hash of other parts.
    Hash {
        /// Which hash.
        hash: Hash,
        /// The names of the parts, in the order in which they are hashed.
        of: Vec<String>,
        /// How many bytes.
        len: u8,
    },
}

/// Where a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// After so many bytes.
    Fixed(u16),
    /// Before this byte.
    Separated(u8),
    /// At a terminator, the text being escaped; as the last part plain, and at the end of the key.
    Open,
}

/// A hash function of a key part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// MD5.
    Md5,
    /// XXH3 of 64 bits, big-endian.
    Xxh3,
}

impl Hash {
    /// Bytes of the whole hash.
    pub fn width(self) -> u8 {
        match self {
            Self::Md5 => 16,
            Self::Xxh3 => 8,
        }
    }

    pub(super) fn of(self, bytes: &[u8]) -> Bytes {
        match self {
            Self::Md5 => Bytes::copy_from_slice(&Md5::digest(bytes)),
            Self::Xxh3 => Bytes::copy_from_slice(&xxh3_64(bytes).to_be_bytes()),
        }
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Md5 => "md5",
            Self::Xxh3 => "xxh3",
        })
    }
}

impl PartKind {
    /// The type of the part's values.
    pub fn scalar(&self) -> ScalarType {
        match self {
            Self::Text(_) => ScalarType::Text,
            Self::Int { .. } => ScalarType::Int,
            Self::Bytes(_) | Self::Hash { .. } => ScalarType::Bytes,
        }
    }

    /// Where its bytes end; none for integers.
    pub(crate) fn extent(&self) -> Option<Extent> {
        match self {
            Self::Text(extent) | Self::Bytes(extent) => Some(*extent),
            Self::Hash { len, .. } => Some(Extent::Fixed((*len).into())),
            Self::Int { .. } => None,
        }
    }
}

impl KeyPart {
    fn unfit(&self, message: impl fmt::Display) -> Error {
        Error::new(ErrorKind::WrongType, format!("part {}: {message}", self.name))
    }

    /// Appends a value as it is hashed: without what ends it.
    pub(super) fn plain(&self, value: &Value, out: &mut Vec<u8>) -> Result<()> {
        match (value, &self.kind) {
            (Value::Text(text), PartKind::Text(_)) => out.extend_from_slice(text.as_bytes()),
            (Value::Bytes(bytes), PartKind::Bytes(_) | PartKind::Hash { .. }) => out.extend_from_slice(bytes),
            (Value::Int(int), PartKind::Int { width, ordered }) => {
                let bytes = int_bytes(*int, *width, *ordered)
                    .ok_or_else(|| self.unfit(format!("expected an integer of {width} bytes, found {int}")))?;
                out.extend_from_slice(&bytes);
            }
            _ => return Err(self.unfit(format!("expected {}, found {value}", self.kind.scalar()))),
        }
        Ok(())
    }

    /// Appends a value.
    ///
    /// # Errors
    /// [`ErrorKind::WrongType`] for one that cannot stand here.
    pub(crate) fn write(&self, value: &Value, is_last: bool, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        self.plain(value, out)?;
        let found = &out[start..];
        match self.kind.extent() {
            None => {}
            Some(Extent::Fixed(len)) if found.len() == usize::from(len) => {}
            Some(Extent::Fixed(len)) => {
                let what = format!("expected {len} bytes, found {}: {}", found.len(), found.escape_ascii());
                return Err(self.unfit(what));
            }
            Some(Extent::Separated(separator)) => {
                if found.contains(&separator) {
                    let what = format!("the separator {} is in {}", shown(separator), found.escape_ascii());
                    return Err(self.unfit(what));
                }
                out.push(separator);
            }
            Some(Extent::Open) if is_last => {}
            Some(Extent::Open) => {
                let plain = out.split_off(start);
                term::escape(&plain, out);
            }
        }
        Ok(())
    }

    /// Reads the value at the start of `bytes`, and gives what follows.
    ///
    /// # Errors
    /// [`ErrorKind::WrongType`] when there is none.
    pub(super) fn read<'a>(&self, bytes: &'a [u8], is_last: bool) -> Result<(Value, &'a [u8])> {
        let too_short = |len: usize| self.unfit(format!("expected {len} bytes, found {}", bytes.len()));
        let (plain, rest) = match (self.kind.extent(), &self.kind) {
            (None, PartKind::Int { width, ordered }) => {
                let (int, rest) = bytes.split_at_checked((*width).into()).ok_or_else(|| too_short((*width).into()))?;
                let mut int = int.to_vec();
                if *ordered {
                    int[0] ^= 0x80;
                }
                let int = hbase::int(&int).ok_or_else(|| too_short((*width).into()))?;
                return Ok((Value::Int(int), rest));
            }
            (None, _) | (Some(Extent::Open), _) if is_last => (bytes.to_vec(), &[][..]),
            (None, _) | (Some(Extent::Open), _) => {
                let (len, _) = term::escaped_len(bytes).map_err(|e| self.unfit(e))?;
                (term::unescape(&bytes[..len - 2]), &bytes[len..])
            }
            (Some(Extent::Fixed(len)), _) => {
                let (plain, rest) = bytes.split_at_checked(len.into()).ok_or_else(|| too_short(len.into()))?;
                (plain.to_vec(), rest)
            }
            (Some(Extent::Separated(separator)), _) => {
                let end = bytes.iter().position(|b| *b == separator).ok_or_else(|| {
                    self.unfit(format!("expected a separator {}, found the end of the key", shown(separator)))
                })?;
                (bytes[..end].to_vec(), &bytes[end + 1..])
            }
        };
        if self.kind.scalar() != ScalarType::Text {
            return Ok((Value::Bytes(plain.into()), rest));
        }
        let text = String::from_utf8(plain).map_err(|e| {
            self.unfit(format!("expected text in UTF-8, found {}", e.as_bytes().escape_ascii())).with_source(e)
        })?;
        Ok((Value::Text(text), rest))
    }
}

/// An integer in so many bytes, if it fits.
pub(crate) fn int_bytes(int: i64, width: u8, ordered: bool) -> Option<Vec<u8>> {
    let mut bytes = match width {
        4 => i32::try_from(int).ok()?.to_be_bytes().to_vec(),
        _ => int.to_be_bytes().to_vec(),
    };
    if ordered {
        bytes[0] ^= 0x80;
    }
    Some(bytes)
}

/// A separator in quotes.
pub(super) fn shown(separator: u8) -> String {
    // A quote would end the quotes.
    if separator == b'\'' { r"'\x27'".to_owned() } else { format!("'{}'", separator.escape_ascii()) }
}
