//! Entries from candidates, and what to write for them (DESIGN.md §3, steps 4 and 5).

use super::candidates::{Own, View};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Cell, CellKind, RowMutation, Timestamp};
use crate::schema::state::{Candidate, TermValue};
use crate::schema::{Code, Definition, entry, term};
use bytes::Bytes;
use std::collections::BTreeSet;

/// The most entries one row may have under one definition. Past it the row is quarantined for the definition: nobody looks
/// such a row up, and a few arrays of a thousand elements would fill the disk.
pub const MAX_ENTRIES: usize = 100_000;
/// The most combinations of a row's present and past values that are looked through for outdated entries.
const MAX_OUTDATED: usize = 1_000_000;

/// What a definition's entries for one row ought to be.
#[derive(Debug)]
pub struct Derivation {
    /// M: the largest as-of among the terms' newest candidates, tombstones included.
    pub m: Timestamp,
    /// Every combination of newest candidates, as concatenated term encodings.
    pub current: BTreeSet<Vec<u8>>,
    /// Combinations with older candidates that are not current.
    pub outdated: BTreeSet<Vec<u8>>,
    /// Some term has more than one newest candidate.
    pub disputed: bool,
    /// This event raised M: nothing was settled, nothing was left out, and every candidate at M is the event's own, one per
    /// term.
    pub raised: bool,
    /// Why entries were left out. Current ones are left out all together; outdated ones then stay, and stay known, until the
    /// row has fewer values.
    pub refused: Option<Error>,
}

/// Derives a definition's entries. None when the row has no candidate for any of its terms.
///
/// # Errors
/// [`ErrorKind::Corrupt`] for candidates that are not terms.
pub fn derive(definition: &Definition, view: &View, own: &Own, settled: bool) -> Result<Option<Derivation>> {
    let newest: Vec<(Code, Vec<&Candidate>)> =
        definition.terms.iter().map(|t| (t.operand.code, view.newest(t.operand.code))).collect();
    let Some(m) = newest.iter().flat_map(|(_, cs)| cs).map(|c| c.as_of).max() else {
        return Ok(None);
    };
    let mut raised = !settled;
    for (code, candidates) in &newest {
        let mut at_m = candidates.iter().filter(|c| c.as_of == m);
        let first_is_own = at_m.next().is_none_or(|c| own.contains(*code, c));
        raised &= first_is_own && at_m.next().is_none();
    }
    let mut current_values = Vec::with_capacity(newest.len());
    let mut past_values = Vec::with_capacity(newest.len());
    for (i, (code, candidates)) in newest.iter().enumerate() {
        let mut now = BTreeSet::new();
        for candidate in candidates {
            now.extend(values(&candidate.value, i)?);
        }
        if candidates.is_empty() && i > 0 {
            now.insert(&[term::NULL][..]);
        }
        let mut ever = now.clone();
        for candidate in view.of(*code) {
            ever.extend(values(&candidate.value, i)?);
        }
        if i > 0 {
            ever.insert(&[term::NULL]);
        }
        current_values.push(now);
        past_values.push(ever);
    }
    let disputed = newest.iter().any(|(_, candidates)| candidates.len() > 1);
    let derivation =
        |current, outdated, raised, refused| Derivation { m, current, outdated, disputed, raised, refused };
    let current = match combinations(&current_values, MAX_ENTRIES) {
        Ok(current) => current,
        Err(e) => return Ok(Some(derivation(BTreeSet::new(), BTreeSet::new(), false, Some(e)))),
    };
    Ok(Some(match combinations(&past_values, MAX_OUTDATED) {
        Ok(mut outdated) => {
            outdated.retain(|c| !current.contains(c));
            derivation(current, outdated, raised, None)
        }
        Err(e) => derivation(current, BTreeSet::new(), false, Some(e)),
    }))
}

/// The values of a candidate as the term at place `i`: an entry exists iff its first term is present; later terms without
/// a value are null.
fn values(value: &TermValue, i: usize) -> Result<Vec<&[u8]>> {
    let mut elements = value.elements()?;
    if elements.is_empty() && i > 0 {
        elements.push(&[term::NULL]);
    }
    Ok(elements)
}

/// Every choice of one value per term.
fn combinations(terms: &[BTreeSet<&[u8]>], most: usize) -> Result<BTreeSet<Vec<u8>>> {
    let count = terms.iter().try_fold(1usize, |n, t| n.checked_mul(t.len()));
    if count.is_none_or(|n| n > most) {
        return Err(Error::new(
            ErrorKind::TooCostly,
            format!(
                "expected at most {most} combinations of values of one row, found {}",
                terms.iter().map(|t| t.len().to_string()).collect::<Vec<_>>().join(" × ")
            ),
        ));
    }
    let mut all = vec![Vec::new()];
    for values in terms {
        all = all.iter().flat_map(|start: &Vec<u8>| values.iter().map(move |value| [start, *value].concat())).collect();
    }
    Ok(all.into_iter().collect())
}

/// What to write for a definition's entries of one row.
#[derive(Debug, Default)]
pub struct Writes {
    /// Entries that are current.
    pub current: Vec<RowMutation>,
    /// Entries that no longer are.
    pub outdated: Vec<RowMutation>,
}

/// The writes that make a definition's entries of `row` so.
///
/// Current entries are written at M also when they seem to be there already. Outdated ones get a marker at M − 1, which can
/// never hide an entry that becomes current again, since that is written at M or above. Unless the event raised M they are also
/// written at M as disputed: they may have been written at this same M, where the marker doesn't reach them.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when a combination is not made of terms.
pub fn writes(definition: &Definition, derivation: &Derivation, row: &[u8], marker_guard: bool) -> Result<Writes> {
    let Derivation { m, current, outdated, disputed, raised, .. } = derivation;
    let put =
        |disputed| Cell::put(entry::FAMILY, Bytes::from_static(entry::QUALIFIER), *m, entry::encode_value(disputed));
    let mut writes = Writes::default();
    for terms in current {
        writes.current.push(RowMutation::new(entry::encode(definition, terms, row)?, vec![put(*disputed)]));
    }
    for terms in outdated {
        let below = if marker_guard { m - 1 } else { *m };
        let mut cells = Vec::with_capacity(2);
        if below >= 0 {
            cells.push(Cell::delete(CellKind::DeleteFamily, entry::FAMILY, Bytes::new(), below));
        }
        if !raised && marker_guard {
            cells.push(put(true));
        }
        if !cells.is_empty() {
            writes.outdated.push(RowMutation::new(entry::encode(definition, terms, row)?, cells));
        }
    }
    Ok(writes)
}

/// The markers that prune a term's superseded candidates: those below its newest as-of N, by markers at N − 1, only if N
/// holds a single candidate. The caller has made sure that the event raised M of every definition containing the term.
pub fn prunes(code: Code, view: &View) -> Vec<Cell> {
    let newest = view.newest(code);
    let [top] = newest.as_slice() else { return Vec::new() };
    view.of(code).iter().filter(|c| c.as_of < top.as_of).map(|c| c.prune(code, top.as_of - 1)).collect()
}
