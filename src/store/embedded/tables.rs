//! The tables: their descriptors, and the keyspaces that hold them.

use super::log::Log;
use super::{Options, error};
use crate::error::{Error, ErrorKind, Result};
use crate::store::TableDescriptor;
use crate::store::rules::check_descriptor;
use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::config::FilterPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Keyspace of the descriptors: `table name → JSON`.
const DESCRIPTORS: &str = "tables";
/// Keyspace of all change logs.
const LOGS: &str = "logs";
/// What the name of a table's own keyspace starts with.
const PREFIX: &str = "t.";

pub(super) type TableMap = BTreeMap<String, Arc<Table>>;

/// An open table.
pub(super) struct Table {
    pub(super) descriptor: TableDescriptor,
    /// Name and VERSIONS of each family.
    pub(super) families: Vec<(Bytes, u32)>,
    pub(super) keyspace: Keyspace,
    log: Option<Arc<Log>>,
}

impl Table {
    fn open(database: &Database, logs: &Keyspace, descriptor: TableDescriptor, options: Options) -> Result<Self> {
        let keyspace = keyspace(database, &format!("{PREFIX}{}", descriptor.name), options)?;
        let families =
            descriptor.families.iter().map(|f| (Bytes::from(f.name.clone().into_bytes()), f.max_versions)).collect();
        let log =
            descriptor.change_log.then(|| Log::open(logs, &descriptor.name, options).map(Arc::new)).transpose()?;
        Ok(Self { descriptor, families, keyspace, log })
    }

    /// The table's change log.
    pub(super) fn log(&self) -> Result<&Arc<Log>> {
        self.log.as_ref().ok_or_else(|| Error::invalid(format!("table {} has no change log", self.descriptor.name)))
    }

    /// Whether the table has a change log.
    pub(super) fn is_logged(&self) -> bool {
        self.log.is_some()
    }
}

/// A table of a map.
pub(super) fn find<'a>(tables: &'a TableMap, name: &str) -> Result<&'a Arc<Table>> {
    tables.get(name).ok_or_else(|| Error::new(ErrorKind::NotFound, format!("table {name} does not exist")))
}

/// All tables. The map is replaced as a whole, so readers keep the one they started with.
pub(super) struct Tables {
    map: RwLock<Arc<TableMap>>,
    creating: Mutex<()>,
    descriptors: Keyspace,
    logs: Keyspace,
    options: Options,
}

impl Tables {
    pub(super) fn open(database: &Database, options: Options) -> Result<Self> {
        let there = database.list_keyspace_names();
        let is_there = |name: &str| there.iter().any(|n| &**n == name);
        let missing = |name: &str| Error::corrupt(format!("the files of keyspace {name} are gone"));
        if !is_there(DESCRIPTORS) && !there.is_empty() {
            return Err(missing(DESCRIPTORS));
        }
        let descriptors = keyspace(database, DESCRIPTORS, options)?;
        let logs = keyspace(database, LOGS, options)?;
        let mut map = TableMap::new();
        for guard in descriptors.iter() {
            let (name, descriptor) = guard.into_inner().map_err(|e| error::store("reading the tables", e))?;
            let descriptor: TableDescriptor = serde_json::from_slice(&descriptor).map_err(|e| {
                Error::corrupt(format!("expected the descriptor of table \"{}\", found {e}", name.escape_ascii()))
                    .with_source(e)
            })?;
            check_descriptor(&descriptor)
                .map_err(|e| Error::corrupt("a stored descriptor is invalid").with_source(e))?;
            // A table's keyspace is made before its descriptor is written.
            for name in [LOGS, &format!("{PREFIX}{}", descriptor.name)] {
                if !is_there(name) {
                    return Err(missing(name));
                }
            }
            let table = Table::open(database, &logs, descriptor, options)?;
            map.insert(table.descriptor.name.clone(), Arc::new(table));
        }
        Ok(Self { map: RwLock::new(Arc::new(map)), creating: Mutex::new(()), descriptors, logs, options })
    }

    /// The tables as they are now.
    pub(super) fn current(&self) -> Arc<TableMap> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// One table.
    pub(super) fn get(&self, name: &str) -> Result<Arc<Table>> {
        find(&self.map.read().unwrap_or_else(PoisonError::into_inner), name).cloned()
    }

    /// The keyspace of the change logs.
    pub(super) fn log_keyspace(&self) -> &Keyspace {
        &self.logs
    }

    /// Tells the readers of all change logs that no more records will come.
    pub(super) fn fail_logs(&self) {
        self.current().values().filter_map(|t| t.log.as_ref()).for_each(|log| log.fail());
    }

    /// Creates a table. Its keyspace comes before its descriptor: a keyspace without one is nothing.
    pub(super) fn create(&self, database: &Database, descriptor: &TableDescriptor) -> Result<()> {
        check_descriptor(descriptor)?;
        let _one_at_a_time = self.creating.lock().unwrap_or_else(PoisonError::into_inner);
        let name = &descriptor.name;
        if self.current().contains_key(name) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("table {name} exists already")));
        }
        let table = Table::open(database, &self.logs, descriptor.clone(), self.options)?;
        let stored = serde_json::to_vec(descriptor)
            .map_err(|e| Error::new(ErrorKind::Internal, "a descriptor does not serialize").with_source(e))?;
        let mut batch = database.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.descriptors, name.as_bytes(), stored);
        batch.commit().map_err(|e| error::store("creating a table", e))?;
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut map).insert(name.clone(), Arc::new(table));
        Ok(())
    }
}

fn keyspace(database: &Database, name: &str, options: Options) -> Result<Keyspace> {
    // Filters answer lookups of whole keys, and all our reads are ranges. A range looks into every run of files, so the
    // newest level is merged at three rather than four: measured, reads gain what merging costs.
    let create = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(options.memtable_bytes)
            .filter_policy(FilterPolicy::disabled())
            .compaction_strategy(Arc::new(Leveled::default().with_l0_threshold(3)))
    };
    database.keyspace(name, create).map_err(|e| error::store("opening a table", e))
}
