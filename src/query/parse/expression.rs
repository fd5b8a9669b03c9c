//! Expressions: WHERE clauses, columns and literals.

use super::{Literal, ParsedCondition, ParsedOperand, ParsedPredicate, unsupported};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Function, nearest};
use crate::store::Comparison;
use sqlparser::ast::{
    BinaryOperator, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, InTarget, ObjectNamePart,
    UnaryOperator, Value,
};

/// Reads a WHERE clause.
pub(super) fn predicate(expression: Expr) -> Result<ParsedPredicate> {
    match expression {
        Expr::Nested(inner) => predicate(*inner),
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            connective(*left, &op, *right)
        }
        Expr::BinaryOp { left, op, right } => comparison(*left, &op, *right),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Ok(negation(predicate(*expr)?, true)),
        Expr::Between { expr, negated, low, high } => {
            let operand = operand(*expr, "before BETWEEN")?;
            let condition = ParsedCondition::Between(literal(*low)?, literal(*high)?);
            Ok(negation(ParsedPredicate::Test { operand, condition }, negated))
        }
        Expr::In { expr, target, negated, global: _ } => {
            let InTarget::List(list) = target else { return Err(unsupported("IN without a list of values")) };
            let operand = operand(*expr, "before IN")?;
            let condition = ParsedCondition::In(list.into_iter().map(literal).collect::<Result<_>>()?);
            Ok(negation(ParsedPredicate::Test { operand, condition }, negated))
        }
        Expr::IsNull(expr) => null_test(*expr),
        Expr::IsNotNull(expr) => Ok(negation(null_test(*expr)?, true)),
        Expr::Like { negated, any: false, expr, pattern, escape_char } => {
            let operand = operand(*expr, "before LIKE")?;
            let condition = ParsedCondition::Like { pattern: literal(*pattern)?, escape: escape(escape_char)? };
            Ok(negation(ParsedPredicate::Test { operand, condition }, negated))
        }
        Expr::Like { .. } => Err(unsupported("LIKE ANY")),
        Expr::ILike { expr, .. } => Err(unsupported(&format!("ILIKE (write lower({expr}) LIKE '…' in lower case)"))),
        Expr::SimilarTo { .. } => Err(unsupported("SIMILAR TO (write LIKE)")),
        Expr::RLike { .. } => Err(unsupported("RLIKE (write LIKE)")),
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

fn negation(predicate: ParsedPredicate, negated: bool) -> ParsedPredicate {
    match (predicate, negated) {
        (predicate, false) => predicate,
        (ParsedPredicate::Not(inner), true) => *inner,
        (predicate, true) => ParsedPredicate::Not(Box::new(predicate)),
    }
}

fn null_test(expression: Expr) -> Result<ParsedPredicate> {
    Ok(ParsedPredicate::Test { operand: operand(expression, "before IS NULL")?, condition: ParsedCondition::IsNull })
}

/// The character of ESCAPE; a backslash where it is left out, as in PostgreSQL.
fn escape(given: Option<Box<Expr>>) -> Result<Option<char>> {
    let Some(given) = given else { return Ok(Some('\\')) };
    if let Expr::Value(value) = given.as_ref()
        && let Value::SingleQuotedString(text) = &value.value
    {
        let mut characters = text.chars();
        if let (one, None) = (characters.next(), characters.next()) {
            return Ok(one);
        }
    }
    Err(Error::invalid(format!("ESCAPE: expected one character in single quotes, or none, found {given}")))
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
    if has_column(&left) && has_column(&right) {
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
    let operand = operand(name, "in a comparison")?;
    Ok(ParsedPredicate::Test { operand, condition: ParsedCondition::Compare(comparison, literal(value)?) })
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

fn has_column(expression: &Expr) -> bool {
    match expression {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        Expr::Nested(inner) => has_column(inner),
        other => argument(other).is_some_and(has_column),
    }
}

fn is_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Value(_) => true,
        Expr::TypedString(typed) => is_time(&typed.data_type),
        Expr::Nested(expr) | Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => is_literal(expr),
        other => argument(other).is_some_and(is_literal),
    }
}

/// The argument of a call with one.
fn argument(expression: &Expr) -> Option<&Expr> {
    match expression {
        Expr::Trim { expr, trim_where: None, trim_what: None, trim_characters: None } => Some(expr),
        Expr::Function(function) => match &function.args {
            FunctionArguments::List(list) => match list.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] => Some(inner),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Takes a call of one of our functions apart: the function and its argument. Anything else comes back as it is.
fn call(expression: Expr) -> Result<Result<(Function, Expr), Expr>> {
    match expression {
        Expr::Trim { expr, trim_where: None, trim_what: None, trim_characters: None } => {
            Ok(Ok((Function::Trim, *expr)))
        }
        Expr::Trim { .. } => Err(unsupported("trim of anything but white space at both ends (write trim(column))")),
        Expr::Function(call) => {
            let name = match call.name.0.as_slice() {
                [ObjectNamePart::Identifier(Ident { value, .. })] => value.clone(),
                _ => call.name.to_string(),
            };
            if name.eq_ignore_ascii_case("count") {
                return Err(unsupported(&call.to_string()));
            }
            let function: Function = name.parse().map_err(|_| unknown(&name))?;
            let plain = call.over.is_none() && call.filter.is_none() && call.within_group.is_empty();
            let argument = argument(&Expr::Function(call.clone())).cloned();
            match (plain, argument) {
                (true, Some(argument)) => Ok(Ok((function, argument))),
                _ => Err(Error::invalid(format!("expected {function}(column), found {call}"))),
            }
        }
        other => Ok(Err(other)),
    }
}

fn unknown(name: &str) -> Error {
    let hint = nearest(&name.to_ascii_lowercase(), ["trim", "lower", "nfkc", "count"].into_iter());
    Error::new(
        ErrorKind::Unsupported,
        format!("the function {name} is not supported{hint}: there are trim(x), lower(x), nfkc(x) and COUNT(*)"),
    )
}

/// Reads a column, perhaps under functions; `place` says where it stands.
pub(super) fn operand(expression: Expr, place: &str) -> Result<ParsedOperand> {
    let mut functions = Vec::new();
    let mut inner = unwrapped(expression);
    loop {
        match call(inner)? {
            Ok((function, argument)) => {
                functions.push(function);
                inner = unwrapped(argument);
            }
            Err(column) => {
                functions.reverse();
                return Ok(ParsedOperand { name: column_name(column, place)?, functions });
            }
        }
    }
}

fn column_name(expression: Expr, place: &str) -> Result<String> {
    match expression {
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

/// Reads a literal. Functions of a text are applied.
pub(super) fn literal(expression: Expr) -> Result<Literal> {
    let expression = match call(unwrapped(expression))? {
        Ok((function, argument)) => return applied(function, literal(argument)?),
        Err(other) => other,
    };
    match expression {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) => {
                Ok(Literal::Text(text))
            }
            Value::DollarQuotedString(quoted) => Ok(Literal::Text(quoted.value)),
            Value::HexStringLiteral(hex) => bytes(&hex).map(Literal::Bytes),
            Value::Number(number, _) => Ok(Literal::Number(number)),
            Value::Boolean(value) => Ok(Literal::Bool(value)),
            Value::Null => Ok(Literal::Null),
            Value::Placeholder(name) => parameter(&name),
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
        // `TIMESTAMP '2026-12-01T00:00:00Z'`: the column says the same.
        Expr::TypedString(typed) if is_time(&typed.data_type) => literal(Expr::Value(typed.value)),
        Expr::Identifier(name) => Err(Error::invalid(format!(
            "expected a value, found the name {name}: text stands in single quotes, like {}",
            Literal::Text(name.value.clone())
        ))),
        Expr::Subquery(_) => Err(unsupported("a subquery")),
        other => Err(unsupported(&format!("{other}, where a value is expected,"))),
    }
}

fn is_time(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(..) | DataType::Date)
}

fn applied(function: Function, literal: Literal) -> Result<Literal> {
    match literal {
        Literal::Text(text) => Ok(Literal::Text(function.apply(&text).into_owned())),
        Literal::Null => Ok(Literal::Null),
        Literal::Parameter(number, mut functions) => {
            functions.push(function);
            Ok(Literal::Parameter(number, functions))
        }
        other => Err(Error::invalid(format!("{function}(…): expected text in single quotes, found {other}"))),
    }
}

fn parameter(name: &str) -> Result<Literal> {
    match name.strip_prefix('$').and_then(|number| number.parse().ok()) {
        Some(number @ 1..=MAX_PARAMETERS) => Ok(Literal::Parameter(number, Vec::new())),
        _ => Err(unsupported(&format!("the parameter {name} (write $1, $2, … up to ${MAX_PARAMETERS})"))),
    }
}

/// The largest number of a parameter, as in PostgreSQL's protocol.
const MAX_PARAMETERS: usize = 65_535;

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
