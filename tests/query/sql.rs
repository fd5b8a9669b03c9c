//! Random queries and their SQL.

use crate::cond::{Cond, Name, Op, Operand, Speller};
use crate::fixture::Fixture;
use fastrand::Rng;
use sideindex::query::Literal;

/// One item of a SELECT list.
#[derive(Debug, Clone)]
pub enum Item {
    All,
    One(Operand),
}

#[derive(Debug, Clone)]
pub struct Key {
    pub operand: Operand,
    pub descending: bool,
    pub nulls_first: bool,
}

#[derive(Debug, Clone)]
pub struct Query {
    /// None is COUNT(*).
    pub select: Option<Vec<Item>>,
    pub filter: Option<Cond>,
    pub order: Vec<Key>,
    pub limit: Option<u64>,
    pub offset: u64,
    pub sql: String,
    pub parameters: Vec<Literal>,
}

impl Query {
    pub fn random(rng: &mut Rng, fixture: &Fixture) -> Self {
        let ground = fixture.ground();
        let plain = |operand: Operand| Operand { functions: Vec::new(), ..operand };
        let select = match rng.u8(0..10) {
            0..=1 => None,
            2..=4 => Some(vec![Item::One(Operand { name: Name::Id, functions: Vec::new() })]),
            5 => Some(vec![Item::All]),
            6 => Some((0..rng.usize(1..=3)).map(|_| Item::One(ground.operand(rng))).collect()),
            _ => Some((0..rng.usize(1..=3)).map(|_| Item::One(plain(ground.operand(rng)))).collect()),
        };
        let mut filter = (rng.u8(0..20) > 0).then(|| ground.cond(rng, 3));
        let mut order: Vec<Operand> = Vec::new();
        if select.is_some() && rng.u8(0..5) < 2 {
            order = (0..[1, 1, 2, 3][rng.usize(0..4)]).map(|_| ground.operand(rng)).collect();
        }
        if let Some((leading, following)) = (rng.bool()).then(|| for_a_definition(rng, fixture)).flatten() {
            filter = Some(match filter {
                Some(other) if rng.u8(0..3) == 0 => Cond::And(vec![leading, other]),
                Some(other) if rng.u8(0..6) == 0 => Cond::Or(vec![leading, other]),
                _ => leading,
            });
            if !order.is_empty() && rng.bool() {
                order = following;
            }
        }
        order.retain(|operand| !ground.is_array(operand));
        // All in one direction more often than by chance.
        let all = rng.u8(0..3);
        let order = order.into_iter().map(|operand| {
            let descending = if all == 0 { rng.bool() } else { all == 1 };
            Key { operand, descending, nulls_first: if rng.bool() { descending } else { rng.bool() } }
        });
        let order = order.collect();
        let limit = (rng.u8(0..3) == 0).then(|| rng.u64(0..12));
        let offset = if rng.u8(0..6) == 0 { rng.u64(0..6) } else { 0 };
        let mut query = Self { select, filter, order, limit, offset, sql: String::new(), parameters: Vec::new() };
        query.render(rng, fixture);
        query
    }

    fn render(&mut self, rng: &mut Rng, fixture: &Fixture) {
        let parameters = rng.bool().then(Vec::new);
        let mut speller = Speller { columns: &fixture.columns, rng, parameters };
        let mut sql = String::from(if speller.rng.bool() { "SELECT " } else { "select " });
        match &self.select {
            None => sql.push_str(if speller.rng.bool() { "COUNT(*)" } else { "count(*)" }),
            Some(items) => {
                let item = |item: &Item| match item {
                    Item::All => "*".to_owned(),
                    Item::One(operand) => speller.operand(operand),
                };
                sql.push_str(&items.iter().map(item).collect::<Vec<_>>().join(", "));
            }
        }
        sql.push_str(&format!(" FROM {}", fixture.table));
        if let Some(filter) = &self.filter {
            sql.push_str(&format!(" WHERE {}", speller.cond(filter)));
        }
        let keys: Vec<String> = self
            .order
            .iter()
            .map(|key| {
                let direction = if key.descending { " DESC" } else { ["", " ASC"][speller.rng.usize(0..2)] };
                let nulls = match key.nulls_first {
                    first if first == key.descending && speller.rng.bool() => "",
                    true => " NULLS FIRST",
                    false => " NULLS LAST",
                };
                format!("{}{direction}{nulls}", speller.operand(&key.operand))
            })
            .collect();
        if !keys.is_empty() {
            sql.push_str(&format!(" ORDER BY {}", keys.join(", ")));
        }
        if let Some(limit) = self.limit {
            sql.push_str(&format!(" LIMIT {limit}"));
        }
        if self.offset > 0 {
            sql.push_str(&format!(" OFFSET {}", self.offset));
        }
        self.parameters = speller.parameters.unwrap_or_default();
        self.sql = sql;
    }
}

/// A condition on the leading terms of some definition, equalities and then anything, with its filter where it is partial;
/// and the terms from the last one tested on.
fn for_a_definition(rng: &mut Rng, fixture: &Fixture) -> Option<(Cond, Vec<Operand>)> {
    let ground = fixture.ground();
    let made: Vec<_> = fixture.active().collect();
    let made = made.get(rng.usize(0..made.len().max(1)))?;
    let tested = rng.usize(1..=made.terms.len());
    let mut parts: Vec<Cond> = Vec::new();
    for operand in &made.terms[..tested] {
        let (one, two) = (ground.literal(operand, rng), ground.literal(operand, rng));
        parts.push(match rng.u8(0..8) {
            0..=1 => Cond::In(operand.clone(), vec![one, two]),
            2 => Cond::IsNull(operand.clone()),
            _ => Cond::Compare(operand.clone(), Op::Eq, one),
        });
    }
    if rng.u8(0..3) > 0 {
        parts.pop();
        parts.push(ground.test(made.terms[tested - 1].clone(), rng));
    }
    if let Some(filter) = &made.filter
        && rng.u8(0..6) > 0
    {
        parts.push(filter.clone());
    }
    rng.shuffle(&mut parts);
    let from = if rng.bool() { tested - 1 } else { rng.usize(0..tested) };
    let following = made.terms[from..].iter().take(rng.usize(1..=3)).cloned().collect();
    Some((if parts.len() == 1 { parts.remove(0) } else { Cond::And(parts) }, following))
}

/// Whether a condition may be answered by row keys.
pub fn tests_keys(cond: &Cond) -> bool {
    match cond {
        Cond::And(parts) | Cond::Or(parts) => parts.iter().any(tests_keys),
        Cond::Not(inner) => tests_keys(inner),
        Cond::Compare(operand, ..) | Cond::Between(operand, ..) | Cond::In(operand, _) | Cond::Like(operand, _) => {
            operand.name == Name::Id
        }
        Cond::IsNull(_) => false,
    }
}
