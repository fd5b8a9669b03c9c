//! What becomes of the rows found: they are passed on, counted, or sorted.

use super::found::{Found, key_value};
use crate::error::{Error, ErrorKind, Result};
use crate::query::bind::{Column, Order, Output};
use crate::query::plan::{Plan, Sorting};
use crate::schema::{AttributeValue, Value};
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The most rows that are sorted.
const MOST_SORTED: usize = 1_000_000;
/// Rows a page, at most.
pub(super) const PAGE: usize = 1_000;

/// One row of an answer: values in the order of [`Prepared::columns`](crate::query::Prepared::columns).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRow {
    /// The values; none where the row has none. `id` is text, see [`escaped`](crate::model::escaped).
    pub values: Vec<Option<AttributeValue>>,
}

impl ResultRow {
    /// The row as a JSON object, with null for what the row does not have. `names` are those of
    /// [`Prepared::columns`](crate::query::Prepared::columns).
    pub fn to_json(&self, names: &[String]) -> serde_json::Map<String, serde_json::Value> {
        let value = |v: &Option<AttributeValue>| v.as_ref().map_or(serde_json::Value::Null, AttributeValue::to_json);
        names.iter().cloned().zip(self.values.iter().map(value)).collect()
    }
}

/// Takes the rows found.
pub(super) enum Sink {
    /// Passes them on as they come, up to a limit.
    Pass { rows: Vec<ResultRow>, left: u64 },
    /// Counts them; the one row of the answer may itself be limited away.
    Count { rows: u64, left: u64 },
    /// Keeps the first of them in an order; the heap has the last of those on top.
    Sort { order: Order, most: u64, heap: BinaryHeap<Sorted>, rest: Option<std::vec::IntoIter<Sorted>> },
}

/// A row with what it is sorted by.
pub(super) struct Sorted {
    key: SortKey,
    descending: bool,
    result: ResultRow,
}

/// Null is the largest; equal values are in the order of the row keys.
#[derive(PartialEq, Eq)]
struct SortKey {
    value: Option<Vec<u8>>,
    row: Bytes,
}

impl SortKey {
    fn order(&self, value: Option<&[u8]>, row: &[u8]) -> Ordering {
        let values = match (self.value.as_deref(), value) {
            (Some(a), Some(b)) => a.cmp(b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        values.then_with(|| self.row.as_ref().cmp(row))
    }
}

impl Ord for Sorted {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.key.order(other.key.value.as_deref(), &other.key.row);
        if self.descending { order.reverse() } else { order }
    }
}
impl PartialOrd for Sorted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Sorted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Sorted {}

impl Sink {
    pub(super) fn new(plan: &Plan) -> Self {
        let left = plan.query.limit.unwrap_or(u64::MAX);
        match (&plan.query.output, plan.sorting) {
            (Output::Count, _) => Self::Count { rows: 0, left },
            (Output::Columns(_), Sorting::Sorted(order)) => {
                Self::Sort { order, most: left, heap: BinaryHeap::new(), rest: None }
            }
            (Output::Columns(_), Sorting::Unordered | Sorting::Served { .. }) => Self::Pass { rows: Vec::new(), left },
        }
    }

    /// Whether no further row can change the answer.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Pass { left, .. } | Self::Count { left, .. } => *left == 0,
            Self::Sort { most, .. } => *most == 0,
        }
    }

    /// Takes a row; [`is_full`](Self::is_full) must be false.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] when more rows would have to be sorted than are kept in memory.
    pub(super) fn push(&mut self, found: &Found<'_>, output: &Output) -> Result<()> {
        match self {
            Self::Count { rows, .. } => *rows += 1,
            Self::Pass { rows, left } => {
                *left -= 1;
                rows.push(result(found, output)?);
            }
            Self::Sort { order, most, heap, .. } => {
                let value = match order.column {
                    Column::RowKey => None,
                    Column::Attribute(slot) => found.encoded(slot),
                };
                if heap.len() as u64 >= *most
                    && let Some(last) = heap.peek()
                {
                    let against = last.key.order(value, found.key());
                    let comes_later = if order.descending { against.is_ge() } else { against.is_le() };
                    if comes_later {
                        return Ok(());
                    }
                    heap.pop();
                }
                if heap.len() >= MOST_SORTED {
                    return Err(Error::new(
                        ErrorKind::TooCostly,
                        format!(
                            "ORDER BY: more than {MOST_SORTED} rows would be sorted in memory; add a LIMIT, narrow the WHERE, or index the attribute with --ordered and give it a range"
                        ),
                    ));
                }
                let key = SortKey { value: value.map(<[u8]>::to_vec), row: found.key().clone() };
                heap.push(Sorted { key, descending: order.descending, result: result(found, output)? });
            }
        }
        Ok(())
    }

    /// The next rows of the answer, if there are any yet; `over` says that all rows were pushed.
    pub(super) fn page(&mut self, over: bool) -> Option<Vec<ResultRow>> {
        let page = match self {
            Self::Pass { rows, .. } => std::mem::take(rows),
            Self::Count { rows, left } => {
                if !over || *left == 0 {
                    return None;
                }
                *left = 0;
                let count = i64::try_from(*rows).unwrap_or(i64::MAX);
                vec![ResultRow { values: vec![Some(AttributeValue::One(Value::Int(count)))] }]
            }
            Self::Sort { heap, rest, .. } => {
                if !over {
                    return None;
                }
                let sorted = rest.get_or_insert_with(|| std::mem::take(heap).into_sorted_vec().into_iter());
                sorted.take(PAGE).map(|s| s.result).collect()
            }
        };
        (!page.is_empty()).then_some(page)
    }
}

fn result(found: &Found<'_>, output: &Output) -> Result<ResultRow> {
    let Output::Columns(columns) = output else { return Ok(ResultRow { values: Vec::new() }) };
    let values = columns.iter().map(|column| match column {
        Column::RowKey => Ok(Some(key_value(found.key()))),
        Column::Attribute(slot) => found.value(*slot),
    });
    Ok(ResultRow { values: values.collect::<Result<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cell, Row};
    use crate::query::execute::found::BaseRow;
    use crate::query::plan::{candidates, plan};
    use crate::query::testing::schema;
    use crate::query::{Options, bind, parse};

    fn sink(sql: &str) -> (Sink, Plan) {
        let schema = schema(&[]);
        let query = bind(&parse(sql).unwrap(), &schema).unwrap();
        let found = candidates(&query, &schema);
        let plan = plan(query, &schema, &found, &[], &Options { allow_scan: true, ..Options::default() });
        (Sink::new(&plan), plan)
    }

    fn base(plan: &Plan, size: usize) -> BaseRow {
        let cell = Cell::put("a", "size", 1, size.to_string());
        BaseRow::decode(Row { key: format!("row {size}").into(), cells: vec![cell] }, &plan.slots, &[0], None)
    }

    #[test]
    fn a_sort_without_limit_is_refused_beyond_a_million_rows() {
        let (mut sink, plan) = sink("SELECT size FROM packages ORDER BY size DESC");
        let row = base(&plan, 7);
        for _ in 0..MOST_SORTED {
            sink.push(&Found::Base(&row), &plan.query.output).unwrap();
        }
        let error = sink.push(&Found::Base(&row), &plan.query.output).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooCostly);
        assert!(error.to_string().contains("more than 1000000 rows would be sorted in memory; add a LIMIT"));
    }

    #[test]
    fn a_sort_with_limit_keeps_no_more_than_that() {
        let (mut sink, plan) = sink("SELECT size FROM packages ORDER BY size DESC LIMIT 3");
        for i in 0..50_000_usize {
            sink.push(&Found::Base(&base(&plan, i * 7_919 % 50_000)), &plan.query.output).unwrap();
            assert!(matches!(&sink, Sink::Sort { heap, .. } if heap.len() <= 3));
        }
        assert!(sink.page(false).is_none());
        let sizes: Vec<String> =
            sink.page(true).unwrap().iter().map(|row| row.values[0].as_ref().unwrap().to_string()).collect();
        assert_eq!(sizes, ["49999", "49998", "49997"]);
        assert!(sink.page(true).is_none());
    }
}
