//! `doctor` finds each kind of damage by name, changes nothing, and is content with a store that is whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[allow(dead_code, reason = "shared with tests/catalogue.rs, which uses the rest")]
mod support;

use futures::executor::block_on;
use serde_json::{Value, json};
use sideindex::model::{Cell, RowMutation};
use sideindex::schema::{Catalog, Lifecycle, META_TABLE, QUARANTINE_TABLE};
use sideindex::store::embedded::{EmbeddedStore, Options};
use sideindex::store::{Durability, Read, ReadSpec, Scan, Store};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{run, try_run, write_lines};

struct Patient {
    dir: tempfile::TempDir,
}

impl Patient {
    fn new() -> Self {
        let patient = Self { dir: tempfile::tempdir().unwrap() };
        let data = patient.data();
        run(&data, &["table", "create", "things", "--family", "a"]);
        let lines = (0..50)
            .map(|i| json!({"id": format!("t{i:02}"), "attrs": {"colour": "red", "size": i, "tags": ["a", "b"]}}));
        let file = write_lines(&patient.dir.path().join("lines.jsonl"), lines.map(|l| l.to_string()));
        run(&data, &["load", "things", file.to_str().unwrap()]);
        run(&data, &["index", "create", "things", "by_colour", "--on", "colour", "--salts", "4"]);
        run(&data, &["index", "create", "things", "by_size", "--on", "size desc", "--ordered", "--cover", "colour"]);
        run(&data, &["delete", "things", "t07"]);
        patient
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Damages it through the store.
    fn write(&self, table: &str, row: impl Into<bytes::Bytes>, cells: Vec<Cell>) {
        let store = EmbeddedStore::open(&self.data(), Options::default()).unwrap();
        block_on(store.mutate(table, vec![RowMutation::new(row, cells)], Durability::Durable)).unwrap();
    }

    /// Damages it beneath the store.
    fn beneath(&self, keyspace: &str, change: impl FnOnce(&fjall::Keyspace)) {
        let database = fjall::Database::builder(self.data().join("db")).open().unwrap();
        change(&database.keyspace(keyspace, fjall::KeyspaceCreateOptions::default).unwrap());
        database.persist(fjall::PersistMode::SyncAll).unwrap();
    }

    /// What doctor says, and its exit code. It must leave everything as it is.
    fn examine(&self) -> (Value, i32) {
        let before = contents(&self.data());
        let output = try_run(&self.data(), &["doctor", "--format", "json"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!message.contains("panicked"), "{message}");
        assert!(before == contents(&self.data()), "doctor changed something");
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {message}"));
        (report, output.status.code().unwrap())
    }

    /// One finding of this severity must be in this place and say this, with an advice.
    #[track_caller]
    fn expect(&self, severity: &str, place: &str, what: &str) {
        let (report, code) = self.examine();
        let findings = report["findings"].as_array().unwrap();
        let fits = |f: &&Value| {
            let text = |key: &str| f[key].as_str().unwrap().to_owned();
            text("severity") == severity && text("place").contains(place) && text("what").contains(what)
        };
        let found =
            findings.iter().find(fits).unwrap_or_else(|| panic!("{severity} {place} {what} is not in {report:#}"));
        assert!(found["advice"].as_str().unwrap().len() > 5);
        assert_eq!(code, i32::from(severity == "error"), "{report:#}");
    }
}

/// Every file with its bytes.
fn contents(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_whole_store_is_clean() {
    let patient = Patient::new();
    let (report, code) = patient.examine();
    assert_eq!((report["findings"].clone(), code), (json!([]), 0), "{report:#}");
    // Rows, entries and records as made above; a row that was deleted has neither.
    let looked = &report["looked"];
    assert_eq!(
        (&looked["records"], &looked["entries"], &looked["states"]),
        (&json!(51), &json!(98), &json!(50)),
        "{looked}"
    );
    let said = run(&patient.data(), &["doctor"]);
    assert!(said.contains("51 changes") && said.contains("nothing is wrong"), "{said}");
    let csv = run(&patient.data(), &["doctor", "--format", "csv"]);
    assert_eq!(csv, "");
}

#[test]
fn a_store_that_cannot_be_opened_is_told_from_outside() {
    let patient = Patient::new();
    let whole = contents(&patient.data());
    let marker = patient.data().join("FORMAT");
    let damages: [(&str, &str, &dyn Fn()); 5] = [
        ("format 2", "another version of sideindex", &|| {
            fs::write(&marker, "sideindex embedded store, format 2\n").unwrap()
        }),
        ("descriptor", "descriptor of table \"things\"", &|| {
            patient.beneath("tables", |k| k.insert("things", "{\"name\": 5}").unwrap());
        }),
        ("keyspace", "keyspaces/0/current", &|| {
            fs::remove_file(patient.data().join("db/keyspaces/0/current")).unwrap()
        }),
        ("stray", "does not belong there", &|| fs::write(patient.data().join("db/keyspaces/letter"), "dear").unwrap()),
        ("journal", "files are missing", &|| {
            for (path, _) in
                contents(&patient.data()).into_iter().filter(|(p, _)| p.extension().is_some_and(|e| e == "jnl"))
            {
                fs::remove_file(path).unwrap();
            }
        }),
    ];
    for (name, what, damage) in damages {
        damage();
        patient.expect("error", patient.data().to_str().unwrap(), what);
        // And nobody else opens it either.
        let output = try_run(&patient.data(), &["table", "list"]);
        assert!(!output.status.success(), "{name}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(what), "{name}: {output:?}");
        fs::remove_dir_all(patient.data()).unwrap();
        for (path, bytes) in &whole {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
    assert_eq!(patient.examine().1, 0);
}

#[test]
fn a_flipped_bit_in_a_table_file_is_found() {
    let patient = Patient::new();
    let mut random = fastrand::Rng::with_seed(1);
    let mut noise = || (0..1_500).map(|_| random.alphanumeric()).collect::<String>();
    let lines = (0..2_000).map(|i| json!({"id": format!("n{i}"), "attrs": {"noise": noise()}}));
    let file = write_lines(&patient.dir.path().join("more.jsonl"), lines.map(|l| l.to_string()));
    let mut load = support::sideindex(&patient.data());
    load.env("SIDEINDEX_STORE_MEMTABLE_BYTES", "1 MiB").args(["table", "create", "many", "--family", "a"]);
    assert!(load.status().unwrap().success());
    run(&patient.data(), &["load", "many", file.to_str().unwrap()]);
    let files = contents(&patient.data());
    let largest =
        files.iter().filter(|(p, _)| p.parent().unwrap().ends_with("tables")).max_by_key(|(_, b)| b.len()).unwrap();
    let (path, mut bytes) = largest.clone();
    assert!(bytes.len() > 100_000, "no table file of the table");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
    patient.expect("error", "table many", "hecksum");
}

#[test]
fn what_does_not_decode_is_found() {
    let patient = Patient::new();
    let put = |family: &str, qualifier: &str, at: i64, value: &[u8]| {
        vec![Cell::put(family.to_owned(), qualifier.to_owned(), at, value.to_vec())]
    };
    let now = sideindex::clock::now() + 3_600_000;

    patient.beneath("t.things", |k| k.insert("no cell", "x").unwrap());
    patient.expect("error", "table things", "cell \"no cell\"");
    patient.beneath("t.things", |k| k.remove("no cell").unwrap());
    assert_eq!(patient.examine().1, 0);

    patient.write("sx_things_state", "t01", put("s", "short", 1, b"x"));
    patient.expect("error", "sx_things_state", "row \"t01\"");

    let patient = Patient::new();
    let code = |name: &str| {
        let store = EmbeddedStore::open(&patient.data(), Options::default()).unwrap();
        let catalog = block_on(Catalog::open(Arc::new(store))).unwrap();
        block_on(catalog.table("things")).unwrap().definition(name).unwrap().code.to_be_bytes()
    };
    let by_size = [&[0][..], &code("by_size"), b"\x33never ends"].concat();
    patient.write("sx_things_index", by_size, put("i", "e", 1, &[1, 0]));
    patient.expect("error", "index by_size of table things", "entry \"");
    let patient = Patient::new();
    // The right entry in the wrong place: nobody would find it.
    {
        let store = EmbeddedStore::open(&patient.data(), Options::default()).unwrap();
        let mut scanner = block_on(store.scan("sx_things_index", Scan::all())).unwrap();
        let rows = block_on(scanner.next_page()).unwrap().rows;
        let row = rows.iter().find(|r| r.key[1..3] == code_of(&store, "by_colour")).unwrap();
        let mut moved = row.key.to_vec();
        moved[0] = (moved[0] + 1) % 4;
        block_on(store.mutate(
            "sx_things_index",
            vec![RowMutation::new(moved, row.cells.clone())],
            Durability::Durable,
        ))
        .unwrap();
    }
    patient.expect("error", "index by_colour of table things", "expected the salt");

    let patient = Patient::new();
    patient.write("sx_things_index", vec![0, 0x77, 0x77, 5, b'r'], put("i", "e", 1, &[1, 0]));
    patient.expect("warning", "sx_things_index", "is of no index that is there");

    for (row, qualifier, value, place, what) in [
        ("attribute/things", "size", &b"{}"[..], "table things", "sx_meta row attribute/things column size"),
        ("definition/things", "by_size", b"{\"format\": 99}", "table things", "format 99"),
        ("dictionary/things", "a:size", b"\0", "sx_meta row dictionary/things", "a code of 2 bytes"),
        ("dictionary/things", "a:more", b"\0\x01", "dictionary of table things", "have the code 1"),
        ("codes/things", "last", b"\x05", "sx_meta row codes/things", "a counter of 8 bytes"),
        ("position/things", "changelog", b"[]", "table things", "expected a change-log position"),
        ("position/things", "changelog", b"{\"changelog\":{\"number\":52}}", "table things", "its end is lost"),
        ("recheck/things/1", "event", b"x", "recheck/things/1", "expected a cell position"),
    ] {
        let patient = Patient::new();
        patient.write(META_TABLE, row, put("m", qualifier, now, value));
        patient.expect("error", place, what);
    }
    let patient = Patient::new();
    patient.write(META_TABLE, "weather/things", put("m", "x", now, b"sunny"));
    patient.expect("note", "weather/things", "no kind");
    patient.write(QUARANTINE_TABLE, "things/x", put("q", "record", now, b"no JSON"));
    patient.expect("error", "sx_quarantine row things/x", "expected JSON in record");
}

fn code_of(store: &EmbeddedStore, name: &str) -> [u8; 2] {
    let catalog = block_on(Catalog::open(Arc::new(store.clone()))).unwrap();
    block_on(catalog.table("things")).unwrap().definition(name).unwrap().code.to_be_bytes()
}

#[test]
fn a_hole_in_the_change_log_is_found() {
    let patient = Patient::new();
    let key = |number: u64| [b"things\0\x01".to_vec(), number.to_be_bytes().to_vec()].concat();
    patient.beneath("logs", |k| {
        assert!(k.get(key(17)).unwrap().is_some());
        k.remove(key(17)).unwrap();
    });
    patient.expect("error", "change log of table things", "17");
    patient.beneath("logs", |k| k.insert(key(17), "nonsense").unwrap());
    patient.expect("error", "change log of table things", "changelog:17");
}

#[test]
fn what_is_not_up_to_date_is_a_warning() {
    let patient = Patient::new();
    run(&patient.data(), &["put", "things", "t01", "colour=blue", "--no-apply"]);
    patient.expect("warning", "table things", "1 changes behind");
    let long = format!("colour={}", "x".repeat(40_000));
    try_run(&patient.data(), &["put", "things", &"k".repeat(32_760), &long]);
    {
        let store = EmbeddedStore::open(&patient.data(), Options::default()).unwrap();
        let catalog = block_on(Catalog::open(Arc::new(store))).unwrap();
        block_on(catalog.update("things", "by_size", |d| {
            d.state = Lifecycle::Building;
            d.degraded = true;
        }))
        .unwrap();
    }
    patient.expect("warning", "index by_size of table things", "is not complete");
    patient.expect("warning", "index by_size of table things", "is degraded");
}

#[test]
fn a_store_in_use_is_named_with_who_has_it() {
    let patient = Patient::new();
    let store = EmbeddedStore::open(&patient.data(), Options::default()).unwrap();
    let output = try_run(&patient.data(), &["doctor"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(6), "{message}");
    assert!(message.contains(patient.data().to_str().unwrap()), "{message}");
    if cfg!(target_os = "linux") {
        assert!(message.contains(&format!("by process {}", std::process::id())), "{message}");
    }
    let rows = block_on(store.get("things", &["t01".into()], &ReadSpec::default())).unwrap();
    assert!(!rows[0].cells.is_empty());
    let output = try_run(&patient.dir.path().join("nowhere"), &["doctor"]);
    assert_eq!(output.status.code(), Some(4));
}
