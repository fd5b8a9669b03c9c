//! Changes of a store without change logs: written down before the base row is, until they are in the indexes.
//!
//! ```text
//!  write: intent ─► base rows ─► handed to who follows here        follow: base rows again, if it is left over ─► indexes
//!                                                                          acknowledge: the intent goes
//! ```
//!
//! So base and index are both reached after any crash: what was begun is there to be gone on with, by anybody, and writing a
//! base row twice is harmless, because timestamps are explicit. Several processes may write and follow; order does not matter
//! (DESIGN.md §3).
//!
//! | `sx_intents` row | qualifier | value |
//! |---|---|---|
//! | table, 0x00, ms since 1970 (8), random (8) | part number (2) | a piece of its mutations, each with its length (4) before it |

use super::Source;
use crate::clock;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Cell, CellKind, ChangeEvent, Position, RowMutation, Timestamp, wire};
use crate::store::{Columns, Durability, Filter, ReadSpec, Scan, Scanner, Store, TableDescriptor};
use async_trait::async_trait;
use bytes::{Buf, Bytes};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// Name of the table.
pub const INTENT_TABLE: &str = "sx_intents";
const FAMILY: &str = "n";
/// An intent holds about so many bytes of mutations, or one mutation …
const INTENT_BYTES: usize = 2 << 20;
/// … in cells of so many.
const PART_BYTES: usize = 1 << 20;
/// Intents that are read together.
const PAGE_ROWS: usize = 4;
/// Intents that wait in memory for who follows here; their writers wait.
const WAITING: usize = 4;
/// Events a batch holds at most, more or less one intent.
const BATCH_EVENTS: usize = 4_000;

/// The intents of a store. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Intents(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    /// Who follows a table in this process.
    followers: Mutex<HashMap<String, mpsc::Sender<Intent>>>,
}

/// An intent whose base rows are written.
struct Intent {
    id: Id,
    events: Vec<ChangeEvent>,
}

/// What tells intents of a table apart; they sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Id {
    time: Timestamp,
    random: u64,
}

impl Id {
    fn row(self, table: &str) -> Bytes {
        [table.as_bytes(), &[0], &self.time.to_be_bytes(), &self.random.to_be_bytes()].concat().into()
    }

    fn of_row(table: &str, row: &[u8]) -> Result<Self> {
        let rest = row.strip_prefix(table.as_bytes()).and_then(|r| r.strip_prefix(&[0]));
        let Some((time, random)) = rest.filter(|r| r.len() == 16).and_then(|r| r.split_first_chunk::<8>()) else {
            return Err(Error::corrupt("expected a table, a time and a random number").within(place(row)));
        };
        let random = <[u8; 8]>::try_from(random).unwrap_or_default();
        Ok(Self { time: i64::from_be_bytes(*time), random: u64::from_be_bytes(random) })
    }

    fn position(self, number: u32) -> Position {
        Position::Intent { time: self.time, random: self.random, number }
    }

    fn has(self, position: &Position) -> bool {
        matches!(position, Position::Intent { time, random, .. } if (*time, *random) == (self.time, self.random))
    }
}

fn place(row: &[u8]) -> String {
    format!("{INTENT_TABLE} row \"{}\"", row.escape_ascii())
}

/// The intents of one table.
fn of_table(table: &str) -> Scan {
    Scan::prefix(&[table.as_bytes(), &[0]].concat())
}

impl Intents {
    /// The intents of a store, whose table is created when it is not there.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self> {
        if !store.list_tables().await?.iter().any(|t| t == INTENT_TABLE) {
            match store.create_table(&TableDescriptor::new(INTENT_TABLE, &[FAMILY], 1)).await {
                // Somebody else was quicker.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                created => created?,
            }
        }
        Ok(Self(Arc::new(Shared { store, followers: Mutex::default() })))
    }

    /// Writes base rows, so that their indexes are sure to follow.
    ///
    /// # Errors
    /// Those of the store. After one the rows may be written, and are once somebody follows the table.
    pub async fn write(&self, table: &str, mutations: Vec<RowMutation>) -> Result<()> {
        for part in parts(mutations) {
            let mut random = [0; 8];
            getrandom::fill(&mut random)
                .map_err(|e| Error::new(ErrorKind::Internal, format!("no random numbers: {e}")).with_source(e))?;
            let id = Id { time: clock::now(), random: u64::from_be_bytes(random) };
            let intent = RowMutation::new(id.row(table), cells(id, &part));
            self.0.store.mutate(INTENT_TABLE, vec![intent], Durability::Durable).await?;
            let follower = self.followers().get(table).cloned();
            let events = follower.as_ref().map(|_| events_of(&part, id));
            self.0.store.mutate(table, part, Durability::Durable).await?;
            if let (Some(follower), Some(events)) = (follower, events) {
                // Who followed may have ended: whoever follows next finds the intent.
                follower.send(Intent { id, events }).await.ok();
            }
        }
        Ok(())
    }

    /// How many intents of a table there are, and the time of the first.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn waiting(&self, table: &str) -> Result<(u64, Option<Timestamp>)> {
        let spec = ReadSpec {
            columns: Columns::All,
            filter: Some(Filter::All(vec![Filter::FirstKeyOnly, Filter::KeyOnly])),
            ..ReadSpec::default()
        };
        let mut scanner = self.0.store.scan(INTENT_TABLE, Scan { spec, ..of_table(table) }).await?;
        let (mut count, mut first) = (0, None);
        loop {
            let page = scanner.next_page().await?;
            count += page.rows.len() as u64;
            if let (None, Some(row)) = (first, page.rows.first()) {
                first = Some(Id::of_row(table, &row.key)?.time);
            }
            if page.done {
                return Ok((count, first));
            }
        }
    }

    /// What is to be applied of a table: intents left over first, then those written in this process from now on. Only the last
    /// source opened gets these.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn source(&self, table: &str) -> Result<IntentSource> {
        let (sender, live) = mpsc::channel(WAITING);
        self.followers().insert(table.to_owned(), sender);
        // A page holds whole intents, with their mutations.
        let left = self.0.store.scan(INTENT_TABLE, Scan { page_rows: PAGE_ROWS, ..of_table(table) }).await?;
        let (given, next) = (VecDeque::new(), None);
        Ok(IntentSource { intents: self.clone(), table: table.to_owned(), left: Some(left), live, next, given })
    }

    async fn forget(&self, table: &str, ids: &[Id]) -> Result<()> {
        let marker =
            |id: &Id| RowMutation::new(id.row(table), vec![Cell::delete(CellKind::DeleteFamily, FAMILY, "", id.time)]);
        self.0.store.mutate(INTENT_TABLE, ids.iter().map(marker).collect(), Durability::Durable).await
    }

    fn followers(&self) -> std::sync::MutexGuard<'_, HashMap<String, mpsc::Sender<Intent>>> {
        self.0.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Mutations by the intent they go into.
fn parts(mutations: Vec<RowMutation>) -> Vec<Vec<RowMutation>> {
    let (mut parts, mut bytes) = (Vec::new(), 0);
    for mutation in mutations {
        let size: usize = mutation.cells.iter().map(|c| c.size(&mutation.row)).sum();
        match parts.last_mut() {
            Some(part) if bytes + size <= INTENT_BYTES => {
                let part: &mut Vec<RowMutation> = part;
                part.push(mutation);
                bytes += size;
            }
            _ => {
                parts.push(vec![mutation]);
                bytes = size;
            }
        }
    }
    parts
}

fn events_of(mutations: &[RowMutation], id: Id) -> Vec<ChangeEvent> {
    let event = |(number, mutation): (u32, &RowMutation)| {
        let RowMutation { row, cells } = mutation.clone();
        ChangeEvent { row, cells, position: id.position(number), append_time: id.time }
    };
    (0..).zip(mutations).map(event).collect()
}

fn cells(id: Id, mutations: &[RowMutation]) -> Vec<Cell> {
    let mut value = Vec::new();
    for mutation in mutations {
        let encoded = wire::encode(mutation, id.time);
        // Far below 4 GiB: a cell holds 10 MiB, and a mutation fits into memory.
        value.extend_from_slice(&(encoded.len() as u32).to_be_bytes());
        value.extend_from_slice(&encoded);
    }
    let value = Bytes::from(value);
    let cell = |(number, start): (u16, usize)| {
        let end = value.len().min(start + PART_BYTES);
        Cell::put(FAMILY, number.to_be_bytes().to_vec(), id.time, value.slice(start..end))
    };
    (0..).zip((0..value.len()).step_by(PART_BYTES)).map(cell).collect()
}

/// What [`cells`] wrote.
///
/// # Errors
/// [`Corrupt`](ErrorKind::Corrupt).
fn events(id: Id, cells: &[Cell]) -> Result<Vec<ChangeEvent>> {
    let mut value = Vec::with_capacity(cells.iter().map(|c| c.value.len()).sum());
    for (number, cell) in (0_u16..).zip(cells) {
        if cell.qualifier[..] != number.to_be_bytes() {
            let found = cell.qualifier.escape_ascii();
            return Err(Error::corrupt(format!("expected part {number} of an intent, found column \"{found}\"")));
        }
        value.extend_from_slice(&cell.value);
    }
    let (mut rest, mut events, mut numbers) = (Bytes::from(value), Vec::new(), 0..);
    while let (false, Some(number)) = (rest.is_empty(), numbers.next()) {
        let length = rest.try_get_u32().map_or(usize::MAX, |n| n as usize);
        if length > rest.len() {
            return Err(Error::corrupt("expected whole mutations in an intent, found it cut off"));
        }
        events.push(wire::decode(rest.split_to(length), id.position(number))?);
    }
    Ok(events)
}

/// Intents as a source.
pub struct IntentSource {
    intents: Intents,
    table: String,
    /// What was there before this source, and may be nobody else's.
    left: Option<Box<dyn Scanner>>,
    live: mpsc::Receiver<Intent>,
    /// One that was waited for.
    next: Option<Intent>,
    /// What was given and not acknowledged, in order.
    given: VecDeque<Id>,
}

impl IntentSource {
    /// Intents left over, their base rows written once more: whoever began them may have ended before.
    async fn left_over(&mut self) -> Result<Vec<ChangeEvent>> {
        let mut found = Vec::new();
        while let (true, Some(left)) = (found.is_empty(), &mut self.left) {
            let page = left.next_page().await?;
            if page.done {
                self.left = None;
            }
            for row in page.rows {
                let id = Id::of_row(&self.table, &row.key)?;
                found.extend(events(id, &row.cells).map_err(|e| e.within(place(&row.key)))?);
                self.given.push_back(id);
            }
        }
        let base = |e: &ChangeEvent| RowMutation::new(e.row.clone(), e.cells.clone());
        let mutations: Vec<RowMutation> = found.iter().map(base).collect();
        if !mutations.is_empty() {
            self.intents.0.store.mutate(&self.table, mutations, Durability::Durable).await?;
        }
        Ok(found)
    }
}

#[async_trait]
impl Source for IntentSource {
    async fn next_batch(&mut self) -> Result<Vec<ChangeEvent>> {
        let mut batch = self.left_over().await?;
        while batch.len() < BATCH_EVENTS {
            let Some(intent) = self.next.take().or_else(|| self.live.try_recv().ok()) else { break };
            self.given.push_back(intent.id);
            batch.extend(intent.events);
        }
        Ok(batch)
    }

    async fn ready(&mut self) -> Result<()> {
        if self.left.is_none() && self.next.is_none() {
            self.next = self.live.recv().await;
            if self.next.is_none() {
                // Another source has taken over what is written here.
                std::future::pending::<()>().await;
            }
        }
        Ok(())
    }

    async fn acknowledge(&mut self, position: &Position) -> Result<()> {
        let Some(last) = self.given.iter().position(|id| id.has(position)) else {
            return Err(Error::invalid(format!("expected the position of an intent that was given, found {position}")));
        };
        let done: Vec<Id> = self.given.drain(..=last).collect();
        self.intents.forget(&self.table, &done).await
    }
}
