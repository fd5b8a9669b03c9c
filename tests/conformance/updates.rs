//! Writes that depend on what is stored: increments, and mutations that check first.

use crate::bed::{Bed, column, delete, kind_of, put};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use sideindex::error::{ErrorKind, Result};
use sideindex::model::{Cell, CellKind, RowMutation};
use sideindex::store::{ColumnCheck, ReadSpec};
use std::collections::BTreeSet;
use std::sync::Arc;

async fn add(bed: &Bed, row: &'static str, name: &str, amount: i64) -> Result<i64> {
    let (family, qualifier) = column(name);
    bed.store.increment(&bed.table, &row.into(), &family, &qualifier, amount).await
}

fn check(name: &str, expected: Option<&'static str>) -> ColumnCheck {
    let (family, qualifier) = column(name);
    ColumnCheck { family, qualifier, expected: expected.map(Bytes::from) }
}

async fn apply_if(bed: &Bed, check: ColumnCheck, cells: Vec<Cell>) -> Result<bool> {
    bed.store.check_and_mutate(&bed.table, &check, RowMutation::new("r", cells)).await
}

/// Whether the store has them; checks that it refuses them otherwise.
async fn supported(bed: &Bed) -> bool {
    if bed.store.capabilities().atomic_updates {
        return true;
    }
    assert_eq!(kind_of(add(bed, "r", "a:n", 1).await), ErrorKind::Unsupported);
    let checked = apply_if(bed, check("a:x", None), vec![put("a:x", 1, "v")]).await;
    assert_eq!(kind_of(checked), ErrorKind::Unsupported);
    false
}

pub fn increments_start_at_0_and_add_up(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if !supported(bed).await {
            return;
        }
        assert_eq!(add(bed, "r", "a:n", 5).await.unwrap(), 5);
        assert_eq!(add(bed, "r", "a:n", -7).await.unwrap(), -2);
        assert_eq!(add(bed, "r", "a:n", 0).await.unwrap(), -2);
        assert_eq!(add(bed, "r", "b:n", 1).await.unwrap(), 1, "another column");
        assert_eq!(add(bed, "s", "a:n", 1).await.unwrap(), 1, "another row");
        let row = bed.store.get(&bed.table, &["r".into()], &ReadSpec::default()).await.unwrap().remove(0);
        assert_eq!(row.newest(b"a", b"n").unwrap().value, (-2_i64).to_be_bytes().as_slice());

        bed.write("r", vec![put("a:max", 1, "\u{7f}")]).await;
        bed.write("r", vec![Cell::put("a", "max", 2, i64::MAX.to_be_bytes().to_vec())]).await;
        assert_eq!(add(bed, "r", "a:max", 1).await.unwrap(), i64::MIN, "wraps around");
    }
    .boxed()
}

pub fn increments_go_on_from_what_was_put(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if !supported(bed).await {
            return;
        }
        // Far ahead of any clock: the sum must not be hidden behind the put.
        bed.write("r", vec![Cell::put("a", "n", 1 << 50, 41_i64.to_be_bytes().to_vec())]).await;
        assert_eq!(add(bed, "r", "a:n", 1).await.unwrap(), 42);
        assert_eq!(add(bed, "r", "a:n", 1).await.unwrap(), 43);
        bed.write("r", vec![delete(CellKind::DeleteColumn, "a:n", (1 << 50) + 9)]).await;
        assert!(bed.get("r", &ReadSpec::default()).await.is_empty());

        bed.write("s", vec![put("a:n", 1, "seven b")]).await;
        assert_eq!(kind_of(add(bed, "s", "a:n", 1).await), ErrorKind::InvalidInput);
        assert_eq!(bed.get("s", &ReadSpec::default()).await, ["a:n@1=seven b"]);
    }
    .boxed()
}

pub fn updates_of_what_cannot_be(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if !supported(bed).await {
            return;
        }
        assert_eq!(kind_of(add(bed, "r", "none:n", 1).await), ErrorKind::InvalidInput);
        assert_eq!(kind_of(add(bed, "", "a:n", 1).await), ErrorKind::InvalidInput);
        let none = bed.store.increment("none", &"r".into(), &"a".into(), &"n".into(), 1).await;
        assert_eq!(kind_of(none), ErrorKind::NotFound);
        let value = || vec![put("a:x", 1, "v")];
        assert_eq!(kind_of(apply_if(bed, check("none:x", None), value()).await), ErrorKind::InvalidInput);
        assert_eq!(kind_of(apply_if(bed, check("a:x", Some("")), value()).await), ErrorKind::InvalidInput);
        assert_eq!(kind_of(apply_if(bed, check("a:x", None), vec![]).await), ErrorKind::InvalidInput);
        let wrong = vec![put("a:x", 1, "v"), put("none:x", 1, "v")];
        assert_eq!(kind_of(apply_if(bed, check("a:x", None), wrong).await), ErrorKind::InvalidInput);
        assert!(bed.get("r", &ReadSpec::default()).await.is_empty());
    }
    .boxed()
}

pub fn no_number_is_given_twice(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if !supported(bed).await {
            return;
        }
        let tasks = (0..20).map(|task| {
            let (store, table) = (Arc::clone(&bed.store), bed.table.clone());
            tokio::spawn(async move {
                let mut given = Vec::new();
                for _ in 0..25 {
                    // Other writes of the row come between.
                    let put = RowMutation::new("r", vec![put("a:other", task, "v")]);
                    store.mutate(&table, vec![put], sideindex::store::Durability::Relaxed).await.unwrap();
                    given.push(store.increment(&table, &"r".into(), &"a".into(), &"n".into(), 1).await.unwrap());
                }
                assert!(given.windows(2).all(|w| w[0] < w[1]));
                given
            })
        });
        let given: Vec<i64> = join_all(tasks).await.into_iter().flat_map(Result::unwrap).collect();
        assert_eq!(given.len(), 500);
        assert_eq!(given.into_iter().collect::<BTreeSet<i64>>(), (1..=500).collect());
    }
    .boxed()
}

pub fn a_check_decides(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if !supported(bed).await {
            return;
        }
        if !bed.store.capabilities().timed_checks {
            return a_check_of_one_put_decides(bed).await;
        }
        let set = |at, value| vec![put("a:x", at, value), put("b:seen", at, value)];
        assert!(!apply_if(bed, check("a:x", Some("1")), set(1, "2")).await.unwrap());
        assert!(bed.get("r", &ReadSpec::default()).await.is_empty());
        assert!(apply_if(bed, check("a:x", None), set(1, "1")).await.unwrap());
        assert!(!apply_if(bed, check("a:x", None), set(2, "2")).await.unwrap());
        assert!(!apply_if(bed, check("a:x", Some("11")), set(2, "2")).await.unwrap());
        assert_eq!(bed.get("r", &ReadSpec::default()).await, ["a:x@1=1", "b:seen@1=1"]);
        assert!(apply_if(bed, check("a:x", Some("1")), set(2, "2")).await.unwrap());
        assert!(!apply_if(bed, check("a:x", Some("1")), set(3, "3")).await.unwrap(), "an older version is no value");
        assert_eq!(bed.get("r", &ReadSpec::default()).await, ["a:x@2=2", "b:seen@2=2"]);

        // The mutation may clear what was checked; then it is absent.
        let clear = vec![delete(CellKind::DeleteColumn, "a:x", 2)];
        assert!(apply_if(bed, check("a:x", Some("2")), clear).await.unwrap());
        assert!(apply_if(bed, check("a:x", None), vec![put("a:x", 4, "4")]).await.unwrap());
        assert_eq!(bed.get("r", &ReadSpec::default()).await, ["a:x@4=4", "b:seen@2=2"]);
    }
    .boxed()
}

/// What a store can that gives the put its own time.
async fn a_check_of_one_put_decides(bed: &Bed) {
    let two = vec![put("a:x", 1, "v"), put("b:x", 1, "v")];
    assert_eq!(kind_of(apply_if(bed, check("a:x", None), two).await), ErrorKind::Unsupported);
    let clear = vec![delete(CellKind::DeleteColumn, "a:x", 1)];
    assert_eq!(kind_of(apply_if(bed, check("a:x", None), clear).await), ErrorKind::Unsupported);
    let before = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as i64;
    let set = |value| vec![put("a:x", 1, value)];
    assert!(!apply_if(bed, check("a:x", Some("1")), set("2")).await.unwrap());
    assert!(apply_if(bed, check("a:x", None), set("1")).await.unwrap());
    assert!(!apply_if(bed, check("a:x", None), set("2")).await.unwrap());
    assert!(apply_if(bed, check("a:x", Some("1")), set("3")).await.unwrap());
    let row = bed.store.get(&bed.table, &["r".into()], &ReadSpec::default()).await.unwrap().remove(0);
    assert_eq!(row.cells.len(), 1);
    assert_eq!(row.cells[0].value, "3");
    assert!(row.cells[0].timestamp >= before, "the server's time");
}

pub fn exactly_one_check_wins(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if !supported(bed).await {
            return;
        }
        for round in 0..30 {
            let row = format!("{round}");
            let tasks = (0..8).map(|task| {
                let (store, table, row) = (Arc::clone(&bed.store), bed.table.clone(), row.clone());
                tokio::spawn(async move {
                    let mutation = RowMutation::new(row, vec![put("a:x", 1, &task.to_string())]);
                    store.check_and_mutate(&table, &check("a:x", None), mutation).await.unwrap()
                })
            });
            let won: Vec<bool> = join_all(tasks).await.into_iter().map(|r| r.unwrap()).collect();
            assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
            let winner = won.iter().position(|won| *won).unwrap();
            let found = bed.get(row, &ReadSpec::default()).await;
            assert_eq!(found.len(), 1);
            assert!(found[0].ends_with(&format!("={winner}")), "{found:?}");
        }
    }
    .boxed()
}
