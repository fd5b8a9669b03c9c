//! Choosing among paths by their estimates.

use super::path::{Access, Path};
use super::{Candidates, Sorting, order};
use crate::query::bind::{BoundQuery, Predicate};

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
    /// Which of the alternatives at each place, in the order of [`follow`].
    pub(crate) decisions: Vec<usize>,
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
    let mut choose = |ways: &[Access]| best(ways, candidates, estimates, query);
    (0..ways.len()).map(|way| cost(way, ways, candidates, estimates, query, &mut choose)).min_by(|a, b| {
        let key = |c: &Choice| (c.cost.entries, !c.cost.exact);
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    })
}

/// The alternatives that were chosen before; none where they are no longer there.
pub(crate) fn follow(
    ways: &[Access],
    candidates: &Candidates,
    query: &BoundQuery,
    decisions: &mut dyn Iterator<Item = usize>,
) -> Option<Choice> {
    let way = decisions.next().filter(|way| *way < ways.len())?;
    Some(cost(way, ways, candidates, &[], query, &mut |ways| follow(ways, candidates, query, decisions)))
}

/// What an alternative costs, where `choose` chooses among those of its arms.
fn cost(
    way: usize,
    ways: &[Access],
    candidates: &Candidates,
    estimates: &[Estimate],
    query: &BoundQuery,
    choose: &mut dyn FnMut(&[Access]) -> Option<Choice>,
) -> Choice {
    let mut choice = Choice {
        way,
        paths: Vec::new(),
        cost: Estimate { entries: 0, exact: true },
        decisions: vec![way],
        name: String::new(),
    };
    match &ways[way] {
        Access::Nothing => {}
        Access::Path(number) => {
            let path = &candidates.paths[*number];
            let estimate = estimates.get(*number).copied().unwrap_or_default();
            choice.cost = match path {
                Path::Get(get) => Estimate { entries: get.keys.len() as u64, exact: true },
                Path::Rows(_) | Path::Index(_) => estimate,
            };
            if let Some(enough) = enough(*number, candidates, query)
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
            for arm in arms.iter().filter_map(|ways| choose(ways)) {
                choice.cost.entries = choice.cost.entries.saturating_add(arm.cost.entries);
                choice.cost.exact &= arm.cost.exact;
                choice.name = format!("{},{}", choice.name, arm.name);
                choice.paths.extend(arm.paths);
                choice.decisions.extend(arm.decisions);
            }
        }
    }
    choice
}

/// So many entries of a path are enough: those that are asked for, where every entry read is a row of the answer.
pub(crate) fn enough(path: usize, candidates: &Candidates, query: &BoundQuery) -> Option<u64> {
    let path = &candidates.paths[path];
    let direct = match path {
        Path::Get(_) => return None,
        Path::Rows(_) => matches!(&query.predicate, Predicate::Test(_)),
        Path::Index(index) => index.residual.is_true(),
    };
    let served = order::sorting(path, &query.order, &candidates.slots) != Sorting::Sorted;
    candidates.goal.filter(|_| direct && served)
}
