//! One history: what is written, in three parts, and what is read after each.

use crate::known;
use crate::random::{ROWS, bytes, family, mutation, scan, spec};
use crate::reads::longest_pattern;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sideindex::model::{Cell, CellKind, RowMutation};
use sideindex::store::{ColumnCheck, Filter, FuzzyKey, ReadSpec, Scan};
use std::collections::HashSet;

/// A column that only increments write: their timestamps are the clock's.
pub const COUNTER: &[u8] = b"n";

/// One call.
#[derive(Debug, Clone)]
pub enum Call {
    Write(Vec<RowMutation>),
    Increment { row: Bytes, family: Bytes, qualifier: Bytes, amount: i64 },
    Check(ColumnCheck, RowMutation),
}

/// Calls, and reads after them.
#[derive(Debug, Clone)]
pub struct Part {
    pub calls: Vec<Call>,
    pub gets: Vec<ReadSpec>,
    pub scans: Vec<Scan>,
}

/// What happens under one prefix of row keys.
#[derive(Debug, Clone)]
pub struct History {
    pub seed: u64,
    pub prefix: Bytes,
    /// In memory, after a flush, after a major compaction.
    pub parts: [Part; 3],
}

fn call() -> impl Strategy<Value = Call> {
    let increment = (bytes(&ROWS), family(), -3..4_i64).prop_map(|(row, family, amount)| Call::Increment {
        row,
        family,
        qualifier: Bytes::from_static(COUNTER),
        amount,
    });
    let expected = proptest::option::of((0..4_u8).prop_map(|v| Bytes::from(vec![v])));
    let check = (family(), prop_oneof![Just("x"), Just("xy")], expected, mutation()).prop_map(
        |(family, qualifier, expected, mutation)| {
            Call::Check(ColumnCheck { family, qualifier: qualifier.into(), expected }, mutation)
        },
    );
    let refused = (mutation(), 0..4_u8).prop_map(|(mut mutation, how)| {
        match how {
            0 => mutation.cells.push(Cell::put("zz", "x", 1, "v")),
            1 => mutation.cells.push(Cell::put("a", "x", -1, "v")),
            2 => mutation.cells.push(Cell::delete(CellKind::DeleteFamily, "a", "x", 1)),
            _ => mutation.row = Bytes::from(vec![b'k'; 32_768]),
        }
        Call::Write(vec![mutation])
    });
    prop_oneof![12 => vec(mutation(), 1..5).prop_map(Call::Write), 2 => increment, 2 => check, 1 => refused]
}

fn part() -> impl Strategy<Value = Part> {
    // A page alone, or after others, in one of a few scans; not after patterns, since rows that may come or not would count.
    let scan = (scan(), proptest::option::weighted(0.1, 1..4_u64)).prop_map(|(mut scan, page)| {
        if let Some(rows) = page.filter(|_| !scan.spec.raw) {
            if scan.spec.filter.as_ref().is_some_and(|f| longest_pattern(f) > 0) {
                return scan;
            }
            scan.spec.filter = Some(match scan.spec.filter.take() {
                None => Filter::Page(rows),
                Some(filter) => Filter::All(vec![filter, Filter::Page(rows)]),
            });
        }
        scan
    });
    (vec(call(), 0..6), vec(spec(), 1..3), vec(scan, 1..4)).prop_map(|(calls, gets, scans)| Part { calls, gets, scans })
}

impl History {
    pub fn of_seed(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let [a, b, c] = [part(), part(), part()].map(|p| p.new_tree(&mut runner).unwrap().current());
        let mut history = Self { seed, prefix: (seed as u32).to_be_bytes().to_vec().into(), parts: [a, b, c] };
        history.under_its_prefix();
        history.without_what_is_known();
        history
    }

    /// The row keys it writes and reads.
    pub fn rows(&self) -> Vec<Bytes> {
        ROWS.iter().map(|row| self.key(row)).collect()
    }

    fn key(&self, row: &[u8]) -> Bytes {
        [&self.prefix, row].concat().into()
    }

    fn under_its_prefix(&mut self) {
        let prefix = self.prefix.clone();
        let under = |row: &mut Bytes| {
            if row.len() < 1_000 {
                *row = [&prefix, &row[..]].concat().into();
            }
        };
        // All prefixes are four bytes, and none is the last.
        let end = Bytes::from((u32::from_be_bytes(prefix[..].try_into().unwrap()) + 1).to_be_bytes().to_vec());
        for part in &mut self.parts {
            for call in &mut part.calls {
                match call {
                    Call::Write(mutations) => mutations.iter_mut().for_each(|m| under(&mut m.row)),
                    Call::Increment { row, .. } => under(row),
                    Call::Check(_, mutation) => under(&mut mutation.row),
                }
            }
            part.gets.iter_mut().flat_map(|spec| &mut spec.filter).for_each(|f| filter_under(f, &prefix));
            for scan in &mut part.scans {
                scan.start = Some([&prefix, &scan.start.take().unwrap_or_default()[..]].concat().into());
                scan.stop = Some(scan.stop.take().map_or(end.clone(), |s| [&prefix, &s[..]].concat().into()));
                scan.spec.filter.iter_mut().for_each(|f| filter_under(f, &prefix));
            }
        }
    }

    /// Leaves out HBase's named defects, and what a flush decides: it drops versions that nobody can read, without a look at older
    /// files. A marker on one version, in another file, shows them again, or doesn't. So the second part has no such markers, nor
    /// what those of the first part hide.
    fn without_what_is_known(&mut self) {
        let of_version = |c: &Cell| matches!(c.kind, CellKind::DeleteVersion | CellKind::DeleteFamilyVersion);
        let mut hidden = HashSet::new();
        let place = |row: &Bytes, c: &Cell| {
            let qualifier = (c.kind != CellKind::DeleteFamilyVersion).then(|| c.qualifier.clone());
            (row.clone(), c.family.clone(), qualifier, c.timestamp)
        };
        let [first, second, _] = &mut self.parts;
        each_mutation(first, |m| hidden.extend(m.cells.iter().filter(|c| of_version(c)).map(|c| place(&m.row, c))));
        each_mutation(second, |m| {
            let RowMutation { row, cells } = m;
            let family = |c: &Cell| (row.clone(), c.family.clone(), None, c.timestamp);
            cells.retain(|c| !of_version(c) && !hidden.contains(&place(row, c)) && !hidden.contains(&family(c)));
        });
        let mut all: Vec<RowMutation> = Vec::new();
        self.parts.iter_mut().for_each(|p| each_mutation(p, |m| all.push(m.clone())));
        let calls = self.parts.iter().flat_map(|p| &p.calls);
        let counters = calls.filter_map(|call| match call {
            Call::Increment { row, family, .. } => Some((row.clone(), family.clone())),
            _ => None,
        });
        known::sum_under_a_future_marker(&counters.collect(), &mut all);
        known::empty_qualifier_under_family_marker(&mut all);
        let reads =
            self.parts.iter_mut().flat_map(|p| p.gets.iter_mut().chain(p.scans.iter_mut().map(|s| &mut s.spec)));
        known::empty_qualifier_counts_each_version(self.seed, &mut all, reads);
        let mut all = all.into_iter();
        self.parts.iter_mut().for_each(|p| each_mutation(p, |m| *m = all.next().unwrap()));
    }
}

fn each_mutation(part: &mut Part, mut visit: impl FnMut(&mut RowMutation)) {
    for call in &mut part.calls {
        match call {
            Call::Write(mutations) => mutations.iter_mut().for_each(&mut visit),
            Call::Check(_, mutation) => visit(mutation),
            Call::Increment { .. } => {}
        }
    }
}

/// Visits a filter, and those in its list.
pub fn filters_of(filter: &mut Filter, visit: &mut impl FnMut(&mut Filter)) {
    visit(filter);
    if let Filter::All(list) | Filter::Any(list) = filter {
        list.iter_mut().for_each(|f| filters_of(f, visit));
    }
}

fn filter_under(filter: &mut Filter, prefix: &[u8]) {
    filters_of(filter, &mut |filter| match filter {
        Filter::Row { operand, .. } => *operand = [prefix, operand].concat().into(),
        Filter::Fuzzy(keys) => {
            for key in keys {
                let mask = [&vec![FuzzyKey::FIXED; prefix.len()], &key.mask()[..]].concat();
                *key = FuzzyKey::new(&[prefix, key.pattern()].concat(), mask).unwrap();
            }
        }
        _ => {}
    });
}
