//! What a running query holds in memory, and until when it may run.

use super::Actuals;
use crate::error::{Error, ErrorKind, Result};
use crate::query::explain::grouped;
use crate::query::plan::Plan;
use std::time::Instant;

/// What memory is held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// Rows that are sorted.
    Sorting,
    /// Hashes of rows that may be met again.
    Seen,
    /// Rows read, and rows of the answer that are not fetched yet.
    Page,
}

/// Counts bytes. Keys and values are counted as they are, with an estimate of what holding them costs beyond.
#[derive(Debug)]
pub(super) struct Budget {
    memory: u64,
    sorting: u64,
    seen: u64,
    page: u64,
    deadline: Option<Instant>,
}

impl Budget {
    pub(super) fn new(plan: &Plan) -> Self {
        Self { memory: plan.memory, sorting: 0, seen: 0, page: 0, deadline: plan.deadline }
    }

    /// Takes memory.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] when it is not there; the message says what holds the memory, and what to do.
    pub(super) fn hold(&mut self, what: Held, bytes: u64) -> Result<()> {
        *self.of(what) += bytes;
        let held = self.sorting + self.seen + self.page;
        if held <= self.memory {
            return Ok(());
        }
        let parts = [
            (self.sorting, "rows to be sorted", "add a LIMIT, or index what ORDER BY asks for with --ordered"),
            (self.seen, "hashes of rows already met", "take fewer values into the OR or IN"),
            (self.page, "rows at hand", "ask for fewer columns"),
        ];
        let list: Vec<String> = parts
            .iter()
            .filter(|(bytes, ..)| *bytes > 0)
            .map(|(bytes, what, _)| format!("{} for {what}", size(*bytes)))
            .collect();
        let advice = parts.iter().max_by_key(|(bytes, ..)| *bytes).map_or("", |(.., advice)| advice);
        Err(Error::new(
            ErrorKind::TooCostly,
            format!(
                "the query would hold more than its {} of memory: {}; {advice}, narrow the WHERE, or give it more memory",
                size(self.memory),
                list.join(", ")
            ),
        ))
    }

    /// Gives memory back.
    pub(super) fn release(&mut self, what: Held, bytes: u64) {
        let held = self.of(what);
        *held = held.saturating_sub(bytes);
    }

    fn of(&mut self, what: Held) -> &mut u64 {
        match what {
            Held::Sorting => &mut self.sorting,
            Held::Seen => &mut self.seen,
            Held::Page => &mut self.page,
        }
    }

    /// So many rows of a size, in bytes, may be read at once: an eighth of the memory.
    pub(super) fn rows_at_once(&self, row: u64) -> usize {
        usize::try_from(self.memory / 8 / row.max(1)).unwrap_or(usize::MAX).max(1)
    }

    /// Whether there is time left.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] after the deadline, with how far the query got.
    pub(super) fn check_time(&self, actuals: &Actuals) -> Result<()> {
        if self.deadline.is_none_or(|deadline| Instant::now() < deadline) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!(
                "the time for the query is over: it had read {} entries and {} base rows, and returned {} rows; allow it more time, or narrow the WHERE",
                grouped(actuals.entries),
                grouped(actuals.base_rows),
                grouped(actuals.returned)
            ),
        ))
    }
}

fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes.is_multiple_of(*unit) => format!("{} {name}", bytes / unit),
        Some((unit, name)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} bytes"),
    }
}
