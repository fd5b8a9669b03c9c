//! The follower: what is acknowledged, set aside, and applied once more, with a store that fails on purpose.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use async_trait::async_trait;
use bytes::Bytes;
use sideindex::error::{Error, ErrorKind, Result};
use sideindex::index::{self, Counts, Follower, FollowerOptions, Maintainer};
use sideindex::model::{Cell, CellKind, Row, RowMutation};
use sideindex::query::{self, Consistency};
use sideindex::schema::{AttributeSpec, Catalog, DefinitionSpec, QUARANTINE_TABLE, entry, term};
use sideindex::source::{self, ChangeLogSource, Freshness};
use sideindex::store::embedded::{DurabilityMode, EmbeddedStore, Options};
use sideindex::store::{Capabilities, ColumnCheck, Durability, Read, ReadSpec, Scan, Scanner, Store, TableDescriptor};
use sideindex::{build, write};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const TABLE: &str = "things";

/// What happens at the n-th write.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Nothing of it is applied.
    Reject,
    /// All of it is applied, but the caller is told otherwise.
    FailAfterWrite,
    /// The first half of it is applied.
    Tear,
}

/// A store whose n-th write from now fails.
struct Faulty {
    inner: Arc<dyn Store>,
    fault: Fault,
    /// Writes until the fault; never when negative.
    left: AtomicI64,
}

#[async_trait]
impl Read for Faulty {
    async fn get(&self, table: &str, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>> {
        self.inner.get(table, keys, spec).await
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        self.inner.scan(table, scan).await
    }
}

#[async_trait]
impl Store for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn row_key_fits(&self, key: &[u8]) -> bool {
        self.inner.row_key_fits(key)
    }

    async fn create_table(&self, table: &TableDescriptor) -> Result<()> {
        self.inner.create_table(table).await
    }

    async fn list_tables(&self) -> Result<Vec<String>> {
        self.inner.list_tables().await
    }

    async fn describe_table(&self, table: &str) -> Result<TableDescriptor> {
        self.inner.describe_table(table).await
    }

    async fn mutate(&self, table: &str, mut mutations: Vec<RowMutation>, durability: Durability) -> Result<()> {
        if self.left.fetch_sub(1, Ordering::SeqCst) != 0 {
            return self.inner.mutate(table, mutations, durability).await;
        }
        match self.fault {
            Fault::Reject => {}
            Fault::FailAfterWrite => self.inner.mutate(table, mutations, durability).await?,
            Fault::Tear => {
                mutations.truncate(mutations.len() / 2);
                self.inner.mutate(table, mutations, durability).await?;
            }
        }
        Err(Error::new(ErrorKind::Store, "a fault on purpose"))
    }

    async fn increment(&self, table: &str, row: &Bytes, family: &Bytes, qualifier: &Bytes, amount: i64) -> Result<i64> {
        self.inner.increment(table, row, family, qualifier, amount).await
    }

    async fn check_and_mutate(&self, table: &str, check: &ColumnCheck, mutation: RowMutation) -> Result<bool> {
        self.inner.check_and_mutate(table, check, mutation).await
    }

    async fn split_points(&self, table: &str, parts: usize) -> Result<Vec<Bytes>> {
        self.inner.split_points(table, parts).await
    }

    async fn sync(&self) -> Result<()> {
        self.inner.sync().await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Read>> {
        self.inner.snapshot().await
    }
}

struct World {
    store: EmbeddedStore,
    catalog: Catalog,
    writer: write::Writer,
    _dir: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability: DurabilityMode::Os, ..Options::default() };
        let store = EmbeddedStore::open(dir.path(), options).unwrap();
        let catalog = Catalog::open(Arc::new(store.clone()) as Arc<dyn Store>).await.unwrap();
        catalog.create_table(TABLE, &["a".to_owned()], 10).await.unwrap();
        let types = [("colour", "text"), ("size", "int")];
        let types: Vec<_> = types.iter().map(|(n, t)| AttributeSpec::new(*n, t.parse().unwrap())).collect();
        catalog.declare(TABLE, &types).await.unwrap();
        for (name, on) in [("by_colour", vec!["colour"]), ("by_size", vec!["size"]), ("both", vec!["colour", "size"])] {
            let on = on.into_iter().map(str::to_owned).collect();
            let spec = DefinitionSpec { name: name.to_owned(), on, ..DefinitionSpec::default() };
            build::create(&catalog, &store, TABLE, &[spec], |_| {}).await.unwrap();
        }
        let writer = write::Writer::open(&catalog, TABLE).await.unwrap();
        Self { store, catalog, writer, _dir: dir }
    }

    async fn put(&self, row: &str, attributes: &[(&str, serde_json::Value)]) {
        let attributes = attributes.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
        let change = write::RowChange { row: Some(row.to_owned().into()), timestamp: None, attributes, origin: None };
        self.writer.write(&[change]).await.unwrap();
    }

    /// Writes cells past the write helper, as another program would.
    async fn write(&self, row: &str, cells: Vec<Cell>) {
        self.store.mutate(TABLE, vec![RowMutation::new(row.to_owned(), cells)], Durability::Durable).await.unwrap();
    }

    async fn follower(&self, store: Arc<dyn Store>, delay: i64) -> Result<Follower<ChangeLogSource>> {
        let schema = Arc::new(self.catalog.table(TABLE).await?);
        let source = ChangeLogSource::open(self.store.clone(), TABLE).await?;
        let catalog = Catalog::open(Arc::clone(&store)).await?;
        let options = FollowerOptions { workers: 2, recheck_delay: delay };
        Ok(Follower::new(catalog, Maintainer::new(store, schema), source, options))
    }

    async fn follow(&self, store: Arc<dyn Store>, delay: i64) -> Result<Counts> {
        self.follower(store, delay).await?.catch_up(|_| {}).await
    }

    async fn apply(&self) -> Counts {
        self.follow(Arc::new(self.store.clone()), 0).await.unwrap()
    }

    async fn ids(&self, condition: &str, consistency: Consistency) -> Vec<String> {
        let schema = self.catalog.table(TABLE).await.unwrap();
        let parsed = query::parse(&format!("SELECT id FROM {TABLE} WHERE {condition}")).unwrap();
        let options = query::Options { consistency, ..query::Options::default() };
        let prepared = query::prepare(&self.store, &schema, &parsed, &options).await.unwrap();
        let mut cursor = prepared.cursor(Arc::new(self.store.clone()));
        let mut ids = Vec::new();
        while let Some(page) = cursor.next_page().await.unwrap() {
            ids.extend(page.into_iter().map(|row| row.values[0].as_ref().unwrap().to_string()));
        }
        ids.sort();
        ids
    }

    async fn both(&self, condition: &str) -> Vec<String> {
        let verified = self.ids(condition, Consistency::Verified).await;
        assert_eq!(self.ids(condition, Consistency::Indexed).await, verified, "{condition}");
        verified
    }

    async fn quarantined(&self) -> Vec<Row> {
        let mut scanner = self.store.scan(QUARANTINE_TABLE, Scan::all()).await.unwrap();
        scanner.next_page().await.unwrap().rows
    }

    async fn degraded(&self) -> Vec<String> {
        let schema = self.catalog.table(TABLE).await.unwrap();
        schema.definitions().iter().filter(|d| d.degraded).map(|d| d.name.clone()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_in_the_stream_goes_to_quarantine_by_term() {
    let world = World::new().await;
    world.put("r1", &[("colour", "red".into()), ("size", 1.into())]).await;
    world.apply().await;
    assert_eq!(world.both("size = 1").await, ["r1"]);
    let at = sideindex::clock::now() + 10;
    world.write("r1", vec![Cell::put("a", "colour", at, "blue"), Cell::put("a", "size", at, "large")]).await;
    let counts = world.apply().await;
    assert!(counts.add_up());
    assert_eq!((counts.received, counts.applied, counts.quarantined, counts.irrelevant), (1, 0, 1, 0));
    // The other term was applied, and the old value of the broken one is gone.
    assert_eq!(world.both("colour = 'blue'").await, ["r1"]);
    assert!(world.both("size = 1").await.is_empty());
    let rows = world.quarantined().await;
    assert_eq!(rows.len(), 1);
    let record: serde_json::Value = serde_json::from_slice(&rows[0].newest(b"q", b"record").unwrap().value).unwrap();
    assert_eq!((&record["attribute"], &record["row"]), (&"size".into(), &"r1".into()));
    assert!(record["reason"].as_str().unwrap().contains("expected int, found \"large\""), "{record}");
    assert_eq!(world.degraded().await, ["both", "by_size"]);
    // Once it is mended, it is found again.
    world.put("r1", &[("size", 2.into())]).await;
    world.apply().await;
    assert_eq!(world.both("size = 2").await, ["r1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_too_long_for_a_row_key_goes_to_quarantine_by_definition() {
    let world = World::new().await;
    let spec = DefinitionSpec {
        name: "whole".to_owned(),
        on: vec!["colour".to_owned()],
        value_limit: Some(0),
        ..DefinitionSpec::default()
    };
    build::create(&world.catalog, &world.store, TABLE, &[spec], |_| {}).await.unwrap();
    let long = "x".repeat(40_000);
    world.put("r1", &[("colour", long.as_str().into()), ("size", 1.into())]).await;
    let counts = world.apply().await;
    assert_eq!((counts.received, counts.quarantined), (1, 1));
    assert_eq!(world.both("size = 1").await, ["r1"]);
    assert_eq!(world.quarantined().await.len(), 1, "the others cut it");
    assert_eq!(world.degraded().await, ["whole"]);
    // The next value fits, and nothing of the long one is left to be removed.
    world.put("r1", &[("colour", "red".into())]).await;
    let counts = world.apply().await;
    assert_eq!((counts.received, counts.applied, counts.quarantined), (1, 1, 0));
    assert_eq!(world.both("colour = 'red'").await, ["r1"]);
}

/// Arrays of three hundred elements each make more entries than a row may have; a row that had them is found again once it
/// has fewer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_too_many_combinations_is_found_again_when_it_has_fewer() {
    let world = World::new().await;
    let arrays = ["left", "right"].map(|name| AttributeSpec::new(name, "int[]".parse().unwrap()));
    world.catalog.declare(TABLE, &arrays).await.unwrap();
    let on = vec!["left".to_owned(), "right".to_owned()];
    let spec = DefinitionSpec { name: "pairs".to_owned(), on, ..DefinitionSpec::default() };
    build::create(&world.catalog, &world.store, TABLE, &[spec], |_| {}).await.unwrap();
    let put = async |from: i64, n: i64| {
        let array = serde_json::Value::from((from..from + n).collect::<Vec<i64>>());
        world.put("r", &[("left", array.clone()), ("right", array)]).await;
        world.apply().await
    };
    assert_eq!(put(0, 300).await.applied, 1);
    assert_eq!(put(0, 900).await.quarantined, 1, "810,000 combinations");
    // Past and present values together have too many combinations now; the present ones are found all the same.
    assert_eq!(put(1_000, 280).await.quarantined, 1);
    assert_eq!(world.ids("left = 1000 AND right = 1279", Consistency::Verified).await, ["r"]);
    assert_eq!(put(3_000, 300).await.quarantined, 1);
    assert_eq!(world.ids("left = 3000 AND right = 3299", Consistency::Verified).await, ["r"]);
    assert_eq!(put(7, 1).await.received, 1);
    assert_eq!(world.ids("left = 7 AND right = 7", Consistency::Verified).await, ["r"]);
    assert!(world.ids("left = 3000 AND right = 3299", Consistency::Verified).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_failed_does_not_go_on() {
    let world = World::new().await;
    world.put("r1", &[("colour", "red".into())]).await;
    let inner: Arc<dyn Store> = Arc::new(world.store.clone());
    let faulty = Arc::new(Faulty { inner, fault: Fault::Reject, left: AtomicI64::new(0) });
    let mut follower = world.follower(faulty, 0).await.unwrap();
    assert_eq!(follower.catch_up(|_| {}).await.unwrap_err().to_string(), "a fault on purpose");
    let error = follower.catch_up(|_| {}).await.unwrap_err().to_string();
    assert!(error.contains("open another one"), "{error}");
    assert_eq!(source::applied(&world.store, TABLE).await.unwrap(), 0);
    world.apply().await;
    assert_eq!(world.both("colour = 'red'").await, ["r1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_keeps_definitions_that_are_added_while_it_runs_and_rechecks_while_it_idles() {
    let world = World::new().await;
    let mut follower = world.follower(Arc::new(world.store.clone()), 50).await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        follower.follow(stopped, |_| {}).await
    });
    world.put("r1", &[("colour", "red".into()), ("size", 1.into())]).await;
    let on = vec!["size".to_owned(), "colour".to_owned()];
    let spec = DefinitionSpec { name: "late".to_owned(), on, ..DefinitionSpec::default() };
    build::create(&world.catalog, &world.store, TABLE, &[spec], |_| {}).await.unwrap();
    world.put("r2", &[("colour", "red".into()), ("size", 1.into())]).await;
    world.write("r3", vec![Cell::delete(CellKind::DeleteVersion, "a", "colour", 5)]).await;
    // Nothing more comes; the version delete is applied once more all the same.
    let waited = async {
        while source::applied(&world.store, TABLE).await.unwrap() < 3
            || index::pending_rechecks(&world.store, TABLE).await.unwrap() > 0
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), waited).await.expect("the recheck never came");
    drop(stop);
    assert_eq!(running.await.unwrap().unwrap().received, 3);
    assert_eq!(world.both("size = 1 AND colour = 'red'").await, ["r1", "r2"]);
    let schema = world.catalog.table(TABLE).await.unwrap();
    let code = schema.definition("late").unwrap().code;
    let prefix = sideindex::schema::entry::prefix(0, code, &[]);
    let mut scanner = world.store.scan(&schema.index_table(), Scan::prefix(&prefix)).await.unwrap();
    let rows = scanner.next_page().await.unwrap().rows;
    // An event that was settled leaves disputed entries beside the true ones.
    let undisputed = rows.iter().filter(|r| !sideindex::schema::entry::decode_value(&r.cells[0].value).unwrap().0);
    assert_eq!(undisputed.count(), 2, "entries of the definition that was added");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_catalogs_of_one_store_never_give_one_code_twice() {
    let world = World::new().await;
    let other = Catalog::open(Arc::new(world.store.clone()) as Arc<dyn Store>).await.unwrap();
    for i in 0..50 {
        let names = [format!("x{i}"), format!("y{i}")].map(|n| vec![AttributeSpec::new(n, "int".parse().unwrap())]);
        let (a, b) = tokio::join!(world.catalog.declare(TABLE, &names[0]), other.declare(TABLE, &names[1]));
        a.unwrap();
        b.unwrap();
    }
    let schema = world.catalog.table(TABLE).await.unwrap();
    let codes: std::collections::BTreeSet<u16> = schema.attributes().map(|a| a.code).collect();
    assert_eq!(codes.len(), schema.attributes().count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_without_indexed_attributes_are_irrelevant_and_acknowledged() {
    let world = World::new().await;
    world.put("r1", &[("note", "hi".into())]).await;
    world.put("r2", &[("colour", "red".into())]).await;
    let counts = world.apply().await;
    assert_eq!((counts.received, counts.applied, counts.irrelevant), (2, 1, 1));
    assert_eq!(source::applied(&world.store, TABLE).await.unwrap(), 2);
    assert_eq!(world.apply().await.received, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_version_is_applied_once_more_when_it_is_due() {
    let world = World::new().await;
    world.write("r1", vec![Cell::put("a", "colour", 10, "red")]).await;
    world.write("r1", vec![Cell::put("a", "colour", 20, "blue")]).await;
    world.write("r1", vec![Cell::delete(CellKind::DeleteVersion, "a", "colour", 20)]).await;
    // Not due for an hour: it waits, whoever comes.
    let hour = 3_600_000;
    world.follow(Arc::new(world.store.clone()), hour).await.unwrap();
    assert_eq!(index::pending_rechecks(&world.store, TABLE).await.unwrap(), 1);
    world.follow(Arc::new(world.store.clone()), hour).await.unwrap();
    assert_eq!(index::pending_rechecks(&world.store, TABLE).await.unwrap(), 1);
    assert_eq!(world.both("colour = 'red'").await, ["r1"]);
    assert!(world.both("colour = 'blue'").await.is_empty());
    // Due at once: it is applied again and taken off the list.
    world.write("r1", vec![Cell::delete(CellKind::DeleteVersion, "a", "colour", 10)]).await;
    world.apply().await;
    assert_eq!(index::pending_rechecks(&world.store, TABLE).await.unwrap(), 1, "the one of the hour");
    assert!(world.both("colour = 'red'").await.is_empty());
}

/// Whatever write fails, and however: nothing that failed is acknowledged, and the next run puts it right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_write_is_never_acknowledged_and_is_put_right_by_the_next_run() {
    let world = World::new().await;
    let mut round = 0;
    for fault in [Fault::Reject, Fault::FailAfterWrite, Fault::Tear] {
        for n in 0.. {
            round += 1;
            let (row, old, new) = (format!("r{round}"), format!("old{round}"), format!("new{round}"));
            world.put(&row, &[("colour", old.as_str().into()), ("size", round.into())]).await;
            world.apply().await;
            world.put(&row, &[("colour", new.as_str().into())]).await;
            let at = sideindex::clock::now() + 1_000;
            world.write(&row, vec![Cell::delete(CellKind::DeleteVersion, "a", "size", at)]).await;
            let before = source::applied(&world.store, TABLE).await.unwrap();
            let inner: Arc<dyn Store> = Arc::new(world.store.clone());
            let faulty = Arc::new(Faulty { inner, fault, left: AtomicI64::new(n) });
            let outcome = world.follow(faulty.clone() as Arc<dyn Store>, 0).await;
            if faulty.left.load(Ordering::SeqCst) >= 0 {
                // There is no n-th write any more.
                assert!(outcome.is_ok());
                assert!(n > 3, "only {n} writes in a run");
                break;
            }
            assert_eq!(outcome.unwrap_err().to_string(), "a fault on purpose");
            assert_eq!(source::applied(&world.store, TABLE).await.unwrap(), before, "{fault:?} at write {n}");
            world.apply().await;
            assert_eq!(
                world.both(&format!("colour = '{new}'")).await,
                std::slice::from_ref(&row),
                "{fault:?} at write {n}"
            );
            assert!(world.both(&format!("colour = '{old}'")).await.is_empty(), "{fault:?} at write {n}");
            assert_eq!(world.both(&format!("size = {round}")).await, [row], "{fault:?} at write {n}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_one_row_never_share_a_timestamp() {
    let world = World::new().await;
    let mut tasks = Vec::new();
    for task in 0..8 {
        let writer = world.writer.clone();
        tasks.push(tokio::spawn(async move {
            for i in 0..20 {
                let attributes = vec![("size".to_owned(), (task * 100 + i).into())];
                let change = write::RowChange { row: Some("r".into()), timestamp: None, attributes, origin: None };
                writer.write(&[change.clone(), change]).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let spec = ReadSpec { raw: true, ..ReadSpec::default() };
    let rows = world.store.get(TABLE, &["r".into()], &spec).await.unwrap();
    assert_eq!(rows[0].cells.len(), 8 * 20 * 2, "two writes met at one timestamp");
    world.apply().await;
    let newest = &rows[0].cells[0];
    let size = std::str::from_utf8(&newest.value).unwrap();
    assert_eq!(world.both(&format!("size = {size}")).await, ["r"]);
}

/// One pass builds several definitions: with functions, a direction, a cut, a filter and covered columns. What the stream
/// brings later is kept for all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_are_built_together_and_kept() {
    let world = World::new().await;
    let schema = || async { world.catalog.table(TABLE).await.unwrap() };
    world.put("r1", &[("colour", " Red".into()), ("size", 1.into())]).await;
    world.put("r2", &[("colour", "blue".repeat(100).as_str().into()), ("size", 2.into())]).await;
    world.put("r3", &[("colour", "RED ".into())]).await;
    world.apply().await;
    let spec = |name: &str, on: &[&str]| DefinitionSpec {
        name: name.to_owned(),
        on: on.iter().map(|s| (*s).to_owned()).collect(),
        ..DefinitionSpec::default()
    };
    let big = query::filter("size > 1", &schema().await).unwrap();
    let specs = [
        DefinitionSpec { covered: vec!["size".to_owned()], ..spec("plain", &["lower(trim(colour))"]) },
        DefinitionSpec { ordered: true, ..spec("down", &["size desc"]) },
        DefinitionSpec { filter: Some(big), value_limit: Some(16), ..spec("big", &["colour"]) },
    ];
    let (built, done) = build::create(&world.catalog, &world.store, TABLE, &specs, |_| {}).await.unwrap();
    assert_eq!((built.len(), done.rows, done.entries), (3, 3, 3 + 2 + 1));
    world.put("r4", &[("colour", "green".into()), ("size", 3.into())]).await;
    world.put("r2", &[("size", 1.into())]).await;
    world.apply().await;
    let schema = schema().await;
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut scanner = world.store.scan(&schema.index_table(), Scan::all()).await.unwrap();
    for row in scanner.next_page().await.unwrap().rows {
        let definition = schema.definitions().iter().find(|d| row.key[1..3] == d.code.to_be_bytes()).unwrap();
        if ["plain", "down", "big"].contains(&definition.name.as_str()) {
            let parts = entry::decode(&row.key, definition).unwrap();
            let (disputed, covered) = entry::decode_value(&row.cells[0].value).unwrap();
            assert!(!disputed);
            let first = definition.shape(0).decode(&row.key[parts.terms]).unwrap();
            let first = first.map(|t| term::decode(&t).unwrap().unwrap().to_string()).unwrap_or("cut".to_owned());
            let covered: Vec<String> = term::split(covered)
                .unwrap()
                .into_iter()
                .map(|t| term::decode(t).unwrap().map_or("null".to_owned(), |v| v.to_string()))
                .collect();
            let row = String::from_utf8_lossy(&row.key[parts.row]).into_owned();
            seen.entry(definition.name.clone()).or_default().push(format!("{row} {first} {}", covered.join(" ")));
        }
    }
    assert_eq!(seen["plain"], ["r2 cut 1", "r4 green 3", "r1 red 1", "r3 red null"]);
    assert_eq!(seen["down"], ["r4 3 ", "r1 1 ", "r2 1 "]);
    assert_eq!(seen["big"], ["r4 green "]);
    // Asked for again they are left as they are; another one of the name is refused before anything is begun.
    build::create(&world.catalog, &world.store, TABLE, &specs, |_| {}).await.unwrap();
    let other = [spec("fresh", &["size"]), spec("down", &["size"])];
    let error = build::create(&world.catalog, &world.store, TABLE, &other, |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("definition down exists already, on (size desc), ordered"), "{error}");
    assert!(world.catalog.table(TABLE).await.unwrap().definition("fresh").is_none());
}

/// Deleted rows leave nothing in the state table once they are purged; what comes later is found all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_forgets_what_quiet_rows_left_behind() {
    let world = World::new().await;
    for (row, colour) in [("r1", "red"), ("r2", "blue"), ("r3", "red")] {
        world.put(row, &[("colour", colour.into()), ("size", 1.into())]).await;
    }
    world.writer.delete(&["r1".into(), "r2".into()]).await.unwrap();
    let future = sideindex::clock::now() + 60_000;
    world.write("r4", vec![Cell::delete(CellKind::DeleteColumn, "a", "colour", future)]).await;
    let schema = Arc::new(world.catalog.table(TABLE).await.unwrap());
    let maintainer = Maintainer::new(Arc::new(world.store.clone()), Arc::clone(&schema));
    let source = ChangeLogSource::open(world.store.clone(), TABLE).await.unwrap();
    let mut follower = Follower::new(world.catalog.clone(), maintainer, source, FollowerOptions::default());
    let error = follower.purge(future).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    // The write helper's timestamps may be ahead of the clock by as many milliseconds as a row was written in one.
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    let horizon = sideindex::clock::now();
    let purged = follower.purge(horizon).await.unwrap();
    assert_eq!((purged.rows, purged.purged), (4, 2), "r3 has nothing to purge, r4 a tombstone of the future");
    let schema = world.catalog.table(TABLE).await.unwrap();
    assert!(schema.definitions().iter().all(|d| d.floor == horizon + 1));
    let mut state = world.store.scan(&schema.state_table(), Scan::all()).await.unwrap();
    let left: Vec<_> = state.next_page().await.unwrap().rows.into_iter().map(|row| row.key).collect();
    assert_eq!(left, ["r3", "r4"]);
    // An old change that comes again, below the floor, changes nothing; a new one is found.
    world.write("r2", vec![Cell::put("a", "colour", 5, "blue")]).await;
    world.put("r1", &[("colour", "red".into())]).await;
    world.apply().await;
    assert_eq!(world.both("colour = 'red'").await, ["r1", "r3"]);
    assert!(world.both("colour = 'blue'").await.is_empty());
}

/// A reader that asks for a write waits for the follower, and no longer than it said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_freshness_token_waits_for_the_follower() {
    let world = World::new().await;
    world.put("r1", &[("colour", "red".into())]).await;
    let token: Freshness = Freshness::now(&world.store, TABLE).unwrap().to_string().parse().unwrap();
    let error = token.wait(&world.store, TABLE, Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("have 0 of 1 changes"), "{error}");
    let waiting = token.wait(&world.store, TABLE, Duration::from_secs(60));
    let (waited, _) = tokio::join!(waiting, world.apply());
    waited.unwrap();
    assert_eq!(world.both("colour = 'red'").await, ["r1"]);
    for wrong in [Freshness::new(TABLE, 2), Freshness::new("other", 1)] {
        let error = wrong.wait(&world.store, TABLE, Duration::ZERO).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
