//! The candidates of one base row, by term.

use super::change::{ChangeKind, TermChange};
use crate::error::Result;
use crate::model::{Row, Timestamp};
use crate::schema::state::{self, Candidate, TermValue};
use crate::schema::{AttributeValue, Code, NO_FLOOR, TableSchema};
use std::collections::BTreeMap;

/// What a state row was seen to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    terms: BTreeMap<Code, Vec<Candidate>>,
    /// The parts of the row key: as candidates below all timestamps.
    fixed: BTreeMap<Code, Vec<Candidate>>,
}

impl View {
    /// Decodes a state row.
    ///
    /// # Errors
    /// [`Corrupt`](crate::error::ErrorKind::Corrupt) when a cell is no candidate.
    pub fn decode(row: &Row) -> Result<Self> {
        let mut terms: BTreeMap<Code, Vec<Candidate>> = BTreeMap::new();
        for cell in &row.cells {
            let (code, candidate) = state::decode(cell)?;
            terms.entry(code).or_default().push(candidate);
        }
        Ok(Self { terms, fixed: BTreeMap::new() })
    }

    /// The same row with what its key says of indexed attributes.
    #[must_use]
    pub fn with_key(self, schema: &TableSchema, row: &[u8]) -> Self {
        let parts = schema.indexed().iter().filter_map(|a| a.key_part.map(|place| (a.code, place)));
        let mut fixed = BTreeMap::new();
        let mut values = None;
        for (code, place) in parts {
            let values = values.get_or_insert_with(|| schema.key_values(row).unwrap_or_default());
            // A key that doesn't fit its declaration has no parts.
            let found = values.get(place).map(|v| TermValue::of(&AttributeValue::One(v.clone())));
            let candidates = found.map(|value| Candidate::own(NO_FLOOR, value));
            fixed.insert(code, candidates.into_iter().collect());
        }
        Self { fixed, ..self }
    }

    /// Whether the row's key says what the attribute is, and nothing else does.
    pub fn is_fixed(&self, code: Code) -> bool {
        self.fixed.contains_key(&code)
    }

    /// All candidates of a term.
    pub fn of(&self, code: Code) -> &[Candidate] {
        self.fixed.get(&code).or_else(|| self.terms.get(&code)).map_or(&[], Vec::as_slice)
    }

    /// The candidates of a term that share the largest as-of.
    pub fn newest(&self, code: Code) -> Vec<&Candidate> {
        newest(self.of(code).iter())
    }

    /// How many candidates the row has.
    pub fn len(&self) -> usize {
        self.terms.values().map(Vec::len).sum()
    }

    /// Whether the row has no candidate.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

/// Those that share the largest as-of.
pub fn newest<'a>(candidates: impl Iterator<Item = &'a Candidate> + Clone) -> Vec<&'a Candidate> {
    let top = candidates.clone().map(|c| c.as_of).max();
    candidates.filter(|c| Some(c.as_of) == top).collect()
}

/// The candidates an event puts by itself: one for each put and each delete. Deleting one version puts none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own(Vec<(Code, Candidate)>);

impl Own {
    /// The candidates of an event's changes.
    pub fn of(changes: &[TermChange]) -> Self {
        Self(changes.iter().filter_map(|c| own(c).map(|candidate| (c.code, candidate))).collect())
    }

    /// Whether the candidate of the term is the event's own.
    pub fn contains(&self, code: Code, candidate: &Candidate) -> bool {
        self.0.iter().any(|(c, own)| *c == code && own == candidate)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &(Code, Candidate)> {
        self.0.iter()
    }
}

/// The candidate a change puts by itself.
pub fn own(change: &TermChange) -> Option<Candidate> {
    let value = match &change.kind {
        ChangeKind::Put(value) => value.clone(),
        ChangeKind::Delete => TermValue::Tombstone,
        ChangeKind::DeleteVersion => return None,
    };
    Some(Candidate::own(change.timestamp, value))
}

/// The newest as-of of some candidates; below every timestamp when there are none.
pub fn as_of(newest: &[&Candidate]) -> Timestamp {
    newest.first().map_or(NO_FLOOR, |c| c.as_of)
}
