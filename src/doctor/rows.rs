//! Index entries and state rows.

use super::{Report, Severity};
use crate::error::{Error, Result};
use crate::model::Row;
use crate::schema::{Code, Definition, TableSchema, entry, state};
use crate::store::embedded::EmbeddedStore;
use crate::store::{Read, ReadSpec, Scan};
use std::collections::BTreeMap;

/// Every entry of a table decodes for its definition, and stands where its salt puts it.
pub(super) async fn entries(store: &EmbeddedStore, schema: &TableSchema, report: &mut Report) -> Result<()> {
    let table = schema.index_table();
    let definitions: BTreeMap<Code, &Definition> = schema.definitions().iter().map(|d| (d.code, d)).collect();
    let mut scanner = store.scan(&table, Scan::all()).await?;
    loop {
        let page = match scanner.next_page().await {
            Ok(page) => page,
            // The table's cells were read before, and said so.
            Err(_) => return Ok(()),
        };
        for row in &page.rows {
            report.looked.entries += 1;
            let code = row.key.get(1..3).map(|c| Code::from_be_bytes([c[0], c[1]]));
            match code.and_then(|code| definitions.get(&code)) {
                Some(definition) => {
                    if let Err(e) = check_entry(row, definition) {
                        report.add(
                            Severity::Error,
                            format!("index {} of table {}", definition.name, schema.name),
                            e.within(format!("entry \"{}\"", row.key.escape_ascii())).to_string(),
                            "`verify --repair` writes it anew",
                        );
                    }
                }
                None => report.add(
                    Severity::Warning,
                    format!("table {table}"),
                    format!("entry \"{}\" is of no index that is there", row.key.escape_ascii()),
                    "nothing: no query reads it",
                ),
            }
        }
        if page.done {
            return Ok(());
        }
    }
}

fn check_entry(row: &Row, definition: &Definition) -> Result<()> {
    let parts = entry::decode(&row.key, definition)?;
    let (terms, base) = (&row.key[parts.terms.clone()], &row.key[parts.row.clone()]);
    if base.is_empty() {
        return Err(Error::corrupt("expected a row key behind the terms, found none"));
    }
    let expected = entry::encode(definition, terms, base)?;
    if expected != row.key {
        return Err(Error::corrupt(format!("expected the salt {}, found {}", expected[0], row.key[0])));
    }
    for cell in &row.cells {
        entry::decode_value(&cell.value)?;
    }
    Ok(())
}

/// Every candidate of a table decodes, and is of an attribute that is there.
pub(super) async fn states(store: &EmbeddedStore, schema: &TableSchema, report: &mut Report) -> Result<()> {
    let table = schema.state_table();
    let spec = ReadSpec { max_versions: 1, ..ReadSpec::default() };
    let mut scanner = store.scan(&table, Scan { spec, ..Scan::all() }).await?;
    loop {
        let page = match scanner.next_page().await {
            Ok(page) => page,
            Err(_) => return Ok(()),
        };
        for row in &page.rows {
            report.looked.states += 1;
            for cell in &row.cells {
                let checked = state::decode(cell).and_then(|(code, candidate)| {
                    candidate.value.elements()?;
                    schema
                        .attribute_by_code(code)
                        .map(|_| ())
                        .ok_or_else(|| Error::corrupt(format!("expected the code of an attribute, found {code}")))
                });
                if let Err(e) = checked {
                    report.add(
                        Severity::Error,
                        format!("table {table}"),
                        e.within(format!("row \"{}\"", row.key.escape_ascii())).to_string(),
                        "restore the directory from a copy, or create the table's indexes anew in a new directory",
                    );
                }
            }
        }
        if page.done {
            return Ok(());
        }
    }
}
