//! What could not be indexed: `sx_quarantine`.
//!
//! Row `<table>/<name>/<position>/<row key>`, qualifiers `record` (JSON of what and why) and `event` (the mutation itself).
//! A replayed event writes the same row again.

mod list;
mod release;

pub use list::{Page, Record, Which, counts, list};
pub use release::{Released, clear_degraded, discard, replay};

use super::change::Unfit;
use crate::error::{Error, Result};
use crate::model::{Cell, ChangeEvent, Position, RowMutation, wire};
use crate::schema::{Catalog, Definition, QUARANTINE_FAMILY, QUARANTINE_TABLE, TableSchema};
use crate::store::Durability;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One term of one event that could not be indexed, or one definition that could not be kept for a row.
#[derive(Debug, Clone)]
pub struct Quarantined {
    /// The event.
    pub event: ChangeEvent,
    /// The attribute whose value does not fit; none when a definition refused the row.
    pub attribute: Option<String>,
    /// The definition that refused the row.
    pub definition: Option<String>,
    /// Why.
    pub reason: String,
}

/// What and why, as it is kept.
#[derive(Serialize, Deserialize)]
struct Stored {
    row: String,
    position: Position,
    attribute: Option<String>,
    definition: Option<String>,
    reason: String,
}

impl Quarantined {
    pub(super) fn term(event: &ChangeEvent, unfit: &Unfit) -> Self {
        Self {
            event: event.clone(),
            attribute: Some(unfit.attribute.clone()),
            definition: None,
            reason: unfit.reason.to_string(),
        }
    }

    pub(super) fn definition(event: &ChangeEvent, definition: &Definition, reason: &Error) -> Self {
        Self {
            event: event.clone(),
            attribute: None,
            definition: Some(definition.name.clone()),
            reason: reason.to_string(),
        }
    }

    /// The row of the quarantine that holds it.
    fn key(&self, table: &str) -> Bytes {
        let name = self.attribute.as_ref().or(self.definition.as_ref()).map_or("", String::as_str);
        let mut key = format!("{table}/{name}/{}/", self.event.position.sort_key()).into_bytes();
        // A row key too long for a row key of ours is cut: the event holds it whole.
        key.extend_from_slice(&self.event.row[..self.event.row.len().min(1_024)]);
        key.into()
    }

    fn mutation(&self, table: &str) -> Result<RowMutation> {
        let stored = Stored {
            row: self.event.row.escape_ascii().to_string(),
            position: self.event.position.clone(),
            attribute: self.attribute.clone(),
            definition: self.definition.clone(),
            reason: self.reason.clone(),
        };
        let record = serde_json::to_vec(&stored).map_err(|e| Error::invalid(e.to_string()).with_source(e))?;
        let event = RowMutation::new(self.event.row.clone(), self.event.cells.clone());
        let event = wire::encode(&event, self.event.append_time);
        // The quarantine's own clock: an event that comes again after its release is not hidden by the marker of the first time.
        let at = crate::clock::now();
        let put = |qualifier: &'static str, value: Bytes| Cell::put(QUARANTINE_FAMILY, qualifier, at, value);
        Ok(RowMutation::new(self.key(table), vec![put("record", record.into()), put("event", event)]))
    }
}

/// The definitions that a record concerns: those of an attribute, or the one that refused the row.
fn concerned<'a>(
    schema: &'a TableSchema,
    attribute: Option<&str>,
    definition: Option<&str>,
) -> impl Iterator<Item = &'a Definition> {
    let code = attribute.and_then(|name| schema.attribute(name)).map(|a| a.code);
    let definition = definition.map(str::to_owned);
    let concerns =
        move |d: &&Definition| code.is_some_and(|code| d.mentions(code)) || definition.as_ref() == Some(&d.name);
    schema.definitions().iter().filter(concerns)
}

/// Writes quarantined terms and flags their definitions as degraded. Durable at the next durable write.
pub(super) async fn keep(catalog: &Catalog, schema: &TableSchema, quarantined: &[Quarantined]) -> Result<()> {
    if quarantined.is_empty() {
        return Ok(());
    }
    for q in quarantined {
        tracing::warn!(
            table = %schema.name, row = %q.event.row.escape_ascii(), position = %q.event.position, reason = %q.reason,
            "quarantined"
        );
    }
    let mutations = quarantined.iter().map(|q| q.mutation(&schema.name)).collect::<Result<Vec<_>>>()?;
    catalog.store().mutate(QUARANTINE_TABLE, mutations, Durability::Relaxed).await?;
    let mut degraded = BTreeSet::new();
    for q in quarantined {
        let hit = concerned(schema, q.attribute.as_deref(), q.definition.as_deref());
        degraded.extend(hit.map(|d| d.name.as_str()));
    }
    for name in degraded {
        catalog.update(&schema.name, name, |d| d.degraded = true).await?;
    }
    Ok(())
}
