//! `get`: print one row.

use super::args::{Format, GetArgs, Global};
use super::output;
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{AttributeValue, encoding};
use crate::store::ReadSpec;
use bytes::Bytes;
use serde_json::{Map, Value, json};

pub async fn run(global: &Global, args: &GetArgs) -> Result<()> {
    let session = Session::open(global).await?;
    let schema = session.catalog.table(&args.table).await?;
    let key = Bytes::from(args.id.clone());
    let rows = session.store.get(&args.table, &[key], &ReadSpec::default()).await?;
    let row = rows
        .first()
        .filter(|row| !row.cells.is_empty())
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("table {} has no row {:?}", args.table, args.id)))?;
    let mut attrs = Map::new();
    let mut records = Vec::with_capacity(row.cells.len());
    let mut table = output::table(&["attribute", "type", "value", "timestamp"]);
    let parts = schema.key_values(&row.key).unwrap_or_default();
    for (part, value) in schema.key().iter().flat_map(|key| key.parts()).zip(parts) {
        table.add_row([
            part.name.clone(),
            part.kind.scalar().to_string(),
            output::plain(&value.to_string()),
            String::new(),
        ]);
        attrs.insert(part.name.clone(), value.to_json());
    }
    for cell in &row.cells {
        let mut shown = None;
        let (name, kind, value) = match schema.attribute_at(&cell.family, &cell.qualifier) {
            Some(attribute) => {
                let value = match encoding::decode(attribute, &cell.value) {
                    Ok(value) => {
                        // Bytes are for people as queries show them, not in base64.
                        shown = matches!(value, AttributeValue::One(_)).then(|| value.to_string());
                        value.to_json()
                    }
                    // Shown as it is: this is the place to see what is wrong with it.
                    Err(_) => json!({ "undecodable": cell.value.escape_ascii().to_string() }),
                };
                (attribute.name.clone(), attribute.kind.to_string(), value)
            }
            None => {
                let name = format!("{}:{}", cell.family.escape_ascii(), cell.qualifier.escape_ascii());
                (name, "undeclared".to_owned(), Value::from(cell.value.escape_ascii().to_string()))
            }
        };
        records.push(json!({ "attribute": name, "type": kind, "value": value, "timestamp": cell.timestamp }));
        let shown = shown.or_else(|| value.as_str().map(str::to_owned)).unwrap_or_else(|| value.to_string());
        table.add_row([name.clone(), kind, output::plain(&shown), cell.timestamp.to_string()]);
        attrs.insert(name, value);
    }
    match global.format {
        Format::Table => output::line(&table.to_string()),
        Format::Json => output::json(&json!({ "id": args.id, "ts": row.newest_timestamp(), "attrs": attrs })),
        Format::Csv => output::records(global, &records),
    }
}
