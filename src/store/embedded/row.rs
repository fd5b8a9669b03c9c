//! From stored cells to rows.

use super::resolve::Mask;
use super::tables::Table;
use super::{error, key};
use crate::error::{Error, Result};
use crate::model::{Cell, Row};
use crate::schema::term;
use crate::store::{ColumnFilter, Columns, ReadSpec};
use bytes::Bytes;
use fjall::Iter;

/// A [`ReadSpec`] bound to a table.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    families: Vec<FamilyPlan>,
    raw: bool,
    filter: Option<ColumnFilter>,
}

#[derive(Debug, Clone)]
struct FamilyPlan {
    name: Bytes,
    max_versions: u32,
    /// The qualifiers read; none is all.
    qualifiers: Option<Vec<Bytes>>,
}

impl FamilyPlan {
    fn reads(&self, qualifier: &[u8]) -> bool {
        self.qualifiers.as_ref().is_none_or(|wanted| wanted.iter().any(|q| q == qualifier))
    }

    /// Whether anything of the family is read, and with it its family-wide markers.
    fn is_read(&self) -> bool {
        self.qualifiers.as_ref().is_none_or(|wanted| !wanted.is_empty())
    }
}

impl Plan {
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for a family the table doesn't have, or no versions.
    pub(super) fn new(table: &Table, spec: &ReadSpec) -> Result<Self> {
        if spec.max_versions == 0 {
            return Err(Error::invalid("expected at least 1 version to read, found 0"));
        }
        let mut families: Vec<FamilyPlan> = table
            .families
            .iter()
            .map(|(name, versions)| FamilyPlan {
                name: name.clone(),
                max_versions: spec.max_versions.min(*versions),
                qualifiers: None,
            })
            .collect();
        if let Columns::Exact(columns) = &spec.columns {
            families.iter_mut().for_each(|f| f.qualifiers = Some(Vec::new()));
            for (family, qualifier) in columns {
                let plan =
                    families.iter_mut().find(|f| f.name == family).ok_or_else(|| table.unknown_family(family))?;
                plan.qualifiers.get_or_insert_default().push(qualifier.clone());
            }
        }
        let filter = spec.filter.clone().filter(|_| !spec.raw);
        Ok(Self { families, raw: spec.raw, filter })
    }
}

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
    /// Bytes of keys and values taken in, and kept.
    examined: usize,
    kept: usize,
    capacity: usize,
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
            examined: 0,
            kept: 0,
            capacity: 1,
        }
    }

    /// Starts the row of `key`.
    fn start(&mut self, key: &Bytes) -> Result<()> {
        (self.prefix, self.row) = key::split_row(key)?;
        Ok(())
    }

    /// Starts a row whose prefix and key are known.
    pub(super) fn start_at(&mut self, prefix: Bytes, row: Bytes) {
        self.prefix = prefix;
        self.row = row;
    }

    fn is_at(&self, key: &[u8]) -> bool {
        key.starts_with(&self.prefix)
    }

    /// Takes in the next cell of the row, in stored order.
    pub(super) fn push(&mut self, key: &Bytes, value: Bytes) -> Result<()> {
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
        let shown = self.mask.shows(timestamp, kind);
        let keep = if self.plan.raw {
            self.reads_column || (kind.is_family_wide() && plan.is_read())
        } else {
            shown && self.reads_column && self.versions < plan.max_versions
        };
        if keep {
            self.versions += 1;
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
        Ok(())
    }

    /// Ends the row. It has no cells if the filter holds it back.
    pub(super) fn finish(&mut self) -> Found {
        self.capacity = self.cells.len().max(1);
        let mut row = Row { key: std::mem::take(&mut self.row), cells: std::mem::take(&mut self.cells) };
        self.family = None;
        if self.plan.filter.as_ref().is_some_and(|f| !f.accepts(&row)) {
            row.cells = Vec::new();
            self.kept = 0;
        }
        Found { row, examined: std::mem::take(&mut self.examined), kept: std::mem::take(&mut self.kept) }
    }
}

type Pair = (Bytes, Bytes);

/// The next key-value pair of an iterator.
pub(super) fn pair(guard: Option<fjall::Guard>) -> Result<Option<Pair>> {
    guard.map(|g| g.into_inner().map(|(k, v)| (k.into(), v.into())).map_err(|e| error::store("reading", e))).transpose()
}

/// Rows of an iterator over cells, in either direction; the cells of a row are in stored order in both.
pub(super) struct Rows {
    cells: Iter,
    reversed: bool,
    builder: RowBuilder,
    /// The cell after the last row: the next row's first, or last when reversed.
    ahead: Option<Pair>,
    started: bool,
}

impl Rows {
    pub(super) fn new(cells: Iter, reversed: bool, plan: Plan) -> Self {
        Self { cells, reversed, builder: RowBuilder::new(plan), ahead: None, started: false }
    }

    fn advance(&mut self) -> Result<Option<Pair>> {
        pair(if self.reversed { self.cells.next_back() } else { self.cells.next() })
    }

    /// Whether all rows were read.
    pub(super) fn at_end(&self) -> bool {
        self.started && self.ahead.is_none()
    }

    /// The next row; none at the end.
    pub(super) fn next_row(&mut self) -> Result<Option<Found>> {
        if !self.started {
            self.ahead = self.advance()?;
            self.started = true;
        }
        let Some((key, value)) = self.ahead.take() else { return Ok(None) };
        self.builder.start(&key)?;
        if self.reversed {
            let mut cells = vec![(key, value)];
            while let Some((key, value)) = self.advance()? {
                if !self.builder.is_at(&key) {
                    self.ahead = Some((key, value));
                    break;
                }
                cells.push((key, value));
            }
            for (key, value) in cells.into_iter().rev() {
                self.builder.push(&key, value)?;
            }
        } else {
            self.builder.push(&key, value)?;
            while let Some((key, value)) = self.advance()? {
                if !self.builder.is_at(&key) {
                    self.ahead = Some((key, value));
                    break;
                }
                self.builder.push(&key, value)?;
            }
        }
        Ok(Some(self.builder.finish()))
    }
}

#[cfg(test)]
mod tests {
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
            let mut builder = RowBuilder::new(Plan { families: vec![family], raw, filter: None });
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
}
