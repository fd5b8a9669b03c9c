//! `put`: change one row.

use super::args::{Global, PutArgs};
use super::output;
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::source::Freshness;
use crate::write::RowChange;
use serde_json::{Value, json};

/// Stands for a row key that is joined from its parts.
const PARTS: &str = "-";

pub async fn run(global: &Global, args: &PutArgs) -> Result<()> {
    let attributes = args.assignments.iter().map(|a| assignment(a)).collect::<Result<Vec<_>>>()?;
    if args.id.is_empty() {
        return Err(Error::invalid("expected a row key, found an empty text"));
    }
    let session = Session::open(global).await?;
    let writer = session.writer(&args.table).await?;
    let change = RowChange {
        row: (args.id != PARTS).then(|| args.id.clone().into()),
        timestamp: args.ts,
        attributes,
        origin: None,
    };
    writer.write(&[change]).await.map_err(|e| hint(&args.assignments, e))?;
    if !args.no_apply {
        session.apply_after_write(&args.table).await?;
    }
    let token = Freshness::now(&session.changes, &args.table)?.to_string();
    let id = (args.id != PARTS).then_some(&args.id);
    let sentence = id.map_or("row written".to_owned(), |id| format!("row {id} written"));
    output::done(global, &sentence, &json!({ "id": id, "written": true, "fresh_after": token }))
}

/// Tells of `:=` where a text was put for want of it.
fn hint(assignments: &[String], error: Error) -> Error {
    let message = error.to_string();
    let put_as_text = |text: &String| {
        text.split_once('=')
            .is_some_and(|(name, _)| !name.ends_with(':') && message.contains(&format!("attribute {name}: ")))
    };
    if error.kind() == ErrorKind::WrongType && assignments.iter().any(put_as_text) {
        return error.within("name=text puts a text, name:=json any other value");
    }
    error
}

/// `name=text` or `name:=json`.
fn assignment(text: &str) -> Result<(String, Value)> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| Error::invalid(format!("expected name=text or name:=json, found {text:?}")))?;
    match name.strip_suffix(':') {
        None => Ok((name.to_owned(), value.into())),
        Some(name) => {
            let value = serde_json::from_str(value).map_err(|e| {
                Error::invalid(format!("expected JSON after {name}:=, found {value:?}: {e}; name=text puts a text"))
                    .with_source(e)
            })?;
            Ok((name.to_owned(), value))
        }
    }
}
