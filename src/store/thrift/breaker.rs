//! A gateway that is down is left alone for a while, so that calls go elsewhere or fail at once.

use crate::error::{Error, ErrorKind, Result};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a gateway is left alone after its first failure; after each further one twice as long …
const FIRST: Duration = Duration::from_millis(50);
/// … up to this.
const LONGEST: Duration = Duration::from_secs(2);

/// Whether a gateway is up, from what became of the calls to it. A server's exception is no failure of the gateway.
///
/// `sideindex_gateway_up` (label `gateway`) is 1 or 0; `sideindex_gateway_failures_total` counts.
pub(super) struct Breaker {
    address: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Failures since the last success.
    failures: u32,
    /// Until then nobody asks.
    down_until: Option<Instant>,
}

impl Breaker {
    pub(super) fn new(address: &str) -> Self {
        metrics::gauge!("sideindex_gateway_up", "gateway" => address.to_owned()).set(1.0);
        Self { address: address.to_owned(), state: Mutex::default() }
    }

    /// How long the gateway is still left alone.
    pub(super) fn down_for(&self, now: Instant) -> Duration {
        self.state().down_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// Lets a call pass: all while the gateway is up; when its pause is over, one, and others only once that has succeeded or
    /// taken longer than `trial`.
    ///
    /// # Errors
    /// [`Unreachable`](ErrorKind::Unreachable).
    pub(super) fn pass(&self, now: Instant, trial: Duration) -> Result<()> {
        let mut state = self.state();
        match state.down_until {
            Some(until) if until > now => Err(Error::new(
                ErrorKind::Unreachable,
                format!(
                    "it has failed {} and is asked again in {:?}",
                    if state.failures == 1 { "once".to_owned() } else { format!("{} times", state.failures) },
                    until - now
                ),
            )),
            Some(_) => {
                state.down_until = Some(now + trial);
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(super) fn succeeded(&self) {
        let mut state = self.state();
        if state.failures > 0 {
            *state = State::default();
            drop(state);
            tracing::info!("gateway {} is up again", self.address);
            self.gauge(1.0);
        }
    }

    pub(super) fn failed(&self, now: Instant, error: &Error) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        let pause = FIRST.saturating_mul(1 << (state.failures - 1).min(16)).min(LONGEST);
        state.down_until = Some(now + pause);
        let first = state.failures == 1;
        drop(state);
        metrics::counter!("sideindex_gateway_failures_total", "gateway" => self.address.clone()).increment(1);
        if first {
            tracing::warn!("gateway {} is down: {error}", self.address);
            self.gauge(0.0);
        }
    }

    fn gauge(&self, up: f64) {
        metrics::gauge!("sideindex_gateway_up", "gateway" => self.address.clone()).set(up);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn one_call_tries_whether_it_is_up_again() {
        let breaker = Breaker::new("here:1");
        let (start, trial) = (Instant::now(), Duration::from_secs(5));
        let error = Error::new(ErrorKind::Store, "gone");
        assert!(breaker.pass(start, trial).is_ok());
        breaker.failed(start, &error);
        assert_eq!(breaker.down_for(start), FIRST);
        assert_eq!(breaker.pass(start, trial).unwrap_err().kind(), ErrorKind::Unreachable);

        let later = start + FIRST;
        assert!(breaker.pass(later, trial).is_ok());
        assert!(breaker.pass(later, trial).is_err(), "a second call beside the one that tries");
        breaker.failed(later, &error);
        assert_eq!(breaker.down_for(later), FIRST * 2);
        assert!(breaker.pass(later + FIRST * 2, trial).is_ok());
        breaker.succeeded();
        assert!(breaker.pass(later, trial).is_ok() && breaker.pass(later, trial).is_ok());
        assert_eq!(breaker.down_for(later), Duration::ZERO);
    }

    #[test]
    fn pauses_have_an_end() {
        let breaker = Breaker::new("here:1");
        let start = Instant::now();
        for _ in 0..100 {
            breaker.failed(start, &Error::new(ErrorKind::Store, "gone"));
        }
        assert_eq!(breaker.down_for(start), LONGEST);
    }
}
