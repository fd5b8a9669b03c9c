//! The values of a row that was found, from its base row or from an entry.

use crate::error::Result;
use crate::model::Row;
use crate::query::bind::{Column, Predicate, Slot, Test};
use crate::query::plan::IndexPath;
use crate::schema::state::TermValue;
use crate::schema::{AttributeValue, Condition, Value, term};
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;

/// A row of the answer to be.
pub(super) enum Found<'a> {
    /// As its base row has it.
    Base(&'a BaseRow),
    /// As an entry has it.
    Entry(&'a EntryRow<'a>),
}

impl Found<'_> {
    /// The row key.
    pub(super) fn key(&self) -> &Bytes {
        match self {
            Self::Base(base) => &base.key,
            Self::Entry(entry) => &entry.key,
        }
    }

    /// An attribute's value.
    pub(super) fn value(&self, slot: usize) -> Result<Option<AttributeValue>> {
        match self {
            Self::Base(base) => Ok(base.values[slot].clone()),
            Self::Entry(entry) => {
                Ok(entry.term(slot).map(term::decode).transpose()?.flatten().map(AttributeValue::One))
            }
        }
    }

    /// What a scalar attribute is sorted by: its encoding, none for null.
    pub(super) fn encoded(&self, slot: usize) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Base(base) => match &base.terms[slot] {
                TermValue::Live(bytes) => Some(Cow::Borrowed(bytes)),
                TermValue::Tombstone => None,
            },
            Self::Entry(entry) => entry.term(slot).filter(|t| *t != [term::NULL]).map(Cow::Borrowed),
        }
    }
}

/// A decoded base row. What could not be decoded counts as null.
pub(super) struct BaseRow {
    pub(super) key: Bytes,
    values: Vec<Option<AttributeValue>>,
    terms: Vec<TermValue>,
}

impl BaseRow {
    /// Decodes the attributes in `slots`.
    pub(super) fn decode(row: Row, all: &[Slot], slots: &[usize]) -> Self {
        let mut values = vec![None; all.len()];
        let mut terms = vec![TermValue::Tombstone; all.len()];
        for slot in slots {
            let attribute = &all[*slot].attribute;
            let cell = row.newest(attribute.family.as_bytes(), attribute.qualifier.as_bytes());
            let decoded = cell.and_then(|c| all[*slot].decode(&c.value).ok());
            // An array without elements is no value.
            if let Some((value, term)) = decoded.filter(|(v, _)| !v.elements().is_empty()) {
                terms[*slot] = term;
                values[*slot] = Some(value);
            }
        }
        Self { key: row.key, values, terms }
    }

    /// Whether the row satisfies a predicate.
    ///
    /// # Errors
    /// None for rows that were decoded here.
    pub(super) fn satisfies(&self, predicate: &Predicate) -> Result<bool> {
        let mut outcome = Ok(());
        let holds = predicate.holds(&mut |test| match test.column {
            Column::RowKey => holds_for_key(test, &self.key),
            Column::Attribute(slot) => match test.condition.accepts(&self.terms[slot]) {
                Ok(holds) => holds,
                Err(error) => {
                    outcome = Err(error);
                    false
                }
            },
        });
        outcome.map(|()| holds)
    }

    /// Whether the row's values give an entry with these terms: one element of each attribute, null for a later attribute
    /// that has none.
    ///
    /// # Errors
    /// [`Corrupt`](crate::error::ErrorKind::Corrupt) when `terms` are no terms.
    pub(super) fn gives(&self, mut terms: &[u8], path: &IndexPath) -> Result<bool> {
        for (place, slot) in path.terms.iter().enumerate() {
            let (one, rest) = terms.split_at(term::len(terms)?);
            terms = rest;
            let fits = match &self.terms[*slot] {
                TermValue::Tombstone => place > 0 && one == [term::NULL],
                live @ TermValue::Live(_) => any_element(live, |element| element == one)?,
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl BaseRow {
    /// Calls `see` with the key, its salt left out, of every entry that the row's values give, until it returns false.
    ///
    /// # Errors
    /// None for rows that were decoded here.
    pub(super) fn entries(&self, path: &IndexPath, see: &mut dyn FnMut(&[u8]) -> bool) -> Result<()> {
        let mut choices: Vec<Vec<&[u8]>> = Vec::with_capacity(path.terms.len());
        for (place, slot) in path.terms.iter().enumerate() {
            let mut elements = self.terms[*slot].elements()?;
            if elements.is_empty() {
                if place == 0 {
                    return Ok(());
                }
                elements.push(&[term::NULL]);
            }
            choices.push(elements);
        }
        // Counts through all combinations, the last term fastest.
        let mut at = vec![0; choices.len()];
        loop {
            let terms = choices.iter().zip(&at).map(|(elements, i)| elements[*i]);
            let key: Vec<u8> = path
                .definition
                .code
                .to_be_bytes()
                .into_iter()
                .chain(terms.flatten().copied())
                .chain(self.key.iter().copied())
                .collect();
            if !see(&key) {
                return Ok(());
            }
            let Some(place) = (0..at.len()).rfind(|place| at[*place] + 1 < choices[*place].len()) else {
                return Ok(());
            };
            at[place] += 1;
            at[place + 1..].fill(0);
        }
    }
}

/// Whether some element of a term value satisfies a condition.
fn any_element(value: &TermValue, mut condition: impl FnMut(&[u8]) -> bool) -> Result<bool> {
    let TermValue::Live(bytes) = value else { return Ok(false) };
    let mut rest: &[u8] = bytes;
    while !rest.is_empty() {
        let (element, after) = rest.split_at(term::len(rest)?);
        if condition(element) {
            return Ok(true);
        }
        rest = after;
    }
    Ok(false)
}

/// What an entry tells of its row: the key, and the terms of attributes that are no arrays.
pub(super) struct EntryRow<'a> {
    pub(super) key: Bytes,
    terms: &'a [u8],
    /// Where each term is; empty when nobody asks for terms.
    places: &'a [Range<usize>],
    slots: &'a [usize],
}

impl<'a> EntryRow<'a> {
    pub(super) fn new(key: Bytes, terms: &'a [u8], places: &'a [Range<usize>], slots: &'a [usize]) -> Self {
        Self { key, terms, places, slots }
    }

    fn term(&self, slot: usize) -> Option<&'a [u8]> {
        let place = self.slots.iter().position(|s| *s == slot)?;
        self.terms.get(self.places.get(place)?.clone())
    }

    /// Whether the row may satisfy a predicate, as far as the entry tells: a test of something else is taken to hold.
    pub(super) fn may_satisfy(&self, predicate: &Predicate, slots: &[Slot]) -> bool {
        predicate.holds(&mut |test| match test.column {
            Column::RowKey => holds_for_key(test, &self.key),
            Column::Attribute(slot) if slots[slot].attribute.kind.array => true,
            Column::Attribute(slot) => self.term(slot).is_none_or(|t| {
                let value =
                    if t == [term::NULL] { TermValue::Tombstone } else { TermValue::Live(Bytes::copy_from_slice(t)) };
                // What does not decode is looked at in the base row.
                test.condition.accepts(&value).unwrap_or(true)
            }),
        })
    }
}

/// Whether a row key satisfies a test. A row always has a key.
fn holds_for_key(test: &Test, key: &[u8]) -> bool {
    match &test.condition {
        Condition::Some(domain) | Condition::Every(domain) => domain.contains(key),
        Condition::Null => false,
        Condition::Like(pattern) => pattern.matches(key),
        Condition::Unlike(pattern) => !pattern.matches(key),
    }
}

/// Finds where each term of an encoded list is.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) when they are no terms.
pub(super) fn places(terms: &[u8], out: &mut Vec<Range<usize>>) -> Result<()> {
    out.clear();
    let mut at = 0;
    while at < terms.len() {
        let len = term::len(&terms[at..])?;
        out.push(at..at + len);
        at += len;
    }
    Ok(())
}

/// A row key as a value.
pub(super) fn key_value(key: &[u8]) -> AttributeValue {
    AttributeValue::One(Value::Text(crate::model::escaped(key)))
}
