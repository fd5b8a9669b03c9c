//! Which versions of a column are read, and in which order.

use crate::bed::{Bed, columns, put, versions};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use sideindex::model::{Cell, MAX_TIMESTAMP};
use sideindex::store::{Columns, ReadSpec, Scan};

pub fn newest_by_default(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("r", vec![put("a:x", 1, "one"), put("a:x", 3, "three"), put("a:x", 2, "two")]).await;
        assert_eq!(bed.get("r", &ReadSpec::default()).await, ["a:x@3=three"]);
    }
    .boxed()
}

pub fn newest_first_as_many_as_asked(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("r", vec![put("a:x", 1, "one"), put("a:x", 3, "three"), put("a:x", 2, "two")]).await;
        bed.write("r", vec![put("b:y", 9, "nine")]).await;
        assert_eq!(bed.get("r", &versions(2)).await, ["a:x@3=three", "a:x@2=two", "b:y@9=nine"]);
        assert_eq!(bed.get("r", &versions(3)).await.len(), 4);
    }
    .boxed()
}

pub fn no_more_than_the_family_keeps(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("r", (1..=5).map(|t| put("a:x", t, "v")).collect()).await;
        assert_eq!(bed.get("r", &versions(u32::MAX)).await, ["a:x@5=v", "a:x@4=v", "a:x@3=v"]);
    }
    .boxed()
}

pub fn a_put_at_the_same_timestamp_replaces(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("r", vec![put("a:x", 5, "first")]).await;
        bed.write("r", vec![put("a:x", 5, "second")]).await;
        assert_eq!(bed.get("r", &versions(3)).await, ["a:x@5=second"]);
        bed.write("r", vec![put("a:x", 5, "")]).await;
        assert_eq!(bed.get("r", &versions(3)).await, ["a:x@5="]);
    }
    .boxed()
}

pub fn order_of_writing_does_not_matter(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        for timestamp in [7, 2, 9, 4] {
            bed.write("r", vec![put("a:x", timestamp, "v")]).await;
        }
        assert_eq!(bed.get("r", &versions(3)).await, ["a:x@9=v", "a:x@7=v", "a:x@4=v"]);
    }
    .boxed()
}

pub fn columns_in_byte_order(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let qualifiers: [&'static [u8]; 8] = [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"a\0", b"a\0b", b"\xff\xff"];
        let cells = |family: &'static str| qualifiers.iter().rev().map(move |q| Cell::put(family, *q, 1, "v"));
        bed.write("r", cells("b").chain(cells("a")).collect()).await;
        let row = bed.store.get(&bed.table, &["r".into()], &ReadSpec::default()).await.unwrap().remove(0);
        let found: Vec<(Bytes, Bytes)> = row.cells.into_iter().map(|c| (c.family, c.qualifier)).collect();
        let column = |family: &'static str| qualifiers.iter().map(move |q| (family.into(), Bytes::from_static(q)));
        let expected: Vec<(Bytes, Bytes)> = column("a").chain(column("b")).collect();
        assert_eq!(found, expected);
    }
    .boxed()
}

pub fn extreme_timestamps(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        // The one above it is HBase's "now".
        let late = MAX_TIMESTAMP;
        bed.write("r", vec![put("a:x", 0, "early"), put("a:x", late, "late")]).await;
        assert_eq!(bed.get("r", &versions(3)).await, [format!("a:x@{late}=late"), "a:x@0=early".to_owned()]);
    }
    .boxed()
}

pub fn a_column_read_alone(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let cells = ["a:w", "a:x", "a:y", "b:w", "b:x"].map(|c| put(c, 1, "v"));
        bed.write("r", cells.to_vec()).await;
        assert_eq!(bed.get("r", &columns(&["a:x"])).await, ["a:x@1=v"]);
        assert_eq!(bed.get("r", &columns(&["b:x", "a:w", "a:none", "a:w"])).await, ["a:w@1=v", "b:x@1=v"]);
    }
    .boxed()
}

pub fn no_columns_no_cells(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(["r"]).await;
        let none = ReadSpec { columns: Columns::Exact(Vec::new()), ..ReadSpec::default() };
        assert!(bed.get("r", &none).await.is_empty());
        assert!(bed.scan(Scan { spec: none, ..Scan::all() }).await.is_empty());
    }
    .boxed()
}
