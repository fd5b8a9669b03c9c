//! Literals take the type of the column they are compared with.

use crate::error::{Action, Error, ErrorKind, Result};
use crate::query::parse::Literal;
use crate::schema::{Attribute, Decimal, Float, ROW_KEY, ScalarType, Value, calendar, encoding, term};
use bytes::Bytes;
use std::borrow::Cow;

fn mismatch(attribute: &Attribute, expected: &str, found: &Literal, advice: &str) -> Error {
    Error::new(
        ErrorKind::WrongType,
        format!("{} is {}: expected {expected}, found {found}{advice}", attribute.name, attribute.kind),
    )
    .with_action(Action::FixConfig)
}

/// The bytes of a row key.
pub(super) fn row_key(literal: &Literal) -> Result<Bytes> {
    match literal {
        Literal::Text(text) | Literal::Untyped(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        Literal::Bytes(bytes) => Ok(Bytes::copy_from_slice(bytes)),
        _ => Err(Error::new(
            ErrorKind::WrongType,
            format!(
                "{ROW_KEY} is the row key: expected text, or bytes like X'00ff', found {literal}; write '{literal}'"
            ),
        )
        .with_action(Action::FixConfig)),
    }
}

/// The term encoding of a literal compared with an attribute.
pub(super) fn encoded(attribute: &Attribute, literal: &Literal) -> Result<Bytes> {
    let literal = &*typed(attribute.kind.scalar, literal);
    let value = match attribute.kind.scalar {
        ScalarType::Text => text(attribute, literal)?,
        ScalarType::Int => int(attribute, literal)?,
        ScalarType::Float => float(attribute, literal)?,
        ScalarType::Bool => match literal {
            Literal::Bool(value) => Value::Bool(*value),
            other => return Err(mismatch(attribute, "TRUE or FALSE", other, "")),
        },
        ScalarType::Decimal => decimal(attribute, literal)?,
        ScalarType::Timestamp => timestamp(attribute, literal)?,
        ScalarType::Bytes => match literal {
            Literal::Bytes(bytes) => Value::Bytes(Bytes::copy_from_slice(bytes)),
            Literal::Untyped(text) => encoding::parse(attribute, text).map_err(|e| e.with_action(Action::FixConfig))?,
            other => return Err(mismatch(attribute, "bytes like X'00ff'", other, "")),
        },
    };
    let mut out = Vec::new();
    term::encode(&value, &mut out);
    Ok(out.into())
}

/// What the encodings of all texts with this prefix start with.
pub(super) fn text_prefix(prefix: &str) -> Vec<u8> {
    let mut encoded = Vec::new();
    term::encode(&Value::Text(prefix.to_owned()), &mut encoded);
    // Without the terminator of two bytes.
    encoded.truncate(encoded.len() - 2);
    encoded
}

/// What an untyped literal is where a type is expected; another literal as it is.
fn typed(expected: ScalarType, literal: &Literal) -> Cow<'_, Literal> {
    let Literal::Untyped(text) = literal else { return Cow::Borrowed(literal) };
    if expected == ScalarType::Bytes {
        return Cow::Borrowed(literal);
    }
    let is_number = || text.parse::<f64>().is_ok_and(f64::is_finite);
    Cow::Owned(match expected {
        ScalarType::Decimal if text.parse::<Decimal>().is_ok() => Literal::Number(text.clone()),
        ScalarType::Int | ScalarType::Float if is_number() => Literal::Number(text.clone()),
        ScalarType::Bool if text.eq_ignore_ascii_case("true") => Literal::Bool(true),
        ScalarType::Bool if text.eq_ignore_ascii_case("false") => Literal::Bool(false),
        _ => Literal::Text(text.clone()),
    })
}

fn text(attribute: &Attribute, literal: &Literal) -> Result<Value> {
    match literal {
        Literal::Text(text) => Ok(Value::Text(text.clone())),
        Literal::Bytes(_) => Err(mismatch(attribute, "text in single quotes", literal, "")),
        other => Err(mismatch(attribute, "text in single quotes", other, &format!("; write '{other}'"))),
    }
}

/// What a quoted literal holds, if it would be right without its quotes.
fn unquoted<T: std::str::FromStr>(literal: &Literal) -> String {
    match literal {
        Literal::Text(text) if text.parse::<T>().is_ok() => format!("; write {text} without quotes"),
        _ => String::new(),
    }
}

fn int(attribute: &Attribute, literal: &Literal) -> Result<Value> {
    let Literal::Number(number) = literal else {
        return Err(mismatch(attribute, "an integer", literal, &unquoted::<i64>(literal)));
    };
    if let Ok(int) = number.parse() {
        return Ok(Value::Int(int));
    }
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        let advice = format!("; the range is {} to {}", i64::MIN, i64::MAX);
        return Err(mismatch(attribute, "a 64-bit integer", literal, &advice));
    }
    Err(mismatch(attribute, "an integer", literal, "; round it, for only float and decimal attributes have fractions"))
}

fn float(attribute: &Attribute, literal: &Literal) -> Result<Value> {
    let number = match literal {
        Literal::Number(number) => number,
        // As JSON has them: there is no number for these.
        Literal::Text(name) if matches!(name.as_str(), "NaN" | "inf" | "-inf") => {
            return name
                .parse()
                .map(|f| Value::Float(Float::new(f)))
                .map_err(|_| mismatch(attribute, "a number", literal, ""));
        }
        _ => return Err(mismatch(attribute, "a number", literal, &unquoted::<f64>(literal))),
    };
    match number.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(Value::Float(Float::new(float))),
        _ => Err(mismatch(attribute, "a 64-bit float", literal, &format!("; the largest is {:e}", f64::MAX))),
    }
}

fn decimal(attribute: &Attribute, literal: &Literal) -> Result<Value> {
    let Literal::Number(number) = literal else {
        return Err(mismatch(attribute, "a number", literal, &unquoted::<Decimal>(literal)));
    };
    let advice = format!("; at most {0} digits before the point and {0} after it", Decimal::MAX_DIGITS);
    number.parse().map(Value::Decimal).map_err(|_| mismatch(attribute, "a decimal", literal, &advice))
}

fn timestamp(attribute: &Attribute, literal: &Literal) -> Result<Value> {
    let read = match literal {
        Literal::Text(text) => calendar::parse(text),
        Literal::Number(number) => number.parse().ok(),
        _ => None,
    };
    read.map(Value::Timestamp).ok_or_else(|| {
        let expected = "a time like '2026-12-01T00:00:00Z', a date like '2026-12-01', or milliseconds since 1970";
        mismatch(attribute, expected, literal, "")
    })
}
