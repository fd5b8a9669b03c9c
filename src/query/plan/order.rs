//! Whether a path finds rows in the order asked for.

use super::Sorting;
use super::path::{IndexPath, Path};
use crate::query::bind::{Column, Order, Slot};
use crate::schema::ScalarType;

/// How the order asked for comes about where a path alone is read.
pub(super) fn sorting(path: &Path, order: &[Order], slots: &[Slot]) -> Sorting {
    match path {
        _ if order.is_empty() => Sorting::Unordered,
        Path::Get(_) | Path::Rows(_) => match order {
            [Order { column: Column::RowKey, descending, .. }] => Sorting::Served { reversed: *descending },
            _ => Sorting::Sorted,
        },
        Path::Index(index) => by_entries(index, order, slots),
    }
}

/// The keys have to be the terms after those that have one value, each in its direction or all in the other.
fn by_entries(index: &IndexPath, order: &[Order], slots: &[Slot]) -> Sorting {
    let mut place = index.fixed;
    let mut backwards = None;
    for (i, key) in order.iter().enumerate() {
        let (reversed, may_be_cut) = match key.column {
            Column::RowKey if place == index.terms.len() => (key.descending, false),
            Column::RowKey => return Sorting::Sorted,
            Column::Attribute(slot) if index.terms[..index.fixed].contains(&slot) => continue,
            Column::Attribute(slot) => {
                // Null is below all values in the entries; terms that a condition restricts are not null.
                let misplaced = place >= index.restricted && key.nulls_first == key.descending;
                if index.terms.get(place) != Some(&slot) || misplaced {
                    return Sorting::Sorted;
                }
                let shape = index.definition.shape(place);
                place += 1;
                let may_be_long = matches!(slots[slot].attribute.kind.scalar, ScalarType::Text | ScalarType::Bytes);
                (key.descending != shape.descending, shape.limit > 0 && may_be_long)
            }
        };
        if *backwards.get_or_insert(reversed) != reversed {
            return Sorting::Sorted;
        }
        if may_be_cut {
            // Whatever the further keys are: long values have to be put in order anyway.
            return Sorting::Near { reversed, keys: i + 1, limit: index.definition.value_limit };
        }
    }
    Sorting::Served { reversed: backwards.unwrap_or(false) }
}
