//! Feeding a maintainer from a source, and acknowledging what is durable.

use super::maintainer::{Counts, Maintainer, Mode, Outcome, by_row, last_position};
use super::recheck;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{ChangeEvent, Timestamp};
use crate::schema::Catalog;
use crate::source::Source;
use std::sync::Arc;

/// How a follower works.
#[derive(Debug, Clone, Copy)]
pub struct FollowerOptions {
    /// Workers a batch is divided among, by row.
    pub workers: usize,
    /// How long after its append time an event of the recheck list is applied once more, in milliseconds. Zero where the
    /// source takes an event in together with the base write, as the embedded change log does.
    pub recheck_delay: Timestamp,
}

impl Default for FollowerOptions {
    fn default() -> Self {
        Self { workers: std::thread::available_parallelism().map_or(2, usize::from), recheck_delay: 0 }
    }
}

/// How far a follower is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Events acknowledged in this run, by what became of them.
    pub counts: Counts,
}

/// Applies a source's events to a table's indexes. A position is acknowledged only when everything up to it, the recheck list
/// and the quarantine included, is durable. A failed batch ends the run; the next one starts with it.
pub struct Follower<S> {
    catalog: Catalog,
    maintainer: Arc<Maintainer>,
    source: S,
    options: FollowerOptions,
    counts: Counts,
    watch: recheck::Watch,
}

impl<S: Source> Follower<S> {
    /// A follower of `source`. Needs a tokio runtime to run.
    pub fn new(catalog: Catalog, maintainer: Maintainer, source: S, options: FollowerOptions) -> Self {
        Self {
            catalog,
            maintainer: Arc::new(maintainer),
            source,
            options,
            counts: Counts::default(),
            watch: recheck::Watch::default(),
        }
    }

    /// Applies what the source has, until it has nothing more for now.
    ///
    /// # Errors
    /// Those of the source and the store; what was acknowledged before stays so.
    pub async fn catch_up(&mut self, mut progress: impl FnMut(Progress)) -> Result<Counts> {
        self.recheck().await?;
        let mut batch = self.source.next_batch().await?;
        while let Some(last) = last_position(&batch) {
            let parts = self.start(batch);
            // The next batch is read while this one is applied: one batch ahead, no more.
            let next = self.source.next_batch().await;
            let outcome = finish(parts).await?;
            self.keep(&outcome).await?;
            self.recheck().await?;
            self.source.acknowledge(&last).await?;
            self.counts += outcome.counts;
            if !self.counts.add_up() {
                return Err(Error::new(ErrorKind::Internal, format!("events are unaccounted for: {:?}", self.counts)));
            }
            progress(Progress { counts: self.counts });
            batch = next?;
        }
        self.maintainer.flush().await?;
        self.catalog.store().sync().await?;
        Ok(self.counts)
    }

    /// Applies events as they come, until `stop` ends; what the source has then is still applied.
    ///
    /// # Errors
    /// As [`Self::catch_up`].
    pub async fn follow(
        &mut self,
        stop: impl Future<Output = ()> + Send,
        mut progress: impl FnMut(Progress),
    ) -> Result<Counts> {
        tokio::pin!(stop);
        loop {
            self.catch_up(&mut progress).await?;
            tokio::select! {
                () = &mut stop => return self.catch_up(progress).await,
                ready = self.source.ready() => ready?,
            }
        }
    }

    fn start(&self, batch: Vec<ChangeEvent>) -> tokio::task::JoinSet<Result<Outcome>> {
        let mut parts = tokio::task::JoinSet::new();
        for part in by_row(batch, self.options.workers) {
            let maintainer = Arc::clone(&self.maintainer);
            parts.spawn(async move { maintainer.apply(&part, Mode::Stream).await });
        }
        parts
    }

    async fn keep(&mut self, outcome: &Outcome) -> Result<()> {
        let schema = Arc::clone(self.maintainer.schema());
        outcome.keep_quarantined(&self.catalog, &schema).await?;
        let delay = self.options.recheck_delay;
        recheck::remember(&**self.catalog.store(), &schema.name, &outcome.late, delay, &mut self.watch).await
    }

    /// Applies once more what is due.
    async fn recheck(&mut self) -> Result<()> {
        let store = Arc::clone(self.catalog.store());
        let table = self.maintainer.schema().name.clone();
        while self.watch.armed {
            let now = crate::clock::now();
            let due = recheck::due(&*store, &table, self.watch.from, now).await?;
            if due.is_empty() {
                self.watch.from = now;
                self.watch.armed = recheck::pending(&*store, &table, now).await? > 0;
                return Ok(());
            }
            let events: Vec<ChangeEvent> = due.iter().map(|d| d.event.clone()).collect();
            self.maintainer.apply(&events, Mode::Again).await?;
            recheck::forget(&*store, &due).await?;
        }
        Ok(())
    }
}

/// Waits for all parts of a batch. All are let finish, so that none goes on writing beside a retry.
async fn finish(mut parts: tokio::task::JoinSet<Result<Outcome>>) -> Result<Outcome> {
    let mut whole = Ok(Outcome::default());
    while let Some(part) = parts.join_next().await {
        let part =
            part.unwrap_or_else(|e| Err(Error::new(ErrorKind::Internal, format!("a worker died: {e}")).with_source(e)));
        match (&mut whole, part) {
            (Ok(whole), Ok(part)) => whole.merge(part),
            (Ok(_), Err(e)) => whole = Err(e),
            (Err(_), _) => {}
        }
    }
    whole
}
