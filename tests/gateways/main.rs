//! The binary and the stores on a real HBase: the catalogue, killed parts, and gateways that are not what they should be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod bed;
mod catalogue;
#[path = "../support/cluster.rs"]
#[allow(dead_code, reason = "not all of it is used by each test")]
mod cluster;
mod faults;
mod refusals;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "most of it is for the embedded store")]
mod support;
