//! Choosing among paths by their estimates.

use super::path::{Access, Path};
use super::{Candidates, path_serves};
use crate::query::bind::{BoundQuery, Output};

/// How many entries a path reads, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Estimate {
    /// So many.
    pub(crate) entries: u64,
    /// Not one more; otherwise at least so many.
    pub(crate) exact: bool,
}

/// The chosen paths of a query or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Which of the alternatives.
    pub(crate) way: usize,
    /// The paths to read, all of them.
    pub(crate) paths: Vec<usize>,
    /// What they read together.
    pub(crate) cost: Estimate,
    /// Settles ties.
    name: String,
}

/// The alternative that reads the fewest entries, the first by name among equals; none if there is none.
pub(crate) fn best(
    ways: &[Access],
    candidates: &Candidates,
    estimates: &[Estimate],
    query: &BoundQuery,
) -> Option<Choice> {
    ways.iter().enumerate().map(|(way, access)| Choice { way, ..cost(access, candidates, estimates, query) }).min_by(
        |a, b| {
            let key = |c: &Choice| (c.cost.entries, !c.cost.exact);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        },
    )
}

fn cost(access: &Access, candidates: &Candidates, estimates: &[Estimate], query: &BoundQuery) -> Choice {
    let mut choice =
        Choice { way: 0, paths: Vec::new(), cost: Estimate { entries: 0, exact: true }, name: String::new() };
    match access {
        Access::Nothing => {}
        Access::Path(number) => {
            let path = &candidates.paths[*number];
            let estimate = estimates.get(*number).copied().unwrap_or_default();
            choice.cost = match path {
                Path::Get(get) => Estimate { entries: get.keys.len() as u64, exact: true },
                Path::Index(_) => estimate,
            };
            if let Some(enough) = enough(path, query)
                && choice.cost.entries >= enough
            {
                choice.cost = Estimate { entries: enough, exact: true };
            }
            if let Path::Index(index) = path {
                choice.name = index.definition.name.clone();
            }
            choice.paths.push(*number);
        }
        Access::Union(arms) => {
            for arm in arms.iter().filter_map(|ways| best(ways, candidates, estimates, query)) {
                choice.cost.entries = choice.cost.entries.saturating_add(arm.cost.entries);
                choice.cost.exact &= arm.cost.exact;
                choice.name = format!("{},{}", choice.name, arm.name);
                choice.paths.extend(arm.paths);
            }
        }
    }
    choice
}

/// So many entries of a path are enough: the LIMIT, where every entry read is a row of the answer.
pub(crate) fn enough(path: &Path, query: &BoundQuery) -> Option<u64> {
    let Path::Index(index) = path else { return None };
    let direct = index.residual.is_true() && query.order.is_none_or(|order| path_serves(path, order));
    if direct && query.output != Output::Count { query.limit } else { None }
}
