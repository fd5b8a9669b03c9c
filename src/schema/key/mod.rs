//! Row keys made of declared parts: each part is an attribute of the row that is read from its key.
//!
//! A key that does not fit its declaration is no error of the table: the row is there, its parts are null, and queries on
//! parts don't find it.

mod part;
mod text;

pub(crate) use part::int_bytes;
pub use part::{Extent, Hash, KeyPart, PartKind};

use super::{AttributeType, ROW_KEY, Value, check_name};
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The parts of a table's row keys, in order. [`Display`](std::fmt::Display) and [`FromStr`](std::str::FromStr) have the
/// form of the command line and the configuration: `name=kind, …` with the kinds
///
/// | kind | bytes of the key | order of the keys |
/// |---|---|---|
/// | `text:4`, `bytes:4` | so many bytes, neither more nor fewer | that of the values |
/// | `text`, `bytes` | 0x00 as 0x00 0xFF, then 0x00 0x01; as the last part plain, to the end of the key | that of the values |
/// | `text sep '\|'`, `bytes sep '\x00'` | up to this byte, which no value holds | by the separator: only under 0x00 that of the values |
/// | `int`, `int:4` | HBase's `Bytes`: 8 or 4 bytes, big-endian | negative numbers after all others |
/// | `int ordered`, `int:4 ordered` | the same with the sign bit flipped | that of the values |
/// | `md5(a, b):2`, `xxh3(a):2` | the first bytes of the hash (xxh3-64 big-endian) of the bytes of other parts, one after the other, without escapes, terminators and separators | none |
///
/// ```
/// use sideindex::schema::{Key, Value};
/// let key: Key = "hash=md5(user):2, user=text:4, action=text sep '|', month=text".parse()?;
/// let row = key.join(&[None, Some("anna".into()), Some("click".into()), Some("2026-12".into())])?;
/// assert_eq!(row.as_ref(), b"\xa7\x0fannaclick|2026-12");
/// assert_eq!(key.split(&row)?[2], Value::from("click"));
/// assert!(key.split(b"\xa7\x0fanna").unwrap_err().to_string().contains("part action: expected a separator '|'"));
/// # Ok::<(), sideindex::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Key {
    parts: Vec<KeyPart>,
}

impl Key {
    /// A key of these parts.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] names the part that cannot be.
    pub fn new(parts: Vec<KeyPart>) -> Result<Self> {
        if parts.is_empty() {
            return Err(Error::invalid("a key needs at least one part"));
        }
        for (i, part) in parts.iter().enumerate() {
            let unfit = |message: String| Err(Error::invalid(format!("key part {}: {message}", part.name)));
            check_name("a key part", &part.name)?;
            if part.name == ROW_KEY {
                return unfit(format!("{ROW_KEY} names the whole row key"));
            }
            if parts[..i].iter().any(|p| p.name == part.name) {
                return unfit("there are two parts of this name".to_owned());
            }
            match &part.kind {
                PartKind::Text(Extent::Fixed(0)) | PartKind::Bytes(Extent::Fixed(0)) => {
                    return unfit("expected a length of at least 1 byte, found 0".to_owned());
                }
                PartKind::Text(Extent::Separated(_)) | PartKind::Bytes(Extent::Separated(_))
                    if i + 1 == parts.len() =>
                {
                    return unfit("the last part runs to the end of the key; leave its separator out".to_owned());
                }
                PartKind::Hash { hash, of, len } => {
                    if *len == 0 || *len > hash.width() {
                        return unfit(format!("expected 1 to {} bytes of {hash}, found {len}", hash.width()));
                    }
                    if of.is_empty() {
                        return unfit("expected the names of the parts that are hashed, found none".to_owned());
                    }
                    for name in of {
                        match parts.iter().find(|p| p.name == *name) {
                            Some(source) if matches!(source.kind, PartKind::Hash { .. }) => {
                                return unfit(format!("{name} is a hash itself, which cannot be hashed"));
                            }
                            Some(_) => {}
                            None => return unfit(format!("{name}, which is to be hashed, is no part of the key")),
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(Self { parts })
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// The types of the parts: hashes are bytes.
    pub fn kinds(&self) -> impl Iterator<Item = AttributeType> {
        self.parts.iter().map(|p| AttributeType { scalar: p.kind.scalar(), array: false })
    }

    /// The part values of a key, one for each part.
    ///
    /// # Errors
    /// [`ErrorKind::WrongType`] says which part the key does not fit, and why.
    pub fn split(&self, key: &[u8]) -> Result<Vec<Value>> {
        if key.is_empty() {
            return Err(Error::new(ErrorKind::WrongType, "expected a row key, found an empty one"));
        }
        let mut values = Vec::with_capacity(self.parts.len());
        let mut rest = key;
        for (i, part) in self.parts.iter().enumerate() {
            let (value, after) = part.read(rest, self.is_last(i))?;
            values.push(value);
            rest = after;
        }
        if !rest.is_empty() {
            return Err(Error::new(
                ErrorKind::WrongType,
                format!("expected the end of the key after its last part, found {}", rest.escape_ascii()),
            ));
        }
        let known: Vec<Option<Value>> = values.iter().cloned().map(Some).collect();
        for (i, part) in self.parts.iter().enumerate() {
            if let Some(hash) = self.hash(i, &known)? {
                agrees(part, &values[i], &hash)?;
            }
        }
        Ok(values)
    }

    /// The key with these part values, one for each part; hashes may be left out.
    ///
    /// # Errors
    /// [`ErrorKind::WrongType`] for a value that cannot stand in its part; [`ErrorKind::InvalidInput`] for one that is
    /// missing, and for an empty key.
    pub fn join(&self, values: &[Option<Value>]) -> Result<Bytes> {
        let key = self.prefix(values)?;
        if values.len() < self.parts.len() {
            return Err(missing(&self.parts[values.len()]));
        }
        if key.is_empty() {
            return Err(Error::invalid("expected a row key, found parts that are all empty"));
        }
        Ok(key)
    }

    /// What the keys with these values of their leading parts start with; with values of all parts, the key. A hash may be
    /// left out when the parts it is made of are among the values.
    ///
    /// # Errors
    /// As [`Self::join`].
    pub fn prefix(&self, leading: &[Option<Value>]) -> Result<Bytes> {
        let mut out = Vec::new();
        for (i, (part, given)) in self.parts.iter().zip(leading).enumerate() {
            let hash = self.hash(i, leading)?;
            if let (Some(given), Some(hash)) = (given, &hash) {
                agrees(part, given, hash)?;
            }
            let value = hash.as_ref().or(given.as_ref()).ok_or_else(|| missing(part))?;
            part.write(value, self.is_last(i), &mut out)?;
        }
        Ok(out.into())
    }

    /// The value of a hash part, where those it is made of are there; none for other parts.
    pub(crate) fn hash(&self, place: usize, values: &[Option<Value>]) -> Result<Option<Value>> {
        let PartKind::Hash { hash, of, len } = &self.parts[place].kind else { return Ok(None) };
        let mut bytes = Vec::new();
        for source in self.sources(of) {
            let Some(Some(value)) = values.get(source) else { return Ok(None) };
            self.parts[source].plain(value, &mut bytes)?;
        }
        Ok(Some(Value::Bytes(hash.of(&bytes).slice(..usize::from(*len)))))
    }

    /// The places of parts by their names; [`Self::new`] has seen that they are there.
    pub(crate) fn sources<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = usize> + 'a {
        names.iter().filter_map(|name| self.parts.iter().position(|p| p.name == *name))
    }

    /// Whether a part is the last one, which may run to the end of the key.
    pub(crate) fn is_last(&self, place: usize) -> bool {
        place + 1 == self.parts.len()
    }
}

fn agrees(part: &KeyPart, found: &Value, hash: &Value) -> Result<()> {
    if found == hash {
        return Ok(());
    }
    let message = format!("part {}: expected {hash}, the hash of the other parts, found {found}", part.name);
    Err(Error::new(ErrorKind::WrongType, message))
}

fn missing(part: &KeyPart) -> Error {
    Error::invalid(format!("expected a value for the key part {}, found none", part.name))
}
