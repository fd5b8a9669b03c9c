//! `delete`: remove rows.

use super::args::{DeleteArgs, Global};
use super::output;
use super::session::Session;
use crate::error::Result;
use crate::write::Writer;
use bytes::Bytes;
use serde_json::json;

pub async fn run(global: &Global, args: &DeleteArgs) -> Result<()> {
    let session = Session::open(global).await?;
    let writer = Writer::open(&session.catalog, &args.table).await?;
    let rows: Vec<Bytes> = args.ids.iter().map(|id| Bytes::from(id.clone())).collect();
    writer.delete(&rows).await?;
    if !args.no_apply {
        session.apply_after_write(&args.table).await?;
    }
    let sentence = format!("{} deleted", output::plural(rows.len() as u64, "row", "rows"));
    output::done(global, &sentence, &json!({ "deleted": args.ids }))
}
