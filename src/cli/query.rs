//! `query`: answer SQL.

use super::args::{Format, Global, QueryArgs};
use super::csv;
use super::output::{self, count};
use super::session::Session;
use crate::error::{Error, Result};
use crate::query::{self, Actuals, Considered, Literal, Mode, Options, Paging, Prepared, ResultRow, TokenKey};
use crate::schema::{AttributeValue, TableSchema};
use crate::source::Lag;
use crate::store::Read;
use serde_json::Value;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub async fn run(global: &Global, args: &QueryArgs) -> Result<()> {
    let parsed = query::parse(&args.sql)?;
    let session = Session::open(global).await?;
    let table = &parsed.table;
    let schema = session.catalog.table(table).await?;
    if let Some(token) = &args.fresh_after {
        token.check(&session.changes, table)?;
        // No other process has the store open, so nobody else applies anything.
        session.apply(table, |_| {}).await?;
        token.wait(&session.changes, table, Duration::ZERO).await?;
    }
    let options = options(global, args, &session).await?;
    let reader: Arc<dyn Read> = session.store.clone();
    // Taken before the first entry is read: what the answer is as of, at the least.
    let before = session.changes.lag(table).await?;
    let prepared = query::prepare(&*reader, &schema, &parsed, &options).await?;
    match prepared.mode() {
        Mode::Explain => explain(global, &prepared, None),
        Mode::Analyze => {
            let (actuals, _) = answer(reader, &prepared, |_| Ok(())).await?;
            explain(global, &prepared, Some(actuals))
        }
        Mode::Run => {
            let mut out = Printer::new(global.format, prepared.columns());
            let (actuals, next) = answer(reader, &prepared, |page| out.take(page)).await?;
            out.finish()?;
            let lag = before.until(session.changes.lag(table).await?);
            let as_of = as_of(lag, &degraded(&schema, &prepared.explain().considered));
            match global.format {
                Format::Table => output::line(&footer(&actuals, options.consistency, &as_of))?,
                // The answer holds rows and nothing else; what must be known of it goes beside it.
                Format::Json | Format::Csv if as_of != UP_TO_DATE => eprintln!("warning: the answer is {as_of}"),
                Format::Json | Format::Csv => {}
            }
            if let Some(token) = next {
                next_page(global, &token)?;
            }
            if args.analyze {
                analyze(global, &prepared, actuals)?;
            }
            Ok(())
        }
    }
}

async fn options(global: &Global, args: &QueryArgs, session: &Session) -> Result<Options> {
    let settings = &global.loaded.config.query;
    let paging = match args.page_size {
        Some(size) => {
            let key = TokenKey::of_store(&*session.store).await?;
            Some(Paging { size, after: args.after.clone(), key })
        }
        None => None,
    };
    let limit = args.timeout.map(Duration::from_secs).or(settings.time_limit.0);
    Ok(Options {
        consistency: args.consistency.unwrap_or(settings.consistency).into(),
        allow_scan: args.allow_scan || settings.allow_scan,
        estimate: args.analyze,
        parameters: args.parameters.iter().cloned().map(Literal::Untyped).collect(),
        memory: args.memory.map_or(settings.memory_limit.bytes(), |mib| mib << 20),
        deadline: limit.and_then(|limit| Instant::now().checked_add(limit)),
        paging,
    })
}

/// Runs a prepared query, page by page; what it took, and the token of the next page, if there is one.
pub async fn answer(
    reader: Arc<dyn Read>,
    prepared: &Prepared,
    mut page: impl FnMut(Vec<ResultRow>) -> Result<()>,
) -> Result<(Actuals, Option<String>)> {
    let mut cursor = prepared.cursor(reader);
    while let Some(rows) = cursor.next_page().await? {
        page(rows)?;
    }
    Ok((cursor.actuals(), cursor.token()))
}

/// Says how to go on: for programs on standard error, so that the answer holds rows and nothing else.
fn next_page(global: &Global, token: &str) -> Result<()> {
    match global.format {
        Format::Table => output::line(&format!("next page: --after {token}")),
        Format::Json | Format::Csv => {
            eprintln!("{}", serde_json::json!({ "next": token }));
            Ok(())
        }
    }
}

/// Prints an answer as it comes. A table is laid out for the rows at hand, up to [`Printer::LAID_OUT`] of them; its header is
/// printed once.
struct Printer {
    out: BufWriter<std::io::Stdout>,
    format: Format,
    columns: Vec<String>,
    rows: Vec<ResultRow>,
    started: bool,
}

impl Printer {
    const LAID_OUT: usize = 1_000;

    fn new(format: Format, columns: &[String]) -> Self {
        let out = BufWriter::new(std::io::stdout());
        Self { out, format, columns: columns.to_vec(), rows: Vec::new(), started: false }
    }

    fn take(&mut self, page: Vec<ResultRow>) -> Result<()> {
        match self.format {
            Format::Json => {
                for row in page {
                    serde_json::to_writer(&mut self.out, &row.to_json(&self.columns))
                        .map_err(|e| Error::from(std::io::Error::from(e)))?;
                    self.out.write_all(b"\n")?;
                }
            }
            Format::Csv => {
                self.header()?;
                for row in page {
                    let values: Vec<Value> =
                        row.values.iter().map(|v| v.as_ref().map_or(Value::Null, |v| v.to_json())).collect();
                    self.out.write_all(csv::record(&values).as_bytes())?;
                }
            }
            Format::Table => {
                self.rows.extend(page);
                if self.rows.len() >= Self::LAID_OUT {
                    self.table()?;
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        match self.format {
            Format::Csv => self.header()?,
            Format::Table if !self.rows.is_empty() => self.table()?,
            Format::Table | Format::Json => {}
        }
        Ok(self.out.flush()?)
    }

    /// The CSV header, before the first record; an empty answer has it too.
    fn header(&mut self) -> Result<()> {
        if !self.started {
            self.out.write_all(csv::header(self.columns.iter().map(String::as_str)).as_bytes())?;
            self.started = true;
        }
        Ok(())
    }

    fn table(&mut self) -> Result<()> {
        let header: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let mut table = output::table(&header);
        for row in self.rows.drain(..) {
            table.add_row(row.values.iter().map(|v| v.as_ref().map_or_else(String::new, |v| output::plain(&shown(v)))));
        }
        let text = table.to_string();
        let rows = if self.started { text.split_inclusive('\n').skip(2).collect() } else { text };
        writeln!(self.out, "{rows}")?;
        self.started = true;
        Ok(())
    }
}

/// A value in a table. An array is shown as JSON: its elements may have commas and spaces in them.
fn shown(value: &AttributeValue) -> String {
    match value {
        AttributeValue::One(value) => value.to_string(),
        AttributeValue::Many(_) => value.to_json().to_string(),
    }
}

const UP_TO_DATE: &str = "up to date";

/// How far the indexes were, and which of those that answered are not to be trusted fully.
fn as_of(lag: Lag, degraded: &[String]) -> String {
    let mut text = match lag {
        Lag { waiting: 0, .. } => UP_TO_DATE.to_owned(),
        Lag { applied: Some(applied), waiting } => format!(
            "indexes at change {} of {}, rows changed since may be missing",
            count(applied),
            count(applied + waiting)
        ),
        Lag { applied: None, waiting } => format!(
            "{} not in the indexes yet, rows changed by them may be missing",
            output::plural(waiting, "intent is", "intents are")
        ),
    };
    if !degraded.is_empty() {
        text.push_str(&format!("; degraded, with rows in quarantine: {}", degraded.join(", ")));
    }
    text
}

/// The degraded ones of the definitions that answer.
fn degraded(schema: &TableSchema, considered: &[Considered]) -> Vec<String> {
    let mut names = Vec::new();
    for way in considered.iter().filter(|way| way.chosen) {
        let definition = way.definition.as_ref().and_then(|name| schema.definition(name)).filter(|d| d.degraded);
        names.extend(definition.map(|d| d.name.clone()));
        names.extend(degraded(schema, &way.parts));
    }
    names.sort();
    names.dedup();
    names
}

fn footer(actuals: &Actuals, consistency: query::Consistency, as_of: &str) -> String {
    format!(
        "{} in {}, {consistency}, {as_of}",
        output::plural(actuals.returned, "row", "rows"),
        output::time(actuals.elapsed)
    )
}

fn explain(global: &Global, prepared: &Prepared, actuals: Option<Actuals>) -> Result<()> {
    let explain = prepared.explain();
    let explain = match actuals {
        Some(actuals) => explain.with_actual(actuals),
        None => explain,
    };
    output::done(global, &explain.to_string(), &explain)
}

/// On standard error, so that the answer stays what it is.
fn analyze(global: &Global, prepared: &Prepared, actuals: Actuals) -> Result<()> {
    let explain = prepared.explain().with_actual(actuals);
    match global.format {
        Format::Table => eprintln!("\n{explain}"),
        Format::Json | Format::Csv => {
            let text = serde_json::to_string(&explain).map_err(|e| Error::invalid(e.to_string()).with_source(e))?;
            eprintln!("{text}");
        }
    }
    Ok(())
}
