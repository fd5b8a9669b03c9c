//! HBase's gateways beside its Java client, on the HBase that `tests/cluster up` has started: `cargo bench --bench gateways`.
//!
//! Each line is one client; ratios are to the Java client of the same run. After it, a fuzzy scan three ways.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a benchmark stops by panicking"
)]

#[path = "../tests/support/cluster.rs"]
#[allow(dead_code, reason = "only addresses and requests are used")]
mod cluster;

use bytes::Bytes;
use cluster::{address, ask};
use futures::stream::{self, StreamExt, TryStreamExt};
use sideindex::model::{Cell, RowMutation};
use sideindex::store::thrift1::Thrift1Store;
use sideindex::store::thrift2::Thrift2Store;
use sideindex::store::{Durability, Filter, FuzzyKey, Gateway, ReadSpec, Scan, Store, TableDescriptor, count_rows};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

const ROWS: usize = 50_000;
const BATCH: usize = 1_000;
const WRITERS: usize = 4;
const GETS: usize = 2_000;
const MULTI: usize = 100;

/// Rows of the fuzzy scan: users × actions.
const USERS: u32 = 10_000;
const ACTIONS: u32 = 100;

/// Puts and scanned rows a second, milliseconds of a get (median and 99th percentile) and of a multi-get (median).
struct Figures {
    puts: f64,
    get: f64,
    get_99: f64,
    multi: f64,
    scan: f64,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let thrift2: Arc<dyn Store> =
            Arc::new(Thrift2Store::connect(vec![Gateway::new(address("THRIFT2"))]).await.unwrap());
        let thrift1: Arc<dyn Store> =
            Arc::new(Thrift1Store::connect(vec![Gateway::new(address("THRIFT1"))]).await.unwrap());
        for (name, store) in [("thrift2", &thrift2), ("thrift1", &thrift1)] {
            for (batch, writers) in [(100, 1), (1_000, 1), (1_000, 4), (1_000, 8), (5_000, 4)] {
                let table = fresh(&**store).await;
                let rate = load(store, &table, batch, writers).await;
                println!("{name:8} puts in batches of {batch:5}, {writers} at once: {rate:8.0} rows/s");
                ask(&format!("drop {table}"));
            }
        }
        let table = fresh(&*thrift2).await;
        let java = java(&table);
        ask(&format!("drop {table}"));
        println!("{:10}{:>18}{:>16}{:>9}{:>20}{:>18}", "", "puts/s", "get p50", "p99", "100 gets p50", "scan rows/s");
        print("Java", &java, &java);
        for (name, store) in [("thrift2", &thrift2), ("thrift1", &thrift1)] {
            let table = fresh(&**store).await;
            print(name, &figures(store, &table).await, &java);
            ask(&format!("drop {table}"));
        }
        fuzzy(&thrift2, &thrift1).await;
    });
}

fn print(name: &str, f: &Figures, java: &Figures) {
    println!(
        "{name:10}{:>9.0} {:>6.2} ×{:>7.2} ms {:>4.2} ×{:>6.2} ms{:>10.2} ms {:>4.2} ×{:>10.0} {:>5.2} ×",
        f.puts,
        f.puts / java.puts,
        f.get,
        f.get / java.get,
        f.get_99,
        f.multi,
        f.multi / java.multi,
        f.scan,
        f.scan / java.scan
    );
}

async fn fresh(store: &dyn Store) -> String {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let table = format!("bench_{}_{number}", std::process::id());
    store.create_table(&TableDescriptor::new(&table, &["a"], 1)).await.unwrap();
    table
}

fn key(row: usize) -> Bytes {
    format!("{row:08}").into()
}

/// Rows a second.
async fn load(store: &Arc<dyn Store>, table: &str, batch: usize, writers: usize) -> f64 {
    let started = Instant::now();
    let put = |row: usize| RowMutation::new(key(row), vec![Cell::put("a", "q", 1, vec![b'v'; 100])]);
    let batches = (0..ROWS).step_by(batch).map(|from| {
        let mutations = (from..ROWS.min(from + batch)).map(put).collect();
        store.mutate(table, mutations, Durability::Relaxed)
    });
    stream::iter(batches).buffer_unordered(writers).try_collect::<Vec<()>>().await.unwrap();
    ROWS as f64 / started.elapsed().as_secs_f64()
}

async fn figures(store: &Arc<dyn Store>, table: &str) -> Figures {
    let puts = load(store, table, BATCH, WRITERS).await;
    let spec = ReadSpec::default();
    let mut times = Vec::with_capacity(GETS);
    for i in 0..GETS {
        let started = Instant::now();
        let rows = store.get(table, &[key(i * 7_919 % ROWS)], &spec).await.unwrap();
        times.push(started.elapsed().as_secs_f64() * 1e3);
        assert_eq!(rows[0].cells.len(), 1);
    }
    times.sort_by(f64::total_cmp);
    let mut many = Vec::with_capacity(GETS / 10);
    for i in 0..GETS / 10 {
        let keys: Vec<Bytes> = (0..MULTI).map(|j| key((i * 104_729 + j * 7_919) % ROWS)).collect();
        let started = Instant::now();
        let rows = store.get(table, &keys, &spec).await.unwrap();
        many.push(started.elapsed().as_secs_f64() * 1e3);
        assert!(rows.iter().all(|r| r.cells.len() == 1));
    }
    many.sort_by(f64::total_cmp);
    let started = Instant::now();
    let seen = count_rows(&**store, table, Scan::all()).await.unwrap();
    assert_eq!(seen, ROWS as u64);
    let scan = ROWS as f64 / started.elapsed().as_secs_f64();
    Figures { puts, get: times[GETS / 2], get_99: times[GETS * 99 / 100], multi: many[GETS / 20], scan }
}

fn java(table: &str) -> Figures {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/target/cluster");
    let run = Command::new("java")
        .arg("-cp")
        .arg(format!("{root}/main/conf:{root}/lib/*"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/JavaClient.java"))
        .arg(table)
        .args([ROWS, BATCH, WRITERS, GETS, MULTI].map(|n| n.to_string()))
        .output()
        .expect("a JDK's java on the PATH");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = String::from_utf8(run.stdout).unwrap();
    let numbers: Vec<f64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let [puts, get, get_99, multi, scan] = numbers[..] else { panic!("expected five numbers, found {text}") };
    Figures { puts, get, get_99, multi, scan }
}

/// One action of every user: filtered by the server, leapt over from here, and by a full scan.
async fn fuzzy(thrift2: &Arc<dyn Store>, thrift1: &Arc<dyn Store>) {
    let table = fresh(&**thrift2).await;
    let row = |user: u32, action: u32| Bytes::from([user.to_be_bytes(), action.to_be_bytes()].concat());
    let put = |row| RowMutation::new(row, vec![Cell::put("a", "q", 1, "v")]);
    let batches = (0..USERS).step_by(20).map(|from| {
        let rows = (from..from + 20).flat_map(|user| (0..ACTIONS).map(move |action| row(user, action)));
        thrift2.mutate(&table, rows.map(put).collect(), Durability::Relaxed)
    });
    stream::iter(batches).buffer_unordered(WRITERS).try_collect::<Vec<()>>().await.unwrap();
    ask(&format!("flush {table}"));
    let mask = [[FuzzyKey::ANY; 4], [FuzzyKey::FIXED; 4]].concat();
    let pattern = [[0; 4], 42_u32.to_be_bytes()].concat();
    let filter = Filter::Fuzzy(vec![FuzzyKey::new(&pattern, mask).unwrap()]);
    let filtered = || Scan { spec: ReadSpec { filter: Some(filter.clone()), ..ReadSpec::default() }, ..Scan::all() };
    for (name, store, scan, expected) in [
        ("FuzzyRowFilter in the server, thrift2", thrift2, filtered(), USERS),
        ("leaps from this side, thrift1", thrift1, filtered(), USERS),
        ("full scan, thrift2", thrift2, Scan::all(), USERS * ACTIONS),
    ] {
        let started = Instant::now();
        let found = count_rows(&**store, &table, scan).await.unwrap();
        println!("{name:40} {found:8} rows of {} in {:6.2} s", USERS * ACTIONS, started.elapsed().as_secs_f64());
        assert_eq!(found, u64::from(expected));
    }
    ask(&format!("drop {table}"));
}
