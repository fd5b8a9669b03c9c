//! [`Plan`](crate::query::Plan) → rows: entries are read, checked against their base rows, filtered, and limited, in that
//! order, page by page.

mod actuals;
mod budget;
mod cursor;
mod earlier;
mod entries;
mod found;
mod result;
mod sink;
mod sort;

pub use actuals::Actuals;
pub use cursor::Cursor;
pub use result::ResultRow;
