//! What a query must answer: SQL's three-valued logic on the generated values, and nothing of the library.

use crate::data::Held;
use crate::fixture::Fixture;
use crate::sql::{Cond, Literal, Name, Op, Query};
use std::cmp::Ordering;

/// The rows a query selects, in its order (that of the keys without one), LIMIT left out.
pub fn answer(fixture: &Fixture, query: &Query) -> Vec<Vec<u8>> {
    let holds = |key: &[u8], row: &[Held]| query.filter.as_ref().is_none_or(|f| truth(f, key, row) == Some(true));
    let mut keys: Vec<&Vec<u8>> = fixture.rows.iter().filter(|(k, r)| holds(k, r)).map(|(k, _)| k).collect();
    if let Some((name, descending)) = query.order {
        // Null is the largest, and rows that are equal are in the order of their keys.
        keys.sort_by(|a, b| {
            let by_value = match name {
                Name::Id => Ordering::Equal,
                Name::Column(c) => match (fixture.rows[*a][c].elements(), fixture.rows[*b][c].elements()) {
                    ([x], [y]) => x.order(y),
                    ([], [_]) => Ordering::Greater,
                    ([_], []) => Ordering::Less,
                    _ => Ordering::Equal,
                },
            };
            let order = by_value.then(a.cmp(b));
            if descending { order.reverse() } else { order }
        });
    }
    keys.into_iter().cloned().collect()
}

/// True, false, or unknown.
fn truth(cond: &Cond, key: &[u8], row: &[Held]) -> Option<bool> {
    match cond {
        Cond::And(parts) => parts.iter().map(|p| truth(p, key, row)).fold(Some(true), and),
        Cond::Or(parts) => parts.iter().map(|p| truth(p, key, row)).fold(Some(false), or),
        Cond::Compare(name, op, literal) => {
            some_element(*name, key, row, &|element| accepts(*op, element.order(literal)))
        }
        Cond::Between(name, low, high) => {
            some_element(*name, key, row, &|element| element.order(low).is_ge() && element.order(high).is_le())
        }
        Cond::In(name, list) => {
            some_element(*name, key, row, &|element| list.iter().any(|literal| element.order(literal).is_eq()))
        }
    }
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

/// What is compared with a literal.
enum Element<'a> {
    Key(&'a [u8]),
    Value(&'a crate::data::V),
}

impl Element<'_> {
    fn order(&self, literal: &Literal) -> Ordering {
        match (self, literal) {
            (Self::Key(key), Literal::Key(other)) => (*key).cmp(other.as_slice()),
            (Self::Value(value), Literal::Value(other)) => value.order(other),
            _ => panic!("a key is compared with a value"),
        }
    }
}

fn some_element(name: Name, key: &[u8], row: &[Held], condition: &dyn Fn(&Element<'_>) -> bool) -> Option<bool> {
    match name {
        Name::Id => Some(condition(&Element::Key(key))),
        Name::Column(c) => {
            let elements = row[c].elements();
            if elements.is_empty() { None } else { Some(elements.iter().any(|e| condition(&Element::Value(e)))) }
        }
    }
}

fn accepts(op: Op, order: Ordering) -> bool {
    match op {
        Op::Eq => order == Ordering::Equal,
        Op::Ne => order != Ordering::Equal,
        Op::Lt => order == Ordering::Less,
        Op::Le => order != Ordering::Greater,
        Op::Gt => order == Ordering::Greater,
        Op::Ge => order != Ordering::Less,
    }
}

/// The values an answer shows of a row.
pub fn shown(fixture: &Fixture, key: &[u8], select: &[Name]) -> Vec<serde_json::Value> {
    let of = |name: &Name| match name {
        Name::Id => serde_json::json!(key_text(key)),
        Name::Column(c) => match &fixture.rows[key][*c] {
            Held::Null | Held::Broken => serde_json::Value::Null,
            Held::Many(values) if values.is_empty() => serde_json::Value::Null,
            Held::One(value) => value.json(),
            Held::Many(values) => values.iter().map(crate::data::V::json).collect(),
        },
    };
    select.iter().map(of).collect()
}

/// A key as text; what is not UTF-8 byte by byte.
pub fn key_text(key: &[u8]) -> String {
    let mut out = String::new();
    let mut rest = key;
    while !rest.is_empty() {
        let character = (1..=4.min(rest.len())).find_map(|n| std::str::from_utf8(&rest[..n]).ok());
        match character {
            Some(text) => {
                out.push_str(text);
                rest = &rest[text.len()..];
            }
            None => {
                out.push_str(&format!("\\x{:02x}", rest[0]));
                rest = &rest[1..];
            }
        }
    }
    out
}
