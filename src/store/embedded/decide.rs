//! Writes that depend on what is stored: decided in the committer, where nothing else is being written.

use super::batch::Batch;
use super::cells::read_row;
use super::log::Reservation;
use super::plan::Plan;
use super::row::RowBuilder;
use super::tables::Table;
use super::write::{self, Write};
use crate::clock;
use crate::error::{Error, Result};
use crate::model::{Cell, CellKind, Row, RowMutation};
use crate::store::{ColumnCheck, Columns, ReadSpec, rules};
use bytes::Bytes;
use std::sync::Arc;

/// A column that holds a number.
pub(super) struct Counter {
    table: Arc<Table>,
    row: Bytes,
    family: Bytes,
    qualifier: Bytes,
    /// Of the write that comes.
    room: Option<Reservation>,
}

impl Counter {
    /// # Errors
    /// Those of a write to the column.
    pub(super) async fn new(table: &Arc<Table>, row: &Bytes, family: &Bytes, qualifier: &Bytes) -> Result<Self> {
        let (table, row, family, qualifier) = (Arc::clone(table), row.clone(), family.clone(), qualifier.clone());
        let mut counter = Self { table, row, family, qualifier, room: None };
        let mut write = counter.set(0, 0)?;
        write.reserve(&counter.table).await?;
        counter.room = write.room;
        Ok(counter)
    }

    /// Adds to the column; the sum.
    pub(super) fn add(mut self, amount: i64, batch: &mut Batch<'_>) -> Result<i64> {
        let column = column(&self.family, &self.qualifier);
        let newest = read(&self.table, &self.row, &column, batch)?.cells.pop();
        let current = newest.map_or(Ok(0), |cell| {
            cell.value.as_ref().try_into().map(i64::from_be_bytes).map_err(|_| {
                let found = cell.value.len();
                Error::invalid(format!("expected a number of 8 bytes in the column, found {found} bytes"))
                    .within(self.place())
            })
        })?;
        // Above markers too, which would hide the sum.
        let stored = read(&self.table, &self.row, &ReadSpec { raw: true, ..column }, batch)?;
        let above = |cell: &Cell| cell.timestamp.saturating_add(i64::from(cell.kind != CellKind::Put));
        let at = stored.cells.iter().map(above).fold(clock::now(), i64::max);
        let sum = current.wrapping_add(amount);
        let room = self.room.take();
        let write = self.set(sum, at).map_err(|e| e.within(self.place()))?;
        batch.write(&self.table, Write { room, ..write });
        Ok(sum)
    }

    fn set(&self, value: i64, at: i64) -> Result<Write> {
        let value = Bytes::copy_from_slice(&value.to_be_bytes());
        let cell = Cell::put(self.family.clone(), self.qualifier.clone(), at, value);
        write::prepare(&self.table, vec![RowMutation::new(self.row.clone(), vec![cell])])
    }

    fn place(&self) -> String {
        let (row, family, qualifier) =
            (self.row.escape_ascii(), self.family.escape_ascii(), self.qualifier.escape_ascii());
        format!("table {}, row \"{row}\", column {family}:{qualifier}", self.table.descriptor.name)
    }
}

/// A mutation that waits for what its row holds.
pub(super) struct Checked {
    table: Arc<Table>,
    row: Bytes,
    check: ColumnCheck,
    write: Write,
}

impl Checked {
    /// # Errors
    /// Those of the mutation and of [`rules::check_update`].
    pub(super) fn new(table: &Arc<Table>, check: &ColumnCheck, mutation: RowMutation) -> Result<Self> {
        let place = |e: Error| e.within(format!("table {}", table.descriptor.name));
        rules::check_update(&table.descriptor, check, &mutation).map_err(place)?;
        let row = mutation.row.clone();
        let write = write::prepare(table, vec![mutation]).map_err(place)?;
        Ok(Self { table: Arc::clone(table), row, check: check.clone(), write })
    }

    /// See [`Write::reserve`].
    pub(super) async fn reserve(&mut self) -> Result<()> {
        self.write.reserve(&self.table).await
    }

    /// Writes the mutation if the column is as expected; whether it is.
    pub(super) fn apply(self, batch: &mut Batch<'_>) -> Result<bool> {
        let found = read(&self.table, &self.row, &column(&self.check.family, &self.check.qualifier), batch)?;
        let holds = found.cells.first().map(|cell| &cell.value) == self.check.expected.as_ref();
        if holds {
            batch.write(&self.table, self.write);
        }
        Ok(holds)
    }
}

/// The newest version of one column.
fn column(family: &Bytes, qualifier: &Bytes) -> ReadSpec {
    ReadSpec { columns: Columns::Exact(vec![(family.clone(), qualifier.clone())]), ..ReadSpec::default() }
}

fn read(table: &Table, row: &Bytes, spec: &ReadSpec, batch: &Batch<'_>) -> Result<Row> {
    let mut builder = RowBuilder::new(Plan::new(table, spec)?);
    read_row(&batch.committed(), &table.keyspace, row, &mut builder)
}
