//! [`BoundQuery`] + schema + estimates → [`Plan`]: which paths are read, and what is done with the rows they find.
//!
//! Pure: [`candidates`] lists every path, the prober estimates them, [`plan`] chooses.

mod advice;
mod candidates;
mod choose;
mod key_range;
mod order;
mod partial;
mod path;
mod rows;

pub(crate) use candidates::{Candidates, candidates};
pub(crate) use choose::{Choice, Estimate, best, enough, follow};
pub(crate) use path::{Access, EntryRange, IndexPath, Path, RowsPath};
pub(crate) use rows::columns_of;

use super::bind::{BoundQuery, Column, Output, Slot};
use super::page::Page;
use super::{Consistency, Options};
use crate::error::{Error, ErrorKind};
use crate::schema::{Key, TableSchema};
use std::sync::Arc;
use std::time::Instant;

/// How a query is answered.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) query: BoundQuery,
    pub(crate) consistency: Consistency,
    pub(crate) index_table: String,
    /// What the row keys are made of, if that is declared.
    pub(crate) key: Option<Arc<Key>>,
    /// The slots of the query, then further terms of the definitions read.
    pub(crate) slots: Vec<Slot>,
    pub(crate) reading: Reading,
    pub(crate) sorting: Sorting,
    /// Whether a row may be met twice.
    pub(crate) repeats: bool,
    /// Whether a row whose entries are all right may be met twice: by several paths, or by several elements of an array.
    pub(crate) scattered: bool,
    /// The most bytes held at a time.
    pub(crate) memory: u64,
    /// When to give up.
    pub(crate) deadline: Option<Instant>,
    /// Which part of the answer is wanted, if not all of it.
    pub(crate) page: Option<Page>,
}

/// What is read.
#[derive(Debug, Clone)]
pub(crate) enum Reading {
    /// Nothing: no row can satisfy the predicate.
    Nothing,
    /// These paths, one after the other.
    Paths(Vec<Path>),
    /// The query may not be run; the message says why, and what would help.
    Refused(String),
}

/// How the order asked for comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sorting {
    /// None was asked for.
    Unordered,
    /// Rows are read in it, backwards if `reversed`.
    Served { reversed: bool },
    /// Rows are read in the order of the first `keys` keys, apart from those whose values start with the same `limit` bytes,
    /// and sorted.
    Near { reversed: bool, keys: usize, limit: u32 },
    /// Rows are sorted.
    Sorted,
}

impl Sorting {
    /// Whether rows are kept to be put in order.
    pub(crate) fn is_sorted(self) -> bool {
        matches!(self, Self::Near { .. } | Self::Sorted)
    }

    /// Whether paths are read backwards.
    pub(crate) fn is_reversed(self) -> bool {
        matches!(self, Self::Served { reversed: true } | Self::Near { reversed: true, .. })
    }
}

impl Plan {
    /// Whether it has to be asked of a row if it was on an earlier page.
    pub(crate) fn looks_back(&self) -> bool {
        self.page.is_some() && self.scattered
    }

    /// So many of the first slots are asked of base rows: those of the query, and where it looks back all, for whether a row
    /// was met before may depend on the terms of other paths.
    pub(crate) fn asked(&self) -> usize {
        if self.looks_back() { self.slots.len() } else { self.query.slots.len() }
    }

    /// The error, if the query may not be run.
    pub(crate) fn refusal(&self) -> Option<Error> {
        match &self.reading {
            Reading::Refused(message) => Some(Error::new(ErrorKind::TooCostly, message.clone())),
            _ => None,
        }
    }

    /// Whether the entries of a path that are not disputed answer the query without their base rows: under `indexed`, when
    /// everything it needs is the row key, a term or covered. A term of an array is one element of it, and so does not do; one
    /// that is cut in an entry's key takes that row's base.
    pub(crate) fn answers_from_entries(&self, path: &IndexPath) -> bool {
        let known = |column: Column| match column {
            Column::RowKey => true,
            Column::Attribute(slot) => {
                (path.terms.contains(&slot) && !self.slots[slot].attribute.kind.array) || path.covered.contains(&slot)
            }
        };
        // Whether a row was on an earlier page is told by its base row.
        let mut all = self.consistency == Consistency::Indexed && !self.looks_back();
        path.residual.visit(&mut |test| all &= known(test.column));
        if let Output::Columns(columns) = &self.query.output {
            all &= columns.iter().all(|column| known(*column));
        }
        all && self.query.order.iter().all(|order| known(order.column))
    }

    /// The paths that are read.
    pub(crate) fn paths(&self) -> &[Path] {
        if let Reading::Paths(paths) = &self.reading { paths } else { &[] }
    }

    /// Whether the whole base table is gone through.
    pub(crate) fn is_scan(&self) -> bool {
        matches!(self.paths(), [Path::Rows(RowsPath { text: None, .. })])
    }
}

/// Puts together what was chosen among the candidates; nothing was if there are none.
pub(crate) fn plan(
    query: BoundQuery,
    schema: &TableSchema,
    candidates: &Candidates,
    choice: Option<&Choice>,
    options: &Options,
) -> Plan {
    let reading = match choice {
        Some(choice) if choice.paths.is_empty() => Reading::Nothing,
        Some(choice) => Reading::Paths(choice.paths.iter().map(|i| candidates.paths[*i].clone()).collect()),
        None if options.allow_scan => Reading::Paths(vec![Path::Rows(rows::scan(&query))]),
        None => Reading::Refused(advice::refusal(&query, schema)),
    };
    let sorting = match &reading {
        _ if query.order.is_empty() => Sorting::Unordered,
        Reading::Paths(paths) => match paths.as_slice() {
            [path] => order::sorting(path, &query.order, &candidates.slots),
            _ => Sorting::Sorted,
        },
        Reading::Nothing | Reading::Refused(_) => Sorting::Sorted,
    };
    let slots = candidates.slots.clone();
    let (repeats, scattered) = match &reading {
        Reading::Paths(paths) => match paths.as_slice() {
            [Path::Get(_) | Path::Rows(_)] => (false, false),
            [Path::Index(index)] => {
                let varying = &index.terms[index.fixed..];
                (!index.is_distinct(), varying.iter().any(|slot| slots[*slot].attribute.kind.array))
            }
            _ => (true, true),
        },
        _ => (false, false),
    };
    Plan {
        consistency: options.consistency,
        index_table: schema.index_table(),
        key: schema.key().cloned(),
        slots,
        query,
        reading,
        sorting,
        repeats,
        scattered,
        memory: options.memory,
        deadline: options.deadline,
        page: None,
    }
}

#[cfg(test)]
mod tests;
