//! sideindex keeps inverted indexes of HBase tables in step with their change stream, and answers
//! `attribute = value` queries from them.
//!
//! ```text
//!  source ──► index ──► store ◄── query ◄── cli
//!  (change log, file)  (embedded)
//!        build (snapshot ─► index)
//! ```
//!
//! The modules follow that flow. [`model`] is what flows; [`schema`] says what it means; a [`store`] holds it; [`write`]
//! changes base rows; a [`source`] tells of the changes; [`index`] keeps the entries; [`build`] fills a new index;
//! [`query`] answers.

pub mod build;
pub mod cli;
pub mod clock;
pub mod error;
pub mod index;
pub mod model;
pub mod query;
pub mod schema;
pub mod source;
pub mod store;
pub mod write;
