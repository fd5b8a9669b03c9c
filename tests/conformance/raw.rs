//! Raw reads: every stored cell as it is.

use crate::bed::{Bed, columns, delete, kind_of, put, show};
use futures::FutureExt;
use futures::future::BoxFuture;
use sideindex::error::ErrorKind;
use sideindex::model::CellKind;
use sideindex::store::{ColumnFilter, Comparison, Filter, ReadSpec, Scan};

fn raw() -> ReadSpec {
    ReadSpec { raw: true, ..ReadSpec::default() }
}

/// Writes a row with all kinds of cells; false, having checked that it is refused, where raw reads are not supported.
async fn prepare(bed: &Bed) -> bool {
    if !bed.store.capabilities().raw_reads {
        let get = bed.store.get(&bed.table, &["r".into()], &raw()).await;
        assert_eq!(kind_of(get), ErrorKind::Unsupported);
        let scan = bed.store.scan(&bed.table, Scan { spec: raw(), ..Scan::all() }).await;
        assert_eq!(kind_of(scan.map(|_| ())), ErrorKind::Unsupported);
        return false;
    }
    bed.write("r", (1..=5).map(|t| put("a:x", t, "v")).collect()).await;
    bed.write("r", vec![put("b:y", 2, "v"), put("a:w", 1, "v")]).await;
    bed.write("r", vec![delete(CellKind::DeleteFamily, "a:", 1), delete(CellKind::DeleteFamilyVersion, "a:", 2)]).await;
    bed.write("r", vec![delete(CellKind::DeleteColumn, "a:x", 3), delete(CellKind::DeleteVersion, "a:x", 3)]).await;
    true
}

const EVERYTHING: [&str; 11] = [
    "a:@2!DeleteFamilyVersion",
    "a:@1!DeleteFamily",
    "a:w@1=v",
    "a:x@5=v",
    "a:x@4=v",
    "a:x@3!DeleteColumn",
    "a:x@3!DeleteVersion",
    "a:x@3=v",
    "a:x@2=v",
    "a:x@1=v",
    "b:y@2=v",
];

pub fn everything_stored_in_order(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if prepare(bed).await {
            assert_eq!(bed.get("r", &raw()).await, EVERYTHING);
            for reversed in [false, true] {
                let rows = bed.scan(Scan { spec: raw(), reversed, ..Scan::all() }).await;
                assert_eq!(show(&rows[0].cells), EVERYTHING);
            }
        }
    }
    .boxed()
}

pub fn versions_and_filter_are_ignored(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if prepare(bed).await {
            let filter = ColumnFilter {
                family: "a".into(),
                qualifier: "none".into(),
                comparison: Comparison::Equal,
                operand: "v".into(),
            };
            let spec = ReadSpec { filter: Some(Filter::Column(filter)), ..raw() };
            assert_eq!(bed.get("r", &spec).await, EVERYTHING);
        }
    }
    .boxed()
}

pub fn columns_of_a_raw_read(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if prepare(bed).await {
            let read = |names| ReadSpec { raw: true, ..columns(names) };
            let expected = ["a:@2!DeleteFamilyVersion", "a:@1!DeleteFamily", "a:w@1=v"];
            assert_eq!(bed.get("r", &read(&["a:w"])).await, expected);
            assert_eq!(bed.get("r", &read(&["b:y"])).await, ["b:y@2=v"]);
        }
    }
    .boxed()
}
