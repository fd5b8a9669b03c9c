//! Keys as they are written: `hash=md5(user):2, user=text:4, action=text sep '|', month=text`.

use super::Key;
use super::part::{Extent, Hash, KeyPart, PartKind, shown};
use crate::error::{Error, Result};
use crate::schema::ScalarType;
use std::fmt;
use std::str::FromStr;

impl FromStr for Key {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(split(text, ',').into_iter().map(part).collect::<Result<_>>()?)
    }
}

impl TryFrom<String> for Key {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.to_string()
    }
}

/// The pieces between separators that are neither quoted nor in parentheses, without space around them.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut pieces, mut start, mut quoted, mut depth) = (Vec::new(), 0, false, 0);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            c if c == separator && !quoted && depth == 0 => {
                pieces.push(text[start..at].trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(text[start..].trim());
    pieces
}

fn part(text: &str) -> Result<KeyPart> {
    let unfit = || Error::invalid(format!("expected a key part as name=kind, like user=text:4, found {text:?}"));
    let (name, kind) = text.split_once('=').ok_or_else(unfit)?;
    let name = name.trim().to_owned();
    let kind = kind_of(kind.trim()).map_err(|e| e.within(format!("key part {name}")))?;
    Ok(KeyPart { name, kind })
}

fn kind_of(text: &str) -> Result<PartKind> {
    let unknown = || {
        Error::invalid(format!(
            "expected text, text:4, text sep '|', the same of bytes, int, int:4, int ordered, int:4 ordered, \
             md5(part, …):2 or xxh3(part, …):2, found {text:?}"
        ))
    };
    if let Some((call, rest)) = text.split_once(')') {
        let (function, of) = call.split_once('(').ok_or_else(unknown)?;
        let hash = match function.trim() {
            "md5" => Hash::Md5,
            "xxh3" => Hash::Xxh3,
            _ => return Err(unknown()),
        };
        let len = rest.trim().strip_prefix(':').and_then(|n| n.trim().parse().ok()).ok_or_else(unknown)?;
        let of = split(of, ',').into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect();
        return Ok(PartKind::Hash { hash, of, len });
    }
    let (first, options) = text.split_once(' ').map_or((text, ""), |(first, options)| (first, options.trim()));
    let (name, len) = first.split_once(':').map_or((first, None), |(name, len)| (name, Some(len)));
    let scalar = ScalarType::ALL.into_iter().find(|s| s.name() == name).ok_or_else(unknown)?;
    if scalar == ScalarType::Int {
        let width = match len {
            None | Some("8") => 8,
            Some("4") => 4,
            Some(_) => return Err(unknown()),
        };
        return match options {
            "" => Ok(PartKind::Int { width, ordered: false }),
            "ordered" => Ok(PartKind::Int { width, ordered: true }),
            _ => Err(unknown()),
        };
    }
    let extent = match (len, options) {
        (None, "") => Extent::Open,
        (Some(len), "") => Extent::Fixed(len.parse().map_err(|_| unknown())?),
        (None, separated) => {
            let quoted = separated.strip_prefix("sep").ok_or_else(unknown)?.trim();
            let inner = quoted.strip_prefix('\'').and_then(|q| q.strip_suffix('\'')).ok_or_else(unknown)?;
            Extent::Separated(separator(inner)?)
        }
        (Some(_), _) => return Err(unknown()),
    };
    match scalar {
        ScalarType::Text => Ok(PartKind::Text(extent)),
        ScalarType::Bytes => Ok(PartKind::Bytes(extent)),
        _ => Err(unknown()),
    }
}

/// One ASCII character, or an escape as [`u8::escape_ascii`] writes it.
fn separator(text: &str) -> Result<u8> {
    let spells = |b: u8| text == b.escape_ascii().to_string() || text == format!("\\x{b:02x}");
    let found = (0..=u8::MAX).find(|b| spells(*b));
    found.ok_or_else(|| Error::invalid(format!(r"expected one separating byte, like '|' or '\x00', found '{text}'")))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts().iter().enumerate() {
            write!(f, "{}{}={}", if i > 0 { ", " } else { "" }, part.name, part.kind)?;
        }
        Ok(())
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(extent) | Self::Bytes(extent) => {
                write!(f, "{}", self.scalar())?;
                match extent {
                    Extent::Fixed(len) => write!(f, ":{len}"),
                    Extent::Separated(separator) => write!(f, " sep {}", shown(*separator)),
                    Extent::Open => Ok(()),
                }
            }
            Self::Int { width, ordered } => {
                f.write_str(if *width == 4 { "int:4" } else { "int" })?;
                f.write_str(if *ordered { " ordered" } else { "" })
            }
            Self::Hash { hash, of, len } => write!(f, "{hash}({}):{len}", of.join(", ")),
        }
    }
}
