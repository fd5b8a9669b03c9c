//! Freshness tokens: "not before this write is in the index" (DESIGN.md §9).

use super::Changes;
use crate::error::{Error, ErrorKind, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

const FORMAT: u8 = 1;
/// How often a waiting reader looks.
const PAUSE: Duration = Duration::from_millis(5);

/// A place among the changes of a table that a reader asks for: the number of a change-log record, or the time of an intent. Its text is opaque: `format(1) check(4) number(8) table…` in
/// base64. The check tells a mistyped token, not a forged one: nothing is to be gained by forging it.
///
/// ```
/// use sideindex::source::Freshness;
/// let token = Freshness::new("things", 17);
/// assert_eq!(token.to_string().parse::<Freshness>()?, token);
/// assert!("AQ".parse::<Freshness>().unwrap_err().to_string().contains("expected a freshness token"));
/// # Ok::<(), sideindex::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freshness {
    table: String,
    number: u64,
}

impl Freshness {
    /// The record of this number, and all before it.
    pub fn new(table: impl Into<String>, number: u64) -> Self {
        Self { table: table.into(), number }
    }

    /// Everything written to a table so far.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an unknown table.
    pub fn now(changes: impl Into<Changes>, table: &str) -> Result<Self> {
        Ok(Self::new(table, changes.into().head(table)?))
    }

    /// Checks that the token is of this table, and of this store as far as can be told.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`].
    pub fn check(&self, changes: impl Into<Changes>, table: &str) -> Result<()> {
        if self.table != table {
            return Err(Error::invalid(format!(
                "expected a freshness token of table {table}, found one of table {}",
                self.table
            )));
        }
        let head = changes.into().head(table)?;
        if self.number > head {
            return Err(Error::invalid(format!(
                "the freshness token is of change {}, and the log of table {table} ends at {head}: it is another store's",
                self.number
            )));
        }
        Ok(())
    }

    /// Waits until the change is in the indexes, and durable.
    ///
    /// # Errors
    /// As [`Freshness::check`]; [`ErrorKind::Busy`] after `patience`, saying how far the indexes are; those of the store.
    pub async fn wait(&self, changes: impl Into<Changes>, table: &str, patience: Duration) -> Result<()> {
        let changes = changes.into();
        self.check(&changes, table)?;
        let started = Instant::now();
        loop {
            let applied = changes.applied(table).await?;
            if applied >= self.number {
                return Ok(());
            }
            let left = patience.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(Error::new(
                    ErrorKind::Busy,
                    format!(
                        "the indexes of table {table} have {applied} of {} changes after {} ms; is anyone following the \
                         log? `apply` brings them up to date",
                        self.number,
                        patience.as_millis()
                    ),
                ));
            }
            tokio::time::sleep(left.min(PAUSE)).await;
        }
    }

    fn bytes(&self) -> Vec<u8> {
        [&self.number.to_be_bytes()[..], self.table.as_bytes()].concat()
    }
}

fn check_sum(body: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = xxh3_64(body).to_be_bytes();
    [a, b, c, d]
}

impl fmt::Display for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.bytes();
        f.write_str(&URL_SAFE_NO_PAD.encode([&[FORMAT][..], &check_sum(&body), &body].concat()))
    }
}

impl FromStr for Freshness {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            Error::invalid(format!(
                "expected a freshness token as a write gives it, found {text:?}: take it over whole"
            ))
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|e| unknown().with_source(e))?;
        let Some((&[FORMAT, a, b, c, d], body)) = bytes.split_first_chunk::<5>() else { return Err(unknown()) };
        let (number, table) = body.split_first_chunk::<8>().ok_or_else(unknown)?;
        let table = std::str::from_utf8(table).map_err(|e| unknown().with_source(e))?;
        if check_sum(body) != [a, b, c, d] {
            return Err(unknown());
        }
        Ok(Self::new(table, u64::from_be_bytes(*number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_token_is_refused() {
        let token = Freshness::new("things", 1 << 40).to_string();
        for i in 0..token.len() {
            let mut damaged = token.clone().into_bytes();
            damaged[i] = if damaged[i] == b'A' { b'B' } else { b'A' };
            let damaged = String::from_utf8(damaged).unwrap();
            assert!(damaged.parse::<Freshness>().is_err(), "{damaged}");
            assert!(token[..i].parse::<Freshness>().is_err());
        }
    }
}
