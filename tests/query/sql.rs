//! Random queries: a tree of the test's own, and its SQL.

use crate::data::{V, random_key};
use crate::fixture::Fixture;
use fastrand::Rng;
use sideindex::schema::Definition;

/// A column: of the fixture, or the row key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Id,
    Column(usize),
}

#[derive(Debug, Clone)]
pub enum Literal {
    Value(V),
    Key(Vec<u8>),
}

#[derive(Debug, Clone, Copy)]
pub enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Debug, Clone)]
pub enum Cond {
    And(Vec<Cond>),
    Or(Vec<Cond>),
    Compare(Name, Op, Literal),
    Between(Name, Literal, Literal),
    In(Name, Vec<Literal>),
}

#[derive(Debug, Clone)]
pub struct Query {
    /// None is COUNT(*).
    pub select: Option<Vec<Name>>,
    pub filter: Option<Cond>,
    pub order: Option<(Name, bool)>,
    pub limit: Option<u64>,
    pub sql: String,
}

impl Query {
    pub fn random(rng: &mut Rng, fixture: &Fixture) -> Self {
        let select = if rng.u8(0..5) == 0 {
            None
        } else if rng.u8(0..3) == 0 {
            Some(vec![Name::Id])
        } else {
            Some((0..rng.usize(1..=3)).map(|_| name(rng, fixture)).collect())
        };
        let mut filter = (rng.u8(0..20) > 0).then(|| cond(rng, fixture, 3));
        let mut order = (select.is_some() && rng.u8(0..3) == 0).then(|| (name(rng, fixture), rng.bool()));
        if let Some((leading, last)) = (rng.u8(0..5) < 2).then(|| for_a_definition(rng, fixture)).flatten() {
            filter = Some(match filter {
                Some(other) if rng.u8(0..3) == 0 => Cond::And(vec![leading, other]),
                Some(other) if rng.u8(0..6) == 0 => Cond::Or(vec![leading, other]),
                _ => leading,
            });
            order = order.map(|(name, descending)| (if rng.bool() { last } else { name }, descending));
        }
        let order = order.filter(|(name, _)| !matches!(name, Name::Column(c) if fixture.columns[*c].array));
        let limit = (rng.u8(0..3) == 0).then(|| rng.u64(0..12));
        let mut query = Self { select, filter, order, limit, sql: String::new() };
        query.sql = query.render(rng, fixture);
        query
    }

    fn render(&self, rng: &mut Rng, fixture: &Fixture) -> String {
        let mut sql = String::from(if rng.bool() { "SELECT " } else { "select " });
        match &self.select {
            None => sql.push_str(if rng.bool() { "COUNT(*)" } else { "count(*)" }),
            Some(names) => {
                sql.push_str(&names.iter().map(|n| quoted(*n, fixture)).collect::<Vec<_>>().join(", "));
            }
        }
        sql.push_str(&format!(" FROM {}", fixture.table));
        if let Some(filter) = &self.filter {
            sql.push_str(&format!(" WHERE {}", text(filter, rng, fixture)));
        }
        if let Some((name, descending)) = self.order {
            let direction = if descending { " DESC" } else { ["", " ASC"][rng.usize(0..2)] };
            sql.push_str(&format!(" ORDER BY {}{direction}", quoted(name, fixture)));
        }
        if let Some(limit) = self.limit {
            sql.push_str(&format!(" LIMIT {limit}"));
        }
        sql
    }
}

fn name(rng: &mut Rng, fixture: &Fixture) -> Name {
    match rng.usize(0..=fixture.columns.len()) {
        0 => Name::Id,
        n => Name::Column(n - 1),
    }
}

fn literal(rng: &mut Rng, fixture: &Fixture, name: Name) -> Literal {
    match name {
        Name::Id => Literal::Key(if fixture.rows.is_empty() || rng.u8(0..3) == 0 {
            random_key(rng, fixture.most_rows)
        } else {
            fixture.rows.keys().nth(rng.usize(0..fixture.rows.len())).unwrap().clone()
        }),
        Name::Column(c) => Literal::Value(V::random(fixture.columns[c].kind, rng)),
    }
}

fn cond(rng: &mut Rng, fixture: &Fixture, depth: usize) -> Cond {
    if depth > 0 && rng.u8(0..5) < 3 {
        let parts = (0..rng.usize(2..=3)).map(|_| cond(rng, fixture, depth - 1)).collect();
        return if rng.u8(0..5) < 3 { Cond::And(parts) } else { Cond::Or(parts) };
    }
    let name = name(rng, fixture);
    test(rng, fixture, name)
}

fn test(rng: &mut Rng, fixture: &Fixture, name: Name) -> Cond {
    match rng.u8(0..10) {
        0..=4 => Cond::Compare(name, Op::Eq, literal(rng, fixture, name)),
        5..=6 => {
            let op = [Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge][rng.usize(0..5)];
            Cond::Compare(name, op, literal(rng, fixture, name))
        }
        7 => Cond::Between(name, literal(rng, fixture, name), literal(rng, fixture, name)),
        _ => Cond::In(name, (0..rng.usize(1..=4)).map(|_| literal(rng, fixture, name)).collect()),
    }
}

/// A condition on the leading terms of some definition, equalities and then anything, and the last column it tests.
fn for_a_definition(rng: &mut Rng, fixture: &Fixture) -> Option<(Cond, Name)> {
    let definitions: Vec<&Definition> = fixture.schema.active_definitions().collect();
    let definition = definitions.get(rng.usize(0..definitions.len().max(1)))?;
    let leading = &definition.terms[..rng.usize(1..=definition.terms.len())];
    let names: Vec<Name> = leading.iter().map(|term| Name::Column(fixture.column_of(term.operand.code))).collect();
    let mut parts: Vec<Cond> = Vec::new();
    for name in &names {
        let mut some = || literal(rng, fixture, *name);
        let (one, two) = (some(), some());
        parts.push(if rng.u8(0..4) == 0 { Cond::In(*name, vec![one, two]) } else { Cond::Compare(*name, Op::Eq, one) });
    }
    let last = *names.last()?;
    if rng.u8(0..3) > 0 {
        parts.pop();
        parts.push(test(rng, fixture, last));
    }
    rng.shuffle(&mut parts);
    Some((if parts.len() == 1 { parts.remove(0) } else { Cond::And(parts) }, last))
}

fn quoted(name: Name, fixture: &Fixture) -> String {
    match name {
        Name::Id => "id".to_owned(),
        Name::Column(c) => match fixture.columns[c].name {
            plain @ ("a" | "b" | "h_1") => plain.to_owned(),
            other => format!("\"{other}\""),
        },
    }
}

fn text(cond: &Cond, rng: &mut Rng, fixture: &Fixture) -> String {
    match cond {
        Cond::And(parts) => join(parts, " AND ", rng, fixture),
        Cond::Or(parts) => join(parts, " OR ", rng, fixture),
        Cond::Compare(name, op, literal) => {
            let (there, back) = match op {
                Op::Eq => ("=", "="),
                Op::Ne => (["!=", "<>"][rng.usize(0..2)], "<>"),
                Op::Lt => ("<", ">"),
                Op::Le => ("<=", ">="),
                Op::Gt => (">", "<"),
                Op::Ge => (">=", "<="),
            };
            let (name, value) = (quoted(*name, fixture), spelled(literal, rng));
            if rng.u8(0..5) == 0 { format!("{value} {back} {name}") } else { format!("{name} {there} {value}") }
        }
        Cond::Between(name, low, high) => {
            format!("{} BETWEEN {} AND {}", quoted(*name, fixture), spelled(low, rng), spelled(high, rng))
        }
        Cond::In(name, list) => {
            let list: Vec<String> = list.iter().map(|l| spelled(l, rng)).collect();
            format!("{} IN ({})", quoted(*name, fixture), list.join(", "))
        }
    }
}

fn join(parts: &[Cond], between: &str, rng: &mut Rng, fixture: &Fixture) -> String {
    let part = |part: &Cond, rng: &mut Rng| match part {
        // AND binds more tightly than OR, so that parentheses may be left out.
        Cond::And(_) if between == " OR " && rng.bool() => text(part, rng, fixture),
        Cond::And(_) | Cond::Or(_) => format!("({})", text(part, rng, fixture)),
        _ => text(part, rng, fixture),
    };
    parts.iter().map(|p| part(p, rng)).collect::<Vec<_>>().join(between)
}

fn spelled(literal: &Literal, rng: &mut Rng) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match literal {
        Literal::Key(key) => match std::str::from_utf8(key) {
            Ok(text) if rng.bool() => quote(text),
            _ => format!("X'{}'", key.iter().map(|b| format!("{b:02x}")).collect::<String>()),
        },
        Literal::Value(V::Text(text)) => quote(text),
        Literal::Value(V::Int(i)) => i.to_string(),
        Literal::Value(V::Float(f)) if rng.bool() => format!("{f}"),
        Literal::Value(V::Float(f)) => format!("{f:e}"),
        Literal::Value(V::Bool(b)) => b.to_string().to_uppercase(),
    }
}

/// Whether a condition can only be answered from an index or by keys if there is one: no test of `id` for equality.
pub fn has_key_equality(cond: &Cond) -> bool {
    match cond {
        Cond::And(parts) | Cond::Or(parts) => parts.iter().any(has_key_equality),
        Cond::Compare(name, op, _) => *name == Name::Id && matches!(op, Op::Eq | Op::Le | Op::Ge),
        Cond::Between(name, ..) | Cond::In(name, _) => *name == Name::Id,
    }
}
