//! What delete markers hide: HBase's classic masking, over the cells of one row in stored order.
//!
//! The order does the work: a marker comes before every put it can hide. Family-wide markers have the empty qualifier, so
//! they lead their family; within a column it is newest first, markers before puts. Whether a marker was written before
//! or after a put makes no difference.

use crate::model::{CellKind, Timestamp};

/// Below every timestamp.
const NONE: Timestamp = -1;

/// What a cell does, given the markers above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// A put that nothing hides.
    Shown,
    /// A put that a marker hides.
    Hidden,
    /// A marker that hides what no other does.
    Marks,
    /// A marker whose every put another one hides.
    Superseded,
}

/// The markers met so far in the current family and column.
#[derive(Debug)]
pub(super) struct Mask {
    family_below: Timestamp,
    /// Newest first, as met.
    family_exact: Vec<Timestamp>,
    column_below: Timestamp,
    column_exact: Timestamp,
}

impl Mask {
    pub(super) fn new() -> Self {
        Self { family_below: NONE, family_exact: Vec::new(), column_below: NONE, column_exact: NONE }
    }

    /// The next cells are of another family.
    pub(super) fn enter_family(&mut self) {
        self.family_below = NONE;
        self.family_exact.clear();
        self.enter_column();
    }

    /// The next cells are of another column of the family.
    pub(super) fn enter_column(&mut self) {
        self.column_below = NONE;
        self.column_exact = NONE;
    }

    /// Whether all puts of the column at or below a timestamp are hidden.
    pub(super) fn hides_from(&self, timestamp: Timestamp) -> bool {
        timestamp <= self.family_below.max(self.column_below)
    }

    /// Takes in a cell.
    pub(super) fn take(&mut self, timestamp: Timestamp, kind: CellKind) -> Effect {
        let column_from = self.family_below.max(self.column_below);
        let passed = match kind {
            CellKind::Put => {
                let shown = timestamp > column_from
                    && timestamp != self.column_exact
                    && (self.family_exact.is_empty()
                        || self.family_exact.binary_search_by(|met| timestamp.cmp(met)).is_err());
                return if shown { Effect::Shown } else { Effect::Hidden };
            }
            CellKind::DeleteFamily | CellKind::DeleteFamilyVersion => timestamp <= self.family_below,
            CellKind::DeleteColumn | CellKind::DeleteVersion => timestamp <= column_from,
        };
        match kind {
            CellKind::DeleteFamily => self.family_below = self.family_below.max(timestamp),
            CellKind::DeleteFamilyVersion => self.family_exact.push(timestamp),
            CellKind::DeleteColumn => self.column_below = self.column_below.max(timestamp),
            // Only the last one can matter: a put at its timestamp would be the next cell.
            CellKind::DeleteVersion => self.column_exact = timestamp,
            CellKind::Put => {}
        }
        if passed { Effect::Superseded } else { Effect::Marks }
    }
}
