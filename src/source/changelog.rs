//! The embedded store's own change log as a source.

use super::Source;
use crate::error::{Error, Result};
use crate::model::{Cell, ChangeEvent, Position, RowMutation, Timestamp};
use crate::schema::{META_FAMILY, META_TABLE};
use crate::store::embedded::{EmbeddedStore, LogHold};
use crate::store::{Durability, Read, ReadSpec, Store};
use async_trait::async_trait;
use bytes::Bytes;

/// Events a batch holds at most.
const BATCH_RECORDS: usize = 4_000;
/// Bytes a batch holds at most, more or less one record.
const BATCH_BYTES: usize = 8 << 20;

/// Follows the change log of one table, from the last position acknowledged in `sx_meta`. What is acknowledged is trimmed,
/// also while the table has no definitions: an index is built from a snapshot.
pub struct ChangeLogSource {
    store: EmbeddedStore,
    table: String,
    read: u64,
    hold: LogHold,
}

impl ChangeLogSource {
    /// Opens the log after the last acknowledged position.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn open(store: EmbeddedStore, table: &str) -> Result<Self> {
        // Everything, until it is known where to start.
        let mut hold = store.hold_log(table, Some(0))?;
        let read = applied(&store, table).await?;
        hold.advance(read);
        Ok(Self { store, table: table.to_owned(), read, hold })
    }
}

fn position_row(table: &str) -> Bytes {
    format!("position/{table}").into()
}

/// Number of the last change-log record that is applied and acknowledged; 0 for none.
///
/// # Errors
/// Those of the store.
pub async fn applied(store: &dyn Read, table: &str) -> Result<u64> {
    let rows = store.get(META_TABLE, &[position_row(table)], &ReadSpec::default()).await?;
    let Some(cell) = rows.first().and_then(|row| row.newest(META_FAMILY.as_bytes(), b"changelog")) else {
        return Ok(0);
    };
    match serde_json::from_slice(&cell.value) {
        Ok(Position::Changelog { number }) => Ok(number),
        _ => Err(Error::corrupt(format!("expected a change-log position, found {}", cell.value.escape_ascii()))
            .within(format!("position of table {table}"))),
    }
}

#[async_trait]
impl Source for ChangeLogSource {
    async fn next_batch(&mut self) -> Result<Vec<ChangeEvent>> {
        let events = self.store.read_log(&self.table, self.read, BATCH_RECORDS, BATCH_BYTES)?;
        if let Some(Position::Changelog { number }) = events.last().map(|e| &e.position) {
            self.read = *number;
        }
        Ok(events)
    }

    async fn ready(&mut self) -> Result<()> {
        self.store.log_beyond(&self.table, self.read).await?;
        Ok(())
    }

    async fn acknowledge(&mut self, position: &Position) -> Result<()> {
        let Position::Changelog { number } = position else {
            return Err(Error::invalid(format!("expected a change-log position, found {position}")));
        };
        let value = serde_json::to_vec(position).map_err(|e| Error::invalid(e.to_string()).with_source(e))?;
        // The number as the timestamp: an acknowledgement that comes late never takes a later one back.
        let at = Timestamp::try_from(*number).map_err(|e| Error::corrupt(e.to_string()).with_source(e))?;
        let cell = Cell::put(META_FAMILY, "changelog", at, value);
        let mutation = RowMutation::new(position_row(&self.table), vec![cell]);
        self.store.mutate(META_TABLE, vec![mutation], Durability::Durable).await?;
        self.hold.advance(*number);
        self.store.trim_log(&self.table, *number).await?;
        Ok(())
    }
}
