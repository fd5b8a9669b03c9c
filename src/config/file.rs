//! Reading `sideindex.toml`: every error has a place.

use super::{Given, Loaded, Origin, SETTINGS, Slot, table};
use crate::error::{Error, Result};
use crate::schema::nearest;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Takes over what a file says.
pub(super) fn read(path: &Path, text: &str, loaded: &mut Loaded) -> Result<()> {
    let document = Document { path, text };
    let root = DeTable::parse(text).map_err(|e| {
        let message = e.message().lines().next().unwrap_or("malformed").to_owned();
        let at = document.place(e.span().map_or(0, |span| span.start));
        Error::invalid(message).with_source(e).within(at)
    })?;
    let mut sections: Vec<&str> = SETTINGS.iter().map(super::Setting::section).collect();
    sections.dedup();
    sections.push("table");
    let root = Fields::new(&document, String::new(), root.get_ref(), 0, &sections)?;
    for section in sections {
        if section == "table" {
            loaded.config.tables = table::read(&root)?;
            continue;
        }
        let known: Vec<&str> = SETTINGS.iter().filter(|s| s.section() == section).map(super::Setting::name).collect();
        let Some(fields) = root.section(section, &known)? else { continue };
        for setting in SETTINGS.iter().filter(|s| s.section() == section) {
            if let Some(start) = fields.fill(setting.name(), setting.slot(&mut loaded.config))? {
                loaded.origins.insert(setting.key, Origin::File(path.to_owned(), document.line(start).0));
            }
        }
    }
    Ok(())
}

/// A file, for its places.
pub(super) struct Document<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Document<'_> {
    /// `file:line:column` of an offset.
    pub(super) fn place(&self, offset: usize) -> String {
        let (line, column) = self.line(offset);
        format!("{}:{line}:{column}", self.path.display())
    }

    /// Line and column, both from 1; columns count characters.
    fn line(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
    }
}

/// The keys of one table of the file.
pub(super) struct Fields<'a> {
    document: &'a Document<'a>,
    /// What stands before its keys in messages.
    name: String,
    table: &'a DeTable<'a>,
    /// Where it starts.
    start: usize,
}

impl<'a> Fields<'a> {
    /// The keys of a table, all of them among the known ones.
    fn new(
        document: &'a Document<'a>,
        name: String,
        table: &'a DeTable<'a>,
        start: usize,
        known: &[&str],
    ) -> Result<Self> {
        let fields = Self { document, name, table, start };
        let unknown = table.keys().find(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown else { return Ok(fields) };
        let name = key.get_ref();
        let what = if fields.name.is_empty() { "section" } else { "key" };
        let hint = nearest(name, known.iter().copied());
        Err(Error::invalid(format!("unknown {what} {:?}{hint}; known are {}", fields.path(name), known.join(", ")))
            .within(document.place(key.span().start)))
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// An error at a key's value, or at the table when it has no such key.
    pub(super) fn error(&self, key: &str, error: Error) -> Error {
        let start = self.table.get(key).map_or(self.start, |value| value.span().start);
        error.within(self.path(key)).within(self.document.place(start))
    }

    /// A table under a key.
    fn section(&self, key: &str, known: &[&str]) -> Result<Option<Fields<'a>>> {
        self.table.get(key).map(|value| self.inner(key, value, known)).transpose()
    }

    fn inner(&self, key: &str, value: &'a Spanned<DeValue<'a>>, known: &[&str]) -> Result<Fields<'a>> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.error(key, Error::invalid(format!("expected a table, as under [{}]", self.path(key)))));
        };
        Self::new(self.document, self.path(key), table, value.span().start, known)
    }

    /// The tables of an array of tables under a key.
    pub(super) fn each(&self, key: &str, known: &[&str]) -> Result<Vec<Fields<'a>>> {
        match self.table.get(key).map(Spanned::get_ref) {
            None => Ok(Vec::new()),
            Some(DeValue::Array(list)) => list.iter().map(|value| self.inner(key, value, known)).collect(),
            Some(_) => {
                let path = self.path(key);
                Err(self.error(key, Error::invalid(format!("expected tables, each under [[{path}]]"))))
            }
        }
    }

    /// Fills a slot if the key is there; where its value starts.
    pub(super) fn fill(&self, key: &str, slot: &mut dyn Slot) -> Result<Option<usize>> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let folder = self.document.path.parent().unwrap_or(Path::new(""));
        slot.set(&Given::Toml(value.get_ref(), folder)).map_err(|e| self.error(key, e))?;
        Ok(Some(value.span().start))
    }

    /// Fills a slot; the key must be there.
    pub(super) fn require(&self, key: &str, slot: &mut dyn Slot) -> Result<()> {
        match self.fill(key, slot)? {
            Some(_) => Ok(()),
            None => Err(self.error(key, Error::invalid(format!("missing: expected {}", slot.expected())))),
        }
    }
}
