//! The write helper: base rows changed by the rules of DESIGN.md §5.
//!
//! * Null removes all versions of a column, and an empty cell is never written.
//! * What is put and cleared in one row goes as one atomic mutation, and no column is both put and cleared in it.
//! * Timestamps strictly increase per row: max(now, newest known in that row + 1). In HBase a delete and a put of one
//!   column in the same millisecond leave nothing.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Cell, CellKind, MAX_CELL, Position, RowMutation, Timestamp, check_timestamp, escaped};
use crate::schema::{Attribute, AttributeSpec, AttributeType, AttributeValue, Catalog, TableSchema, Value, encoding};
use crate::source::Intents;
use crate::store::{Columns, Durability, ReadSpec};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use tokio::sync::Mutex;

/// What becomes of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChange {
    /// The row key; none to join it from its parts, which then are all among the attributes.
    pub row: Option<Bytes>,
    /// Timestamp of the change; none takes the next one of the row.
    pub timestamp: Option<Timestamp>,
    /// Attributes by name, each at most once; null clears.
    pub attributes: Vec<(String, serde_json::Value)>,
    /// Where it was read, for messages.
    pub origin: Option<Position>,
}

/// A row key as messages show it, no more than 64 characters of it.
fn shown(row: &[u8]) -> String {
    let text = escaped(row);
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl RowChange {
    fn place(&self) -> String {
        let row = self.row.as_ref().map(|row| format!("row {}", shown(row)));
        let line = match &self.origin {
            Some(Position::File { line }) => Some(format!("line {line}")),
            _ => None,
        };
        let both: Vec<String> = line.into_iter().chain(row).collect();
        if both.is_empty() { "a row without a key".to_owned() } else { both.join(", ") }
    }
}

/// Locks that rows share by hash: enough that writers rarely meet.
const STRIPES: usize = 256;

/// Writes rows of one base table. Cheap to clone; clones share their row locks.
#[derive(Clone)]
pub struct Writer {
    catalog: Catalog,
    /// Where the store has no change logs.
    intents: Option<Intents>,
    schema: Arc<Mutex<Arc<TableSchema>>>,
    stripes: Arc<Vec<Mutex<()>>>,
    hasher: RandomState,
}

impl Writer {
    /// A writer of a table.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`].
    pub async fn open(catalog: &Catalog, table: &str) -> Result<Self> {
        let schema = Arc::new(catalog.table(table).await?);
        Ok(Self {
            catalog: catalog.clone(),
            intents: None,
            schema: Arc::new(Mutex::new(schema)),
            stripes: Arc::new((0..STRIPES).map(|_| Mutex::new(())).collect()),
            hasher: RandomState::new(),
        })
    }

    /// The same writer for a store without change logs: each change is an intent first.
    #[must_use]
    pub fn with_intents(mut self, intents: Intents) -> Self {
        self.intents = Some(intents);
        self
    }

    /// Changes rows, each atomically. Attributes seen for the first time are recorded with the type their value shows.
    /// Several changes of one row are applied in order.
    ///
    /// # Errors
    /// [`ErrorKind::WrongType`] and [`ErrorKind::InvalidInput`] name the row and the attribute; nothing of the call is
    /// written then.
    pub async fn write(&self, changes: &[RowChange]) -> Result<()> {
        let (schema, fresh) = self.learn(changes).await?;
        let written = changes
            .iter()
            .map(|change| {
                let written = encoded(&schema, change).and_then(|written| self.check(&schema, written));
                written.map_err(|e| e.within(change.place()))
            })
            .collect::<Result<Vec<_>>>()?;
        if !fresh.is_empty() {
            // Only now: a call that is refused leaves no attribute behind.
            let declared = self.catalog.declare(&schema.name, &fresh).await?;
            *self.schema.lock().await = Arc::new(declared);
        }
        self.commit(&schema, written).await
    }

    /// Whether row and cells can be written: here a message can name the attribute, and nothing of the call is written yet.
    fn check(&self, schema: &TableSchema, written: Encoded) -> Result<Encoded> {
        let Encoded { row, cells, .. } = &written;
        if !self.catalog.store().row_key_fits(row) {
            let (most, found) = (crate::schema::entry::MAX_ROW, row.len());
            return Err(Error::invalid(format!(
                "expected a row key of 1 to {most} bytes, found {found}; HBase takes no other"
            )));
        }
        for cell in cells {
            let size = cell.size(row);
            if size > MAX_CELL {
                let name = schema.attribute_at(&cell.family, &cell.qualifier).map_or("", |a| a.name.as_str());
                return Err(Error::invalid(format!(
                    "expected a cell of at most {MAX_CELL} bytes, its key included, found {size}: HBase refuses larger ones; \
                     keep the value elsewhere and put a reference to it"
                ))
                .within(format!("attribute {name}")));
            }
        }
        Ok(written)
    }

    /// Removes rows, all families and versions of each.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn delete(&self, rows: &[Bytes]) -> Result<()> {
        let schema = Arc::clone(&*self.schema.lock().await);
        let marker = |family: &String| Cell::delete(CellKind::DeleteFamily, family.clone(), "", 0);
        let encoded = rows.iter().map(|row| Encoded {
            row: row.clone(),
            timestamp: None,
            cells: schema.families.iter().map(marker).collect(),
        });
        self.commit(&schema, encoded.collect()).await
    }

    /// Stamps and writes cells, under the locks of their rows.
    async fn commit(&self, schema: &TableSchema, encoded: Vec<Encoded>) -> Result<()> {
        let unstamped: Vec<&Bytes> = encoded.iter().filter(|e| e.timestamp.is_none()).map(|e| &e.row).collect();
        let mut stripes: Vec<usize> =
            unstamped.iter().map(|row| (self.hasher.hash_one(row) % STRIPES as u64) as usize).collect();
        // In order, so that two writers never wait for each other.
        stripes.sort_unstable();
        stripes.dedup();
        let mut guards = Vec::with_capacity(stripes.len());
        for stripe in stripes {
            guards.push(self.stripes[stripe].lock().await);
        }
        let mut newest = self.newest(schema, &unstamped).await?;
        let now = crate::clock::now();
        let mut mutations = Vec::with_capacity(encoded.len());
        for Encoded { row, timestamp, mut cells } in encoded {
            let known = newest.entry(row.clone()).or_insert(-1);
            let at = timestamp.unwrap_or_else(|| now.max(known.saturating_add(1)));
            // Nothing can be written above a cell at the end of time.
            check_timestamp(at).map_err(|e| e.within(format!("row {}", escaped(&row))))?;
            *known = at.max(*known);
            for cell in &mut cells {
                cell.timestamp = at;
            }
            if !cells.is_empty() {
                mutations.push(RowMutation::new(row, cells));
            }
        }
        if mutations.is_empty() {
            return Ok(());
        }
        let store = self.catalog.store();
        // Before an intent is durable that could not be carried out.
        if !store.capabilities().atomic_put_and_delete
            && let Some(mixed) = mutations.iter().find(|m| m.is_mixed())
        {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "expected values or nulls, found both for one row: the store cannot write and clear at once, so a reader could \
                 see the one without the other; write them one after the other, or use the store thrift2",
            )
            .within(format!("row {}", escaped(&mixed.row))));
        }
        match &self.intents {
            Some(intents) => intents.write(&schema.name, mutations).await,
            None if store.capabilities().change_logs => {
                store.mutate(&schema.name, mutations, Durability::Durable).await
            }
            None => Err(Error::new(
                ErrorKind::Unsupported,
                "expected intents beside a store without change logs, found none: its indexes would not follow",
            )),
        }
    }

    /// The newest timestamp of each row, markers included where the store shows them.
    async fn newest(&self, schema: &TableSchema, rows: &[&Bytes]) -> Result<HashMap<Bytes, Timestamp>> {
        if rows.is_empty() {
            return Ok(HashMap::new());
        }
        let store = self.catalog.store();
        let raw = store.capabilities().raw_reads;
        let spec = ReadSpec { columns: Columns::All, raw, ..ReadSpec::default() };
        let keys: Vec<Bytes> = rows.iter().map(|row| (*row).clone()).collect();
        let found = store.get(&schema.name, &keys, &spec).await?;
        Ok(found.into_iter().filter_map(|row| row.newest_timestamp().map(|ts| (row.key, ts))).collect())
    }

    /// The schema with the attributes that are new, and those: not recorded yet, with codes that are none.
    async fn learn(&self, changes: &[RowChange]) -> Result<(Arc<TableSchema>, Vec<AttributeSpec>)> {
        let schema = Arc::clone(&*self.schema.lock().await);
        let mut fresh: BTreeMap<String, AttributeType> = BTreeMap::new();
        for change in changes {
            for (name, value) in &change.attributes {
                if schema.attribute(name).is_some() || fresh.contains_key(name) {
                    continue;
                }
                let place = |e: Error| e.within(format!("attribute {name}")).within(change.place());
                if let Some(kind) = encoding::infer(value).map_err(place)? {
                    fresh.insert(name.clone(), kind);
                }
            }
        }
        if fresh.is_empty() {
            return Ok((schema, Vec::new()));
        }
        let family = &schema.families[0];
        let attributes = fresh.iter().map(|(name, kind)| Attribute::inferred(name, *kind, family, 0));
        let schema = Arc::new(schema.with_attributes(attributes));
        Ok((schema, fresh.into_iter().map(|(name, kind)| AttributeSpec::new(name, kind)).collect()))
    }
}

/// A change as it is written, its cells without timestamps yet.
struct Encoded {
    row: Bytes,
    timestamp: Option<Timestamp>,
    cells: Vec<Cell>,
}

fn encoded(schema: &TableSchema, change: &RowChange) -> Result<Encoded> {
    let mut parts: Vec<Option<Value>> = vec![None; schema.key().map_or(0, |key| key.parts().len())];
    let mut cells: Vec<Cell> = Vec::with_capacity(change.attributes.len());
    let mut names = HashSet::with_capacity(change.attributes.len());
    for (name, json) in &change.attributes {
        if !names.insert(name) {
            return Err(Error::invalid(format!("attribute {name} is given twice; give it once")));
        }
        let cell = match schema.attribute(name) {
            Some(attribute) if attribute.key_part.is_some() => {
                let place = attribute.key_part.and_then(|place| parts.get_mut(place));
                match (place, encoding::from_json(attribute, json)?) {
                    (Some(place), Some(AttributeValue::One(value))) => *place = Some(value),
                    _ => {
                        let message = format!("expected a value, found {json}: it is a part of the row key");
                        return Err(Error::invalid(message).within(format!("attribute {name}")));
                    }
                }
                continue;
            }
            Some(attribute) => {
                let (family, qualifier) = (attribute.family.clone(), attribute.qualifier.clone());
                match encoding::from_json(attribute, json)? {
                    Some(value) => {
                        let value = encode(name, attribute, &value)?;
                        Cell::put(family, qualifier, 0, value)
                    }
                    None => Cell::delete(CellKind::DeleteColumn, family, qualifier, 0),
                }
            }
            // Nothing is known of it, so it is null: the column it would be in is cleared all the same.
            None => {
                crate::schema::check_name("an attribute", name)?;
                if let Some(other) = schema.attribute_at(schema.families[0].as_bytes(), name.as_bytes()) {
                    return Err(Error::invalid(format!(
                        "expected the attribute {}, found {name}, which is the name of its column only",
                        other.name
                    )));
                }
                Cell::delete(CellKind::DeleteColumn, schema.families[0].clone(), name.clone(), 0)
            }
        };
        cells.push(cell);
    }
    Ok(Encoded { row: row_key(schema, change.row.as_ref(), &parts)?, timestamp: change.timestamp, cells })
}

/// The row key that is given, which has to agree with the parts that are given; without one it is joined from them.
fn row_key(schema: &TableSchema, given: Option<&Bytes>, parts: &[Option<Value>]) -> Result<Bytes> {
    match (given, schema.key()) {
        (None, Some(key)) => key.join(parts),
        (None, None) => Err(Error::invalid(format!(
            "expected a row key, found none: only a table with declared key parts has it from them, and {} has none",
            schema.name
        ))),
        (Some(row), Some(key)) if parts.iter().any(Option::is_some) => {
            let found = key.split(row)?;
            for ((part, given), found) in key.parts().iter().zip(parts).zip(&found) {
                if let Some(given) = given.as_ref().filter(|given| *given != found) {
                    return Err(Error::invalid(format!(
                        "attribute {}: expected {found}, as in the row key, found {given}; leave one of them out",
                        part.name
                    )));
                }
            }
            Ok(row.clone())
        }
        (Some(row), _) => Ok(row.clone()),
    }
}

fn encode(name: &str, attribute: &Attribute, value: &AttributeValue) -> Result<Bytes> {
    let bytes = encoding::encode(attribute, value);
    if bytes.is_empty() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "expected a value, found an empty one: it would be an empty cell, which is never written; use null to clear",
        )
        .within(format!("attribute {name}")));
    }
    Ok(bytes)
}
