//! What is said of SQL that does not parse.

use crate::error::Error;
use sqlparser::parser::ParserError;

/// The most characters of a line that are shown.
const SHOWN: usize = 100;

/// The error for text that is no SQL: what was expected, and the line with a caret under the place.
pub(super) fn not_sql(error: &ParserError, sql: &str) -> Error {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message.as_str(),
        ParserError::RecursionLimitExceeded => "parentheses or operators are nested too deeply",
    };
    let (message, place) = split(message);
    let mut text = format!("the SQL does not parse: {}", lowered(message));
    // Without a place it is the end that surprised.
    let place = match (error, place) {
        (ParserError::RecursionLimitExceeded, _) => None,
        (_, None) => Some(end(sql)),
        (_, place) => place,
    };
    if let Some((line, column)) = place {
        text.push_str(&format!(" at line {line}, column {column}\n{}", pointed(sql, line, column)));
    }
    Error::invalid(text)
}

/// Takes the place, which sqlparser writes at the end of its messages, from a message.
fn split(message: &str) -> (&str, Option<(usize, usize)>) {
    let place = || {
        let (before, place) = message.rsplit_once(" at Line: ")?;
        let (line, column) = place.split_once(", Column: ")?;
        Some((before, (line.trim().parse().ok()?, column.trim().parse().ok()?)))
    };
    match place() {
        Some((before, place)) => (before, Some(place)),
        None => (message, None),
    }
}

fn lowered(message: &str) -> String {
    match message.strip_prefix("Expected: ") {
        Some(rest) => {
            format!("expected {}", rest.replace(", found: ", ", found ").replace("found EOF", "found the end"))
        }
        None => message.to_owned(),
    }
}

/// The place after the last word.
fn end(sql: &str) -> (usize, usize) {
    let text = sql.trim_end();
    let line = text.lines().count().max(1);
    (line, text.lines().next_back().map_or(0, |l| l.chars().count()) + 1)
}

/// A line of the text and a caret under one of its columns, both counted from 1. Of a long line a part is shown.
fn pointed(sql: &str, line: usize, column: usize) -> String {
    let characters: Vec<char> = sql.lines().nth(line.saturating_sub(1)).unwrap_or_default().chars().collect();
    let at = column.saturating_sub(1).min(characters.len());
    let from = if characters.len() <= SHOWN { 0 } else { at.saturating_sub(SHOWN / 2) };
    let to = (from + SHOWN).min(characters.len());
    let before = if from > 0 { "…" } else { "" };
    let after = if to < characters.len() { "…" } else { "" };
    // A tab would take the caret astray.
    let shown: String = characters[from..to].iter().map(|c| if c.is_control() { ' ' } else { *c }).collect();
    let indent = at - from + before.chars().count();
    format!("  {before}{shown}{after}\n  {:indent$}^", "")
}
