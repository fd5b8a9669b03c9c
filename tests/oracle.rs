//! The embedded store against a naive model: a list of everything written, searched by brute force.
//!
//! The model shares no code with the store but the data types. It looks at every marker for every put and sorts at the
//! end, where the store streams.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "support/random.rs"]
mod random;

use bytes::Bytes;
use futures::executor::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use random::{FAMILIES, ROWS, mutation, read_all, scan, spec};
use sideindex::model::{Cell, CellKind, Row, RowMutation};
use sideindex::store::embedded::{DurabilityMode, EmbeddedStore, Options};
use sideindex::store::{
    Columns, Comparison, Durability, Filter, FuzzyKey, Read, ReadSpec, Scan, Store, TableDescriptor,
};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

/// Everything written, each (row, column, timestamp, kind) once: the last one.
#[derive(Default)]
struct Model(Vec<(Bytes, Cell)>);

impl Model {
    fn write(&mut self, row: &Bytes, cell: &Cell) {
        let same = |(r, c): &(Bytes, Cell)| {
            r == row
                && (&c.family, &c.qualifier, c.timestamp, c.kind)
                    == (&cell.family, &cell.qualifier, cell.timestamp, cell.kind)
        };
        self.0.retain(|written| !same(written));
        self.0.push((row.clone(), cell.clone()));
    }

    fn hidden(&self, row: &Bytes, put: &Cell) -> bool {
        self.0.iter().filter(|(r, m)| r == row && m.family == put.family).any(|(_, m)| match m.kind {
            CellKind::Put => false,
            CellKind::DeleteFamily => put.timestamp <= m.timestamp,
            CellKind::DeleteFamilyVersion => put.timestamp == m.timestamp,
            CellKind::DeleteColumn => put.qualifier == m.qualifier && put.timestamp <= m.timestamp,
            CellKind::DeleteVersion => put.qualifier == m.qualifier && put.timestamp == m.timestamp,
        })
    }

    /// Keeps what reads show, as a major compaction does.
    fn compact(&mut self) {
        let keeps = |(row, cell): &(Bytes, Cell)| {
            let shown = |(r, c): &&(Bytes, Cell)| {
                r == row
                    && c.kind == CellKind::Put
                    && (&c.family, &c.qualifier) == (&cell.family, &cell.qualifier)
                    && !self.hidden(r, c)
            };
            let newer = self.0.iter().filter(shown).filter(|(_, c)| c.timestamp > cell.timestamp).count();
            let kept = FAMILIES.iter().find(|(name, _)| *name == cell.family).unwrap().1;
            cell.kind == CellKind::Put && !self.hidden(row, cell) && newer < kept as usize
        };
        let kept = self.0.iter().filter(|c| keeps(c)).cloned().collect();
        self.0 = kept;
    }

    fn row(&self, row: &Bytes, spec: &ReadSpec) -> Row {
        let listed = |c: &Cell| match &spec.columns {
            Columns::All => true,
            Columns::Exact(columns) => columns.contains(&(c.family.clone(), c.qualifier.clone())),
        };
        let family_listed = |c: &Cell| match &spec.columns {
            Columns::All => true,
            Columns::Exact(columns) => columns.iter().any(|(f, _)| *f == c.family),
        };
        let of_row = self.0.iter().filter(|(r, _)| r == row).map(|(_, c)| c.clone());
        let family_wide = |c: &Cell| matches!(c.kind, CellKind::DeleteFamily | CellKind::DeleteFamilyVersion);
        let mut cells: Vec<Cell> = if spec.raw {
            of_row.filter(|c| listed(c) || (family_wide(c) && family_listed(c))).collect()
        } else {
            of_row.filter(|c| c.kind == CellKind::Put && listed(c) && !self.hidden(row, c)).collect()
        };
        cells.sort_by_key(|c| (c.family.clone(), c.qualifier.clone(), Reverse(c.timestamp), Reverse(c.kind.code())));
        if !spec.raw {
            let all = cells.clone();
            cells.retain(|c| {
                let kept = FAMILIES.iter().find(|(name, _)| *name == c.family).unwrap().1;
                let newer = all
                    .iter()
                    .filter(|o| o.family == c.family && o.qualifier == c.qualifier && o.timestamp > c.timestamp)
                    .count();
                newer < kept.min(spec.max_versions) as usize
            });
            if let Some(filter) = &spec.filter {
                let kept: Vec<bool> = (0..cells.len()).map(|i| passes(filter, row, &cells, i)).collect();
                let mut kept = kept.into_iter();
                cells.retain(|_| kept.next().unwrap());
                let values = matches!(filter, Filter::All(list) if list.contains(&Filter::KeyOnly));
                cells.iter_mut().filter(|_| values).for_each(|c| c.value = Bytes::new());
            }
        }
        Row { key: row.clone(), cells }
    }

    fn scan(&self, scan: &Scan) -> Vec<Row> {
        let keys: BTreeSet<Bytes> = self.0.iter().map(|(r, _)| r.clone()).collect();
        let mut rows: Vec<Row> = keys
            .iter()
            .filter(|k| scan.start.as_ref().is_none_or(|s| *k >= s) && scan.stop.as_ref().is_none_or(|s| *k < s))
            .map(|k| self.row(k, &scan.spec))
            .filter(|r| !r.cells.is_empty())
            .collect();
        if scan.reversed {
            rows.reverse();
        }
        rows
    }
}

fn compares(left: &[u8], comparison: Comparison, right: &[u8]) -> bool {
    match comparison {
        Comparison::Less => left < right,
        Comparison::LessOrEqual => left <= right,
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::GreaterOrEqual => left >= right,
        Comparison::Greater => left > right,
    }
}

/// Whether the `i`-th of a row's cells passes a filter.
fn passes(filter: &Filter, row: &[u8], cells: &[Cell], i: usize) -> bool {
    let before = |same: bool| {
        let column = |c: &Cell| (c.family.clone(), c.qualifier.clone());
        let here = column(&cells[i]);
        let columns: BTreeSet<_> = cells[..i].iter().map(column).filter(|c| same == (*c == here)).collect();
        columns.len()
    };
    match filter {
        Filter::Column(f) => {
            let of = cells.iter().filter(|c| c.family == f.family && c.qualifier == f.qualifier);
            of.max_by_key(|c| c.timestamp).is_some_and(|c| compares(&c.value, f.comparison, &f.operand))
        }
        Filter::Row { comparison, operand } => compares(row, *comparison, operand),
        Filter::Fuzzy(keys) => keys.iter().any(|key| {
            let bytes = key.pattern().iter().zip(key.mask()).zip(row);
            bytes.into_iter().all(|((p, mask), r)| *mask == FuzzyKey::ANY || p == r)
        }),
        Filter::ColumnPrefix(prefixes) => prefixes.iter().any(|p| cells[i].qualifier.starts_with(p)),
        Filter::ColumnPage { limit, offset } => {
            before(true) == 0 && before(false) >= *offset && before(false) < offset + limit
        }
        Filter::FirstKeyOnly => i == 0,
        Filter::KeyOnly => true,
        Filter::Page(_) => panic!("counted by nobody here"),
        Filter::All(list) => list.iter().all(|f| passes(f, row, cells, i)),
        Filter::Any(list) => list.iter().any(|f| passes(f, row, cells, i)),
    }
}

/// Compares all that can be read.
async fn compare(reader: &dyn Read, table: &str, model: &Model, specs: &[ReadSpec], scans: &[Scan]) {
    let keys: Vec<Bytes> = ROWS.iter().map(|r| Bytes::from_static(r)).collect();
    for spec in specs {
        let found = reader.get(table, &keys, spec).await.unwrap();
        let expected: Vec<Row> = keys.iter().map(|k| model.row(k, spec)).collect();
        assert_eq!(found, expected, "get with {spec:?}");
    }
    for scan in scans {
        assert_eq!(read_all(reader, table, scan.clone()).await, model.scan(scan), "{scan:?}");
    }
}

fn descriptor() -> TableDescriptor {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    random::descriptor(format!("case-{}", NUMBER.fetch_add(1, Ordering::Relaxed)))
}

/// The same mutation spread out, so that columns have more versions than are read one by one: timestamps a thousand apart,
/// and whatever concerns one version a run of 140.
fn spread(mutation: RowMutation) -> RowMutation {
    let cells = mutation.cells.into_iter().flat_map(|c| {
        let timestamp = c.timestamp.min(9) * 1_000;
        let run = if matches!(c.kind, CellKind::DeleteColumn | CellKind::DeleteFamily) { 1 } else { 140 };
        (0..run).map(move |i| Cell { timestamp: timestamp + i, ..c.clone() })
    });
    RowMutation { row: mutation.row, cells: cells.collect() }
}

/// One call to the store.
#[derive(Debug, Clone)]
enum Call {
    Write(Vec<RowMutation>),
    Compact,
}

fn calls(compactions: u32) -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        5 => vec(mutation(), 1..4).prop_map(Call::Write),
        compactions => Just(Call::Compact),
    ];
    vec(call, 0..12)
}

/// Writes in some calls, takes a snapshot half-way, and compares both the snapshot and the end with the model.
fn check(memtable_bytes: u64, cases: u32, compactions: u32, shape: fn(RowMutation) -> RowMutation) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: DurabilityMode::Os, memtable_bytes, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    let strategy = (calls(compactions), calls(compactions), vec(spec(), 1..5), vec(scan(), 1..8));
    proptest!(ProptestConfig { cases, ..ProptestConfig::default() }, |((first, second, specs, scans) in strategy)| {
        block_on(async {
            let descriptor = descriptor();
            let table = descriptor.name.as_str();
            store.create_table(&descriptor).await.unwrap();
            let (mut model, mut earlier) = (Model::default(), Model::default());
            let mut snapshot = store.snapshot().await.unwrap();
            for (half, calls) in [first, second].into_iter().enumerate() {
                for call in calls {
                    let Call::Write(mutations) = call else {
                        store.compact(Some(table)).await.unwrap();
                        model.compact();
                        continue;
                    };
                    let mutations: Vec<RowMutation> = mutations.into_iter().map(shape).collect();
                    for m in &mutations {
                        m.cells.iter().for_each(|c| model.write(&m.row, c));
                    }
                    store.mutate(table, mutations, Durability::Relaxed).await.unwrap();
                }
                if half == 0 {
                    snapshot = store.snapshot().await.unwrap();
                    earlier.0.clone_from(&model.0);
                }
            }
            compare(&store, table, &model, &specs, &scans).await;
            compare(&*snapshot, table, &earlier, &specs, &scans).await;
        });
    });
}

#[test]
fn reads_agree_with_the_model_in_memory() {
    check(16 << 20, 256, 0, |m| m);
}

#[test]
fn reads_agree_with_the_model_across_files() {
    // Small enough that nearly every write starts a file, which brings flushing and compaction into play.
    check(1 << 10, 64, 0, |m| m);
}

#[test]
fn reads_that_skip_agree_with_the_model() {
    check(16 << 20, 24, 0, spread);
}

#[test]
fn reads_agree_with_the_model_between_compactions() {
    check(16 << 20, 40, 2, |m| m);
}

#[test]
fn rows_that_gather_markers_agree_with_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: DurabilityMode::Os, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    let strategy = (vec(mutation(), 40..60), vec(spec(), 1..4), any::<u64>());
    proptest!(ProptestConfig { cases: 12, ..ProptestConfig::default() }, |((shapes, specs, seed) in strategy)| {
        block_on(async {
            let descriptor = descriptor();
            let table = descriptor.name.as_str();
            store.create_table(&descriptor).await.unwrap();
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut model, mut written) = (Model::default(), 0);
            for round in 0..16 {
                let mut calls = shapes.clone();
                random.shuffle(&mut calls);
                for mut call in calls {
                    // Few rows, and times that mostly go up, so that what was hidden stays behind.
                    call.row = Bytes::from_static(ROWS[random.usize(..2)]);
                    call.cells.iter_mut().for_each(|c| c.timestamp = c.timestamp.min(9) + random.i64(0..=round * 8));
                    call.cells.push(Cell::delete(CellKind::DeleteColumn, "a", "x", random.i64(0..=round * 8)));
                    call.cells.iter().for_each(|c| model.write(&call.row, c));
                    written += call.cells.len();
                    store.mutate(table, vec![call], Durability::Relaxed).await.unwrap();
                }
                // What the committer removed is removed before it takes another request.
                store.sync().await.unwrap();
                let specs: Vec<ReadSpec> = specs.iter().map(|s| ReadSpec { raw: false, ..s.clone() }).collect();
                compare(&store, table, &model, &specs, &[]).await;
            }
            let raw = Scan { spec: ReadSpec { raw: true, ..ReadSpec::default() }, ..Scan::all() };
            let left: usize = read_all(&store, table, raw).await.iter().map(|r| r.cells.len()).sum();
            assert!(left < model.0.len(), "nothing was removed: {left} of {} distinct, {written} written", model.0.len());
        });
    });
}
