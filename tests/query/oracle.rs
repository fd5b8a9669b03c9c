//! What a query must answer: SQL's three-valued logic on the generated values, and nothing of the library.

use crate::cond::{Cond, Literal, Name, Op, Operand};
use crate::data::{Held, V, apply};
use crate::fixture::Fixture;
use crate::sql::{Item, Key, Query};
use std::cmp::Ordering;

/// The rows a query selects, in its order (that of the keys without one), LIMIT and OFFSET left out.
pub fn answer(fixture: &Fixture, query: &Query) -> Vec<Vec<u8>> {
    let holds = |key: &[u8], row: &[Held]| query.filter.as_ref().is_none_or(|f| truth(f, key, row) == Some(true));
    let mut keys: Vec<&Vec<u8>> = fixture.rows.iter().filter(|(k, r)| holds(k, r)).map(|(k, _)| k).collect();
    keys.sort_by(|a, b| compare(fixture, &query.order, a, b));
    keys.into_iter().cloned().collect()
}

/// How two rows compare by the keys of ORDER BY.
pub fn compare(fixture: &Fixture, order: &[Key], a: &[u8], b: &[u8]) -> Ordering {
    let one = |key: &Key| {
        let Name::Column(_) = key.operand.name else {
            return if key.descending { b.cmp(a) } else { a.cmp(b) };
        };
        match (elements(&key.operand, a, &fixture.rows[a]).pop(), elements(&key.operand, b, &fixture.rows[b]).pop()) {
            (Some(x), Some(y)) if key.descending => y.order(&x),
            (Some(x), Some(y)) => x.order(&y),
            (None, None) => Ordering::Equal,
            (None, Some(_)) if key.nulls_first => Ordering::Less,
            (Some(_), None) if !key.nulls_first => Ordering::Less,
            _ => Ordering::Greater,
        }
    };
    order.iter().map(one).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// True, false, or unknown.
pub fn truth(cond: &Cond, key: &[u8], row: &[Held]) -> Option<bool> {
    let some = |operand: &Operand, test: &dyn Fn(&Element) -> Option<bool>| {
        let elements = elements(operand, key, row);
        if elements.is_empty() { None } else { elements.iter().map(test).fold(Some(false), or) }
    };
    match cond {
        Cond::And(parts) => parts.iter().map(|p| truth(p, key, row)).fold(Some(true), and),
        Cond::Or(parts) => parts.iter().map(|p| truth(p, key, row)).fold(Some(false), or),
        Cond::Not(inner) => truth(inner, key, row).map(|holds| !holds),
        Cond::Compare(operand, op, literal) => some(operand, &|e| compared(e, *op, literal)),
        Cond::Between(operand, low, high) => {
            some(operand, &|e| and(compared(e, Op::Ge, low), compared(e, Op::Le, high)))
        }
        Cond::In(operand, list) => {
            some(operand, &|e| list.iter().map(|literal| compared(e, Op::Eq, literal)).fold(Some(false), or))
        }
        Cond::Like(operand, pattern) => some(operand, &|e| Some(like(&e.characters(), pattern.as_ref()?))),
        Cond::IsNull(operand) => Some(elements(operand, key, row).is_empty()),
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
enum Element {
    Key(Vec<u8>),
    Value(V),
}

impl Element {
    fn order(&self, other: &Element) -> Ordering {
        match (self, other) {
            (Self::Key(key), Self::Key(other)) => key.cmp(other),
            (Self::Value(value), Self::Value(other)) => value.order(other),
            _ => panic!("a key is compared with a value"),
        }
    }

    fn characters(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Key(key) => characters(key),
            Self::Value(V::Text(text)) => characters(text.as_bytes()),
            Self::Value(other) => panic!("{other:?} is no text"),
        }
    }
}

/// The values of a column of a row, functions applied.
fn elements(operand: &Operand, key: &[u8], row: &[Held]) -> Vec<Element> {
    match operand.name {
        Name::Id => vec![Element::Key(key.to_vec())],
        Name::Column(c) => row[c].elements().iter().map(|v| Element::Value(apply(&operand.functions, v))).collect(),
    }
}

fn compared(element: &Element, op: Op, literal: &Literal) -> Option<bool> {
    let other = match literal {
        Literal::Null => return None,
        Literal::Key(key) => Element::Key(key.clone()),
        Literal::Value(value) => Element::Value(value.clone()),
    };
    let order = element.order(&other);
    Some(match op {
        Op::Eq => order == Ordering::Equal,
        Op::Ne => order != Ordering::Equal,
        Op::Lt => order == Ordering::Less,
        Op::Le => order != Ordering::Greater,
        Op::Gt => order == Ordering::Greater,
        Op::Ge => order != Ordering::Less,
    })
}

/// LIKE by recursion.
fn like(text: &[Vec<u8>], pattern: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('%') => (0..=text.len()).any(|n| like(&text[n..], rest.as_str())),
        Some('_') => !text.is_empty() && like(&text[1..], rest.as_str()),
        Some(character) => {
            let literal = if character == '\\' { rest.next().unwrap() } else { character };
            text.first().is_some_and(|first| *first == literal.to_string().into_bytes())
                && like(&text[1..], rest.as_str())
        }
    }
}

/// The values an answer shows of a row.
pub fn shown(fixture: &Fixture, key: &[u8], select: &[Item]) -> Vec<serde_json::Value> {
    let plain = |name: Name| Operand { name, functions: Vec::new() };
    let mut by_name: Vec<usize> = (0..fixture.columns.len()).collect();
    by_name.sort_by_key(|c| fixture.columns[*c].name);
    let mut operands = Vec::new();
    for item in select {
        match item {
            Item::One(operand) => operands.push(operand.clone()),
            Item::All => {
                operands.push(plain(Name::Id));
                operands.extend(by_name.iter().map(|c| plain(Name::Column(*c))));
            }
        }
    }
    let of = |operand: &Operand| match operand.name {
        Name::Id => serde_json::json!(key_text(key)),
        Name::Column(c) => {
            let values: Vec<serde_json::Value> =
                fixture.rows[key][c].elements().iter().map(|v| apply(&operand.functions, v).json()).collect();
            match (fixture.columns[c].array, values.as_slice()) {
                (_, []) => serde_json::Value::Null,
                (true, _) => values.into(),
                (false, [one]) => one.clone(),
                (false, _) => panic!("several values"),
            }
        }
    };
    operands.iter().map(of).collect()
}

/// The characters of a text; of what is not UTF-8 each byte is one.
fn characters(text: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let len = (1..=4.min(rest.len())).find(|n| std::str::from_utf8(&rest[..*n]).is_ok()).unwrap_or(1);
        out.push(rest[..len].to_vec());
        rest = &rest[len..];
    }
    out
}

/// A key as text; what is not UTF-8 byte by byte.
pub fn key_text(key: &[u8]) -> String {
    let text = |c: Vec<u8>| String::from_utf8(c).unwrap_or_else(|e| format!("\\x{:02x}", e.as_bytes()[0]));
    characters(key).into_iter().map(text).collect()
}
