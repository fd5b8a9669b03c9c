//! Whether a path finds rows in the order asked for.

use super::path::{IndexPath, Path};
use crate::query::bind::{Column, Order};

/// Whether a path finds rows in an order, and if so, whether it has to be read backwards.
pub(super) fn served(path: &Path, order: &[Order]) -> Option<bool> {
    match path {
        Path::Get(_) | Path::Rows(_) => match order {
            [Order { column: Column::RowKey, descending, .. }] => Some(*descending),
            _ => None,
        },
        Path::Index(index) => served_by_entries(index, order),
    }
}

/// The keys have to be the terms after those that have one value, each in its direction or all in the other.
fn served_by_entries(index: &IndexPath, order: &[Order]) -> Option<bool> {
    let mut place = index.fixed;
    let mut backwards = None;
    for key in order {
        let reversed = match key.column {
            Column::RowKey if place == index.terms.len() => key.descending,
            Column::RowKey => return None,
            Column::Attribute(slot) if index.terms[..index.fixed].contains(&slot) => continue,
            Column::Attribute(slot) => {
                if index.terms.get(place) != Some(&slot) {
                    return None;
                }
                // Null is below all values in the entries; terms that a condition restricts are not null.
                if place >= index.restricted && key.nulls_first == key.descending {
                    return None;
                }
                let reversed = key.descending != index.definition.terms[place].descending;
                place += 1;
                reversed
            }
        };
        if *backwards.get_or_insert(reversed) != reversed {
            return None;
        }
    }
    Some(backwards.unwrap_or(false))
}
