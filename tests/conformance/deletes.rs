//! What markers hide: the four kinds, in whatever order they are written.

use crate::bed::{Bed, columns, delete, kind_of, put, versions};
use futures::FutureExt;
use futures::future::BoxFuture;
use sideindex::error::ErrorKind;
use sideindex::model::{Cell, CellKind, RowMutation};
use sideindex::store::{Durability, ReadSpec, Scan};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `a:x` and `a:y` at 1, 2 and 3; `b:x` at 2.
fn puts() -> Vec<Cell> {
    let at = |column: &'static str| (1..=3).map(move |t| put(column, t, "v"));
    at("a:x").chain(at("a:y")).chain([put("b:x", 2, "v")]).collect()
}

/// Writes [`puts`] and a marker in either order, and checks what remains.
async fn check(bed: &Bed, marker: Cell, expected: &[&str]) {
    let of_version = matches!(marker.kind, CellKind::DeleteVersion | CellKind::DeleteFamilyVersion);
    if of_version && !bed.marks_versions().await {
        return;
    }
    bed.write("after", puts()).await;
    bed.write("after", vec![marker.clone()]).await;
    bed.write("before", vec![marker.clone()]).await;
    bed.write("before", puts()).await;
    for row in ["after", "before"] {
        assert_eq!(bed.get(row, &versions(3)).await, expected, "marker written {row} the puts");
    }
    let scanned = bed.scan(Scan { spec: bed.scan_versions(3).await, ..Scan::all() }).await;
    assert_eq!(scanned.len(), 2);
    assert_eq!(scanned[0].cells, scanned[1].cells);
    if bed.store.capabilities().atomic_put_and_delete {
        bed.write("together", puts().into_iter().chain([marker]).collect()).await;
        assert_eq!(bed.get("together", &versions(3)).await, expected, "marker and puts in one mutation");
    }
}

pub fn delete_column(bed: &Bed) -> BoxFuture<'_, ()> {
    check(bed, delete(CellKind::DeleteColumn, "a:x", 2), &["a:x@3=v", "a:y@3=v", "a:y@2=v", "a:y@1=v", "b:x@2=v"])
        .boxed()
}

pub fn delete_version(bed: &Bed) -> BoxFuture<'_, ()> {
    check(
        bed,
        delete(CellKind::DeleteVersion, "a:x", 2),
        &["a:x@3=v", "a:x@1=v", "a:y@3=v", "a:y@2=v", "a:y@1=v", "b:x@2=v"],
    )
    .boxed()
}

pub fn delete_family(bed: &Bed) -> BoxFuture<'_, ()> {
    check(bed, delete(CellKind::DeleteFamily, "a:", 2), &["a:x@3=v", "a:y@3=v", "b:x@2=v"]).boxed()
}

pub fn delete_family_version(bed: &Bed) -> BoxFuture<'_, ()> {
    check(bed, delete(CellKind::DeleteFamilyVersion, "a:", 2), &["a:x@3=v", "a:x@1=v", "a:y@3=v", "a:y@1=v", "b:x@2=v"])
        .boxed()
}

pub fn markers_hide_puts_written_later(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let kinds =
            [CellKind::DeleteColumn, CellKind::DeleteVersion, CellKind::DeleteFamily, CellKind::DeleteFamilyVersion];
        let all = bed.marks_versions().await;
        let simple = |kind: &CellKind| matches!(kind, CellKind::DeleteColumn | CellKind::DeleteFamily);
        for kind in kinds.into_iter().filter(|kind| all || simple(kind)) {
            let row = format!("{kind:?}");
            bed.write(row.clone(), vec![delete(kind, "a:x", 5)]).await;
            bed.write(row.clone(), vec![put("a:x", 5, "hidden")]).await;
            assert!(bed.get(row.clone(), &versions(3)).await.is_empty(), "{kind:?}");
            bed.write(row.clone(), vec![put("a:x", 6, "seen")]).await;
            assert_eq!(bed.get(row, &versions(3)).await, ["a:x@6=seen"], "{kind:?}");
        }
    }
    .boxed()
}

pub fn family_markers_stay_in_their_family(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("r", vec![put("a:x", 1, "v"), put("b:x", 1, "v")]).await;
        bed.write("r", vec![delete(CellKind::DeleteFamily, "a:", 9)]).await;
        assert_eq!(bed.get("r", &ReadSpec::default()).await, ["b:x@1=v"]);
        assert_eq!(bed.get("r", &columns(&["a:x", "b:x"])).await, ["b:x@1=v"]);
        assert!(bed.get("r", &columns(&["a:x"])).await.is_empty());
    }
    .boxed()
}

pub fn several_families_at_once(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("r", puts()).await;
        let markers = vec![delete(CellKind::DeleteFamily, "a:", 3), delete(CellKind::DeleteFamily, "b:", 3)];
        bed.write("r", markers).await;
        assert!(bed.get("r", &versions(3)).await.is_empty());
        assert!(bed.scan(Scan::all()).await.is_empty());
        bed.write("r", vec![put("b:x", 4, "new")]).await;
        assert_eq!(bed.get("r", &versions(3)).await, ["b:x@4=new"]);
    }
    .boxed()
}

pub fn several_markers_of_one_family(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let all = bed.marks_versions().await;
        let kinds = [CellKind::DeleteFamily, CellKind::DeleteFamilyVersion];
        for kind in kinds.into_iter().filter(|kind| all || *kind == CellKind::DeleteFamily) {
            let mut together = vec![("alone", vec![])];
            if bed.store.capabilities().atomic_put_and_delete {
                together.push(("with a put", vec![put("b:x", 1, "v")]));
            }
            for (row, others) in together {
                let row = format!("{kind:?} {row}");
                bed.write(row.clone(), vec![put("a:x", 3, "v"), put("a:x", 1, "v")]).await;
                let markers = vec![delete(kind, "a:", 3), delete(kind, "a:", 1)];
                bed.write(row.clone(), [markers, others].concat()).await;
                assert!(bed.get(row.clone(), &columns(&["a:x"])).await.is_empty(), "{row}: the newer counts");
            }
        }
    }
    .boxed()
}

pub fn hidden_versions_do_not_count(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if !bed.marks_versions().await {
            return;
        }
        bed.write("r", puts()).await;
        bed.write("r", vec![delete(CellKind::DeleteVersion, "a:x", 3)]).await;
        assert_eq!(bed.get("r", &ReadSpec::default()).await, ["a:x@2=v", "a:y@3=v", "b:x@2=v"]);
        bed.write("r", vec![delete(CellKind::DeleteFamilyVersion, "a:", 2)]).await;
        assert_eq!(bed.get("r", &ReadSpec::default()).await, ["a:x@1=v", "a:y@3=v", "b:x@2=v"]);
    }
    .boxed()
}

pub fn a_newer_put_shows_again(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("r", vec![put("a:x", 1, "old"), put("a:y", 1, "old")]).await;
        bed.write("r", vec![delete(CellKind::DeleteColumn, "a:x", 2)]).await;
        bed.write("r", vec![put("a:x", 3, "new")]).await;
        assert_eq!(bed.get("r", &versions(3)).await, ["a:x@3=new", "a:y@1=old"]);
    }
    .boxed()
}

pub fn the_empty_qualifier_is_a_column(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        // Without family-wide markers: HBase itself lets such a put survive them.
        bed.write("r", vec![put("a:", 1, "one"), put("a:", 2, "two"), put("a:x", 1, "v")]).await;
        assert_eq!(bed.get("r", &versions(3)).await, ["a:@2=two", "a:@1=one", "a:x@1=v"]);
        assert_eq!(bed.get("r", &columns(&["a:"])).await, ["a:@2=two"]);
        bed.write("r", vec![delete(CellKind::DeleteColumn, "a:", 2)]).await;
        assert_eq!(bed.get("r", &versions(3)).await, ["a:x@1=v"]);
    }
    .boxed()
}

pub fn markers_of_one_column_leave_its_neighbours(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let names = ["a:x", "a:x\0", "a:x\0\u{1}", "a:xx"];
        bed.write("r", names.map(|n| put(n, 1, "v")).to_vec()).await;
        bed.write("r", vec![delete(CellKind::DeleteColumn, "a:x\0", 1)]).await;
        assert_eq!(bed.get("r", &ReadSpec::default()).await, ["a:x@1=v", "a:x\\x00\\x01@1=v", "a:xx@1=v"]);
    }
    .boxed()
}

/// One writer moves a row from column to column, readers must always find exactly one.
pub fn put_and_clear_is_atomic(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let step = |i: i64| {
            let (set, clear) = if i % 2 == 0 { ("a:even", "a:odd") } else { ("a:odd", "a:even") };
            RowMutation::new("r", vec![put(set, i, "v"), delete(CellKind::DeleteColumn, clear, i)])
        };
        if !bed.store.capabilities().atomic_put_and_delete {
            assert_eq!(kind_of(bed.try_write(vec![step(1)]).await), ErrorKind::Unsupported);
            return;
        }
        bed.try_write(vec![step(1)]).await.unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let reader = |scans: bool| {
            let (store, table, stop) = (Arc::clone(&bed.store), bed.table.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut reads = 0;
                while !stop.load(Ordering::Relaxed) || reads == 0 {
                    let row = if scans {
                        store.scan(&table, Scan::all()).await.unwrap().next_page().await.unwrap().rows.remove(0)
                    } else {
                        store.get(&table, &["r".into()], &ReadSpec::default()).await.unwrap().remove(0)
                    };
                    assert_eq!(row.cells.len(), 1, "half of a mutation is visible: {:?}", row.cells);
                    reads += 1;
                    tokio::task::yield_now().await;
                }
            })
        };
        let readers = [reader(false), reader(true)];
        for i in 2..500 {
            bed.store.mutate(&bed.table, vec![step(i)], Durability::Relaxed).await.unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.await.unwrap();
        }
    }
    .boxed()
}
