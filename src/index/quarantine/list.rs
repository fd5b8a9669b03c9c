//! Looking at what is in quarantine.

use super::Stored;
use crate::error::{Error, Result};
use crate::model::{ChangeEvent, Position, Row, Timestamp, wire};
use crate::schema::{QUARANTINE_FAMILY, QUARANTINE_TABLE, TableSchema};
use crate::store::{Read, Scan};
use bytes::Bytes;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// Which records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Which {
    /// Those with these numbers; all when there is none.
    pub ids: Vec<String>,
    /// Those of values of this attribute.
    pub attribute: Option<String>,
    /// Those that concern this definition: rows it refused, and values of attributes it is made of.
    pub index: Option<String>,
}

/// One record.
#[derive(Debug, Clone)]
pub struct Record {
    /// A short name for it: 16 hexadecimal digits of the hash of its key.
    pub id: String,
    /// Its key in `sx_quarantine`.
    pub key: Bytes,
    /// When it was written, by the wall clock.
    pub written: Timestamp,
    /// The attribute whose value does not fit.
    pub attribute: Option<String>,
    /// The definition that refused the row.
    pub definition: Option<String>,
    /// Why; or why the record itself can't be read.
    pub reason: String,
    /// What happened; none when that can't be read.
    pub event: Option<ChangeEvent>,
}

impl Record {
    /// Reads a row of the quarantine. One that can't be read is a record all the same, of whatever its key tells.
    fn read(row: Row) -> Self {
        let written = row.newest_timestamp().unwrap_or_default();
        let id = format!("{:016x}", xxh3_64(&row.key));
        match Self::parts(&row) {
            Ok((stored, event)) => Self {
                id,
                key: row.key,
                written,
                attribute: stored.attribute,
                definition: stored.definition,
                reason: stored.reason,
                event: Some(event),
            },
            Err(e) => {
                // Whether it names an attribute or a definition, it concerns whatever has that name.
                let name = row.key.split(|b| *b == b'/').nth(1).map(|name| String::from_utf8_lossy(name).into_owned());
                let reason = format!("this record can't be read: {e}");
                Self { id, key: row.key, written, attribute: name.clone(), definition: name, reason, event: None }
            }
        }
    }

    fn parts(row: &Row) -> Result<(Stored, ChangeEvent)> {
        let cell = |qualifier: &'static str| {
            row.newest(QUARANTINE_FAMILY.as_bytes(), qualifier.as_bytes())
                .ok_or_else(|| Error::corrupt(format!("expected a column {qualifier}, found none")))
        };
        let stored: Stored = serde_json::from_slice(&cell("record")?.value)
            .map_err(|e| Error::corrupt(format!("expected a record, found {e}")).with_source(e))?;
        let event = wire::decode(cell("event")?.value.clone(), stored.position.clone())?;
        Ok((stored, event))
    }

    /// Where the source had it.
    pub fn position(&self) -> Option<&Position> {
        self.event.as_ref().map(|e| &e.position)
    }

    fn is_of(&self, schema: &TableSchema, which: &Which) -> bool {
        let of_attribute = |name: &String| self.attribute.as_ref() == Some(name);
        let of_index = |name: &String| {
            super::concerned(schema, self.attribute.as_deref(), self.definition.as_deref()).any(|d| d.name == *name)
                || self.definition.as_ref() == Some(name)
        };
        (which.ids.is_empty() || which.ids.contains(&self.id))
            && which.attribute.as_ref().is_none_or(of_attribute)
            && which.index.as_ref().is_none_or(of_index)
    }
}

/// A page of records.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The records, by attribute or definition, then by position.
    pub records: Vec<Record>,
    /// Where the next page begins; none at the end.
    pub next: Option<Bytes>,
}

/// Records of a table, at most `limit` of them, from the place where a page before ended. Records that can't be read are
/// listed too.
///
/// # Errors
/// Those of the store.
pub async fn list(
    store: &dyn Read,
    schema: &TableSchema,
    which: &Which,
    from: Option<&Bytes>,
    limit: usize,
) -> Result<Page> {
    let prefix = format!("{}/", schema.name);
    let whole = Scan::prefix(prefix.as_bytes());
    let start = from.filter(|from| from.starts_with(prefix.as_bytes())).cloned().or(whole.start.clone());
    let mut scanner = store.scan(QUARANTINE_TABLE, Scan { start, ..whole }).await?;
    let mut found = Page::default();
    loop {
        let page = scanner.next_page().await?;
        for row in page.rows {
            let record = Record::read(row);
            if !record.is_of(schema, which) {
                continue;
            }
            if found.records.len() == limit {
                found.next = Some(record.key);
                return Ok(found);
            }
            found.records.push(record);
        }
        if page.done {
            return Ok(found);
        }
    }
}

/// How many records concern each definition, by its name; those of which none does are left out. A record is told by its key.
///
/// # Errors
/// Those of the store.
pub async fn counts(store: &dyn Read, schema: &TableSchema) -> Result<BTreeMap<String, u64>> {
    let prefix = format!("{}/", schema.name);
    let mut scanner = store.scan(QUARANTINE_TABLE, Scan::prefix(prefix.as_bytes())).await?;
    let mut counts = BTreeMap::new();
    loop {
        let page = scanner.next_page().await?;
        for row in page.rows {
            let name = row.key.split(|b| *b == b'/').nth(1).and_then(|name| std::str::from_utf8(name).ok());
            for definition in super::concerned(schema, name, name) {
                *counts.entry(definition.name.clone()).or_default() += 1;
            }
        }
        if page.done {
            return Ok(counts);
        }
    }
}
