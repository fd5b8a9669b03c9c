//! Where change events come from.

mod changelog;
mod changes;
pub mod file;
mod freshness;
mod intents;

pub use changelog::{ChangeLogSource, applied};
pub use changes::{Changes, Lag};
pub use freshness::Freshness;
pub use intents::{INTENT_TABLE, IntentSource, Intents};

use crate::error::Result;
use crate::model::{ChangeEvent, Position};
use async_trait::async_trait;

/// A stream of change events with positions.
///
/// Events of one batch are in source order. After a restart events that were not acknowledged come again; others may, too.
#[async_trait]
pub trait Source: Send {
    /// The next events, a bounded number of them; none when the source has no more for now.
    async fn next_batch(&mut self) -> Result<Vec<ChangeEvent>>;

    /// Returns when there may be more events.
    async fn ready(&mut self) -> Result<()>;

    /// Everything up to `position` is durable: it need not come again. On return this is durable itself.
    async fn acknowledge(&mut self, position: &Position) -> Result<()>;
}

#[async_trait]
impl Source for Box<dyn Source> {
    async fn next_batch(&mut self) -> Result<Vec<ChangeEvent>> {
        (**self).next_batch().await
    }

    async fn ready(&mut self) -> Result<()> {
        (**self).ready().await
    }

    async fn acknowledge(&mut self, position: &Position) -> Result<()> {
        (**self).acknowledge(position).await
    }
}
