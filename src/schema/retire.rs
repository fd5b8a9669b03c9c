//! Taking definitions and attributes out of a schema.
//!
//! A definition that is to go is marked first: from then on nobody reads it and nobody keeps it. What it left behind is
//! removed under that mark, at leisure and again after a crash; its record goes last. Its code is never used again, so what
//! comes late is of nobody's. The same holds for the codes of attributes that no definition is left of: their candidates
//! are forgotten, and an attribute that is indexed again must not meet them, or the markers over them. So it gets another
//! code.

use super::catalog::{CHANGES, encode_json, meta_row};
use super::{Attribute, Catalog, Code, Definition, Lifecycle, META_FAMILY, META_TABLE, TableSchema};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Cell, CellKind, RowMutation};
use crate::store::{Durability, Read, ReadSpec};
use bytes::Bytes;
use std::collections::BTreeMap;
use tokio::sync::{RwLock, RwLockReadGuard};

/// Held for reading by whoever writes entries of definitions that it has read from a catalog of this process. The embedded
/// store has no other process.
static AT_WORK: RwLock<()> = RwLock::const_new(());

impl Catalog {
    /// To be taken before a schema is read by which entries are written, and held until they are.
    pub(crate) async fn at_work(&self) -> RwLockReadGuard<'static, ()> {
        AT_WORK.read().await
    }

    /// Marks a definition as being dropped and waits until nobody keeps it any more. One that is marked already stays so.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`].
    pub(crate) async fn begin_drop(&self, table: &str, definition: &str) -> Result<Definition> {
        let marked = self.update(table, definition, |d| d.state = Lifecycle::Dropping).await?;
        // Whoever works by a schema from before the mark is waited for; whoever comes next reads it anew.
        drop(AT_WORK.write().await);
        Ok(marked)
    }

    /// Removes the record of a definition whose entries are gone, and gives new codes to the attributes that nothing else is
    /// made of.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn finish_drop(&self, table: &str, definition: &Definition) -> Result<()> {
        let _guard = CHANGES.lock().await;
        let schema = self.table(table).await?;
        let dictionary = self.dictionary(table).await?;
        let mut renumbered = Vec::new();
        for code in orphans(&schema, definition) {
            // A part of the row key has no candidates.
            let Some(attribute) = schema.attribute_by_code(code).filter(|a| a.key_part.is_none()) else { continue };
            let next = generation(&dictionary, 'a', &attribute.name) + 1;
            let code = self.codes(table, &[numbered('a', &attribute.name, next)]).await?[0];
            renumbered.push((attribute.name.clone(), encode_json(&Attribute { code, ..attribute.clone() })?));
        }
        self.put_meta(&meta_row("attribute", table), renumbered).await?;
        self.remove_meta(&meta_row("definition", table), &definition.name).await
    }

    /// Forgets an attribute: its columns stay in the base table, and it can be declared anew, with another type.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::InvalidInput`] while a definition is made of it.
    pub async fn drop_attribute(&self, table: &str, name: &str) -> Result<()> {
        let _guard = CHANGES.lock().await;
        let schema = self.table(table).await?;
        let attribute = schema.require_attribute(name)?;
        if attribute.key_part.is_some() {
            return Err(Error::invalid(format!(
                "{name} is a part of the row keys of table {table}, which stay as they are"
            )));
        }
        let code = attribute.code;
        let users: Vec<&str> = schema.all_definitions().filter(|d| d.mentions(code)).map(|d| d.name.as_str()).collect();
        if !users.is_empty() {
            return Err(Error::invalid(format!(
                "attribute {name} is part of index {}: drop that first",
                users.join(" and index ")
            )));
        }
        self.remove_meta(&meta_row("attribute", table), name).await
    }

    /// Removes a column of a row of `sx_meta`.
    async fn remove_meta(&self, row: &Bytes, qualifier: &str) -> Result<()> {
        let Some(at) = self.meta(row).await?.newest(META_FAMILY.as_bytes(), qualifier.as_bytes()).map(|c| c.timestamp)
        else {
            return Ok(());
        };
        let marker = Cell::delete(CellKind::DeleteColumn, META_FAMILY, qualifier.to_owned(), at);
        self.store().mutate(META_TABLE, vec![RowMutation::new(row.clone(), vec![marker])], Durability::Durable).await
    }
}

/// The codes that a definition which is being dropped is the last to be made of.
pub(crate) fn orphans(schema: &TableSchema, definition: &Definition) -> Vec<Code> {
    let needed = |code: &Code| schema.definitions().iter().any(|d| d.mentions(*code));
    definition.codes().into_iter().filter(|code| !needed(code)).collect()
}

/// Whether a definition may still be read, as `reader` sees it: it is active, and has not become another of the same name.
///
/// # Errors
/// Those of the reader.
pub(crate) async fn is_active(reader: &dyn Read, table: &str, definition: &Definition) -> Result<bool> {
    let column = (Bytes::from(META_FAMILY), Bytes::from(definition.name.clone()));
    let spec = ReadSpec { columns: crate::store::Columns::Exact(vec![column]), ..ReadSpec::default() };
    let rows = reader.get(META_TABLE, &[meta_row("definition", table)], &spec).await?;
    let Some(cell) = rows.first().and_then(|row| row.cells.first()) else { return Ok(false) };
    let there: Definition = serde_json::from_slice(&cell.value)
        .map_err(|e| Error::new(ErrorKind::Corrupt, format!("definition {}: {e}", definition.name)).with_source(e))?;
    Ok((there.code, there.state) == (definition.code, Lifecycle::Active))
}

/// A name as the dictionary has it. Definitions have always had generations there, attributes only from the second on.
pub(super) fn numbered(kind: char, name: &str, generation: u32) -> String {
    match (kind, generation) {
        ('a', 0 | 1) => format!("a:{name}"),
        _ => format!("{kind}:{name}#{generation}"),
    }
}

/// The latest generation of a name in the dictionary; 0 for none.
pub(super) fn generation(dictionary: &BTreeMap<String, Code>, kind: char, name: &str) -> u32 {
    let plain = format!("{kind}:{name}");
    let from = |known: &String| {
        let rest = known.strip_prefix(&plain)?;
        if rest.is_empty() { Some(1) } else { rest.strip_prefix('#')?.parse().ok() }
    };
    dictionary.keys().filter_map(from).max().unwrap_or(0)
}
