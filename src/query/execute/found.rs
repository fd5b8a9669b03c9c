//! The values of a row that was found, from its base row or from an entry.

use crate::error::Result;
use crate::model::Row;
use crate::query::bind::{Column, Predicate, Slot, Test};
use crate::query::plan::IndexPath;
use crate::schema::state::TermValue;
use crate::schema::{AttributeValue, Condition, Key, Value, term};
use bytes::Bytes;
use std::borrow::Cow;

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
    /// Decodes the attributes in `slots`; parts of the row key by `key`.
    pub(super) fn decode(row: Row, all: &[Slot], slots: &[usize], key: Option<&Key>) -> Self {
        let by_key = slots.iter().any(|slot| all[*slot].attribute.key_part.is_some());
        let parts = if by_key { key.and_then(|key| key.split(&row.key).ok()) } else { None };
        let mut values = vec![None; all.len()];
        let mut terms = vec![TermValue::Tombstone; all.len()];
        for slot in slots {
            let attribute = &all[*slot].attribute;
            let decoded = if let Some(place) = attribute.key_part {
                let part = parts.as_ref().and_then(|parts| parts.get(place));
                part.map(|value| all[*slot].seen(AttributeValue::One(value.clone())))
            } else {
                let cell = row.newest(attribute.family.as_bytes(), attribute.qualifier.as_bytes());
                cell.and_then(|c| all[*slot].decode(&c.value).ok())
            };
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
    /// that has none; and the filter lets it through.
    ///
    /// # Errors
    /// [`Corrupt`](crate::error::ErrorKind::Corrupt) when `terms` are no terms.
    pub(super) fn gives(&self, mut terms: &[u8], path: &IndexPath) -> Result<bool> {
        if !self.satisfies(&path.filter)? {
            return Ok(false);
        }
        for (place, slot) in path.terms.iter().enumerate() {
            let shape = path.definition.shape(place);
            let (one, rest) = terms.split_at(shape.len(terms)?);
            terms = rest;
            let mut fits = false;
            match &self.terms[*slot] {
                TermValue::Tombstone => fits = place > 0 && one == shape.encode(&[term::NULL])?.as_ref(),
                live @ TermValue::Live(_) => {
                    for element in live.elements()? {
                        fits |= shape.encode(element)?.as_ref() == one;
                    }
                }
            }
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
        if !self.satisfies(&path.filter)? {
            return Ok(());
        }
        let mut choices: Vec<Vec<Cow<'_, [u8]>>> = Vec::with_capacity(path.terms.len());
        for (place, slot) in path.terms.iter().enumerate() {
            let shape = path.definition.shape(place);
            let mut elements = self.terms[*slot].elements()?;
            if elements.is_empty() {
                if place == 0 {
                    return Ok(());
                }
                elements.push(&[term::NULL]);
            }
            choices.push(elements.into_iter().map(|e| shape.encode(e)).collect::<Result<_>>()?);
        }
        // Counts through all combinations, the last term fastest.
        let mut at = vec![0; choices.len()];
        loop {
            let terms = choices.iter().zip(&at).flat_map(|(forms, i)| forms[*i].iter().copied());
            let code = path.definition.code.to_be_bytes();
            let key: Vec<u8> = code.into_iter().chain(terms).chain(self.key.iter().copied()).collect();
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

/// What an entry tells of its row: the key, its terms and its covered columns.
pub(super) struct EntryRow<'a> {
    pub(super) key: Bytes,
    /// Whole terms by slot, where the entry has them; empty when nobody asks for any.
    known: Vec<(usize, Cow<'a, [u8]>)>,
    /// A term is cut in the key.
    pub(super) is_cut: bool,
}

impl<'a> EntryRow<'a> {
    /// Takes an entry apart. An attribute of several values is left out, for an entry has one of them.
    ///
    /// # Errors
    /// [`Corrupt`](crate::error::ErrorKind::Corrupt) when the terms are none.
    pub(super) fn new(
        key: Bytes,
        mut terms: &'a [u8],
        covered: &'a [u8],
        path: &IndexPath,
        all: &[Slot],
    ) -> Result<Self> {
        let mut known = Vec::with_capacity(path.terms.len() + path.covered.len());
        let mut is_cut = false;
        for (place, slot) in path.terms.iter().enumerate() {
            let shape = path.definition.shape(place);
            let (one, rest) = terms.split_at(shape.len(terms)?);
            terms = rest;
            if all[*slot].attribute.kind.array {
                continue;
            }
            match shape.decode(one)? {
                Some(term) => known.push((*slot, term)),
                None => is_cut = true,
            }
        }
        let covered = term::split(covered)?;
        known.extend(path.covered.iter().copied().zip(covered.into_iter().map(Cow::Borrowed)));
        Ok(Self { key, known, is_cut })
    }

    /// An entry of which the key is all that matters.
    pub(super) fn bare(key: Bytes) -> Self {
        Self { key, known: Vec::new(), is_cut: false }
    }

    fn term(&self, slot: usize) -> Option<&[u8]> {
        self.known.iter().find(|(s, _)| *s == slot).map(|(_, term)| term.as_ref())
    }

    /// Whether the row may satisfy a predicate, as far as the entry tells: a test of something else is taken to hold.
    pub(super) fn may_satisfy(&self, predicate: &Predicate) -> bool {
        predicate.holds(&mut |test| match test.column {
            Column::RowKey => holds_for_key(test, &self.key),
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

/// A row key as a value.
pub(super) fn key_value(key: &[u8]) -> AttributeValue {
    AttributeValue::One(Value::Text(crate::model::escaped(key)))
}
