//! Values: how each type is read from a file or a variable, and shown.

use super::{Consistency, Durability, Format, StoreKind, Transport};
use crate::error::{Error, Result};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::DeValue;

/// What was given for a setting.
pub enum Given<'a> {
    /// In a file; its folder is what relative paths start from.
    Toml(&'a DeValue<'a>, &'a Path),
    /// In the environment.
    Text(&'a str),
}

/// A place for a value.
pub trait Slot {
    /// What may be given, in words.
    fn expected(&self) -> String;

    /// Takes over what was given.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) says what was expected and found.
    fn set(&mut self, given: &Given<'_>) -> Result<()>;

    /// The value as the file would have it; none when there is no value.
    fn shown(&self) -> Option<String>;
}

impl Given<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Toml(value, _) => value.as_str(),
            Self::Text(text) => Some(text),
        }
    }

    fn whole(&self) -> Option<i64> {
        match self {
            Self::Toml(value, _) => value.as_integer().and_then(|i| i64::from_str_radix(i.as_str(), i.radix()).ok()),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }

    fn bool(&self) -> Option<bool> {
        match self {
            Self::Toml(value, _) => value.as_bool(),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }

    /// What it is, for messages.
    fn found(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Toml(value, _) => match value {
                DeValue::String(text) => format!("{text:?}"),
                DeValue::Integer(i) => i.as_str().to_owned(),
                DeValue::Float(f) => f.as_str().to_owned(),
                DeValue::Boolean(b) => b.to_string(),
                DeValue::Datetime(_) => "a date".to_owned(),
                DeValue::Array(_) => "a list".to_owned(),
                DeValue::Table(_) => "a table".to_owned(),
            },
        }
    }

    fn refused(&self, slot: &dyn Slot) -> Error {
        Error::invalid(format!("expected {}, found {}", slot.expected(), self.found()))
    }
}

fn quoted(text: &str) -> String {
    // JSON's escapes are TOML's.
    serde_json::Value::from(text).to_string()
}

impl Slot for bool {
    fn expected(&self) -> String {
        "true or false".to_owned()
    }

    fn set(&mut self, given: &Given<'_>) -> Result<()> {
        *self = given.bool().ok_or_else(|| given.refused(self))?;
        Ok(())
    }

    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Slot for Option<PathBuf> {
    fn expected(&self) -> String {
        "a path".to_owned()
    }

    fn set(&mut self, given: &Given<'_>) -> Result<()> {
        let text = given.text().filter(|t| !t.is_empty()).ok_or_else(|| given.refused(self))?;
        *self = Some(match given {
            Given::Toml(_, folder) => folder.join(text),
            Given::Text(_) => text.into(),
        });
        Ok(())
    }

    fn shown(&self) -> Option<String> {
        self.as_ref().map(|path| quoted(&path.to_string_lossy()))
    }
}

impl Slot for Option<String> {
    fn expected(&self) -> String {
        "a text".to_owned()
    }

    fn set(&mut self, given: &Given<'_>) -> Result<()> {
        *self = Some(given.text().filter(|t| !t.is_empty()).ok_or_else(|| given.refused(self))?.to_owned());
        Ok(())
    }

    fn shown(&self) -> Option<String> {
        self.as_deref().map(quoted)
    }
}

impl Slot for Vec<String> {
    fn expected(&self) -> String {
        "a list of texts such as [\"a\", \"b\"]".to_owned()
    }

    fn set(&mut self, given: &Given<'_>) -> Result<()> {
        let texts = match given {
            Given::Toml(DeValue::Array(list), _) => {
                list.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
            }
            Given::Toml(..) => None,
            Given::Text(text) => Some(text.split(',').map(|t| t.trim().to_owned()).collect()),
        };
        *self = texts
            .filter(|list: &Self| !list.is_empty() && list.iter().all(|t| !t.is_empty()))
            .ok_or_else(|| given.refused(self))?;
        Ok(())
    }

    fn shown(&self) -> Option<String> {
        let items: Vec<String> = self.iter().map(|t| quoted(t)).collect();
        (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
    }
}

/// A whole number in bounds, both included; none until it is given.
#[derive(Debug, Clone, Copy)]
pub struct Whole {
    pub(super) value: Option<u64>,
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Whole {
    /// The number, if it was given.
    pub fn value(&self) -> Option<u64> {
        self.value
    }
}

impl Slot for Whole {
    fn expected(&self) -> String {
        format!("a whole number from {} to {}", self.least, self.most)
    }

    fn set(&mut self, given: &Given<'_>) -> Result<()> {
        let whole = given.whole().and_then(|n| u64::try_from(n).ok());
        let fits = whole.filter(|n| (self.least..=self.most).contains(n));
        self.value = Some(fits.ok_or_else(|| given.refused(self))?);
        Ok(())
    }

    fn shown(&self) -> Option<String> {
        self.value.map(|n| n.to_string())
    }
}

/// A number of bytes in bounds, both included. Read as a number, or as a text with a unit: `"64 MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    bytes: u64,
    least: u64,
    most: u64,
}

/// The last one first: of those that divide a size, the largest is shown.
const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

impl Size {
    /// `bytes`, which may be changed within bounds.
    pub const fn between(bytes: u64, least: u64, most: u64) -> Self {
        Self { bytes, least, most }
    }

    /// The number of bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }
}

/// A number and its unit, if there is one.
fn with_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

/// A number of bytes as people write it.
fn size_of(text: &str) -> Option<u64> {
    let (number, unit) = with_unit(text)?;
    let unit = if unit.is_empty() { "B" } else { unit };
    let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    let bytes = number * *factor as f64;
    // Below 2^53 a float holds every whole number.
    (bytes.fract() == 0.0 && bytes < (1_u64 << 53) as f64).then_some(bytes as u64)
}

fn size(bytes: u64) -> String {
    let largest = UNITS.iter().take(5).rev().find(|(_, factor)| bytes.is_multiple_of(*factor) && bytes >= *factor);
    let (name, factor) = largest.unwrap_or(&UNITS[0]);
    format!("{} {name}", bytes / factor)
}

impl Slot for Size {
    fn expected(&self) -> String {
        format!("a size from {} to {}, such as \"64 MiB\"", size(self.least), size(self.most))
    }

    fn set(&mut self, given: &Given<'_>) -> Result<()> {
        let bytes = given.whole().and_then(|n| u64::try_from(n).ok()).or_else(|| given.text().and_then(size_of));
        let fits = bytes.filter(|b| (self.least..=self.most).contains(b));
        self.bytes = fits.ok_or_else(|| given.refused(self))?;
        Ok(())
    }

    fn shown(&self) -> Option<String> {
        Some(quoted(&size(self.bytes)))
    }
}

/// A limit that may be none, written `"none"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit<T>(pub Option<T>);

/// The longest time that can be set: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);

fn time_of(text: &str) -> Option<Duration> {
    humantime::parse_duration(text).ok().filter(|time| !time.is_zero() && *time <= LONGEST)
}

impl Slot for Limit<Duration> {
    fn expected(&self) -> String {
        "a time such as \"500 ms\", \"30 s\" or \"5 min\", or \"none\"".to_owned()
    }

    fn set(&mut self, given: &Given<'_>) -> Result<()> {
        self.0 = match given.text() {
            Some("none") => None,
            text => Some(text.and_then(time_of).ok_or_else(|| given.refused(self))?),
        };
        Ok(())
    }

    fn shown(&self) -> Option<String> {
        Some(quoted(&self.0.map_or("none".to_owned(), |time| humantime::format_duration(time).to_string())))
    }
}

/// A time, not none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Duration);

impl Slot for Time {
    fn expected(&self) -> String {
        "a time such as \"500 ms\", \"30 s\" or \"5 min\"".to_owned()
    }

    fn set(&mut self, given: &Given<'_>) -> Result<()> {
        self.0 = given.text().and_then(time_of).ok_or_else(|| given.refused(self))?;
        Ok(())
    }

    fn shown(&self) -> Option<String> {
        Some(quoted(&humantime::format_duration(self.0).to_string()))
    }
}

/// A choice is read and named as on the command line.
macro_rules! choice {
    ($($type:ty),+) => {$(
        impl Slot for $type {
            fn expected(&self) -> String {
                format!("one of {}", names::<Self>().join(", "))
            }

            fn set(&mut self, given: &Given<'_>) -> Result<()> {
                let chosen = given.text().and_then(|t| <Self as ValueEnum>::from_str(t, false).ok());
                *self = chosen.ok_or_else(|| given.refused(self))?;
                Ok(())
            }

            fn shown(&self) -> Option<String> {
                self.to_possible_value().map(|v| quoted(v.get_name()))
            }
        }
    )+};
}

choice!(Consistency, Durability, Format, StoreKind, Transport);

fn names<T: ValueEnum>() -> Vec<String> {
    T::value_variants().iter().filter_map(|v| v.to_possible_value()).map(|v| v.get_name().to_owned()).collect()
}
