//! What was found.

use super::expect::split;
use crate::model::escaped;
use crate::schema::{Definition, entry, term};
use bytes::Bytes;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What can be wrong with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The base row gives it, and it is not there.
    Missing,
    /// It is there, undisputed, and the base row does not give it.
    Outdated,
    /// It is there, undisputed, with other covered values than the base row's.
    WrongCovered,
    /// Its key or its value is not what an entry's is.
    Undecodable,
    /// It is of a definition that is not there.
    UnknownDefinition,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Outdated => "outdated",
            Self::WrongCovered => "wrong covered value",
            Self::Undecodable => "undecodable",
            Self::UnknownDefinition => "unknown definition",
        })
    }
}

/// One entry that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How.
    pub class: Class,
    /// Its definition's name.
    pub index: Option<String>,
    /// The base row it speaks of.
    pub row: Option<Bytes>,
    /// Its key in the index table.
    pub entry: Bytes,
    /// Its values in the order of the terms, as far as they can be read.
    pub values: Vec<String>,
}

impl Finding {
    pub(super) fn new(class: Class, definition: Option<&Definition>, key: &Bytes) -> Self {
        let parts = definition.and_then(|d| entry::decode(key, d).ok());
        let values = definition.zip(parts.as_ref()).map(|(d, parts)| values(d, &key[parts.terms.clone()]));
        Self {
            class,
            index: definition.map(|d| d.name.clone()),
            row: parts.as_ref().map(|p| key.slice(p.row.clone())),
            values: values.unwrap_or_default(),
            entry: key.clone(),
        }
    }
}

/// The terms of an entry, for people.
fn values(definition: &Definition, terms: &[u8]) -> Vec<String> {
    let shown = |(place, key): (usize, &[u8])| match definition.shape(place).decode(key) {
        Ok(Some(term)) => match term::decode(&term) {
            Ok(Some(value)) => value.to_string(),
            Ok(None) => "null".to_owned(),
            Err(_) => escaped(key),
        },
        // A cut one; its hash says nothing.
        Ok(None) => format!("{}…", escaped(key.get(1..key.len().saturating_sub(18)).unwrap_or_default())),
        Err(_) => escaped(key),
    };
    split(definition, terms).unwrap_or_default().into_iter().enumerate().map(shown).collect()
}

/// The entries of one definition, by what was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Entries that the base rows give.
    pub expected: u64,
    /// See [`Class::Missing`].
    pub missing: u64,
    /// See [`Class::Outdated`].
    pub outdated: u64,
    /// See [`Class::WrongCovered`].
    pub wrong_covered: u64,
    /// See [`Class::Undecodable`].
    pub undecodable: u64,
    /// Disputed entries that are not what the base row gives: nobody takes them for true unchecked.
    pub disputed: u64,
    /// Rows and entries that cannot be in an index at all: too many entries, or one too long for a row key.
    pub unindexable: u64,
}

impl Counts {
    /// How many entries are wrong.
    pub fn wrong(&self) -> u64 {
        self.missing + self.outdated + self.wrong_covered + self.undecodable
    }

    pub(super) fn add(&mut self, class: Class) {
        *match class {
            Class::Missing => &mut self.missing,
            Class::Outdated => &mut self.outdated,
            Class::WrongCovered => &mut self.wrong_covered,
            Class::Undecodable | Class::UnknownDefinition => &mut self.undecodable,
        } += 1;
    }
}

/// What a verification found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Number of the last change the indexes had taken in.
    pub applied: u64,
    /// Number of the last change there was.
    pub changes: u64,
    /// Base rows looked at.
    pub rows: u64,
    /// Entries looked at.
    pub entries: u64,
    /// Rows left out, because a change of them was not applied yet.
    pub pending: u64,
    /// By name of the definition.
    pub indexes: BTreeMap<String, Counts>,
    /// Entries of no definition.
    pub unknown: u64,
    /// The first of what is wrong.
    pub findings: Vec<Finding>,
    /// Wrong entries that were made right.
    pub repaired: u64,
    /// Wrong entries that were left alone, because their row was changing meanwhile.
    pub changing: u64,
    /// Wrong entries that no write can make right: what hides them, or they, stand at the end of time.
    pub unrepairable: u64,
    /// Definitions that no longer are degraded.
    pub cleared: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
}

impl Report {
    /// How many entries are wrong, repaired or not.
    pub fn wrong(&self) -> u64 {
        self.unknown + self.indexes.values().map(Counts::wrong).sum::<u64>()
    }

    /// Base rows and entries looked at per second.
    pub fn rows_per_second(&self) -> f64 {
        (self.rows + self.entries) as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub(super) fn count(&mut self, definition: &Definition) -> &mut Counts {
        self.indexes.entry(definition.name.clone()).or_default()
    }

    pub(super) fn of(checked: &[Definition]) -> Self {
        Self { indexes: checked.iter().map(|d| (d.name.clone(), Counts::default())).collect(), ..Self::default() }
    }
}
