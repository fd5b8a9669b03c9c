//! `apply`: bring indexes up to date with the change log.

use super::args::{ApplyArgs, Global};
use super::output::{self, count};
use super::session::Session;
use crate::error::Result;
use serde_json::json;
use std::time::Instant;

pub async fn run(global: &Global, args: &ApplyArgs) -> Result<()> {
    let session = Session::open(global).await?;
    let tables = match &args.table {
        Some(table) => vec![table.clone()],
        None => session.catalog.list_tables().await?,
    };
    for table in tables {
        let started = Instant::now();
        let lag = session.changes.lag(&table).await?;
        // An intent holds any number of changes.
        let behind = lag.applied.map_or(0, |_| lag.waiting);
        let bar = output::bar(global, &table, behind, false);
        let applied = session.apply(&table, |p| bar.set_position(p.counts.received)).await;
        bar.finish_and_clear();
        let counts = applied?;
        let sentence = format!(
            "table {table}: {} in {}: {} applied, {} irrelevant, {} quarantined; {} entries written",
            output::plural(counts.received, "change", "changes"),
            output::time(started.elapsed()),
            count(counts.applied),
            count(counts.irrelevant),
            count(counts.quarantined),
            count(counts.entry_writes)
        );
        let object = json!({
            "table": table, "received": counts.received, "applied": counts.applied,
            "irrelevant": counts.irrelevant, "quarantined": counts.quarantined,
            "settled": counts.settled, "entries_written": counts.entry_writes,
            "seconds": started.elapsed().as_secs_f64(),
        });
        output::done(global, &sentence, &object)?;
    }
    Ok(())
}
