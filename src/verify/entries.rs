//! From the index to the base table: does every entry say what its base row says?

use super::expect::{Ought, Values};
use super::report::Class;
use super::rows::columns;
use super::{Pass, Progress, Run};
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
    value: Bytes,
}

impl There<'_> {
    /// None when its value can't be decoded.
    fn disputed(&self) -> Option<bool> {
        entry::decode_value(&self.value).ok().map(|(disputed, _)| disputed)
    }
}

impl<F: FnMut(Progress)> Run<F> {
    pub(super) async fn entries(&mut self, pass: Pass) -> Result<()> {
        let scan = Scan { page_rows: self.pace.page(Scan::PAGE_ROWS), ..Scan::all() };
        let mut scanner = self.snapshot.scan(&self.schema.index_table(), scan).await?;
        let checked = self.checked.clone();
        loop {
            let page = scanner.next_page().await?;
            let mut doubtful = Vec::new();
            for row in page.rows {
                let Some(there) = self.read(&checked, row, pass).await? else { continue };
                match (pass, there.disputed()) {
                    (Pass::Sum, Some(false)) => self.sums.is(&there.row, &there.key, &there.value),
                    (Pass::Sum, Some(true) | None) => self.sums.suspect(&there.row),
                    (Pass::Examine, _) if self.sums.doubts(&there.row) => doubtful.push(there),
                    (Pass::Examine, _) => {}
                }
            }
            if pass == Pass::Sum {
                self.report.entries += page.examined;
            }
            self.judge(doubtful).await?;
            self.step(page.examined).await?;
            if page.done {
                return self.repair_rest().await;
            }
        }
    }

    /// Takes a row of the index table apart. None when there is nothing more to ask of it.
    async fn read<'a>(&mut self, checked: &'a [Definition], row: Row, pass: Pass) -> Result<Option<There<'a>>> {
        let code = row.key.get(1..3).map(|c| Code::from_be_bytes([c[0], c[1]]));
        let definition = checked.iter().find(|d| Some(d.code) == code);
        let parts = definition.and_then(|d| entry::decode(&row.key, d).ok());
        let (Some(definition), Some(parts)) = (definition, parts) else {
            let known = self.schema.all_definitions().any(|d| Some(d.code) == code);
            // Once is enough.
            if pass == Pass::Sum && definition.is_some() {
                self.found(Class::Undecodable, definition, &row.key).await?;
            } else if pass == Pass::Sum && !known {
                self.found(Class::UnknownDefinition, None, &row.key).await?;
            }
            return Ok(None);
        };
        let base = row.key.slice(parts.row);
        if self.pending.holds(&base) {
            return Ok(None);
        }
        let value = row.newest(entry::FAMILY, entry::QUALIFIER).map(|c| c.value.clone()).unwrap_or_default();
        Ok(Some(There { definition, key: row.key, row: base, value }))
    }

    /// Compares entries with their base rows, which are read once each.
    async fn judge(&mut self, there: Vec<There<'_>>) -> Result<()> {
        if there.is_empty() {
            return Ok(());
        }
        let mut keys: Vec<Bytes> = there.iter().map(|t| t.row.clone()).collect();
        keys.sort_unstable();
        keys.dedup();
        let spec = ReadSpec { columns: columns(&self.schema), ..ReadSpec::default() };
        let rows = self.snapshot.get(&self.schema.name, &keys, &spec).await?;
        let values: HashMap<&Bytes, Values> =
            keys.iter().zip(rows.iter().map(|row| Values::of(&self.schema, row))).collect();
        for entry in &there {
            let Some(disputed) = entry.disputed() else {
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
