//! Partial definitions: whether a query asks only for rows that they have.

use crate::query::bind::{Column, Predicate, Slot, Test};
use crate::schema::{FilterTree, Operand};
use std::sync::Arc;

/// Whether every row for which all `conjuncts` hold satisfies a filter, as far as their structure tells.
pub(super) fn is_implied(filter: &FilterTree, conjuncts: &[Predicate], slots: &[Slot]) -> bool {
    let by_cases = || {
        conjuncts.iter().any(|conjunct| {
            let Predicate::Or(arms) = conjunct else { return false };
            arms.iter().all(|arm| is_implied(filter, arm.conjuncts(), slots))
        })
    };
    match filter {
        FilterTree::And(parts) => parts.iter().all(|part| is_implied(part, conjuncts, slots)),
        FilterTree::Or(parts) => parts.iter().any(|part| is_implied(part, conjuncts, slots)) || by_cases(),
        FilterTree::Test { operand, condition } => {
            let tested = |conjunct: &Predicate| matches!(conjunct, Predicate::Test(test) if is_of(test, operand, slots) && test.condition.implies(condition));
            conjuncts.iter().any(tested) || by_cases()
        }
    }
}

/// Whether a filter alone makes a test true, so that an entry is enough to know it.
pub(super) fn tells(filter: &FilterTree, conjunct: &Predicate, slots: &[Slot]) -> bool {
    let Predicate::Test(test) = conjunct else { return false };
    match filter {
        FilterTree::And(parts) => parts.iter().any(|part| tells(part, conjunct, slots)),
        FilterTree::Or(parts) => !parts.is_empty() && parts.iter().all(|part| tells(part, conjunct, slots)),
        FilterTree::Test { operand, condition } => is_of(test, operand, slots) && condition.implies(&test.condition),
    }
}

/// A filter as a predicate over slots; none if an attribute is not there.
pub(super) fn predicate(filter: &FilterTree, slot: &mut dyn FnMut(&Operand) -> Option<usize>) -> Option<Predicate> {
    let mut all = |parts: &[FilterTree]| parts.iter().map(|part| predicate(part, slot)).collect::<Option<_>>();
    Some(match filter {
        FilterTree::And(parts) => Predicate::And(all(parts)?),
        FilterTree::Or(parts) => Predicate::Or(all(parts)?),
        FilterTree::Test { operand, condition } => Predicate::Test(Arc::new(Test {
            column: Column::Attribute(slot(operand)?),
            condition: condition.clone(),
            text: String::new(),
        })),
    })
}

fn is_of(test: &Test, operand: &Operand, slots: &[Slot]) -> bool {
    matches!(test.column, Column::Attribute(slot) if slots[slot].operand() == *operand)
}
