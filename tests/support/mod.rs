//! What the tests of the binary share: running it, and an oracle over the base table.

use bytes::Bytes;
use futures::executor::block_on;
use serde_json::Value;
use sideindex::schema::{Catalog, Definition, TableSchema, entry, term};
use sideindex::store::embedded::{EmbeddedStore, Options};
use sideindex::store::{Read, Scan, Store};
use sideindex::verify::{self, Report, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

pub const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/debian-packages.jsonl.zst");
pub const UPDATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/debian-updates.jsonl.zst");

/// The binary on a store in `data`.
pub fn sideindex(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sideindex"));
    command.arg("--data").arg(data);
    command
}

/// Runs it to its end.
pub fn try_run(data: &Path, args: &[&str]) -> Output {
    sideindex(data).args(args).output().unwrap()
}

/// Runs it; it must succeed. Its standard output.
pub fn run(data: &Path, args: &[&str]) -> String {
    let output = try_run(data, args);
    assert!(
        output.status.success(),
        "sideindex {}: {}\n{}",
        args.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The answer to a query, one object per row.
pub fn query(data: &Path, sql: &str, options: &[&str]) -> Vec<Value> {
    let out = run(data, &[&["query", sql, "--format", "json"], options].concat());
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What COUNT(*) counted.
pub fn count(data: &Path, sql: &str, options: &[&str]) -> u64 {
    query(data, sql, options)[0]["count"].as_u64().unwrap()
}

/// Creates the table `packages` and, if wished, its five indexes while it is empty.
pub fn create(data: &Path, indexes: bool) {
    let types = ["section:text", "source:text", "depends:text[]", "tag_interface:text[]", "installed_size:int"];
    let attributes = types.iter().flat_map(|t| ["--attr", t]);
    let args: Vec<&str> = ["table", "create", "packages", "--family", "a"].into_iter().chain(attributes).collect();
    run(data, &args);
    if indexes {
        create_indexes(data);
    }
}

pub fn create_indexes(data: &Path) {
    for (name, on) in [
        ("by_section", "section"),
        ("by_source", "source"),
        ("by_depends", "depends"),
        ("by_interface", "tag_interface"),
        ("by_section_source", "section,source"),
    ] {
        run(data, &["index", "create", "packages", name, "--on", on]);
    }
    run(data, &["index", "create", "packages", "by_size", "--on", "installed_size", "--ordered"]);
}

/// The lines of both bundled files, first file first.
pub fn bundled_lines() -> Vec<String> {
    let mut lines = Vec::new();
    for path in [PACKAGES, UPDATES] {
        let bytes = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
        lines.extend(String::from_utf8(bytes).unwrap().lines().map(str::to_owned));
    }
    lines
}

pub fn write_lines(path: &Path, lines: impl IntoIterator<Item = impl AsRef<str>>) -> PathBuf {
    let mut text = String::new();
    for line in lines {
        text.push_str(line.as_ref());
        text.push('\n');
    }
    std::fs::write(path, text).unwrap();
    path.to_owned()
}

/// A base row as the cells show it: attribute name → JSON, decoded by this file's own rules.
pub type BaseRow = BTreeMap<String, Value>;

/// Reads the whole base table, and the index, straight from the store.
pub struct Oracle {
    pub rows: BTreeMap<String, BaseRow>,
    schema: TableSchema,
    store: Arc<dyn Store>,
    embedded: Option<EmbeddedStore>,
}

impl Oracle {
    pub fn open(data: &Path) -> Self {
        let store = EmbeddedStore::open(data, Options::default()).unwrap();
        Self { embedded: Some(store.clone()), ..Self::read(Arc::new(store), "packages") }
    }

    /// Reads a table of any store.
    pub fn read(store: Arc<dyn Store>, table: &str) -> Self {
        let catalog = Catalog::open(Arc::clone(&store));
        let schema = block_on(async { catalog.await.unwrap().table(table).await.unwrap() });
        let mut rows = BTreeMap::new();
        each_row(&*store, table, |key, cells| {
            let attributes = cells.into_iter().map(|(name, value)| {
                let text = String::from_utf8(value.to_vec()).unwrap();
                let json = match schema.attribute(&name).unwrap().kind.to_string().as_str() {
                    "text" => Value::from(text),
                    _ => serde_json::from_str(&text).unwrap(),
                };
                (name, json)
            });
            rows.insert(String::from_utf8(key.to_vec()).unwrap(), attributes.collect());
        });
        Self { rows, schema, store, embedded: None }
    }

    /// Row keys that satisfy a condition.
    pub fn ids(&self, condition: impl Fn(&BaseRow) -> bool) -> BTreeSet<String> {
        self.rows.iter().filter(|(_, row)| condition(row)).map(|(id, _)| id.clone()).collect()
    }

    /// What the library's own `verify` finds.
    pub fn verify(&self) -> Report {
        let store = self.embedded.as_ref().unwrap();
        let options = verify::Options::default();
        block_on(async {
            let catalog = Catalog::open(Arc::clone(&self.store)).await.unwrap();
            verify(&catalog, store, "packages", &options, |_| {}).await.unwrap()
        })
    }

    /// Compares base and index both ways: entries that are missing, and visible ones that are not true and whether they are
    /// disputed. Shares nothing with the maintainer but the key format.
    pub fn compare(&self) -> (Vec<String>, Vec<Extra>) {
        let mut expected: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        for definition in self.schema.definitions() {
            let names = self.schema.term_names(definition);
            for (id, row) in &self.rows {
                for terms in combinations(&names, row) {
                    let key = entry::encode(definition, &terms, id.as_bytes()).unwrap();
                    expected.insert(key, format!("{} of {id}", definition.name));
                }
            }
        }
        let mut extra = Vec::new();
        each_row(&*self.store, &self.schema.index_table(), |key, cells| {
            if expected.remove(&key[..]).is_none() {
                let disputed = entry::decode_value(&cells[0].1).unwrap().0;
                extra.push(Extra { id: row_of(&self.schema, &key), disputed });
            }
        });
        (expected.into_values().collect(), extra)
    }
}

/// A visible entry that is not true.
#[derive(Debug)]
pub struct Extra {
    /// The row it speaks of.
    pub id: String,
    pub disputed: bool,
}

fn row_of(schema: &TableSchema, key: &[u8]) -> String {
    let definition: &Definition =
        schema.definitions().iter().find(|d| key[1..3] == d.code.to_be_bytes()).expect("an entry of a definition");
    let parts = entry::decode(key, definition).unwrap();
    String::from_utf8(key[parts.row].to_vec()).unwrap()
}

/// Every combination of elements; the first term must be there, later ones may be null.
fn combinations(names: &[String], row: &BaseRow) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for (i, name) in names.iter().enumerate() {
        let mut choices: Vec<Vec<u8>> = elements(row.get(name.as_str()))
            .into_iter()
            .map(|element| {
                let value = match &element {
                    Value::String(text) => text.as_str().into(),
                    other => sideindex::schema::Value::Int(other.as_i64().unwrap()),
                };
                let mut bytes = Vec::new();
                term::encode(&value, &mut bytes);
                bytes
            })
            .collect();
        if choices.is_empty() && i > 0 {
            choices.push(vec![term::NULL]);
        }
        all = all.iter().flat_map(|start: &Vec<u8>| choices.iter().map(move |c| [&start[..], c].concat())).collect();
    }
    all
}

/// The value, or all elements of an array; none for null.
pub fn elements(value: Option<&Value>) -> Vec<Value> {
    match value {
        None => Vec::new(),
        Some(Value::Array(items)) => items.clone(),
        Some(one) => vec![one.clone()],
    }
}

fn each_row(store: &dyn Read, table: &str, mut visit: impl FnMut(Bytes, Vec<(String, Bytes)>)) {
    block_on(async {
        let mut scanner = store.scan(table, Scan::all()).await.unwrap();
        loop {
            let page = scanner.next_page().await.unwrap();
            for row in page.rows {
                let cells = row.cells.into_iter();
                let cells = cells.map(|c| (String::from_utf8(c.qualifier.to_vec()).unwrap(), c.value));
                visit(row.key, cells.collect());
            }
            if page.done {
                break;
            }
        }
    });
}
