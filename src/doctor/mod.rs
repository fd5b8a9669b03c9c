//! What is wrong with an embedded store, and what to do about it.
//!
//! Everything is read once, on a copy that is opened beside the store ([`Inspection`]): nothing is changed, and memory is
//! bounded. Whether the indexes say what the rows say is another question, which `verify` answers.

mod catalog;
mod directory;
mod rows;

use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Catalog, META_TABLE, QUARANTINE_TABLE};
use crate::store::Store;
use crate::store::embedded::Inspection;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Answers may be incomplete or slow until something is done.
    Warning,
    /// Something is damaged, or stands in the way.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub place: String,
    /// What.
    pub what: String,
    /// What to do.
    pub advice: &'static str,
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Looked {
    /// Tables, sideindex's own included.
    pub tables: u64,
    /// Stored cells, hidden ones included.
    pub cells: u64,
    /// Records of change logs.
    pub records: u64,
    /// Rows of index tables.
    pub entries: u64,
    /// Rows of state tables.
    pub states: u64,
    /// Rows in quarantine.
    pub quarantined: u64,
    /// Events that wait to be applied once more.
    pub rechecks: u64,
}

/// What became of an examination.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// What was found, the worst of each place first.
    pub findings: Vec<Finding>,
    /// What was looked at.
    pub looked: Looked,
    /// Findings of each kind so far: an example is worth keeping, a million are not.
    #[serde(skip)]
    kinds: BTreeMap<(String, &'static str), u64>,
}

/// Findings of a kind that are kept.
const EXAMPLES: u64 = 5;

const RESTORE: &str =
    "restore the directory from a copy; what can still be read can be saved with `query` and `get` first";

impl Report {
    /// Whether something is wrong that has to be repaired.
    pub fn is_bad(&self) -> bool {
        self.findings.iter().any(|f| f.severity == Severity::Error)
    }

    fn add(&mut self, severity: Severity, place: impl Into<String>, what: impl Into<String>, advice: &'static str) {
        let place = place.into();
        let seen = self.kinds.entry((place.clone(), advice)).or_default();
        *seen += 1;
        if *seen <= EXAMPLES {
            self.findings.push(Finding { severity, place, what: what.into(), advice });
        }
    }

    fn damaged(&mut self, place: impl Into<String>, error: &Error) {
        self.add(Severity::Error, place, error.to_string(), RESTORE);
    }

    /// Says how many more there were of each kind.
    fn finish(&mut self) {
        let more: Vec<_> = self.kinds.iter().filter(|(_, n)| **n > EXAMPLES).map(|(k, n)| (k.clone(), *n)).collect();
        for ((place, advice), n) in more {
            let severity = self
                .findings
                .iter()
                .find(|f| f.place == place && f.advice == advice)
                .map_or(Severity::Error, |f| f.severity);
            self.findings.push(Finding {
                severity,
                place,
                what: format!("and {} more of these", n - EXAMPLES),
                advice,
            });
        }
        self.findings.sort_by(|a, b| b.severity.cmp(&a.severity));
    }
}

/// How far an examination is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// What is being read.
    pub place: String,
    /// Cells read of it.
    pub cells: u64,
    /// Roughly, of how many.
    pub of: u64,
}

/// Examines the store in a directory.
///
/// # Errors
/// [`ErrorKind::NotFound`] where there is no store, [`ErrorKind::Busy`] where it is in use: neither says anything of it. What
/// is wrong with it is in the report.
pub async fn examine(path: &Path, mut progress: impl FnMut(Progress)) -> Result<Report> {
    let mut report = Report::default();
    directory::examine(path, &mut report)?;
    let inspection = match Inspection::open(path) {
        Ok(inspection) => inspection,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Busy) => return Err(e),
        Err(e) => {
            report.add(Severity::Error, path.display().to_string(), e.to_string(), directory::advice(&e));
            report.finish();
            return Ok(report);
        }
    };
    let store = inspection.store();
    let tables = store.list_tables().await?;
    for table in &tables {
        report.looked.tables += 1;
        cells(&inspection, table, &mut report, &mut progress)?;
        if store.describe_table(table).await?.change_log {
            log(&inspection, table, &mut report)?;
        }
    }
    // Without these nothing more can be said; Catalog::open would make them.
    for table in [META_TABLE, QUARANTINE_TABLE] {
        if !tables.iter().any(|t| t == table) {
            report.add(
                Severity::Note,
                format!("table {table}"),
                "is not there yet",
                "nothing: the first command that writes makes it",
            );
            report.finish();
            return Ok(report);
        }
    }
    let catalog = Catalog::open(Arc::new(store.clone())).await?;
    let schemas = catalog::examine(&catalog, store, &mut report).await?;
    for schema in &schemas {
        rows::entries(store, schema, &mut report).await?;
        rows::states(store, schema, &mut report).await?;
    }
    report.finish();
    Ok(report)
}

/// Every stored cell of a table.
fn cells(inspection: &Inspection, table: &str, report: &mut Report, progress: &mut impl FnMut(Progress)) -> Result<()> {
    const STEP: u64 = 10_000;
    let place = format!("table {table}");
    let of = inspection.cells(table)?;
    let mut cells = 0;
    let read = inspection.check_cells(table, |cell| {
        cells += 1;
        if cells % STEP == 1 {
            progress(Progress { place: place.clone(), cells, of });
        }
        if let Err(e) = cell {
            report.damaged(&place, &e);
        }
    });
    report.looked.cells += cells;
    if let Err(e) = read {
        report.damaged(&place, &e);
    }
    Ok(())
}

/// Every record of a table's change log.
fn log(inspection: &Inspection, table: &str, report: &mut Report) -> Result<()> {
    let store = inspection.store();
    let (mut after, head) = (inspection.log_start(table)?, store.log_head(table)?);
    while after < head {
        match store.read_log(table, after, 4_000, 8 << 20) {
            Ok(records) if records.is_empty() => {
                report.damaged(
                    format!("change log of table {table}"),
                    &Error::corrupt(format!("ends at {after}, before {head}")),
                );
                return Ok(());
            }
            Ok(records) => {
                after += records.len() as u64;
                report.looked.records += records.len() as u64;
            }
            Err(e) => {
                report.damaged(format!("change log of table {table}, after record {after}"), &e);
                return Ok(());
            }
        }
    }
    Ok(())
}
