//! [`ParsedQuery`] + schema → [`BoundQuery`]: names are looked up, literals take the types of their columns.

mod bound;
mod condition;
mod literal;
mod simplify;

pub use bound::{BoundQuery, Column, Order, Output, Predicate, Slot, Test};

use super::parse::{
    Literal, ParsedColumn, ParsedOperand, ParsedOrder, ParsedPredicate, ParsedQuery, ParsedSelect, parse_predicate,
    row_count,
};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Filter, FilterTree, Function, ROW_KEY, ScalarType, TableSchema};
use simplify::simplify;
use std::borrow::Cow;
use std::collections::HashMap;

/// Looks a query's names up and gives its literals the types of their columns. `parameters` are the values of `$1`, `$2`, …
///
/// # Errors
/// [`ErrorKind::NotFound`] for an unknown attribute, with the nearest name; [`ErrorKind::WrongType`] for a literal that does
/// not fit its column; [`ErrorKind::InvalidInput`] for ORDER BY on an array, for parameters without values and values
/// without parameters.
pub fn bind(parsed: &ParsedQuery, schema: &TableSchema, parameters: &[Literal]) -> Result<BoundQuery> {
    if parsed.table != schema.name {
        return Err(Error::new(
            ErrorKind::Internal,
            format!("a query of table {} was bound to the schema of table {}", parsed.table, schema.name),
        ));
    }
    let mut binder = Binder::new(schema, parameters);
    let (output, names, aliases) = binder.output(&parsed.select)?;
    let predicate = match &parsed.predicate {
        Some(predicate) => binder.filter(predicate)?,
        None => Predicate::And(Vec::new()),
    };
    let mut order: Vec<Order> = Vec::with_capacity(parsed.order_by.len());
    for key in &parsed.order_by {
        let key = binder.order(key, &aliases)?;
        // What has been compared is equal, and no two rows have the same row key.
        if !order.iter().any(|o| o.column == key.column || o.column == Column::RowKey) {
            order.push(key);
        }
    }
    let limit = parsed.limit.as_ref().map(|l| row_count("LIMIT", &*binder.value(l)?)).transpose()?;
    let offset = parsed.offset.as_ref().map(|o| row_count("OFFSET", &*binder.value(o)?)).transpose()?.unwrap_or(0);
    binder.check_parameters()?;
    Ok(BoundQuery {
        mode: parsed.mode,
        table: parsed.table.clone(),
        slots: binder.slots,
        output,
        names,
        predicate,
        order,
        limit,
        offset,
    })
}

/// Reads the filter of a partial definition: a WHERE clause on attributes, without the word WHERE.
///
/// # Errors
/// Those of [`parse`](super::parse) and [`bind`]; [`ErrorKind::Unsupported`] for tests of the row key.
pub fn filter(text: &str, schema: &TableSchema) -> Result<Filter> {
    let mut binder = Binder::new(schema, &[]);
    let predicate = binder.filter(&parse_predicate(text)?)?;
    let tree = tree(&predicate, &binder.slots)?;
    Ok(Filter { text: text.trim().to_owned(), tree })
}

fn tree(predicate: &Predicate, slots: &[Slot]) -> Result<FilterTree> {
    let all = |parts: &[Predicate]| parts.iter().map(|p| tree(p, slots)).collect::<Result<_>>();
    Ok(match predicate {
        Predicate::And(parts) => FilterTree::And(all(parts)?),
        Predicate::Or(parts) => FilterTree::Or(all(parts)?),
        Predicate::Test(test) => match test.column {
            Column::Attribute(slot) => {
                FilterTree::Test { operand: slots[slot].operand(), condition: test.condition.clone() }
            }
            Column::RowKey => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("{}: the filter of an index tests attributes, not the row key {ROW_KEY}", test.text),
                ));
            }
        },
    })
}

/// Columns of the SELECT list by the names they are given there.
type Aliases = Vec<(String, Column)>;

struct Binder<'a> {
    schema: &'a TableSchema,
    slots: Vec<Slot>,
    places: HashMap<(String, Vec<Function>), usize>,
    parameters: &'a [Literal],
    used: Vec<bool>,
}

impl<'a> Binder<'a> {
    fn new(schema: &'a TableSchema, parameters: &'a [Literal]) -> Self {
        let used = vec![false; parameters.len()];
        Self { schema, slots: Vec::new(), places: HashMap::new(), parameters, used }
    }

    fn column(&mut self, operand: &ParsedOperand) -> Result<Column> {
        let ParsedOperand { name, functions } = operand;
        if name == ROW_KEY {
            if functions.is_empty() {
                return Ok(Column::RowKey);
            }
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("{operand} is not supported: {ROW_KEY} is the row key, and functions are of attributes"),
            ));
        }
        let key = (name.clone(), functions.clone());
        if let Some(slot) = self.places.get(&key) {
            return Ok(Column::Attribute(*slot));
        }
        let attribute = self.schema.require_attribute(name)?;
        if !functions.is_empty() && attribute.kind.scalar != ScalarType::Text {
            return Err(Error::invalid(format!(
                "{operand}: expected a text attribute, found {name}, which is {}",
                attribute.kind
            )));
        }
        let slot = self.slots.len();
        self.places.insert(key, slot);
        self.slots.push(Slot { attribute: attribute.clone(), functions: functions.clone() });
        Ok(Column::Attribute(slot))
    }

    /// What is asked for, what its columns are called, and which of those names ORDER BY may use.
    fn output(&mut self, select: &ParsedSelect) -> Result<(Output, Vec<String>, Aliases)> {
        let ParsedSelect::Columns(items) = select else {
            return Ok((Output::Count, vec!["count".to_owned()], Vec::new()));
        };
        let (mut columns, mut names, mut aliases) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            match item {
                ParsedColumn::One { operand, alias } => {
                    let column = self.column(operand)?;
                    columns.push(column);
                    names.push(alias.clone().unwrap_or_else(|| operand.to_string()));
                    aliases.extend(alias.clone().map(|alias| (alias, column)));
                }
                ParsedColumn::All => {
                    let attributes = self.schema.attributes().map(|a| a.name.as_str());
                    for name in std::iter::once(ROW_KEY).chain(attributes) {
                        columns.push(self.column(&ParsedOperand { name: name.to_owned(), functions: Vec::new() })?);
                        names.push(name.to_owned());
                    }
                }
            }
        }
        Ok((Output::Columns(columns), names, aliases))
    }

    fn order(&mut self, order: &ParsedOrder, aliases: &Aliases) -> Result<Order> {
        let ParsedOrder { operand, descending, nulls_first } = order;
        let mut named = aliases.iter().filter(|(alias, _)| operand.functions.is_empty() && *alias == operand.name);
        let column = match named.next() {
            None => self.column(operand)?,
            Some((_, column)) if named.all(|(_, other)| other == column) => *column,
            Some(_) => return Err(Error::invalid(format!("ORDER BY {operand}: several columns have this name"))),
        };
        if let Column::Attribute(slot) = column
            && self.slots[slot].attribute.kind.array
        {
            let kind = self.slots[slot].attribute.kind;
            return Err(Error::invalid(format!(
                "ORDER BY {operand}: expected an attribute with one value a row, found {kind}: a row has several values to be sorted by"
            )));
        }
        Ok(Order { column, descending: *descending, nulls_first: nulls_first.unwrap_or(*descending) })
    }

    /// A WHERE clause, in its simplest form.
    fn filter(&mut self, parsed: &ParsedPredicate) -> Result<Predicate> {
        let simple = simplify(self.predicate(parsed, false)?, &self.slots);
        Ok(if simple.is_false() { Predicate::Or(Vec::new()) } else { simple })
    }

    /// A negation goes down to the tests: NOT (a AND b) is NOT a OR NOT b, also where a or b is unknown.
    fn predicate(&mut self, parsed: &ParsedPredicate, negated: bool) -> Result<Predicate> {
        let mut all =
            |parts: &[ParsedPredicate]| parts.iter().map(|p| self.predicate(p, negated)).collect::<Result<Vec<_>>>();
        match (parsed, negated) {
            (ParsedPredicate::And(parts), false) | (ParsedPredicate::Or(parts), true) => {
                Ok(Predicate::And(all(parts)?))
            }
            (ParsedPredicate::Or(parts), false) | (ParsedPredicate::And(parts), true) => Ok(Predicate::Or(all(parts)?)),
            (ParsedPredicate::Not(inner), _) => self.predicate(inner, !negated),
            (ParsedPredicate::Test { operand, condition }, _) => self.test(operand, condition, negated),
        }
    }

    /// The value of a parameter; another literal as it is.
    fn value<'l>(&mut self, literal: &'l Literal) -> Result<Cow<'l, Literal>>
    where
        'a: 'l,
    {
        let Literal::Parameter(number, functions) = literal else { return Ok(Cow::Borrowed(literal)) };
        let Some(value) = self.parameters.get(number - 1) else {
            let given = match self.parameters.len() {
                0 => "no values are given".to_owned(),
                1 => "1 value is given".to_owned(),
                n => format!("{n} values are given"),
            };
            return Err(Error::invalid(format!("the query has a parameter ${number}, and {given}")));
        };
        self.used[number - 1] = true;
        if functions.is_empty() || *value == Literal::Null {
            return Ok(Cow::Borrowed(value));
        }
        let (Literal::Text(text) | Literal::Untyped(text)) = value else {
            return Err(Error::new(
                ErrorKind::WrongType,
                format!("{literal}: expected a text as the value of ${number}, found {value}"),
            ));
        };
        let text = functions.iter().fold(text.clone(), |text, f| f.apply(&text).into_owned());
        Ok(Cow::Owned(Literal::Text(text)))
    }

    fn check_parameters(&self) -> Result<()> {
        match self.used.iter().position(|used| !used) {
            None => Ok(()),
            Some(unused) => {
                let number = unused + 1;
                let value = &self.parameters[unused];
                Err(Error::invalid(format!("a value is given for ${number} ({value}), and the query has no ${number}")))
            }
        }
    }
}

#[cfg(test)]
mod tests;
