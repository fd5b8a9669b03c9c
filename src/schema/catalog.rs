//! Schemas at rest: the table `sx_meta`.
//!
//! | row | qualifier | value |
//! |---|---|---|
//! | `table/<name>` | `families` | JSON list of family names |
//! | | `key` | JSON [`Key`], if the parts of row keys are declared |
//! | `dictionary/<table>` | `a:<attribute>`, `a:<attribute>#<generation>` from the second on, `d:<definition>#<generation>` | code(2) |
//! | `codes/<table>` | `last` | the last code given out, 8 bytes, as a counter |
//! | `attribute/<table>` | attribute name | JSON [`Attribute`] |
//! | `definition/<table>` | definition name | JSON [`Definition`] |
//! | `position/<table>` | source partition | JSON position, its number as the timestamp |
//! | `secret/page-tokens` | `key` | what page tokens are signed with, 32 bytes |
//! | `recheck/<table>/<due>/<position>` | `position`, `event` | an event that is applied once more |
//!
//! Table names hold no `/`, so no row is a prefix of another table's.

use super::retire::{generation, numbered};
use super::{Attribute, AttributeSpec, Code, Definition, DefinitionSpec, Key, TableSchema, check_name};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Cell, Row, RowMutation, Timestamp};
use crate::store::{Capabilities, ColumnCheck, Durability, Layout, Read, ReadSpec, Scan, Store, TableDescriptor};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the table that holds schemas, positions and recheck lists.
pub const META_TABLE: &str = "sx_meta";
/// Family of `sx_meta`.
pub const META_FAMILY: &str = "m";
/// Name of the table that holds what could not be indexed.
pub const QUARANTINE_TABLE: &str = "sx_quarantine";
/// Family of `sx_quarantine`.
pub const QUARANTINE_FAMILY: &str = "q";
/// Salts of a definition on a store with regions, unless it says otherwise: entries of one value in one place …
const SPREAD_SALTS: u8 = 16;
/// … and ordered ones in few, which are merged.
const ORDERED_SALTS: u8 = 4;
/// A state table begins with no more regions.
const MOST_STATE_REGIONS: usize = 16;
/// What base tables must not start with.
const RESERVED: &str = "sx_";

/// Reads and changes schemas. Changes are serialised within a process; the embedded store has one process.
#[derive(Clone)]
pub struct Catalog {
    store: Arc<dyn Store>,
}

/// Schema changes of all catalogs in this process take turns: each reads what is there before it writes.
pub(super) static CHANGES: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn usual_salts(store: Capabilities, ordered: bool) -> Option<u8> {
    store.regions.then_some(if ordered { ORDERED_SALTS } else { SPREAD_SALTS })
}

/// Whether a base table that is there has the families it is to have.
fn adopt(asked: &TableDescriptor, there: &TableDescriptor) -> Result<()> {
    let found: Vec<&str> = there.families.iter().map(|f| f.name.as_str()).collect();
    match asked.families.iter().find(|f| !found.contains(&f.name.as_str())) {
        None => Ok(()),
        Some(missing) => Err(Error::invalid(format!(
            "table {} is there already, with the families {}: expected {} among them; name its own, or add the family \
             with HBase's `alter`",
            there.name,
            found.join(", "),
            missing.name
        ))),
    }
}

pub(super) fn meta_row(kind: &str, table: &str) -> Bytes {
    format!("{kind}/{table}").into()
}

fn json<T: DeserializeOwned>(row: &Row, cell: &Cell) -> Result<T> {
    serde_json::from_slice(&cell.value).map_err(|e| {
        Error::corrupt(format!("{e}: damaged, or written by a newer sideindex")).with_source(e).within(format!(
            "{META_TABLE} row {} column {}",
            row.key.escape_ascii(),
            cell.qualifier.escape_ascii()
        ))
    })
}

impl Catalog {
    /// Opens the catalog of a store, creating its tables when they are not there.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self> {
        let there = store.list_tables().await?;
        for (table, family) in [(META_TABLE, META_FAMILY), (QUARANTINE_TABLE, QUARANTINE_FAMILY)] {
            if !there.iter().any(|t| t == table) {
                store.create_table(&TableDescriptor::new(table, &[family], 1)).await?;
            }
        }
        Ok(Self { store })
    }

    /// The store the catalog is in.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Creates a base table with its index and state tables. On HBase a base table may be there already, with families of its
    /// own beside these: it is left as it is.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`]; [`ErrorKind::InvalidInput`] for names that cannot be, and for a base table without one
    /// of the families.
    pub async fn create_table(&self, name: &str, families: &[String], max_versions: u32) -> Result<TableSchema> {
        let _guard = CHANGES.lock().await;
        check_name("a table", name)?;
        if name.starts_with(RESERVED) {
            return Err(Error::invalid(format!(
                "{name:?} cannot name a table: {RESERVED}… is for sideindex's own tables"
            )));
        }
        if families.is_empty() {
            return Err(Error::invalid("a table needs at least one column family"));
        }
        for family in families {
            check_name("a column family", family)?;
        }
        let row = meta_row("table", name);
        if self.meta(&row).await?.newest(META_FAMILY.as_bytes(), b"families").is_some() {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("table {name:?} exists already")));
        }
        let schema = TableSchema::new(name.to_owned(), families.to_vec(), Vec::new(), Vec::new());
        let family_names: Vec<&str> = families.iter().map(String::as_str).collect();
        let able = self.store.capabilities();
        let base =
            TableDescriptor { change_log: able.change_logs, ..TableDescriptor::new(name, &family_names, max_versions) };
        let there = self.store.list_tables().await?;
        if able.change_logs || !there.iter().any(|t| t == name) {
            self.create_or_find(base, &there).await?;
        } else {
            adopt(&base, &self.store.describe_table(name).await?)?;
        }
        let index = TableDescriptor::new(schema.index_table(), &["i"], 1).with_layout(Layout::Entries);
        let salts = if able.regions { SPREAD_SALTS } else { 1 };
        self.create_or_find(index.with_splits((1..salts).map(|salt| vec![salt].into()).collect()), &there).await?;
        let state = TableDescriptor::new(schema.state_table(), &["s"], 1).with_layout(Layout::States);
        // Its keys are the base table's.
        let splits = if able.regions { self.store.split_points(name, MOST_STATE_REGIONS).await? } else { Vec::new() };
        self.create_or_find(state.with_splits(splits), &there).await?;
        self.put_meta(&row, vec![("families".to_owned(), encode_json(&families)?)]).await?;
        Ok(schema)
    }

    /// Creates a table, if a crash has not left it behind.
    async fn create_or_find(&self, table: TableDescriptor, there: &[String]) -> Result<()> {
        if !there.contains(&table.name) {
            return self.store.create_table(&table).await;
        }
        match table.difference(&self.store.describe_table(&table.name).await?) {
            None => Ok(()),
            Some(difference) => Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("the store has a table {:?} already, and it is another one: {difference}", table.name),
            )),
        }
    }

    /// The names of the base tables, sorted.
    pub async fn list_tables(&self) -> Result<Vec<String>> {
        list_tables(&*self.store).await
    }

    /// Reads a table's schema.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Unsupported`] for definitions of a format this binary doesn't know.
    pub async fn table(&self, name: &str) -> Result<TableSchema> {
        read_table(&*self.store, name).await
    }

    /// Records attributes of a table that were not known before, and gives the schema with them. Those that are known must
    /// be as they are declared, in all that the declaration says.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when an attribute is there and another one, or a column is another attribute's;
    /// [`ErrorKind::NotFound`] for a column family that the table doesn't have.
    pub async fn declare(&self, table: &str, attributes: &[AttributeSpec]) -> Result<TableSchema> {
        let _guard = CHANGES.lock().await;
        let schema = self.table(table).await?;
        let fresh = fresh(&schema, attributes)?;
        if fresh.is_empty() {
            return Ok(schema);
        }
        self.put_attributes(table, fresh).await
    }

    /// Records what the row keys of a table are made of; the parts become attributes. A key that is there already may be
    /// declared again.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when the table's keys are made of other parts, or an attribute has the name of one.
    pub async fn declare_key(&self, table: &str, key: &Key) -> Result<TableSchema> {
        let _guard = CHANGES.lock().await;
        let schema = self.table(table).await?;
        if let Some(known) = schema.key().filter(|known| ***known != *key) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("the row keys of table {table} are {known}, and cannot be {key} as well"),
            ));
        }
        let parts = || key.parts().iter().zip(key.kinds()).enumerate();
        let mut fresh = Vec::new();
        for (place, (part, kind)) in parts() {
            match schema.attribute(&part.name) {
                None => fresh.push(Attribute::of_key(&part.name, kind, place, 0)),
                Some(known) if known.key_part == Some(place) => {}
                Some(known) => {
                    return Err(Error::new(
                        ErrorKind::AlreadyExists,
                        format!("key part {}: {} is an attribute already, in {}", part.name, part.name, known.place()),
                    ));
                }
            }
        }
        // The key first: if this is cut short, declaring it again adds the attributes that are missing.
        self.put_meta(&meta_row("table", table), vec![("key".to_owned(), encode_json(key)?)]).await?;
        self.put_attributes(table, fresh).await
    }

    /// Gives attributes codes and records them.
    async fn put_attributes(&self, table: &str, fresh: Vec<Attribute>) -> Result<TableSchema> {
        let dictionary = self.dictionary(table).await?;
        let name = |a: &Attribute| numbered('a', &a.name, generation(&dictionary, 'a', &a.name));
        let names: Vec<String> = fresh.iter().map(name).collect();
        let codes = self.codes(table, &names).await?;
        let record = |(attribute, code)| {
            let attribute = Attribute { code, ..attribute };
            Ok((attribute.name.clone(), encode_json(&attribute)?))
        };
        let cells = fresh.into_iter().zip(codes).map(record).collect::<Result<_>>()?;
        self.put_meta(&meta_row("attribute", table), cells).await?;
        self.table(table).await
    }

    /// Records a new definition in state `building` with the given floor, and gives the schema with it. A definition that is
    /// there already with the same terms is left as it is, so that a build can be taken up again.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for unknown attributes; [`ErrorKind::AlreadyExists`] when the definition differs.
    pub async fn define(&self, table: &str, spec: &DefinitionSpec, floor: Timestamp) -> Result<TableSchema> {
        let _guard = CHANGES.lock().await;
        check_name("a definition", &spec.name)?;
        let schema = self.table(table).await?;
        let salts = spec.salts.or_else(|| usual_salts(self.store.capabilities(), spec.ordered));
        let asked = schema.definition_of(&DefinitionSpec { salts, ..spec.clone() })?;
        if let Some(there) = schema.definition(&spec.name) {
            if there.is_as_asked(&asked, spec) {
                return Ok(schema);
            }
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("definition {} exists already, on {}", spec.name, schema.describe(there)),
            ));
        }
        let depends = asked.codes();
        if let Some(going) =
            schema.dropping().iter().find(|d| d.name == spec.name || depends.iter().any(|code| d.mentions(*code)))
        {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("index {0} is being dropped: `index drop {table} {0}` ends that", going.name),
            ));
        }
        let generation = generation(&self.dictionary(table).await?, 'd', &spec.name) + 1;
        let code = self.codes(table, &[numbered('d', &spec.name, generation)]).await?[0];
        let definition = Definition { code, floor, generation, ..asked };
        self.put_definition(table, &definition).await?;
        self.table(table).await
    }

    /// Changes a definition's record and counts its epoch on.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`].
    pub async fn update(
        &self,
        table: &str,
        definition: &str,
        change: impl FnOnce(&mut Definition),
    ) -> Result<Definition> {
        let _guard = CHANGES.lock().await;
        let schema = self.table(table).await?;
        let mut updated = match schema.dropping().iter().find(|d| d.name == definition) {
            Some(dropping) => dropping.clone(),
            None => schema.require_definition(definition)?.clone(),
        };
        let before = updated.clone();
        change(&mut updated);
        if updated != before {
            updated.epoch += 1;
            self.put_definition(table, &updated).await?;
        }
        Ok(updated)
    }

    async fn put_definition(&self, table: &str, definition: &Definition) -> Result<()> {
        let cell = (definition.name.clone(), encode_json(definition)?);
        self.put_meta(&meta_row("definition", table), vec![cell]).await
    }

    /// The codes of dictionary names, given out anew for those that have none. Codes are never given back.
    ///
    /// Any number of writers, in any process: each takes numbers from a counter and publishes `name → code` only where there
    /// is none yet. Whoever comes second uses the first one's code, and its own number is left unused.
    pub(super) async fn codes(&self, table: &str, names: &[String]) -> Result<Vec<Code>> {
        let mut known = self.dictionary(table).await?;
        let fresh: Vec<&String> = names.iter().filter(|name| !known.contains_key(*name)).collect();
        let Ok(wanted @ 1..) = i64::try_from(fresh.len()) else { return chosen(table, &known, names) };
        let counter = meta_row("codes", table);
        let (family, last) = (Bytes::from(META_FAMILY), Bytes::from("last"));
        // A dictionary without a counter is from before there were any, and nobody gives out codes but by the counter.
        let highest = i64::from(known.values().copied().max().unwrap_or(0));
        let check = ColumnCheck { family: family.clone(), qualifier: last.clone(), expected: None };
        let first = Cell::put(META_FAMILY, last.clone(), crate::clock::now(), highest.to_be_bytes().to_vec());
        self.store.check_and_mutate(META_TABLE, &check, RowMutation::new(counter.clone(), vec![first])).await?;
        let end = self.store.increment(META_TABLE, &counter, &family, &last, wanted).await?;
        for (name, number) in fresh.into_iter().zip(end - wanted + 1..) {
            let code = Code::try_from(number).ok().filter(|code| *code > 0).ok_or_else(|| {
                Error::invalid(format!(
                    "the dictionary of table {table} is full: its {} codes are given out",
                    Code::MAX
                ))
            })?;
            let check = ColumnCheck { family: family.clone(), qualifier: name.clone().into(), expected: None };
            let value = code.to_be_bytes().to_vec();
            let cell = Cell::put(META_FAMILY, name.clone(), crate::clock::now(), value);
            let mutation = RowMutation::new(meta_row("dictionary", table), vec![cell]);
            if self.store.check_and_mutate(META_TABLE, &check, mutation).await? {
                known.insert(name.clone(), code);
            }
        }
        if names.iter().any(|name| !known.contains_key(name)) {
            known = self.dictionary(table).await?;
        }
        chosen(table, &known, names)
    }

    pub(super) async fn dictionary(&self, table: &str) -> Result<BTreeMap<String, Code>> {
        let mut known = BTreeMap::new();
        for cell in &self.meta(&meta_row("dictionary", table)).await?.cells {
            let code: [u8; 2] = cell.value.as_ref().try_into().map_err(|_| {
                Error::corrupt(format!("expected a code of 2 bytes, found {}", cell.value.escape_ascii()))
                    .within(format!("dictionary of {table}, name {}", cell.qualifier.escape_ascii()))
            })?;
            known.insert(String::from_utf8_lossy(&cell.qualifier).into_owned(), Code::from_be_bytes(code));
        }
        Ok(known)
    }

    pub(super) async fn meta(&self, key: &Bytes) -> Result<Row> {
        let mut rows = self.store.get(META_TABLE, std::slice::from_ref(key), &ReadSpec::default()).await?;
        rows.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "expected one row per key of a get"))
    }

    pub(super) async fn put_meta(&self, key: &Bytes, cells: Vec<(String, Bytes)>) -> Result<()> {
        if cells.is_empty() {
            return Ok(());
        }
        // Markers too: what was removed may come back.
        let spec = ReadSpec { raw: self.store.capabilities().raw_reads, ..ReadSpec::default() };
        let there = self.store.get(META_TABLE, std::slice::from_ref(key), &spec).await?;
        let newest = there.first().and_then(Row::newest_timestamp).unwrap_or(0);
        let at = crate::clock::now().max(newest + 1);
        let cells = cells.into_iter().map(|(qualifier, value)| Cell::put(META_FAMILY, qualifier, at, value)).collect();
        self.store.mutate(META_TABLE, vec![RowMutation::new(key.clone(), cells)], Durability::Durable).await
    }
}

/// The codes of names that all have one.
fn chosen(table: &str, known: &BTreeMap<String, Code>, names: &[String]) -> Result<Vec<Code>> {
    let missing = |name: &String| {
        Error::new(ErrorKind::Internal, format!("expected {name} in the dictionary of {table}, found none"))
    };
    names.iter().map(|name| known.get(name).copied().ok_or_else(|| missing(name))).collect()
}

async fn list_tables(reader: &dyn Read) -> Result<Vec<String>> {
    let mut scanner = reader.scan(META_TABLE, Scan::prefix(b"table/")).await?;
    let mut names = Vec::new();
    loop {
        let page = scanner.next_page().await?;
        for row in page.rows {
            names.push(String::from_utf8_lossy(&row.key["table/".len()..]).into_owned());
        }
        if page.done {
            return Ok(names);
        }
    }
}

/// Reads a table's schema as `reader` sees it: a snapshot shows the schema of its moment.
///
/// # Errors
/// As [`Catalog::table`].
pub async fn read_table(reader: &dyn Read, name: &str) -> Result<TableSchema> {
    let keys = ["table", "attribute", "definition"].map(|kind| meta_row(kind, name));
    let rows = reader.get(META_TABLE, &keys, &ReadSpec::default()).await?;
    let [table, attributes, definitions] = rows.as_slice() else {
        return Err(Error::new(ErrorKind::Internal, "expected one row per key of a get"));
    };
    let Some(families) = table.newest(META_FAMILY.as_bytes(), b"families") else {
        let tables = list_tables(reader).await?;
        let hint = super::table::nearest(name, tables.iter().map(String::as_str));
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("no table {name:?}{hint}; `table list` shows them, `table create` makes one"),
        ));
    };
    let families = json(table, families)?;
    let key = table.newest(META_FAMILY.as_bytes(), b"key").map(|cell| json(table, cell)).transpose()?;
    let attributes = attributes.cells.iter().map(|c| json(attributes, c)).collect::<Result<_>>()?;
    let definitions = definitions.cells.iter().map(|c| definition(definitions, c)).collect::<Result<_>>()?;
    Ok(TableSchema::new(name.to_owned(), families, attributes, definitions).with_key(key.map(Arc::new)))
}

/// Reads a definition; its format first, for a newer one may have anything else in it.
fn definition(row: &Row, cell: &Cell) -> Result<Definition> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    let Format { format } = json(row, cell)?;
    if format <= Definition::FORMAT {
        let mut definition: Definition = json(row, cell)?;
        if !definition.is_of_this_unicode() {
            // A few characters may be in another form now, and their rows not be found.
            tracing::warn!(definition = %definition.name, "built under another version of Unicode: rebuild it");
            definition.degraded = true;
        }
        return Ok(definition);
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        format!(
            "definition {} has format {format}; this sideindex {} knows formats up to {}: use a newer one",
            cell.qualifier.escape_ascii(),
            env!("CARGO_PKG_VERSION"),
            Definition::FORMAT
        ),
    ))
}

/// Checks the names of attributes that are to be declared, and that none is declared in two ways.
///
/// # Errors
/// [`ErrorKind::InvalidInput`], [`ErrorKind::AlreadyExists`].
pub fn check_attributes(attributes: &[AttributeSpec]) -> Result<()> {
    let mut seen: BTreeMap<&str, &AttributeSpec> = BTreeMap::new();
    for spec in attributes {
        check_name("an attribute", &spec.name)?;
        if spec.name == super::table::ROW_KEY {
            return Err(Error::invalid(format!("{:?} cannot name an attribute: it names the row key", spec.name)));
        }
        if let Some(other) = seen.insert(&spec.name, spec).filter(|other| *other != spec) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("attribute {} is declared twice, as {other} and as {spec}; declare it once", spec.name),
            ));
        }
        spec.resolve("", 0)?;
    }
    Ok(())
}

/// The attributes that a table doesn't have, each once, without codes.
fn fresh(schema: &TableSchema, specs: &[AttributeSpec]) -> Result<Vec<Attribute>> {
    check_attributes(specs)?;
    let mut fresh: Vec<Attribute> = Vec::new();
    for spec in specs {
        if let Some(known) = schema.attribute(&spec.name) {
            if let Some(difference) = spec.differs_from(known) {
                return Err(Error::new(ErrorKind::AlreadyExists, difference));
            }
            continue;
        }
        if fresh.iter().any(|a| a.name == spec.name) {
            continue;
        }
        let attribute = spec.resolve(&schema.families[0], 0)?;
        if !schema.families.contains(&attribute.family) {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!(
                    "attribute {}: table {} has no column family {:?}; it has {}",
                    spec.name,
                    schema.name,
                    attribute.family,
                    schema.families.join(", ")
                ),
            ));
        }
        let same = |a: &&Attribute| (&a.family, &a.qualifier) == (&attribute.family, &attribute.qualifier);
        if let Some(other) = schema.attributes().find(same).or_else(|| fresh.iter().find(same)) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!(
                    "attribute {}: column {}:{} is that of attribute {} already",
                    spec.name, attribute.family, attribute.qualifier, other.name
                ),
            ));
        }
        fresh.push(attribute);
    }
    Ok(fresh)
}

pub(super) fn encode_json<T: Serialize + ?Sized>(value: &T) -> Result<Bytes> {
    serde_json::to_vec(value)
        .map(Bytes::from)
        .map_err(|e| Error::new(ErrorKind::Internal, format!("a schema record does not encode: {e}")).with_source(e))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;
    use crate::store::embedded::{DurabilityMode, EmbeddedStore, Options};
    use std::collections::BTreeSet;

    async fn open() -> (Arc<dyn Store>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { durability: DurabilityMode::Os, ..Options::default() };
        (Arc::new(EmbeddedStore::open(directory.path(), options).unwrap()), directory)
    }

    fn name(i: usize) -> String {
        format!("a:{i}")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn two_writers_give_one_code_per_name_and_none_twice() {
        let (store, _directory) = open().await;
        let catalogs = [Catalog::open(Arc::clone(&store)).await.unwrap(), Catalog::open(store).await.unwrap()];
        let tasks: Vec<_> = (0..24)
            .map(|task| {
                let catalog = catalogs[task % 2].clone();
                // Every name is wanted by several tasks, in another order and company each time.
                let names: Vec<String> = (0..30).map(|i| name((task * 7 + i * (task % 3 + 1)) % 60)).collect();
                tokio::spawn(async move {
                    let mut given = BTreeMap::new();
                    for some in names.chunks(3) {
                        let codes = catalog.codes("t", some).await.unwrap();
                        given.extend(some.iter().cloned().zip(codes));
                    }
                    given
                })
            })
            .collect();
        let mut all: BTreeMap<String, Code> = BTreeMap::new();
        for task in tasks {
            for (name, code) in task.await.unwrap() {
                assert_eq!(*all.entry(name.clone()).or_insert(code), code, "two codes of {name}");
            }
        }
        assert_eq!(all.len(), 60);
        assert_eq!(all.values().collect::<BTreeSet<_>>().len(), 60, "a code twice: {all:?}");
        assert!(all.values().all(|code| *code > 0));
        assert_eq!(catalogs[1].dictionary("t").await.unwrap(), all);
    }

    #[tokio::test]
    async fn a_dictionary_without_a_counter_goes_on_above_its_highest_code() {
        let (store, _directory) = open().await;
        let catalog = Catalog::open(store).await.unwrap();
        let old = [("a:x", 3_u16), ("d:y#1", 7)];
        let cells = old.map(|(name, code)| (name.to_owned(), Bytes::copy_from_slice(&code.to_be_bytes()))).to_vec();
        catalog.put_meta(&meta_row("dictionary", "t"), cells).await.unwrap();
        let names = ["d:y#1", "a:new", "a:x", "a:newer"].map(str::to_owned);
        assert_eq!(catalog.codes("t", &names).await.unwrap(), [7, 8, 3, 9]);
        assert_eq!(catalog.codes("u", &names[..1]).await.unwrap(), [1], "tables don't share codes");
    }

    #[tokio::test]
    async fn a_full_dictionary_gives_no_code() {
        let (store, _directory) = open().await;
        let catalog = Catalog::open(store).await.unwrap();
        let cells = vec![(name(0), Bytes::copy_from_slice(&Code::MAX.to_be_bytes()))];
        catalog.put_meta(&meta_row("dictionary", "t"), cells).await.unwrap();
        let error = catalog.codes("t", &[name(1)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(catalog.codes("t", &[name(0)]).await.unwrap(), [Code::MAX]);
    }
}
