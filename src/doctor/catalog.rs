//! `sx_meta` and `sx_quarantine`: schemas, positions, lists.

use super::{RESTORE, Report, Severity};
use crate::error::{Error, Result};
use crate::model::{Position, Row, wire};
use crate::schema::{
    Catalog, Code, Lifecycle, META_FAMILY, META_TABLE, QUARANTINE_FAMILY, QUARANTINE_TABLE, TableSchema,
};
use crate::source;
use crate::store::embedded::EmbeddedStore;
use crate::store::{Read, Scan, Store};
use std::collections::{BTreeMap, BTreeSet};

/// The schemas that can be read.
pub(super) async fn examine(catalog: &Catalog, store: &EmbeddedStore, report: &mut Report) -> Result<Vec<TableSchema>> {
    let mut dictionaries: BTreeMap<String, BTreeMap<String, Code>> = BTreeMap::new();
    let mut scanner = store.scan(META_TABLE, Scan::all()).await?;
    loop {
        let page = scanner.next_page().await?;
        for row in &page.rows {
            meta_row(row, &mut dictionaries, report);
        }
        if page.done {
            break;
        }
    }
    quarantine(store, report).await?;
    let mut schemas = Vec::new();
    let there: BTreeSet<String> = store.list_tables().await?.into_iter().collect();
    for name in catalog.list_tables().await? {
        let place = format!("table {name}");
        let schema = match catalog.table(&name).await {
            Ok(schema) => schema,
            Err(e) => {
                report.add(Severity::Error, place, e.to_string(), super::directory::advice(&e));
                continue;
            }
        };
        let parts = [schema.name.clone(), schema.index_table(), schema.state_table()];
        let missing: Vec<&String> = parts.iter().filter(|t| !there.contains(*t)).collect();
        if !missing.is_empty() {
            let error = Error::corrupt(format!("expected the tables {parts:?}, found no {missing:?}"));
            report.damaged(place, &error);
            continue;
        }
        codes(&schema, dictionaries.get(&name), report);
        progress_of(&schema, store, report).await?;
        schemas.push(schema);
    }
    Ok(schemas)
}

/// One row of `sx_meta`. What [`Catalog::table`] reads is left to it.
fn meta_row(row: &Row, dictionaries: &mut BTreeMap<String, BTreeMap<String, Code>>, report: &mut Report) {
    let key = String::from_utf8_lossy(&row.key).into_owned();
    let place = format!("{META_TABLE} row {key}");
    match key.split_once('/') {
        Some(("table" | "attribute" | "definition" | "position" | "secret", _)) => {}
        Some(("dictionary", table)) => {
            for cell in &row.cells {
                let name = String::from_utf8_lossy(&cell.qualifier).into_owned();
                match <[u8; 2]>::try_from(cell.value.as_ref()) {
                    Ok(code) => {
                        dictionaries.entry(table.to_owned()).or_default().insert(name, Code::from_be_bytes(code));
                    }
                    Err(_) => {
                        let found = cell.value.escape_ascii();
                        report.damaged(
                            &place,
                            &Error::corrupt(format!("{name}: expected a code of 2 bytes, found {found}")),
                        );
                    }
                }
            }
        }
        Some(("codes", _)) => {
            for cell in row.cells.iter().filter(|cell| cell.value.len() != 8) {
                let what = format!("expected a counter of 8 bytes, found {}", cell.value.escape_ascii());
                report.damaged(&place, &Error::corrupt(what));
            }
        }
        Some(("recheck", _)) => {
            report.looked.rechecks += 1;
            if let Err(e) = event(row, META_FAMILY, "position") {
                report.damaged(&place, &e);
            }
        }
        _ => report.add(
            Severity::Note,
            place,
            "is of no kind this sideindex knows",
            "nothing, if a newer sideindex wrote it",
        ),
    }
}

/// An event that waits, and the JSON beside it.
fn event(row: &Row, family: &str, beside: &str) -> Result<()> {
    let cell = |name: &str| {
        row.newest(family.as_bytes(), name.as_bytes()).ok_or_else(|| Error::corrupt(format!("expected a cell {name}")))
    };
    serde_json::from_slice::<serde_json::Value>(&cell(beside)?.value)
        .map_err(|e| Error::corrupt(format!("expected JSON in {beside}, found {e}")).with_source(e))?;
    wire::decode(cell("event")?.value.clone(), Position::Snapshot).map(|_| ())
}

/// The codes of attributes and definitions are those of the dictionary, each given once.
fn codes(schema: &TableSchema, dictionary: Option<&BTreeMap<String, Code>>, report: &mut Report) {
    let place = format!("dictionary of table {}", schema.name);
    let none = BTreeMap::new();
    let dictionary = dictionary.unwrap_or(&none);
    let mut names: BTreeMap<Code, &String> = BTreeMap::new();
    for (name, code) in dictionary {
        if let Some(other) = names.insert(*code, name) {
            report.damaged(&place, &Error::corrupt(format!("{name} and {other} have the code {code}")));
        }
    }
    let attributes = schema.attributes().map(|a| (format!("a:{}", a.name), a.code));
    let definitions = schema.definitions().iter().map(|d| (format!("d:{}#{}", d.name, d.generation), d.code));
    for (name, code) in attributes.chain(definitions) {
        if dictionary.get(&name) != Some(&code) {
            let found = dictionary.get(&name).map_or("none".to_owned(), Code::to_string);
            report.damaged(&place, &Error::corrupt(format!("expected the code {code} for {name}, found {found}")));
        }
    }
    for definition in schema.definitions() {
        for code in definition.codes().into_iter().filter(|code| schema.attribute_by_code(*code).is_none()) {
            let what = format!("contains the attribute of code {code}, which is not there");
            report.damaged(format!("index {} of table {}", definition.name, schema.name), &Error::corrupt(what));
        }
    }
}

/// How far the indexes of a table are.
async fn progress_of(schema: &TableSchema, store: &EmbeddedStore, report: &mut Report) -> Result<()> {
    let place = format!("table {}", schema.name);
    let head = store.log_head(&schema.name)?;
    match source::applied(store, &schema.name).await {
        Err(e) => report.damaged(&place, &e),
        Ok(applied) if applied > head => report.add(
            Severity::Error,
            &place,
            format!("changes up to {applied} are acknowledged, and the change log ends at {head}: its end is lost"),
            RESTORE,
        ),
        Ok(applied) if applied < head && !schema.definitions().is_empty() => report.add(
            Severity::Warning,
            &place,
            format!("its indexes are {} changes behind", head - applied),
            "`apply` brings them up to date",
        ),
        Ok(_) => {}
    }
    for definition in schema.definitions() {
        let place = format!("index {} of table {}", definition.name, schema.name);
        if definition.state == Lifecycle::Building {
            report.add(
                Severity::Warning,
                &place,
                "is not complete, and no query uses it",
                "`index create` with the same definition completes it",
            );
        }
        if definition.degraded {
            report.add(
                Severity::Warning,
                &place,
                "is degraded: rows are missing that are in quarantine",
                "`quarantine list` shows them; correct the rows, then replay",
            );
        }
    }
    Ok(())
}

async fn quarantine(store: &EmbeddedStore, report: &mut Report) -> Result<()> {
    let mut scanner = store.scan(QUARANTINE_TABLE, Scan::all()).await?;
    loop {
        let page = scanner.next_page().await?;
        for row in &page.rows {
            report.looked.quarantined += 1;
            if let Err(e) = event(row, QUARANTINE_FAMILY, "record") {
                report.damaged(format!("{QUARANTINE_TABLE} row {}", row.key.escape_ascii()), &e);
            }
        }
        if page.done {
            return Ok(());
        }
    }
}
