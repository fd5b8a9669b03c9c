//! `table apply`: the tables of the configuration, made as they are to be.
//!
//! What is there already and is as it is to be is left alone; what is there and differs is an error. Nothing is removed.

use super::args::Global;
use super::output::{self, count};
use super::session::Session;
use crate::build;
use crate::config::{IndexConfig, TableConfig};
use crate::error::{Error, ErrorKind, Result};
use crate::query;
use crate::schema::{DefinitionSpec, Lifecycle, TableSchema, nearest};
use serde_json::json;

pub async fn run(global: &Global, name: Option<&str>) -> Result<()> {
    let tables = &global.loaded.config.tables;
    let Some(file) = global.loaded.file.as_ref().filter(|_| !tables.is_empty()) else {
        return Err(Error::new(
            ErrorKind::NotFound,
            "the configuration has no tables: write them under [[table]] in sideindex.toml, or name a file with --config",
        ));
    };
    let chosen: Vec<&TableConfig> = tables.iter().filter(|t| name.is_none_or(|name| name == t.name)).collect();
    if let (Some(name), true) = (name, chosen.is_empty()) {
        let hint = nearest(name, tables.iter().map(|t| t.name.as_str()));
        return Err(Error::new(ErrorKind::NotFound, format!("{} has no table {name:?}{hint}", file.display())));
    }
    let session = Session::open_or_create(global).await?;
    for table in chosen {
        apply(global, &session, table).await.map_err(|e| e.within(format!("table {}", table.name)))?;
    }
    Ok(())
}

async fn apply(global: &Global, session: &Session, table: &TableConfig) -> Result<()> {
    let catalog = &session.catalog;
    let created = !catalog.list_tables().await?.contains(&table.name);
    if created {
        catalog.create_table(&table.name, &table.families, table.versions).await?;
    } else {
        compare(session, table).await?;
    }
    if let Some(key) = &table.key {
        catalog.declare_key(&table.name, key).await?;
    }
    let before = catalog.table(&table.name).await?;
    let schema = catalog.declare(&table.name, &table.attributes).await?;
    let specs = table.indexes.iter().map(|index| spec(&schema, index)).collect::<Result<Vec<_>>>()?;
    let fresh =
        table.indexes.iter().filter(|i| schema.definition(&i.name).is_none_or(|d| d.state != Lifecycle::Active));
    let fresh: Vec<&str> = fresh.map(|i| i.name.as_str()).collect();
    session.apply(&table.name, |_| {}).await?;
    let bar = output::bar(global, &table.name, 0, false);
    let built = build::create(catalog, &session.changes, &table.name, &specs, |p| {
        bar.set_length(p.of);
        bar.set_position(p.rows);
        bar.set_message(format!("{} entries", count(p.entries)));
    })
    .await;
    bar.finish_and_clear();
    let (_, done) = built?;
    let attributes: Vec<&str> =
        table.attributes.iter().map(|a| a.name.as_str()).filter(|name| before.attribute(name).is_none()).collect();
    let mut sentence = format!("table {} {}", table.name, if created { "created" } else { "is there" });
    if !attributes.is_empty() {
        sentence.push_str(&format!("; attributes declared: {}", attributes.join(", ")));
    }
    match fresh.as_slice() {
        [] => sentence.push_str("; its indexes are there"),
        fresh => {
            let entries = output::plural(done.entries, "entry", "entries");
            sentence.push_str(&format!("; indexes created: {}, {entries}", fresh.join(", ")));
        }
    }
    let object = json!({
        "table": table.name, "created": created, "attributes": attributes, "indexes": fresh,
        "rows": done.rows, "entries": done.entries,
    });
    output::done(global, &sentence, &object)
}

/// A table that is there must have the same families and versions; one that HBase had before may have others beside them.
async fn compare(session: &Session, table: &TableConfig) -> Result<()> {
    if session.catalog.table(&table.name).await?.families == table.families && !session.store.capabilities().change_logs
    {
        return Ok(());
    }
    let there = session.store.describe_table(&table.name).await?;
    let same = there.families.iter().map(|f| (&f.name, f.max_versions));
    if same.eq(table.families.iter().map(|name| (name, table.versions))) {
        return Ok(());
    }
    let families: Vec<String> = there
        .families
        .iter()
        .map(|f| format!("{} ({})", f.name, output::plural(f.max_versions.into(), "version", "versions")))
        .collect();
    Err(Error::new(
        ErrorKind::AlreadyExists,
        format!("is there with other column families or versions: {}; they cannot be changed", families.join(", ")),
    ))
}

fn spec(schema: &TableSchema, index: &IndexConfig) -> Result<DefinitionSpec> {
    let filter = index.filter.as_deref().map(|text| query::filter(text, schema)).transpose();
    Ok(DefinitionSpec {
        name: index.name.clone(),
        on: index.on.clone(),
        ordered: index.ordered,
        salts: index.salts,
        covered: index.covered.clone(),
        filter: filter.map_err(|e| e.within(format!("index {}", index.name)))?,
        value_limit: index.value_limit,
    })
}
