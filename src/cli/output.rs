//! Printing for people and for programs.

use super::args::{Format, Global};
use super::csv;
use crate::error::{Error, ErrorKind, Result};
pub use crate::query::grouped as count;
use comfy_table::{LineStyle, Table, TableStyle};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Prints one JSON object on a line of its own.
pub fn json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value).map_err(|e| Error::invalid(e.to_string()).with_source(e))?;
    line(&text)
}

/// Prints a line. Unlike `println!`, a closed pipe is an error that can be told apart.
pub fn line(text: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}

/// A line under the header and nothing else: rows stay greppable.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table with a header.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header.iter().copied());
    table
}

/// Prints what was done: a sentence for people, an object for programs.
pub fn done(global: &Global, sentence: &str, object: &impl Serialize) -> Result<()> {
    done_as(global.format, sentence, object)
}

/// As [`done`], in a format that is known before the settings are.
pub fn done_as(format: Format, sentence: &str, object: &impl Serialize) -> Result<()> {
    match format {
        Format::Table => line(sentence),
        Format::Json => json(object),
        Format::Csv => csv_record(&to_value(object)?),
    }
}

/// Prints objects for programs: one JSON object on a line, or a CSV record each.
pub fn records(global: &Global, objects: &[Value]) -> Result<()> {
    match global.format {
        Format::Csv => objects.iter().try_for_each(csv_record),
        Format::Table | Format::Json => objects.iter().try_for_each(json),
    }
}

/// The columns of the CSV records printed last: their header is printed once.
static COLUMNS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn csv_record(object: &Value) -> Result<()> {
    let Value::Object(members) = object else {
        return Err(Error::new(ErrorKind::Internal, format!("expected an object to print, found {object}")));
    };
    let mut text = String::new();
    let mut columns = COLUMNS.lock().unwrap_or_else(PoisonError::into_inner);
    if !columns.iter().eq(members.keys()) {
        text.push_str(&csv::header(members.keys().map(String::as_str)));
        *columns = members.keys().cloned().collect();
    }
    text.push_str(&csv::record(members.values()));
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

fn to_value(object: &impl Serialize) -> Result<Value> {
    serde_json::to_value(object).map_err(|e| Error::invalid(e.to_string()).with_source(e))
}

/// A text without control characters, which could break a row in two or steer a terminal.
pub fn plain(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// `1 row`, `2 rows`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A duration in the unit people would use.
pub fn time(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1e3;
    if ms < 10.0 {
        format!("{ms:.2} ms")
    } else if ms < 1000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.1} s", ms / 1e3)
    }
}

/// A progress bar on standard error; hidden when nobody looks. `unit` is what `of` counts: "bytes" are shown as such.
pub fn bar(global: &Global, what: &str, of: u64, bytes: bool) -> ProgressBar {
    if global.quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let numbers = if bytes { "{bytes:>10} of {total_bytes}" } else { "{human_pos:>10} of {human_len}" };
    let template = format!("{{prefix:16}} [{{bar:32}}] {numbers}  {{msg}}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(of).with_style(style.progress_chars("━╸ ")).with_prefix(what.to_owned())
}
