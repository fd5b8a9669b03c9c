//! The promises of the maintainer (DESIGN.md §2) on random histories, crashes and interleavings: the real maintainer on the
//! embedded store, judged by an oracle of its own.
//!
//! Fewer of them run on a real HBase: `SIDEINDEX_HBASE_HISTORIES` a mode.
//!
//! `SIDEINDEX_HISTORIES=200000 cargo test --release --test model` runs longer; `SIDEINDEX_SEED=17` replays one history of
//! every mode, and both together run that many from this seed on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod base;
#[path = "../support/cluster.rs"]
#[allow(dead_code, reason = "nothing here asks the control port")]
mod cluster;
mod history;
#[path = "../support/setting.rs"]
mod setting;
mod stepped;

use history::{Mode, Verdict, World};
use setting::setting;
use sideindex::index::Rules;
use sideindex::store::thrift2::Thrift2Store;
use sideindex::store::{Gateway, Layered, Retry};
use std::sync::Arc;

/// Runs the histories of a mode; 0 missing and 0 wrong under `verified`, or the test fails with a seed.
fn prove(mode: Mode) {
    prove_on(&World::open(), mode, "SIDEINDEX_HISTORIES", 3_000);
}

fn prove_on(world: &World, mode: Mode, setting_of_count: &str, usual: u64) {
    let first = setting("SIDEINDEX_SEED");
    let count = setting(setting_of_count).unwrap_or(if first.is_some() { 1 } else { usual });
    let seeds = first.unwrap_or(0)..first.unwrap_or(0) + count;
    let (mut outdated, mut undisputed, mut stale) = (0, 0, 0);
    for seed in seeds {
        let verdict = world.run(mode, seed, Rules::default());
        assert!(
            verdict.missing.is_empty() && verdict.wrong.is_empty(),
            "{mode:?}, SIDEINDEX_SEED={seed}: {verdict:#?}"
        );
        outdated += u64::from(!verdict.outdated.is_empty());
        stale += u64::from(verdict.stale > 0);
        undisputed += u64::from(verdict.outdated.iter().any(|(_, disputed)| !disputed));
    }
    println!(
        "{mode:?}: {count} histories, with outdated entries {outdated}, undisputed {undisputed}; with stale covered values {stale}"
    );
}

/// The same maintainer, the same judge, every operation on a real HBase.
fn prove_on_hbase(mode: Mode) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = runtime.block_on(Thrift2Store::connect(vec![Gateway::new(cluster::address("THRIFT2"))])).unwrap();
    let _inside = runtime.enter();
    let store = Arc::new(Layered::new(Arc::new(store), Retry::default()));
    let prefix = format!("model_{}_{mode:?}_", std::process::id());
    prove_on(&World::on(store, &prefix, Box::new(())), mode, "SIDEINDEX_HBASE_HISTORIES", 40);
}

mod on_hbase {
    use super::{Mode, prove_on_hbase};

    #[test]
    fn any_order_and_duplicates() {
        prove_on_hbase(Mode::Perm);
    }

    #[test]
    fn crash_anywhere_and_replay() {
        prove_on_hbase(Mode::Crash);
    }

    #[test]
    fn a_frozen_consumer_wakes_beside_the_owner() {
        prove_on_hbase(Mode::Zombie);
    }

    #[test]
    fn two_workers_share_the_events_of_a_row() {
        prove_on_hbase(Mode::Split);
    }

    #[test]
    fn a_build_beside_the_stream() {
        prove_on_hbase(Mode::Build);
    }

    #[test]
    fn events_before_the_base_shows_them() {
        prove_on_hbase(Mode::Early);
    }

    #[test]
    fn purges_between_the_events() {
        prove_on_hbase(Mode::Purge);
    }
}

#[test]
fn any_order_and_duplicates() {
    prove(Mode::Perm);
}

#[test]
fn crash_anywhere_and_replay() {
    prove(Mode::Crash);
}

#[test]
fn a_frozen_consumer_wakes_beside_the_owner() {
    prove(Mode::Zombie);
}

#[test]
fn two_workers_share_the_events_of_a_row() {
    prove(Mode::Split);
}

#[test]
fn a_build_beside_the_stream() {
    prove(Mode::Build);
}

#[test]
fn events_before_the_base_shows_them() {
    prove(Mode::Early);
}

#[test]
fn purges_between_the_events() {
    prove(Mode::Purge);
}

/// Afterwards an attribute has one candidate at most, and of what lingers only that stays which pruning had forgotten.
#[test]
fn a_purge_takes_what_is_remembered() {
    let world = World::open();
    let (mut before, mut after) = (0, 0);
    for seed in 0..1_000 {
        for mode in [Mode::Perm, Mode::Crash] {
            before += world.run(mode, seed, Rules::default()).outdated.len();
            let (verdict, candidates) = world.run_and_purge(mode, seed);
            assert!(
                verdict.missing.is_empty() && verdict.wrong.is_empty(),
                "{mode:?}, SIDEINDEX_SEED={seed}: {verdict:#?}"
            );
            assert!(candidates <= base::COLUMNS.len(), "{mode:?}, SIDEINDEX_SEED={seed}: {candidates} candidates");
            after += verdict.outdated.len();
        }
    }
    println!("outdated entries: {before} before, {after} after");
    assert!(after < before / 2);
}

/// A test of the tests: with a rule switched off some history must go wrong.
fn notices(rules: Rules, mode: Mode) {
    let world = World::open();
    let limit = 20_000;
    let caught = (0..limit).find(|seed| {
        let Verdict { missing, .. } = world.run(mode, *seed, rules);
        !missing.is_empty()
    });
    match caught {
        Some(seed) => println!("{rules:?}: noticed by {mode:?} at seed {seed}"),
        None => panic!("{rules:?}: {limit} histories of {mode:?} noticed nothing"),
    }
}

#[test]
fn notices_a_missing_settle() {
    notices(Rules { settle: false, ..Rules::default() }, Mode::Perm);
}

#[test]
fn notices_a_missing_floor() {
    notices(Rules { floor: false, ..Rules::default() }, Mode::Build);
}

#[test]
fn notices_a_purge_that_raises_no_floor() {
    notices(Rules { floor: false, ..Rules::default() }, Mode::Purge);
}

#[test]
fn notices_a_missing_marker_guard() {
    notices(Rules { marker_guard: false, ..Rules::default() }, Mode::Perm);
}

/// However many updates a row has, what is kept of it stays small.
#[test]
fn candidates_and_disputed_entries_stay_bounded() {
    let world = World::open();
    for seed in 0..20 {
        let most = world.run_long(seed, 400);
        // Two terms, each with its newest candidate, one that lingers, and what one unsettled event may add.
        assert!(most.candidates <= 24, "SIDEINDEX_SEED={seed}: {most:?}");
        assert!(most.entries <= 60, "SIDEINDEX_SEED={seed}: {most:?}");
        assert!(most.after_quiet_candidates <= 2, "SIDEINDEX_SEED={seed}: {most:?}");
        assert_eq!(most.after_quiet_outdated, 0, "SIDEINDEX_SEED={seed}: {most:?}");
    }
}
