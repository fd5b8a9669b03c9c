//! `attribute declare|drop`.

use super::args::{AttributeCommand, Global};
use super::output;
use super::session::{Session, parse_attributes};
use crate::error::Result;
use serde_json::json;

pub async fn run(global: &Global, command: &AttributeCommand) -> Result<()> {
    let session = Session::open(global).await?;
    match command {
        AttributeCommand::Declare { table, attributes } => {
            let attributes = parse_attributes(attributes)?;
            session.catalog.declare(table, &attributes).await?;
            let shown: Vec<String> = attributes.iter().map(ToString::to_string).collect();
            let object = json!({ "table": table, "attributes": shown });
            output::done(global, &format!("table {table}: declared {}", shown.join(", ")), &object)
        }
        AttributeCommand::Drop { table, name } => {
            session.catalog.drop_attribute(table, name).await?;
            let object = json!({ "table": table, "attribute": name, "dropped": true });
            output::done(global, &format!("attribute {name} of table {table} is forgotten; its values stay"), &object)
        }
    }
}
