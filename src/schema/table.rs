//! Everything sideindex knows of one base table.

use super::{Attribute, Code, Definition, DefinitionSpec, Key, Lifecycle, Operand, ScalarType, Term, TermSpec, Value};
use crate::error::{Error, ErrorKind, Result};
use crate::model::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name queries use for the row key.
pub const ROW_KEY: &str = "id";

/// A base table: its families, attributes and definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    /// The base table's name.
    pub name: String,
    /// Its column families; the first is where attributes live unless declared otherwise.
    pub families: Vec<String>,
    attributes: BTreeMap<String, Attribute>,
    by_code: BTreeMap<Code, String>,
    definitions: Vec<Definition>,
    dropping: Vec<Definition>,
    /// The attributes that some definition contains, by code.
    indexed: Vec<Attribute>,
    key: Option<Arc<Key>>,
}

impl TableSchema {
    /// Puts a schema together.
    pub fn new(name: String, families: Vec<String>, attributes: Vec<Attribute>, definitions: Vec<Definition>) -> Self {
        let (dropping, definitions): (Vec<_>, Vec<_>) =
            definitions.into_iter().partition(|d| d.state == Lifecycle::Dropping);
        let by_code = attributes.iter().map(|a| (a.code, a.name.clone())).collect();
        let is_indexed = |a: &&Attribute| definitions.iter().any(|d: &Definition| d.mentions(a.code));
        let mut indexed: Vec<Attribute> = attributes.iter().filter(is_indexed).cloned().collect();
        indexed.sort_unstable_by_key(|a| a.code);
        let attributes = attributes.into_iter().map(|a| (a.name.clone(), a)).collect();
        Self { name, families, attributes, by_code, definitions, dropping, indexed, key: None }
    }

    /// The same table with row keys of declared parts; the parts are among its attributes.
    #[must_use]
    pub fn with_key(self, key: Option<Arc<Key>>) -> Self {
        Self { key, ..self }
    }

    /// The parts of its row keys, if they are declared.
    pub fn key(&self) -> Option<&Arc<Key>> {
        self.key.as_ref()
    }

    /// The part values of a row key by their places; none where no parts are declared, or the key doesn't fit them.
    pub fn key_values(&self, row: &[u8]) -> Option<Vec<Value>> {
        self.key.as_ref()?.split(row).ok()
    }

    /// Name of the index table.
    pub fn index_table(&self) -> String {
        format!("sx_{}_index", self.name)
    }

    /// Name of the state table.
    pub fn state_table(&self) -> String {
        format!("sx_{}_state", self.name)
    }

    /// All attributes, by name.
    pub fn attributes(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.values()
    }

    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.get(name)
    }

    /// The attribute of this name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], with the nearest known name.
    pub fn require_attribute(&self, name: &str) -> Result<&Attribute> {
        self.attribute(name).ok_or_else(|| {
            if name == ROW_KEY {
                return Error::invalid(format!("{ROW_KEY:?} is the row key: rows are found by it without an index"));
            }
            let hint = nearest(name, self.attributes.keys().map(String::as_str).chain([ROW_KEY]));
            Error::new(ErrorKind::NotFound, format!("table {} has no attribute {name:?}{hint}", self.name))
        })
    }

    /// The attribute of this code.
    pub fn attribute_by_code(&self, code: Code) -> Option<&Attribute> {
        self.by_code.get(&code).and_then(|name| self.attributes.get(name))
    }

    /// The attribute stored in a column.
    pub fn attribute_at(&self, family: &[u8], qualifier: &[u8]) -> Option<&Attribute> {
        // Attributes are named after their qualifier unless declared otherwise.
        let named = std::str::from_utf8(qualifier).ok().and_then(|name| self.attributes.get(name));
        let fits = |a: &&Attribute| a.family.as_bytes() == family && a.qualifier.as_bytes() == qualifier;
        named.filter(fits).or_else(|| self.attributes.values().find(fits))
    }

    /// The definitions that the maintainer keeps: all but those that are being dropped.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The definitions that are being dropped.
    pub fn dropping(&self) -> &[Definition] {
        &self.dropping
    }

    /// All definitions, whatever their state.
    pub fn all_definitions(&self) -> impl Iterator<Item = &Definition> {
        self.definitions.iter().chain(&self.dropping)
    }

    /// The definitions readers may use.
    pub fn active_definitions(&self) -> impl Iterator<Item = &Definition> {
        self.definitions.iter().filter(|d| d.state == Lifecycle::Active)
    }

    /// The definition of this name, unless it is being dropped.
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.definitions.iter().find(|d| d.name == name)
    }

    /// The definition of this name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], with the nearest known name.
    pub fn require_definition(&self, name: &str) -> Result<&Definition> {
        self.definition(name).ok_or_else(|| {
            let hint = nearest(name, self.definitions.iter().map(|d| d.name.as_str()));
            Error::new(ErrorKind::NotFound, format!("table {} has no index {name:?}{hint}", self.name))
        })
    }

    /// A definition's terms in order, as [`TermSpec`](super::TermSpec) reads them.
    pub fn term_names(&self, definition: &Definition) -> Vec<String> {
        let named = |term: &Term| {
            let name = self.by_code.get(&term.operand.code)?.clone();
            let spec = TermSpec { name, functions: term.operand.functions.clone(), descending: term.descending };
            Some(spec.to_string())
        };
        definition.terms.iter().filter_map(named).collect()
    }

    /// The definition that is asked for, without a code yet.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for unknown attributes; [`ErrorKind::InvalidInput`] for what can be no definition.
    pub fn definition_of(&self, spec: &DefinitionSpec) -> Result<Definition> {
        let mut terms: Vec<Term> = Vec::with_capacity(spec.on.len());
        for text in &spec.on {
            let TermSpec { name, functions, descending } = text.parse()?;
            let attribute = self.require_attribute(&name)?;
            if !functions.is_empty() && attribute.kind.scalar != ScalarType::Text {
                return Err(Error::invalid(format!(
                    "{text}: expected a text attribute, found {name}, which is {}",
                    attribute.kind
                )));
            }
            let operand = Operand { code: attribute.code, functions };
            if terms.iter().any(|t| t.operand == operand) {
                return Err(Error::invalid(format!(
                    "{text} stands twice in the definition, the second time at place {}",
                    terms.len() + 1
                )));
            }
            terms.push(Term { operand, descending });
        }
        if terms.is_empty() {
            return Err(Error::invalid("a definition needs at least one attribute"));
        }
        let mut covered = Vec::with_capacity(spec.covered.len());
        for name in &spec.covered {
            let attribute = self.require_attribute(name)?;
            if attribute.kind.array {
                return Err(Error::invalid(format!(
                    "covered column {name}: expected an attribute with one value a row, found {}, of which entries keep the distinct elements only",
                    attribute.kind
                )));
            }
            if covered.contains(&attribute.code) {
                return Err(Error::invalid(format!("column {name} is covered twice; name it once")));
            }
            covered.push(attribute.code);
        }
        let salts = spec.salts.unwrap_or(1);
        if salts == 0 {
            return Err(Error::invalid("the number of salts must be between 1 and 255, found 0"));
        }
        let value_limit = spec.value_limit.unwrap_or(Definition::VALUE_LIMIT);
        if value_limit != 0 && !(16..=16_384).contains(&value_limit) {
            return Err(Error::invalid(format!(
                "the value limit must be between 16 and 16384 bytes, or 0 for none, found {value_limit}"
            )));
        }
        let definition = Definition {
            ordered: spec.ordered,
            salts,
            covered,
            filter: spec.filter.clone(),
            value_limit,
            ..Definition::new(spec.name.clone(), 0, terms)
        };
        let first = definition.terms.first().and_then(|t| self.attribute_by_code(t.operand.code));
        if let Some(part) = first.filter(|a| a.key_part.is_some()) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "expected an attribute in a column in the first place, found {}, which is {}: a row has entries once its \
                     first term has a value; put a column first",
                    part.name,
                    part.place()
                ),
            ));
        }
        Ok(definition)
    }

    /// Names of a definition's covered columns.
    pub fn covered_names(&self, definition: &Definition) -> Vec<&str> {
        definition.covered.iter().filter_map(|code| self.by_code.get(code)).map(String::as_str).collect()
    }

    /// A definition in words: `(lower(brand), price desc), ordered, covering name, where status = 'live'`.
    pub fn describe(&self, definition: &Definition) -> String {
        let mut words = format!("({})", self.term_names(definition).join(", "));
        if definition.ordered {
            words.push_str(", ordered");
        }
        let covered = self.covered_names(definition);
        if !covered.is_empty() {
            words.push_str(&format!(", covering {}", covered.join(", ")));
        }
        if let Some(filter) = &definition.filter {
            words.push_str(&format!(", where {}", filter.text));
        }
        words
    }

    /// The attributes that some definition contains, by code.
    pub fn indexed(&self) -> &[Attribute] {
        &self.indexed
    }

    /// The same table with attributes that are yet to be declared.
    #[must_use]
    pub fn with_attributes(&self, fresh: impl IntoIterator<Item = Attribute>) -> Self {
        let attributes = self.attributes.values().cloned().chain(fresh).collect();
        Self::new(self.name.clone(), self.families.clone(), attributes, self.all_definitions().cloned().collect())
            .with_key(self.key.clone())
    }

    /// The same table with these definitions and no others.
    #[must_use]
    pub fn with_definitions(&self, definitions: Vec<Definition>) -> Self {
        let attributes = self.attributes.values().cloned().collect();
        Self::new(self.name.clone(), self.families.clone(), attributes, definitions).with_key(self.key.clone())
    }

    /// A term's floor: the largest floor of the definitions containing it.
    pub fn floor(&self, code: Code) -> Timestamp {
        self.definitions.iter().filter(|d| d.mentions(code)).map(|d| d.floor).max().unwrap_or(super::NO_FLOOR)
    }
}

/// Checks a name for a table, attribute, family or definition.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] says what a name may be.
pub fn check_name(what: &str, name: &str) -> Result<()> {
    let ok = !name.is_empty()
        && name.len() <= 128
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !name.starts_with(['-', '.']);
    if ok {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{name:?} cannot name {what}: expected 1 to 128 letters, digits, '_', '-' or '.', not starting with '-' or '.'"
    )))
}

/// ` (did you mean "x"?)` for the known name nearest to `name`, or nothing when none is near.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    known
        .map(|k| (edit_distance(name, k), k))
        .filter(|(d, k)| *d <= 1 + k.len() / 4)
        .min()
        .map(|(_, k)| format!(" (did you mean {k:?}?)"))
        .unwrap_or_default()
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
