//! What must be the same on every page of an answer, as hashes.

use crate::query::plan::{Access, Candidates, Path, Plan};
use std::fmt::{self, Write};
use xxhash_rust::xxh3::Xxh3;

/// Hashes what is written to it.
struct Hashing(Xxh3);

impl fmt::Write for Hashing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

fn hash(what: fmt::Arguments<'_>) -> u128 {
    let mut hashing = Hashing(Xxh3::new());
    // Hashing does not fail.
    let _ = hashing.write_fmt(what);
    hashing.0.digest128()
}

/// The bound query, with the values of its parameters, and the consistency.
pub(super) fn query(plan: &Plan) -> u128 {
    let q = &plan.query;
    let asked = (&q.table, &q.slots, &q.output, &q.predicate, &q.order, q.limit, q.offset);
    hash(format_args!("{asked:?} {:?}", plan.consistency))
}

/// The paths read, and what becomes of their rows.
pub(super) fn plan(plan: &Plan) -> u128 {
    let paths: Vec<u128> = plan.paths().iter().map(path).collect();
    hash(format_args!("{paths:?} {:?}", plan.sorting))
}

/// A path: of a definition the code and the generation, but not the epoch, which changes while it is what it was.
fn path(path: &Path) -> u128 {
    match path {
        Path::Get(get) => hash(format_args!("get {:?}", get.keys)),
        Path::Rows(rows) => hash(format_args!("rows {:?}", rows.ranges)),
        Path::Index(index) => {
            let definition = &index.definition;
            hash(format_args!("index {} {} {:?}", definition.code, definition.generation, index.ranges))
        }
    }
}

/// The numbers of the alternatives that were chosen, in the order of the decisions.
pub(super) fn choices(candidates: &Candidates, decisions: &[usize]) -> Vec<u32> {
    let mut decisions = decisions.iter().copied();
    let mut out = Vec::new();
    walk(&candidates.roots, &mut |ways| {
        let way = decisions.next().filter(|way| *way < ways.len())?;
        out.push(number(ways, way, candidates));
        Some(way)
    });
    out
}

/// The decisions that chose the alternatives of these numbers; none if they are not all there.
pub(super) fn decisions(candidates: &Candidates, choices: &[u32]) -> Option<Vec<usize>> {
    let mut choices = choices.iter();
    let mut out = Vec::new();
    if choices.len() > 0 {
        walk(&candidates.roots, &mut |ways| {
            let choice = choices.next()?;
            let way = (0..ways.len()).find(|way| number(ways, *way, candidates) == *choice)?;
            out.push(way);
            Some(way)
        })?;
    }
    choices.next().is_none().then_some(out)
}

/// Goes through the decisions: each may lead to others.
fn walk(ways: &[Access], decide: &mut dyn FnMut(&[Access]) -> Option<usize>) -> Option<()> {
    let way = decide(ways)?;
    match &ways[way] {
        Access::Union(arms) => arms.iter().try_for_each(|arm| walk(arm, decide)),
        Access::Nothing | Access::Path(_) => Some(()),
    }
}

/// A number for one of several alternatives, which does not depend on how many there are.
fn number(ways: &[Access], way: usize, candidates: &Candidates) -> u32 {
    let whole = match &ways[way] {
        Access::Nothing => 0,
        Access::Path(number) => path(&candidates.paths[*number]),
        // The first OR, the second, …
        Access::Union(_) => {
            let before = ways[..way].iter().filter(|way| matches!(way, Access::Union(_))).count();
            hash(format_args!("union {before}"))
        }
    };
    (whole & 0xFFFF_FFFF) as u32
}
