//! Compaction: removing for good what no read shows, and giving its space back.

use super::purge::{self, Extent};
use super::tables::Table;
use super::{Shared, error};
use crate::error::{Error, ErrorKind, Result};
use crate::store::Durability;
use fjall::{Keyspace, PersistMode};
use futures::executor::block_on;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Rows looked at.
    pub rows: u64,
    /// Cells removed: puts that no read showed, and markers.
    pub cells: u64,
    /// Bytes in files before and after, without journals.
    pub bytes_before: u64,
    /// See `bytes_before`. What a snapshot or an open scan still sees is given back by a later compaction.
    pub bytes_after: u64,
}

impl AddAssign for Compaction {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.cells += other.cells;
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
    }
}

/// How often files being written are looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// Compacts tables, and the change logs' files if asked to, in a thread of its own. Stops between two steps when nobody
/// waits for it any more.
pub(super) async fn run(shared: Arc<Shared>, tables: Vec<Arc<Table>>, logs: bool) -> Result<Compaction> {
    let (done, answer) = oneshot::channel();
    let work = move || {
        let mut total = Compaction::default();
        let mut result = Ok(());
        for table in &tables {
            result = compact(&shared, table, &done).map(|one| total += one);
            if result.is_err() {
                break;
            }
        }
        if logs && result.is_ok() {
            result = reclaimed(&shared, shared.tables.log_keyspace(), |_| Ok(())).map(|one| total += one);
        }
        // Before the answer: whoever has it may open the directory again.
        drop((tables, shared));
        // Nobody listens when the caller dropped its future.
        let _ = done.send(result.map(|()| total));
    };
    std::thread::Builder::new().name("sideindex-compact".to_owned()).spawn(work)?;
    answer.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "the thread of a compaction died")))
}

fn compact(shared: &Arc<Shared>, table: &Arc<Table>, done: &oneshot::Sender<Result<Compaction>>) -> Result<Compaction> {
    let purge = |counts: &mut Compaction| {
        let mut start = Some(Vec::new());
        while let Some(from) = start {
            if done.is_closed() {
                return Err(Error::new(ErrorKind::Busy, "a compaction was given up"));
            }
            let stretch = purge::survey(&shared.moments.now(), table, from)?;
            counts.rows += stretch.rows;
            start = stretch.next;
            if stretch.dirty.is_empty() {
                continue;
            }
            let target = Arc::clone(table);
            counts.cells += block_on(shared.committer.decide(Durability::Relaxed, move |batch| {
                stretch.dirty.iter().map(|row| purge::row(batch, &target, row, Extent::Everything)).sum::<Result<u64>>()
            }))?;
        }
        Ok(())
    };
    reclaimed(shared, &table.keyspace, purge)
        .map_err(|e| e.within(format!("compacting table {}", table.descriptor.name)))
}

/// Removes by `purge`, and merges all files of a keyspace into new ones.
fn reclaimed(
    shared: &Shared,
    keyspace: &Keyspace,
    purge: impl FnOnce(&mut Compaction) -> Result<()>,
) -> Result<Compaction> {
    let mut counts = Compaction::default();
    flush(shared, keyspace)?;
    counts.bytes_before = keyspace.disk_space();
    purge(&mut counts)?;
    flush(shared, keyspace)?;
    keyspace.major_compact().map_err(|e| error::store("merging files", e))?;
    counts.bytes_after = keyspace.disk_space();
    Ok(counts)
}

/// Writes what a keyspace holds in memory to files.
fn flush(shared: &Shared, keyspace: &Keyspace) -> Result<()> {
    let failed = |e| error::store("writing files", e);
    keyspace.rotate_memtable().map_err(failed)?;
    while keyspace.sealed_memtable_count() > 0 {
        // Says so when whoever writes the files has failed.
        shared.moments.database.persist(PersistMode::Buffer).map_err(failed)?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
