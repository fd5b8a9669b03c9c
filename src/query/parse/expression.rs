//! Expressions: WHERE clauses, columns and literals.

use super::{Literal, ParsedCondition, ParsedPredicate, unsupported};
use crate::error::{Error, Result};
use crate::store::Comparison;
use sqlparser::ast::{BinaryOperator, Expr, InTarget, UnaryOperator, Value};

/// Reads a WHERE clause.
pub(super) fn predicate(expression: Expr) -> Result<ParsedPredicate> {
    match expression {
        Expr::Nested(inner) => predicate(*inner),
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            connective(*left, &op, *right)
        }
        Expr::BinaryOp { left, op, right } => comparison(*left, &op, *right),
        Expr::Between { expr, negated, low, high } => {
            if negated {
                return Err(unsupported("NOT BETWEEN"));
            }
            let column = column(*expr, "before BETWEEN")?;
            let condition = ParsedCondition::Between(literal(*low)?, literal(*high)?);
            Ok(ParsedPredicate::Test { column, condition })
        }
        Expr::In { expr, target, negated, global: _ } => {
            if negated {
                return Err(unsupported("NOT IN"));
            }
            let InTarget::List(list) = target else { return Err(unsupported("IN without a list of values")) };
            let column = column(*expr, "before IN")?;
            let condition = ParsedCondition::In(list.into_iter().map(literal).collect::<Result<_>>()?);
            Ok(ParsedPredicate::Test { column, condition })
        }
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => Err(unsupported("NOT")),
        Expr::IsNull(_) => Err(unsupported("IS NULL")),
        Expr::IsNotNull(_) => Err(unsupported("IS NOT NULL")),
        Expr::Like { .. } | Expr::ILike { .. } | Expr::SimilarTo { .. } | Expr::RLike { .. } => {
            Err(unsupported("LIKE"))
        }
        Expr::Identifier(name) => Err(Error::invalid(format!(
            "expected a comparison, found the column {name} alone: a bool attribute is tested with {name} = TRUE"
        ))),
        Expr::Value(value) => {
            Err(Error::invalid(format!("expected a comparison, found {value}: write column = value")))
        }
        Expr::Exists { .. } | Expr::Subquery(_) => Err(unsupported("a subquery")),
        other => Err(unsupported(&format!("{other} as a condition"))),
    }
}

/// A chain of ANDs or ORs, which the parser gives as a left-deep tree: walked with a loop, for it may be long.
fn connective(left: Expr, op: &BinaryOperator, right: Expr) -> Result<ParsedPredicate> {
    let mut parts = vec![right];
    let mut rest = left;
    loop {
        match rest {
            Expr::BinaryOp { left, op: inner, right } if inner == *op => {
                parts.push(*right);
                rest = *left;
            }
            first => {
                parts.push(first);
                break;
            }
        }
    }
    let conjunction = *op == BinaryOperator::And;
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts.into_iter().rev() {
        match predicate(part)? {
            ParsedPredicate::And(inner) if conjunction => flat.extend(inner),
            ParsedPredicate::Or(inner) if !conjunction => flat.extend(inner),
            one => flat.push(one),
        }
    }
    Ok(if conjunction { ParsedPredicate::And(flat) } else { ParsedPredicate::Or(flat) })
}

fn comparison(left: Expr, op: &BinaryOperator, right: Expr) -> Result<ParsedPredicate> {
    let comparison = match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        other => return Err(unsupported(&format!("the operator {other}"))),
    };
    let (left, right) = (unwrapped(left), unwrapped(right));
    if is_column(&left) && is_column(&right) {
        let quoted = matches!(&right, Expr::Identifier(name) if name.quote_style.is_some());
        let hint = if quoted { ": text stands in single quotes, double quotes are for names" } else { "" };
        return Err(unsupported(&format!("comparing two columns ({left} {op} {right}){hint}")));
    }
    // `5 < size` says the same as `size > 5`.
    let (name, comparison, value) =
        if is_literal(&left) { (right, flipped(comparison), left) } else { (left, comparison, right) };
    if is_literal(&name) {
        return Err(Error::invalid(format!("expected a column to compare with, found {name} {op} {value}")));
    }
    let column = column(name, "in a comparison")?;
    Ok(ParsedPredicate::Test { column, condition: ParsedCondition::Compare(comparison, literal(value)?) })
}

fn flipped(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        Comparison::Greater => Comparison::Less,
        same @ (Comparison::Equal | Comparison::NotEqual) => same,
    }
}

fn unwrapped(mut expression: Expr) -> Expr {
    while let Expr::Nested(inner) = expression {
        expression = *inner;
    }
    expression
}

fn is_column(expression: &Expr) -> bool {
    matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

fn is_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Value(_) => true,
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => is_literal(expr),
        _ => false,
    }
}

/// Reads a column's name; `place` says where it stands.
pub(super) fn column(expression: Expr, place: &str) -> Result<String> {
    match unwrapped(expression) {
        Expr::Identifier(name) => Ok(name.value),
        Expr::CompoundIdentifier(parts) => {
            let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
            Err(unsupported(&format!(
                "the qualified name {} {place} (a name with a dot in it is written in double quotes)",
                parts.join(".")
            )))
        }
        other @ Expr::BinaryOp { op: BinaryOperator::Minus, .. } => Err(unsupported(&format!(
            "the expression {other} {place} (a name with a - in it is written in double quotes)"
        ))),
        other => Err(unsupported(&format!("{other} {place}, where a column's name is expected,"))),
    }
}

/// Reads a literal.
fn literal(expression: Expr) -> Result<Literal> {
    match unwrapped(expression) {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Ok(Literal::Text(text)),
            Value::HexStringLiteral(hex) => bytes(&hex).map(Literal::Bytes),
            Value::Number(number, _) => Ok(Literal::Number(number)),
            Value::Boolean(value) => Ok(Literal::Bool(value)),
            Value::Null => Err(unsupported(
                "a comparison with NULL, which never holds (a test for the absence of a value comes with IS NULL),",
            )),
            Value::Placeholder(name) => Err(unsupported(&format!("the parameter {name}"))),
            other => Err(unsupported(&format!("the literal {other}"))),
        },
        Expr::UnaryOp { op: op @ (UnaryOperator::Minus | UnaryOperator::Plus), expr } => match literal(*expr)? {
            Literal::Number(number) if op == UnaryOperator::Plus => Ok(Literal::Number(number)),
            Literal::Number(number) => Ok(Literal::Number(match number.strip_prefix('-') {
                Some(positive) => positive.to_owned(),
                None => format!("-{number}"),
            })),
            other => Err(Error::invalid(format!("expected a number after {op}, found {other}"))),
        },
        Expr::Identifier(name) => Err(Error::invalid(format!(
            "expected a value, found the name {name}: text stands in single quotes, like '{}'",
            name.value
        ))),
        Expr::Subquery(_) => Err(unsupported("a subquery")),
        other => Err(unsupported(&format!("{other}, where a value is expected,"))),
    }
}

fn bytes(hex: &str) -> Result<Vec<u8>> {
    let wrong = || Error::invalid(format!("X'{hex}': expected an even number of hexadecimal digits, such as X'00ff'"));
    let digits: Vec<u8> = hex
        .chars()
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()).ok_or_else(wrong))
        .collect::<Result<_>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
