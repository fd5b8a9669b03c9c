//! The filter of a partial definition, from the text of a WHERE clause.

use super::bind::{BoundQuery, Column, Predicate, bind};
use super::parse::parse;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Filter, FilterTree, ROW_KEY, TableSchema};

/// Reads what a partial definition's rows must satisfy.
///
/// # Errors
/// Those of [`parse`] and [`bind`]; [`ErrorKind::Unsupported`] for a condition on the row key.
pub fn filter(text: &str, schema: &TableSchema) -> Result<Filter> {
    let place = |e: Error| e.within(format!("the filter {text}"));
    let sql = format!("SELECT {ROW_KEY} FROM \"{}\" WHERE {text}", schema.name);
    let parsed = parse(&sql).map_err(place)?;
    if !parsed.order_by.is_empty() || parsed.limit.is_some() {
        return Err(place(Error::invalid("expected a condition alone, found ORDER BY or LIMIT after it")));
    }
    let bound = bind(&parsed, schema).map_err(place)?;
    let tree = tree(&bound.predicate, &bound).map_err(place)?;
    Ok(Filter { text: text.to_owned(), tree })
}

fn tree(predicate: &Predicate, query: &BoundQuery) -> Result<FilterTree> {
    let all = |parts: &[Predicate]| parts.iter().map(|p| tree(p, query)).collect::<Result<_>>();
    Ok(match predicate {
        Predicate::And(parts) => FilterTree::And(all(parts)?),
        Predicate::Or(parts) => FilterTree::Or(all(parts)?),
        Predicate::Test(test) => match test.column {
            Column::RowKey => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "a condition on {ROW_KEY}, the row key, is not supported: expected conditions on attributes"
                    ),
                ));
            }
            Column::Attribute(slot) => {
                FilterTree::Test { operand: query.slots[slot].operand(), condition: test.condition.clone() }
            }
        },
    })
}
