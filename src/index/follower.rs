//! Feeding a maintainer from a source, and acknowledging what is durable.

use super::maintainer::{Counts, Maintainer, Mode, Outcome, by_row, last_position};
use super::purge::{self, Purged};
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
/// and the quarantine included, is durable. A failed batch ends the follower, which may have read on: open another one, on a
/// source opened anew, and it starts with that batch.
///
/// Definitions that are added while it runs are kept from the next batch on.
pub struct Follower<S> {
    catalog: Catalog,
    maintainer: Arc<Maintainer>,
    source: S,
    options: FollowerOptions,
    counts: Counts,
    watch: recheck::Watch,
    /// Set while events are under way: what failed, or was dropped half way, must not be gone on from.
    busy: bool,
}

impl<S: Source> Follower<S> {
    /// A follower of `source`. Needs a tokio runtime to run.
    pub fn new(catalog: Catalog, maintainer: Maintainer, source: S, options: FollowerOptions) -> Self {
        let maintainer = Arc::new(maintainer);
        let (counts, watch) = (Counts::default(), recheck::Watch::default());
        Self { catalog, maintainer, source, options, counts, watch, busy: false }
    }

    /// Applies what the source has, until it has nothing more for now.
    ///
    /// # Errors
    /// Those of the source and the store; what was acknowledged before stays so.
    pub async fn catch_up(&mut self, mut progress: impl FnMut(Progress)) -> Result<Counts> {
        if self.busy {
            return Err(Error::new(
                ErrorKind::Internal,
                "this follower has failed or was given up half way; open another one, on a source opened anew",
            ));
        }
        self.busy = true;
        {
            let _at_work = self.catalog.at_work().await;
            self.refresh().await?;
            self.recheck().await?;
        }
        let mut batch = self.source.next_batch().await?;
        while let Some(last) = last_position(&batch) {
            let at_work = self.catalog.at_work().await;
            // After the batch was read: a definition that is not there yet is built from a snapshot that has these events.
            self.refresh().await?;
            let parts = self.start(batch);
            // The next batch is read while this one is applied: one batch ahead, no more.
            let next = self.source.next_batch().await;
            let outcome = finish(parts).await?;
            self.keep(&outcome).await?;
            self.recheck().await?;
            self.catalog.store().sync().await?;
            self.source.acknowledge(&last).await?;
            self.counts += outcome.counts;
            if !self.counts.add_up() {
                return Err(Error::new(ErrorKind::Internal, format!("events are unaccounted for: {:?}", self.counts)));
            }
            drop(at_work);
            progress(Progress { counts: self.counts });
            batch = next?;
        }
        self.maintainer.flush().await?;
        self.catalog.store().sync().await?;
        self.busy = false;
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
            let due = self.watch.from.map(|due| due.saturating_sub(crate::clock::now()).max(1));
            tokio::select! {
                () = &mut stop => return self.catch_up(progress).await,
                ready = self.source.ready() => ready?,
                () = pause(due) => {}
            }
        }
    }

    /// Purges what rows that were last written at or before `horizon` (in milliseconds since 1970) have left behind:
    /// tombstones, superseded candidates, entries that linger. What the source may still bring again is settled by the base
    /// row, at a cost: keep the horizon behind its retention. The source is applied to its end first. This must be the only
    /// follower of the table.
    ///
    /// # Errors
    /// As [`Self::catch_up`]; [`ErrorKind::InvalidInput`] for a horizon in the future.
    pub async fn purge(&mut self, horizon: Timestamp) -> Result<Purged> {
        let now = crate::clock::now();
        if horizon > now {
            return Err(Error::invalid(format!(
                "expected a horizon in the past, found {horizon}, {} ms from now",
                horizon - now
            )));
        }
        self.catch_up(|_| {}).await?;
        self.busy = true;
        let _at_work = self.catalog.at_work().await;
        purge::raise_floors(&self.catalog, &self.maintainer.schema().name, horizon).await?;
        self.refresh().await?;
        let purged = purge::rows(&self.maintainer, self.catalog.store(), horizon).await?;
        self.catalog.store().sync().await?;
        self.busy = false;
        Ok(purged)
    }

    /// Takes over definitions that were added or changed.
    async fn refresh(&mut self) -> Result<()> {
        let schema = self.catalog.table(&self.maintainer.schema().name).await?;
        if schema.definitions() != self.maintainer.schema().definitions() {
            self.maintainer.flush().await?;
            self.maintainer = Arc::new(Maintainer::new(Arc::clone(self.catalog.store()), Arc::new(schema)));
        }
        Ok(())
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
        let schema = Arc::clone(self.maintainer.schema());
        while let Some(from) = self.watch.from {
            let now = crate::clock::now();
            if from > now {
                return Ok(());
            }
            let due = recheck::due(&*store, &schema.name, from, now).await?;
            if due.is_empty() {
                self.watch.from = recheck::next_due(&*store, &schema.name, now.saturating_add(1)).await?;
                return Ok(());
            }
            let events: Vec<ChangeEvent> = due.iter().map(|d| d.event.clone()).collect();
            let outcome = self.maintainer.apply(&events, Mode::Again).await?;
            outcome.keep_quarantined(&self.catalog, &schema).await?;
            recheck::forget(&*store, &due).await?;
        }
        Ok(())
    }
}

/// Ends after so many milliseconds, or never.
async fn pause(milliseconds: Option<Timestamp>) {
    match milliseconds.and_then(|ms| u64::try_from(ms).ok()) {
        Some(ms) => tokio::time::sleep(std::time::Duration::from_millis(ms)).await,
        None => std::future::pending().await,
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
