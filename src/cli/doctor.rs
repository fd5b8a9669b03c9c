//! `doctor`: what is wrong with a store, without changing it.

use super::args::{Format, Global};
use super::output::{self, count};
use crate::config::StoreKind;
use crate::doctor::{self, Report};
use crate::error::{Error, ErrorKind, Result};
use serde_json::json;

pub async fn run(global: &Global) -> Result<()> {
    if global.loaded.config.store.kind != StoreKind::Embedded {
        return Err(Error::new(ErrorKind::Unsupported, "`doctor` works on the embedded store only, so far"));
    }
    let path = global.data()?;
    let bar = output::bar(global, "reading", 0, false);
    let examined = doctor::examine(path, |p| {
        bar.set_length(p.of.max(p.cells));
        bar.set_position(p.cells);
        bar.set_message(p.place);
    })
    .await;
    bar.finish_and_clear();
    let report = examined?;
    match global.format {
        Format::Json => output::json(&report)?,
        Format::Csv => output::records(global, &report.findings.iter().map(|f| json!(f)).collect::<Vec<_>>())?,
        Format::Table => print(&report)?,
    }
    if !report.is_bad() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Corrupt, format!("something is wrong with the store in {}, see above", path.display())))
}

fn print(report: &Report) -> Result<()> {
    for finding in &report.findings {
        output::line(&format!(
            "{}: {}: {}",
            finding.severity,
            output::plain(&finding.place),
            output::plain(&finding.what)
        ))?;
        output::line(&format!("    {}", finding.advice))?;
    }
    let looked = report.looked;
    output::line(&format!(
        "{}, {} cells, {} changes, {} index entries, {} state rows read; {} in quarantine, {} waiting to be checked again; {}",
        output::plural(looked.tables, "table", "tables"),
        count(looked.cells),
        count(looked.records),
        count(looked.entries),
        count(looked.states),
        count(looked.quarantined),
        count(looked.rechecks),
        match report.findings.len() {
            0 => "nothing is wrong".to_owned(),
            n => output::plural(n as u64, "finding", "findings"),
        }
    ))
}
