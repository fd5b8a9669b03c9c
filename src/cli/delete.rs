//! `delete`: remove rows.

use super::args::{DeleteArgs, Global};
use super::output;
use super::session::Session;
use crate::error::Result;
use crate::source::Freshness;
use crate::store::ReadSpec;
use bytes::Bytes;
use serde_json::json;
use std::collections::BTreeSet;

pub async fn run(global: &Global, args: &DeleteArgs) -> Result<()> {
    let session = Session::open(global).await?;
    let writer = session.writer(&args.table).await?;
    let ids: BTreeSet<&str> = args.ids.iter().map(String::as_str).collect();
    let rows: Vec<Bytes> = ids.iter().map(|id| Bytes::from((*id).to_owned())).collect();
    // Looked at before; the markers are written all the same, for another writer may come in between.
    let found = session.store.get(&args.table, &rows, &ReadSpec::default()).await?;
    writer.delete(&rows).await?;
    if !args.no_apply {
        session.apply_after_write(&args.table).await?;
    }
    let token = Freshness::now(&session.changes, &args.table)?.to_string();
    let there = |row: &crate::model::Row| !row.cells.is_empty();
    let (deleted, missing): (Vec<_>, Vec<_>) = ids.into_iter().zip(&found).partition(|(_, row)| there(row));
    let names = |rows: &[(&str, _)]| rows.iter().map(|(id, _)| (*id).to_owned()).collect::<Vec<String>>();
    let (deleted, missing) = (names(&deleted), names(&missing));
    let mut sentence = format!("{} deleted", output::plural(deleted.len() as u64, "row", "rows"));
    if !missing.is_empty() {
        let verb = if missing.len() == 1 { "was" } else { "were" };
        sentence.push_str(&format!("; {} {verb} not there: {}", missing.len(), output::plain(&missing.join(", "))));
    }
    output::done(global, &sentence, &json!({ "deleted": deleted, "missing": missing, "fresh_after": token }))
}
