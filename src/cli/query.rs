//! `query`: answer SQL.

use super::args::{Consistency, Format, Global, QueryArgs};
use super::output::{self, count};
use super::session::Session;
use crate::error::{Error, Result};
use crate::query::{self, Actuals, Considered, Literal, Mode, Options, Paging, Prepared, ResultRow, TokenKey};
use crate::schema::TableSchema;
use crate::source;
use crate::store::Read;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub async fn run(global: &Global, args: &QueryArgs) -> Result<()> {
    let parsed = query::parse(&args.sql)?;
    let session = Session::open(global).await?;
    let table = &parsed.table;
    let schema = session.catalog.table(table).await?;
    let options = options(args, &session).await?;
    // Taken before the first entry is read: what the answer is as of, at the least.
    let applied = source::applied(&session.store, table).await?;
    let prepared = query::prepare(&session.store, &schema, &parsed, &options).await?;
    match prepared.mode() {
        Mode::Explain => explain(global, &prepared, None),
        Mode::Analyze => {
            let (actuals, _) = answer(&session, &prepared, |_| Ok(())).await?;
            explain(global, &prepared, Some(actuals))
        }
        Mode::Run => {
            let mut out = Printer::new(global.format, prepared.columns());
            let (actuals, next) = answer(&session, &prepared, |page| out.take(page)).await?;
            out.finish()?;
            let as_of =
                as_of(applied, session.store.log_head(table)?, &degraded(&schema, &prepared.explain().considered));
            match global.format {
                Format::Table => output::line(&footer(&actuals, options.consistency, &as_of))?,
                // The answer holds rows and nothing else; what must be known of it goes beside it.
                Format::Json if as_of != UP_TO_DATE => eprintln!("warning: the answer is {as_of}"),
                Format::Json => {}
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

async fn options(args: &QueryArgs, session: &Session) -> Result<Options> {
    let consistency = match args.consistency {
        Consistency::Verified => query::Consistency::Verified,
        Consistency::Indexed => query::Consistency::Indexed,
    };
    let paging = match args.page_size {
        Some(size) => {
            let key = TokenKey::of_store(&session.store).await?;
            Some(Paging { size, after: args.after.clone(), key })
        }
        None => None,
    };
    Ok(Options {
        consistency,
        allow_scan: args.allow_scan,
        estimate: args.analyze,
        parameters: args.parameters.iter().cloned().map(Literal::Untyped).collect(),
        memory: args.memory << 20,
        deadline: args.timeout.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds))),
        paging,
    })
}

/// Runs a prepared query, page by page; what it took, and the token of the next page, if there is one.
pub async fn answer(
    session: &Session,
    prepared: &Prepared,
    mut page: impl FnMut(Vec<ResultRow>) -> Result<()>,
) -> Result<(Actuals, Option<String>)> {
    let mut cursor = prepared.cursor(Arc::new(session.store.clone()) as Arc<dyn Read>);
    while let Some(rows) = cursor.next_page().await? {
        page(rows)?;
    }
    Ok((cursor.actuals(), cursor.token()))
}

/// Says how to go on: for programs on standard error, so that the answer holds rows and nothing else.
fn next_page(global: &Global, token: &str) -> Result<()> {
    match global.format {
        Format::Table => output::line(&format!("next page: --after {token}")),
        Format::Json => {
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
        if !self.rows.is_empty() {
            self.table()?;
        }
        Ok(self.out.flush()?)
    }

    fn table(&mut self) -> Result<()> {
        let header: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let mut table = output::table(&header);
        for row in self.rows.drain(..) {
            table.add_row(
                row.values.iter().map(|v| v.as_ref().map_or_else(String::new, |v| output::plain(&v.to_string()))),
            );
        }
        let text = table.to_string();
        let rows = if self.started { text.split_inclusive('\n').skip(2).collect() } else { text };
        writeln!(self.out, "{rows}")?;
        self.started = true;
        Ok(())
    }
}

const UP_TO_DATE: &str = "up to date";

/// How far the indexes were, and which of those that answered are not to be trusted fully.
fn as_of(applied: u64, head: u64, degraded: &[String]) -> String {
    let mut text = if applied >= head {
        UP_TO_DATE.to_owned()
    } else {
        format!("indexes at change {} of {}, rows changed since may be missing", count(applied), count(head))
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
        Format::Json => {
            let text = serde_json::to_string(&explain).map_err(|e| Error::invalid(e.to_string()).with_source(e))?;
            eprintln!("{text}");
        }
    }
    Ok(())
}
