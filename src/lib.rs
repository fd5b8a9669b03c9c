//! sideindex keeps inverted indexes of HBase tables in step with their change stream, and answers
//! `attribute = value` queries from them.
//!
//! ```text
//!  source ──► index ──► store ◄── query ◄── cli
//!  (change log, file)  (embedded)
//!        build (snapshot ─► index)   verify (base ◄► index)
//! ```
//!
//! The modules follow that flow. [`model`] is what flows; [`schema`] says what it means; a [`store`] holds it; [`mod@write`]
//! changes base rows; a [`source`] tells of the changes; [`index`] keeps the entries; [`build`] fills a new index;
//! [`verify`] judges it; [`query`] answers.
//!
//! All of it together, on the embedded store:
//!
//! ```
//! use sideindex::index::{Follower, FollowerOptions, Maintainer};
//! use sideindex::query;
//! use sideindex::schema::{Catalog, DefinitionSpec};
//! use sideindex::source::ChangeLogSource;
//! use sideindex::store::embedded::{EmbeddedStore, Options};
//! use sideindex::write::{RowChange, Writer};
//! use std::sync::Arc;
//!
//! # #[tokio::main]
//! # async fn main() -> sideindex::error::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! let store = EmbeddedStore::open(dir.path(), Options::default())?;
//! let catalog = Catalog::open(Arc::new(store.clone())).await?;
//! catalog.create_table("things", &["a".to_owned()], 1).await?;
//!
//! let writer = Writer::open(&catalog, "things").await?;
//! let attributes = vec![("colour".to_owned(), "red".into()), ("tags".to_owned(), vec!["new", "small"].into())];
//! writer.write(&[RowChange { row: Some("thing-1".into()), timestamp: None, attributes, origin: None }]).await?;
//!
//! // Built from what is there,
//! let spec = DefinitionSpec { name: "by_tags".into(), on: vec!["tags".into()], ..DefinitionSpec::default() };
//! sideindex::build::create(&catalog, &store, "things", &[spec], |_| {}).await?;
//! // and kept in step with what comes.
//! let attributes = vec![("tags".to_owned(), vec!["small"].into())];
//! writer.write(&[RowChange { row: Some("thing-2".into()), timestamp: None, attributes, origin: None }]).await?;
//! let schema = Arc::new(catalog.table("things").await?);
//! let maintainer = Maintainer::new(Arc::new(store.clone()), Arc::clone(&schema));
//! let source = ChangeLogSource::open(store.clone(), "things").await?;
//! let counts = Follower::new(catalog, maintainer, source, FollowerOptions::default()).catch_up(|_| {}).await?;
//! assert_eq!((counts.received, counts.applied), (2, 2));
//!
//! let parsed = query::parse("SELECT id FROM things WHERE tags = 'small'")?;
//! let prepared = query::prepare(&store, &schema, &parsed, &query::Options::default()).await?;
//! let mut cursor = prepared.cursor(Arc::new(store));
//! let mut ids = Vec::new();
//! while let Some(page) = cursor.next_page().await? {
//!     ids.extend(page.iter().filter_map(|row| row.values[0].as_ref()).map(ToString::to_string));
//! }
//! assert_eq!(ids, ["thing-1", "thing-2"]);
//! # Ok(())
//! # }
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking"))]

pub mod build;
pub mod cli;
pub mod clock;
pub mod config;
pub mod doctor;
pub mod error;
#[cfg(test)]
#[path = "../tests/fuzz/driver.rs"]
pub(crate) mod fuzz;
pub mod index;
pub mod model;
pub mod query;
pub mod schema;
pub mod source;
pub mod store;
pub mod verify;
pub mod write;
