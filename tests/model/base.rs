//! The oracle: one base row by HBase's classic delete semantics, by brute force over all cells ever written.

use std::collections::BTreeSet;

/// The two columns: `a` is a text, `b` a set of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    A,
    B,
}

pub const COLUMNS: [Column; 2] = [Column::A, Column::B];

pub type Value = BTreeSet<&'static str>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Put(Column, Value),
    DeleteColumn(Column),
    DeleteVersion(Column),
    DeleteFamily,
    DeleteFamilyVersion,
}

/// The cells of one atomic mutation at one timestamp.
#[derive(Debug, Clone)]
pub struct Event {
    pub timestamp: i64,
    pub changes: Vec<Change>,
}

#[derive(Debug, Default, Clone)]
pub struct Row {
    written: Vec<Event>,
}

impl Row {
    pub fn write(&mut self, event: &Event) {
        self.written.push(event.clone());
    }

    /// Timestamp and value of the newest visible cell.
    pub fn current(&self, column: Column) -> Option<(i64, &Value)> {
        let cells = || self.written.iter().flat_map(|e| e.changes.iter().map(move |c| (e.timestamp, c)));
        let masked = |at: i64| {
            cells().any(|(t, change)| match change {
                Change::Put(..) => false,
                Change::DeleteColumn(c) => *c == column && at <= t,
                Change::DeleteFamily => at <= t,
                Change::DeleteVersion(c) => *c == column && at == t,
                Change::DeleteFamilyVersion => at == t,
            })
        };
        cells()
            .filter_map(|(t, change)| match change {
                Change::Put(c, value) if *c == column && !masked(t) => Some((t, value)),
                _ => None,
            })
            // Of equal timestamps the last one written stays.
            .fold(None, |best: Option<(i64, &Value)>, cell| match best {
                Some(b) if b.0 > cell.0 => Some(b),
                _ => Some(cell),
            })
    }
}
