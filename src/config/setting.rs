//! The settings: one line each.

use super::{Config, Slot};

/// A key outside of tables.
pub struct Setting {
    /// `section.key`, as in the file.
    pub key: &'static str,
    place: fn(&mut Config) -> &mut dyn Slot,
}

/// All of them, in the order in which they are shown.
pub const SETTINGS: &[Setting] = &[
    Setting { key: "store.kind", place: |c| &mut c.store.kind },
    Setting { key: "store.data", place: |c| &mut c.store.data },
    Setting { key: "store.durability", place: |c| &mut c.store.durability },
    Setting { key: "store.cache_bytes", place: |c| &mut c.store.cache_bytes },
    Setting { key: "store.memtable_bytes", place: |c| &mut c.store.memtable_bytes },
    Setting { key: "store.log_bytes", place: |c| &mut c.store.log_bytes },
    Setting { key: "hbase.gateways", place: |c| &mut c.hbase.gateways },
    Setting { key: "hbase.transport", place: |c| &mut c.hbase.transport },
    Setting { key: "hbase.connections", place: |c| &mut c.hbase.connections },
    Setting { key: "hbase.connect_timeout", place: |c| &mut c.hbase.connect_timeout },
    Setting { key: "hbase.answer_timeout", place: |c| &mut c.hbase.answer_timeout },
    Setting { key: "hbase.deadline", place: |c| &mut c.hbase.deadline },
    Setting { key: "output.format", place: |c| &mut c.output.format },
    Setting { key: "query.consistency", place: |c| &mut c.query.consistency },
    Setting { key: "query.allow_scan", place: |c| &mut c.query.allow_scan },
    Setting { key: "query.memory_limit", place: |c| &mut c.query.memory_limit },
    Setting { key: "query.time_limit", place: |c| &mut c.query.time_limit },
];

impl Setting {
    /// The section it is in.
    pub fn section(&self) -> &'static str {
        self.key.split_once('.').map_or("", |(section, _)| section)
    }

    /// Its key in the section.
    pub fn name(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, name)| name)
    }

    /// The environment variable that sets it: `store.data` is `SIDEINDEX_STORE_DATA`.
    pub fn variable(&self) -> String {
        format!("SIDEINDEX_{}", self.key.replace('.', "_").to_uppercase())
    }

    /// Its place in a configuration.
    pub fn slot<'a>(&self, config: &'a mut Config) -> &'a mut dyn Slot {
        (self.place)(config)
    }
}
