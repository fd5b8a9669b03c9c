//! Parts that are killed, and regions that move, while they are used: nothing is lost, nothing wrong, and metrics tell of it.

use crate::bed::Bed;
use crate::cluster::Cluster;
use crate::support::{Oracle, PACKAGES};
use bytes::Bytes;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use sideindex::model::{Cell, RowMutation};
use sideindex::store::thrift2::Thrift2Store;
use sideindex::store::{
    Durability, Gateway, Layered, Meter, Read, Retry, Scan, Scanner, Store, TableDescriptor, Transport,
};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All in one cluster, one after the other: starting one takes longer than most of it.
#[test]
fn killed_parts() {
    let cluster = Cluster::own("faults");
    loads_go_on_through_killed_parts(&cluster);
    a_killed_load_is_gone_on_with(&cluster);
    scans_go_on_through_killed_parts_splits_and_compactions(&cluster);
    calls_go_to_the_gateway_that_is_up(&cluster);
}

fn load(bed: &Bed) -> Child {
    let mut command = bed.command(&["load", &bed.table, PACKAGES, "--quiet"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Base and index against each other, and the base against the file.
fn check(bed: &Bed) {
    let status = bed.run(&["index", "status", &bed.table]);
    assert!(status.contains("up to date") && status.contains("0 in quarantine"), "{status}");
    let _inside = bed.runtime.enter();
    let oracle = Oracle::read(bed.store(), &bed.table);
    let (missing, extra) = oracle.compare();
    assert!(missing.is_empty(), "missing: {missing:?}");
    assert!(extra.is_empty(), "not true: {extra:?}");
    assert_eq!(oracle.rows.len(), 63_436);
}

fn loads_go_on_through_killed_parts(cluster: &Cluster) {
    let bed = Bed::new(cluster, "killed_parts");
    bed.run(&["table", "apply"]);
    let child = load(&bed);
    std::thread::sleep(Duration::from_secs(2));
    cluster.kill("thrift2");
    cluster.start("thrift2");
    std::thread::sleep(Duration::from_secs(1));
    for table in [bed.table.clone(), format!("sx_{}_state", bed.table)] {
        cluster.ask(&format!("split {table} 6c69626d"));
        cluster.ask(&format!("compact {table}"));
    }
    cluster.kill("hbase");
    cluster.start("hbase");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check(&bed);
}

fn a_killed_load_is_gone_on_with(cluster: &Cluster) {
    let bed = Bed::new(cluster, "killed_load");
    bed.run(&["table", "apply"]);
    let mut left_over = 0;
    for kill in 1..=4 {
        let mut child = load(&bed);
        std::thread::sleep(Duration::from_millis(700 * kill));
        child.kill().unwrap();
        child.wait().unwrap();
        let status = bed.run(&["index", "status", &bed.table, "--format", "json"]);
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        left_over += status["waiting"].as_u64().unwrap();
        if kill % 2 == 0 {
            // What was begun is ended, without the file.
            bed.run(&["apply", &bed.table]);
            let _inside = bed.runtime.enter();
            let (missing, extra) = Oracle::read(bed.store(), &bed.table).compare();
            assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?}");
        }
    }
    assert!(left_over > 0, "no load was killed between base and index");
    let output = load(&bed).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check(&bed);
}

const ROWS: u32 = 20_000;

fn key(number: u32) -> Bytes {
    number.to_be_bytes().to_vec().into()
}

async fn filled(store: &dyn Store, table: &str) {
    store.create_table(&TableDescriptor::new(table, &["f"], 1)).await.unwrap();
    let row = |n| RowMutation::new(key(n), vec![Cell::put("f", "q", 1, format!("value of {n}"))]);
    for start in (0..ROWS).step_by(2_000) {
        store.mutate(table, (start..start + 2_000).map(row).collect(), Durability::Durable).await.unwrap();
    }
}

async fn rest(mut scanner: Box<dyn Scanner>) -> Vec<Bytes> {
    let mut keys = Vec::new();
    loop {
        let page = scanner.next_page().await.unwrap();
        keys.extend(page.rows.into_iter().map(|r| r.key));
        if page.done {
            return keys;
        }
    }
}

/// What happens to the cluster.
type Trouble = fn(&Cluster);

/// Each kind of trouble in the middle of two scans, one each way: all rows, each once, in order.
fn scans_go_on_through_killed_parts_splits_and_compactions(cluster: &Cluster) {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let gateway = Gateway::new(cluster.address("THRIFT2"));
        let store = Layered::new(Arc::new(Thrift2Store::connect(vec![gateway]).await.unwrap()), Meter::new("thrift2"));
        let store = Layered::new(Arc::new(store), Retry::default());
        filled(&store, "scanned").await;
        let troubles: [(&str, Trouble); 4] = [
            ("split", |c| drop(c.ask("split scanned 00001388"))),
            ("flush and compaction", |c| drop((c.ask("flush scanned"), c.ask("compact scanned")))),
            ("gateway", |c| (c.kill("thrift2"), c.start("thrift2")).0),
            ("HBase", |c| (c.kill("hbase"), c.start("hbase")).0),
        ];
        for (name, trouble) in troubles {
            let scan = Scan { page_rows: 700, ..Scan::all() };
            let mut up = store.scan("scanned", scan.clone()).await.unwrap();
            let mut down = store.scan("scanned", Scan { reversed: true, ..scan }).await.unwrap();
            let first = |page: sideindex::store::Page| page.rows.into_iter().map(|r| r.key).collect::<Vec<_>>();
            let (mut rising, mut falling) = (Vec::new(), Vec::new());
            // Far enough in for a scanner at the gateway.
            for _ in 0..3 {
                rising.extend(first(up.next_page().await.unwrap()));
                falling.extend(first(down.next_page().await.unwrap()));
            }
            trouble(cluster);
            let resumed = Instant::now();
            rising.extend(rest(up).await);
            falling.extend(rest(down).await);
            println!("{name}: scans of {ROWS} rows ended {:?} after it", resumed.elapsed());
            assert!(rising.iter().cloned().eq((0..ROWS).map(key)), "{name}: {} rows upwards", rising.len());
            assert!(falling.iter().cloned().eq((0..ROWS).rev().map(key)), "{name}: {} rows downwards", falling.len());
        }
    });
    let mut told = std::collections::BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        if let DebugValue::Counter(count) = value {
            *told.entry(key.key().name().to_owned()).or_insert(0) += count;
        }
    }
    for name in
        ["sideindex_store_retries_total", "sideindex_gateway_failures_total", "sideindex_store_operations_total"]
    {
        assert!(told.get(name).is_some_and(|count| *count > 0), "{name} in {told:?}");
    }
}

/// Two gateways of one cluster: with one of them dead, calls end without a wait worth noticing, and use it again later.
fn calls_go_to_the_gateway_that_is_up(cluster: &Cluster) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let framed = Gateway { transport: Transport::Framed, ..Gateway::new(cluster.address("THRIFT2_FRAMED")) };
        let gateways = vec![Gateway::new(cluster.address("THRIFT2")), framed];
        let connected = Thrift2Store::connect(gateways.clone()).await.unwrap();
        let store = Layered::new(Arc::new(connected), Retry::default());
        let read = |n: u32| {
            let store = &store;
            async move {
                let rows = store.get("scanned", &[key(n % ROWS)], &Default::default()).await.unwrap();
                assert_eq!(rows[0].cells.len(), 1);
            }
        };
        for n in 0..20 {
            read(n).await;
        }
        cluster.kill("thrift2");
        for n in 0..200 {
            read(n).await;
        }
        // One that is down from the start is left out, too.
        let late = Layered::new(Arc::new(Thrift2Store::connect(gateways).await.unwrap()), Retry::default());
        assert!(late.get("scanned", &[key(1)], &Default::default()).await.is_ok());
        cluster.start("thrift2");
        cluster.kill("thrift2-framed");
        for n in 0..200 {
            read(n).await;
        }
        cluster.start("thrift2-framed");
    });
}
