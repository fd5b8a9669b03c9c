//! Entries from candidates, and what to write for them (DESIGN.md §3, steps 4 and 5).

use super::candidates::{Own, View};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Cell, CellKind, RowMutation, Timestamp};
use crate::schema::state::{Candidate, TermValue};
use crate::schema::{Code, Definition, Filter, NO_FLOOR, Operand, entry, filter, term};
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The most entries one row may have under one definition. Past it the row is quarantined for the definition: nobody looks
/// such a row up, and a few arrays of a thousand elements would fill the disk.
pub const MAX_ENTRIES: usize = 100_000;
/// The most combinations of a row's present and past values that are looked through for outdated entries.
const MAX_OUTDATED: usize = 1_000_000;

/// What a definition's entries for one row ought to be.
#[derive(Debug)]
pub struct Derivation {
    /// M: the largest as-of among the newest candidates of all attributes the definition depends on, tombstones included.
    pub m: Timestamp,
    /// Every combination of newest candidates, as concatenated key forms of terms.
    pub current: BTreeSet<Vec<u8>>,
    /// Combinations with older candidates that are not current.
    pub outdated: BTreeSet<Vec<u8>>,
    /// The covered terms of the current entries.
    pub covered: Vec<u8>,
    /// Some attribute has more than one newest candidate, or the covered terms may be those of an older one.
    pub disputed: bool,
    /// This event raised M: nothing was settled, nothing was left out, and every candidate at M is the event's own, one per
    /// attribute.
    pub raised: bool,
    /// Why entries were left out. Current ones are left out all together; outdated ones then stay, and stay known, until the
    /// row has fewer values.
    pub refused: Option<Error>,
}

/// Derives a definition's entries. None when the row has no candidate for any of its attributes.
///
/// # Errors
/// [`ErrorKind::Corrupt`] for candidates that are not terms.
pub fn derive(definition: &Definition, view: &View, own: &Own, settled: bool) -> Result<Option<Derivation>> {
    let newest: Vec<(Code, Vec<&Candidate>)> =
        definition.codes().into_iter().map(|code| (code, view.newest(code))).collect();
    let as_of = newest.iter().flat_map(|(_, cs)| cs).map(|c| c.as_of).filter(|as_of| *as_of > NO_FLOOR);
    let Some(m) = as_of.max() else {
        return Ok(None);
    };
    let mut raised = !settled;
    for (code, candidates) in &newest {
        let mut at_m = candidates.iter().filter(|c| c.as_of == m);
        let first_is_own = at_m.next().is_none_or(|c| own.contains(*code, c));
        raised &= first_is_own && at_m.next().is_none();
    }
    let (covered, varies) = covered(definition, view)?;
    // A writer that knew less may have written this same entry with older covered values, at this same M.
    let disputed = newest.iter().any(|(_, candidates)| candidates.len() > 1) || (varies && !raised);
    let mut derivation =
        Derivation { m, current: BTreeSet::new(), outdated: BTreeSet::new(), covered, disputed, raised, refused: None };
    let (passes, may_have_passed) = match &definition.filter {
        Some(filter) => passes(filter, view)?,
        None => (true, true),
    };
    if !may_have_passed {
        // No writer, however little it knew, has written an entry.
        return Ok(Some(derivation));
    }
    let (now, ever) = values(definition, view)?;
    if passes {
        match combinations(&now, MAX_ENTRIES) {
            Ok(current) => derivation.current = current,
            Err(e) => return Ok(Some(Derivation { raised: false, refused: Some(e), ..derivation })),
        }
    }
    match combinations(&ever, MAX_OUTDATED) {
        Ok(mut outdated) => {
            outdated.retain(|c| !derivation.current.contains(c));
            derivation.outdated = outdated;
        }
        Err(e) => (derivation.raised, derivation.refused) = (false, Some(e)),
    }
    Ok(Some(derivation))
}

/// The key forms of one term.
type Forms<'a> = BTreeSet<Cow<'a, [u8]>>;

/// For each term the key forms that its newest candidates give, and those that any candidate gives.
fn values<'a>(definition: &Definition, view: &'a View) -> Result<(Vec<Forms<'a>>, Vec<Forms<'a>>)> {
    let (mut all_now, mut all_ever) = (Vec::new(), Vec::new());
    for (place, term) in definition.terms.iter().enumerate() {
        let Operand { code, functions } = &term.operand;
        let shape = definition.shape(place);
        let null = || shape.encode(&[term::NULL]).map(|n| Cow::Owned(n.into_owned()));
        // An entry exists iff its first term is present; later terms without a value are null.
        let forms = |candidate: &'a Candidate, out: &mut Forms<'a>| -> Result<()> {
            let elements = candidate.value.elements()?;
            if elements.is_empty() && place > 0 {
                out.insert(null()?);
            }
            if functions.is_empty() {
                for element in elements {
                    out.insert(shape.encode(element)?);
                }
            } else {
                for element in filter::apply(functions, &candidate.value)?.elements()? {
                    out.insert(Cow::Owned(shape.encode(element)?.into_owned()));
                }
            }
            Ok(())
        };
        let (mut now, mut ever) = (Forms::new(), Forms::new());
        let newest = view.newest(*code);
        for candidate in &newest {
            forms(candidate, &mut now)?;
        }
        if newest.is_empty() && place > 0 {
            now.insert(null()?);
        }
        for candidate in view.of(*code) {
            forms(candidate, &mut ever)?;
        }
        if place > 0 && !view.is_fixed(*code) {
            ever.insert(null()?);
        }
        all_now.push(now);
        all_ever.push(ever);
    }
    Ok((all_now, all_ever))
}

/// The covered terms, and whether any of them has candidates of several values.
fn covered(definition: &Definition, view: &View) -> Result<(Vec<u8>, bool)> {
    let (mut terms, mut varies) = (Vec::new(), false);
    for code in &definition.covered {
        let newest = view.newest(*code);
        match newest.first().map(|c| c.value.elements()).transpose()?.as_deref() {
            Some([element, ..]) => terms.extend_from_slice(element),
            Some([]) | None => term::encode_null(&mut terms),
        }
        let all = view.of(*code);
        varies |= all.iter().any(|c| c.value != all[0].value);
    }
    Ok((terms, varies))
}

/// The most choices of candidates that a filter is evaluated for; with more it counts as passed.
const MAX_CHOICES: usize = 4_096;

/// Whether a filter holds for some choice of newest candidates, and whether it holds for some choice of any candidates or
/// none.
fn passes(filter: &Filter, view: &View) -> Result<(bool, bool)> {
    let mut codes = Vec::new();
    filter.tree.codes(&mut |code| codes.push(code));
    codes.sort_unstable();
    codes.dedup();
    let none = TermValue::Tombstone;
    let (mut now, mut ever) = (Vec::new(), Vec::new());
    for code in &codes {
        let newest: BTreeSet<&TermValue> = view.newest(*code).into_iter().map(|c| &c.value).collect();
        now.push(if newest.is_empty() { vec![&none] } else { newest.into_iter().collect() });
        let all: BTreeSet<&TermValue> = view.of(*code).iter().map(|c| &c.value).chain([&none]).collect();
        ever.push(all.into_iter().collect());
    }
    let holds = some_choice_holds(filter, &codes, &now)?;
    Ok((holds, holds || some_choice_holds(filter, &codes, &ever)?))
}

fn some_choice_holds(filter: &Filter, codes: &[Code], choices: &[Vec<&TermValue>]) -> Result<bool> {
    let count = choices.iter().try_fold(1usize, |n, c| n.checked_mul(c.len()));
    let Some(count) = count.filter(|n| *n <= MAX_CHOICES) else { return Ok(true) };
    for number in 0..count {
        let mut rest = number;
        let chosen: Vec<&TermValue> = choices
            .iter()
            .map(|values| {
                let value = values[rest % values.len()];
                rest /= values.len();
                value
            })
            .collect();
        let holds = filter.tree.holds(&mut |operand, condition| {
            // Every code of the tree is among them.
            let value = codes.iter().position(|c| *c == operand.code).map_or(&TermValue::Tombstone, |i| chosen[i]);
            condition.accepts(&filter::apply(&operand.functions, value)?)
        })?;
        if holds {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Every choice of one value per term.
fn combinations(terms: &[Forms<'_>], most: usize) -> Result<BTreeSet<Vec<u8>>> {
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
        all = all
            .iter()
            .flat_map(|start: &Vec<u8>| values.iter().map(move |value| [start, value.as_ref()].concat()))
            .collect();
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
    let Derivation { m, current, outdated, covered, disputed, raised, .. } = derivation;
    let put = |disputed| {
        let value = entry::encode_value(disputed, covered);
        Cell::put(entry::FAMILY, Bytes::from_static(entry::QUALIFIER), *m, value)
    };
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
