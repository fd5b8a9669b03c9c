//! Stored cells in order, and the rows they make up.

use super::plan::Plan;
use super::row::{Found, RowBuilder};
use super::{error, key as keys};
use crate::error::Result;
use crate::model::Row;
use crate::store::sieve::Step;
use bytes::Bytes;
use fjall::{Iter, Keyspace, Readable, Snapshot};
use std::ops::Bound;

type Pair = (Bytes, Bytes);

/// The next key-value pair of an iterator.
pub(super) fn pair(guard: Option<fjall::Guard>) -> Result<Option<Pair>> {
    guard.map(|g| g.into_inner().map(|(k, v)| (k.into(), v.into())).map_err(|e| error::store("reading", e))).transpose()
}

/// The next key of an iterator.
pub(super) fn key(guard: Option<fjall::Guard>) -> Result<Option<Bytes>> {
    guard.map(|g| g.key().map(Bytes::from).map_err(|e| error::store("reading", e))).transpose()
}

/// Reads one row.
pub(super) fn read_row(snapshot: &Snapshot, keyspace: &Keyspace, key: &Bytes, builder: &mut RowBuilder) -> Result<Row> {
    let prefix = keys::row_prefix(key);
    let mut end = prefix.clone();
    keys::after_run(&mut end);
    let mut cells = snapshot.range::<&Vec<u8>, _>(keyspace, &prefix..&end);
    builder.start_at(prefix.into(), key.clone());
    builder.restart();
    if builder.is_over() || builder.step() != Step::Read {
        return Ok(builder.finish().row);
    }
    while let Some((key, value)) = pair(cells.next())? {
        builder.push(&key, value)?;
        if builder.is_complete() {
            break;
        }
        if let Some(target) = builder.skip(&key).filter(|t| *t < end) {
            cells = snapshot.range::<&Vec<u8>, _>(keyspace, &target..&end);
        }
    }
    Ok(builder.finish().row)
}

/// The rows in a range of keys, in either direction; the cells of a row are in stored order in both.
pub(super) struct Rows {
    snapshot: Snapshot,
    keyspace: Keyspace,
    range: keys::KeyRange,
    cells: Iter,
    reversed: bool,
    builder: RowBuilder,
    /// The cell after the last row: the next row's first, or last when reversed.
    ahead: Option<Pair>,
    started: bool,
}

impl Rows {
    pub(super) fn new(
        snapshot: Snapshot,
        keyspace: Keyspace,
        range: keys::KeyRange,
        reversed: bool,
        plan: Plan,
    ) -> Self {
        let cells = snapshot.range::<Vec<u8>, _>(&keyspace, range.clone());
        let builder = RowBuilder::new(plan);
        Self { snapshot, keyspace, range, cells, reversed, builder, ahead: None, started: false }
    }

    fn advance(&mut self) -> Result<Option<Pair>> {
        pair(if self.reversed { self.cells.next_back() } else { self.cells.next() })
    }

    /// Goes on at a key above the last one read.
    fn skip_to(&mut self, key: Vec<u8>) {
        self.range.0 = Bound::Included(key);
        if !keys::is_empty(&self.range) {
            self.cells = self.snapshot.range::<Vec<u8>, _>(&self.keyspace, self.range.clone());
        }
    }

    /// Whether all rows were read that there can be.
    pub(super) fn at_end(&self) -> bool {
        (self.started && self.ahead.is_none()) || self.builder.is_over()
    }

    /// Passes over the row that was started, and those after it that can't pass the filter either.
    fn pass(&mut self, step: Step) -> Result<()> {
        let after_row = || {
            let mut key = self.builder.prefix().to_vec();
            keys::after_run(&mut key);
            key
        };
        if self.reversed {
            // What comes next has smaller keys.
            self.ahead = None;
            while let Some(pair) = self.advance()? {
                if !self.builder.is_at(&pair.0) {
                    self.ahead = Some(pair);
                    break;
                }
            }
            return Ok(());
        }
        let target = match step {
            Step::SkipAll => None,
            Step::SkipTo(row) => Some(after_row().max(keys::row_start(&row))),
            Step::Skip | Step::Read => Some(after_row()),
        };
        self.ahead = None;
        if let Some(target) = target {
            self.range.0 = Bound::Included(target);
            if !keys::is_empty(&self.range) {
                self.cells = self.snapshot.range::<Vec<u8>, _>(&self.keyspace, self.range.clone());
                self.ahead = self.advance()?;
            }
        }
        Ok(())
    }

    /// The next row, without cells if it doesn't pass the filter; none at the end.
    pub(super) fn next_row(&mut self) -> Result<Option<Found>> {
        if !self.started {
            self.ahead = self.advance()?;
            self.started = true;
        }
        let Some((mut key, mut value)) = self.ahead.take() else { return Ok(None) };
        self.builder.start(&key)?;
        let step = self.builder.step();
        if step != Step::Read {
            self.pass(step)?;
            return Ok(Some(self.builder.finish()));
        }
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
            loop {
                self.builder.push(&key, value)?;
                if let Some(target) = self.builder.skip(&key) {
                    self.skip_to(target);
                }
                let Some(next) = self.advance()? else { break };
                if !self.builder.is_at(&next.0) {
                    self.ahead = Some(next);
                    break;
                }
                (key, value) = next;
            }
        }
        Ok(Some(self.builder.finish()))
    }
}
