//! Tests that say the same together are joined.

use super::bound::{Column, Predicate, Slot, Test};
use crate::schema::Condition;
use crate::schema::domain::Domain;
use std::collections::HashMap;
use std::sync::Arc;

/// Joins tests of one column where that changes nothing: in an OR always, for "some element is in A or some element is in
/// B" is "some element is in A or B"; in an AND only where there is one value, for different elements may satisfy the two.
/// What can never hold becomes an empty OR, or goes.
pub(super) fn simplify(predicate: Predicate, slots: &[Slot]) -> Predicate {
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
