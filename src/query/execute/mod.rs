//! [`Plan`](crate::query::Plan) → rows: entries are read, checked against their base rows, filtered, and limited, in that
//! order, page by page.

mod actuals;
mod cursor;
mod entries;
mod found;
mod sink;

pub use actuals::Actuals;
pub use cursor::Cursor;
pub use sink::ResultRow;
