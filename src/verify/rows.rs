//! From the base table to the index: is every entry there that ought to be?

use super::expect::{Ought, Values};
use super::report::Class;
use super::{Pass, Progress, Run};
use crate::error::Result;
use crate::schema::{Attribute, Definition, TableSchema, entry};
use crate::store::{Columns, ReadSpec, Scan};
use bytes::Bytes;

/// Entries looked up together.
const LOOKUPS: usize = 4_096;

/// The attributes that definitions are made of and that have cells.
pub(super) fn in_columns(schema: &TableSchema) -> impl Iterator<Item = &Attribute> {
    schema.indexed().iter().filter(|a| a.key_part.is_none())
}

/// The columns that definitions are made of.
pub(super) fn columns(schema: &TableSchema) -> Columns {
    let column = |a: &Attribute| (Bytes::from(a.family.clone()), Bytes::from(a.qualifier.clone()));
    Columns::Exact(in_columns(schema).map(column).collect())
}

/// An entry that ought to be there.
struct Due {
    /// Number of its definition.
    definition: usize,
    key: Bytes,
    value: Bytes,
}

impl<F: FnMut(Progress)> Run<F> {
    pub(super) async fn base_rows(&mut self, pass: Pass) -> Result<()> {
        let spec = ReadSpec { columns: columns(&self.schema), ..ReadSpec::default() };
        let scan = Scan { spec, page_rows: self.pace.page(Scan::PAGE_ROWS), ..Scan::all() };
        let mut scanner = self.snapshot.scan(&self.schema.name, scan).await?;
        let checked = self.checked.clone();
        let mut due = Vec::new();
        loop {
            let page = scanner.next_page().await?;
            if pass == Pass::Sum {
                self.report.rows += page.examined;
            }
            for row in page.rows {
                if self.pending.holds(&row.key) || (pass == Pass::Examine && !self.sums.doubts(&row.key)) {
                    continue;
                }
                let values = Values::of(&self.schema, &row);
                for (number, definition) in checked.iter().enumerate() {
                    let ought = Ought::of(definition, &values)?;
                    let keys = ought.keys()?;
                    let fit = |key: &Bytes| key.len() <= entry::MAX_ROW;
                    match pass {
                        Pass::Sum => {
                            keys.iter().filter(|k| fit(k)).for_each(|k| self.sums.ought(&row.key, k, &ought.value));
                            let fitting = keys.iter().filter(|k| fit(k)).count();
                            let counts = self.report.count(definition);
                            counts.expected += fitting as u64;
                            counts.unindexable += (keys.len() - fitting) as u64 + u64::from(ought.is_too_many());
                        }
                        Pass::Examine => due.extend(keys.into_iter().filter(fit).map(|key| Due {
                            definition: number,
                            key,
                            value: ought.value.clone(),
                        })),
                    }
                    if due.len() >= LOOKUPS {
                        self.look_up(&checked, std::mem::take(&mut due)).await?;
                    }
                }
            }
            self.step(page.examined).await?;
            if page.done {
                self.look_up(&checked, due).await?;
                return self.repair_rest().await;
            }
        }
    }

    async fn look_up(&mut self, checked: &[Definition], mut due: Vec<Due>) -> Result<()> {
        if due.is_empty() {
            return Ok(());
        }
        // Neighbours are read together.
        due.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let keys: Vec<Bytes> = due.iter().map(|d| d.key.clone()).collect();
        let rows = self.snapshot.get(&self.schema.index_table(), &keys, &ReadSpec::default()).await?;
        for (due, row) in due.iter().zip(rows) {
            let definition = &checked[due.definition];
            let class = match row.newest(entry::FAMILY, entry::QUALIFIER) {
                None => Some(Class::Missing),
                Some(cell) if cell.value == due.value => None,
                // What is disputed is checked by whoever meets it, and what can't be decoded is met again on the way back.
                Some(cell) => match entry::decode_value(&cell.value) {
                    Ok((false, _)) => Some(Class::WrongCovered),
                    Ok((true, _)) | Err(_) => None,
                },
            };
            if let Some(class) = class {
                self.found(class, Some(definition), &due.key).await?;
            }
        }
        Ok(())
    }
}
