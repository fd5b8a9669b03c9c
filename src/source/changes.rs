//! Where the changes of a store's tables are until they are in the indexes.

use super::{ChangeLogSource, Intents, Source, applied};
use crate::clock;
use crate::error::{Error, ErrorKind, Result};
use crate::store::embedded::EmbeddedStore;

/// Where changes wait. Clones are handles to the same.
#[derive(Clone)]
pub enum Changes {
    /// In the change logs of the embedded store.
    Log(EmbeddedStore),
    /// In intents, on a store without change logs.
    Intents(Intents),
}

/// How far the indexes of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// How many changes are applied, where they are numbered.
    pub applied: Option<u64>,
    /// How many changes are not: mutations of a change log, or intents, which hold several.
    pub waiting: u64,
}

impl Lag {
    /// How far an answer is that was given between two moments, the first of which is this one.
    #[must_use]
    pub fn until(self, later: Self) -> Self {
        let waiting = match (self.applied, later.applied) {
            (Some(applied), Some(later_applied)) => later_applied.saturating_sub(applied) + later.waiting,
            _ => self.waiting.max(later.waiting),
        };
        Self { waiting, ..self }
    }
}

impl Changes {
    /// How far the indexes of a table are.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an unknown table; those of the store.
    pub async fn lag(&self, table: &str) -> Result<Lag> {
        match self {
            Self::Log(store) => {
                // In this order: what is applied was written before.
                let applied = applied(store, table).await?;
                Ok(Lag { applied: Some(applied), waiting: store.log_head(table)?.saturating_sub(applied) })
            }
            Self::Intents(intents) => Ok(Lag { applied: None, waiting: intents.waiting(table).await?.0 }),
        }
    }

    /// A mark that every change so far is at or below.
    pub(super) fn head(&self, table: &str) -> Result<u64> {
        match self {
            Self::Log(store) => store.log_head(table),
            Self::Intents(_) => Ok(u64::try_from(clock::now()).unwrap_or(0)),
        }
    }

    /// The mark up to which all changes are applied.
    pub(super) async fn applied(&self, table: &str) -> Result<u64> {
        match self {
            Self::Log(store) => applied(store, table).await,
            Self::Intents(intents) => {
                let now = self.head(table)?;
                let first = intents.waiting(table).await?.1;
                Ok(first.map_or(now, |time| u64::try_from(time - 1).unwrap_or(0)))
            }
        }
    }

    /// What is to be applied of a table.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn source(&self, table: &str) -> Result<Box<dyn Source>> {
        Ok(match self {
            Self::Log(store) => Box::new(ChangeLogSource::open(store.clone(), table).await?),
            Self::Intents(intents) => Box::new(intents.source(table).await?),
        })
    }

    /// The embedded store.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] on another one, with what cannot be done there.
    pub fn embedded(&self, what: &str) -> Result<&EmbeddedStore> {
        match self {
            Self::Log(store) => Ok(store),
            Self::Intents(_) => {
                Err(Error::new(ErrorKind::Unsupported, format!("{what} works on the embedded store only")))
            }
        }
    }
}

impl From<&EmbeddedStore> for Changes {
    fn from(store: &EmbeddedStore) -> Self {
        Self::Log(store.clone())
    }
}

impl From<&Changes> for Changes {
    fn from(changes: &Changes) -> Self {
        changes.clone()
    }
}
