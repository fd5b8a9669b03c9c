//! Single rows: what can be asked, what can be written, what is refused.

use crate::bed::{Bed, columns, delete, kind_of, put, versions};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use sideindex::error::ErrorKind;
use sideindex::model::{Cell, CellKind, RowMutation};
use sideindex::store::{Durability, ReadSpec, Scan};

async fn lengths(bed: &Bed, keys: &[&str]) -> Vec<(String, usize)> {
    let keys: Vec<Bytes> = keys.iter().map(|k| (*k).to_owned().into()).collect();
    let rows = bed.store.get(&bed.table, &keys, &ReadSpec::default()).await.unwrap();
    rows.into_iter().map(|r| (String::from_utf8(r.key.to_vec()).unwrap(), r.cells.len())).collect()
}

fn expect(rows: &[(&str, usize)]) -> Vec<(String, usize)> {
    rows.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect()
}

pub fn get_keeps_the_order_of_keys(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(["a", "b", "c"]).await;
        assert_eq!(lengths(bed, &["c", "a", "b"]).await, expect(&[("c", 1), ("a", 1), ("b", 1)]));
        assert!(lengths(bed, &[]).await.is_empty());
    }
    .boxed()
}

pub fn a_missing_row_has_no_cells(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(["a", "aa"]).await;
        let overlong = "x".repeat(70_000);
        let found = lengths(bed, &["b", "a", "", &overlong, "a\0", "aa"]).await;
        assert_eq!(found, expect(&[("b", 0), ("a", 1), ("", 0), (&overlong, 0), ("a\0", 0), ("aa", 1)]));
    }
    .boxed()
}

pub fn a_key_may_be_asked_twice(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(["a", "b"]).await;
        assert_eq!(lengths(bed, &["a", "b", "a"]).await, expect(&[("a", 1), ("b", 1), ("a", 1)]));
    }
    .boxed()
}

/// Checks that a call is refused as bad input, and that a good mutation before the bad one was not applied.
async fn refused(bed: &Bed, bad: RowMutation) {
    let good = RowMutation::new("good", vec![put("a:x", 1, "v")]);
    let result = bed.try_write(vec![good, bad]).await;
    assert_eq!(kind_of(result), ErrorKind::InvalidInput);
    assert!(bed.scan(Scan::all()).await.is_empty(), "a part of a refused call was applied");
}

pub fn row_keys_that_do_not_fit(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let cells = || vec![put("a:x", 1, "v")];
        assert!(!bed.store.row_key_fits(b""));
        refused(bed, RowMutation::new("", cells())).await;
        let overlong = vec![b'k'; 32_768];
        assert!(!bed.store.row_key_fits(&overlong));
        refused(bed, RowMutation::new(overlong, cells())).await;
        for key in [vec![b'k'; 32_767], vec![0; 30_000], vec![0xff; 32_767], vec![0; 32_767]] {
            let what = (key.len(), key[0]);
            let fits = bed.store.row_key_fits(&key);
            let written = bed.try_write(vec![RowMutation::new(key.clone(), cells())]).await;
            assert_eq!(fits, written.is_ok(), "row_key_fits and mutate disagree on {what:?}");
            assert_eq!(bed.get(key.clone(), &ReadSpec::default()).await.len(), usize::from(fits), "{what:?}");
            let found = bed.keys(Scan { start: Some(key.clone().into()), ..Scan::all() }).await;
            assert_eq!(found.contains(&Bytes::from(key)), fits, "{what:?}");
        }
    }
    .boxed()
}

pub fn an_unknown_family(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        refused(bed, RowMutation::new("r", vec![put("a:x", 1, "v"), put("c:x", 1, "v")])).await;
        refused(bed, RowMutation::new("r", vec![put(":x", 1, "v")])).await;
        refused(bed, RowMutation::new("r", vec![delete(CellKind::DeleteFamily, "aa:", 1)])).await;
        let get = bed.store.get(&bed.table, &["r".into()], &columns(&["a:x", "c:x"])).await;
        assert_eq!(kind_of(get), ErrorKind::InvalidInput);
        let scan = bed.store.scan(&bed.table, Scan { spec: columns(&["c:x"]), ..Scan::all() }).await;
        assert_eq!(kind_of(scan.map(|_| ())), ErrorKind::InvalidInput);
    }
    .boxed()
}

pub fn a_timestamp_out_of_bounds(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        refused(bed, RowMutation::new("r", vec![put("a:x", 1, "v"), put("a:y", -1, "v")])).await;
        refused(bed, RowMutation::new("r", vec![delete(CellKind::DeleteColumn, "a:y", i64::MIN)])).await;
        refused(bed, RowMutation::new("r", vec![put("a:x", i64::MAX, "v")])).await;
    }
    .boxed()
}

pub fn a_marker_with_a_stray_qualifier(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let marker = Cell { qualifier: "x".into(), ..delete(CellKind::DeleteFamily, "a:", 1) };
        refused(bed, RowMutation::new("r", vec![marker])).await;
    }
    .boxed()
}

pub fn a_refused_call_applies_nothing(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let mut mutations: Vec<_> =
            (0..100).map(|i| RowMutation::new(format!("{i}"), vec![put("a:x", 1, "v")])).collect();
        mutations[99].cells.push(put("a:x", -5, "v"));
        assert_eq!(kind_of(bed.try_write(mutations).await), ErrorKind::InvalidInput);
        assert!(bed.scan(Scan::all()).await.is_empty());
    }
    .boxed()
}

pub fn a_large_value(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let value: Vec<u8> = (0..8 << 20).map(|i: u32| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        bed.write("r", vec![Cell::put("a", "x", 1, value.clone()), put("a:y", 1, "small")]).await;
        let row = bed.store.get(&bed.table, &["r".into()], &ReadSpec::default()).await.unwrap().remove(0);
        assert!(row.cells[0].value == value, "8 MiB came back changed");
        assert_eq!(row.cells[1].value, "small");
    }
    .boxed()
}

pub fn a_wide_row(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let name = |i: i32| format!("a:{i:05}");
        bed.rows(["before", "z after"]).await;
        bed.write("r", (0..20_000).map(|i| put(&name(i), i.into(), "v")).collect()).await;
        let row = bed.store.get(&bed.table, &["r".into()], &ReadSpec::default()).await.unwrap().remove(0);
        assert_eq!(row.cells.len(), 20_000);
        assert!(row.cells.windows(2).all(|w| w[0].qualifier < w[1].qualifier));
        let some = [name(19_999), name(7), name(10_000), "b:none".to_owned(), "a:none".to_owned()];
        let some = columns(&some.each_ref().map(String::as_str));
        let expected = ["a:00007@7=v", "a:10000@10000=v", "a:19999@19999=v"];
        assert_eq!(bed.get("r", &some).await, expected);
        let rows = bed.scan(Scan { spec: some, ..Scan::all() }).await;
        assert_eq!((rows.len(), rows[0].cells.len()), (1, 3));
        bed.write("r", vec![delete(CellKind::DeleteFamily, "a:", 10_000)]).await;
        assert_eq!(bed.get("r", &columns(&[&name(10_000), &name(10_001)])).await, ["a:10001@10001=v"]);
    }
    .boxed()
}

pub fn many_mutations_of_one_row(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let mutations = (0..10).map(|i| RowMutation::new("r", vec![put("a:x", 1, &i.to_string())]));
        bed.try_write(mutations.collect()).await.unwrap();
        let last = bed.get("r", &versions(3)).await;
        assert_eq!(last.len(), 1, "one timestamp, one version: {last:?}");
    }
    .boxed()
}

pub fn nothing_to_write(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.try_write(Vec::new()).await.unwrap();
        assert!(bed.scan(Scan::all()).await.is_empty());
    }
    .boxed()
}

pub fn no_versions_are_refused(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let get = bed.store.get(&bed.table, &["r".into()], &versions(0)).await;
        assert_eq!(kind_of(get), ErrorKind::InvalidInput);
    }
    .boxed()
}

pub fn relaxed_writes_are_visible_and_sync(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        for i in 0..20 {
            let mutation = RowMutation::new(format!("{i:02}"), vec![put("a:x", 1, "v")]);
            bed.store.mutate(&bed.table, vec![mutation], Durability::Relaxed).await.unwrap();
            assert_eq!(bed.keys(Scan::all()).await.len(), i + 1);
        }
        bed.store.sync().await.unwrap();
    }
    .boxed()
}
