//! Which entries a base row ought to have, from its cells and the definition alone.

use crate::error::Result;
use crate::model::Row;
use crate::schema::state::TermValue;
use crate::schema::{AttributeValue, Code, Definition, TableSchema, encoding, entry, filter, term};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The most entries one row may have under one definition. A row that would have more has none that anybody keeps in step.
const MOST_ENTRIES: usize = crate::index::derive::MAX_ENTRIES;

/// The values a base row shows.
pub(super) struct Values {
    row: Bytes,
    by_code: BTreeMap<Code, TermValue>,
}

impl Values {
    /// Decodes the parts of the row key and the cells of the attributes that definitions are made of. A cell that can't be decoded shows no value: it has
    /// its place in quarantine, and no entry.
    pub(super) fn of(schema: &TableSchema, row: &Row) -> Self {
        let mut by_code = BTreeMap::new();
        let parts = schema.key_values(&row.key).unwrap_or_default();
        for attribute in schema.indexed() {
            if let Some(place) = attribute.key_part {
                let value = parts.get(place).map(|value| TermValue::of(&AttributeValue::One(value.clone())));
                by_code.extend(value.map(|value| (attribute.code, value)));
                continue;
            }
            let cell = row.newest(attribute.family.as_bytes(), attribute.qualifier.as_bytes());
            if let Some(value) = cell.and_then(|c| encoding::decode(attribute, &c.value).ok()) {
                by_code.insert(attribute.code, TermValue::of(&value));
            }
        }
        Self { row: row.key.clone(), by_code }
    }

    /// The values of one place of a definition; none for a null.
    fn under(&self, operand: &crate::schema::Operand) -> Result<TermValue> {
        match self.by_code.get(&operand.code) {
            Some(value) => filter::apply(&operand.functions, value),
            None => Ok(TermValue::Tombstone),
        }
    }
}

/// What a definition ought to hold of one base row: every choice of one value per term.
pub(super) struct Ought<'a> {
    definition: &'a Definition,
    row: Bytes,
    /// The encoded values of each term; of some term none when the row has no entries.
    choices: Vec<BTreeSet<Vec<u8>>>,
    /// The value of its entries, undisputed.
    pub(super) value: Bytes,
}

impl<'a> Ought<'a> {
    /// What `definition` ought to hold of the row with these values.
    ///
    /// # Errors
    /// None for values that were decoded here.
    pub(super) fn of(definition: &'a Definition, values: &Values) -> Result<Self> {
        let row = values.row.clone();
        if let Some(filter) = &definition.filter
            && !filter.tree.holds(&mut |operand, condition| condition.accepts(&values.under(operand)?))?
        {
            return Ok(Self { definition, row, choices: vec![BTreeSet::new()], value: Bytes::new() });
        }
        let mut choices = Vec::with_capacity(definition.terms.len());
        for (place, t) in definition.terms.iter().enumerate() {
            let value = values.under(&t.operand)?;
            let mut elements = value.elements()?;
            if elements.is_empty() && place > 0 {
                elements.push(&[term::NULL]);
            }
            let shape = definition.shape(place);
            choices.push(elements.into_iter().map(|e| Ok(shape.encode(e)?.into_owned())).collect::<Result<_>>()?);
        }
        let mut covered = Vec::new();
        for code in &definition.covered {
            match values.by_code.get(code).map(TermValue::elements).transpose()?.as_deref() {
                Some([element, ..]) => covered.extend_from_slice(element),
                Some([]) | None => term::encode_null(&mut covered),
            }
        }
        Ok(Self { definition, row, choices, value: entry::encode_value(false, &covered) })
    }

    /// How many entries there ought to be.
    pub(super) fn count(&self) -> usize {
        self.choices.iter().fold(1, |n, values| n.saturating_mul(values.len()))
    }

    /// Whether there are more than anybody keeps.
    pub(super) fn is_too_many(&self) -> bool {
        self.count() > MOST_ENTRIES
    }

    /// The keys of all entries, those too long for a row key included; none when there are [too many](Self::is_too_many).
    ///
    /// # Errors
    /// None for values that were decoded here.
    pub(super) fn keys(&self) -> Result<Vec<Bytes>> {
        if self.is_too_many() {
            return Ok(Vec::new());
        }
        let mut all = vec![Vec::new()];
        for values in &self.choices {
            all = all.iter().flat_map(|start: &Vec<u8>| values.iter().map(move |v| [&start[..], v].concat())).collect();
        }
        all.iter().map(|terms| Ok(entry::encode(self.definition, terms, &self.row)?.into())).collect()
    }

    /// Whether the entry of this key is one of them.
    ///
    /// # Errors
    /// [`Corrupt`](crate::error::ErrorKind::Corrupt) for a key that is no entry of the definition.
    pub(super) fn holds(&self, key: &[u8]) -> Result<bool> {
        let terms = &key[entry::decode(key, self.definition)?.terms];
        let given = split(self.definition, terms)?.into_iter().zip(&self.choices).all(|(t, values)| values.contains(t));
        Ok(given && entry::encode(self.definition, terms, &self.row)? == key)
    }
}

/// Splits the terms of an entry key of the definition.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) when they are no terms.
pub(super) fn split<'a>(definition: &Definition, mut terms: &'a [u8]) -> Result<Vec<&'a [u8]>> {
    let mut parts = Vec::with_capacity(definition.terms.len());
    for place in 0..definition.terms.len() {
        let (part, rest) = terms.split_at(definition.shape(place).len(terms)?);
        parts.push(part);
        terms = rest;
    }
    Ok(parts)
}
