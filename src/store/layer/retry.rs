//! A layer that tries again what may succeed later.

use super::{Call, Layer, Operation};
use crate::error::{Action, Error, ErrorKind, Result};
use backon::{BackoffBuilder, ExponentialBuilder};
use std::time::Duration;
use tokio::time::Instant;

/// Tries a call again, after pauses that grow and vary, until a deadline: what an error says can be done about it
/// ([`Action::Retry`], [`Action::BackOff`], [`Action::Relocate`]) is done here.
///
/// What must not happen twice is only tried again when the store was not reached at all. Retries are counted in
/// `sideindex_store_retries_total` (labels `operation` and `action`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How long a call may take, all tries together. One page of a scan is one call.
    pub deadline: Duration,
    /// The first pause.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for Retry {
    /// 60 seconds, pauses from 50 milliseconds to 2 seconds.
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(60),
            first_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(2),
        }
    }
}

impl Retry {
    fn pauses(&self) -> impl Iterator<Item = Duration> {
        ExponentialBuilder::default()
            .with_min_delay(self.first_pause)
            .with_max_delay(self.longest_pause)
            .without_max_times()
            .with_jitter()
            .build()
    }
}

/// How an action is called in metrics, if it is one to do here.
fn repeated(operation: Operation, error: &Error) -> Option<&'static str> {
    if !operation.is_idempotent() && error.kind() != ErrorKind::Unreachable {
        return None;
    }
    match error.action() {
        Action::Retry => Some("retry"),
        Action::BackOff => Some("back_off"),
        Action::Relocate => Some("relocate"),
        _ => None,
    }
    // Somebody asked for it.
    .filter(|_| error.kind() != ErrorKind::Interrupted)
}

impl Layer for Retry {
    const REPEATS: bool = true;

    async fn around<'a, T: Send + 'a>(&'a self, operation: Operation, call: &'a mut Call<'a, T>) -> Result<T> {
        let until = Instant::now() + self.deadline;
        let mut pauses = self.pauses();
        let mut tries: u32 = 1;
        loop {
            let error = match tokio::time::timeout_at(until, call()).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error,
                Err(_) => {
                    let message = format!("expected an answer within {:?}, found none", self.deadline);
                    let error = Error::new(ErrorKind::Store, message).with_action(Action::BackOff);
                    return Err(given_up(error, tries, operation));
                }
            };
            let Some(action) = repeated(operation, &error) else { return Err(error) };
            let pause = pauses.next().unwrap_or(self.longest_pause);
            if Instant::now() + pause >= until {
                return Err(given_up(error, tries, operation));
            }
            metrics::counter!("sideindex_store_retries_total", "operation" => operation.name(), "action" => action)
                .increment(1);
            tracing::debug!(operation = operation.name(), tries, ?pause, "trying again after: {error}");
            tokio::time::sleep(pause).await;
            tries += 1;
        }
    }
}

fn given_up(error: Error, tries: u32, operation: Operation) -> Error {
    let times = if tries == 1 { "1 try".to_owned() } else { format!("{tries} tries") };
    error.within(format!("{} given up after {times}", operation.name()))
}
