//! What an operator does: verify and repair, release what is in quarantine, drop indexes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod cli;
mod drop;
mod quarantine;
mod verify;
mod world;
