//! `table create|list|describe`.

use super::args::{Format, Global, TableCommand};
use super::output;
use super::session::{Session, parse_attributes};
use crate::error::Result;
use crate::schema::Key;
use serde_json::json;

pub async fn run(global: &Global, command: &TableCommand) -> Result<()> {
    match command {
        TableCommand::Create { table, families, attributes, key, versions } => {
            let attributes = parse_attributes(attributes)?;
            let key: Option<Key> = key.as_deref().map(str::parse).transpose()?;
            let session = Session::open_or_create(global).await?;
            session.catalog.create_table(table, families, *versions).await?;
            if let Some(key) = &key {
                session.catalog.declare_key(table, key).await?;
            }
            session.catalog.declare(table, &attributes).await?;
            output::done(global, &format!("table {table} created"), &json!({ "table": table, "families": families }))
        }
        TableCommand::Apply { table } => super::table_apply::run(global, table.as_deref()).await,
        TableCommand::List => {
            let session = Session::open(global).await?;
            for name in session.catalog.list_tables().await? {
                output::done(global, &name, &json!({ "table": name }))?;
            }
            Ok(())
        }
        TableCommand::Describe { table } => {
            let session = Session::open(global).await?;
            let schema = session.catalog.table(table).await?;
            let definitions = schema.all_definitions().map(|d| super::index::describe(&schema, d));
            if global.format == Format::Csv {
                let attributes = schema.attributes().map(|a| json!(a)).collect::<Vec<_>>();
                return output::records(global, &attributes);
            }
            if global.format == Format::Json {
                return output::json(&json!({
                    "table": schema.name,
                    "families": schema.families,
                    "key": schema.key().map(ToString::to_string),
                    "attributes": schema.attributes().collect::<Vec<_>>(),
                    "indexes": definitions.collect::<Vec<_>>(),
                }));
            }
            output::line(&format!("table {}, column families {}", schema.name, schema.families.join(", ")))?;
            if let Some(key) = schema.key() {
                output::line(&format!("row keys: {key}"))?;
            }
            let mut attributes = output::table(&["attribute", "type", "column", "encoding", "indexes"]);
            for a in schema.attributes() {
                let uses: Vec<&str> =
                    schema.definitions().iter().filter(|d| d.mentions(a.code)).map(|d| d.name.as_str()).collect();
                attributes.add_row([
                    a.name.clone(),
                    a.kind.to_string(),
                    a.place(),
                    if a.key_part.is_some() { String::new() } else { a.encoding.to_string() },
                    uses.join(", "),
                ]);
            }
            output::line(&attributes.to_string())
        }
    }
}
