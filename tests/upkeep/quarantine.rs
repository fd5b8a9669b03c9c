//! The quarantine: listed whatever it holds, replayed when it fits, and remembered when it was dropped.

use crate::verify::fine;
use crate::world::{TABLE, World};
use sideindex::index::quarantine::{self, Page, Record, Released, Which};
use sideindex::model::Cell;
use sideindex::schema::QUARANTINE_TABLE;
use std::collections::BTreeSet;

impl World {
    async fn page(&self, which: &Which, from: Option<&bytes::Bytes>, limit: usize) -> Page {
        quarantine::list(&self.store, &self.schema().await, which, from, limit).await.unwrap()
    }

    async fn quarantined(&self) -> Vec<Record> {
        self.page(&Which::default(), None, usize::MAX).await.records
    }

    async fn replay(&self) -> Released {
        quarantine::replay(&self.catalog, TABLE, &Which::default()).await.unwrap()
    }

    async fn degraded(&self) -> Vec<String> {
        self.schema().await.definitions().iter().filter(|d| d.degraded).map(|d| d.name.clone()).collect()
    }

    /// A value of the wrong type, as another program would write it.
    async fn put_wrong_size(&self, row: &str, value: &'static str) {
        let at = sideindex::clock::now();
        self.mutate(TABLE, row.as_bytes(), Cell::put("a", "size", at, value)).await;
        let counts = self.apply().await;
        assert!(counts.add_up());
        assert_eq!((counts.received, counts.quarantined), (1, 1));
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_does_not_fit_is_kept_until_another_takes_its_place() {
    let world = World::new().await;
    world.put("r1", &[("colour", "red".into()), ("size", 1.into())]).await;
    world.apply().await;
    world.put_wrong_size("r1", "large").await;
    assert_eq!(world.degraded().await, ["by_size", "rich"]);
    let [record] = world.quarantined().await.try_into().unwrap();
    assert_eq!((record.attribute.as_deref(), record.definition.as_deref()), (Some("size"), None));
    assert!(record.reason.contains("expected int, found \"large\""), "{}", record.reason);
    assert_eq!(record.event.unwrap().row, "r1");
    assert_eq!(world.replay().await, Released { kept: 1, ..Released::default() });
    assert_eq!(world.degraded().await, ["by_size", "rich"]);
    // A verification finds every index as the base has it, but what is in quarantine it can't judge.
    assert_eq!(world.verify().await.cleared, names(&[]));

    world.put("r1", &[("size", 2.into())]).await;
    world.apply().await;
    let released = world.replay().await;
    let cleared = names(&["by_size", "rich"]);
    assert_eq!(released, Released { superseded: 1, cleared, ..Released::default() });
    assert!(world.quarantined().await.is_empty() && world.degraded().await.is_empty());
    fine(&world, "superseded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_an_index_refused_is_replayed_once_it_shrank() {
    let world = World::new().await;
    let tags: Vec<String> = (0..100_001).map(|i| format!("t{i}")).collect();
    world.put("r1", &[("tags", tags.into())]).await;
    assert_eq!(world.apply().await.quarantined, 1);
    assert_eq!(world.degraded().await, ["by_tags", "tags_colour"]);
    assert_eq!(world.replay().await.kept, 2);
    let report = world.verify().await;
    assert_eq!((report.wrong(), report.indexes["by_tags"].unindexable), (0, 1));
    world.put("r1", &[("tags", vec!["t1"].into())]).await;
    world.apply().await;
    let released = world.replay().await;
    assert_eq!((released.replayed, released.kept), (2, 0));
    assert_eq!(released.cleared, ["by_tags", "tags_colour"]);
    fine(&world, "replayed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_dropped_is_remembered_until_a_verification() {
    let world = World::new().await;
    world.put_wrong_size("r1", "large").await;
    world.put_wrong_size("r2", "small").await;
    let first = world.quarantined().await.remove(0);
    let which = Which { ids: vec![first.id], ..Which::default() };
    let dropped = quarantine::discard(&world.catalog, TABLE, &which).await.unwrap();
    assert_eq!((dropped.dropped, dropped.unverified), (1, names(&["by_size", "rich"])));
    world.put("r2", &[("size", 3.into())]).await;
    world.apply().await;
    let released = world.replay().await;
    assert_eq!((released.superseded, released.unverified), (1, names(&["by_size", "rich"])));
    assert!(world.quarantined().await.is_empty());
    assert_eq!(world.degraded().await, ["by_size", "rich"]);
    assert_eq!(world.verify().await.cleared, ["by_size", "rich"]);
    assert!(world.degraded().await.is_empty());
    // Flagged anew, it is replayed into the clear again.
    world.put_wrong_size("r2", "small").await;
    world.put("r2", &[("size", 4.into())]).await;
    world.apply().await;
    assert_eq!(world.replay().await.cleared, ["by_size", "rich"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_records_are_listed_with_the_others_and_can_be_dropped() {
    let world = World::new().await;
    world.put_wrong_size("r1", "large").await;
    let whole = world.quarantined().await.remove(0);
    for (key, qualifier, value) in [
        ("things/size/changelog:1/r0", "record", "{not json"),
        ("things/colour/changelog:1/r0", "event", "no record"),
        ("things/", "record", ""),
    ] {
        world.mutate(QUARANTINE_TABLE, key.as_bytes(), Cell::put("q", qualifier, 1, value)).await;
    }
    world.mutate(QUARANTINE_TABLE, &whole.key, Cell::put("q", "event", i64::MAX - 1, "\u{8}\u{8}")).await;
    let records = world.quarantined().await;
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(|r| r.event.is_none() && r.reason.contains("can't be read")), "{records:?}");
    let of_size = Which { index: Some("by_size".to_owned()), ..Which::default() };
    assert_eq!(world.page(&of_size, None, 10).await.records.len(), 2);
    assert_eq!(world.replay().await, Released { kept: 4, ..Released::default() });
    let dropped = quarantine::discard(&world.catalog, TABLE, &Which::default()).await.unwrap();
    assert_eq!(dropped.dropped, 4);
    assert!(world.quarantined().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_hold_every_record_once_and_filters_choose() {
    let world = World::new().await;
    for i in 0..7 {
        world.put_wrong_size(&format!("r{i}"), "large").await;
    }
    world.mutate(TABLE, b"r9", Cell::put("a", "tags", 1, "{}")).await;
    world.apply().await;
    let (mut ids, mut from, mut pages) = (BTreeSet::new(), None, 0);
    loop {
        let page = world.page(&Which::default(), from.as_ref(), 3).await;
        for record in page.records {
            assert!(ids.insert(record.id), "a record came twice");
        }
        pages += 1;
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!((ids.len(), pages), (8, 3));
    let count = async |attribute: Option<&str>, index: Option<&str>| {
        let which = Which { ids: vec![], attribute: attribute.map(str::to_owned), index: index.map(str::to_owned) };
        world.page(&which, None, 100).await.records.len()
    };
    assert_eq!(count(Some("size"), None).await, 7);
    assert_eq!(count(None, Some("by_size")).await, 7);
    assert_eq!(count(None, Some("by_tags")).await, 1);
    assert_eq!(count(Some("tags"), Some("by_size")).await, 0);
    assert_eq!(count(Some("nothing"), None).await, 0);
}

/// The log gives events again that were not acknowledged, also one that was released meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_comes_again_is_in_quarantine_again() {
    let world = World::new().await;
    world.mutate(TABLE, b"r1", Cell::put("a", "size", 5, "large")).await;
    let events = world.waiting().await;
    world.apply().await;
    quarantine::discard(&world.catalog, TABLE, &Which::default()).await.unwrap();
    assert!(world.quarantined().await.is_empty());
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    world.follow(events).await;
    assert_eq!(world.quarantined().await.len(), 1);
}
