//! [`BoundQuery`] + schema + estimates → [`Plan`]: which paths are read, and what is done with the rows they find.
//!
//! Pure: [`candidates`] lists every path, the prober estimates them, [`plan`] chooses.

mod advice;
mod candidates;
mod choose;
mod path;

pub(crate) use candidates::{Candidates, candidates};
pub(crate) use choose::{Estimate, best, enough};
pub(crate) use path::{Access, EntryRange, IndexPath, Path};

use super::bind::{BoundQuery, Column, Order, Output, Predicate, Slot};
use super::{Consistency, Options};
use crate::error::{Error, ErrorKind};
use crate::schema::domain::{Edge, Side};
use crate::schema::{BaseEncoding, ScalarType, TableSchema, Value, term};
use crate::store::{ColumnFilter, Columns, Comparison};
use bytes::Bytes;

/// How a query is answered.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) query: BoundQuery,
    pub(crate) consistency: Consistency,
    pub(crate) index_table: String,
    /// The slots of the query, then further terms of the definitions read.
    pub(crate) slots: Vec<Slot>,
    pub(crate) reading: Reading,
    pub(crate) sorting: Sorting,
    /// Whether a row may be met twice.
    pub(crate) repeats: bool,
}

/// What is read.
#[derive(Debug, Clone)]
pub(crate) enum Reading {
    /// Nothing: no row can satisfy the predicate.
    Nothing,
    /// These paths, one after the other.
    Paths(Vec<Path>),
    /// The base table.
    Scan(ScanPath),
    /// The query may not be run; the message says why, and what would help.
    Refused(String),
}

/// A scan of the base table.
#[derive(Debug, Clone)]
pub(crate) struct ScanPath {
    pub(crate) start: Option<Bytes>,
    pub(crate) stop: Option<Bytes>,
    pub(crate) columns: Columns,
    pub(crate) filter: Option<ColumnFilter>,
}

/// How the order asked for comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sorting {
    /// None was asked for.
    Unordered,
    /// Rows are read in it, backwards if `reversed`.
    Served { reversed: bool },
    /// Rows are sorted.
    Sorted(Order),
}

impl Plan {
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
        let mut all = self.consistency == Consistency::Indexed;
        path.residual.visit(&mut |test| all &= known(test.column));
        if let Output::Columns(columns) = &self.query.output {
            all &= columns.iter().all(|column| known(*column));
        }
        all && self.query.order.is_none_or(|order| known(order.column))
    }
}

/// Chooses among the candidates by their estimates, one for each path.
pub(crate) fn plan(
    query: BoundQuery,
    schema: &TableSchema,
    candidates: &Candidates,
    estimates: &[Estimate],
    options: &Options,
) -> Plan {
    let choice = best(&candidates.roots, candidates, estimates, &query);
    let reading = match choice {
        Some(choice) if choice.paths.is_empty() => Reading::Nothing,
        Some(choice) => Reading::Paths(choice.paths.iter().map(|i| candidates.paths[*i].clone()).collect()),
        None if options.allow_scan => Reading::Scan(scan(&query)),
        None => Reading::Refused(advice::refusal(&query, schema)),
    };
    let sorting = match query.order {
        None => Sorting::Unordered,
        Some(order) if serves(&reading, order) => Sorting::Served { reversed: order.descending },
        Some(order) => Sorting::Sorted(order),
    };
    let repeats = match &reading {
        Reading::Paths(paths) => match paths.as_slice() {
            [Path::Get(_)] => false,
            [Path::Index(index)] => !index.is_distinct(),
            _ => true,
        },
        _ => false,
    };
    Plan {
        consistency: options.consistency,
        index_table: schema.index_table(),
        slots: candidates.slots.clone(),
        query,
        reading,
        sorting,
        repeats,
    }
}

/// Whether rows are read in an order.
fn serves(reading: &Reading, order: Order) -> bool {
    match reading {
        Reading::Nothing => true,
        Reading::Paths(paths) => matches!(paths.as_slice(), [path] if path_serves(path, order)),
        Reading::Scan(_) => order.column == Column::RowKey,
        Reading::Refused(_) => false,
    }
}

/// Whether a path finds rows in an order, rows that compare equal by their keys.
fn path_serves(path: &Path, order: Order) -> bool {
    match (path, order.column) {
        (Path::Get(_), column) => column == Column::RowKey,
        (Path::Index(index), Column::RowKey) => index.is_distinct(),
        // Only the last term may vary, and it may not be null; it is not an array, or the query could not be ordered by it.
        (Path::Index(index), Column::Attribute(slot)) => {
            let last = index.terms.len() - 1;
            !index.definition.terms[last].descending
                && index.terms[last] == slot
                && index.fixed >= last
                && index.restricted == index.terms.len()
        }
    }
}

fn scan(query: &BoundQuery) -> ScanPath {
    let (mut start, mut stop, mut filter) = (None, None, None);
    for conjunct in query.predicate.conjuncts() {
        let Predicate::Test(test) = conjunct else { continue };
        let Some(domain) = test.some() else { continue };
        match test.column {
            Column::RowKey => {
                let intervals = domain.intervals();
                start = intervals.first().and_then(|i| row_edge(&i.from));
                stop = intervals.last().and_then(|i| row_edge(&i.to));
            }
            Column::Attribute(slot) if filter.is_none() => {
                let points = domain.points().unwrap_or_default();
                if let [point] = points.as_slice() {
                    filter = pushed_down(&query.slots[slot], point);
                }
            }
            Column::Attribute(_) => {}
        }
    }
    // A row without any of the columns read is not seen at all, and yet exists.
    let columns = if query.predicate.needs_an_attribute() {
        columns_of(&query.slots, 0..query.slots.len())
    } else {
        Columns::All
    };
    ScanPath { start, stop, columns, filter }
}

/// The key at an edge between row keys.
fn row_edge(edge: &Edge) -> Option<Bytes> {
    match edge {
        Edge::Start | Edge::End => None,
        Edge::At(key, Side::Below) => Some(key.clone()),
        Edge::At(key, Side::Above) => Some([key.as_ref(), &[0]].concat().into()),
    }
}

/// The store's filter for `attribute = value`, where the cell's bytes are the value's: only text in UTF-8 is.
fn pushed_down(slot: &Slot, encoded: &[u8]) -> Option<ColumnFilter> {
    let attribute = &slot.attribute;
    if !slot.functions.is_empty()
        || attribute.kind.array
        || attribute.kind.scalar != ScalarType::Text
        || attribute.encoding != BaseEncoding::Utf8
    {
        return None;
    }
    let Ok(Some(Value::Text(text))) = term::decode(encoded) else { return None };
    Some(ColumnFilter {
        family: Bytes::copy_from_slice(attribute.family.as_bytes()),
        qualifier: Bytes::copy_from_slice(attribute.qualifier.as_bytes()),
        comparison: Comparison::Equal,
        operand: text.into(),
    })
}

/// The most columns that are worth being read by name; more are read as whole rows. (Measured on the catalogue: a third
/// less time with one column, a fifth with three, nothing from eight on.)
const FEW_COLUMNS: usize = 8;

/// The columns of some of the slots.
pub(crate) fn columns_of(all: &[Slot], slots: impl Iterator<Item = usize>) -> Columns {
    let mut columns: Vec<(Bytes, Bytes)> = slots
        .map(|slot| &all[slot].attribute)
        .map(|a| (Bytes::copy_from_slice(a.family.as_bytes()), Bytes::copy_from_slice(a.qualifier.as_bytes())))
        .collect();
    columns.sort_unstable();
    columns.dedup();
    if columns.len() > FEW_COLUMNS { Columns::All } else { Columns::Exact(columns) }
}

#[cfg(test)]
mod tests;
