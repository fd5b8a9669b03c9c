//! `purge`: forget what rows have left behind in state and index tables.

use super::args::{Global, PurgeArgs};
use super::output;
use super::session::Session;
use crate::error::Result;
use serde_json::json;

pub async fn run(global: &Global, args: &PurgeArgs) -> Result<()> {
    let session = Session::open(global).await?;
    let age = i64::try_from(args.older_than.as_millis()).unwrap_or(i64::MAX);
    let horizon = crate::clock::now().saturating_sub(age);
    let purged = session.follower(&args.table).await?.purge(horizon).await?;
    let sentence = format!(
        "table {}: {} of {} purged: {} and {} gone",
        args.table,
        output::count(purged.purged),
        output::plural(purged.rows, "state row", "state rows"),
        output::plural(purged.candidates, "candidate", "candidates"),
        output::plural(purged.entries, "outdated entry", "outdated entries"),
    );
    let object = json!({
        "table": args.table, "horizon": horizon, "rows": purged.rows, "purged": purged.purged,
        "candidates": purged.candidates, "entries": purged.entries,
    });
    output::done(global, &sentence, &object)
}
