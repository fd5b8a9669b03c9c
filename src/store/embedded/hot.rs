//! Rows that gather delete markers faster than files are merged.
//!
//! A row that changes all the time, an index's state row above all, would be read past all its remains. So the committer
//! counts markers by row, roughly, and removes what they hide from a row that has gathered many. No read changes: the
//! markers that hide most stay.

use fjall::Keyspace;
use std::collections::HashMap;

/// Markers after which a row is purged.
const LIMIT: u32 = 128;
/// Rows share a place by hash.
const PLACES: usize = 1_024;

/// A row that may be gathering markers, by the majority vote of those that share a place: a row with more markers than all
/// others of its place together is the one that stays.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    row: u64,
    count: u32,
}

/// The counts of all tables.
#[derive(Default)]
pub(super) struct Hot(HashMap<u64, Vec<Place>>);

impl Hot {
    /// Counts a marker on the row of this hash; whether the row is to be purged.
    pub(super) fn marked(&mut self, keyspace: &Keyspace, row: u64) -> bool {
        let places = self.0.entry(keyspace.id()).or_insert_with(|| vec![Place::default(); PLACES]);
        // A remainder of a division by a usize fits one.
        let place = &mut places[(row % PLACES as u64) as usize];
        if place.row == row {
            place.count += 1;
        } else if place.count > 0 {
            place.count -= 1;
        } else {
            *place = Place { row, count: 1 };
        }
        let full = place.count >= LIMIT;
        if full {
            place.count = 0;
        }
        full
    }
}
