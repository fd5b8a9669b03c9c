//! Sorting: the first rows in an order, kept in a heap.

use super::budget::{Budget, Held};
use super::found::Found;
use super::result::ResultRow;
use crate::error::Result;
use crate::query::bind::{Column, Order, Output};
use crate::query::plan::{Plan, Sorting};
use crate::schema::term;
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What a row is sorted by: all keys of ORDER BY as bytes that compare as the rows do, then the row's own key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SortKey {
    pub(super) bytes: Vec<u8>,
    pub(super) row: Bytes,
}

/// A value, a null below the values, a null above them.
const VALUE: u8 = 1;
const NULL_FIRST: u8 = 0;
const NULL_LAST: u8 = 2;

impl SortKey {
    fn of(found: &Found<'_>, order: &[Order]) -> Self {
        let mut bytes = Vec::new();
        for key in order {
            append(&mut bytes, found, key);
        }
        Self { bytes, row: found.key().clone() }
    }

    /// The order of rows; those that compare equal by their keys, backwards if the first key of ORDER BY is.
    fn order(&self, other: &Self, backwards: bool) -> Ordering {
        let rows = self.row.cmp(&other.row);
        self.bytes.cmp(&other.bytes).then(if backwards { rows.reverse() } else { rows })
    }
}

/// Appends one key of ORDER BY.
fn append(bytes: &mut Vec<u8>, found: &Found<'_>, key: &Order) {
    let marker = bytes.len();
    bytes.push(VALUE);
    match key.column {
        Column::RowKey => term::escape(found.key(), bytes),
        Column::Attribute(slot) => match found.encoded(slot) {
            Some(value) => bytes.extend_from_slice(&value),
            None => bytes[marker] = if key.nulls_first { NULL_FIRST } else { NULL_LAST },
        },
    }
    if key.descending {
        bytes[marker + 1..].iter_mut().for_each(|b| *b = !*b);
    }
}

/// What may be told of rows still to come where they are read nearly in order.
pub(super) struct Nearness {
    /// They are in the order of so many keys of ORDER BY,
    keys: usize,
    /// where the keys differ in so many bytes.
    bytes: usize,
    /// Of rows that are equal in all keys, any may be left out. Of several pages each has to know which.
    any: bool,
}

impl Nearness {
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let Sorting::Near { keys, limit, .. } = plan.sorting else { return None };
        // The first `limit` − 3 bytes of a text are in order. A key has no fewer bytes: there are a marker and a type byte
        // before the text, which is escaped, and perhaps other keys.
        Some(Self {
            keys,
            bytes: limit.saturating_sub(3) as usize,
            any: plan.page.is_none() && keys == plan.query.order.len(),
        })
    }

    /// Whether no row after `found`, whose key this is, comes before a row with the key `last`.
    fn ends(&self, found: &Found<'_>, order: &[Order], key: &SortKey, last: &SortKey) -> bool {
        let mut start = Vec::new();
        order.iter().take(self.keys).for_each(|o| append(&mut start, found, o));
        let len = start.len().min(self.bytes);
        // `last` may be shorter: then it differs before its end, for no key is the start of another.
        let differs = key.bytes[..len] > last.bytes[..len.min(last.bytes.len())];
        differs || (self.any && key.bytes.len() < self.bytes && key.bytes == last.bytes)
    }
}

/// A row and what it is sorted by.
struct Sorted {
    key: SortKey,
    backwards: bool,
    result: ResultRow,
}

impl Sorted {
    /// What it takes in memory, in bytes.
    fn weight(&self) -> u64 {
        (size_of::<Self>() + self.key.bytes.capacity() + self.key.row.len()) as u64 + self.result.weight()
    }
}

impl Ord for Sorted {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.order(&other.key, self.backwards)
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

/// Keeps the first rows of an order, of those after some place.
pub(super) struct Sort {
    backwards: bool,
    most: u64,
    after: Option<SortKey>,
    near: Option<Nearness>,
    /// No row still to come is among the first.
    is_over: bool,
    /// The last of the rows kept is on top.
    heap: BinaryHeap<Sorted>,
    sorted: Option<std::vec::IntoIter<Sorted>>,
}

impl Sort {
    /// Keeps `most` rows of those after `after`.
    pub(super) fn new(order: &[Order], most: u64, after: Option<SortKey>, near: Option<Nearness>) -> Self {
        let backwards = order.first().is_some_and(|key| key.descending);
        Self { backwards, most, after, near, is_over: most == 0, heap: BinaryHeap::new(), sorted: None }
    }

    /// Whether no row still to come can be among the first.
    pub(super) fn is_full(&self) -> bool {
        self.is_over
    }

    /// Takes a row.
    ///
    /// # Errors
    /// [`TooCostly`](crate::error::ErrorKind::TooCostly) when the rows do not fit in memory.
    pub(super) fn push(
        &mut self,
        found: &Found<'_>,
        order: &[Order],
        output: &Output,
        budget: &mut Budget,
    ) -> Result<()> {
        let key = SortKey::of(found, order);
        if self.after.as_ref().is_some_and(|after| key.order(after, self.backwards).is_le()) {
            return Ok(());
        }
        if self.heap.len() as u64 >= self.most
            && let Some(last) = self.heap.peek()
        {
            if key.order(&last.key, self.backwards).is_ge() {
                self.is_over = self.near.as_ref().is_some_and(|near| near.ends(found, order, &key, &last.key));
                return Ok(());
            }
            if let Some(last) = self.heap.pop() {
                budget.release(Held::Sorting, last.weight());
            }
        }
        let sorted = Sorted { key, backwards: self.backwards, result: ResultRow::of(found, output)? };
        budget.hold(Held::Sorting, sorted.weight())?;
        self.heap.push(sorted);
        Ok(())
    }

    /// The next of the rows in their order, up to `most`; no more may be pushed.
    pub(super) fn take(&mut self, most: usize, budget: &mut Budget) -> Vec<(SortKey, ResultRow)> {
        let sorted = self.sorted.get_or_insert_with(|| std::mem::take(&mut self.heap).into_sorted_vec().into_iter());
        let taken = sorted.take(most).map(|sorted| {
            budget.release(Held::Sorting, sorted.weight());
            (sorted.key, sorted.result)
        });
        taken.collect()
    }
}
