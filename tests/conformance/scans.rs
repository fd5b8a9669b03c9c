//! Scans: order, bounds, pages, directions.

use crate::bed::{Bed, columns, delete, kind_of, put};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use sideindex::error::ErrorKind;
use sideindex::model::{CellKind, RowMutation};
use sideindex::store::Scan;

/// Keys that trip over terminators, escapes and prefix ends, in byte order.
const TRICKY: [&[u8]; 14] = [
    b"\0",
    b"\0\0",
    b"\0\x01",
    b"\0\xff",
    b"\x01",
    b"a",
    b"a\0",
    b"a\0\0",
    b"a\0\x01",
    b"a\0\xff",
    b"a\x01",
    b"aa",
    b"\xff",
    b"\xff\xff",
];

fn tricky() -> Vec<Bytes> {
    TRICKY.iter().map(|k| Bytes::from_static(k)).collect()
}

fn between(start: Option<&[u8]>, stop: Option<&[u8]>) -> Scan {
    Scan { start: start.map(Bytes::copy_from_slice), stop: stop.map(Bytes::copy_from_slice), ..Scan::all() }
}

pub fn rows_in_byte_order(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(tricky().into_iter().rev()).await;
        assert_eq!(bed.keys(Scan::all()).await, tricky());
    }
    .boxed()
}

pub fn start_is_included_and_stop_is_not(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(["a", "b", "c", "d"]).await;
        assert_eq!(bed.keys(between(Some(b"b"), Some(b"d"))).await, ["b", "c"]);
        assert_eq!(bed.keys(between(Some(b"b"), None)).await, ["b", "c", "d"]);
        assert_eq!(bed.keys(between(None, Some(b"b"))).await, ["a"]);
        assert_eq!(bed.keys(between(Some(b"aa"), Some(b"cc"))).await, ["b", "c"]);
        assert_eq!(bed.keys(between(Some(b"b"), Some(b"b\0"))).await, ["b"]);
    }
    .boxed()
}

pub fn bounds_with_extreme_bytes(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(tricky()).await;
        let mut bounds: Vec<Option<&[u8]>> = TRICKY.iter().map(|k| Some(*k)).collect();
        bounds.extend([None, Some(&b"\0\0\0"[..]), Some(b"a\0\xff\0"), Some(b"\xfe\xff"), Some(b"\xff\xff\xff")]);
        for start in &bounds {
            for stop in &bounds {
                let expected: Vec<Bytes> = tricky()
                    .into_iter()
                    .filter(|k| start.is_none_or(|s| k >= s) && stop.is_none_or(|s| k < s))
                    .collect();
                assert_eq!(bed.keys(between(*start, *stop)).await, expected, "from {start:?} to {stop:?}");
            }
        }
    }
    .boxed()
}

pub fn empty_ranges(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(["a", "b", "c"]).await;
        for (start, stop) in [("b", "b"), ("c", "a"), ("", ""), ("a", ""), ("d", "e"), ("aa", "ab")] {
            let scan = between(Some(start.as_bytes()), Some(stop.as_bytes()));
            assert!(bed.keys(scan).await.is_empty(), "from {start:?} to {stop:?}");
        }
        assert!(bed.keys(between(None, Some(b""))).await.is_empty());
        assert_eq!(bed.keys(between(Some(b""), None)).await.len(), 3);
    }
    .boxed()
}

pub fn prefixes(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(tricky()).await;
        for prefix in [b"".as_slice(), b"a", b"a\0", b"\0", b"\xff", b"\xff\xff", b"b"] {
            let expected: Vec<Bytes> = tricky().into_iter().filter(|k| k.starts_with(prefix)).collect();
            assert_eq!(bed.keys(Scan::prefix(prefix)).await, expected, "prefix {prefix:?}");
        }
    }
    .boxed()
}

pub fn overlong_bounds(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(["\0", "a", "b"]).await;
        let zeros = vec![0; 70_000];
        let letters = vec![b'a'; 70_000];
        assert_eq!(bed.keys(between(Some(&letters), None)).await, ["b"]);
        assert_eq!(bed.keys(between(None, Some(&letters))).await, ["\0", "a"]);
        assert_eq!(bed.keys(between(Some(&zeros), None)).await, ["a", "b"]);
        assert_eq!(bed.keys(between(None, Some(&zeros))).await, ["\0"]);
        assert_eq!(bed.keys(between(Some(&zeros), Some(&letters))).await, ["a"]);
        let longer = vec![0; 80_000];
        assert!(bed.keys(between(Some(&zeros), Some(&longer))).await.is_empty());
    }
    .boxed()
}

pub fn every_page_size_gives_the_same(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let row = |i: i64| {
            let cells = (0..=i % 4).map(|q| put(&format!("a:{q}"), 1, "v")).collect();
            RowMutation::new(format!("{i:03}"), cells)
        };
        bed.try_write((0..60).map(row).collect()).await.unwrap();
        let all = bed.scan(Scan::all()).await;
        assert_eq!(all.len(), 60);
        for page_rows in [1, 2, 3, 7, 59, 60, 61, usize::MAX] {
            assert_eq!(bed.scan(Scan { page_rows, ..Scan::all() }).await, all, "{page_rows} rows a page");
        }
        let none = bed.store.scan(&bed.table, Scan { page_rows: 0, ..Scan::all() }).await.map(|_| ());
        assert_eq!(kind_of(none), ErrorKind::InvalidInput);
    }
    .boxed()
}

/// Checks that a scan read backwards gives the same rows, last first.
async fn check_reversed(bed: &Bed, scan: Scan) {
    let mut expected = bed.scan(scan.clone()).await;
    expected.reverse();
    for page_rows in [1, 3, 1_000] {
        let reversed = bed.scan(Scan { reversed: true, page_rows, ..scan.clone() }).await;
        assert_eq!(reversed, expected, "{page_rows} rows a page");
    }
}

pub fn reversed(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if !bed.store.capabilities().reverse_scans {
            let scan = bed.store.scan(&bed.table, Scan { reversed: true, ..Scan::all() }).await.map(|_| ());
            assert_eq!(kind_of(scan), ErrorKind::Unsupported);
            return;
        }
        for key in tricky() {
            let cells = ["a:x", "a:y", "b:z"].into_iter().flat_map(|c| (1..=3).map(move |t| put(c, t, "v")));
            bed.write(key, cells.collect()).await;
        }
        bed.write("aa", vec![delete(CellKind::DeleteFamily, "a:", 2)]).await;
        if bed.marks_versions().await {
            bed.write("aa", vec![delete(CellKind::DeleteVersion, "b:z", 3)]).await;
        }
        check_reversed(bed, Scan::all()).await;
        check_reversed(bed, Scan { spec: bed.scan_versions(3).await, ..Scan::all() }).await;
    }
    .boxed()
}

pub fn reversed_between_bounds(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        if !bed.store.capabilities().reverse_scans {
            return;
        }
        bed.rows(tricky()).await;
        check_reversed(bed, between(Some(b"a"), Some(b"aa"))).await;
        check_reversed(bed, between(Some(b"a\0"), None)).await;
        check_reversed(bed, between(None, Some(b"\xff\xff"))).await;
        check_reversed(bed, between(Some(b"b"), Some(b"a"))).await;
    }
    .boxed()
}

pub fn deleted_rows_are_left_out(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows((0..30).map(|i| format!("{i:02}"))).await;
        let gone = (0..30).filter(|i| i % 3 != 0);
        let marker = |i| RowMutation::new(format!("{i:02}"), vec![delete(CellKind::DeleteFamily, "a:", 1)]);
        bed.try_write(gone.map(marker).collect()).await.unwrap();
        for page_rows in [1, 4, 100] {
            let keys = bed.keys(Scan { page_rows, ..Scan::all() }).await;
            assert_eq!(keys, ["00", "03", "06", "09", "12", "15", "18", "21", "24", "27"]);
        }
    }
    .boxed()
}

pub fn columns_of_a_scan(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.write("1", vec![put("a:x", 1, "v"), put("b:y", 1, "v")]).await;
        bed.write("2", vec![put("b:y", 1, "v")]).await;
        bed.write("3", vec![put("a:x", 2, "v")]).await;
        assert_eq!(bed.keys(Scan { spec: columns(&["a:x"]), ..Scan::all() }).await, ["1", "3"]);
        let rows = bed.scan(Scan { spec: columns(&["b:y"]), ..Scan::all() }).await;
        assert!(rows.iter().all(|r| r.cells.len() == 1));
        assert_eq!(rows.len(), 2);
    }
    .boxed()
}

pub fn an_empty_table(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        assert!(bed.scan(Scan::all()).await.is_empty());
        let mut scanner = bed.store.scan(&bed.table, Scan::all()).await.unwrap();
        assert!(scanner.next_page().await.unwrap().done);
    }
    .boxed()
}

pub fn large_rows_make_short_pages(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let value = "x".repeat(1 << 20);
        for i in 0..12 {
            bed.write(format!("{i:02}"), vec![put("a:x", 1, &value)]).await;
        }
        let mut scanner = bed.store.scan(&bed.table, Scan::all()).await.unwrap();
        let first = scanner.next_page().await.unwrap();
        assert!(!first.done && first.rows.len() < 12, "a page of {} MiB", first.rows.len());
        assert_eq!(bed.keys(Scan::all()).await.len(), 12);
    }
    .boxed()
}

pub fn split_points_cover_all_rows_once(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        assert!(bed.store.split_points(&bed.table, 4).await.unwrap().is_empty(), "an empty table");
        bed.rows(["only"]).await;
        check_split(bed, 4).await;
        bed.rows(tricky()).await;
        check_split(bed, 3).await;
        check_split(bed, 1_000).await;
        // Far more rows under one prefix than elsewhere.
        bed.rows((0..3_000).map(|i| format!("dense/{i:05}"))).await;
        for parts in [0, 1, 2, 8, 64] {
            check_split(bed, parts).await;
        }
        let none = bed.store.split_points("none", 2).await;
        assert_eq!(kind_of(none), ErrorKind::NotFound);
    }
    .boxed()
}

async fn check_split(bed: &Bed, parts: usize) {
    let points = bed.store.split_points(&bed.table, parts).await.unwrap();
    assert!(points.len() <= parts.saturating_sub(1), "{} points for {parts} parts", points.len());
    assert!(points.windows(2).all(|w| w[0] < w[1]) && points.iter().all(|p| !p.is_empty()), "{points:?}");
    let starts = std::iter::once(None).chain(points.iter().map(Some));
    let stops = points.iter().map(Some).chain(std::iter::once(None));
    let mut found = Vec::new();
    for (start, stop) in starts.zip(stops) {
        found.extend(bed.keys(between(start.map(|k| &k[..]), stop.map(|k| &k[..]))).await);
    }
    assert_eq!(found, bed.keys(Scan::all()).await, "{parts} parts");
}
