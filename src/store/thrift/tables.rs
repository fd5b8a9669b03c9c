//! What is known of tables.

use crate::error::{ErrorKind, Result};
use crate::store::{Layout, TableDescriptor};
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Creates a table with the first of some compressions, the best one first and none last, that the cluster has; it tells when
/// the table is created. Base tables are not compressed.
///
/// # Errors
/// Those of the call.
pub(in crate::store) async fn create_compressed<C: Copy, F: Future<Output = Result<()>>>(
    table: &TableDescriptor,
    compressions: &[C],
    create: impl Fn(C) -> F,
) -> Result<()> {
    let own = table.families.iter().any(|f| f.layout != Layout::Base);
    let first = if own { 0 } else { compressions.len() - 1 };
    let mut refused = None;
    for compression in &compressions[first..] {
        match create(*compression).await {
            // A table is refused when a region server could not open its regions.
            Err(e) if e.to_string().contains("sanity.checks") => refused = Some(e),
            done => return done,
        }
    }
    refused.map_or(Ok(()), Err)
}

/// What was asked of the gateway before. A table that is dropped and made anew differently is asked for again after the first
/// call that fails for it.
#[derive(Default)]
pub(in crate::store) struct Tables(Mutex<HashMap<String, Arc<Table>>>);

/// What is known of a table.
pub(in crate::store) struct Table {
    pub(in crate::store) descriptor: TableDescriptor,
    /// How large a row of the last scan was, in bytes; 0 before the first.
    pub(super) row_bytes: AtomicUsize,
}

impl Tables {
    pub(in crate::store) fn get(&self, name: &str) -> Option<Arc<Table>> {
        self.lock().get(name).map(Arc::clone)
    }

    pub(in crate::store) fn learn(&self, descriptor: TableDescriptor) -> Arc<Table> {
        let name = descriptor.name.clone();
        let table = Arc::new(Table { descriptor, row_bytes: AtomicUsize::new(0) });
        self.lock().insert(name, Arc::clone(&table));
        table
    }

    pub(in crate::store) fn forget(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Forgets what is known of a table when a call tells that it is no longer true.
    pub(in crate::store) fn forgetting<T>(&self, table: &str, result: Result<T>) -> Result<T> {
        result.inspect_err(|e| {
            if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) {
                self.forget(table);
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Table>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
