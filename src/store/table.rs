//! Table descriptors.

use serde::{Deserialize, Serialize};

/// A column family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilyDescriptor {
    /// Its name.
    pub name: String,
    /// VERSIONS: at most so many versions of a column can be read.
    pub max_versions: u32,
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
}

impl TableDescriptor {
    /// A table of `families` that keep `max_versions` each, without a change log.
    pub fn new(name: impl Into<String>, families: &[&str], max_versions: u32) -> Self {
        let families = families.iter().map(|f| FamilyDescriptor { name: (*f).to_owned(), max_versions }).collect();
        Self { name: name.into(), families, change_log: false }
    }

    /// The same table with a change log.
    #[must_use]
    pub fn with_change_log(mut self) -> Self {
        self.change_log = true;
        self
    }
}
