//! Column filters: missing columns are dropped, only the newest version counts.

use crate::bed::{Bed, column, columns, delete, put, show};
use futures::FutureExt;
use futures::future::BoxFuture;
use sideindex::model::{CellKind, RowMutation};
use sideindex::store::{ColumnFilter, Comparison, ReadSpec, Scan};

fn filter(name: &str, comparison: Comparison, operand: &str) -> ReadSpec {
    let (family, qualifier) = column(name);
    let filter = ColumnFilter { family, qualifier, comparison, operand: operand.to_owned().into() };
    ReadSpec { filter: Some(filter), ..ReadSpec::default() }
}

fn scan(spec: ReadSpec) -> Scan {
    Scan { spec, ..Scan::all() }
}

pub fn comparisons(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        for value in ["", "b", "bb", "c"] {
            bed.write(format!("row {value}"), vec![put("a:x", 1, value)]).await;
        }
        for (comparison, expected) in [
            (Comparison::Less, vec!["row ", "row b"]),
            (Comparison::LessOrEqual, vec!["row ", "row b", "row bb"]),
            (Comparison::Equal, vec!["row bb"]),
            (Comparison::NotEqual, vec!["row ", "row b", "row c"]),
            (Comparison::GreaterOrEqual, vec!["row bb", "row c"]),
            (Comparison::Greater, vec!["row c"]),
        ] {
            assert_eq!(bed.keys(scan(filter("a:x", comparison, "bb"))).await, expected, "{comparison:?}");
        }
    }
    .boxed()
}

pub fn a_row_without_the_column_is_dropped(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("with", vec![put("a:x", 1, "v"), put("a:y", 1, "v")]).await;
        bed.write("without", vec![put("a:y", 1, "v")]).await;
        bed.write("elsewhere", vec![put("b:x", 1, "v")]).await;
        let rows = bed.scan(scan(filter("a:x", Comparison::Equal, "v"))).await;
        assert_eq!(rows.len(), 1);
        assert_eq!(show(&rows[0].cells), ["a:x@1=v", "a:y@1=v"], "the whole row, not the column alone");
    }
    .boxed()
}

pub fn only_the_newest_version_is_tested(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("r", vec![put("a:x", 1, "old"), put("a:x", 2, "new")]).await;
        for max_versions in [1, 3] {
            let spec = |value| ReadSpec { max_versions, ..filter("a:x", Comparison::Equal, value) };
            assert!(bed.keys(scan(spec("old"))).await.is_empty());
            assert_eq!(bed.scan(scan(spec("new"))).await[0].cells.len(), max_versions.min(2) as usize);
        }
    }
    .boxed()
}

pub fn not_equal_drops_missing(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("1", vec![put("a:x", 1, "red")]).await;
        bed.write("2", vec![put("a:x", 1, "blue")]).await;
        bed.write("3", vec![put("a:y", 1, "red")]).await;
        assert_eq!(bed.keys(scan(filter("a:x", Comparison::NotEqual, "red"))).await, ["2"]);
    }
    .boxed()
}

pub fn a_column_not_read_counts_as_missing(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("r", vec![put("a:x", 1, "v"), put("a:y", 1, "v")]).await;
        let spec = |names| ReadSpec { filter: filter("a:x", Comparison::Equal, "v").filter, ..columns(names) };
        assert!(bed.keys(scan(spec(&["a:y"]))).await.is_empty());
        assert_eq!(bed.keys(scan(spec(&["a:x"]))).await, ["r"]);
        assert_eq!(bed.keys(scan(spec(&["a:y", "a:x"]))).await, ["r"]);
    }
    .boxed()
}

pub fn a_deleted_column_is_missing(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("1", vec![put("a:x", 1, "v"), put("a:y", 1, "v")]).await;
        bed.write("2", vec![put("a:x", 1, "v"), put("a:x", 2, "w")]).await;
        bed.write("1", vec![delete(CellKind::DeleteColumn, "a:x", 1)]).await;
        bed.write("2", vec![delete(CellKind::DeleteVersion, "a:x", 2)]).await;
        assert_eq!(bed.keys(scan(filter("a:x", Comparison::Equal, "v"))).await, ["2"]);
        assert!(bed.keys(scan(filter("a:x", Comparison::NotEqual, "v"))).await.is_empty());
    }
    .boxed()
}

pub fn a_filtered_get_keeps_its_place(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        for (row, value) in [("1", "red"), ("2", "blue"), ("3", "red")] {
            bed.write(row, vec![put("a:x", 1, value)]).await;
        }
        let keys = ["3", "2", "none", "1"].map(Into::into);
        let rows = bed.store.get(&bed.table, &keys, &filter("a:x", Comparison::Equal, "red")).await.unwrap();
        let found: Vec<_> = rows.iter().map(|r| (&r.key[..], r.cells.len())).collect();
        assert_eq!(found, [(&b"3"[..], 1), (b"2", 0), (b"none", 0), (b"1", 1)]);
    }
    .boxed()
}

pub fn sparse_matches_are_all_found(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let row = |i: u32| {
            let value = if i.is_multiple_of(9_001) { "rare" } else { "common" };
            RowMutation::new(format!("{i:05}"), vec![put("a:x", 1, value)])
        };
        bed.try_write((0..25_000).map(row).collect()).await.unwrap();
        let spec = filter("a:x", Comparison::Equal, "rare");
        for (page_rows, reversed) in [(1, false), (1_000, false), (1, true)] {
            if reversed && !bed.store.capabilities().reverse_scans {
                continue;
            }
            let mut keys = bed.keys(Scan { page_rows, reversed, ..scan(spec.clone()) }).await;
            keys.sort();
            assert_eq!(keys, ["00000", "09001", "18002"]);
        }
    }
    .boxed()
}
