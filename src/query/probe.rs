//! Estimating paths by reading a little of each.
//!
//! All paths are read in step, twice as far each round, until the cheapest is read to its end: so the probe costs no more
//! than a few times what the cheapest path does.

use super::bind::BoundQuery;
use super::plan::{Access, Candidates, Estimate, Path, best, enough};
use crate::error::Result;
use crate::store::{Read, ReadSpec, Scan, Scanner};
use bytes::Bytes;

/// Entries of each path read in the first round.
const FIRST_ROUND: u64 = 64;
/// Entries of each path read at most. Paths that all have more are taken for equal.
const MOST: u64 = 16_384;
/// Entries a page.
const PAGE: usize = 256;

/// The estimates of all paths, read as far as the choice needs it; nothing is read where there is no choice, unless `always`.
/// `tables` are the base table and the index table.
pub(crate) async fn probe(
    reader: &dyn Read,
    tables: (&str, &str),
    candidates: &Candidates,
    query: &BoundQuery,
    always: bool,
) -> Result<Vec<Estimate>> {
    let mut estimates = vec![Estimate::default(); candidates.paths.len()];
    if !always && !is_choice(&candidates.roots) {
        return Ok(estimates);
    }
    let mut probes: Vec<Option<Probe>> = candidates.paths.iter().map(|path| Probe::new(path, tables)).collect();
    let mut budget = FIRST_ROUND;
    loop {
        for (number, (probe, estimate)) in probes.iter_mut().zip(&mut estimates).enumerate() {
            if let Some(probe) = probe {
                let goal = enough(number, candidates, query).unwrap_or(u64::MAX).min(budget);
                probe.advance(reader, goal).await?;
                let entries = if probe.done { probe.entries } else { probe.entries.min(budget) };
                *estimate = Estimate { entries, exact: probe.done };
            }
        }
        let settled = best(&candidates.roots, candidates, &estimates, query).is_none_or(|choice| choice.cost.exact);
        if settled || budget >= MOST {
            return Ok(estimates);
        }
        budget = (budget * 2).min(MOST);
    }
}

/// Whether there is anything to choose.
fn is_choice(ways: &[Access]) -> bool {
    ways.len() > 1
        || ways.iter().any(|way| match way {
            Access::Union(arms) => arms.iter().any(|ways| is_choice(ways)),
            Access::Nothing | Access::Path(_) => false,
        })
}

/// One path, read so far.
struct Probe<'a> {
    table: &'a str,
    /// What is still to be opened, the next last.
    ranges: Vec<(Option<Bytes>, Option<Bytes>)>,
    scanner: Option<Box<dyn Scanner>>,
    entries: u64,
    /// Ranges opened: each is taken to cost as much as an entry.
    opened: u64,
    done: bool,
}

impl<'a> Probe<'a> {
    /// None for rows by their keys, which are counted already.
    fn new(path: &Path, (base, index): (&'a str, &'a str)) -> Option<Self> {
        let (table, mut ranges): (_, Vec<_>) = match path {
            Path::Get(_) => return None,
            Path::Rows(rows) => (base, rows.ranges.clone()),
            Path::Index(path) => {
                let salted = path.ranges.iter().flat_map(|range| range.salts.clone().map(|salt| range.bounds(salt)));
                (index, salted.map(|(start, stop)| (Some(start), stop)).collect())
            }
        };
        ranges.reverse();
        let done = ranges.is_empty();
        Some(Self { table, ranges, scanner: None, entries: 0, opened: 0, done })
    }

    /// Reads on until `goal` entries are known.
    async fn advance(&mut self, reader: &dyn Read, goal: u64) -> Result<()> {
        while !self.done && self.entries + self.opened < goal {
            let scanner = match &mut self.scanner {
                Some(scanner) => scanner,
                None => {
                    let Some((start, stop)) = self.ranges.pop() else { break };
                    let page_rows = usize::try_from(goal).unwrap_or(PAGE).clamp(1, PAGE);
                    let scan = Scan { start, stop, reversed: false, spec: ReadSpec::default(), page_rows };
                    self.opened += 1;
                    self.scanner.insert(reader.scan(self.table, scan).await?)
                }
            };
            let page = scanner.next_page().await?;
            self.entries += page.rows.len() as u64;
            if page.done {
                self.scanner = None;
                self.done = self.ranges.is_empty();
            }
        }
        Ok(())
    }
}
