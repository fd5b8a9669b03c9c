//! Queries while rows move, and while the store fails.

use async_trait::async_trait;
use bytes::Bytes;
use sideindex::error::{Error, ErrorKind, Result};
use sideindex::model::{Cell, Row, RowMutation};
use sideindex::query::{self, Cursor, Options};
use sideindex::schema::{Attribute, BaseEncoding, Definition, Lifecycle, TableSchema, Value, entry, term};
use sideindex::store::embedded::EmbeddedStore;
use sideindex::store::{Durability, Read, ReadSpec, Scan, Scanner, Store, TableDescriptor};
use std::sync::Arc;

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
