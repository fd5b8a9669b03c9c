//! `compact`: give back the space of what no read shows.

use super::args::{CompactArgs, Global};
use super::output;
use super::session::Session;
use crate::error::Result;
use crate::schema::TableSchema;
use crate::store::embedded::{Compaction, EmbeddedStore};
use serde_json::json;
use std::time::Instant;

pub async fn run(global: &Global, args: &CompactArgs) -> Result<()> {
    let session = Session::open(global).await?;
    let store = session.embedded("`compact`; on HBase its own major compaction does the same, so it")?;
    let started = Instant::now();
    let done = match &args.table {
        Some(table) => compact_table(store, &session.catalog.table(table).await?).await?,
        None => store.compact(None).await?,
    };
    let what = args.table.as_ref().map_or("all tables".to_owned(), |t| format!("table {t} and its indexes"));
    let sentence = format!(
        "{what}: {} removed from {} in {}; files went from {} to {}",
        output::plural(done.cells, "cell", "cells"),
        output::plural(done.rows, "row", "rows"),
        output::time(started.elapsed()),
        indicatif::HumanBytes(done.bytes_before),
        indicatif::HumanBytes(done.bytes_after)
    );
    let object = json!({
        "table": args.table, "rows": done.rows, "cells_removed": done.cells,
        "bytes_before": done.bytes_before, "bytes_after": done.bytes_after,
        "seconds": started.elapsed().as_secs_f64(),
    });
    output::done(global, &sentence, &object)
}

/// Compacts a base table, its index and its state.
async fn compact_table(store: &EmbeddedStore, schema: &TableSchema) -> Result<Compaction> {
    let mut done = Compaction::default();
    for table in [schema.name.clone(), schema.index_table(), schema.state_table()] {
        done += store.compact(Some(&table)).await?;
    }
    Ok(done)
}
