//! `verify`: does the index say what the base table says?

use super::args::{Format, Global, VerifyArgs};
use super::output::{self, count, plural};
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::model::escaped;
use crate::store::{Scan, count_rows};
use crate::verify::{self, Options, Report};
use serde_json::{Value, json};

pub async fn run(global: &Global, args: &VerifyArgs) -> Result<()> {
    let session = Session::open(global).await?;
    let tables = match &args.table {
        Some(table) => vec![table.clone()],
        None => session.catalog.list_tables().await?,
    };
    let options = Options {
        index: args.index.clone(),
        repair: args.repair,
        limit_reported: args.limit_reported,
        rows_per_second: args.rate,
    };
    let mut wrong = Vec::new();
    for table in &tables {
        let report = verified(global, &session, table, &options).await?;
        print(global, table, &report)?;
        let mut left = report.wrong();
        if report.repaired > 0 {
            // What was written is not taken on trust.
            let again = Options { repair: false, ..options.clone() };
            let report = verified(global, &session, table, &again).await?;
            print(global, table, &report)?;
            left = report.wrong();
        }
        if left > 0 {
            wrong.push(format!("{} of table {table}", plural(left, "entry", "entries")));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let advice = if args.repair { "" } else { "; `verify --repair` writes them anew" };
    Err(Error::new(ErrorKind::Inconsistent, format!("wrong: {}{advice}", wrong.join(", "))))
}

async fn verified(global: &Global, session: &Session, table: &str, options: &Options) -> Result<Report> {
    // Once over everything; rows in doubt are read again, which takes no time worth showing unless much is wrong.
    let bar = output::bar(global, table, 0, false);
    let of = if bar.is_hidden() { 0 } else { rows_and_entries(session, table).await? };
    let store = session.embedded("`verify`")?;
    let report = verify::verify(&session.catalog, store, table, options, |p| {
        bar.set_length(of.max(p.done));
        bar.set_position(p.done);
        if p.wrong > 0 {
            bar.set_message(format!("{} wrong", count(p.wrong)));
        }
    })
    .await;
    bar.finish_and_clear();
    report
}

async fn rows_and_entries(session: &Session, table: &str) -> Result<u64> {
    let schema = session.catalog.table(table).await?;
    Ok(count_rows(&*session.store, table, Scan::all()).await?
        + count_rows(&*session.store, &schema.index_table(), Scan::all()).await?)
}

fn print(global: &Global, table: &str, report: &Report) -> Result<()> {
    if global.format != Format::Table {
        return output::records(global, &[object(table, report)]);
    }
    if !report.findings.is_empty() {
        let mut list = output::table(&["wrong", "index", "values", "row"]);
        for finding in &report.findings {
            let values = if finding.values.is_empty() { escaped(&finding.entry) } else { finding.values.join(", ") };
            list.add_row([
                finding.class.to_string(),
                finding.index.clone().unwrap_or_default(),
                output::plain(&values),
                output::plain(&finding.row.as_ref().map(|row| escaped(row)).unwrap_or_default()),
            ]);
        }
        output::line(&list.to_string())?;
        let more = report.wrong().saturating_sub(report.findings.len() as u64);
        if more > 0 {
            output::line(&format!("… and {} more", count(more)))?;
        }
        output::line("")?;
    }
    let mut list = output::table(&[
        "index",
        "entries",
        "missing",
        "outdated",
        "wrong covered",
        "undecodable",
        "disputed",
        "unindexable",
    ]);
    for (name, c) in &report.indexes {
        let numbers =
            [c.expected, c.missing, c.outdated, c.wrong_covered, c.undecodable, c.disputed, c.unindexable].map(count);
        list.add_row(std::iter::once(name.clone()).chain(numbers));
    }
    output::line(&list.to_string())?;
    output::line(&sentence(table, report))
}

fn sentence(table: &str, report: &Report) -> String {
    let mut parts = vec![format!(
        "table {table}: {} and {} in {}, {} a second, as of change {} of {}",
        plural(report.rows, "row", "rows"),
        plural(report.entries, "entry", "entries"),
        output::time(report.elapsed),
        count(report.rows_per_second() as u64),
        count(report.applied),
        count(report.changes)
    )];
    parts.push(match report.wrong() {
        0 => "nothing wrong".to_owned(),
        n => format!("{} wrong", plural(n, "entry", "entries")),
    });
    let counted = [
        (report.unknown, "of no definition"),
        (report.repaired, "repaired"),
        (report.changing, "left alone, their rows are changing: verify again"),
        (report.unrepairable, "beyond repair: drop the index and create it again"),
    ];
    parts.extend(counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))));
    if report.pending > 0 {
        parts.push(format!(
            "{} left out: not applied yet, `apply` brings them in",
            plural(report.pending, "row", "rows")
        ));
    }
    if !report.cleared.is_empty() {
        parts.push(format!("no longer degraded: {}", report.cleared.join(", ")));
    }
    parts.join("; ")
}

fn object(table: &str, report: &Report) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|f| {
            json!({
                "class": f.class, "index": f.index, "values": f.values,
                "row": f.row.as_ref().map(|row| escaped(row)), "entry": f.entry.escape_ascii().to_string(),
            })
        })
        .collect();
    json!({
        "table": table, "applied": report.applied, "changes": report.changes,
        "rows": report.rows, "entries": report.entries, "pending": report.pending,
        "wrong": report.wrong(), "unknown": report.unknown,
        "repaired": report.repaired, "changing": report.changing, "unrepairable": report.unrepairable,
        "cleared": report.cleared, "indexes": report.indexes, "findings": findings,
        "seconds": report.elapsed.as_secs_f64(), "rows_per_second": report.rows_per_second(),
    })
}
