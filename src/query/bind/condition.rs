//! Tests of one column: what makes them true, and what makes them false.

use super::bound::{Column, Predicate, Test};
use super::{Binder, literal};
use crate::error::{Action, Error, ErrorKind, Result};
use crate::query::parse::{Literal, ParsedCondition, ParsedOperand};
use crate::schema::domain::{Domain, Edge, Interval, Side};
use crate::schema::{Condition, Pattern, ScalarType, entry};
use bytes::Bytes;
use std::sync::Arc;

/// What one value has to be to make a test true, and to make it false. With any other it is unknown, as it is without a
/// value.
struct Sides {
    holds: Domain,
    fails: Domain,
}

impl Sides {
    fn of(holds: Domain) -> Self {
        Self { fails: holds.complement(), holds }
    }

    /// Whatever is compared with null.
    fn unknown() -> Self {
        Self { holds: nothing(), fails: nothing() }
    }
}

fn nothing() -> Domain {
    Domain::values(&[])
}

impl Binder<'_> {
    /// A test, or its negation: on an array the test holds if it does for some element, the negation if the test fails for
    /// every element and there is one.
    pub(super) fn test(
        &mut self,
        operand: &ParsedOperand,
        condition: &ParsedCondition,
        negated: bool,
    ) -> Result<Predicate> {
        let column = self.column(operand)?;
        let test = |condition: Condition, text: String| Predicate::Test(Arc::new(Test { column, condition, text }));
        let text = condition.spelled(operand, negated);
        let sides = match condition {
            ParsedCondition::Compare(comparison, literal) => match self.bytes(column, literal)? {
                Some(value) => Sides::of(Domain::compared(*comparison, &value)),
                None => Sides::unknown(),
            },
            ParsedCondition::Between(low, high) => between(self.bytes(column, low)?, self.bytes(column, high)?),
            ParsedCondition::In(list) => {
                let values = list.iter().map(|l| self.bytes(column, l)).collect::<Result<Vec<_>>>()?;
                let known: Vec<Bytes> = values.iter().flatten().cloned().collect();
                let sides = Sides::of(Domain::values(&known));
                // A value that is not in the list may be the unknown one.
                if known.len() == values.len() { sides } else { Sides { fails: nothing(), ..sides } }
            }
            ParsedCondition::Like { pattern, escape } => match self.pattern(column, operand, pattern, *escape)? {
                None => Sides::unknown(),
                Some(pattern) if pattern.is_exact() => {
                    let exact = Literal::Text(pattern.prefix().to_owned());
                    Sides::of(Domain::values(&Vec::from_iter(self.bytes(column, &exact)?)))
                }
                Some(pattern) if pattern.is_prefix() => Sides::of(starting_with(column, pattern.prefix())),
                Some(pattern) if negated => return Ok(test(Condition::Unlike(pattern), text)),
                Some(pattern) if pattern.prefix().is_empty() => return Ok(test(Condition::Like(pattern), text)),
                // The prefix leads to the rows, the pattern is left to be tested.
                Some(pattern) => {
                    let prefix = pattern.prefix();
                    let escape = |c: char| matches!(c, '%' | '_' | '\\').then_some('\\').into_iter().chain([c]);
                    let spelled = Literal::Text(prefix.chars().flat_map(escape).chain(['%']).collect());
                    let first = Condition::Some(starting_with(column, prefix));
                    return Ok(Predicate::And(vec![
                        test(first, format!("{operand} LIKE {spelled}")),
                        test(Condition::Like(pattern), text),
                    ]));
                }
            },
            ParsedCondition::IsNull => {
                return Ok(match (column, negated) {
                    (Column::Attribute(_), false) => test(Condition::Null, text),
                    (Column::RowKey, false) => test(Condition::Some(nothing()), text),
                    (_, true) => test(Condition::Some(Domain::all()), text),
                });
            }
        };
        Ok(match (negated, self.is_array(column)) {
            (false, _) => test(Condition::Some(sides.holds), text),
            (true, false) => test(Condition::Some(sides.fails), text),
            (true, true) => test(Condition::Every(sides.fails), text),
        })
    }

    fn is_array(&self, column: Column) -> bool {
        matches!(column, Column::Attribute(slot) if self.slots[slot].attribute.kind.array)
    }

    /// The bytes a literal is compared as; none for null.
    fn bytes(&mut self, column: Column, given: &Literal) -> Result<Option<Bytes>> {
        let value = self.value(given)?;
        if *value == Literal::Null {
            return Ok(None);
        }
        match column {
            Column::RowKey => literal::row_key(&value).map(Some),
            Column::Attribute(slot) => literal::encoded(&self.slots[slot].attribute, &value).map(Some),
        }
    }

    /// The pattern of a LIKE; none for null.
    fn pattern(
        &mut self,
        column: Column,
        operand: &ParsedOperand,
        given: &Literal,
        escape: Option<char>,
    ) -> Result<Option<Pattern>> {
        if let Column::Attribute(slot) = column
            && self.slots[slot].attribute.kind.scalar != ScalarType::Text
        {
            let attribute = &self.slots[slot].attribute;
            return Err(wrong(format!("LIKE is of text, and {} is {}", attribute.name, attribute.kind)));
        }
        match &*self.value(given)? {
            Literal::Null => Ok(None),
            Literal::Text(text) | Literal::Untyped(text) => Pattern::new(text, escape).map(Some),
            other => Err(wrong(format!("{operand} LIKE: expected a pattern in single quotes, found {other}"))),
        }
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::WrongType, message).with_action(Action::FixConfig)
}

/// `low <= value AND value <= high`: false as soon as one of the two is.
fn between(low: Option<Bytes>, high: Option<Bytes>) -> Sides {
    let holds = match (&low, &high) {
        (Some(low), Some(high)) => Domain::between(low, high),
        _ => nothing(),
    };
    let below = low.map(|low| Interval { from: Edge::Start, to: Edge::At(low, Side::Below) });
    let above = high.map(|high| Interval { from: Edge::At(high, Side::Above), to: Edge::End });
    Sides { holds, fails: Domain::of(below.into_iter().chain(above).collect()) }
}

/// The texts, or row keys, that start with a text.
fn starting_with(column: Column, prefix: &str) -> Domain {
    let start = match column {
        Column::RowKey => prefix.as_bytes().to_vec(),
        Column::Attribute(_) => literal::text_prefix(prefix),
    };
    let to = entry::after_prefix(&start).map_or(Edge::End, |end| Edge::At(end.into(), Side::Below));
    Domain::of(vec![Interval { from: Edge::At(start.into(), Side::Below), to }])
}
