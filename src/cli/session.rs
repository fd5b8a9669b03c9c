//! What most commands start with: an open store and its catalog.

use super::args::Global;
use crate::config::StoreKind;
use crate::error::{Error, ErrorKind, Result};
use crate::index::{Counts, Follower, FollowerOptions, Maintainer, Progress};
use crate::schema::{AttributeSpec, Catalog, TableSchema, check_attributes};
use crate::source::{Changes, Intents, Source};
use crate::store::embedded::EmbeddedStore;
use crate::store::thrift1::Thrift1Store;
use crate::store::thrift2::Thrift2Store;
use crate::store::{Layered, Meter, Retry, Stop, Store};
use crate::write::Writer;
use std::path::Path;
use std::sync::Arc;

pub struct Session {
    /// The store, told by Ctrl-C to stop.
    pub store: Arc<dyn Store>,
    pub catalog: Catalog,
    /// Where changes wait until they are in the indexes.
    pub changes: Changes,
    pub stop: Stop,
}

impl Session {
    /// Opens the store that the settings name; a directory must be there.
    pub async fn open(global: &Global) -> Result<Self> {
        if global.loaded.config.store.kind != StoreKind::Embedded {
            return Self::gateways(global).await;
        }
        let path = global.data()?;
        if !EmbeddedStore::is_at(path) {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("no store at {}; `sideindex --data {0} table create` makes one", path.display()),
            ));
        }
        Self::create(global, path).await
    }

    /// Opens the store that the settings name, creating a directory when it is not there.
    pub async fn open_or_create(global: &Global) -> Result<Self> {
        if global.loaded.config.store.kind != StoreKind::Embedded {
            return Self::gateways(global).await;
        }
        Self::create(global, global.data()?).await
    }

    /// Opens the embedded store in a directory, creating it when it is not there.
    pub async fn create(global: &Global, path: &Path) -> Result<Self> {
        let embedded = EmbeddedStore::open(path, global.options())?;
        let stop = global.stop.clone();
        let store: Arc<dyn Store> = Arc::new(Layered::new(Arc::new(embedded.clone()), stop.clone()));
        let catalog = Catalog::open(Arc::clone(&store)).await?;
        Ok(Self { store, catalog, changes: Changes::Log(embedded), stop })
    }

    /// Opens HBase through its gateways.
    async fn gateways(global: &Global) -> Result<Self> {
        if global.loaded.config.store.data.is_some() {
            return Err(Error::invalid(
                "expected either the directory of an embedded store or the gateways of a cluster, found both: leave out \
                 --data (data under [store]), or set kind under [store] to \"embedded\"",
            ));
        }
        let settings = &global.loaded.config.hbase;
        let gateways = settings.gateways()?;
        let (store, name): (Arc<dyn Store>, _) = match global.loaded.config.store.kind {
            StoreKind::Thrift1 => (Arc::new(Thrift1Store::connect(gateways).await?), "thrift1"),
            _ => (Arc::new(Thrift2Store::connect(gateways).await?), "thrift2"),
        };
        let metered = Layered::new(store, Meter::new(name));
        let patient = Layered::new(Arc::new(metered), Retry { deadline: settings.deadline.0, ..Retry::default() });
        let stop = global.stop.clone();
        let store: Arc<dyn Store> = Arc::new(Layered::new(Arc::new(patient), stop.clone()));
        let catalog = Catalog::open(Arc::clone(&store)).await?;
        let changes = Changes::Intents(Intents::open(Arc::clone(&store)).await?);
        Ok(Self { store, catalog, changes, stop })
    }

    /// The embedded store, for what works on no other.
    pub fn embedded(&self, what: &str) -> Result<&EmbeddedStore> {
        self.changes.embedded(what)
    }

    /// A writer of a table, whose indexes follow.
    pub async fn writer(&self, table: &str) -> Result<Writer> {
        let writer = Writer::open(&self.catalog, table).await?;
        Ok(match &self.changes {
            Changes::Log(_) => writer,
            Changes::Intents(intents) => writer.with_intents(intents.clone()),
        })
    }

    /// A follower of a table's changes.
    pub async fn follower(&self, table: &str) -> Result<Follower<Box<dyn Source>>> {
        let schema = Arc::new(self.catalog.table(table).await?);
        let maintainer = Maintainer::new(Arc::clone(self.catalog.store()), schema);
        let source = self.changes.source(table).await?;
        Ok(Follower::new(self.catalog.clone(), maintainer, source, FollowerOptions::default()))
    }

    /// Brings a table's indexes up to date.
    pub async fn apply(&self, table: &str, progress: impl FnMut(Progress)) -> Result<Counts> {
        self.follower(table).await?.catch_up(progress).await
    }

    /// Declares attributes given as text.
    pub async fn declare(&self, table: &str, attributes: &[String]) -> Result<TableSchema> {
        self.catalog.declare(table, &parse_attributes(attributes)?).await
    }

    /// Brings a table's indexes up to date after a command wrote something, and says so when it could not be indexed.
    pub async fn apply_after_write(&self, table: &str) -> Result<()> {
        let counts = self.apply(table, |_| {}).await?;
        if counts.quarantined > 0 {
            eprintln!(
                "warning: {} could not be indexed in full and went to quarantine; `index status` shows what is degraded",
                super::output::plural(counts.quarantined, "change", "changes")
            );
        }
        Ok(())
    }
}

/// Attributes given as `name:type[:encoding[:family:qualifier]]`, checked.
pub fn parse_attributes(attributes: &[String]) -> Result<Vec<AttributeSpec>> {
    let parsed = attributes.iter().map(|a| a.parse()).collect::<Result<Vec<_>>>()?;
    check_attributes(&parsed)?;
    Ok(parsed)
}
