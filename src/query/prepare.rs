//! Parse, bind, probe, plan: from SQL to something that can be run.

use super::bind::{Output, bind};
use super::execute::Cursor;
use super::explain::Explain;
use super::page::{Page, Token, chosen_before};
use super::parse::{Mode, ParsedQuery};
use super::plan::{Candidates, Choice, Estimate, Plan, best, candidates, follow, plan};
use super::probe::probe;
use super::{Options, explain};
use crate::error::{Error, Result};
use crate::schema::TableSchema;
use crate::store::Read;
use std::sync::Arc;

/// A planned query. It may be run more than once.
#[derive(Debug, Clone)]
pub struct Prepared {
    plan: Arc<Plan>,
    columns: Arc<[String]>,
    candidates: Candidates,
    estimates: Vec<Estimate>,
    choice: Option<Choice>,
}

/// Binds and plans a query. `reader` is read only to choose between several paths; see [`Options::estimate`].
///
/// # Errors
/// Those of [`bind`]; [`TooCostly`](crate::error::ErrorKind::TooCostly) when no index answers and
/// [`Options::allow_scan`] is not set, saying which definition would help. EXPLAIN is never too costly: it shows the
/// refusal. [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for a page token that was not made for this query, or
/// that is out of date.
pub async fn prepare(
    reader: &dyn Read,
    schema: &TableSchema,
    parsed: &ParsedQuery,
    options: &Options,
) -> Result<Prepared> {
    let token = match &options.paging {
        Some(paging) if paging.size == 0 => return Err(Error::invalid("a page has at least 1 row, found a size of 0")),
        Some(paging) => paging.after.as_ref().map(|text| Token::open(text, &paging.key)).transpose()?,
        None => None,
    };
    let bound = bind(parsed, schema, &options.parameters)?;
    let mut candidates = candidates(&bound, schema);
    if let Some(paging) = &options.paging
        && bound.output != Output::Count
    {
        let page = paging.size.saturating_add(bound.offset);
        candidates.goal = Some(candidates.goal.map_or(page, |goal| goal.min(page)));
    }
    let (estimates, choice) = match &token {
        // An answer is read on in the way it was begun.
        Some(token) => {
            let decisions = chosen_before(token, &bound, options.consistency, &candidates)?;
            let estimates = vec![Estimate::default(); candidates.paths.len()];
            let choice = follow(&candidates.roots, &candidates, &bound, &mut decisions.into_iter());
            (estimates, choice)
        }
        None => {
            let always = options.estimate || bound.mode != Mode::Run;
            let tables = (bound.table.as_str(), schema.index_table());
            let estimates = probe(reader, (tables.0, &tables.1), &candidates, &bound, always).await?;
            let choice = best(&candidates.roots, &candidates, &estimates, &bound);
            (estimates, choice)
        }
    };
    let mut plan = plan(bound, schema, &candidates, choice.as_ref(), options);
    if plan.query.mode != Mode::Explain
        && let Some(refusal) = plan.refusal()
    {
        return Err(refusal);
    }
    if let Some(paging) = &options.paging
        && plan.query.output != Output::Count
    {
        plan.page = Some(Page::new(paging, &plan, &candidates, choice.as_ref(), token)?);
    }
    let columns = plan.query.names.as_slice().into();
    Ok(Prepared { plan: Arc::new(plan), columns, candidates, estimates, choice })
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
        explain::explain(&self.plan, &self.candidates, &self.estimates, self.choice.as_ref())
    }

    /// Starts answering. Nothing is read before the first page. Give a snapshot as `reader` for an answer of one moment.
    pub fn cursor(&self, reader: Arc<dyn Read>) -> Cursor {
        Cursor::new(reader, Arc::clone(&self.plan))
    }
}
