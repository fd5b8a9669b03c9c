//! Random cells, mutations and reads that make trouble: colliding timestamps, keys and qualifiers that are prefixes of each
//! other, all delete kinds, filters in lists.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sideindex::model::{Cell, CellKind, MAX_TIMESTAMP, Row, RowMutation};
use sideindex::store::{ColumnFilter, Columns, Comparison, Filter, FuzzyKey, Read, ReadSpec, Scan, TableDescriptor};

/// One family's name starts with the other's; one keeps more versions.
pub const FAMILIES: [(&str, u32); 3] = [("a", 2), ("ab", 5), ("b", 1)];
pub const ROWS: [&[u8]; 8] = [b"\0", b"\0\x01", b"a", b"a\0", b"a\0\xff", b"ab", b"\xff", b"\xff\xff"];
pub const QUALIFIERS: [&[u8]; 6] = [b"", b"\0", b"x", b"x\0", b"xy", b"\xff"];

/// One of some constants.
pub fn bytes(from: &'static [&'static [u8]]) -> impl Strategy<Value = Bytes> {
    select(from).prop_map(Bytes::from_static)
}

pub fn family() -> impl Strategy<Value = Bytes> {
    select(&FAMILIES[..]).prop_map(|(name, _)| name.into())
}

pub fn cell() -> impl Strategy<Value = Cell> {
    let kind = prop_oneof![
        6 => Just(CellKind::Put),
        1 => Just(CellKind::DeleteVersion),
        1 => Just(CellKind::DeleteFamilyVersion),
        1 => Just(CellKind::DeleteColumn),
        1 => Just(CellKind::DeleteFamily),
    ];
    let timestamp = prop_oneof![9 => 0..8i64, 1 => select(&[MAX_TIMESTAMP, MAX_TIMESTAMP - 1, 1 << 40][..])];
    (family(), bytes(&QUALIFIERS), timestamp, kind, 0..4u8).prop_map(|(family, qualifier, timestamp, kind, value)| {
        match kind {
            CellKind::Put => Cell::put(family, qualifier, timestamp, vec![value]),
            kind => Cell::delete(kind, family, qualifier, timestamp),
        }
    })
}

pub fn mutation() -> impl Strategy<Value = RowMutation> {
    (bytes(&ROWS), vec(cell(), 1..6)).prop_map(|(row, cells)| RowMutation { row, cells })
}

pub fn spec() -> impl Strategy<Value = ReadSpec> {
    let columns = prop_oneof![
        2 => Just(Columns::All),
        1 => vec((family(), bytes(&QUALIFIERS)), 0..6).prop_map(Columns::Exact),
    ];
    (columns, 1..7u32, any::<bool>(), proptest::option::of(filter()))
        .prop_map(|(columns, max_versions, raw, filter)| ReadSpec { columns, max_versions, raw, filter })
}

/// Filters of every kind but the page, in lists that are allowed.
pub fn filter() -> impl Strategy<Value = Filter> {
    let comparison = || {
        select(
            &[
                Comparison::Less,
                Comparison::LessOrEqual,
                Comparison::Equal,
                Comparison::NotEqual,
                Comparison::GreaterOrEqual,
                Comparison::Greater,
            ][..],
        )
    };
    let column = (family(), bytes(&QUALIFIERS), comparison(), 0..4u8).prop_map(|(family, qualifier, comparison, v)| {
        Filter::Column(ColumnFilter { family, qualifier, comparison, operand: vec![v].into() })
    });
    let row =
        (comparison(), bytes(&ROWS)).prop_map(|(comparison, operand)| Filter::Row { comparison, operand }).boxed();
    let fuzzy = vec((bytes(&ROWS), any::<[bool; 3]>()), 1..4)
        .prop_map(|keys| {
            let key = |(pattern, fixed): (Bytes, [bool; 3])| {
                let mask: Vec<u8> = pattern.iter().zip(fixed).map(|(_, f)| if f { 0xff } else { 2 }).collect();
                FuzzyKey::new(&pattern, mask).unwrap()
            };
            Filter::Fuzzy(keys.into_iter().map(key).collect())
        })
        .boxed();
    let by_row = prop_oneof![column, row.clone(), fuzzy.clone()].prop_recursive(2, 6, 3, |inner| {
        prop_oneof![vec(inner.clone(), 1..4).prop_map(Filter::All), vec(inner, 1..4).prop_map(Filter::Any)]
    });
    let by_cell = prop_oneof![
        vec(bytes(&QUALIFIERS), 1..3).prop_map(Filter::ColumnPrefix),
        (0..4usize, 0..4usize).prop_map(|(limit, offset)| Filter::ColumnPage { limit, offset }),
        Just(Filter::FirstKeyOnly),
    ]
    .boxed();
    prop_oneof![
        3 => by_row,
        2 => by_cell.clone(),
        1 => (prop_oneof![row, fuzzy], by_cell).prop_map(|(a, b)| Filter::All(vec![a, b, Filter::KeyOnly])),
    ]
}

pub fn scan() -> impl Strategy<Value = Scan> {
    let bound = || proptest::option::of(prop_oneof![bytes(&ROWS), vec(any::<u8>(), 0..3).prop_map(Bytes::from)]);
    (bound(), bound(), any::<bool>(), spec(), 1..10usize).prop_map(|(start, stop, reversed, spec, page_rows)| Scan {
        start,
        stop,
        reversed,
        spec,
        page_rows,
    })
}

/// All rows of a scan.
pub async fn read_all(reader: &dyn Read, table: &str, scan: Scan) -> Vec<Row> {
    let mut scanner = reader.scan(table, scan).await.unwrap();
    let mut rows = Vec::new();
    loop {
        let page = scanner.next_page().await.unwrap();
        rows.extend(page.rows);
        if page.done {
            return rows;
        }
    }
}

/// A table of the families.
pub fn descriptor(name: String) -> TableDescriptor {
    let mut descriptor = TableDescriptor::new(name, &FAMILIES.map(|(name, _)| name), 1);
    for (family, (_, versions)) in descriptor.families.iter_mut().zip(FAMILIES) {
        family.max_versions = versions;
    }
    descriptor
}
