//! Snapshots: what they see stays.

use crate::bed::{Bed, delete, kind_of, put, scan_all, show};
use futures::FutureExt;
use futures::future::BoxFuture;
use sideindex::error::ErrorKind;
use sideindex::model::CellKind;
use sideindex::store::{Read, ReadSpec, Scan, TableDescriptor};
use std::sync::Arc;

async fn snapshot(bed: &Bed) -> Option<Arc<dyn Read>> {
    let snapshot = bed.store.snapshot().await;
    if bed.store.capabilities().snapshots {
        return Some(snapshot.unwrap());
    }
    assert_eq!(kind_of(snapshot.map(|_| ())), ErrorKind::Unsupported);
    None
}

pub fn a_snapshot_does_not_change(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("r", vec![put("a:x", 1, "before"), put("a:y", 1, "stays")]).await;
        let Some(snapshot) = snapshot(bed).await else { return };
        bed.write("r", vec![put("a:x", 1, "overwritten"), put("a:x", 2, "after")]).await;
        bed.write("r", vec![delete(CellKind::DeleteColumn, "a:y", 9)]).await;
        bed.write("s", vec![put("a:x", 1, "new row")]).await;
        let later = format!("{}_later", bed.table);
        bed.store.create_table(&TableDescriptor::new(&later, &["a"], 1)).await.unwrap();

        let row = snapshot.get(&bed.table, &["r".into()], &ReadSpec::default()).await.unwrap().remove(0);
        assert_eq!(show(&row.cells), ["a:x@1=before", "a:y@1=stays"]);
        assert_eq!(scan_all(&*snapshot, &bed.table, Scan::all()).await, [row]);
        assert_eq!(kind_of(snapshot.get(&later, &[], &ReadSpec::default()).await), ErrorKind::NotFound);
        assert_eq!(bed.get("r", &ReadSpec::default()).await, ["a:x@2=after"]);
    }
    .boxed()
}

pub fn a_scan_of_a_snapshot(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows((0..50).map(|i| format!("{i:02}"))).await;
        let Some(snapshot) = snapshot(bed).await else { return };
        let mut scanner = snapshot.scan(&bed.table, Scan { page_rows: 10, ..Scan::all() }).await.unwrap();
        let mut rows = scanner.next_page().await.unwrap().rows;
        bed.rows((50..99).map(|i| format!("{i:02}"))).await;
        for i in 0..50 {
            bed.write(format!("{i:02}"), vec![delete(CellKind::DeleteFamily, "a:", 1)]).await;
        }
        drop(snapshot);
        loop {
            let page = scanner.next_page().await.unwrap();
            rows.extend(page.rows);
            if page.done {
                break;
            }
        }
        assert_eq!(rows.len(), 50);
    }
    .boxed()
}
