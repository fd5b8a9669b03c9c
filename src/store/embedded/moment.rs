//! Snapshots that show whole batches only.

use fjall::{Database, OwnedWriteBatch, Snapshot};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The database, with what readers may see of it.
///
/// fjall 3.1 numbers the versions of its files and its batches by one counter. A memtable that becomes a file while a batch
/// is on its way into memory raises what new snapshots see above the number of the batch, and they see what is there of it.
/// So, while a batch is being applied, readers get the moment before it.
pub(super) struct Moments {
    pub(super) database: Database,
    /// The moment before the batch that is being applied, or whose commit has failed.
    before: Mutex<Option<Snapshot>>,
}

impl Moments {
    pub(super) fn new(database: Database) -> Self {
        Self { database, before: Mutex::new(None) }
    }

    /// Everything that was committed, and nothing that wasn't.
    pub(super) fn now(&self) -> Snapshot {
        self.before().clone().unwrap_or_else(|| self.database.snapshot())
    }

    /// Commits a batch. One thread does so.
    pub(super) fn apply(&self, batch: OwnedWriteBatch) -> fjall::Result<()> {
        let now = self.database.snapshot();
        *self.before() = Some(now);
        batch.commit()?;
        *self.before() = None;
        Ok(())
    }

    fn before(&self) -> MutexGuard<'_, Option<Snapshot>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::Moments;
    use fjall::{Database, KeyspaceCreateOptions, Readable};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// In one batch: enough that applying it takes longer than writing a small file.
    const PAIRS: u32 = 10_000;

    #[test]
    fn a_file_written_meanwhile_shows_no_half_of_a_batch() {
        let directory = tempfile::tempdir().unwrap();
        let moments = Moments::new(Database::builder(directory.path()).open().unwrap());
        let keyspace = |name| moments.database.keyspace(name, KeyspaceCreateOptions::default).unwrap();
        let (cells, other) = (keyspace("cells"), keyspace("other"));
        let stop = AtomicBool::new(false);
        let read = || {
            let snapshot = moments.now();
            let value = |key: u32| snapshot.get(&cells, key.to_be_bytes()).unwrap();
            (value(0), value(PAIRS - 1))
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    other.insert("k", "v").unwrap();
                    other.rotate_memtable_and_wait().unwrap();
                }
            });
            let reader = scope.spawn(|| {
                let mut halves = 0;
                while !stop.load(Ordering::Relaxed) {
                    let (first, last) = read();
                    halves += u32::from(first != last);
                }
                halves
            });
            for round in 1..=100_u32 {
                let mut batch = moments.database.batch();
                (0..PAIRS).for_each(|key| batch.insert(&cells, key.to_be_bytes(), round.to_be_bytes()));
                moments.apply(batch).unwrap();
                assert_eq!(read().1.unwrap(), round.to_be_bytes(), "a writer sees what it wrote");
            }
            stop.store(true, Ordering::Relaxed);
            assert_eq!(reader.join().unwrap(), 0, "halves of a batch seen");
        });
    }
}
