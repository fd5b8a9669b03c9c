//! Where the time of one event goes: `cargo bench`. Each line is the median of five rounds, and its ratio to the first of its
//! group, measured in the same run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a benchmark stops by panicking"
)]

use bytes::Bytes;
use futures::executor::block_on;
use sideindex::index::candidates::{Own, View};
use sideindex::index::{Maintainer, Mode, change, derive, settle};
use sideindex::model::{Cell, ChangeEvent, Position, Row, RowMutation};
use sideindex::query;
use sideindex::schema::state::Candidate;
use sideindex::schema::{Attribute, Definition, Lifecycle, NO_FLOOR, TableSchema};
use sideindex::store::embedded::{DurabilityMode, EmbeddedStore, Options};
use sideindex::store::{Durability, Read, ReadSpec, Scan, Store, TableDescriptor};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 5;

/// Runs `work`, which does `ops` operations, and prints the median time of one.
fn measure(name: &str, ops: usize, first: Option<f64>, mut work: impl FnMut(usize)) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let started = Instant::now();
            work(round);
            started.elapsed().as_nanos() as f64 / ops as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[ROUNDS / 2];
    println!("{name:52} {median:10.0} ns  {:6.2} ×", median / first.unwrap_or(median));
    median
}

fn schema() -> TableSchema {
    let attribute = |name: &str, code, kind: &str| Attribute::inferred(name, kind.parse().unwrap(), "a", code);
    let definition = |name: &str, code, terms: &[u16]| Definition {
        state: Lifecycle::Active,
        ..Definition::new(name, code, terms.to_vec())
    };
    TableSchema::new(
        "t".into(),
        vec!["a".into()],
        vec![attribute("section", 1, "text"), attribute("depends", 2, "text[]")],
        vec![definition("by_section", 3, &[1]), definition("by_depends", 4, &[2])],
    )
}

fn pure() {
    println!("one event of two terms, the second an array of 8");
    let schema = schema();
    let depends = r#"["libc6","libgcc-s1","libstdc++6","zlib1g","libx11-6","libxml2","dpkg","adduser"]"#;
    let cells = vec![Cell::put("a", "section", 7, "net"), Cell::put("a", "depends", 7, depends)];
    let n = 20_000;
    let first = measure("read changes", n, None, |_| {
        (0..n).for_each(|_| drop(black_box(change::read(&schema, &cells))));
    });
    let changes = change::read(&schema, &cells).remove(&7).unwrap().changes;
    let own = Own::of(&changes);
    let state = Row { key: "row".into(), cells: own.iter().map(|(code, c): &(u16, Candidate)| c.put(*code)).collect() };
    measure("decode the state row", n, Some(first), |_| {
        (0..n).for_each(|_| drop(black_box(View::decode(&state).unwrap())));
    });
    let view = View::decode(&state).unwrap();
    measure("find nothing to settle", n, Some(first), |_| {
        (0..n).for_each(|_| assert!(black_box(settle::unsettled(&changes, &view, |_| NO_FLOOR)).is_empty()));
    });
    measure("derive and plan both definitions", n, Some(first), |_| {
        for _ in 0..n {
            for definition in schema.definitions() {
                let derivation = derive::derive(definition, &view, &own, false).unwrap().unwrap();
                black_box(derive::writes(definition, &derivation, b"row", true).unwrap());
            }
        }
    });
}

/// Parsing, binding and planning queries on a table of 40 attributes and 12 definitions.
fn queries() {
    println!("\none query, from its text to its plan");
    let attributes: Vec<Attribute> =
        (1..=40).map(|i| Attribute::inferred(&format!("a{i}"), "text".parse().unwrap(), "a", i)).collect();
    let definition = |i: u16, terms: Vec<u16>| Definition {
        state: Lifecycle::Active,
        ordered: i.is_multiple_of(2),
        ..Definition::new(format!("d{i}"), 100 + i, terms)
    };
    let definitions =
        (1..=12).map(|i| definition(i, if i % 3 == 0 { vec![1, 2, 3] } else { vec![1 + i % 2, 4] })).collect();
    let schema = TableSchema::new("t".into(), vec!["a".into()], attributes, definitions);
    let dir = tempfile::tempdir().unwrap();
    let store =
        EmbeddedStore::open(dir.path(), Options { durability: DurabilityMode::Os, ..Options::default() }).unwrap();
    for table in ["t", "sx_t_index"] {
        block_on(store.create_table(&TableDescriptor::new(table, &["a", "i"], 1))).unwrap();
    }
    let n = 2_000;
    let mut first = None;
    for (name, sql) in [
        ("an equality", "SELECT id FROM t WHERE a5 = 'x' LIMIT 20"),
        ("an equality, six definitions to choose from", "SELECT id FROM t WHERE a1 = 'x' LIMIT 20"),
        (
            "an AND of a range and a list, ordered",
            "SELECT id, a7 FROM t WHERE a1 = 'x' AND a2 > 'b' AND a9 IN ('p', 'q', 'r') ORDER BY a2 DESC, a3 LIMIT 20",
        ),
        (
            "an OR under a NOT, with LIKE and functions",
            "SELECT * FROM t WHERE NOT (a1 != 'x' OR lower(a4) LIKE 'y%') AND (a2 = 'z' OR a3 IS NULL)",
        ),
    ] {
        let options = query::Options { allow_scan: true, ..query::Options::default() };
        let median = measure(&format!("parse, {name}"), n, first, |_| {
            (0..n).for_each(|_| drop(black_box(query::parse(sql).unwrap())));
        });
        first.get_or_insert(median);
        let parsed = query::parse(sql).unwrap();
        // The tables are empty: what there is to estimate takes a seek for each path.
        measure(&format!("bind, estimate and plan, {name}"), n, first, |_| {
            (0..n).for_each(|_| drop(black_box(block_on(query::prepare(&store, &schema, &parsed, &options)).unwrap())));
        });
    }
}

fn store() {
    println!("\nembedded store, rows of 11 cells, without fsync");
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability: DurabilityMode::Os, ..Options::default() };
    let store = EmbeddedStore::open(dir.path(), options).unwrap();
    block_on(store.create_table(&TableDescriptor::new("t", &["a"], 1))).unwrap();
    let n = 10_000;
    let key = |round: usize, i: usize| Bytes::from(format!("row-{round}-{i:08}"));
    let first = measure("put a row, 2,000 a call", n, None, |round| {
        for start in (0..n).step_by(2_000) {
            let mutations = (start..start + 2_000).map(|i| {
                let cells = (0..11).map(|c| Cell::put("a", format!("attribute{c:02}"), 1, "a value of some length"));
                RowMutation::new(key(round, i), cells.collect())
            });
            block_on(store.mutate("t", mutations.collect(), Durability::Relaxed)).unwrap();
        }
    });
    measure("get a row, one a call", n, Some(first), |round| {
        for i in 0..n {
            let rows = block_on(store.get("t", &[key(round, i * 7_919 % n)], &ReadSpec::default())).unwrap();
            assert_eq!(rows[0].cells.len(), 11);
        }
    });
    measure("scan a row", n * ROUNDS, Some(first), |_| {
        block_on(async {
            let mut scanner = store.scan("t", Scan::all()).await.unwrap();
            let mut rows = 0;
            loop {
                let page = scanner.next_page().await.unwrap();
                rows += page.rows.len();
                if page.done {
                    break;
                }
            }
            assert_eq!(rows, n * ROUNDS);
        });
    });
}

/// One row that changes all the time: its state row gathers what is superseded.
fn hot_row() {
    println!("\none row that changes again and again, over 50 values");
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability: DurabilityMode::Os, ..Options::default() };
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path(), options).unwrap());
    let schema = Arc::new(schema());
    for (table, family) in [(schema.index_table(), "i"), (schema.state_table(), "s")] {
        block_on(store.create_table(&TableDescriptor::new(table, &[family], 1))).unwrap();
    }
    let maintainer = Maintainer::new(Arc::clone(&store), schema);
    let n = 4_000;
    let mut first = None;
    for round in 0..ROUNDS {
        let events = (0..n).map(|i| {
            let number = round * n + i + 1;
            let cell = Cell::put("a", "section", number as i64, format!("value {}", number % 50));
            let position = Position::Changelog { number: number as u64 };
            ChangeEvent { row: "hot".into(), cells: vec![cell], position, append_time: number as i64 }
        });
        let events: Vec<ChangeEvent> = events.collect();
        let started = Instant::now();
        block_on(maintainer.apply(&events, Mode::Stream)).unwrap();
        let one = started.elapsed().as_nanos() as f64 / n as f64;
        let first = first.get_or_insert(one);
        println!(
            "{:52} {one:10.0} ns  {:6.2} ×",
            format!("apply changes {} to {}", round * n, (round + 1) * n),
            one / *first
        );
    }
}

fn main() {
    pure();
    queries();
    store();
    hot_row();
}
