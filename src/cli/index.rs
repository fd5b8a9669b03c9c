//! `index create|list|status|drop`.

use super::args::{Format, Global, IndexCommand};
use super::output::{self, count};
use super::session::Session;
use crate::build;
use crate::error::{Error, ErrorKind, Result};
use crate::index;
use crate::query;
use crate::schema::{Definition, DefinitionSpec, Lifecycle, QUARANTINE_TABLE, TableSchema, entry};
use crate::store::{Scan, count_rows};
use serde_json::{Value, json};
use std::time::Instant;

pub async fn run(global: &Global, command: &IndexCommand) -> Result<()> {
    let session = Session::open(global).await?;
    match command {
        IndexCommand::Create { table, name, on, ordered, cover, filter, value_limit, salts } => {
            let filter = match filter {
                Some(text) => Some(query::filter(text, &session.catalog.table(table).await?)?),
                None => None,
            };
            let spec = DefinitionSpec {
                name: name.clone(),
                on: on.clone(),
                ordered: *ordered,
                salts: *salts,
                covered: cover.clone(),
                filter,
                value_limit: *value_limit,
            };
            create(global, &session, table, &spec).await
        }
        IndexCommand::List { table } => {
            let schema = session.catalog.table(table).await?;
            let mut list = output::table(&["index", "on", "kind", "covers", "where", "state"]);
            for definition in schema.all_definitions() {
                if global.format != Format::Table {
                    output::records(global, &[describe(&schema, definition)])?;
                }
                list.add_row([
                    definition.name.clone(),
                    schema.term_names(definition).join(", "),
                    kind(definition).to_owned(),
                    schema.covered_names(definition).join(", "),
                    definition.filter.as_ref().map(|f| f.text.clone()).unwrap_or_default(),
                    state(definition),
                ]);
            }
            if global.format == Format::Table {
                output::line(&list.to_string())?;
            }
            Ok(())
        }
        IndexCommand::Drop { table, name } => drop_index(global, &session, table, name).await,
        IndexCommand::Status { table, count } => {
            let tables = match table {
                Some(table) => vec![table.clone()],
                None => session.catalog.list_tables().await?,
            };
            for table in tables {
                status(global, &session, &table, *count).await?;
            }
            Ok(())
        }
    }
}

/// Brings the table up to date, then builds.
async fn create(global: &Global, session: &Session, table: &str, spec: &DefinitionSpec) -> Result<()> {
    session.apply(table, |_| {}).await?;
    let there =
        session.catalog.table(table).await?.definition(&spec.name).is_some_and(|d| d.state == Lifecycle::Active);
    let started = Instant::now();
    tracing::info!(index = spec.name, "building");
    let bar = output::bar(global, &spec.name, 0, false);
    let built = build::create(&session.catalog, &session.changes, table, std::slice::from_ref(spec), |p| {
        bar.set_length(p.of);
        bar.set_position(p.rows);
        bar.set_message(format!("{} entries", count(p.entries)));
    })
    .await;
    bar.finish_and_clear();
    let (definitions, done) = built.map_err(|e| match e.kind() {
        ErrorKind::Interrupted => Error::new(
            e.kind(),
            format!("{e}: index {} is not complete; the same command again completes it", spec.name),
        ),
        _ => e,
    })?;
    let Some(definition) = definitions.first() else { return Ok(()) };
    if there {
        let object = json!({ "index": definition.name, "state": definition.state, "unchanged": true });
        return output::done(global, &format!("index {} is there already, unchanged", definition.name), &object);
    }
    let sentence = format!(
        "index {} {}: {} from {} in {}",
        definition.name,
        state(definition),
        output::plural(done.entries, "entry", "entries"),
        output::plural(done.rows, "row", "rows"),
        output::time(started.elapsed())
    );
    let object = json!({
        "index": definition.name, "state": definition.state, "rows": done.rows, "entries": done.entries,
        "seconds": started.elapsed().as_secs_f64(),
    });
    output::done(global, &sentence, &object)?;
    warn_of_future(definition);
    Ok(())
}

/// Says so when the floor is ahead of the clock: until then no event decides by itself, and rows gather disputed entries.
fn warn_of_future(definition: &Definition) {
    if definition.floor > crate::clock::now() {
        eprintln!(
            "warning: the table had a cell of the timestamp {}, which is in the future: until then changes to what index {} \
             holds are settled by reading the base row, which is slow; delete such cells and create the index again",
            definition.floor, definition.name
        );
    }
}

async fn drop_index(global: &Global, session: &Session, table: &str, name: &str) -> Result<()> {
    let started = Instant::now();
    let bar = output::bar(global, name, 0, false);
    let dropped = index::drop_definition(&session.catalog, table, name, |d| {
        bar.set_length(d.entries + d.candidates);
        bar.set_position(d.entries + d.candidates);
    })
    .await;
    bar.finish_and_clear();
    let dropped = dropped?;
    let sentence = format!(
        "index {name} dropped with {} in {}; `compact {table}` frees the space",
        output::plural(dropped.entries, "entry", "entries"),
        output::time(started.elapsed())
    );
    let object = json!({
        "index": name, "entries": dropped.entries, "candidates": dropped.candidates,
        "quarantined": dropped.quarantined, "seconds": started.elapsed().as_secs_f64(),
    });
    output::done(global, &sentence, &object)
}

/// How far a table's indexes are, and what stands beside them.
async fn status(global: &Global, session: &Session, table: &str, counted: bool) -> Result<()> {
    let schema = session.catalog.table(table).await?;
    let lag = session.changes.lag(table).await?;
    let rechecks = index::pending_rechecks(&*session.store, table).await?;
    let oldest = index::oldest_recheck(&*session.store, table).await?;
    let in_quarantine = Scan::prefix(format!("{table}/").as_bytes());
    let quarantined = count_rows(&*session.store, QUARANTINE_TABLE, in_quarantine).await?;
    let held = index::quarantine::counts(&*session.store, &schema).await?;
    let mut definitions = Vec::new();
    for definition in schema.all_definitions() {
        let entries = if counted { Some(entries(session, &schema, definition).await?) } else { None };
        definitions.push((definition, held.get(&definition.name).copied().unwrap_or(0), entries));
    }
    if global.format != Format::Table {
        let indexes: Vec<Value> = definitions
            .iter()
            .map(|(definition, held, entries)| {
                let mut object = describe(&schema, definition);
                object["quarantined"] = json!(held);
                object["entries"] = json!(entries);
                object
            })
            .collect();
        let object = json!({
            "table": table,
            "changes": lag.applied.map(|applied| applied + lag.waiting),
            "applied": lag.applied,
            "waiting": lag.waiting,
            "rechecks": rechecks,
            "oldest_recheck_due": oldest,
            "quarantined": quarantined,
            "indexes": indexes,
        });
        return output::records(global, &[object]);
    }
    let applied = lag.applied.map_or_else(String::new, |applied| {
        format!("{} of {} changes applied, ", count(applied), count(applied + lag.waiting))
    });
    let behind = match (lag.waiting, lag.applied) {
        (0, _) => "up to date".to_owned(),
        (n, Some(_)) => format!("{} behind, `apply` brings them up to date", output::plural(n, "change", "changes")),
        (n, None) => format!("{} to be applied, `apply` does so", output::plural(n, "intent", "intents")),
    };
    let oldest = oldest.map(|due| format!(" (the oldest due at {due})")).unwrap_or_default();
    output::line(&format!(
        "table {table}: {applied}{behind}; {} waiting to be checked again{oldest}, {} in quarantine",
        count(rechecks),
        count(quarantined)
    ))?;
    let mut list = output::table(&[
        "index",
        "on",
        "kind",
        "covers",
        "where",
        "limit",
        "state",
        "floor",
        "generation",
        "entries",
        "quarantine",
    ]);
    for (definition, held, entries) in definitions {
        list.add_row([
            definition.name.clone(),
            schema.term_names(definition).join(", "),
            kind(definition).to_owned(),
            schema.covered_names(definition).join(", "),
            definition.filter.as_ref().map(|f| f.text.clone()).unwrap_or_default(),
            if definition.value_limit == 0 { "none".to_owned() } else { definition.value_limit.to_string() },
            state(definition),
            definition.floor.to_string(),
            definition.generation.to_string(),
            entries.map(count).unwrap_or_default(),
            count(held),
        ]);
    }
    output::line(&list.to_string())?;
    schema.definitions().iter().for_each(warn_of_future);
    Ok(())
}

/// How many entries a definition has.
async fn entries(session: &Session, schema: &TableSchema, definition: &Definition) -> Result<u64> {
    let mut entries = 0;
    for salt in 0..definition.salts {
        let scan = Scan::prefix(&entry::prefix(salt, definition.code, &[]));
        entries += count_rows(&*session.store, &schema.index_table(), scan).await?;
    }
    Ok(entries)
}

/// A definition as an object for programs.
pub fn describe(schema: &TableSchema, definition: &Definition) -> Value {
    json!({
        "index": definition.name,
        "on": schema.term_names(definition),
        "kind": kind(definition),
        "covered": schema.covered_names(definition),
        "where": definition.filter.as_ref().map(|f| &f.text),
        "value_limit": definition.value_limit,
        "salts": definition.salts,
        "state": definition.state,
        "degraded": definition.degraded,
        "unverified": definition.unverified,
        "floor": definition.floor,
        "generation": definition.generation,
    })
}

fn kind(definition: &Definition) -> &'static str {
    match (definition.ordered, definition.terms.len()) {
        (true, 1) => "ordered",
        (true, _) => "ordered composite",
        (false, 1) => "equality",
        (false, _) => "composite",
    }
}

fn state(definition: &Definition) -> String {
    let state = definition.state.to_string();
    if definition.degraded { format!("{state}, degraded") } else { state }
}
