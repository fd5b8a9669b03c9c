//! `demo`: the main job on real data.

use super::args::{DemoArgs, Global};
use super::load::{self, Loaded};
use super::output::{self, line};
use super::query::answer;
use super::session::Session;
use crate::build;
use crate::error::{Error, ErrorKind, Result};
use crate::query::{self, Considered, Consistency, Means, Options, ParsedSelect};
use crate::schema::{DefinitionSpec, TableSchema};
use crate::source::Lag;
use crate::source::file::JsonLines;
use std::path::PathBuf;
use std::time::Duration;

/// Every package of a Debian release, one line each; `data/README.md` says more.
pub const PACKAGES: &[u8] = include_bytes!("../../data/debian-packages.jsonl.zst");
/// What changed in later updates of that release.
pub const UPDATES: &[u8] = include_bytes!("../../data/debian-updates.jsonl.zst");
pub const PACKAGES_NAME: &str = "debian-packages.jsonl.zst";
pub const UPDATES_NAME: &str = "debian-updates.jsonl.zst";
pub const TABLE: &str = "packages";

/// The indexes of the demo and the bench: name, attribute, its type, ordered.
pub const INDEXES: [(&str, &str, &str, bool); 5] = [
    ("by_section", "section", "text", false),
    ("by_source", "source", "text", false),
    ("by_depends", "depends", "text[]", false),
    ("by_interface", "tag_interface", "text[]", false),
    ("by_size", "installed_size", "int", true),
];

const QUERIES: [&str; 8] = [
    "SELECT id FROM packages WHERE id = '0ad'",
    "SELECT id FROM packages WHERE source = 'linux'",
    "SELECT id FROM packages WHERE tag_interface = 'x11' AND section = 'games'",
    "SELECT id FROM packages WHERE depends = 'libc6' AND section = 'net'",
    "SELECT COUNT(*) FROM packages WHERE section IN ('games', 'science')",
    "SELECT COUNT(*) FROM packages WHERE depends = 'libc6'",
    "SELECT id, installed_size FROM packages WHERE installed_size >= 1000000 ORDER BY installed_size DESC LIMIT 5",
    "SELECT id FROM packages WHERE source = 'linux' OR installed_size > 3000000",
];

pub async fn run(global: &Global, args: &DemoArgs) -> Result<()> {
    let temporary;
    let dir = match &args.keep {
        Some(dir) if dir.exists() => {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("{} exists already; --keep wants a directory of its own", dir.display()),
            ));
        }
        Some(dir) => dir.clone(),
        None => {
            temporary = tempfile::tempdir()?;
            temporary.path().to_owned()
        }
    };
    let session = Session::create(global, &dir).await?;
    line("A product catalogue: the packages of a Debian release, with sparse attributes, in a table by package name.")?;
    create(&session).await?;
    define(&session).await?;
    line(&format!("Table {TABLE} created, with indexes {}.\n", INDEXES.map(|i| i.0).join(", ")))?;

    line("Loading it: rows go into the table, the table's change log feeds the indexes.")?;
    load_bundled(global, &session, PACKAGES_NAME, PACKAGES).await?;
    line("\nUpdates: changed and new packages, some attributes cleared.")?;
    load_bundled(global, &session, UPDATES_NAME, UPDATES).await?;
    let Lag { applied, waiting } = session.changes.lag(TABLE).await?;
    let applied = applied.unwrap_or(0);
    line(&format!(
        "  {} of {} changes applied to the indexes.\n",
        output::count(applied),
        output::count(applied + waiting)
    ))?;

    line(
        "Queries. `verified` checks every hit against its row, `indexed` trusts what is undisputed; the scan reads all rows.",
    )?;
    let schema = session.catalog.table(TABLE).await?;
    let mut table = output::table(&["query", "plan", "rows", "verified", "indexed", "full scan"]);
    for sql in QUERIES {
        table.add_row(ask(&session, &schema, sql).await?);
    }
    line(&table.to_string())?;
    next(args.keep.as_ref())
}

/// Creates the demo's table.
pub async fn create(session: &Session) -> Result<()> {
    session.catalog.create_table(TABLE, &["a".to_owned()], 1).await?;
    let attributes: Vec<String> = INDEXES.iter().map(|(_, name, kind, _)| format!("{name}:{kind}")).collect();
    session.declare(TABLE, &attributes).await?;
    Ok(())
}

/// Defines the demo's indexes.
pub async fn define(session: &Session) -> Result<()> {
    let specs = INDEXES.map(|(name, on, _, ordered)| DefinitionSpec {
        name: name.into(),
        on: vec![on.into()],
        ordered,
        ..DefinitionSpec::default()
    });
    build::create(&session.catalog, &session.changes, TABLE, &specs, |_| {}).await?;
    Ok(())
}

async fn load_bundled(global: &Global, session: &Session, name: &str, bytes: &'static [u8]) -> Result<()> {
    let loaded: Loaded = load::load(global, session, TABLE, JsonLines::bundled(name, bytes)?, true).await?;
    load::report(global, &loaded)
}

/// One row of the table of queries.
async fn ask(session: &Session, schema: &TableSchema, sql: &str) -> Result<[String; 6]> {
    let verified = timed(session, schema, sql, Options::default()).await?;
    let indexed = Options { consistency: Consistency::Indexed, ..Options::default() };
    let indexed = timed(session, schema, sql, indexed).await?;
    let scan = scan(session, schema, sql).await?;
    let scanned = scan.plan == "scan";
    if verified.found != scan.found {
        let (a, b) = (verified.found, scan.found);
        return Err(Error::new(ErrorKind::Internal, format!("{sql}: {a} by the index, {b} by a scan")));
    }
    let short = sql.replace("SELECT ", "").replace("FROM packages ", "");
    Ok([
        short,
        verified.plan,
        output::count(verified.found),
        output::time(verified.elapsed),
        output::time(indexed.elapsed),
        if scanned { output::time(scan.elapsed) } else { "–".to_owned() },
    ])
}

struct Timed {
    plan: String,
    /// Rows, or what COUNT(*) counted.
    found: u64,
    elapsed: Duration,
}

/// Runs a query three times; the median counts.
async fn timed(session: &Session, schema: &TableSchema, sql: &str, options: Options) -> Result<Timed> {
    let parsed = query::parse(sql)?;
    let mut times = Vec::new();
    let mut found = 0;
    let mut plan = String::new();
    for _ in 0..3 {
        let started = std::time::Instant::now();
        let prepared = query::prepare(&*session.store, schema, &parsed, &options).await?;
        let mut rows = 0;
        let mut counted = None;
        answer(session.store.clone(), &prepared, |page| {
            rows += page.len() as u64;
            if parsed.select == ParsedSelect::Count {
                counted = page.first().and_then(|row| row.values.first().cloned().flatten());
            }
            Ok(())
        })
        .await?;
        times.push(started.elapsed());
        found = counted.and_then(|c| c.to_string().parse().ok()).unwrap_or(rows);
        plan = way(&prepared.explain().considered);
    }
    times.sort_unstable();
    Ok(Timed { plan, found, elapsed: times[times.len() / 2] })
}

/// The chosen way to the rows, in a few words.
fn way(considered: &[Considered]) -> String {
    let chosen: Vec<String> = considered
        .iter()
        .filter(|c| c.chosen)
        .map(|c| match (c.means, &c.definition) {
            (Means::Index, Some(name)) => name.clone(),
            (Means::Union, _) => way(&c.parts),
            (means, _) => format!("{means:?}").to_lowercase(),
        })
        .collect();
    chosen.join(" + ")
}

/// The same query by a filtered scan: against a schema that has no indexes.
async fn scan(session: &Session, schema: &TableSchema, sql: &str) -> Result<Timed> {
    let bare = schema.with_definitions(Vec::new());
    timed(session, &bare, sql, Options { allow_scan: true, ..Options::default() }).await
}

fn next(kept: Option<&PathBuf>) -> Result<()> {
    let Some(dir) = kept else {
        return line(
            "\nWhat to try next:\n  sideindex demo --keep demo-data     keeps the data, for queries of your own\n  \
             sideindex --help                    loads your own data",
        );
    };
    let dir = dir.display();
    line(&format!(
        "\nWhat to try next:\n  \
         sideindex --data {dir} query \"SELECT id, section FROM packages WHERE tag_interface = 'x11' LIMIT 5\"\n  \
         sideindex --data {dir} query \"EXPLAIN SELECT id FROM packages WHERE depends = 'libc6' AND section = 'net'\"\n  \
         sideindex --data {dir} put packages 0ad section:=null note=seen\n  \
         sideindex --data {dir} index create packages by_priority --on priority\n  \
         sideindex --data {dir} index status"
    ))
}
