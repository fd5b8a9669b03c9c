//! Filters. Of columns: missing ones are dropped, only the newest version counts.

use crate::bed::{Bed, column, columns, delete, kind_of, put, show, versions};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use sideindex::error::ErrorKind;
use sideindex::model::{CellKind, RowMutation};
use sideindex::store::{ColumnFilter, Comparison, Filter, FuzzyKey, ReadSpec, Scan};

fn filter(name: &str, comparison: Comparison, operand: &str) -> ReadSpec {
    let (family, qualifier) = column(name);
    let filter = ColumnFilter { family, qualifier, comparison, operand: operand.to_owned().into() };
    ReadSpec { filter: Some(Filter::Column(filter)), ..ReadSpec::default() }
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
        for max_versions in [1, bed.scan_versions(3).await.max_versions] {
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
        if bed.marks_versions().await {
            bed.write("2", vec![delete(CellKind::DeleteVersion, "a:x", 2)]).await;
            assert_eq!(bed.keys(scan(filter("a:x", Comparison::Equal, "v"))).await, ["2"]);
        } else {
            bed.write("2", vec![delete(CellKind::DeleteColumn, "a:x", 2)]).await;
        }
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

fn filtered(filter: Filter) -> ReadSpec {
    ReadSpec { filter: Some(filter), ..ReadSpec::default() }
}

fn column_filter(name: &str, comparison: Comparison, operand: &str) -> Filter {
    filter(name, comparison, operand).filter.unwrap()
}

fn by_row(comparison: Comparison, operand: &'static str) -> Filter {
    Filter::Row { comparison, operand: operand.into() }
}

/// A pattern in which `?` may be any byte.
fn fuzzy(pattern: &str) -> FuzzyKey {
    let mask = pattern.bytes().map(|b| if b == b'?' { FuzzyKey::ANY } else { FuzzyKey::FIXED });
    FuzzyKey::new(pattern.as_bytes(), mask.collect::<Bytes>()).unwrap()
}

/// `r`: two versions of `a:x`, `a:xy`, `a:y` and `b:x`.
async fn wide(bed: &Bed, row: &'static str) {
    let cells = ["a:x", "a:xy", "a:y", "b:x"].into_iter().flat_map(|c| [put(c, 1, "old"), put(c, 2, "new")]);
    bed.write(row, cells.collect()).await;
}

pub fn keys_only(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        wide(bed, "r").await;
        assert_eq!(bed.get("r", &filtered(Filter::KeyOnly)).await, ["a:x@2=", "a:xy@2=", "a:y@2=", "b:x@2="]);
        let first = Filter::All(vec![Filter::FirstKeyOnly, Filter::KeyOnly]);
        assert_eq!(bed.get("r", &filtered(first)).await, ["a:x@2="]);
    }
    .boxed()
}

pub fn first_keys(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        wide(bed, "r").await;
        bed.write("s", vec![put("b:y", 1, "v")]).await;
        let spec = ReadSpec { filter: Some(Filter::FirstKeyOnly), ..versions(3) };
        assert_eq!(bed.get("r", &spec).await, ["a:x@2=new"], "one version of one column");
        let spec = ReadSpec { filter: Some(Filter::FirstKeyOnly), ..columns(&["b:x", "a:y"]) };
        assert_eq!(bed.get("r", &spec).await, ["a:y@2=new"], "of the columns that are read");
        let rows = bed.scan(scan(filtered(Filter::FirstKeyOnly))).await;
        assert_eq!(rows.iter().map(|r| r.cells.len()).collect::<Vec<_>>(), [1, 1]);
    }
    .boxed()
}

pub fn column_prefixes(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        wide(bed, "r").await;
        bed.write("none", vec![put("a:z", 1, "v")]).await;
        let prefix = |of: &[&'static str]| Filter::ColumnPrefix(of.iter().map(|p| Bytes::from(*p)).collect());
        let spec = ReadSpec { filter: Some(prefix(&["x"])), ..versions(3) };
        let expected = ["a:x@2=new", "a:x@1=old", "a:xy@2=new", "a:xy@1=old", "b:x@2=new", "b:x@1=old"];
        assert_eq!(bed.get("r", &spec).await, expected);
        assert_eq!(bed.get("r", &filtered(prefix(&["y", "xy"]))).await, ["a:xy@2=new", "a:y@2=new"]);
        assert_eq!(bed.get("r", &filtered(prefix(&["xy", "x", ""]))).await.len(), 4, "one begins with the other");
        assert_eq!(bed.keys(scan(filtered(prefix(&["x"])))).await, ["r"], "a row without such a column is left out");
        assert_eq!(bed.keys(scan(filtered(prefix(&[""])))).await, ["none", "r"]);
    }
    .boxed()
}

pub fn column_pages(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        wide(bed, "r").await;
        let page = |limit, offset| ReadSpec { filter: Some(Filter::ColumnPage { limit, offset }), ..versions(3) };
        assert_eq!(bed.get("r", &page(2, 0)).await, ["a:x@2=new", "a:xy@2=new"], "the newest version of each");
        assert_eq!(bed.get("r", &page(2, 2)).await, ["a:y@2=new", "b:x@2=new"], "families count on");
        assert_eq!(bed.get("r", &page(9, 3)).await, ["b:x@2=new"]);
        assert!(bed.get("r", &page(9, 4)).await.is_empty());
        assert!(bed.get("r", &page(0, 0)).await.is_empty());
    }
    .boxed()
}

pub fn pages_of_rows(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        for (i, row) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            bed.write(row, vec![put("a:x", 1, if i % 2 == 0 { "even" } else { "odd" })]).await;
        }
        for page_rows in [1, 2, 100] {
            let page = |filter| Scan { page_rows, ..scan(filtered(filter)) };
            assert_eq!(bed.keys(page(Filter::Page(2))).await, ["a", "b"]);
            assert!(bed.keys(page(Filter::Page(0))).await.is_empty());
            assert_eq!(bed.keys(page(Filter::Page(9))).await.len(), 5);
            let even = column_filter("a:x", Comparison::Equal, "even");
            assert_eq!(
                bed.keys(page(Filter::All(vec![even, Filter::Page(2)]))).await,
                ["a", "c"],
                "of those that pass"
            );
            if bed.store.capabilities().reverse_scans {
                assert_eq!(bed.keys(Scan { reversed: true, ..page(Filter::Page(2)) }).await, ["e", "d"]);
            }
        }
        let keys = ["c", "a", "b"].map(Into::into);
        let rows = bed.store.get(&bed.table, &keys, &filtered(Filter::Page(1))).await.unwrap();
        assert!(rows.iter().all(|r| r.cells.len() == 1), "each key is a read of its own");
    }
    .boxed()
}

pub fn row_filters(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(["a", "b", "ba", "c"]).await;
        for (comparison, expected) in [
            (Comparison::Less, vec!["a"]),
            (Comparison::LessOrEqual, vec!["a", "b"]),
            (Comparison::Equal, vec!["b"]),
            (Comparison::NotEqual, vec!["a", "ba", "c"]),
            (Comparison::GreaterOrEqual, vec!["b", "ba", "c"]),
            (Comparison::Greater, vec!["ba", "c"]),
        ] {
            assert_eq!(bed.keys(scan(filtered(by_row(comparison, "b")))).await, expected, "{comparison:?}");
        }
        assert!(bed.get("a", &filtered(by_row(Comparison::Equal, "b"))).await.is_empty());
        assert_eq!(bed.get("b", &filtered(by_row(Comparison::Equal, "b"))).await.len(), 1);
    }
    .boxed()
}

pub fn fuzzy_rows(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        // Two letters, two digits, one letter: all that there are, and some that are longer.
        let keys = |length: usize| {
            (0..4_usize.pow(length as u32)).map(move |i| {
                (0..length).map(|p| b"\0aq\xff"[i / 4_usize.pow((length - 1 - p) as u32) % 4]).collect::<Vec<u8>>()
            })
        };
        bed.rows(keys(4).chain(keys(5).step_by(3))).await;
        let all = bed.keys(Scan::all()).await;
        let reversible = bed.store.capabilities().reverse_scans;
        for patterns in [
            vec!["a???"],
            vec!["?a??"],
            vec!["???q"],
            vec!["a??q"],
            vec!["?aq?"],
            vec!["aqaq"],
            vec!["zz??"],
            vec!["q"],
            vec!["????"],
            vec!["?a?a", "q???"],
            vec!["a?a?", "?q?q", "zzz?"],
            vec!["aaaaa", "qqqqq"],
            vec!["?aaaq"],
        ] {
            let fits = |key: &Bytes| {
                patterns.iter().any(|p| key.len() >= p.len() && p.bytes().zip(key).all(|(p, k)| p == b'?' || p == *k))
            };
            let expected: Vec<Bytes> = all.iter().filter(|k| fits(k)).cloned().collect();
            let filter = Filter::Fuzzy(patterns.iter().map(|p| fuzzy(p)).collect());
            for page_rows in [1, 1_000] {
                // Keys that are shorter than a pattern may come, too.
                let found = bed.keys(Scan { page_rows, ..scan(filtered(filter.clone())) }).await;
                let found: Vec<Bytes> = found.into_iter().filter(fits).collect();
                assert_eq!(found, expected, "{patterns:?}");
            }
            if reversible {
                let mut found = bed.keys(Scan { reversed: true, ..scan(filtered(filter)) }).await;
                found.reverse();
                assert_eq!(found.into_iter().filter(fits).collect::<Vec<_>>(), expected, "{patterns:?} reversed");
            }
        }
    }
    .boxed()
}

pub fn lists(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        for (row, x, y) in [("1", "a", "b"), ("2", "a", "c"), ("3", "b", "b"), ("4", "c", "c")] {
            bed.write(row, vec![put("a:x", 1, x), put("a:y", 1, y)]).await;
        }
        let x = || column_filter("a:x", Comparison::Equal, "a");
        let y = || column_filter("a:y", Comparison::Equal, "b");
        let keys = async |filter| bed.keys(scan(filtered(filter))).await;
        assert_eq!(keys(Filter::All(vec![x(), y()])).await, ["1"]);
        assert_eq!(keys(Filter::Any(vec![x(), y()])).await, ["1", "2", "3"]);
        let late = by_row(Comparison::Greater, "1");
        assert_eq!(keys(Filter::All(vec![late.clone(), Filter::Any(vec![x(), y()])])).await, ["2", "3"]);
        assert_eq!(
            keys(Filter::Any(vec![Filter::All(vec![x(), y()]), by_row(Comparison::Equal, "4")])).await,
            ["1", "4"]
        );
        let rows = bed.scan(scan(filtered(Filter::Any(vec![x(), y()])))).await;
        assert!(rows.iter().all(|r| r.cells.len() == 2), "whole rows");
        let narrow = Filter::All(vec![late, Filter::ColumnPrefix(vec!["y".into()])]);
        assert_eq!(bed.get("2", &filtered(narrow.clone())).await, ["a:y@1=c"]);
        assert!(bed.get("1", &filtered(narrow)).await.is_empty());
    }
    .boxed()
}

pub fn filters_that_cannot_be(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(["r"]).await;
        let x = || column_filter("a:x", Comparison::Equal, "a");
        let prefix = || Filter::ColumnPrefix(vec!["x".into()]);
        for filter in [
            Filter::All(vec![]),
            Filter::Any(vec![]),
            Filter::Fuzzy(vec![]),
            Filter::ColumnPrefix(vec![]),
            Filter::All(vec![x(), prefix()]),
            Filter::All(vec![prefix(), Filter::FirstKeyOnly]),
            Filter::Any(vec![x(), Filter::All(vec![prefix()])]),
            Filter::Any(vec![Filter::KeyOnly, x()]),
            Filter::All(vec![Filter::Page(1), x()]),
            Filter::All(vec![x(), Filter::All(vec![Filter::Page(1)])]),
            Filter::Any(vec![x(), Filter::Page(1)]),
        ] {
            let refused = bed.store.scan(&bed.table, scan(filtered(filter.clone()))).await.map(|_| ());
            assert_eq!(kind_of(refused), ErrorKind::InvalidInput, "{filter:?}");
            let refused = bed.store.get(&bed.table, &["r".into()], &filtered(filter)).await;
            assert_eq!(kind_of(refused), ErrorKind::InvalidInput);
        }
        for (pattern, mask) in [("", ""), ("ab", "\u{2}"), ("a", "\u{1}"), ("a", "\0")] {
            assert_eq!(kind_of(FuzzyKey::new(pattern.as_bytes(), mask)), ErrorKind::InvalidInput);
        }
    }
    .boxed()
}
