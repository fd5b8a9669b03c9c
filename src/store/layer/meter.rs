//! A layer that counts and times calls, through the `metrics` crate: whoever wants them installs a recorder.

use super::{Call, Layer, Operation};
use crate::error::Result;
use std::time::Instant;

/// Counts calls in `sideindex_store_operations_total` (labels `store`, `operation` and `outcome`: `ok` or an error's kind) and
/// times them in `sideindex_store_operation_seconds`.
#[derive(Debug, Clone)]
pub struct Meter {
    store: &'static str,
}

impl Meter {
    /// For a store of this name.
    pub fn new(store: &'static str) -> Self {
        Self { store }
    }
}

impl Layer for Meter {
    const REPEATS: bool = false;

    async fn around<'a, T: Send + 'a>(&'a self, operation: Operation, call: &'a mut Call<'a, T>) -> Result<T> {
        let started = Instant::now();
        let result = call().await;
        let outcome = result.as_ref().map_or_else(|e| e.kind().name(), |_| "ok");
        let (store, operation) = (self.store, operation.name());
        metrics::histogram!("sideindex_store_operation_seconds", "store" => store, "operation" => operation)
            .record(started.elapsed());
        metrics::counter!(
            "sideindex_store_operations_total", "store" => store, "operation" => operation, "outcome" => outcome
        )
        .increment(1);
        result
    }
}
