//! What most commands start with: an open embedded store and its catalog.

use super::args::Global;
use crate::error::{Error, ErrorKind, Result};
use crate::index::{Counts, Follower, FollowerOptions, Maintainer, Progress};
use crate::schema::{AttributeSpec, Catalog, TableSchema, check_attributes};
use crate::source::ChangeLogSource;
use crate::store::embedded::EmbeddedStore;
use crate::store::{Layered, Stop, Store};
use std::path::Path;
use std::sync::Arc;

pub struct Session {
    pub store: EmbeddedStore,
    /// Over the store, and told by Ctrl-C to stop.
    pub catalog: Catalog,
    pub stop: Stop,
}

impl Session {
    /// Opens the store that `--data` names; it must be there.
    pub async fn open(global: &Global) -> Result<Self> {
        let path = global.data()?;
        if !EmbeddedStore::is_at(path) {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("no store at {}; `sideindex --data {0} table create` makes one", path.display()),
            ));
        }
        Self::create(global, path).await
    }

    /// Opens the store that `--data` names, creating it when it is not there.
    pub async fn open_or_create(global: &Global) -> Result<Self> {
        Self::create(global, global.data()?).await
    }

    /// Opens the store in a directory, creating it when it is not there.
    pub async fn create(global: &Global, path: &Path) -> Result<Self> {
        let store = EmbeddedStore::open(path, global.options())?;
        let stop = global.stop.clone();
        let stoppable = Layered::new(Arc::new(store.clone()), stop.clone());
        let catalog = Catalog::open(Arc::new(stoppable) as Arc<dyn Store>).await?;
        Ok(Self { store, catalog, stop })
    }

    /// A follower of a table's change log.
    pub async fn follower(&self, table: &str) -> Result<Follower<ChangeLogSource>> {
        let schema = Arc::new(self.catalog.table(table).await?);
        let maintainer = Maintainer::new(Arc::clone(self.catalog.store()), schema);
        let source = ChangeLogSource::open(self.store.clone(), table).await?;
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
