//! `query`: answer SQL.

use super::args::{Consistency, Format, Global, QueryArgs};
use super::output::{self, count};
use super::session::Session;
use crate::error::{Error, Result};
use crate::query::{self, Actuals, Mode, Options, Prepared, ResultRow};
use crate::source;
use crate::store::Read;
use std::io::{BufWriter, Write};
use std::sync::Arc;

pub async fn run(global: &Global, args: &QueryArgs) -> Result<()> {
    let parsed = query::parse(&args.sql)?;
    let session = Session::open(global).await?;
    let table = &parsed.table;
    let schema = session.catalog.table(table).await?;
    let options = options(args);
    // Taken before the first entry is read: what the answer is as of, at the least.
    let applied = source::applied(&session.store, table).await?;
    let prepared = query::prepare(&session.store, &schema, &parsed, &options).await?;
    match prepared.mode() {
        Mode::Explain => explain(global, &prepared, None),
        Mode::Analyze => {
            let actuals = answer(&session, &prepared, |_| Ok(())).await?;
            explain(global, &prepared, Some(actuals))
        }
        Mode::Run => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            let columns = prepared.columns().to_vec();
            let actuals = answer(&session, &prepared, |page| print(global, &mut out, &columns, &page)).await?;
            out.flush()?;
            drop(out);
            if global.format == Format::Table {
                let head = session.store.log_head(table)?;
                output::line(&footer(&actuals, options.consistency, applied, head))?;
            }
            if args.analyze {
                analyze(global, &prepared, actuals)?;
            }
            Ok(())
        }
    }
}

fn options(args: &QueryArgs) -> Options {
    let consistency = match args.consistency {
        Consistency::Verified => query::Consistency::Verified,
        Consistency::Indexed => query::Consistency::Indexed,
    };
    Options { consistency, allow_scan: args.allow_scan, estimate: args.analyze }
}

/// Runs a prepared query, page by page.
pub async fn answer(
    session: &Session,
    prepared: &Prepared,
    mut page: impl FnMut(Vec<ResultRow>) -> Result<()>,
) -> Result<Actuals> {
    let mut cursor = prepared.cursor(Arc::new(session.store.clone()) as Arc<dyn Read>);
    while let Some(rows) = cursor.next_page().await? {
        page(rows)?;
    }
    Ok(cursor.actuals())
}

fn print(global: &Global, out: &mut impl Write, columns: &[String], page: &[ResultRow]) -> Result<()> {
    if page.is_empty() {
        return Ok(());
    }
    match global.format {
        Format::Json => {
            for row in page {
                serde_json::to_writer(&mut *out, &row.to_json(columns))
                    .map_err(|e| Error::from(std::io::Error::from(e)))?;
                out.write_all(b"\n")?;
            }
        }
        Format::Table => {
            let header: Vec<&str> = columns.iter().map(String::as_str).collect();
            let mut table = output::table(&header);
            for row in page {
                table.add_row(row.values.iter().map(|v| v.as_ref().map_or_else(String::new, ToString::to_string)));
            }
            writeln!(out, "{table}")?;
        }
    }
    Ok(())
}

fn footer(actuals: &Actuals, consistency: query::Consistency, applied: u64, head: u64) -> String {
    let as_of = if applied >= head {
        "up to date".to_owned()
    } else {
        format!("as of change {} of {}", count(applied), count(head))
    };
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
