//! A layer that ends work under way: each call asks first whether to go on.

use super::{Call, Layer, Operation};
use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;
use tokio::sync::watch;

/// Told once to stop. Clones are told together. As a layer it makes calls fail from then on; what was handed to the store
/// before is not taken back.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Tells everybody to stop.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Returns once told to stop.
    pub async fn stopped(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|told| *told).await;
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] once told to stop.
    pub fn check(&self) -> Result<()> {
        if *self.0.borrow() {
            return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        Ok(())
    }
}

impl Layer for Stop {
    const REPEATS: bool = false;

    async fn around<'a, T: Send + 'a>(&'a self, _: Operation, call: &'a mut Call<'a, T>) -> Result<T> {
        self.check()?;
        call().await
    }
}
