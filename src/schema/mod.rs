//! What the cells mean: values, attributes, definitions, and the keys made of them.

mod attribute;
pub mod calendar;
mod catalog;
mod decimal;
mod definition;
pub mod domain;
pub mod encoding;
pub mod entry;
pub mod filter;
pub mod function;
mod hbase;
pub mod key;
mod pattern;
mod retire;
pub mod state;
mod table;
pub mod term;
mod value;

pub use attribute::{Attribute, AttributeSpec, AttributeType, BaseEncoding, ScalarType};
pub use catalog::{
    Catalog, META_FAMILY, META_TABLE, QUARANTINE_FAMILY, QUARANTINE_TABLE, check_attributes, read_table,
};
pub use decimal::Decimal;
pub use definition::{Definition, DefinitionSpec, Lifecycle, NO_FLOOR, Operand, Term, TermSpec};
pub use filter::{Condition, Filter, FilterTree};
pub use function::Function;
pub use key::Key;
pub use pattern::Pattern;
pub(crate) use retire::{is_active, orphans};
pub use table::{ROW_KEY, TableSchema, check_name, nearest};
pub use value::{AttributeValue, Float, Value};

/// Number of an attribute or a definition in its table's dictionary; 0 is reserved.
pub type Code = u16;
