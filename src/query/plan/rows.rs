//! Reading base rows by ranges of keys: what of each row is read, and what the store can sift.

use super::path::{RowsPath, row_range};
use crate::query::bind::{BoundQuery, Column, Predicate, Slot};
use crate::schema::domain::Interval;
use crate::schema::{BaseEncoding, Value, term};
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
    let columns = if predicate.needs_a_column(slots) { columns_of(slots, 0..slots.len()) } else { Columns::All };
    RowsPath { ranges, columns, filter, text }
}

/// The store's filter for `attribute = value`, where the cell's bytes are the value's: text, and bytes as they are.
fn pushed_down(slot: &Slot, encoded: &[u8]) -> Option<ColumnFilter> {
    let attribute = &slot.attribute;
    if !slot.functions.is_empty()
        || attribute.key_part.is_some()
        || attribute.kind.array
        || attribute.encoding == BaseEncoding::Json
    {
        return None;
    }
    let operand: Bytes = match (term::decode(encoded).ok()??, attribute.encoding) {
        (Value::Text(text), _) => text.into(),
        (Value::Bytes(bytes), BaseEncoding::Hbase) => bytes,
        _ => return None,
    };
    Some(ColumnFilter {
        family: Bytes::copy_from_slice(attribute.family.as_bytes()),
        qualifier: Bytes::copy_from_slice(attribute.qualifier.as_bytes()),
        comparison: Comparison::Equal,
        operand,
    })
}

/// The most columns that are worth being read by name; more are read as whole rows. (Measured on the catalogue: a third
/// less time with one column, a fifth with three, nothing from eight on.)
const FEW_COLUMNS: usize = 8;

/// The columns of some of the slots.
pub(crate) fn columns_of(all: &[Slot], slots: impl Iterator<Item = usize>) -> Columns {
    let mut columns: Vec<(Bytes, Bytes)> = slots
        .map(|slot| &all[slot].attribute)
        .filter(|a| a.key_part.is_none())
        .map(|a| (Bytes::copy_from_slice(a.family.as_bytes()), Bytes::copy_from_slice(a.qualifier.as_bytes())))
        .collect();
    columns.sort_unstable();
    columns.dedup();
    // A row of which only the key is needed has to be seen all the same.
    if columns.is_empty() || columns.len() > FEW_COLUMNS { Columns::All } else { Columns::Exact(columns) }
}
