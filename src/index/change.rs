//! What an event says about each term.

use crate::error::Error;
use crate::model::{Cell, CellKind, Timestamp};
use crate::schema::state::TermValue;
use crate::schema::{Code, TableSchema, encoding};
use std::collections::BTreeMap;

/// What happened to a term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// A put. A value that can't be decoded counts as one without value: the base shows no usable value either.
    Put(TermValue),
    /// All versions at or below the timestamp were deleted.
    Delete,
    /// The version at exactly the timestamp was deleted; says nothing of what is current now.
    DeleteVersion,
}

/// One cell, seen as a change of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TermChange {
    /// The attribute.
    pub code: Code,
    /// The cell's timestamp.
    pub timestamp: Timestamp,
    /// What happened.
    pub kind: ChangeKind,
}

/// A term's cell that can't be indexed.
#[derive(Debug)]
pub struct Unfit {
    /// The attribute's name.
    pub attribute: String,
    /// The attribute.
    pub code: Code,
    /// Why not.
    pub reason: Error,
}

/// The changes of the cells of one event that share a timestamp; what §3 calls one event.
#[derive(Debug, Default)]
pub struct Changes {
    /// Distinct changes.
    pub changes: Vec<TermChange>,
    /// What could not be decoded; `changes` has each of them as a put without value.
    pub unfit: Vec<Unfit>,
}

/// Reads the cells of one atomic row mutation as changes of indexed terms, grouped by timestamp, oldest first. Empty when the
/// event is irrelevant. A family-wide marker is a change of every term of the family.
pub fn read(schema: &TableSchema, cells: &[Cell]) -> BTreeMap<Timestamp, Changes> {
    let mut groups: BTreeMap<Timestamp, Changes> = BTreeMap::new();
    for cell in cells {
        let concerned = schema.indexed().iter().filter(|a| {
            a.family.as_bytes() == cell.family
                && (cell.kind.is_family_wide() || a.qualifier.as_bytes() == cell.qualifier)
        });
        for attribute in concerned {
            let group = groups.entry(cell.timestamp).or_default();
            let kind = match cell.kind {
                CellKind::DeleteColumn | CellKind::DeleteFamily => ChangeKind::Delete,
                CellKind::DeleteVersion | CellKind::DeleteFamilyVersion => ChangeKind::DeleteVersion,
                CellKind::Put => match encoding::decode(attribute, &cell.value) {
                    Ok(value) => ChangeKind::Put(TermValue::of(&value)),
                    Err(reason) => {
                        group.unfit.push(Unfit { attribute: attribute.name.clone(), code: attribute.code, reason });
                        ChangeKind::Put(TermValue::Tombstone)
                    }
                },
            };
            let change = TermChange { code: attribute.code, timestamp: cell.timestamp, kind };
            if !group.changes.contains(&change) {
                group.changes.push(change);
            }
        }
    }
    groups
}
