//! What keeping indexes takes: verifying them, their space on disk, and what covered columns save.

use super::{Figure, LOOKUPS, TABLE, figure, median, timed, value_with_hits};
use crate::build;
use crate::cli::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::query::{Consistency, Options};
use crate::schema::DefinitionSpec;
use crate::store::{Scan, count_rows};
use crate::verify;

/// Attributes that a lookup asks for, and that one of the definitions covers.
const COVERED: [&str; 3] = ["section", "version", "installed_size"];

/// Measures on the loaded catalogue.
pub(super) async fn keeping(session: &Session, runs: u32) -> Result<Vec<Figure>> {
    let spec = DefinitionSpec {
        name: "by_source_covering".to_owned(),
        on: vec!["source".to_owned()],
        covered: COVERED.map(str::to_owned).to_vec(),
        ..DefinitionSpec::default()
    };
    build::create(&session.catalog, &session.changes, TABLE, &[spec], |_| {}).await?;
    let schema = session.catalog.table(TABLE).await?;
    let only = |name: &str| schema.with_definitions(schema.definition(name).cloned().into_iter().collect());
    let source = value_with_hits(session, &schema).await?;
    let sql = format!("SELECT id, {} FROM {TABLE} WHERE source = '{source}'", COVERED.join(", "));
    let options = Options { consistency: Consistency::Indexed, ..Options::default() };
    let (plain, covering) = (only("by_source"), only("by_source_covering"));
    let (mut p50_plain, mut p50_covering, mut ratio) = (vec![], vec![], vec![]);
    let mut rates = Vec::new();
    for _ in 0..runs {
        let (mut without, mut with) = (Vec::with_capacity(LOOKUPS), Vec::with_capacity(LOOKUPS));
        for _ in 0..LOOKUPS {
            without.push(timed(session, &plain, &sql, &options).await?.1.as_secs_f64() * 1e3);
            with.push(timed(session, &covering, &sql, &options).await?.1.as_secs_f64() * 1e3);
        }
        p50_plain.push(median(&without));
        p50_covering.push(median(&with));
        ratio.push(median(&without) / median(&with));
        let report =
            verify::verify(&session.catalog, session.embedded("bench")?, TABLE, &verify::Options::default(), |_| {})
                .await?;
        if report.wrong() > 0 {
            return Err(Error::new(
                ErrorKind::Internal,
                format!("{} entries of the catalogue are wrong", report.wrong()),
            ));
        }
        rates.push(report.rows_per_second());
    }
    let entries = count_rows(&*session.store, &schema.index_table(), Scan::all()).await?;
    let compaction = session.embedded("bench")?.compact(Some(&schema.index_table())).await?;
    let bytes = compaction.bytes_after as f64 / entries as f64;
    Ok(vec![
        figure("lookup of 20 rows with 3 columns, indexed, p50", "ms", "", p50_plain),
        figure("the same from entries that cover them", "ms", "", p50_covering),
        figure("not covered / covered", "×", "", ratio),
        figure("verify, both ways", "rows/s", "", rates),
        figure(&format!("space of {} entries after compaction", super::count(entries)), "B/entry", "", vec![bytes]),
    ])
}
