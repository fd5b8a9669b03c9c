//! Settling: what timestamps cannot prove is read from the base row (DESIGN.md §3, step 3).

use super::candidates::{Own, View, as_of, newest, own};
use super::change::{ChangeKind, TermChange};
use crate::model::Timestamp;
use crate::schema::Code;
use crate::schema::state::{Candidate, TermValue};

/// A change whose outcome timestamps don't prove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsettled {
    /// The change.
    pub change: TermChange,
    /// The newest as-of concerned: at or above the change's own timestamp and the term's floor.
    pub at: Timestamp,
}

/// What the base row shows of a term: the timestamp and value of its newest visible cell.
pub type Shown = Option<(Timestamp, TermValue)>;

/// Which of an event's changes timestamps don't prove, given the state row as read after the event's own candidates were put.
///
/// A change is proven when it is above every other candidate's as-of and above the floor. It is of no consequence when it is
/// older than the source of a single, live newest candidate whose as-of is above the floor.
pub fn unsettled(changes: &[TermChange], view: &View, floor: impl Fn(Code) -> Timestamp) -> Vec<Unsettled> {
    let mut found = Vec::new();
    for change in changes {
        let mine = own(change);
        let top = newest(view.of(change.code).iter().filter(|c| Some(*c) != mine.as_ref()));
        let known = as_of(&top);
        let floor = floor(change.code);
        let proven = change.kind != ChangeKind::DeleteVersion && change.timestamp > known && change.timestamp > floor;
        let older = match top.as_slice() {
            [one] => !one.value.is_tombstone() && change.timestamp < one.source && one.as_of > floor,
            _ => false,
        };
        if !proven && !older {
            found.push(Unsettled { change: change.clone(), at: known.max(change.timestamp).max(floor) });
        }
    }
    found
}

/// The candidate that announces a change at its as-of before the base row is read: its own value if it is a put, which may
/// not be readable yet, else a tombstone. Whoever wrote below without having seen it is seen by the read that follows;
/// whoever reads later settles too.
pub fn raise(unsettled: &Unsettled) -> Candidate {
    match &unsettled.change.kind {
        ChangeKind::Put(value) => {
            Candidate { as_of: unsettled.at, source: unsettled.change.timestamp, value: value.clone() }
        }
        ChangeKind::Delete | ChangeKind::DeleteVersion => Candidate::own(unsettled.at, TermValue::Tombstone),
    }
}

/// What settling found for one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// Candidates to put: the newest known ones that the change doesn't rule out, and what the base shows. Better one too many
    /// than one too few.
    pub candidates: Vec<Candidate>,
    /// The base may not show the change's effect yet: it is to be applied once more, later.
    pub late: bool,
}

/// Settles one change, given the state row as read after the raise, and what the base row shows.
pub fn resolve(unsettled: &Unsettled, own: &Own, view: &View, shown: &Shown) -> Resolution {
    let Unsettled { change, at } = unsettled;
    let raised = raise(unsettled);
    let mut candidates = Vec::new();
    for known in newest(view.of(change.code).iter().filter(|c| !own.contains(change.code, c) && **c != raised)) {
        let ruled_out = match change.kind {
            ChangeKind::Put(_) => false,
            ChangeKind::Delete => known.source <= change.timestamp,
            ChangeKind::DeleteVersion => known.source == change.timestamp,
        };
        if !known.value.is_tombstone() && !ruled_out {
            candidates.push(Candidate { as_of: *at, source: known.source, value: known.value.clone() });
        }
    }
    candidates.push(match shown {
        None => Candidate::own(*at, TermValue::Tombstone),
        Some((source, value)) => Candidate { as_of: *source.max(at), source: *source, value: value.clone() },
    });
    let late = match change.kind {
        ChangeKind::Put(_) => false,
        ChangeKind::Delete => shown.as_ref().is_some_and(|(source, _)| *source <= change.timestamp),
        ChangeKind::DeleteVersion => true,
    };
    Resolution { candidates, late }
}
