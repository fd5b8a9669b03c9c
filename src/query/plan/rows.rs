//! Reading base rows by ranges of keys: what of each row is read, and what the store can sift.

use super::path::{RowsPath, row_range};
use crate::query::bind::{BoundQuery, Column, Predicate, Slot};
use crate::schema::domain::Interval;
use crate::schema::{BaseEncoding, ScalarType, Value, term};
use crate::store::{ColumnFilter, Columns, Comparison};
use bytes::Bytes;

/// Going through the whole table, or the part between the first and the last key that can satisfy the query.
pub(super) fn scan(query: &BoundQuery) -> RowsPath {
    let mut range = (None, None);
    for conjunct in query.predicate.conjuncts() {
        if let Predicate::Test(test) = conjunct
            && test.column == Column::RowKey
            && let Some(domain) = test.some()
        {
            let intervals = domain.intervals();
            range.0 = intervals.first().map(|i: &Interval| row_range(i).0).unwrap_or_default();
            range.1 = intervals.last().map(|i: &Interval| row_range(i).1).unwrap_or_default();
        }
    }
    path(&query.predicate, &query.slots, vec![range], None)
}

/// Rows in ranges of keys, all of which have to satisfy a predicate.
pub(super) fn path(
    predicate: &Predicate,
    slots: &[Slot],
    ranges: Vec<(Option<Bytes>, Option<Bytes>)>,
    text: Option<String>,
) -> RowsPath {
    let filter = predicate.conjuncts().iter().find_map(|conjunct| {
        let Predicate::Test(test) = conjunct else { return None };
        let Column::Attribute(slot) = test.column else { return None };
        match test.some()?.points()?.as_slice() {
            [point] => pushed_down(&slots[slot], point),
            _ => None,
        }
    });
    // A row without any of the columns read is not seen at all, and yet exists.
    let columns = if predicate.needs_an_attribute() { columns_of(slots, 0..slots.len()) } else { Columns::All };
    RowsPath { ranges, columns, filter, text }
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
