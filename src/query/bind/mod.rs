//! [`ParsedQuery`] + schema → [`BoundQuery`]: names are looked up, literals take the types of their columns.

mod bound;
mod literal;

pub use bound::{BoundQuery, Column, Order, Output, Predicate, Slot, Test};

use super::parse::{Literal, ParsedCondition, ParsedOrder, ParsedPredicate, ParsedQuery, ParsedSelect};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::domain::Domain;
use crate::schema::{Condition, ROW_KEY, TableSchema};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// Looks a query's names up and gives its literals the types of their columns.
///
/// # Errors
/// [`ErrorKind::NotFound`] for an unknown attribute, with the nearest name; [`ErrorKind::WrongType`] for a literal that does
/// not fit its column; [`ErrorKind::InvalidInput`] for ORDER BY on an array.
pub fn bind(parsed: &ParsedQuery, schema: &TableSchema) -> Result<BoundQuery> {
    if parsed.table != schema.name {
        return Err(Error::new(
            ErrorKind::Internal,
            format!("a query of table {} was bound to the schema of table {}", parsed.table, schema.name),
        ));
    }
    let mut binder = Binder { schema, slots: Vec::new(), places: HashMap::new() };
    let output = match &parsed.select {
        ParsedSelect::Count => Output::Count,
        ParsedSelect::Columns(names) => {
            Output::Columns(names.iter().map(|name| binder.column(name)).collect::<Result<_>>()?)
        }
    };
    let predicate = match &parsed.predicate {
        Some(predicate) => {
            let simple = simplify(binder.predicate(predicate)?, &binder.slots);
            if simple.is_false() { Predicate::Or(Vec::new()) } else { simple }
        }
        None => Predicate::And(Vec::new()),
    };
    if parsed.order_by.len() > 1 {
        return Err(Error::new(ErrorKind::Unsupported, "ORDER BY with several keys is not supported"));
    }
    let order = parsed.order_by.first().map(|order| binder.order(order)).transpose()?;
    Ok(BoundQuery {
        mode: parsed.mode,
        table: parsed.table.clone(),
        slots: binder.slots,
        output,
        predicate,
        order,
        limit: parsed.limit,
    })
}

struct Binder<'a> {
    schema: &'a TableSchema,
    slots: Vec<Slot>,
    places: HashMap<String, usize>,
}

impl Binder<'_> {
    fn column(&mut self, name: &str) -> Result<Column> {
        if name == ROW_KEY {
            return Ok(Column::RowKey);
        }
        if let Some(slot) = self.places.get(name) {
            return Ok(Column::Attribute(*slot));
        }
        let attribute = self.schema.require_attribute(name)?.clone();
        let slot = self.slots.len();
        self.places.insert(name.to_owned(), slot);
        self.slots.push(Slot { attribute, functions: Vec::new() });
        Ok(Column::Attribute(slot))
    }

    fn order(&mut self, order: &ParsedOrder) -> Result<Order> {
        let column = self.column(&order.column)?;
        if let Column::Attribute(slot) = column
            && self.slots[slot].attribute.kind.array
        {
            let kind = self.slots[slot].attribute.kind;
            return Err(Error::invalid(format!(
                "ORDER BY {}: expected an attribute with one value a row, found {kind}: a row has several values to be sorted by",
                order.column
            )));
        }
        Ok(Order { column, descending: order.descending })
    }

    fn predicate(&mut self, parsed: &ParsedPredicate) -> Result<Predicate> {
        Ok(match parsed {
            ParsedPredicate::And(parts) => {
                Predicate::And(parts.iter().map(|p| self.predicate(p)).collect::<Result<_>>()?)
            }
            ParsedPredicate::Or(parts) => {
                Predicate::Or(parts.iter().map(|p| self.predicate(p)).collect::<Result<_>>()?)
            }
            ParsedPredicate::Test { column: name, condition } => {
                let column = self.column(name)?;
                let value = |literal: &Literal| -> Result<Bytes> {
                    match column {
                        Column::RowKey => literal::row_key(literal),
                        Column::Attribute(slot) => literal::encoded(&self.slots[slot].attribute, literal),
                    }
                };
                let text = format!("{name} {condition}");
                let domain = match condition {
                    ParsedCondition::Compare(comparison, literal) => Domain::compared(*comparison, &value(literal)?),
                    ParsedCondition::Between(low, high) => Domain::between(&value(low)?, &value(high)?),
                    ParsedCondition::In(list) => Domain::values(&list.iter().map(value).collect::<Result<Vec<_>>>()?),
                };
                let condition = Condition::Some(domain);
                Predicate::Test(Arc::new(Test { column, condition, text }))
            }
        })
    }
}

/// Joins tests of one column where that changes nothing: in an OR always, for "some element is in A or some element is in
/// B" is "some element is in A or B"; in an AND only where there is one value, for different elements may satisfy the two.
/// What can never hold becomes an empty OR, or goes.
fn simplify(predicate: Predicate, slots: &[Slot]) -> Predicate {
    let (parts, conjunction) = match predicate {
        Predicate::And(parts) => (parts, true),
        Predicate::Or(parts) => (parts, false),
        test @ Predicate::Test(_) => return test,
    };
    let single = |column: Column| match column {
        Column::RowKey => true,
        Column::Attribute(slot) => !slots[slot].attribute.kind.array,
    };
    let mut kept: Vec<Predicate> = Vec::with_capacity(parts.len());
    let mut places: HashMap<Option<usize>, usize> = HashMap::new();
    let mut groups: HashMap<usize, Vec<Arc<Test>>> = HashMap::new();
    let mut queue: std::collections::VecDeque<Predicate> = parts.into();
    while let Some(part) = queue.pop_front() {
        match simplify(part, slots) {
            // A part that shrank to a list of the node's own kind is taken in.
            Predicate::And(inner) if conjunction => inner.into_iter().rev().for_each(|p| queue.push_front(p)),
            Predicate::Or(inner) if !conjunction => inner.into_iter().rev().for_each(|p| queue.push_front(p)),
            Predicate::Test(test) if test.some().is_some() && (!conjunction || single(test.column)) => {
                let column = match test.column {
                    Column::RowKey => None,
                    Column::Attribute(slot) => Some(slot),
                };
                let place = *places.entry(column).or_insert(kept.len());
                if place == kept.len() {
                    kept.push(Predicate::Test(test.clone()));
                }
                groups.entry(place).or_default().push(test);
            }
            other => kept.push(other),
        }
    }
    for (place, tests) in groups {
        if tests.len() > 1 {
            kept[place] = Predicate::Test(Arc::new(join(&tests, conjunction)));
        }
    }
    if conjunction && kept.iter().any(Predicate::is_false) {
        return Predicate::Or(Vec::new());
    }
    if !conjunction {
        kept.retain(|part| !part.is_false());
    }
    match (<[Predicate; 1]>::try_from(kept), conjunction) {
        (Ok([only]), _) => only,
        (Err(kept), true) => Predicate::And(kept),
        (Err(kept), false) => Predicate::Or(kept),
    }
}

fn join(tests: &[Arc<Test>], conjunction: bool) -> Test {
    let mut domains = tests.iter().filter_map(|t| t.some());
    let domain = if conjunction {
        domains.fold(Domain::all(), |common, domain| common.intersection(domain))
    } else {
        Domain::union_of(&mut domains)
    };
    let texts: Vec<&str> = tests.iter().map(|t| t.text.as_str()).collect();
    let text = if conjunction { texts.join(" AND ") } else { format!("({})", texts.join(" OR ")) };
    Test { column: tests[0].column, condition: Condition::Some(domain), text }
}

#[cfg(test)]
mod tests;
