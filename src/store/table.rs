//! Table descriptors.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// What a family holds: HBase is told how to store it (DESIGN.md §4), other stores take no notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Whatever comes: HBase's defaults.
    #[default]
    Base,
    /// Index entries, which are scanned: long keys much alike.
    Entries,
    /// State rows, which are read by key.
    States,
}

/// A column family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilyDescriptor {
    /// Its name.
    pub name: String,
    /// VERSIONS: at most so many versions of a column can be read.
    pub max_versions: u32,
    /// What it holds; asked for when a table is created, and not told afterwards.
    #[serde(skip)]
    pub layout: Layout,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDescriptor {
    /// Its name.
    pub name: String,
    /// Its families.
    pub families: Vec<FamilyDescriptor>,
    /// Whether the store's own change log takes in its mutations (embedded store only).
    pub change_log: bool,
    /// Where its regions begin, the first one's start left out; asked for when a table is created, and not told afterwards.
    #[serde(skip)]
    pub splits: Vec<Bytes>,
}

impl TableDescriptor {
    /// A table of `families` that keep `max_versions` each, without a change log.
    pub fn new(name: impl Into<String>, families: &[&str], max_versions: u32) -> Self {
        let family = |name: &&str| FamilyDescriptor { name: (*name).to_owned(), max_versions, layout: Layout::Base };
        let families = families.iter().map(family).collect();
        Self { name: name.into(), families, change_log: false, splits: Vec::new() }
    }

    /// The same table, its families for something in particular.
    #[must_use]
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.families.iter_mut().for_each(|f| f.layout = layout);
        self
    }

    /// The same table, divided into regions from the start.
    #[must_use]
    pub fn with_splits(mut self, splits: Vec<Bytes>) -> Self {
        self.splits = splits;
        self
    }

    /// In what a table that is there differs from this one, if it does so in what both tell.
    pub fn difference(&self, there: &Self) -> Option<String> {
        let shown = |table: &Self| {
            let families: Vec<String> =
                table.families.iter().map(|f| format!("{} (versions: {})", f.name, f.max_versions)).collect();
            format!("{}{}", families.join(", "), if table.change_log { ", with a change log" } else { "" })
        };
        let (asked, found) = (shown(self), shown(there));
        (asked != found).then(|| format!("expected the families {asked}, found {found}"))
    }

    /// The same table with a change log.
    #[must_use]
    pub fn with_change_log(mut self) -> Self {
        self.change_log = true;
        self
    }
}
