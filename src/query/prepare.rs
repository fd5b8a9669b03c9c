//! Parse, bind, probe, plan: from SQL to something that can be run.

use super::bind::{Column, Output, bind};
use super::execute::Cursor;
use super::explain::Explain;
use super::parse::{Mode, ParsedQuery};
use super::plan::{Candidates, Estimate, Plan, candidates, plan};
use super::probe::probe;
use super::{Options, explain};
use crate::error::Result;
use crate::schema::{ROW_KEY, TableSchema};
use crate::store::Read;
use std::sync::Arc;

/// A planned query. It may be run more than once.
#[derive(Debug, Clone)]
pub struct Prepared {
    plan: Arc<Plan>,
    columns: Arc<[String]>,
    candidates: Candidates,
    estimates: Vec<Estimate>,
}

/// Binds and plans a query. `reader` is read only to choose between several paths; see [`Options::estimate`].
///
/// # Errors
/// Those of [`bind`]; [`TooCostly`](crate::error::ErrorKind::TooCostly) when no index answers and
/// [`Options::allow_scan`] is not set, saying which definition would help. EXPLAIN is never too costly: it shows the
/// refusal.
pub async fn prepare(
    reader: &dyn Read,
    schema: &TableSchema,
    parsed: &ParsedQuery,
    options: &Options,
) -> Result<Prepared> {
    let bound = bind(parsed, schema)?;
    let candidates = candidates(&bound, schema);
    let always = options.estimate || bound.mode != Mode::Run;
    let estimates = probe(reader, &schema.index_table(), &candidates, &bound, always).await?;
    let plan = plan(bound, schema, &candidates, &estimates, options);
    if plan.query.mode != Mode::Explain
        && let Some(refusal) = plan.refusal()
    {
        return Err(refusal);
    }
    let columns = names(&plan);
    Ok(Prepared { plan: Arc::new(plan), columns, candidates, estimates })
}

fn names(plan: &Plan) -> Arc<[String]> {
    match &plan.query.output {
        Output::Count => Arc::new(["count".to_owned()]),
        Output::Columns(columns) => columns
            .iter()
            .map(|column| match column {
                Column::RowKey => ROW_KEY.to_owned(),
                Column::Attribute(slot) => plan.query.slots[*slot].name(),
            })
            .collect(),
    }
}

impl Prepared {
    /// Whether the query is to be run, explained, or both.
    pub fn mode(&self) -> Mode {
        self.plan.query.mode
    }

    /// The names of the columns of the answer.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// How the query is answered, and what else was considered.
    pub fn explain(&self) -> Explain {
        explain::explain(&self.plan, &self.candidates, &self.estimates)
    }

    /// Starts answering. Nothing is read before the first page. Give a snapshot as `reader` for an answer of one moment.
    pub fn cursor(&self, reader: Arc<dyn Read>) -> Cursor {
        Cursor::new(reader, Arc::clone(&self.plan))
    }
}
