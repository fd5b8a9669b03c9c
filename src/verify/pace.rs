//! Not reading faster than is asked for.

use std::time::{Duration, Instant};

/// A limit of what is done per second.
pub(super) struct Pace {
    per_second: Option<u32>,
    started: Instant,
}

impl Pace {
    pub(super) fn new(per_second: Option<u32>) -> Self {
        Self { per_second: per_second.filter(|n| *n > 0), started: Instant::now() }
    }

    /// How many may be done in one go: a tenth of a second's share, `most` at the most.
    pub(super) fn page(&self, most: usize) -> usize {
        self.per_second.map_or(most, |n| usize::try_from(n / 10).unwrap_or(most).clamp(1, most))
    }

    /// Waits until `done` things may have been done.
    pub(super) async fn wait(&self, done: u64) {
        let Some(per_second) = self.per_second else { return };
        let due = Duration::from_secs_f64(done as f64 / f64::from(per_second));
        if let Some(ahead) = due.checked_sub(self.started.elapsed()) {
            tokio::time::sleep(ahead).await;
        }
    }
}
