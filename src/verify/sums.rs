//! Which rows have to be looked at closely.
//!
//! Rows fall into buckets by hash. For each bucket the hashes of the entries that ought to be there are added up, and those of
//! the entries that are there taken away: what is left over is nothing only where both are the same. So two passes in key
//! order settle most rows, whatever the order of their entries, and only the rest are looked up one by one.

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const BUCKETS: usize = 1 << 16;

/// The sums of all buckets.
pub(super) struct Sums {
    left: Vec<u128>,
    suspect: Vec<bool>,
}

impl Sums {
    pub(super) fn new() -> Self {
        Self { left: vec![0; BUCKETS], suspect: vec![false; BUCKETS] }
    }

    /// An entry of the row ought to be there.
    pub(super) fn ought(&mut self, row: &[u8], key: &Bytes, value: &Bytes) {
        let left = &mut self.left[bucket(row)];
        *left = left.wrapping_add(hash(key, value));
    }

    /// An entry of the row is there.
    pub(super) fn is(&mut self, row: &[u8], key: &Bytes, value: &Bytes) {
        let left = &mut self.left[bucket(row)];
        *left = left.wrapping_sub(hash(key, value));
    }

    /// The row has to be looked at in any case.
    pub(super) fn suspect(&mut self, row: &[u8]) {
        self.suspect[bucket(row)] = true;
    }

    /// Whether the row may not be as it ought to.
    pub(super) fn doubts(&self, row: &[u8]) -> bool {
        let bucket = bucket(row);
        self.suspect[bucket] || self.left[bucket] != 0
    }

    /// Whether any row may not be.
    pub(super) fn doubt_any(&self) -> bool {
        self.suspect.contains(&true) || self.left.iter().any(|left| *left != 0)
    }
}

fn bucket(row: &[u8]) -> usize {
    // A remainder of a division by a usize fits one.
    (xxh3_64(row) % BUCKETS as u64) as usize
}

fn hash(key: &Bytes, value: &Bytes) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.update(&(key.len() as u64).to_be_bytes());
    hasher.update(key);
    hasher.update(value);
    hasher.digest128()
}
