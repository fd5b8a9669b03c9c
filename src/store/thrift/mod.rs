//! What the stores behind a Thrift gateway share: a wire that is not to be trusted, connections, and the errors.

mod breaker;
mod fault;
mod pool;
mod socket;
mod wire;

pub(super) use pool::{Connection, Place, Pool};
pub use socket::{Gateway, Transport};
pub(super) use socket::{Input, Output, connect};
