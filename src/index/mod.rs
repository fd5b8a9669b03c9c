//! The maintainer: from change events to index entries (DESIGN.md §3).
//!
//! ```text
//! event ─ change ─► put candidates ─► read state ─ settle ─► derive ─► plan ─► write entries ─► prune
//! ```
//!
//! [`change`], [`candidates`], [`settle`] and [`derive`](mod@derive) decide and are pure; [`Maintainer`] does the reading
//! and writing; [`Follower`] feeds it from a source and acknowledges.

pub mod candidates;
pub mod change;
pub mod derive;
mod drop;
mod follower;
mod maintainer;
#[doc(hidden)]
pub mod purge;
pub mod quarantine;
mod recheck;
pub mod settle;

pub use drop::{Dropped, drop_definition};
pub use follower::{Follower, FollowerOptions, Progress};
pub use maintainer::{Counts, Maintainer, Mode, Outcome, Rules};
pub use purge::Purged;
pub use quarantine::Quarantined;
pub(crate) use recheck::{keep_promises, promise, waiting_rows};
pub use recheck::{oldest_recheck, pending_rechecks};
