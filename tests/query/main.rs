//! Every query form against brute force over random tables.
//!
//! A case is a random schema, random rows, random definitions, their entries as this test derives them, wrong entries
//! beside them, and random queries. What each must answer is worked out on the generated values, by an evaluator that
//! shares nothing with `sideindex::query`.
//!
//! `QUERY_SEED=n` replays one case, `QUERY_CASES=n` runs so many.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod choppy;
mod cond;
mod data;
mod fixture;
mod judge;
mod moving;
mod oracle;
mod sql;

use fixture::Fixture;
use futures::executor::block_on;
use judge::Coverage;
use sideindex::store::embedded::{DurabilityMode, EmbeddedStore, Options};
use std::sync::Arc;

const CASES: u64 = 500;
const QUERIES: usize = 40;
/// Rows of a table, at most.
const SMALL: usize = 50;
const LARGE: usize = 6_000;
const EACH_LARGE: u64 = 50;
/// Cases that share a store: opening one costs more than adding tables to it, until there are many.
const CASES_PER_STORE: u64 = 20;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().unwrap_or_else(|_| panic!("{name}: expected a number, found {v}")))
}

fn open() -> (tempfile::TempDir, EmbeddedStore) {
    // Two tables a case: where there is a file system in memory, their fsyncs cost nothing.
    let memory = std::path::Path::new("/dev/shm");
    let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let options = Options { durability: DurabilityMode::Os, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    (directory, store)
}

#[test]
fn every_query_form_against_brute_force() {
    let seeds = match number("QUERY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("QUERY_CASES").unwrap_or(CASES),
    };
    let many = seeds.end - seeds.start >= 100;
    let mut coverage = Coverage::default();
    let mut store = open();
    for seed in seeds {
        if seed % CASES_PER_STORE == 0 {
            store = open();
        }
        let mut rng = fastrand::Rng::with_seed(seed);
        // Now and then a table of several pages and batches.
        let (rows, queries) = if seed % EACH_LARGE == EACH_LARGE - 1 { (LARGE, QUERIES / 4) } else { (SMALL, QUERIES) };
        let fixture = Fixture::random(&mut rng, &format!("t{seed}"), rows);
        let outcome = block_on(async {
            fixture.write(&store.1).await;
            for _ in 0..queries {
                let query = sql::Query::random(&mut rng, &fixture);
                let reader = choppy::reader(&store.1, &mut rng);
                judge::check(reader, &fixture, &query, &mut rng, &mut coverage).await?;
            }
            Ok::<(), String>(())
        });
        if let Err(problem) = outcome {
            panic!("{problem}\n{fixture}\nreplay with QUERY_SEED={seed}");
        }
    }
    println!("{coverage:?}");
    if many {
        coverage.assert_wide();
    }
}

#[test]
fn rows_that_move_and_stores_that_fail() {
    block_on(moving::a_row_that_moves_is_not_doubled(&open().1));
    block_on(moving::a_failed_query_does_not_end_as_if_it_were_complete(&open().1));
}

#[test]
fn pages_tokens_and_bounds() {
    block_on(moving::pages_are_whole_while_other_rows_change(&open().1));
    block_on(moving::tokens_go_out_of_date_with_their_plan(&open().1));
    block_on(moving::what_a_query_may_take(&open().1));
}

/// A server runs queries on threads of its own.
#[test]
fn running_queries_can_be_sent_to_threads() {
    fn is_send<T: Send>(_: &T) {}
    let sql = "SELECT id FROM t WHERE id = 'x'";
    let schema = sideindex::schema::TableSchema::new("t".into(), vec!["f".into()], vec![], vec![]);
    let (_directory, store) = open();
    let parsed = sideindex::query::parse(sql).unwrap();
    let options = sideindex::query::Options::default();
    let preparing = sideindex::query::prepare(&store, &schema, &parsed, &options);
    is_send(&preparing);
    let mut cursor = block_on(preparing).unwrap().cursor(Arc::new(store.clone()));
    is_send(&cursor);
    is_send(&cursor.next_page());
}
