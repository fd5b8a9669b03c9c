//! Fuzz targets of the public interface: for every input, what `check` of its target asserts. Targets of what is private
//! are unit tests beside it. See `driver.rs` for the corpus and for longer runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod cells;
mod declared;
mod driver;
mod keys;
mod records;
mod sql;
