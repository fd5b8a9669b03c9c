//! Does the index say what the base table says, and if not, what is to be written?
//!
//! ```text
//!  base rows ──► entries that ought to be ──► are they there?            missing, wrong covered value
//!  entries  ──► their base rows ──► would these give them?               outdated, undecodable, unknown definition
//! ```
//!
//! Both ways are read from one snapshot, so a table may be verified while it changes. Rows with changes that the indexes had
//! not taken in then are left out and counted as pending. What ought to be there is worked out here from the definitions and
//! the base cells; the maintainer's own rules have no part in it, so that one can be judged by the other.

mod entries;
mod expect;
mod pace;
mod pending;
mod repair;
mod report;
mod rows;
mod sums;

pub use report::{Class, Counts, Finding, Report};

use crate::error::{Error, ErrorKind, Result};
use crate::index;
use crate::schema::{Catalog, Definition, Lifecycle, TableSchema, read_table};
use crate::source;
use crate::store::embedded::EmbeddedStore;
use crate::store::{Read, Store};
use pace::Pace;
use pending::Pending;
use repair::Repair;
use std::sync::Arc;
use std::time::Instant;
use sums::Sums;

/// What to verify, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Only this definition; all active ones when there is none.
    pub index: Option<String>,
    /// Write what is wrong anew.
    pub repair: bool,
    /// Keep no more findings than this; all are counted.
    pub limit_reported: usize,
    /// Read no more base rows and entries a second than this.
    pub rows_per_second: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { index: None, repair: false, limit_reported: 100, rows_per_second: None }
    }
}

/// How far a verification is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Base rows and entries read.
    pub done: u64,
    /// Entries found wrong.
    pub wrong: u64,
}

/// Verifies the active definitions of a table, both ways. Memory is bounded by a page of rows and their entries, apart from
/// the hashes of pending rows (at most two million).
///
/// A definition that was degraded no longer is when all of it was looked at and found fine, nothing is pending, and nothing
/// of it is left in quarantine.
///
/// # Errors
/// [`ErrorKind::NotFound`] for an unknown table or definition, [`ErrorKind::TooCostly`] when too many rows are pending, and those
/// of the store. That something is wrong is no error: the report says so.
pub async fn verify(
    catalog: &Catalog,
    store: &EmbeddedStore,
    table: &str,
    options: &Options,
    progress: impl FnMut(Progress) + Send,
) -> Result<Report> {
    let started = Instant::now();
    // Everything, until it is known where to start.
    let mut hold = store.hold_log(table, Some(0))?;
    let snapshot = store.snapshot().await?;
    let schema = read_table(&*snapshot, table).await?;
    let checked = checked(&schema, options)?;
    let applied = source::applied(&*snapshot, table).await?;
    let mut pending = Pending::after(store, table, applied)?;
    hold.advance(pending.head());
    for row in index::waiting_rows(&*snapshot, table).await? {
        pending.add(&row);
    }
    let report = Report { applied, changes: pending.head(), pending: pending.len(), ..Report::of(&checked) };
    let repair = match options.repair {
        true => Some(Repair::new(catalog, schema.clone(), Pending::after(store, table, pending.head())?, hold)),
        false => None,
    };
    let mut run = Run {
        snapshot,
        schema,
        checked,
        pending,
        limit_reported: options.limit_reported,
        pace: Pace::new(options.rows_per_second),
        repair,
        report,
        sums: Sums::new(),
        done: 0,
        progress,
    };
    for pass in [Pass::Sum, Pass::Examine] {
        if pass == Pass::Sum || run.sums.doubt_any() {
            run.base_rows(pass).await?;
            run.entries(pass).await?;
        }
    }
    let mut report = run.report;
    if report.pending == 0 {
        for (name, counts) in &report.indexes {
            let fine = counts.wrong() == 0 && counts.unindexable == 0;
            if fine && index::quarantine::clear_degraded(catalog, table, name).await? {
                report.cleared.push(name.clone());
            }
        }
    }
    report.elapsed = started.elapsed();
    Ok(report)
}

fn checked(schema: &TableSchema, options: &Options) -> Result<Vec<Definition>> {
    let Some(name) = &options.index else { return Ok(schema.active_definitions().cloned().collect()) };
    let definition = schema.require_definition(name)?;
    if definition.state != Lifecycle::Active {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("index {name} is {}: only active ones can be verified", definition.state),
        ));
    }
    Ok(vec![definition.clone()])
}

/// Both ways are gone twice at most: once over everything, to find the rows that are in doubt, and once for these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Sum,
    Examine,
}

/// A verification under way.
struct Run<F> {
    snapshot: Arc<dyn Read>,
    schema: TableSchema,
    checked: Vec<Definition>,
    pending: Pending,
    limit_reported: usize,
    pace: Pace,
    repair: Option<Repair>,
    report: Report,
    sums: Sums,
    /// Base rows and entries read so far, in both passes.
    done: u64,
    progress: F,
}

impl<F: FnMut(Progress)> Run<F> {
    /// Takes a finding into the report, and into the repairs that are due.
    async fn found(&mut self, class: Class, definition: Option<&Definition>, key: &bytes::Bytes) -> Result<()> {
        let finding = Finding::new(class, definition, key);
        match definition {
            Some(definition) => self.report.count(definition).add(class),
            None => self.report.unknown += 1,
        }
        if let Some(repair) = &mut self.repair {
            repair.add(&finding);
            if repair.is_full() {
                repair.write(&mut self.report).await?;
            }
        }
        if self.report.findings.len() < self.limit_reported {
            self.report.findings.push(finding);
        }
        Ok(())
    }

    /// Writes the repairs that are due.
    async fn repair_rest(&mut self) -> Result<()> {
        match &mut self.repair {
            Some(repair) => repair.write(&mut self.report).await,
            None => Ok(()),
        }
    }

    /// Tells of the progress, and waits when it is too fast.
    async fn step(&mut self, read: u64) -> Result<()> {
        self.done += read;
        if let Some(repair) = &mut self.repair {
            repair.read_on()?;
        }
        (self.progress)(Progress { done: self.done, wrong: self.report.wrong() });
        self.pace.wait(self.done).await;
        Ok(())
    }
}
