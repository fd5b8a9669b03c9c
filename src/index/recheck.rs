//! The durable list of events that are applied exactly once more (DESIGN.md §3, step 3).
//!
//! Rows `recheck/<table>/<due, 20 digits>/<position>` of `sx_meta`, qualifier `event`.

use crate::error::{Error, Result};
use crate::model::{Cell, CellKind, ChangeEvent, Position, RowMutation, Timestamp, wire};
use crate::schema::{META_FAMILY, META_TABLE};
use crate::store::{Durability, Read, Scan, Store, count_rows};
use bytes::Bytes;

/// When the list must be looked at. Looking is a scan over what is done as well as over what waits, so it starts where
/// the last look ended, and is left out when nothing can be there.
#[derive(Debug)]
pub(super) struct Watch {
    /// Nothing that waits is due earlier; none when nothing waits.
    pub(super) from: Option<Timestamp>,
}

impl Default for Watch {
    /// A new process knows nothing of the list.
    fn default() -> Self {
        Self { from: Some(0) }
    }
}

/// An event whose time has come.
pub(super) struct Due {
    key: Bytes,
    /// Timestamp of the list's own cells: the clock may have been set back since.
    written: Timestamp,
    pub(super) event: ChangeEvent,
}

fn prefix(table: &str) -> String {
    format!("recheck/{table}/")
}

/// Puts events on the list, due `delay` ms after their append time. Durable at the next durable write.
pub(super) async fn remember(
    store: &dyn Store,
    table: &str,
    late: &[ChangeEvent],
    delay: Timestamp,
    watch: &mut Watch,
) -> Result<()> {
    if late.is_empty() {
        return Ok(());
    }
    let due_at = |event: &ChangeEvent| event.append_time.saturating_add(delay).max(0);
    watch.from = late.iter().map(due_at).chain(watch.from).min();
    let mutations = late
        .iter()
        .map(|event| {
            let due = due_at(event);
            let timestamp = event.cells.first().map_or(0, |c| c.timestamp);
            let key = format!("{}{due:020}/{}/{timestamp}", prefix(table), event.position.sort_key());
            let stored = Stored { position: event.position.clone(), row: &event.row, cells: &event.cells };
            Ok(RowMutation::new(key, stored.cells(crate::clock::now(), event.append_time)?))
        })
        .collect::<Result<Vec<_>>>()?;
    store.mutate(META_TABLE, mutations, Durability::Relaxed).await
}

struct Stored<'a> {
    position: Position,
    row: &'a Bytes,
    cells: &'a [Cell],
}

impl Stored<'_> {
    /// The cells of the list's row. `at` is the list's own clock: an event that comes back after its recheck is not hidden by the
    /// marker of the first time.
    fn cells(&self, at: Timestamp, append_time: Timestamp) -> Result<Vec<Cell>> {
        let position = serde_json::to_vec(&self.position).map_err(|e| Error::invalid(e.to_string()).with_source(e))?;
        let event = wire::encode(&RowMutation::new(self.row.clone(), self.cells.to_vec()), append_time);
        Ok(vec![Cell::put(META_FAMILY, "position", at, position), Cell::put(META_FAMILY, "event", at, event)])
    }
}

/// The events due from `from` to `now`, oldest first, a page of them.
pub(super) async fn due(store: &dyn Read, table: &str, from: Timestamp, now: Timestamp) -> Result<Vec<Due>> {
    let start = format!("{}{from:020}", prefix(table));
    let stop = format!("{}{:020}", prefix(table), now.saturating_add(1));
    let scan = Scan { start: Some(start.into()), stop: Some(stop.into()), ..Scan::all() };
    let mut scanner = store.scan(META_TABLE, scan).await?;
    loop {
        let page = scanner.next_page().await?;
        if !page.rows.is_empty() || page.done {
            return page.rows.into_iter().map(read).collect();
        }
    }
}

fn read(row: crate::model::Row) -> Result<Due> {
    let broken =
        |what: &str| Error::corrupt(format!("expected {what}")).within(format!("recheck {}", row.key.escape_ascii()));
    let position = row.newest(META_FAMILY.as_bytes(), b"position").ok_or_else(|| broken("a position"))?;
    let position = serde_json::from_slice(&position.value).map_err(|e| broken(&format!("a position ({e})")))?;
    let event = row.newest(META_FAMILY.as_bytes(), b"event").ok_or_else(|| broken("an event"))?;
    let event = wire::decode(event.value.clone(), position)?;
    let written = row.newest_timestamp().unwrap_or_default();
    Ok(Due { key: row.key, written, event })
}

/// Takes events off the list. Durable at the next durable write.
pub(super) async fn forget(store: &dyn Store, done: impl IntoIterator<Item = &Due>) -> Result<()> {
    let mutations = done
        .into_iter()
        .map(|d| {
            RowMutation::new(d.key.clone(), vec![Cell::delete(CellKind::DeleteFamily, META_FAMILY, "", d.written)])
        })
        .collect();
    store.mutate(META_TABLE, mutations, Durability::Relaxed).await
}

/// When the first event that waits is due, of those due at `from` or later.
pub(super) async fn next_due(store: &dyn Read, table: &str, from: Timestamp) -> Result<Option<Timestamp>> {
    let prefix = prefix(table);
    let start = format!("{prefix}{from:020}");
    let scan = Scan { start: Some(start.into()), page_rows: 1, ..Scan::prefix(prefix.as_bytes()) };
    let mut scanner = store.scan(META_TABLE, scan).await?;
    loop {
        let page = scanner.next_page().await?;
        if let Some(row) = page.rows.first() {
            let due = row.key.get(prefix.len()..prefix.len() + 20).and_then(|d| std::str::from_utf8(d).ok());
            return due.and_then(|d| d.parse().ok()).map(Some).ok_or_else(|| {
                Error::corrupt(format!("expected a due time in the key of recheck {}", row.key.escape_ascii()))
            });
        }
        if page.done {
            return Ok(None);
        }
    }
}

/// Puts events on the list that are taken off it again before they are due, unless this process ends first: a follower then
/// makes up for what was left undone. Durable at the next durable write, and never later than what is written after it.
pub(crate) async fn promise(
    store: &dyn Store,
    table: &str,
    events: &[ChangeEvent],
    due: Timestamp,
) -> Result<Vec<Promise>> {
    let now = crate::clock::now();
    let promises: Vec<Promise> = events
        .iter()
        .map(|event| {
            let key = format!("{}{due:020}/promise/{:032x}", prefix(table), xxhash_rust::xxh3::xxh3_128(&event.row));
            Promise(Due { key: key.into(), written: now, event: event.clone() })
        })
        .collect();
    let mutations = promises
        .iter()
        .map(|Promise(Due { key, event, .. })| {
            let stored = Stored { position: event.position.clone(), row: &event.row, cells: &event.cells };
            Ok(RowMutation::new(key.clone(), stored.cells(now, event.append_time)?))
        })
        .collect::<Result<Vec<_>>>()?;
    store.mutate(META_TABLE, mutations, Durability::Relaxed).await?;
    Ok(promises)
}

/// An event on the list that is not meant to become due.
pub(crate) struct Promise(Due);

/// Takes promises off the list. Durable at the next durable write.
pub(crate) async fn keep_promises(store: &dyn Store, promises: &[Promise]) -> Result<()> {
    forget(store, promises.iter().map(|Promise(due)| due)).await
}

/// The rows of the events of a table that wait to be applied once more.
pub(crate) async fn waiting_rows(store: &dyn Read, table: &str) -> Result<Vec<Bytes>> {
    let mut scanner = store.scan(META_TABLE, Scan::prefix(prefix(table).as_bytes())).await?;
    let mut rows = Vec::new();
    loop {
        let page = scanner.next_page().await?;
        for row in page.rows {
            rows.push(read(row)?.event.row);
        }
        if page.done {
            return Ok(rows);
        }
    }
}

/// When the first event of a table that waits is due, in milliseconds since 1970.
///
/// # Errors
/// Those of the store, and [`Corrupt`](crate::error::ErrorKind::Corrupt) for a damaged list.
pub async fn oldest_recheck(store: &dyn Read, table: &str) -> Result<Option<Timestamp>> {
    next_due(store, table, 0).await
}

/// How many events of a table wait to be applied once more.
///
/// # Errors
/// Those of the store.
pub async fn pending_rechecks(store: &dyn Read, table: &str) -> Result<u64> {
    count_rows(store, META_TABLE, Scan::prefix(prefix(table).as_bytes())).await
}
