//! Queries while rows move, and while the store fails.

use crate::fixture::record;
use async_trait::async_trait;
use bytes::Bytes;
use sideindex::error::{Error, ErrorKind, Result};
use sideindex::model::{Cell, CellKind, Row, RowMutation};
use sideindex::query::{self, Consistency, Cursor, Options, Paging, TokenKey};
use sideindex::schema::{Attribute, BaseEncoding, Definition, Lifecycle, TableSchema, Value, entry, term};
use sideindex::store::embedded::EmbeddedStore;
use sideindex::store::{Durability, Read, ReadSpec, Scan, Scanner, Store, TableDescriptor};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

fn schema() -> TableSchema {
    let size = Attribute {
        name: "size".into(),
        code: 1,
        kind: "int".parse().unwrap(),
        encoding: BaseEncoding::Utf8,
        family: "f".into(),
        qualifier: "size".into(),
        key_part: None,
    };
    let by_size =
        Definition { ordered: true, salts: 2, state: Lifecycle::Active, ..Definition::new("by_size", 1, [1]) };
    TableSchema::new("moving".into(), vec!["f".into()], vec![size], vec![by_size])
}

async fn create(store: &EmbeddedStore, schema: &TableSchema) {
    store.create_table(&TableDescriptor::new(&schema.name, &["f"], 1)).await.unwrap();
    store.create_table(&TableDescriptor::new(schema.index_table(), &["i"], 1)).await.unwrap();
    record(store, schema).await;
}

/// Puts a row of a size, and its entry; entries of sizes it had stay.
async fn put(store: &EmbeddedStore, schema: &TableSchema, row: &str, size: i64, at: i64) {
    let base = RowMutation::new(row.to_owned(), vec![Cell::put("f", "size", at, size.to_string())]);
    store.mutate(&schema.name, vec![base], Durability::Relaxed).await.unwrap();
    let mut terms = Vec::new();
    term::encode(&Value::Int(size), &mut terms);
    let key = entry::encode(&schema.definitions()[0], &terms, row.as_bytes()).unwrap();
    let cell = Cell::put(entry::FAMILY, entry::QUALIFIER, at, entry::encode_value(false, &[]));
    store.mutate(&schema.index_table(), vec![RowMutation::new(key, vec![cell])], Durability::Relaxed).await.unwrap();
}

async fn start(schema: &TableSchema, reader: Arc<dyn Read>, sql: &str) -> Cursor {
    let parsed = query::parse(sql).unwrap();
    query::prepare(reader.as_ref(), schema, &parsed, &Options::default()).await.unwrap().cursor(reader)
}

async fn page(cursor: &mut Cursor) -> Vec<String> {
    let page = cursor.next_page().await.unwrap().unwrap_or_default();
    page.iter().map(|row| row.values[0].as_ref().unwrap().to_string()).collect()
}

/// DESIGN.md §2.4: a row whose own value moves while a query runs may be missed, never doubled.
pub async fn a_row_that_moves_is_not_doubled(store: &EmbeddedStore) {
    let schema = schema();
    create(store, &schema).await;
    for (row, size) in [("r1", 1), ("r2", 1), ("r3", 5)] {
        put(store, &schema, row, size, 1).await;
    }
    let sql = "SELECT id FROM moving WHERE size IN (1, 5)";
    let mut cursor = start(&schema, Arc::new(store.clone()), sql).await;
    assert_eq!(page(&mut cursor).await, ["r1", "r2"]);
    put(store, &schema, "r2", 5, 2).await;
    assert_eq!(page(&mut cursor).await, ["r3"]);
    assert!(page(&mut cursor).await.is_empty());
}

/// A store whose gets fail.
struct Failing(EmbeddedStore);

#[async_trait]
impl Read for Failing {
    async fn get(&self, _: &str, _: &[Bytes], _: &ReadSpec) -> Result<Vec<Row>> {
        Err(Error::new(ErrorKind::Store, "the get failed"))
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        self.0.scan(table, scan).await
    }
}

pub async fn a_failed_query_does_not_end_as_if_it_were_complete(store: &EmbeddedStore) {
    let schema = schema();
    create(store, &schema).await;
    put(store, &schema, "r1", 1, 1).await;
    let sql = "SELECT id FROM moving WHERE size = 1";
    let mut cursor = start(&schema, Arc::new(Failing(store.clone())), sql).await;
    assert_eq!(cursor.next_page().await.unwrap_err().to_string(), "the get failed");
    assert!(cursor.next_page().await.unwrap_err().to_string().contains("run it again"));
    // The same where a page was given up half way.
    let mut cursor = start(&schema, Arc::new(Stuck(store.clone())), sql).await;
    assert!(futures::poll!(Box::pin(cursor.next_page())).is_pending());
    assert!(cursor.next_page().await.unwrap_err().to_string().contains("given up"));
}

/// A store whose gets never end.
struct Stuck(EmbeddedStore);

#[async_trait]
impl Read for Stuck {
    async fn get(&self, _: &str, _: &[Bytes], _: &ReadSpec) -> Result<Vec<Row>> {
        std::future::pending().await
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        self.0.scan(table, scan).await
    }
}

/// Rows with a size and tags, and a way to change them.
struct Table<'a> {
    store: &'a EmbeddedStore,
    schema: TableSchema,
    at: i64,
}

impl<'a> Table<'a> {
    /// Definitions of both kinds, one of them on an array, and one that covers.
    async fn create(store: &'a EmbeddedStore, name: &str) -> Self {
        let attributes = [("size", "int", 1), ("tags", "text[]", 2), ("note", "text", 3)];
        let attributes =
            attributes.map(|(name, kind, code)| Attribute::inferred(name, kind.parse().unwrap(), "f", code));
        let active = |definition: Definition| Definition { state: Lifecycle::Active, salts: 3, ..definition };
        let definitions = vec![
            active(Definition { ordered: true, covered: vec![3], ..Definition::new("by_size", 1, [1]) }),
            active(Definition::new("by_tags", 2, [2])),
        ];
        let schema = TableSchema::new(name.into(), vec!["f".into()], attributes.to_vec(), definitions);
        create(store, &schema).await;
        Self { store, schema, at: 0 }
    }

    /// Puts a row and its entries, or deletes them.
    async fn put(&mut self, row: &str, size: i64, tags: &[&str], live: bool) {
        self.at += 1;
        let one = |value: Value| {
            let mut terms = Vec::new();
            term::encode(&value, &mut terms);
            terms
        };
        let base = if live {
            let tags = serde_json::to_string(tags).unwrap();
            let cells = [("size", size.to_string()), ("tags", tags), ("note", format!("note of {row}"))];
            cells.map(|(name, value)| Cell::put("f", name, self.at, value)).to_vec()
        } else {
            vec![Cell::delete(CellKind::DeleteFamily, "f", "", self.at)]
        };
        let base = RowMutation::new(row.to_owned(), base);
        self.store.mutate(&self.schema.name, vec![base], Durability::Relaxed).await.unwrap();
        let [by_size, by_tags] = self.schema.definitions() else { panic!() };
        let note = one(format!("note of {row}").as_str().into());
        let sizes = [(by_size, one(size.into()), note)];
        let entries = sizes.into_iter().chain(tags.iter().map(|tag| (by_tags, one((*tag).into()), Vec::new())));
        let entries = entries.map(|(definition, terms, covered)| {
            let key = entry::encode(definition, &terms, row.as_bytes()).unwrap();
            let cell = if live {
                Cell::put(entry::FAMILY, entry::QUALIFIER, self.at, entry::encode_value(false, &covered))
            } else {
                Cell::delete(CellKind::DeleteFamily, entry::FAMILY, "", self.at)
            };
            RowMutation::new(key, vec![cell])
        });
        self.store.mutate(&self.schema.index_table(), entries.collect(), Durability::Relaxed).await.unwrap();
    }

    async fn page(&self, sql: &str, options: &Options) -> (Vec<String>, Option<String>, u64) {
        let parsed = query::parse(sql).unwrap();
        let mut cursor = query::prepare(self.store, &self.schema, &parsed, options)
            .await
            .unwrap_or_else(|e| panic!("{sql}: {e}"))
            .cursor(Arc::new(self.store.clone()));
        let mut ids = Vec::new();
        while let Some(page) = cursor.next_page().await.unwrap() {
            ids.extend(page.iter().map(|row| row.values[0].as_ref().unwrap().to_string()));
        }
        (ids, cursor.token(), cursor.actuals().base_rows)
    }
}

/// No row twice and none skipped among rows that do not change, while others come, go and move between the pages.
pub async fn pages_are_whole_while_other_rows_change(store: &EmbeddedStore) {
    const TAGS: [&str; 4] = ["a", "b", "c", "d"];
    let queries = [
        "SELECT id FROM {} WHERE size > 2",
        "SELECT id FROM {} WHERE size > 2 ORDER BY size DESC",
        "SELECT id FROM {} WHERE tags IN ('a', 'b', 'c')",
        "SELECT id FROM {} WHERE tags = 'a' OR size < 6 OR id > 'r2'",
        "SELECT id FROM {} WHERE tags IN ('a', 'd') ORDER BY size, id DESC",
        "SELECT id FROM {} WHERE id BETWEEN 'r1' AND 'r4' OR tags = 'b'",
        "SELECT id FROM {} WHERE id LIKE 'r%' ORDER BY id DESC",
        "SELECT id FROM {} WHERE note LIKE '%r%'",
        "SELECT id, note FROM {} WHERE size >= 0 ORDER BY size LIMIT 1000",
    ];
    let mut rng = fastrand::Rng::with_seed(5);
    for round in 0..8 {
        let mut table = Table::create(store, &format!("pages{round}")).await;
        let mut still: BTreeSet<String> = BTreeSet::new();
        let mut others: BTreeMap<String, (i64, Vec<&str>)> = BTreeMap::new();
        let some = |rng: &mut fastrand::Rng| TAGS.into_iter().filter(|_| rng.bool()).collect::<Vec<_>>();
        for i in 0..60 {
            let (row, size) = (format!("r{i}"), rng.i64(0..10));
            table.put(&row, size, &some(&mut rng), true).await;
            still.insert(row);
        }
        for sql in queries {
            let sql = sql.replace("{}", &table.schema.name);
            let consistency = if rng.bool() { Consistency::Verified } else { Consistency::Indexed };
            let mut options = Options { consistency, allow_scan: true, ..Options::default() };
            let (whole, ..) = table.page(&sql, &options).await;
            let whole: Vec<String> = whole.into_iter().filter(|id| still.contains(id)).collect();
            assert!(whole.len() > 5, "{sql}");
            let mut paging = Paging { size: rng.u64(1..9), after: None, key: TokenKey::random().unwrap() };
            let mut answer = Vec::new();
            loop {
                options.paging = Some(paging.clone());
                let (ids, token, _) = table.page(&sql, &options).await;
                answer.extend(ids.into_iter().filter(|id| still.contains(id)));
                let Some(token) = token else { break };
                paging.after = Some(token);
                for _ in 0..3 {
                    let row = format!("{}{}", ["a", "r2x", "z"][rng.usize(0..3)], rng.usize(0..9));
                    // What it was before is taken away first, so that its entries are right.
                    if let Some((size, tags)) = others.remove(&row) {
                        table.put(&row, size, &tags, false).await;
                    }
                    if rng.u8(0..3) > 0 {
                        let (size, tags) = (rng.i64(0..10), some(&mut rng));
                        table.put(&row, size, &tags, true).await;
                        others.insert(row, (size, tags));
                    }
                }
            }
            let mut sorted = (whole, answer);
            sorted.0.sort();
            sorted.1.sort();
            assert_eq!(sorted.0, sorted.1, "{sql} {consistency}");
        }
    }
}

pub async fn tokens_go_out_of_date_with_their_plan(store: &EmbeddedStore) {
    let mut table = Table::create(store, "stale").await;
    for i in 0..9 {
        table.put(&format!("r{i}"), i, &["a"], true).await;
    }
    let sql = "SELECT id FROM stale WHERE tags = 'a'";
    let paging = Paging { size: 2, after: None, key: TokenKey::random().unwrap() };
    let with = |paging: Paging| Options { paging: Some(paging), ..Options::default() };
    let (_, token, _) = table.page(sql, &with(paging.clone())).await;
    let next = with(Paging { after: token, ..paging });
    // Another index, a later epoch, an estimate: nothing of it matters.
    let mut definitions = table.schema.definitions().to_vec();
    definitions[1].epoch += 5;
    let more = Definition { state: Lifecycle::Active, ordered: true, ..Definition::new("a_too", 9, [2]) };
    let rebuilt = |definitions: Vec<Definition>| {
        let attributes = table.schema.attributes().cloned().collect();
        TableSchema::new("stale".into(), vec!["f".into()], attributes, definitions)
    };
    let parsed = query::parse(sql).unwrap();
    let mut added = definitions.clone();
    added.insert(0, more);
    let prepared = query::prepare(store, &rebuilt(added), &parsed, &next).await.unwrap();
    assert!(prepared.explain().to_string().contains("* index by_tags"), "{}", prepared.explain());
    let mut cursor = prepared.cursor(Arc::new(store.clone()));
    assert_eq!(page(&mut cursor).await, ["r2", "r3"]);
    // A rebuild, and a drop, do.
    definitions[1].generation += 1;
    for schema in [rebuilt(definitions.clone()), rebuilt(definitions[..1].to_vec())] {
        let error = query::prepare(store, &schema, &parsed, &next).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("out of date"), "{error}");
    }
}

/// Covered columns save the base rows; memory and time are bounded.
pub async fn what_a_query_may_take(store: &EmbeddedStore) {
    let mut table = Table::create(store, "bounds").await;
    for i in 0..300 {
        table.put(&format!("r{i}"), i, &["a", "b"], true).await;
    }
    let indexed = Options { consistency: Consistency::Indexed, ..Options::default() };
    let covered = "SELECT id, note FROM bounds WHERE size >= 0 AND note LIKE 'note%' ORDER BY size DESC";
    let (ids, _, base_rows) = table.page(covered, &indexed).await;
    assert_eq!((ids.len(), base_rows), (300, 0));
    let (ids, _, base_rows) = table.page(covered, &Options::default()).await;
    assert_eq!((ids.len(), base_rows), (300, 300));
    let (_, _, base_rows) = table.page("SELECT id, tags FROM bounds WHERE size >= 0", &indexed).await;
    assert_eq!(base_rows, 300);

    let failure = async |sql: &str, options: &Options| {
        let parsed = query::parse(sql).unwrap();
        let prepared = query::prepare(store, &table.schema, &parsed, options).await.unwrap();
        let mut cursor = prepared.cursor(Arc::new(store.clone()));
        loop {
            match cursor.next_page().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{sql} was answered"),
                Err(error) => return error,
            }
        }
    };
    let small = Options { memory: 40_000, ..Options::default() };
    let error = failure("SELECT * FROM bounds WHERE size >= 0 ORDER BY note", &small).await;
    assert_eq!(error.kind(), ErrorKind::TooCostly);
    assert!(error.to_string().contains("for rows to be sorted"), "{error}");
    let error = failure("SELECT COUNT(*) FROM bounds WHERE tags IN ('a', 'b')", &small).await;
    assert!(error.to_string().contains("for hashes of rows already met"), "{error}");
    // The same with a LIMIT fits.
    assert_eq!(
        table
            .page(
                "SELECT id FROM bounds WHERE tags = 'a' ORDER BY note LIMIT 5",
                &Options { memory: 60_000, ..Options::default() }
            )
            .await
            .0
            .len(),
        5
    );
    let late = Options { deadline: Some(Instant::now()), ..Options::default() };
    let error = failure("SELECT id FROM bounds WHERE tags = 'a'", &late).await;
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("it had read 0 entries and 0 base rows"), "{error}");
}
