//! From the index to the base table: does every entry say what its base row says?

use super::expect::{Ought, Values};
use super::report::Class;
use super::rows::columns;
use super::{Progress, Run};
use crate::error::Result;
use crate::model::Row;
use crate::schema::{Code, Definition, entry};
use crate::store::{ReadSpec, Scan};
use bytes::Bytes;
use std::collections::HashMap;

/// An entry that is there.
struct There<'a> {
    definition: &'a Definition,
    key: Bytes,
    row: Bytes,
    /// None when its value can't be decoded.
    disputed: Option<bool>,
}

impl<F: FnMut(Progress)> Run<F> {
    pub(super) async fn entries(&mut self) -> Result<()> {
        let scan = Scan { page_rows: self.pace.page(Scan::PAGE_ROWS), ..Scan::all() };
        let mut scanner = self.snapshot.scan(&self.schema.index_table(), scan).await?;
        let checked = self.checked.clone();
        loop {
            let page = scanner.next_page().await?;
            self.report.entries += page.examined;
            let mut there = Vec::with_capacity(page.rows.len());
            for row in page.rows {
                there.extend(self.read(&checked, row).await?);
            }
            self.judge(there).await?;
            self.step().await;
            if page.done {
                return self.repair_rest().await;
            }
        }
    }

    /// Takes a row of the index table apart. None when there is nothing more to ask of it.
    async fn read<'a>(&mut self, checked: &'a [Definition], row: Row) -> Result<Option<There<'a>>> {
        let code = row.key.get(1..3).map(|c| Code::from_be_bytes([c[0], c[1]]));
        let known = self.schema.definitions().iter().find(|d| Some(d.code) == code).map(|d| d.name.clone());
        let Some(name) = known else {
            self.found(Class::UnknownDefinition, None, &row.key).await?;
            return Ok(None);
        };
        let Some(definition) = checked.iter().find(|d| d.name == name) else { return Ok(None) };
        let Ok(parts) = entry::decode(&row.key, definition.terms.len()) else {
            self.found(Class::Undecodable, Some(definition), &row.key).await?;
            return Ok(None);
        };
        let base = row.key.slice(parts.row);
        if self.pending.holds(&base) {
            return Ok(None);
        }
        let cell = row.newest(entry::FAMILY, entry::QUALIFIER);
        let disputed = cell.and_then(|c| entry::decode_value(&c.value).ok());
        Ok(Some(There { definition, key: row.key, row: base, disputed }))
    }

    /// Compares entries with their base rows, which are read once each.
    async fn judge(&mut self, there: Vec<There<'_>>) -> Result<()> {
        let mut keys: Vec<Bytes> = there.iter().map(|t| t.row.clone()).collect();
        keys.sort_unstable();
        keys.dedup();
        let spec = ReadSpec { columns: columns(&self.schema), ..ReadSpec::default() };
        let rows = self.snapshot.get(&self.schema.name, &keys, &spec).await?;
        let values: HashMap<&Bytes, Values> =
            keys.iter().zip(rows.iter().map(|row| Values::of(&self.schema, row))).collect();
        for entry in &there {
            let Some(disputed) = entry.disputed else {
                self.found(Class::Undecodable, Some(entry.definition), &entry.key).await?;
                continue;
            };
            let Some(values) = values.get(&entry.row) else { continue };
            // A key that decodes, but not to terms of this definition, is no entry either.
            match Ought::of(entry.definition, values)?.holds(&entry.key) {
                Ok(true) => {}
                Ok(false) if disputed => self.report.count(entry.definition).disputed += 1,
                Ok(false) => self.found(Class::Outdated, Some(entry.definition), &entry.key).await?,
                Err(_) => self.found(Class::Undecodable, Some(entry.definition), &entry.key).await?,
            }
        }
        Ok(())
    }
}
