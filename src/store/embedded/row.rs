//! From the stored cells of a row to the row as it is read.

use super::key;
use super::plan::Plan;
use super::resolve::{Effect, Mask};
use crate::error::{Error, Result};
use crate::model::{Cell, Row, Timestamp};
use crate::schema::term;
use crate::store::sieve::{Sieve, Step};
use bytes::Bytes;

/// So many cells of no interest in a row are read before the rest of them is skipped: finding a place costs about as much
/// as reading a hundred cells.
const IDLE: u32 = 128;

/// Puts the cells of one row after another together.
pub(super) struct RowBuilder {
    plan: Plan,
    mask: Mask,
    /// The escaped row key with its terminator: what all keys of the row start with.
    prefix: Bytes,
    row: Bytes,
    cells: Vec<Cell>,
    /// Index into the plan's families; none before the first cell of a row.
    family: Option<usize>,
    /// The escaped qualifier with its terminator, and the qualifier; kept from row to row, for rows tend to have the
    /// same columns.
    qualifier_run: Bytes,
    qualifier: Bytes,
    /// Whether the column is read, and how many versions of it were.
    reads_column: bool,
    versions: u32,
    /// The last cell's.
    timestamp: Timestamp,
    /// Cells since the last one that was kept.
    idle: u32,
    /// Bytes of keys and values taken in, and kept.
    examined: usize,
    kept: usize,
    capacity: usize,
}

/// What a plan wants of a row after a column.
enum Wanted<'a> {
    /// Whatever column comes next.
    Any,
    /// This column of the same family.
    Column(&'a [u8]),
    /// A later family, from its family-wide markers on.
    Family(&'a [u8]),
    /// Nothing.
    Nothing,
}

/// A row as read.
pub(super) struct Found {
    pub(super) row: Row,
    /// Bytes of keys and values looked at.
    pub(super) examined: usize,
    /// Bytes of keys and values in `row`.
    pub(super) kept: usize,
}

impl RowBuilder {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            plan,
            mask: Mask::new(),
            prefix: Bytes::new(),
            row: Bytes::new(),
            cells: Vec::new(),
            family: None,
            qualifier_run: Bytes::new(),
            qualifier: Bytes::new(),
            reads_column: false,
            versions: 0,
            timestamp: 0,
            idle: 0,
            examined: 0,
            kept: 0,
            capacity: 1,
        }
    }

    /// Starts the row of `key`.
    pub(super) fn start(&mut self, key: &Bytes) -> Result<()> {
        (self.prefix, self.row) = key::split_row(key)?;
        Ok(())
    }

    /// Starts a row whose prefix and key are known.
    pub(super) fn start_at(&mut self, prefix: Bytes, row: Bytes) {
        self.prefix = prefix;
        self.row = row;
    }

    /// What all keys of the row start with.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// What the row's key tells of it.
    pub(super) fn step(&self) -> Step {
        self.plan.sieve.as_ref().map_or(Step::Read, |sieve| sieve.step(&self.row))
    }

    /// Whether no further row can pass the filter.
    pub(super) fn is_over(&self) -> bool {
        self.plan.sieve.as_ref().is_some_and(Sieve::is_over)
    }

    /// Filters begin anew, as for another read.
    pub(super) fn restart(&mut self) {
        self.plan.sieve.iter_mut().for_each(Sieve::restart);
    }

    /// Whether a key is of the row.
    pub(super) fn is_at(&self, key: &[u8]) -> bool {
        key.starts_with(&self.prefix)
    }

    /// Takes in the next cell of the row, in stored order; what it does, and whether it is read.
    pub(super) fn push(&mut self, key: &Bytes, value: Bytes) -> Result<(Effect, bool)> {
        self.examined += key.len() + value.len();
        let mut at = self.prefix.len();
        let rest = key.get(at..).unwrap_or_default();
        let starts = |name: &[u8]| rest.starts_with(name) && rest.get(name.len()) == Some(&0);
        let same_family = self.family.filter(|f| starts(&self.plan.families[*f].name));
        let family = match same_family {
            Some(family) => family,
            None => {
                let family = self.plan.families.iter().position(|f| starts(&f.name));
                let family = family.ok_or_else(|| Error::corrupt("expected a family of the table in a cell's key"))?;
                self.family = Some(family);
                self.mask.enter_family();
                family
            }
        };
        let plan = &self.plan.families[family];
        at += plan.name.len() + 1;

        let rest = &key[at..];
        let known = !self.qualifier_run.is_empty() && rest.starts_with(&self.qualifier_run);
        if !known {
            let (len, escapes) = term::escaped_len(rest)?;
            self.qualifier_run = key.slice(at..at + len);
            self.qualifier = key::run(key, at, at + len, escapes);
        }
        if !known || same_family.is_none() {
            self.mask.enter_column();
            self.versions = 0;
            self.reads_column = plan.reads(&self.qualifier);
        }
        at += self.qualifier_run.len();

        let (timestamp, kind) = key::split_tail(&key[at..])?;
        self.timestamp = timestamp;
        self.idle += 1;
        let effect = self.mask.take(timestamp, kind);
        let keep = if self.plan.raw {
            self.reads_column || (kind.is_family_wide() && plan.is_read())
        } else {
            effect == Effect::Shown && self.reads_column && self.versions < plan.max_versions
        };
        if keep {
            self.versions += 1;
            self.idle = 0;
            self.kept += key.len() + value.len();
            if self.cells.capacity() == 0 {
                self.cells.reserve_exact(self.capacity);
            }
            self.cells.push(Cell {
                family: plan.name.clone(),
                qualifier: self.qualifier.clone(),
                timestamp,
                kind,
                value,
            });
        }
        Ok((effect, keep))
    }

    /// Where to go on instead of reading cell after cell that doesn't matter: set once there were enough of them.
    pub(super) fn skip(&mut self, last: &[u8]) -> Option<Vec<u8>> {
        if self.idle < IDLE || self.plan.raw {
            return None;
        }
        self.idle = 0;
        self.next_of_interest().filter(|target| target.as_slice() > last)
    }

    /// Whether the row has nothing more to read.
    pub(super) fn is_complete(&self) -> bool {
        !self.reads_column && matches!(self.next_wanted(), Some(Wanted::Nothing))
    }

    /// The lowest key of the row that may matter, if it is above all keys of this column.
    fn next_of_interest(&self) -> Option<Vec<u8>> {
        let plan = &self.plan.families[self.family?];
        // Family-wide markers are among the cells of the empty qualifier.
        let more_here = self.reads_column && self.versions < plan.max_versions && !self.mask.hides_from(self.timestamp);
        if self.qualifier.is_empty() || more_here {
            return None;
        }
        let mut key = self.prefix.to_vec();
        match self.next_wanted()? {
            Wanted::Any => {
                key.extend_from_slice(&plan.name);
                key.push(0);
                key.extend_from_slice(&self.qualifier_run);
                key::after_run(&mut key);
            }
            Wanted::Column(qualifier) => {
                key.extend_from_slice(&plan.name);
                key.push(0);
                term::escape(qualifier, &mut key);
            }
            Wanted::Family(name) => {
                key.extend_from_slice(name);
                key.push(0);
            }
            Wanted::Nothing => key::after_run(&mut key),
        }
        key.truncate(key::KEY_LIMIT);
        Some(key)
    }

    /// What the plan wants after this column.
    fn next_wanted(&self) -> Option<Wanted<'_>> {
        let family = self.family?;
        let Some(qualifiers) = &self.plan.families[family].qualifiers else { return Some(Wanted::Any) };
        let here = qualifiers.iter().find(|q| **q > self.qualifier).map(|q| Wanted::Column(q));
        let later = || self.plan.families[family + 1..].iter().find(|f| f.is_read()).map(|f| Wanted::Family(&f.name));
        Some(here.or_else(later).unwrap_or(Wanted::Nothing))
    }

    /// Ends the row. It has the cells that pass the filter.
    pub(super) fn finish(&mut self) -> Found {
        self.capacity = self.cells.len().max(1);
        let mut row = Row { key: std::mem::take(&mut self.row), cells: std::mem::take(&mut self.cells) };
        self.family = None;
        self.idle = 0;
        if let Some(sieve) = self.plan.sieve.as_mut().filter(|_| !row.cells.is_empty()) {
            sieve.apply(&mut row);
            if row.cells.is_empty() {
                self.kept = 0;
            }
        }
        Found { row, examined: std::mem::take(&mut self.examined), kept: std::mem::take(&mut self.kept) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::FamilyPlan;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Pieces of keys, so that random keys get some way before they break.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"\0\x01".to_vec()),
            Just(b"\0\xff".to_vec()),
            Just(b"f\0".to_vec()),
            Just(b"\xff\xff\xff\xff\xff\xff\xff\xfe\xfb".to_vec()),
            vec(any::<u8>(), 0..4),
        ];
        vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn random_keys_are_refused_or_read(keys in vec(key(), 1..6), raw in any::<bool>()) {
            let family = FamilyPlan { name: "f".into(), max_versions: 3, qualifiers: None };
            let mut builder = RowBuilder::new(Plan { families: vec![family], raw, sieve: None });
            for key in keys.into_iter().map(Bytes::from) {
                if (builder.prefix.is_empty() || !builder.is_at(&key)) && builder.start(&key).is_err() {
                    continue;
                }
                if builder.push(&key, Bytes::new()).is_err() {
                    builder.finish();
                }
            }
        }
    }

    #[test]
    fn fuzz_cell_keys() {
        let words = ["\0\u{1}", "f\0", "g\0", "row"];
        crate::fuzz::run("cell_keys", &words, |input| {
            let bytes = Bytes::copy_from_slice(input);
            if let Ok((prefix, row)) = key::split_row(&bytes) {
                assert_eq!(key::row_prefix(&row), prefix);
                assert_eq!(key::escaped_size(&row), prefix.len());
            }
            if let Ok((timestamp, kind)) = key::split_tail(input) {
                assert_eq!(key::tail(timestamp, kind), *input);
            }
            let family = FamilyPlan { name: "f".into(), max_versions: 3, qualifiers: None };
            let mut builder = RowBuilder::new(Plan { families: vec![family], raw: true, sieve: None });
            let started = builder.start(&bytes).and_then(|()| builder.push(&bytes, Bytes::from_static(b"v")));
            if started.is_ok() {
                for cell in builder.finish().row.cells {
                    let mut again = key::row_prefix(&key::split_row(&bytes).unwrap().1);
                    again.extend([&cell.family[..], b"\0"].concat());
                    term::escape(&cell.qualifier, &mut again);
                    again.extend(key::tail(cell.timestamp, cell.kind));
                    assert_eq!(again.escape_ascii().to_string(), input.escape_ascii().to_string());
                }
            }
            crate::fuzz::outcome(&started.map(|_| ()))
        });
    }
}
