//! What EXPLAIN shows.

use super::Consistency;
use super::bind::{Column, Order, Output, Predicate};
use super::execute::Actuals;
use super::plan::{Access, Candidates, Choice, Estimate, Path, Plan, Reading, RowsPath, Sorting};
use crate::schema::ROW_KEY;
use serde::Serialize;
use std::fmt;

/// How a query is answered. `Display` gives it as indented lines, serde as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explain {
    /// The table asked.
    pub table: String,
    /// What is promised of the rows.
    pub consistency: Consistency,
    /// What is done, in order.
    pub steps: Vec<String>,
    /// Why the query may not be run, if it may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Every way to the rows that was considered.
    pub considered: Vec<Considered>,
    /// What running the query took, where it was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<Actuals>,
}

/// A way to the rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Considered {
    /// By what means.
    pub means: Means,
    /// The definition read, for an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The condition it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Entries (or rows by key) it reads, if that was estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Whether it reads exactly so many; at least so many otherwise.
    pub exact: bool,
    /// Whether it is the way chosen, or a part of it.
    pub chosen: bool,
    /// The parts of a union; several of one arm are alternatives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Considered>,
}

/// The means of a way to the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Nothing has to be read: no row can satisfy the query.
    Nothing,
    /// Rows by their keys.
    Get,
    /// Rows in a range of keys.
    Range,
    /// Entries of a definition.
    Index,
    /// Several ways one after the other.
    Union,
    /// Every row of the base table.
    Scan,
}

impl Explain {
    /// The same with what running the query took.
    #[must_use]
    pub fn with_actual(mut self, actual: Actuals) -> Self {
        self.actual = Some(actual);
        self
    }
}

pub(super) fn explain(
    plan: &Plan,
    candidates: &Candidates,
    estimates: &[Estimate],
    choice: Option<&Choice>,
) -> Explain {
    let query = &plan.query;
    let mut decisions = choice.map(|c| c.decisions.iter().copied()).into_iter().flatten();
    let mut considered = ways(&candidates.roots, candidates, estimates, choice.is_some(), &mut decisions);
    considered.push(Considered { condition: None, chosen: plan.is_scan(), ..Considered::new(Means::Scan) });
    let refused = if let Reading::Refused(message) = &plan.reading { Some(message.clone()) } else { None };
    let steps = if refused.is_some() { Vec::new() } else { steps(plan) };
    Explain { table: query.table.clone(), consistency: plan.consistency, steps, refused, considered, actual: None }
}

impl Considered {
    fn new(means: Means) -> Self {
        Self { means, definition: None, condition: None, entries: None, exact: false, chosen: false, parts: Vec::new() }
    }
}

/// The alternatives; if one of them was chosen, the next of the decisions says which.
fn ways(
    list: &[Access],
    candidates: &Candidates,
    estimates: &[Estimate],
    chosen: bool,
    decisions: &mut dyn Iterator<Item = usize>,
) -> Vec<Considered> {
    let winner = if chosen && !list.is_empty() { decisions.next() } else { None };
    let mut describe = |(way, access): (usize, &Access)| {
        let chosen = winner == Some(way);
        match access {
            Access::Nothing => Considered { chosen, entries: Some(0), exact: true, ..Considered::new(Means::Nothing) },
            Access::Path(number) => {
                let estimate = estimates.get(*number).copied().unwrap_or_default();
                Considered { chosen, ..path(&candidates.paths[*number], estimate) }
            }
            Access::Union(arms) => Considered {
                chosen,
                parts: arms.iter().flat_map(|arm| ways(arm, candidates, estimates, chosen, decisions)).collect(),
                ..Considered::new(Means::Union)
            },
        }
    };
    list.iter().enumerate().map(&mut describe).collect()
}

fn path(path: &Path, estimate: Estimate) -> Considered {
    match path {
        Path::Get(get) => Considered {
            condition: Some(clipped(&get.text)),
            entries: Some(get.keys.len() as u64),
            exact: true,
            ..Considered::new(Means::Get)
        },
        Path::Rows(rows) => Considered {
            condition: rows.text.as_deref().map(clipped),
            entries: (estimate != Estimate::default()).then_some(estimate.entries),
            exact: estimate.exact,
            ..Considered::new(Means::Range)
        },
        Path::Index(index) => Considered {
            definition: Some(index.definition.name.clone()),
            condition: Some(clipped(&index.text)),
            entries: (estimate != Estimate::default()).then_some(estimate.entries),
            exact: estimate.exact,
            ..Considered::new(Means::Index)
        },
    }
}

fn steps(plan: &Plan) -> Vec<String> {
    let query = &plan.query;
    let mut steps = Vec::new();
    match &plan.reading {
        Reading::Nothing => steps.push("read nothing: no row can satisfy the condition".to_owned()),
        Reading::Refused(_) => {}
        Reading::Paths(paths) => {
            let backwards = if plan.sorting.is_reversed() { " backwards" } else { "" };
            steps.extend(paths.iter().map(|path| match path {
                Path::Get(get) => format!("read {} by key: {}{backwards}", rows(get.keys.len()), clipped(&get.text)),
                Path::Rows(rows) => {
                    let whole = rows.ranges.iter().any(|(start, stop)| start.is_none() && stop.is_none());
                    let filtered = if rows.filter.is_some() { ", filtered by the store" } else { "" };
                    match &rows.text {
                        Some(text) => format!("read rows by key{backwards}{filtered}: {}", clipped(text)),
                        None if whole => format!("read every row of the base table{backwards}{filtered}"),
                        None => format!("read a range of the base table{backwards}{filtered}"),
                    }
                }
                Path::Index(index) => {
                    format!("read the index {}{backwards}: {}", index.definition.name, clipped(&index.text))
                }
            }));
            if plan.repeats {
                steps.push("take each row once".to_owned());
            }
            if paths.iter().any(|p| matches!(p, Path::Index(_))) {
                steps.push(checking(plan, paths));
            }
        }
    }
    if let Some(predicate) = remaining(plan) {
        steps.push(format!("keep rows with {}", clipped(&predicate.to_string())));
    }
    let skipping = if query.offset > 0 { format!(" after the first {}", grouped(query.offset)) } else { String::new() };
    let kept = query.limit.into_iter().chain(plan.page.as_ref().map(|page| page.size)).min();
    if !query.order.is_empty() {
        let keys: Vec<String> = query.order.iter().map(|key| ordering(key, plan)).collect();
        let keys = keys.join(", ");
        steps.push(match (plan.sorting, kept) {
            (Sorting::Near { .. }, Some(kept)) => {
                format!("in the order of {keys} as read, long texts sorted, stopping after {}{skipping}", rows(kept))
            }
            (sorting, Some(kept)) if sorting.is_sorted() => format!("sort by {keys}, keeping {}{skipping}", rows(kept)),
            (sorting, None) if sorting.is_sorted() => format!("sort by {keys}{skipping}"),
            _ => format!("in the order of {keys} as read"),
        });
    }
    match (&query.output, kept) {
        (Output::Count, _) => steps.push("count rows".to_owned()),
        (_, Some(kept)) if !plan.sorting.is_sorted() => steps.push(format!("stop after {}{skipping}", rows(kept))),
        (_, None) if !plan.sorting.is_sorted() && query.offset > 0 => {
            steps.push(format!("leave out the first {}", grouped(query.offset)));
        }
        _ => {}
    }
    steps
}

/// A key of ORDER BY in words.
fn ordering(key: &Order, plan: &Plan) -> String {
    let name = match key.column {
        Column::RowKey => ROW_KEY.to_owned(),
        Column::Attribute(slot) => plan.query.slots[slot].name(),
    };
    let direction = if key.descending { "descending" } else { "ascending" };
    let nulls = match (key.nulls_first, key.descending) {
        (true, false) => " with nulls first",
        (false, true) => " with nulls last",
        _ => "",
    };
    format!("{name} {direction}{nulls}")
}

/// What the rows found must still satisfy, if anything.
fn remaining(plan: &Plan) -> Option<&Predicate> {
    let predicate = match &plan.reading {
        Reading::Nothing => return None,
        Reading::Paths(paths) => match paths.as_slice() {
            [Path::Index(index)] => &index.residual,
            [Path::Get(_) | Path::Rows(RowsPath { text: Some(_), .. })]
                if matches!(plan.query.predicate, Predicate::Test(_)) =>
            {
                return None;
            }
            _ => &plan.query.predicate,
        },
        Reading::Refused(_) => &plan.query.predicate,
    };
    (!predicate.is_true()).then_some(predicate)
}

fn checking(plan: &Plan, paths: &[Path]) -> String {
    let from_entries = paths.iter().all(|p| !matches!(p, Path::Index(i) if !plan.answers_from_entries(i)));
    match plan.consistency {
        Consistency::Verified => "verify each entry against its base row".to_owned(),
        Consistency::Indexed if from_entries => {
            "take undisputed entries as they are, verify disputed ones against their base rows".to_owned()
        }
        Consistency::Indexed => {
            "read the base rows, which hold what the entries lack, and verify against them".to_owned()
        }
    }
}

fn rows(n: impl TryInto<u64>) -> String {
    match n.try_into() {
        Ok(1) => "1 row".to_owned(),
        Ok(n) => format!("{} rows", grouped(n)),
        Err(_) => "many rows".to_owned(),
    }
}

/// A number with its thousands set apart: `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A text cut to a length that can be read.
pub(super) fn clipped(text: &str) -> String {
    const MOST: usize = 240;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "query of {}, {}", self.table, self.consistency)?;
        for (i, step) in self.steps.iter().enumerate() {
            write!(f, "\n  {}. {step}", i + 1)?;
        }
        if let Some(refused) = &self.refused {
            write!(f, "\n  refused: {refused}")?;
        }
        f.write_str("\nconsidered")?;
        self.considered.iter().try_for_each(|way| way.lines(f, 1))?;
        if let Some(actual) = &self.actual {
            write!(f, "\nactual\n  {actual}")?;
        }
        Ok(())
    }
}

impl Considered {
    fn lines(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let mark = if self.chosen { '*' } else { ' ' };
        write!(f, "\n{:indent$}{mark} ", "", indent = depth * 2)?;
        match self.means {
            Means::Nothing => f.write_str("nothing: no row can satisfy the condition")?,
            Means::Get => f.write_str("get")?,
            Means::Range => f.write_str("range")?,
            Means::Index => write!(f, "index {}", self.definition.as_deref().unwrap_or_default())?,
            Means::Union => f.write_str("union")?,
            Means::Scan => f.write_str("scan of the base table")?,
        }
        if let Some(condition) = &self.condition {
            write!(f, ": {condition}")?;
        }
        if let Some(entries) = self.entries.filter(|_| self.means != Means::Nothing) {
            let by_key = matches!(self.means, Means::Get | Means::Range);
            let (noun, plural) = if by_key { ("row", "rows") } else { ("entry", "entries") };
            let least = if self.exact { "" } else { "at least " };
            write!(f, " ({least}{} {})", grouped(entries), if entries == 1 { noun } else { plural })?;
        }
        if self.chosen && self.means != Means::Nothing {
            f.write_str(", chosen")?;
        }
        self.parts.iter().try_for_each(|part| part.lines(f, depth + 1))
    }
}

#[cfg(test)]
mod tests;
