//! `quarantine list|show|replay|drop`: what could not be indexed.

use super::args::{Format, Global, QuarantineCommand};
use super::output::{self, plural};
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::index::quarantine::{self, Page, Record, Released, Which};
use crate::model::{Cell, escaped};
use crate::schema::TableSchema;
use bytes::Bytes;
use serde_json::{Value, json};

pub async fn run(global: &Global, command: &QuarantineCommand) -> Result<()> {
    let session = Session::open(global).await?;
    match command {
        QuarantineCommand::List { table, which, limit, after } => {
            let schema = session.catalog.table(table).await?;
            let from = after.as_deref().map(token).transpose()?;
            let page = quarantine::list(&*session.store, &schema, &which.of(&schema)?, from.as_ref(), *limit).await?;
            list(global, table, &page)
        }
        QuarantineCommand::Show { table, id } => {
            let schema = session.catalog.table(table).await?;
            let which = Which { ids: vec![id.clone()], ..Which::default() };
            let page = quarantine::list(&*session.store, &schema, &which, None, 1).await?;
            let record = page.records.first().ok_or_else(|| nothing(table, &which))?;
            show(global, record)
        }
        QuarantineCommand::Replay { table, which } => {
            let which = which.of(&session.catalog.table(table).await?)?;
            let released = quarantine::replay(&session.catalog, table, &which).await?;
            report(global, table, &released)
        }
        QuarantineCommand::Drop { table, which, yes } => {
            let schema = session.catalog.table(table).await?;
            let which = which.of(&schema)?;
            if !yes {
                return Err(Error::invalid(
                    "what is dropped is never indexed, and its indexes stay degraded until `verify` finds them fine; \
                     repeat with --yes, or try `quarantine replay` first",
                ));
            }
            if quarantine::list(&*session.store, &schema, &which, None, 1).await?.records.is_empty() {
                return Err(nothing(table, &which));
            }
            report(global, table, &quarantine::discard(&session.catalog, table, &which).await?)
        }
    }
}

fn nothing(table: &str, which: &Which) -> Error {
    let what = match which.ids.as_slice() {
        [] => "nothing that fits".to_owned(),
        ids => format!("no record {}", ids.join(", ")),
    };
    Error::new(
        ErrorKind::NotFound,
        format!("table {table} has {what} in quarantine; `quarantine list {table}` shows what there is"),
    )
}

/// Where a page begins, as it is printed after the page before.
fn token(text: &str) -> Result<Bytes> {
    let digits = |i: usize| text.get(i..i + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    (0..text.len())
        .step_by(2)
        .map(digits)
        .collect::<Option<Vec<u8>>>()
        .map(Bytes::from)
        .ok_or_else(|| Error::invalid(format!("expected what `quarantine list` printed after a page, found {text:?}")))
}

fn list(global: &Global, table: &str, page: &Page) -> Result<()> {
    let next = page.next.as_ref().map(|key| format!("{key:02x}"));
    if global.format != Format::Table {
        for record in &page.records {
            output::records(global, &[object(record)])?;
        }
        if let Some(next) = next {
            eprintln!("more: --after {next}");
        }
        return Ok(());
    }
    if page.records.is_empty() {
        return output::line(&format!("nothing of table {table} is in quarantine"));
    }
    let mut rows = output::table(&["id", "of", "row", "position", "reason"]);
    for record in &page.records {
        rows.add_row([
            record.id.clone(),
            output::plain(&of(record)),
            output::plain(&record.event.as_ref().map(|e| escaped(&e.row)).unwrap_or_default()),
            record.position().map(ToString::to_string).unwrap_or_default(),
            output::plain(&record.reason),
        ]);
    }
    output::line(&rows.to_string())?;
    match next {
        Some(next) => output::line(&format!("more: --after {next}")),
        None => Ok(()),
    }
}

fn of(record: &Record) -> String {
    match (&record.attribute, &record.definition) {
        (Some(attribute), None) => format!("attribute {attribute}"),
        (None, Some(definition)) => format!("index {definition}"),
        (name, _) => name.clone().unwrap_or_default(),
    }
}

fn show(global: &Global, record: &Record) -> Result<()> {
    if global.format != Format::Table {
        return output::records(global, &[object(record)]);
    }
    let mut lines = vec![
        format!("id        {}", record.id),
        format!("of        {}", of(record)),
        format!("reason    {}", record.reason),
    ];
    if let Some(event) = &record.event {
        lines.push(format!("row       {}", escaped(&event.row)));
        lines.push(format!("position  {}", event.position));
        lines.push(format!("logged    {}", event.append_time));
        lines.extend(event.cells.iter().map(|c| format!("cell      {}", cell(c))));
    }
    lines.iter().try_for_each(|line| output::line(&output::plain(line)))
}

fn cell(cell: &Cell) -> String {
    let column = format!("{}:{}", escaped(&cell.family), escaped(&cell.qualifier));
    format!("{column} at {}, {:?}, {}", cell.timestamp, cell.kind, escaped(&cell.value))
}

fn object(record: &Record) -> Value {
    let cells = |cell: &Cell| {
        json!({
            "family": escaped(&cell.family), "qualifier": escaped(&cell.qualifier), "timestamp": cell.timestamp,
            "kind": format!("{:?}", cell.kind), "value": escaped(&cell.value),
        })
    };
    json!({
        "id": record.id, "attribute": record.attribute, "index": record.definition, "reason": record.reason,
        "row": record.event.as_ref().map(|e| escaped(&e.row)), "position": record.position(),
        "logged": record.event.as_ref().map(|e| e.append_time),
        "cells": record.event.iter().flat_map(|e| &e.cells).map(cells).collect::<Vec<_>>(),
    })
}

fn report(global: &Global, table: &str, released: &Released) -> Result<()> {
    let counted = [
        (released.replayed, "replayed"),
        (released.superseded, "superseded by a newer value"),
        (released.dropped, "dropped"),
        (released.kept, "kept: they fit no better than before"),
    ];
    let mut parts: Vec<String> = counted
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {what}", plural(*n, "record", "records")))
        .collect();
    if parts.is_empty() {
        parts.push("nothing in quarantine".to_owned());
    }
    if !released.cleared.is_empty() {
        parts.push(format!("no longer degraded: {}", released.cleared.join(", ")));
    }
    if !released.unverified.is_empty() {
        parts.push(format!(
            "degraded until `verify {table}` finds them fine, since records were dropped: {}",
            released.unverified.join(", ")
        ));
    }
    let object = json!({
        "table": table, "replayed": released.replayed, "superseded": released.superseded, "kept": released.kept,
        "dropped": released.dropped, "cleared": released.cleared, "unverified": released.unverified,
    });
    output::done(global, &format!("table {table}: {}", parts.join("; ")), &object)
}

impl super::args::WhichArgs {
    /// The records that are meant; what is named must be there.
    fn of(&self, schema: &TableSchema) -> Result<Which> {
        if let Some(name) = &self.index {
            schema.require_definition(name)?;
        }
        Ok(Which { ids: self.ids.clone(), attribute: self.attribute.clone(), index: self.index.clone() })
    }
}
