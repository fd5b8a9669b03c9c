//! What flows: cells, atomic row mutations, change events and positions.

mod cell;
mod event;
mod mutation;
mod position;
pub mod wire;

pub use cell::{Cell, CellKind, MAX_CELL, MAX_TIMESTAMP, Timestamp, check_timestamp};
pub use event::ChangeEvent;
pub use mutation::{Row, RowMutation, escaped};
pub use position::Position;
