//! `bench`: what the indexes cost and what they gain, on the bundled catalogue, side by side in one run.

mod keeping;

use super::args::{BenchArgs, Format, Global};
use super::demo::{self, PACKAGES, PACKAGES_NAME, TABLE};
use super::load;
use super::output::{self, count};
use super::query::answer;
use super::session::Session;
use crate::config::SETTINGS;
use crate::error::{Error, ErrorKind, Result};
use crate::query::{self, Consistency, Options};
use crate::schema::TableSchema;
use crate::source::file::JsonLines;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Hits of the small lookup.
const HITS: u64 = 20;
/// How often the small lookup is run.
const LOOKUPS: usize = 1_000;

pub async fn run(global: &Global, args: &BenchArgs) -> Result<()> {
    if let Some(indexed) = &args.child {
        return output::json(&measure_load(global, indexed == "with").await?);
    }
    let figures = [loads(global, args.runs)?, lookups(global, args.runs).await?].concat();
    if global.format != Format::Table {
        return figures.iter().try_for_each(|f| output::done(global, "", f));
    }
    let mut table = output::table(&["figure", "median", "of", "goal"]);
    for f in &figures {
        let runs = f.runs.iter().map(|v| shown(*v)).collect::<Vec<_>>().join(", ");
        table.add_row([f.figure.clone(), format!("{} {}", shown(f.median), f.unit), runs, f.goal.to_owned()]);
    }
    output::line(&table.to_string())
}

/// One line of the result.
#[derive(Clone, Serialize)]
struct Figure {
    figure: String,
    median: f64,
    unit: &'static str,
    runs: Vec<f64>,
    goal: &'static str,
}

fn figure(figure: &str, unit: &'static str, goal: &'static str, runs: Vec<f64>) -> Figure {
    Figure { figure: figure.to_owned(), median: median(&runs), unit, runs, goal }
}

/// One load of the catalogue, measured in a process of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Load {
    seconds: f64,
    rows: u64,
    entries: u64,
    /// Largest resident set so far, in MiB.
    peak: f64,
}

async fn measure_load(global: &Global, indexed: bool) -> Result<Load> {
    let dir = tempfile::tempdir()?;
    let session = Session::create(global, dir.path()).await?;
    demo::create(&session).await?;
    if indexed {
        demo::define(&session).await?;
    }
    let lines = JsonLines::bundled(PACKAGES_NAME, PACKAGES)?;
    let loaded = load::load(global, &session, TABLE, lines, true).await?;
    Ok(Load {
        seconds: loaded.elapsed.as_secs_f64(),
        rows: loaded.rows,
        entries: loaded.applied.map_or(0, |c| c.entry_writes),
        peak: peak_memory()?,
    })
}

/// Loads without and with indexes in turn.
fn loads(global: &Global, runs: u32) -> Result<Vec<Figure>> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for run in 1..=runs {
        if !global.quiet {
            eprintln!("load {run} of {runs}, without and with indexes");
        }
        without.push(child(global, "without")?);
        with.push(child(global, "with")?);
    }
    let seconds = |loads: &[Load]| loads.iter().map(|l| l.seconds).collect::<Vec<f64>>();
    let extra = without.iter().zip(&with).map(|(a, b)| (b.seconds - a.seconds) / a.seconds).collect();
    let rate = with.iter().map(|l| l.entries as f64 / l.seconds).collect();
    let peak = with.iter().map(|l| l.peak).collect();
    let rows = without.first().map_or(0, |l| l.rows);
    let entries = with.first().map_or(0, |l| l.entries);
    Ok(vec![
        figure(&format!("load of {} rows, no index", count(rows)), "s", "", seconds(&without)),
        figure(&format!("load with 5 indexes, {} entries", count(entries)), "s", "", seconds(&with)),
        figure("extra cost of the indexes, (with − without) / without", "", "≤ 1.5", extra),
        figure("entries kept during the load", "/s", "≥ 40,000", rate),
        figure("peak resident memory of the load with indexes", "MiB", "", peak),
    ])
}

fn child(global: &Global, what: &str) -> Result<Load> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(["bench", "--child", what, "--quiet", "--format", "json"]);
    let mut config = global.loaded.config.clone();
    for setting in SETTINGS.iter().filter(|s| s.section() == "store") {
        // The child is to have the same store, whatever set it.
        if let Some(Value::String(text)) = setting.slot(&mut config).shown().and_then(|v| serde_json::from_str(&v).ok())
        {
            command.env(setting.variable(), text);
        }
    }
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    serde_json::from_slice(&output.stdout)
        .map_err(|e| Error::new(ErrorKind::Internal, format!("a measured load failed ({}): {e}", output.status)))
}

async fn lookups(global: &Global, runs: u32) -> Result<Vec<Figure>> {
    if !global.quiet {
        eprintln!("lookups");
    }
    let dir = tempfile::tempdir()?;
    let session = Session::create(global, dir.path()).await?;
    demo::create(&session).await?;
    demo::define(&session).await?;
    load::load(global, &session, TABLE, JsonLines::bundled(PACKAGES_NAME, PACKAGES)?, true).await?;
    let schema = session.catalog.table(TABLE).await?;
    let bare = schema.with_definitions(Vec::new());
    let source = value_with_hits(&session, &schema).await?;
    let small = format!("SELECT id FROM packages WHERE source = '{source}'");
    let large = "SELECT id FROM packages WHERE depends = 'libc6'";
    let verified = Options::default();
    let indexed = Options { consistency: Consistency::Indexed, ..verified.clone() };
    let scanned = Options { allow_scan: true, ..verified.clone() };
    let (mut p50, mut p99, mut p50_indexed, mut scans, mut ratio) = (vec![], vec![], vec![], vec![], vec![]);
    let (mut rate, mut rate_verified) = (vec![], vec![]);
    for _ in 0..runs {
        let mut times = Vec::with_capacity(LOOKUPS);
        let mut times_indexed = Vec::with_capacity(LOOKUPS);
        for _ in 0..LOOKUPS {
            times.push(timed(&session, &schema, &small, &verified).await?.1.as_secs_f64() * 1e3);
            times_indexed.push(timed(&session, &schema, &small, &indexed).await?.1.as_secs_f64() * 1e3);
        }
        let (hits, scan) = timed(&session, &bare, &small, &scanned).await?;
        if hits != HITS {
            return Err(Error::new(ErrorKind::Internal, format!("{small}: expected {HITS} rows, found {hits}")));
        }
        scans.push(scan.as_secs_f64() * 1e3);
        ratio.push(scan.as_secs_f64() * 1e3 / median(&times));
        p50.push(median(&times));
        p99.push(quantile(&times, 0.99));
        p50_indexed.push(median(&times_indexed));
        let (rows, took) = timed(&session, &schema, large, &indexed).await?;
        rate.push(rows as f64 / took.as_secs_f64());
        let (rows, took) = timed(&session, &schema, large, &verified).await?;
        rate_verified.push(rows as f64 / took.as_secs_f64());
    }
    let mut figures = vec![
        figure(&format!("lookup of {HITS} rows, verified, p50"), "ms", "< 1", p50),
        figure(&format!("lookup of {HITS} rows, verified, p99"), "ms", "", p99),
        figure(&format!("lookup of {HITS} rows, indexed, p50"), "ms", "", p50_indexed),
        figure("the same by a filtered scan", "ms", "", scans),
        figure("scan / verified lookup", "×", "", ratio),
        figure("depends = 'libc6', indexed", "rows/s", "≥ 500,000", rate),
        figure("depends = 'libc6', verified", "rows/s", "", rate_verified),
    ];
    figures.extend(keeping::keeping(&session, runs).await?);
    Ok(figures)
}

/// A value of `source` that exactly [`HITS`] rows have.
async fn value_with_hits(session: &Session, schema: &TableSchema) -> Result<String> {
    let parsed = query::parse("SELECT source FROM packages")?;
    let options = Options { allow_scan: true, ..Options::default() };
    let prepared = query::prepare(&*session.store, schema, &parsed, &options).await?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    answer(session.store.clone(), &prepared, |page| {
        for value in page.iter().filter_map(|row| row.values.first()).flatten() {
            *counts.entry(value.to_string()).or_default() += 1;
        }
        Ok(())
    })
    .await?;
    counts.into_iter().find(|(name, n)| *n == HITS && !name.contains('\'')).map(|(name, _)| name).ok_or_else(|| {
        Error::new(ErrorKind::Internal, format!("no source has exactly {HITS} packages in the bundled catalogue"))
    })
}

/// Parses, plans and runs a query; how many rows, and how long all of it took.
async fn timed(session: &Session, schema: &TableSchema, sql: &str, options: &Options) -> Result<(u64, Duration)> {
    let started = Instant::now();
    let parsed = query::parse(sql)?;
    let prepared = query::prepare(&*session.store, schema, &parsed, options).await?;
    let mut rows = 0;
    answer(session.store.clone(), &prepared, |page| {
        rows += page.len() as u64;
        Ok(())
    })
    .await?;
    Ok((rows, started.elapsed()))
}

/// The largest resident set this process had, in MiB.
fn peak_memory() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse::<f64>().ok());
    kib.map(|k| k / 1024.0)
        .ok_or_else(|| Error::new(ErrorKind::Unsupported, "this system doesn't tell a process's peak memory in /proc"))
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = ((sorted.len().max(1) - 1) as f64 * q).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

fn shown(value: f64) -> String {
    if value >= 1000.0 { count(value.round() as u64) } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn medians_are_values_that_were_measured() {
        assert_eq!(super::median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(super::quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.99), 5.0);
        assert!(super::median(&[]).is_nan());
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(super::shown(1_234_567.0), "1,234,567");
        assert_eq!(super::shown(0.5), "0.500");
    }
}
