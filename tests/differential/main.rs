//! The embedded store against a real HBase: random histories, applied to both, read alike.
//!
//! Many histories share a table, each under row keys of its own. A table goes through four stages, with writes and reads in
//! each: in memory, after a flush, after a major compaction of both, and written on after it.
//!
//! `SIDEINDEX_HBASE_HISTORIES=100000 cargo test --release --test differential` runs longer; `SIDEINDEX_SEED=17` begins with
//! another seed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "../support/cluster.rs"]
#[allow(dead_code, reason = "not all of it is used by each test")]
mod cluster;
mod history;
mod known;
#[path = "../support/random.rs"]
#[allow(dead_code, reason = "not all of it is used by each test")]
mod random;
mod reads;
#[path = "../support/setting.rs"]
mod setting;
mod world;

use setting::setting;
use world::World;

/// Histories that share a table.
const TOGETHER: u64 = 250;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn embedded_and_hbase_read_alike() {
    let histories = setting("SIDEINDEX_HBASE_HISTORIES").unwrap_or(2_000);
    let first = setting("SIDEINDEX_SEED").unwrap_or(0);
    runtime().block_on(async {
        let mut compared = 0;
        for start in (first..first + histories).step_by(TOGETHER as usize) {
            let seeds = start..(start + TOGETHER).min(first + histories);
            compared += World::open().await.run(seeds).await.unwrap_or_else(|different| panic!("{different}"));
        }
        println!("{histories} histories, {compared} reads compared");
    });
}

/// A test of the test: an embedded store that forgets one kind of marker is noticed.
#[test]
fn a_wrong_rule_is_noticed() {
    use sideindex::model::CellKind;
    for kind in [CellKind::DeleteVersion, CellKind::DeleteColumn, CellKind::DeleteFamily, CellKind::DeleteFamilyVersion]
    {
        let outcome = runtime().block_on(async { World::open().await.forgetting(kind).run(0..TOGETHER).await });
        assert!(outcome.is_err(), "{kind:?} was ignored, and nothing noticed");
    }
}
