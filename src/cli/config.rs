//! `config check|show`.

use super::args::{ConfigCommand, Format, Global, GlobalArgs};
use super::output;
use crate::config::{Loaded, SETTINGS, TableConfig};
use crate::error::Result;
use crate::store::Stop;
use serde_json::json;
use std::path::Path;

pub fn run(args: &GlobalArgs, command: &ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Check { file: Some(file) } => check_file(args, file),
        ConfigCommand::Check { file: None } => {
            let global = Global::new(args, Stop::default())?;
            let what = match &global.loaded.file {
                Some(file) => format!("{} and the environment", file.display()),
                None => "no configuration file; the environment".to_owned(),
            };
            output::done(&global, &format!("{what}: all right"), &json!({ "file": global.loaded.file, "valid": true }))
        }
        ConfigCommand::Show => show(&Global::new(args, Stop::default())?),
    }
}

/// The file alone: what else is set has no part in it.
fn check_file(args: &GlobalArgs, file: &Path) -> Result<()> {
    let mut loaded = Loaded::default();
    loaded.take_file(file)?;
    let tables = loaded.config.tables.len() as u64;
    let format = args.format.unwrap_or(Format::Table);
    let sentence = format!("{}: all right, {}", file.display(), output::plural(tables, "table", "tables"));
    output::done_as(format, &sentence, &json!({ "file": file, "valid": true, "tables": tables }))
}

fn show(global: &Global) -> Result<()> {
    let loaded = &global.loaded;
    let mut config = loaded.config.clone();
    let rows: Vec<[Option<String>; 4]> = SETTINGS
        .iter()
        .map(|setting| {
            let origin = loaded.origin(setting).to_string();
            [Some(setting.key.to_owned()), setting.slot(&mut config).shown(), Some(origin), Some(setting.variable())]
        })
        .collect();
    if global.format != Format::Table {
        let objects: Vec<_> = rows
            .iter()
            .map(|[key, value, origin, variable]| {
                // As the file would have it; a TOML text is a JSON text, and so are numbers and lists of them.
                let value: Option<serde_json::Value> = value.as_ref().and_then(|v| serde_json::from_str(v).ok());
                json!({ "setting": key, "value": value, "from": origin, "variable": variable })
            })
            .collect();
        return output::records(global, &objects);
    }
    let mut table = output::table(&["setting", "value", "from", "environment variable"]);
    for row in rows {
        table.add_row(row.map(|cell| output::plain(&cell.unwrap_or_else(|| "(not set)".to_owned()))));
    }
    output::line(&table.to_string())?;
    config.tables.iter().try_for_each(show_table)
}

fn show_table(table: &TableConfig) -> Result<()> {
    output::line(&format!(
        "\ntable {}, column families {}, {}",
        table.name,
        table.families.join(", "),
        output::plural(u64::from(table.versions), "version", "versions")
    ))?;
    if let Some(key) = &table.key {
        output::line(&format!("  row key {key}"))?;
    }
    for attribute in &table.attributes {
        output::line(&format!("  attribute {attribute}"))?;
    }
    for index in &table.indexes {
        let mut words = format!("  index {} on ({})", index.name, index.on.join(", "));
        if index.ordered {
            words.push_str(", ordered");
        }
        if let Some(salts) = index.salts {
            words.push_str(&format!(", {}", output::plural(u64::from(salts), "salt", "salts")));
        }
        if !index.covered.is_empty() {
            words.push_str(&format!(", covering {}", index.covered.join(", ")));
        }
        if let Some(limit) = index.value_limit {
            words.push_str(&format!(", values up to {limit} bytes"));
        }
        if let Some(filter) = &index.filter {
            words.push_str(&format!(", where {filter}"));
        }
        output::line(&words)?;
    }
    Ok(())
}
