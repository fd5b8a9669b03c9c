//! Bounds of scans.

use crate::store::{Scan, rules};
use bytes::Bytes;

/// The bounds of a scan as the server takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Bounds {
    /// Where the server begins.
    pub(in crate::store) from: Vec<u8>,
    /// Where it ends.
    pub(in crate::store) to: Vec<u8>,
    low: Bytes,
    high: Option<Bytes>,
}

impl Bounds {
    /// None for a range that is empty.
    pub(in crate::store) fn new(scan: &Scan) -> Option<Self> {
        let low = scan.start.clone().unwrap_or_default();
        let high = scan.stop.clone();
        // Longer than any key: the server would refuse it.
        let cut = |key: &[u8]| key[..key.len().min(rules::ROW_KEY_LIMIT)].to_vec();
        if high.as_ref().is_some_and(|high| *high <= low) {
            return None;
        }
        let (from, to) = if scan.reversed {
            (high.as_deref().map(&cut).unwrap_or_default(), cut(&before(&low)))
        } else {
            (cut(&low), high.as_deref().map(|high| above(high, &cut)).unwrap_or_default())
        };
        Some(Self { from, to, low, high })
    }

    /// Whether a key is in the range. The server's may be wider.
    pub(in crate::store) fn hold(&self, key: &[u8]) -> bool {
        key >= self.low.as_ref() && self.high.as_ref().is_none_or(|high| key < high.as_ref())
    }

    /// Goes on upwards at a key.
    pub(super) fn resume_at(&mut self, key: &[u8]) {
        self.low = Bytes::copy_from_slice(key);
        self.from = key[..key.len().min(rules::ROW_KEY_LIMIT)].to_vec();
    }

    /// Whether there is nothing left.
    pub(super) fn is_empty(&self) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= self.low)
    }

    /// Goes on after a row, which was the last one read.
    pub(in crate::store) fn resume_after(&mut self, key: &[u8], reversed: bool) {
        if reversed {
            self.high = Some(Bytes::copy_from_slice(key));
            self.from = key.to_vec();
        } else {
            self.resume_at(&[key, &[0]].concat());
        }
    }
}

/// Keys that divide a table whose regions start so into at most `parts` ranges.
pub(in crate::store) fn split_points(starts: impl Iterator<Item = Vec<u8>>, parts: usize) -> Vec<Bytes> {
    let mut starts: Vec<Bytes> = starts.filter(|k| !k.is_empty()).map(Bytes::from).collect();
    starts.sort();
    starts.dedup();
    // Every so many regions, where there are more of them than parts.
    let step = (starts.len() + 1).div_ceil(parts.max(1));
    starts.into_iter().enumerate().filter(|(i, _)| (i + 1) % step == 0).map(|(_, key)| key).collect()
}

/// An upper bound the server takes, at or above a key of any length.
fn above(key: &[u8], cut: &impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    if key.len() <= rules::ROW_KEY_LIMIT {
        return key.to_vec();
    }
    // Rows between the cut key and the key are told apart by `hold`; the next key of full length is above all of them.
    let mut bound = cut(key);
    while let Some(last) = bound.pop() {
        if last < u8::MAX {
            bound.push(last + 1);
            break;
        }
    }
    bound
}

/// A key below another, and above or at all that are much below it: the server's stop of a reversed scan is not included.
fn before(key: &[u8]) -> Vec<u8> {
    match key.split_last() {
        None => Vec::new(),
        Some((0, rest)) => rest.to_vec(),
        Some((last, rest)) => [rest, &[last - 1], &[u8::MAX; 9]].concat(),
    }
}
