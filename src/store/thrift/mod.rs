//! What the stores behind a Thrift gateway share: a wire that is not to be trusted, connections, and the errors.

mod bounds;
mod breaker;
mod fault;
mod plan;
mod pool;
mod rows;
mod scan;
mod socket;
mod tables;
mod wire;

pub(super) use bounds::split_points;
pub(super) use plan::{Plan, RESULT_CELLS};
pub(super) use pool::{Connection, Pool};
pub(super) use rows::{Batch, check_mutations, row_of_each, waves, within_row};
pub(super) use scan::{Dialect, GatewayScanner};
pub use socket::{Gateway, Transport};
pub(super) use socket::{Input, Output, connect};
pub(super) use tables::{Table, Tables, create_compressed};
