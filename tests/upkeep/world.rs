//! A table with indexes of every kind, and a brute-force view of both that shares nothing with the library but the key format.

use bytes::Bytes;
use serde_json::Value as Json;
use sideindex::build;
use sideindex::error::Result;
use sideindex::index::{Counts, Follower, FollowerOptions, Maintainer};
use sideindex::model::{Cell, CellKind, ChangeEvent, Position, Row, RowMutation};
use sideindex::schema::{AttributeSpec, Catalog, DefinitionSpec, TableSchema, Value, entry, term};
use sideindex::source::{ChangeLogSource, Source};
use sideindex::store::embedded::{DurabilityMode, EmbeddedStore, Options};
use sideindex::store::{Durability, Read, Scan, Store};
use sideindex::verify::{self, Report, verify};
use sideindex::write::{RowChange, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub const TABLE: &str = "things";
pub const INDEX: &str = "sx_things_index";
pub const STATE: &str = "sx_things_state";

const RICH: &str = "rich";
const DEFINITIONS: [(&str, &[&str], bool, u8); 5] = [
    ("by_colour", &["colour"], false, 1),
    ("by_size", &["size"], true, 4),
    ("by_tags", &["tags"], false, 8),
    ("tags_colour", &["tags", "colour"], false, 1),
    // Covers size and note, where size >= 0 OR note = 'y'.
    (RICH, &["lower(colour) desc", "tags"], false, 2),
];

pub struct World {
    pub store: EmbeddedStore,
    pub catalog: Catalog,
    pub writer: Writer,
    _dir: tempfile::TempDir,
}

/// Entries by key, with their values.
pub type Entries = BTreeMap<Bytes, Bytes>;

impl World {
    pub async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability: DurabilityMode::Os, ..Options::default() };
        let store = EmbeddedStore::open(dir.path(), options).unwrap();
        let catalog = Catalog::open(Arc::new(store.clone()) as Arc<dyn Store>).await.unwrap();
        catalog.create_table(TABLE, &["a".to_owned()], 10).await.unwrap();
        let types = [("colour", "text"), ("size", "int"), ("tags", "text[]"), ("note", "text")];
        let types: Vec<_> = types.iter().map(|(n, t)| AttributeSpec::new(*n, t.parse().unwrap())).collect();
        catalog.declare(TABLE, &types).await.unwrap();
        let mut specs = Vec::new();
        for (name, on, ordered, salts) in DEFINITIONS {
            let on = on.iter().map(|a| (*a).to_owned()).collect();
            let mut spec =
                DefinitionSpec { name: name.to_owned(), on, ordered, salts: Some(salts), ..DefinitionSpec::default() };
            if name == RICH {
                let schema = catalog.table(TABLE).await.unwrap();
                spec.covered = vec!["size".to_owned(), "note".to_owned()];
                spec.filter = Some(sideindex::query::filter("size >= 0 OR note = 'y'", &schema).unwrap());
            }
            specs.push(spec);
        }
        build::create(&catalog, &store, TABLE, &specs, |_| {}).await.unwrap();
        let writer = Writer::open(&catalog, TABLE).await.unwrap();
        Self { store, catalog, writer, _dir: dir }
    }

    pub async fn schema(&self) -> TableSchema {
        self.catalog.table(TABLE).await.unwrap()
    }

    pub async fn put(&self, row: &str, attributes: &[(&str, Json)]) {
        let attributes = attributes.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
        let change = RowChange { row: Some(row.to_owned().into()), timestamp: None, attributes, origin: None };
        self.writer.write(&[change]).await.unwrap();
    }

    /// A random change of a random row.
    pub async fn change(&self, rng: &mut fastrand::Rng, rows: u32) {
        let row = format!("r{}", rng.u32(0..rows));
        if rng.u8(0..12) == 0 {
            self.writer.delete(&[row.into()]).await.unwrap();
            return;
        }
        let colour = || ["red", "Red", "blue", "a\u{0}b"];
        let mut attributes = Vec::new();
        if rng.bool() {
            let c = rng.choice(colour()).unwrap();
            attributes.push(("colour", if rng.u8(0..5) == 0 { Json::Null } else { c.into() }));
        }
        if rng.bool() {
            attributes.push(("size", if rng.u8(0..5) == 0 { Json::Null } else { rng.i64(-3..3).into() }));
        }
        if rng.bool() {
            let tags: Vec<String> = (0..rng.usize(0..4)).map(|_| format!("t{}", rng.u8(0..5))).collect();
            attributes.push(("tags", tags.into()));
        }
        attributes.push(("note", rng.choice(["x", "y"]).unwrap().into()));
        self.put(&row, &attributes).await;
    }

    pub async fn follower(&self) -> Follower<ChangeLogSource> {
        let store: Arc<dyn Store> = Arc::new(self.store.clone());
        let source = ChangeLogSource::open(self.store.clone(), TABLE).await.unwrap();
        let maintainer = Maintainer::new(store, Arc::new(self.schema().await));
        Follower::new(self.catalog.clone(), maintainer, source, FollowerOptions { workers: 2, recheck_delay: 0 })
    }

    pub async fn apply(&self) -> Counts {
        self.follower().await.catch_up(|_| {}).await.unwrap()
    }

    pub async fn verify(&self) -> Report {
        verify(&self.catalog, &self.store, TABLE, &verify::Options::default(), |_| {}).await.unwrap()
    }

    pub async fn repair(&self) -> Report {
        let options = verify::Options { repair: true, ..verify::Options::default() };
        verify(&self.catalog, &self.store, TABLE, &options, |_| {}).await.unwrap()
    }

    /// The events of the log that are not applied yet.
    pub async fn waiting(&self) -> Vec<ChangeEvent> {
        ChangeLogSource::open(self.store.clone(), TABLE).await.unwrap().next_batch().await.unwrap()
    }

    /// Follows events, as if they came again.
    pub async fn follow(&self, events: Vec<ChangeEvent>) {
        let source = Replayed { events };
        let maintainer = Maintainer::new(Arc::new(self.store.clone()), Arc::new(self.schema().await));
        let mut follower = Follower::new(self.catalog.clone(), maintainer, source, FollowerOptions::default());
        follower.catch_up(|_| {}).await.unwrap();
    }

    /// Acknowledges the whole log without applying it.
    pub async fn follow_past_the_log(&self) {
        let mut source = ChangeLogSource::open(self.store.clone(), TABLE).await.unwrap();
        let last = source.next_batch().await.unwrap().last().unwrap().position.clone();
        source.acknowledge(&last).await.unwrap();
    }

    pub async fn mutate(&self, table: &str, row: &[u8], cell: Cell) {
        let mutation = RowMutation::new(Bytes::copy_from_slice(row), vec![cell]);
        self.store.mutate(table, vec![mutation], Durability::Relaxed).await.unwrap();
    }

    /// Writes an entry past the maintainer.
    pub async fn write_entry(&self, key: &[u8], at: i64, value: &[u8]) {
        self.mutate(INDEX, key, Cell::put("i", "e", at, value.to_vec())).await;
    }

    /// Removes an entry past the maintainer.
    pub async fn hide_entry(&self, key: &[u8], at: i64) {
        self.mutate(INDEX, key, Cell::delete(CellKind::DeleteFamily, "i", "", at)).await;
    }

    /// The key of an entry.
    pub async fn key(&self, definition: &str, values: &[Value], row: &str) -> Bytes {
        let terms: Vec<Vec<u8>> = values.iter().map(encoded).collect();
        let schema = self.schema().await;
        entry::encode(schema.definition(definition).unwrap(), &terms.concat(), row.as_bytes()).unwrap().into()
    }

    /// The key of some entry of a row.
    pub async fn key_of(&self, definition: &str, row: &str) -> Bytes {
        let code = self.schema().await.definition(definition).unwrap().code.to_be_bytes();
        let entries = self.entries().await.into_keys();
        entries.filter(|key| key[1..3] == code && key.ends_with(row.as_bytes())).next().unwrap()
    }

    pub async fn rows(&self, table: &str) -> Vec<Row> {
        let mut scanner = self.store.scan(table, Scan::all()).await.unwrap();
        let mut rows = Vec::new();
        loop {
            let page = scanner.next_page().await.unwrap();
            rows.extend(page.rows);
            if page.done {
                return rows;
            }
        }
    }

    /// The entries that are there.
    pub async fn entries(&self) -> Entries {
        self.rows(INDEX).await.into_iter().map(|r| (r.key, r.cells[0].value.clone())).collect()
    }

    /// The entries that are there and disputed.
    pub async fn disputed(&self) -> BTreeSet<Bytes> {
        self.entries().await.into_iter().filter(|(_, v)| v.get(1) == Some(&1)).map(|(key, _)| key).collect()
    }

    /// The entries that ought to be there, by brute force.
    pub async fn expected(&self) -> Entries {
        let mut entries = Entries::new();
        let (rows, schema) = (self.rows(TABLE).await, self.schema().await);
        for (name, on, ..) in DEFINITIONS {
            let Some(definition) = schema.definition(name) else { continue };
            for row in &rows {
                let Some(covered) = covered(name, row) else { continue };
                for terms in combinations(on, row) {
                    let key = entry::encode(definition, &terms, &row.key).unwrap().into();
                    entries.insert(key, [&[1, 0], &covered[..]].concat().into());
                }
            }
        }
        entries
    }

    /// What is missing, what is there undisputed and should not be, and what has wrong covered values.
    pub async fn brute_force(&self) -> [Vec<Bytes>; 3] {
        let (entries, expected, disputed) = (self.entries().await, self.expected().await, self.disputed().await);
        let missing = expected.keys().filter(|key| !entries.contains_key(*key)).cloned().collect();
        let sure = || entries.iter().filter(|(key, _)| !disputed.contains(*key));
        let extra = sure().filter(|(key, _)| !expected.contains_key(*key)).map(|(key, _)| key.clone()).collect();
        let wrong = sure().filter(|(key, value)| expected.get(*key).is_some_and(|v| v != *value));
        [missing, extra, wrong.map(|(key, _)| key.clone()).collect()]
    }
}

/// Events that come once more.
struct Replayed {
    events: Vec<ChangeEvent>,
}

#[async_trait::async_trait]
impl Source for Replayed {
    async fn next_batch(&mut self) -> Result<Vec<ChangeEvent>> {
        Ok(std::mem::take(&mut self.events))
    }

    async fn ready(&mut self) -> Result<()> {
        Ok(())
    }

    async fn acknowledge(&mut self, _: &Position) -> Result<()> {
        Ok(())
    }
}

/// The covered terms of a row that is in the index; none for one that is not.
fn covered(index: &str, row: &Row) -> Option<Vec<u8>> {
    if index != RICH {
        return Some(Vec::new());
    }
    let size = text(row, "size").map(|t| t.parse::<i64>().unwrap());
    let note = text(row, "note");
    if size.is_none_or(|n| n < 0) && note.as_deref() != Some("y") {
        return None;
    }
    let or_null = |value: Option<Value>| value.map_or(vec![term::NULL], |v| encoded(&v));
    Some([or_null(size.map(Value::Int)), or_null(note.map(Value::Text))].concat())
}

fn text(row: &Row, name: &str) -> Option<String> {
    row.newest(b"a", name.as_bytes()).map(|c| String::from_utf8(c.value.to_vec()).unwrap())
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    term::encode(value, &mut bytes);
    bytes
}

fn combinations(on: &[&str], row: &Row) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for (place, name) in on.iter().enumerate() {
        let attribute = if place == 0 && name.starts_with("lower") { "colour" } else { *name };
        let mut values: Vec<Vec<u8>> = match (*name, text(row, attribute)) {
            (_, None) => Vec::new(),
            ("lower(colour) desc", Some(text)) => {
                vec![encoded(&Value::Text(text.to_lowercase())).into_iter().map(|b| !b).collect()]
            }
            ("tags", Some(json)) => {
                let mut tags: Vec<String> = serde_json::from_str(&json).unwrap();
                tags.sort();
                tags.dedup();
                tags.into_iter().map(|t| encoded(&Value::Text(t))).collect()
            }
            ("size", Some(text)) => text.parse().map(|n| encoded(&Value::Int(n))).into_iter().collect(),
            (_, Some(text)) => vec![encoded(&Value::Text(text))],
        };
        if values.is_empty() && place > 0 {
            values.push(vec![term::NULL]);
        }
        all = all.iter().flat_map(|start| values.iter().map(move |v| [&start[..], v].concat())).collect();
    }
    all
}
