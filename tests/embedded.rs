//! What only the embedded store promises: its directory, its change log, what survives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use sideindex::clock;
use sideindex::error::{Action, ErrorKind};
use sideindex::model::{Cell, CellKind, ChangeEvent, MAX_TIMESTAMP, Position, RowMutation};
use sideindex::store::embedded::{DurabilityMode, EmbeddedStore, Options};
use sideindex::store::{Durability, Read, ReadSpec, Scan, Store, TableDescriptor};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const TABLE: &str = "things";

fn open(directory: &Path) -> EmbeddedStore {
    EmbeddedStore::open(directory, Options::default()).unwrap()
}

/// A store with a logged table of family `c`, 3 versions.
fn create(directory: &Path) -> EmbeddedStore {
    let store = open(directory);
    block_on(store.create_table(&TableDescriptor::new(TABLE, &["c"], 3).with_change_log())).unwrap();
    store
}

fn put(row: impl Into<Bytes>, timestamp: i64, value: impl Into<Bytes>) -> RowMutation {
    RowMutation::new(row, vec![Cell::put("c", "q", timestamp, value)])
}

fn write(store: &EmbeddedStore, mutations: Vec<RowMutation>) {
    block_on(store.mutate(TABLE, mutations, Durability::Durable)).unwrap();
}

fn rows(store: &dyn Read) -> Vec<sideindex::model::Row> {
    block_on(async {
        let mut scanner = store.scan(TABLE, Scan::all()).await.unwrap();
        let mut rows = Vec::new();
        loop {
            let page = scanner.next_page().await.unwrap();
            rows.extend(page.rows);
            if page.done {
                return rows;
            }
        }
    })
}

fn read_log(store: &EmbeddedStore) -> Vec<ChangeEvent> {
    store.read_log(TABLE, 0, usize::MAX, usize::MAX).unwrap()
}

fn number(event: &ChangeEvent) -> u64 {
    match event.position {
        Position::Changelog { number } => number,
        ref other => panic!("a change-log record at {other}"),
    }
}

#[test]
fn reopening_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    block_on(store.create_table(&TableDescriptor::new("plain", &["x", "y"], 1))).unwrap();
    write(&store, vec![put("r", 1, "one"), put("r", 2, "two"), put("s", 1, "v")]);
    write(&store, vec![RowMutation::new("s", vec![Cell::delete(CellKind::DeleteFamily, "c", "", 5)])]);
    let before = (rows(&store), read_log(&store), block_on(store.list_tables()).unwrap());
    drop(store);

    let store = open(directory.path());
    assert_eq!((rows(&store), read_log(&store), block_on(store.list_tables()).unwrap()), before);
    assert_eq!(store.log_head(TABLE).unwrap(), 4);
    let plain = block_on(store.describe_table("plain")).unwrap();
    assert_eq!(plain, TableDescriptor::new("plain", &["x", "y"], 1));
    assert_eq!(store.log_head("plain").unwrap_err().kind(), ErrorKind::InvalidInput);
    write(&store, vec![put("t", 1, "v")]);
    assert_eq!(store.log_head(TABLE).unwrap(), 5);
}

#[test]
fn reopening_keeps_what_went_through_files() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { memtable_bytes: 64 << 10, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    block_on(store.create_table(&TableDescriptor::new(TABLE, &["c"], 3).with_change_log())).unwrap();
    let value = vec![b'v'; 500];
    for batch in 0..40 {
        write(&store, (0..50).map(|i| put(format!("{batch:03}-{i:03}"), 1, value.clone())).collect());
    }
    drop(store);
    let store = open(directory.path());
    assert_eq!(rows(&store).len(), 2_000);
    let numbers: Vec<u64> = read_log(&store).iter().map(number).collect();
    assert_eq!(numbers, (1..=2_000).collect::<Vec<u64>>());
}

#[test]
fn log_records_are_numbered_in_commit_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    let (writers, each) = (8, 60);
    let started = clock::now();
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let store = store.clone();
            scope.spawn(move || {
                for i in 0..each {
                    // Everybody writes the same cell, so the store's last word must be the log's last word.
                    let own = put(format!("writer {writer}"), i, i.to_string());
                    let shared = put("shared", 1, format!("{writer}:{i}"));
                    let durability = if i % 2 == 0 { Durability::Durable } else { Durability::Relaxed };
                    block_on(store.mutate(TABLE, vec![own, shared], durability)).unwrap();
                    if i % 16 == 0 {
                        let head = store.log_head(TABLE).unwrap();
                        let events = store.read_log(TABLE, 0, usize::MAX, usize::MAX).unwrap();
                        assert!(events.len() as u64 >= head, "a published record is missing");
                    }
                }
            });
        }
    });
    let events = read_log(&store);
    assert_eq!(events.len() as i64, writers * each * 2);
    assert!(events.iter().map(number).eq(1..=events.len() as u64));
    assert!(events.windows(2).all(|w| w[0].append_time <= w[1].append_time));
    assert!(events.iter().all(|e| e.append_time >= started && e.append_time <= clock::now()));

    let mut replayed: BTreeMap<Bytes, Bytes> = BTreeMap::new();
    for event in &events {
        replayed.insert(event.row.clone(), event.cells[0].value.clone());
    }
    let stored: BTreeMap<Bytes, Bytes> = rows(&store).into_iter().map(|r| (r.key, r.cells[0].value.clone())).collect();
    assert_eq!(replayed, stored);
    for writer in 0..writers {
        let row = Bytes::from(format!("writer {writer}"));
        let own: Vec<i64> = events.iter().filter(|e| e.row == row).map(|e| e.cells[0].timestamp).collect();
        assert_eq!(own, (0..each).collect::<Vec<i64>>(), "one writer's records out of its order");
    }
}

#[test]
fn log_records_are_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    let mutations = vec![
        RowMutation::new(
            b"\0\xff".as_slice(),
            vec![
                Cell::put("c", b"\0".as_slice(), 7, b"\0\x01".as_slice()),
                Cell::put("c", "", 0, ""),
                Cell::delete(CellKind::DeleteColumn, "c", "gone", 6),
                Cell::delete(CellKind::DeleteFamily, "c", "", 3),
            ],
        ),
        RowMutation::new("nothing", Vec::new()),
        put("r", MAX_TIMESTAMP, "v"),
    ];
    write(&store, mutations.clone());
    let logged: Vec<RowMutation> =
        read_log(&store).into_iter().map(|e| RowMutation { row: e.row, cells: e.cells }).collect();
    assert_eq!(logged, [mutations[0].clone(), mutations[2].clone()], "a mutation without cells is none");
}

#[test]
fn a_refused_call_is_not_logged() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    let refused = block_on(store.mutate(TABLE, vec![put("r", 1, "v"), put("r", -1, "v")], Durability::Durable));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(store.log_head(TABLE).unwrap(), 0);
}

#[test]
fn the_log_is_read_in_bounded_pieces() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    write(&store, (0..100).map(|i| put(format!("{i:03}"), 1, vec![b'v'; 1_000])).collect());
    let read = |after, records, bytes| {
        let events = store.read_log(TABLE, after, records, bytes).unwrap();
        events.iter().map(number).collect::<Vec<u64>>()
    };
    assert_eq!(read(0, 3, usize::MAX), [1, 2, 3]);
    assert_eq!(read(97, 10, usize::MAX), [98, 99, 100]);
    assert_eq!(read(10, 10, 0), [11], "one record at least, however large");
    assert_eq!(read(10, 10, 2_500), [11, 12, 13]);
    assert!(read(0, 0, usize::MAX).is_empty());
    assert!(read(100, 10, usize::MAX).is_empty());
    assert!(read(u64::MAX, 10, usize::MAX).is_empty());
}

#[test]
fn logs_of_tables_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for name in ["t", "ta", "t.a"] {
        block_on(store.create_table(&TableDescriptor::new(name, &["c"], 1).with_change_log())).unwrap();
    }
    for (name, count) in [("ta", 3), ("t", 2), ("t.a", 1)] {
        for i in 0..count {
            block_on(store.mutate(name, vec![put(format!("{name} {i}"), 1, "v")], Durability::Relaxed)).unwrap();
        }
    }
    drop(store);
    let store = open(directory.path());
    for (name, count) in [("ta", 3), ("t", 2), ("t.a", 1)] {
        assert_eq!(store.log_head(name).unwrap(), count);
        let events = store.read_log(name, 0, 10, usize::MAX).unwrap();
        assert_eq!(events.len() as u64, count);
        assert!(events.iter().all(|e| e.row.starts_with(format!("{name} ").as_bytes())));
    }
}

#[test]
fn log_beyond_waits_and_wakes() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    write(&store, vec![put("a", 1, "v")]);
    assert_eq!(block_on(store.log_beyond(TABLE, 0)).unwrap(), 1);
    assert!(store.log_beyond(TABLE, 1).now_or_never().is_none());
    let waiting = std::thread::spawn({
        let store = store.clone();
        move || block_on(store.log_beyond(TABLE, 2)).unwrap()
    });
    write(&store, vec![put("b", 1, "v")]);
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waiting.is_finished(), "woken for a record it was not waiting for");
    write(&store, vec![put("c", 1, "v")]);
    assert_eq!(waiting.join().unwrap(), 3);
    assert_eq!(block_on(store.log_beyond("none", 0)).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_dropped_write_leaves_the_log_whole() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    for i in 0..50 {
        // Polled once, then dropped: it may or may not happen, but never by half.
        let _ = store.mutate(TABLE, vec![put(format!("dropped {i}"), 1, "v")], Durability::Relaxed).now_or_never();
        write(&store, vec![put(format!("kept {i}"), 1, "v")]);
    }
    let events = read_log(&store);
    assert!(events.iter().map(number).eq(1..=events.len() as u64));
    let stored: Vec<Bytes> = rows(&store).into_iter().map(|r| r.key).collect();
    let mut logged: Vec<Bytes> = events.into_iter().map(|e| e.row).collect();
    logged.sort();
    assert_eq!(stored, logged);
}

#[test]
fn an_open_directory_is_busy() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    let error = EmbeddedStore::open(directory.path(), Options::default()).map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.action()), (ErrorKind::Busy, Action::BackOff));
    assert!(error.to_string().contains(&directory.path().display().to_string()), "{error}");

    // Whatever still reads keeps it open.
    let scanner = block_on(store.scan(TABLE, Scan::all())).unwrap();
    let snapshot = block_on(store.snapshot()).unwrap();
    drop(store);
    assert!(EmbeddedStore::open(directory.path(), Options::default()).is_err());
    drop(scanner);
    assert!(EmbeddedStore::open(directory.path(), Options::default()).is_err());
    drop(snapshot);
    open(directory.path());
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter.txt"), "dear").unwrap();
    let error = EmbeddedStore::open(directory.path(), Options::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("letter.txt"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

    let file = directory.path().join("letter.txt");
    assert!(EmbeddedStore::open(&file, Options::default()).is_err());
}

#[test]
fn an_unknown_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(create(directory.path()));
    let marker = directory.path().join("FORMAT");
    let known = fs::read_to_string(&marker).unwrap();
    for unknown in [known.replace('1', "2"), String::new(), "something else".to_owned()] {
        fs::write(&marker, &unknown).unwrap();
        let error = EmbeddedStore::open(directory.path(), Options::default()).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(known.trim()) && error.to_string().contains(unknown.trim()), "{error}");
    }
    fs::write(&marker, known).unwrap();
    assert_eq!(block_on(open(directory.path()).list_tables()).unwrap(), [TABLE]);
}

#[test]
fn an_interrupted_creation_is_taken_up_again() {
    for steps in 0..4 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        fs::write(path.join("LOCK"), "").unwrap();
        match steps {
            0 => {}
            1 => fs::write(path.join("FORMAT.new"), "sidei").unwrap(),
            _ => {
                fs::write(path.join("FORMAT"), "sideindex embedded store, format 1\n").unwrap();
                if steps == 3 {
                    fs::create_dir_all(path.join("db.new/keyspaces")).unwrap();
                    fs::write(path.join("db.new/0.jnl"), "").unwrap();
                }
            }
        }
        write(&create(path), vec![put("r", 1, "v")]);
        assert_eq!(rows(&open(path)).len(), 1, "after {steps} steps");
    }
}

#[test]
fn a_scan_sees_the_moment_it_was_opened() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    write(&store, (0..10).map(|i| put(format!("{i}"), 1, "v")).collect());
    let mut scanner = block_on(store.scan(TABLE, Scan { page_rows: 3, ..Scan::all() })).unwrap();
    write(&store, vec![put("05", 1, "v"), put("9", 2, "new")]);
    let mut found = 0;
    loop {
        let page = block_on(scanner.next_page()).unwrap();
        assert!(page.rows.iter().all(|r| r.cells[0].value == "v"));
        found += page.rows.len();
        if page.done {
            break;
        }
    }
    assert_eq!(found, 10);
}

#[test]
fn an_empty_qualifier_is_no_shelter_from_family_markers() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    let cells = vec![
        Cell::put("c", "", 3, "newer"),
        Cell::put("c", "", 2, "hidden"),
        Cell::put("c", "", 1, "hidden"),
        Cell::delete(CellKind::DeleteFamily, "c", "", 2),
    ];
    write(&store, vec![RowMutation::new("r", cells)]);
    let spec = ReadSpec { max_versions: 3, ..ReadSpec::default() };
    let row = block_on(store.get(TABLE, &["r".into()], &spec)).unwrap().remove(0);
    assert_eq!(row.cells, [Cell::put("c", "", 3, "newer")]);
}

#[test]
fn works_in_a_runtime_and_without_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(create(directory.path()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let writes = (0..200).map(|i| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                store.mutate(TABLE, vec![put(format!("{i}"), 1, "v")], Durability::Durable).await.unwrap();
            })
        });
        futures::future::try_join_all(writes.collect::<Vec<_>>()).await.unwrap();
    });
    write(&store, vec![put("last", 1, "v")]);
    assert_eq!(rows(&*store).len(), 201);
}

#[test]
fn a_writer_that_is_ahead_is_held_back() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: DurabilityMode::Os, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    block_on(store.create_table(&TableDescriptor::new(TABLE, &["c"], 1))).unwrap();
    // 40 writes of 8 MiB at once; no more than 64 MiB of them may be waiting, and all must get through.
    let writes =
        (0..40).map(|i| store.mutate(TABLE, vec![put(format!("{i:02}"), 1, vec![i; 8 << 20])], Durability::Relaxed));
    block_on(futures::future::try_join_all(writes)).unwrap();
    assert_eq!(rows(&store).len(), 40);
}

/// Set in a child process: the directory in which to write before it aborts.
const TORN_CHILD: &str = "SIDEINDEX_TEST_WRITE_AND_ABORT";

/// Bytes that don't compress.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

/// Not a test but the child of the next one: what is to survive, and after it what may be torn.
#[test]
fn child_that_writes_and_aborts() {
    let Ok(directory) = std::env::var(TORN_CHILD) else { return };
    let directory = Path::new(&directory);
    let store = create(directory);
    write(&store, (0..50).map(|i| put(format!("kept {i:02}"), 1, noise(i, 700))).collect());
    let journal = fs::read(directory.join("db/0.jnl")).unwrap();
    let synced = journal.iter().rposition(|b| *b != 0).unwrap() + 1;
    fs::write(directory.with_extension("synced"), synced.to_string()).unwrap();
    for call in 0..3 {
        let large = (0..4).map(|i| put(format!("torn {call} {i}"), 1, noise(call * 10 + i, 20_000))).collect();
        block_on(store.mutate(TABLE, large, Durability::Relaxed)).unwrap();
        let small = (0..20).map(|i| put(format!("torn {call} small {i:02}"), 1, noise(i, 300))).collect();
        block_on(store.mutate(TABLE, small, Durability::Relaxed)).unwrap();
    }
    std::process::abort();
}

/// A power failure in the middle of writing: of what was not synced, any pages may be missing.
#[test]
fn a_torn_journal_loses_no_more_than_its_tail() {
    let root = tempfile::tempdir().unwrap();
    let written = root.path().join("store");
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes_and_aborts"])
        .env(TORN_CHILD, &written)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success());
    let synced: usize = fs::read_to_string(root.path().join("store.synced")).unwrap().parse().unwrap();
    let journal = fs::read(written.join("db/0.jnl")).unwrap();
    let end = journal.iter().rposition(|b| *b != 0).unwrap() + 1;
    let pages: Vec<usize> = (synced.div_ceil(4_096)..=end / 4_096).collect();
    assert!(pages.len() > 50);

    let (mut cut, mut seen) = (0, BTreeMap::new());
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let missing = random.choose_multiple(pages.iter(), if seed % 2 == 0 { 1 } else { 8 });
        let mut torn = journal[..end].to_vec();
        torn.resize((end / 4_096 + 1) * 4_096, 0);
        for page in &missing {
            torn[*page * 4_096..(*page + 1) * 4_096].fill(0);
        }
        let copy = root.path().join(format!("copy {seed}"));
        copy_directory(&written, &copy);
        fs::write(copy.join("db/0.jnl"), torn).unwrap();

        let store = open(&copy);
        let keys: Vec<Bytes> = rows(&store).into_iter().map(|r| r.key).collect();
        assert_eq!(keys.iter().filter(|k| k.starts_with(b"kept")).count(), 50, "without pages {missing:?}");
        let logged: Vec<Bytes> = read_log(&store).into_iter().map(|e| e.row).collect();
        assert_eq!(logged.len(), keys.len(), "cells and log disagree without pages {missing:?}");
        assert!([50, 54, 74, 78, 98, 102].contains(&keys.len()), "half a call without pages {missing:?}: {keys:?}");
        *seen.entry(keys.len()).or_insert(0) += 1;
        cut += fs::read_dir(&copy).unwrap().filter(|e| e.as_ref().unwrap().path().extension().is_some()).count();

        // And it goes on from there.
        write(&store, vec![put("later", 1, "v")]);
        drop(store);
        let store = open(&copy);
        assert_eq!(rows(&store).len(), keys.len() + 1);
        assert_eq!(store.log_head(TABLE).unwrap(), keys.len() as u64 + 1);
        drop(store);
        fs::remove_dir_all(&copy).unwrap();
    }
    assert!(cut > 0 && seen.len() > 2, "no tear that fjall does not see itself: {cut} {seen:?}");
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &target);
        } else if !entry.file_name().to_string_lossy().ends_with(".jnl") {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A store whose logged table's change log may hold `log_bytes`.
fn create_bounded(directory: &Path, log_bytes: u64, log_wait: Duration) -> EmbeddedStore {
    let options = Options { durability: DurabilityMode::Os, log_bytes, log_wait, ..Options::default() };
    let store = EmbeddedStore::open(directory, options).unwrap();
    block_on(store.create_table(&TableDescriptor::new(TABLE, &["c"], 1).with_change_log())).unwrap();
    store
}

fn trim(store: &EmbeddedStore, upto: u64) -> u64 {
    block_on(store.trim_log(TABLE, upto)).unwrap()
}

#[test]
fn a_trimmed_log_says_so_and_survives_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    write(&store, (0..100).map(|i| put(format!("{i}"), 1, vec![b'v'; 100])).collect());
    let full = store.log_bytes(TABLE).unwrap();
    assert!(full > 100 * 100);
    assert_eq!(trim(&store, 30), 30);
    assert_eq!(trim(&store, 10), 30, "what is gone stays gone");
    let numbers = |after| store.read_log(TABLE, after, usize::MAX, usize::MAX).unwrap().iter().map(number).collect();
    let rest: Vec<u64> = numbers(30);
    assert_eq!(rest, (31..=100).collect::<Vec<u64>>());
    for after in [0, 29] {
        let error = store.read_log(TABLE, after, 10, usize::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("trimmed") && error.to_string().contains("anew"), "{error}");
    }
    let left = store.log_bytes(TABLE).unwrap();
    assert!(left * 100 / full >= 69 && left * 100 / full <= 71, "{left} of {full} bytes");

    // All of it: numbers go on all the same.
    assert_eq!(trim(&store, u64::MAX), 100);
    assert_eq!((store.log_bytes(TABLE).unwrap(), store.log_head(TABLE).unwrap()), (0, 100));
    drop(store);
    let store = open(directory.path());
    assert_eq!((store.log_bytes(TABLE).unwrap(), store.log_head(TABLE).unwrap()), (0, 100));
    assert!(store.read_log(TABLE, 100, 10, usize::MAX).unwrap().is_empty());
    write(&store, vec![put("next", 1, "v")]);
    assert_eq!(number(&store.read_log(TABLE, 100, 10, usize::MAX).unwrap()[0]), 101);
    assert_eq!(store.read_log(TABLE, 99, 10, usize::MAX).unwrap_err().kind(), ErrorKind::NotFound);
    let bytes = store.log_bytes(TABLE).unwrap();
    drop(store);
    assert_eq!(open(directory.path()).log_bytes(TABLE).unwrap(), bytes);
}

#[test]
fn trimming_is_bounded_and_stops_at_whoever_holds_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let store = create_bounded(directory.path(), u64::MAX, Duration::ZERO);
    write(&store, (0..30_000).map(|i| put(format!("{i}"), 1, "v")).collect());
    let hold = store.hold_log(TABLE, Some(25_000)).unwrap();
    assert_eq!(hold.after(), 25_000);
    let mut reader = store.hold_log(TABLE, Some(10)).unwrap();
    let first = trim(&store, 30_000);
    assert_eq!(first, 10);
    reader.advance(29_000);
    reader.advance(5);
    assert_eq!(reader.after(), 29_000, "what was let go of is not held again");
    let mut calls = 0;
    while trim(&store, 30_000) < 25_000 {
        calls += 1;
    }
    assert!(calls >= 1, "all of it in one call");
    assert_eq!(trim(&store, 30_000), 25_000);
    drop(hold);
    assert_eq!(trim(&store, 30_000), 29_000);
    assert_eq!(store.hold_log(TABLE, None).unwrap().after(), 30_000);
}

#[test]
fn a_full_log_refuses_writers_at_once_when_nobody_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = create_bounded(directory.path(), 20_000, Duration::from_secs(3_600));
    let value = vec![b'v'; 1_000];
    let mut written = 0;
    let error = loop {
        let mutation = put(format!("{written:03}"), 1, value.clone());
        match block_on(store.mutate(TABLE, vec![mutation], Durability::Durable)) {
            Ok(()) => written += 1,
            Err(e) => break e,
        }
    };
    assert_eq!((error.kind(), error.action()), (ErrorKind::Busy, Action::BackOff));
    assert!(error.to_string().contains("apply") && error.to_string().contains(TABLE), "{error}");
    assert!((15..20).contains(&written), "{written} of about 18 fit");
    assert_eq!((rows(&store).len(), store.log_head(TABLE).unwrap()), (written, written as u64), "refused in part");
    let check = sideindex::store::ColumnCheck { family: "c".into(), qualifier: "q".into(), expected: None };
    let checked = block_on(store.check_and_mutate(TABLE, &check, put("new", 1, value.clone())));
    assert_eq!(checked.unwrap_err().kind(), ErrorKind::Busy);

    // The room is known after reopening, and trimming makes some.
    drop(store);
    let options = Options { log_bytes: 20_000, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    assert!(block_on(store.mutate(TABLE, vec![put("x", 1, value.clone())], Durability::Durable)).is_err());
    trim(&store, 5);
    write(&store, vec![put("x", 1, value)]);
    // What alone is larger than the limit can be written when the log is empty.
    trim(&store, u64::MAX);
    write(&store, vec![put("large", 1, vec![b'v'; 50_000])]);
    assert!(block_on(store.mutate(TABLE, vec![put("y", 1, "v")], Durability::Durable)).is_err());
}

#[test]
fn a_full_log_makes_writers_wait_for_its_reader() {
    let directory = tempfile::tempdir().unwrap();
    let store = create_bounded(directory.path(), 20_000, Duration::from_secs(3_600));
    let mut hold = store.hold_log(TABLE, Some(0)).unwrap();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    (0..100).for_each(|i| write(store, vec![put(format!("{writer}-{i}"), 1, vec![b'v'; 1_000])]));
                })
            })
            .collect();
        let mut read = 0;
        while read < 300 {
            let events = store.read_log(TABLE, read, 7, usize::MAX).unwrap();
            assert!(store.log_bytes(TABLE).unwrap() <= 21_000, "{} bytes", store.log_bytes(TABLE).unwrap());
            read += events.len() as u64;
            hold.advance(read);
            assert_eq!(trim(&store, read), read);
        }
        writers.into_iter().for_each(|w| w.join().unwrap());
    });
    assert_eq!(rows(&store).len(), 300);
}

#[test]
fn a_writer_waits_no_longer_than_it_may_nor_for_a_reader_that_has_gone() {
    let directory = tempfile::tempdir().unwrap();
    let store = create_bounded(directory.path(), 1_000, Duration::from_millis(30));
    let full = || block_on(store.mutate(TABLE, vec![put("r", 1, vec![b'v'; 900])], Durability::Durable));
    full().unwrap();
    let hold = store.hold_log(TABLE, Some(0)).unwrap();
    let error = full().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("30ms"), "{error}");
    drop(store);
    drop(hold);

    let directory = tempfile::tempdir().unwrap();
    let store = create_bounded(directory.path(), 1_000, Duration::from_secs(3_600));
    write(&store, vec![put("r", 1, vec![b'v'; 900])]);
    let hold = store.hold_log(TABLE, Some(0)).unwrap();
    let waiting = std::thread::spawn({
        let store = store.clone();
        move || block_on(store.mutate(TABLE, vec![put("r", 2, vec![b'v'; 900])], Durability::Durable))
    });
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waiting.is_finished());
    drop(hold);
    assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(store.log_head(TABLE).unwrap(), 1);
}

/// Everything stored of the table, as `row family:qualifier@timestamp`.
fn stored(store: &EmbeddedStore) -> Vec<String> {
    let spec = ReadSpec { raw: true, ..ReadSpec::default() };
    let mut scanner = block_on(store.scan(TABLE, Scan { spec, page_rows: usize::MAX, ..Scan::all() })).unwrap();
    let rows = block_on(scanner.next_page()).unwrap().rows;
    let show = |row: &sideindex::model::Row| {
        let key = row.key.escape_ascii().to_string();
        let cells = row.cells.iter();
        cells.map(|c| format!("{key} {}@{} {:?}", c.qualifier.escape_ascii(), c.timestamp, c.kind)).collect::<Vec<_>>()
    };
    rows.iter().flat_map(show).collect()
}

#[test]
fn compaction_removes_what_no_read_shows_and_gives_space_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    block_on(store.create_table(&TableDescriptor::new("other", &["c"], 1))).unwrap();
    // Five versions where three are kept, a deleted column, a deleted row.
    write(&store, (1..=5).map(|t| put("versions", t, noise(t as u64, 50_000))).collect());
    write(&store, vec![put("column", 1, noise(9, 50_000)), put("row", 1, noise(8, 50_000))]);
    let delete = |row: &'static str, kind, t| RowMutation::new(row, vec![Cell::delete(kind, "c", "q", t)]);
    write(&store, vec![delete("column", CellKind::DeleteColumn, 7), delete("row", CellKind::DeleteFamily, 7)]);
    block_on(store.mutate("other", vec![delete("x", CellKind::DeleteColumn, 1)], Durability::Relaxed)).unwrap();
    let before = rows(&store);

    let done = block_on(store.compact(Some(TABLE))).unwrap();
    assert_eq!((done.rows, done.cells), (3, 2 + 2 + 2));
    assert_eq!(stored(&store), ["versions q@5 Put", "versions q@4 Put", "versions q@3 Put"]);
    assert_eq!(rows(&store), before);
    assert!(done.bytes_before > 7 * 50_000 && done.bytes_after < 4 * 50_000, "{done:?}");
    assert_eq!(store.log_head(TABLE).unwrap(), 9, "a compaction is no change");

    // As in HBase: what hid it is gone.
    write(&store, vec![put("row", 6, "late")]);
    assert_eq!(rows(&store).iter().filter(|r| r.key == "row").count(), 1);

    let again = block_on(store.compact(None)).unwrap();
    assert_eq!((again.rows, again.cells), (2 + 1, 1), "all tables");
    assert_eq!(block_on(store.compact(Some("none"))).unwrap_err().kind(), ErrorKind::NotFound);
    let kept = stored(&store);
    drop(store);
    assert_eq!(stored(&open(directory.path())), kept);
}

#[test]
fn compaction_beside_readers_and_writers() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: DurabilityMode::Os, memtable_bytes: 64 << 10, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    block_on(store.create_table(&TableDescriptor::new(TABLE, &["c"], 2))).unwrap();
    write(&store, (0..500).map(|i| put(format!("old {i}"), 1, "v")).collect());
    let gone = |row: String, t| RowMutation::new(row, vec![Cell::delete(CellKind::DeleteFamily, "c", "", t)]);
    write(&store, (0..500).step_by(2).map(|i| gone(format!("old {i}"), 1)).collect());
    let snapshot = block_on(store.snapshot()).unwrap();
    let seen = rows(&*snapshot);
    assert_eq!(seen.len(), 250);
    let (writers, each) = (3, 400);
    std::thread::scope(|scope| {
        let working: Vec<_> = (0..writers)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    for t in 1..=each {
                        // Rows come and go; each has many versions and markers on the way.
                        let row = format!("{writer}-{}", t % 7);
                        let change = if t % 3 == 0 { gone(row.clone(), t) } else { put(row.clone(), t, t.to_string()) };
                        block_on(store.mutate(TABLE, vec![change], Durability::Relaxed)).unwrap();
                        let now = block_on(store.get(TABLE, &[row.into()], &ReadSpec::default())).unwrap().remove(0);
                        let shown: Vec<_> = now.cells.iter().map(|c| c.timestamp).collect();
                        assert_eq!(shown, if t % 3 == 0 { vec![] } else { vec![t] });
                    }
                })
            })
            .collect();
        let mut compactions = 0;
        while compactions < 3 || working.iter().any(|w| !w.is_finished()) {
            block_on(store.compact(Some(TABLE))).unwrap();
            compactions += 1;
        }
    });
    block_on(store.compact(Some(TABLE))).unwrap();
    assert_eq!(rows(&*snapshot), seen, "a snapshot has changed");
    let mut expected = BTreeMap::new();
    for t in 1..=each {
        expected.insert(t % 7, t);
    }
    let live = expected.values().filter(|t| *t % 3 != 0).count() * writers as usize + 250;
    assert_eq!(rows(&store).len(), live);
    assert!(stored(&store).iter().all(|cell| cell.ends_with("Put")));
    let last = rows(&store).into_iter().filter(|r| r.key.starts_with(b"0-"));
    assert!(last.map(|r| r.cells[0].timestamp).all(|t| expected.values().any(|e| *e == t)));
}

#[test]
fn a_compaction_that_nobody_waits_for_ends() {
    let directory = tempfile::tempdir().unwrap();
    let store = create(directory.path());
    write(&store, (0..100).map(|i| put(format!("{i}"), 1, "v")).collect());
    assert!(store.compact(None).now_or_never().is_none());
    assert_eq!(rows(&store).len(), 100);
    // The directory can be opened again once it has ended.
    drop(store);
    while EmbeddedStore::open(directory.path(), Options::default()).is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Set in a child process: the directory in which to delete and compact until killed.
const COMPACTING_CHILD: &str = "SIDEINDEX_TEST_COMPACT_UNTIL_KILLED";

/// Not a test but the child of the next one.
#[test]
fn child_that_compacts_until_killed() {
    let Ok(directory) = std::env::var(COMPACTING_CHILD) else { return };
    let store = create(Path::new(&directory));
    println!("\nready");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0.. {
                let row = |kind: &str| format!("{kind}-{i}");
                let puts = |t| vec![put(row("dead"), t, vec![b'v'; 300]), put(row("live"), t, vec![b'v'; 300])];
                write(&store, puts(1));
                write(&store, puts(2));
                let marker = Cell::delete(CellKind::DeleteFamily, "c", "", 3);
                write(&store, vec![RowMutation::new(row("dead"), vec![marker])]);
                println!("{i}");
            }
        });
        loop {
            block_on(store.compact(Some(TABLE))).unwrap();
        }
    });
}

#[test]
fn a_killed_compaction_brings_nothing_back() {
    for after in [5, 60, 250] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_compacts_until_killed", "--nocapture", "--test-threads=1"])
            .env(COMPACTING_CHILD, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut rounds = lines.skip_while(|line| line != "ready").skip(1).fuse();
        let done = rounds.by_ref().take(after).count();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(done, after, "the child ended by itself");

        let store = open(directory.path());
        let check = |store: &EmbeddedStore| {
            let keys = |kind: &str| (0..after).map(|i| format!("{kind}-{i}").into()).collect::<Vec<Bytes>>();
            let dead = block_on(store.get(TABLE, &keys("dead"), &ReadSpec::default())).unwrap();
            assert!(dead.iter().all(|r| r.cells.is_empty()), "a deleted row is back");
            let live = block_on(store.get(TABLE, &keys("live"), &ReadSpec::default())).unwrap();
            assert!(live.iter().all(|r| r.cells[0].timestamp == 2), "a row is lost");
        };
        check(&store);
        block_on(store.compact(None)).unwrap();
        check(&store);
    }
}

/// Set in a child process: the directory in which to write until killed.
const CHILD: &str = "SIDEINDEX_TEST_WRITE_UNTIL_KILLED";

/// Not a test but the child of the next one, which runs this binary again.
#[test]
fn child_that_writes_until_killed() {
    let Ok(directory) = std::env::var(CHILD) else { return };
    let store = Arc::new(create(Path::new(&directory)));
    println!("\nready");
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let store = Arc::clone(&store);
            scope.spawn(move || {
                for i in 0.. {
                    let name = format!("{writer}-{i}");
                    let mutations = (0..5).map(|k| put(format!("{name}-{k}"), 1, vec![b'v'; 300])).collect();
                    block_on(store.mutate(TABLE, mutations, Durability::Durable)).unwrap();
                    println!("{name}");
                }
            });
        }
    });
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    for after in [1, 200, 1_000] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_writes_until_killed", "--nocapture", "--test-threads=1"])
            .env(CHILD, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut acknowledged = lines.skip_while(|line| line != "ready").skip(1).fuse();
        let mut names: Vec<String> = acknowledged.by_ref().take(after).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        // A line that was cut short names nothing; what is whole was acknowledged.
        names.extend(acknowledged.filter(|l| l.split('-').count() == 2));
        names.pop();
        assert!(names.len() + 1 >= after, "the child ended by itself");

        let store = open(directory.path());
        let keys: Vec<Bytes> = names.iter().flat_map(|n| (0..5).map(move |k| format!("{n}-{k}").into())).collect();
        let found = block_on(store.get(TABLE, &keys, &ReadSpec::default())).unwrap();
        let lost: Vec<_> = found.iter().filter(|r| r.cells.len() != 1 || r.cells[0].value.len() != 300).collect();
        assert!(lost.is_empty(), "{} of {} rows lost", lost.len(), keys.len());
        // The log tells exactly of what is there, without a hole.
        let events = read_log(&store);
        assert!(events.iter().map(number).eq(1..=events.len() as u64));
        let mut logged: Vec<Bytes> = events.into_iter().map(|e| e.row).collect();
        logged.sort();
        assert_eq!(logged, rows(&store).into_iter().map(|r| r.key).collect::<Vec<_>>());
    }
}
