//! What becomes of the rows found: they are passed on, counted, or sorted.

use super::budget::{Budget, Held};
use super::found::Found;
use super::result::ResultRow;
use super::sort::{Nearness, Sort, SortKey};
use crate::error::Result;
use crate::query::bind::Output;
use crate::query::page::{Place, Position};
use crate::query::plan::Plan;
use crate::schema::{AttributeValue, Value};
use bytes::Bytes;

/// Rows a page, at most.
pub(super) const PAGE: usize = 1_000;

/// Takes the rows found.
pub(super) struct Sink {
    kind: Kind,
    /// Rows still to be left out.
    skip: u64,
    /// Rows still wanted.
    left: u64,
    /// Rows returned, those of earlier pages included.
    returned: u64,
    /// The place of the last row taken, where that matters.
    last: Option<Place>,
}

enum Kind {
    /// Passes them on as they come.
    Pass(Vec<ResultRow>),
    /// Counts them; the one row of the answer may itself be limited away.
    Count(u64),
    Sort(Sort),
}

impl Sink {
    pub(super) fn new(plan: &Plan) -> Self {
        let query = &plan.query;
        let from = plan.page.as_ref().and_then(|page| page.from.as_ref());
        let returned = from.map_or(0, |from| from.returned);
        let skip = if from.is_some() { 0 } else { query.offset };
        let wanted = query.limit.unwrap_or(u64::MAX).saturating_sub(returned);
        let left = plan.page.as_ref().map_or(wanted, |page| page.size.min(wanted));
        let kind = match (&query.output, plan.sorting) {
            (Output::Count, _) => Kind::Count(0),
            (Output::Columns(_), sorting) if sorting.is_sorted() => {
                let after = from.and_then(|from| match &from.place {
                    Place::Sorted { key, row } => Some(SortKey { bytes: key.clone(), row: row.clone() }),
                    Place::Read { .. } => None,
                });
                let most = if left == 0 { 0 } else { left.saturating_add(skip) };
                Kind::Sort(Sort::new(&query.order, most, after, Nearness::of(plan)))
            }
            (Output::Columns(_), _) => Kind::Pass(Vec::new()),
        };
        Self { kind, skip, left, returned, last: None }
    }

    /// Whether no further row can change the answer.
    pub(super) fn is_full(&self) -> bool {
        match &self.kind {
            Kind::Pass(_) | Kind::Count(_) => self.left == 0,
            Kind::Sort(sort) => sort.is_full(),
        }
    }

    /// Takes a row; [`is_full`](Self::is_full) must be false. `place` is where it was read: the path, and the key there.
    ///
    /// # Errors
    /// [`TooCostly`](crate::error::ErrorKind::TooCostly) when more would have to be held in memory than may be.
    pub(super) fn push(
        &mut self,
        found: &Found<'_>,
        place: (usize, Bytes),
        plan: &Plan,
        budget: &mut Budget,
    ) -> Result<()> {
        match &mut self.kind {
            Kind::Count(rows) => *rows += 1,
            Kind::Sort(sort) => sort.push(found, &plan.query.order, &plan.query.output, budget)?,
            Kind::Pass(_) if self.skip > 0 => self.skip -= 1,
            Kind::Pass(rows) => {
                let row = ResultRow::of(found, &plan.query.output)?;
                budget.hold(Held::Page, row.weight())?;
                rows.push(row);
                self.left -= 1;
                self.last = Some(Place::Read { path: place.0, key: place.1 });
            }
        }
        Ok(())
    }

    /// The next rows of the answer, if there are any yet; `over` says that all rows were pushed.
    pub(super) fn page(&mut self, over: bool, budget: &mut Budget) -> Option<Vec<ResultRow>> {
        let page = match &mut self.kind {
            Kind::Pass(rows) => {
                budget.release(Held::Page, rows.iter().map(ResultRow::weight).sum());
                std::mem::take(rows)
            }
            Kind::Count(rows) => {
                if !over || self.left == 0 {
                    return None;
                }
                self.left = 0;
                let count = i64::try_from(*rows).unwrap_or(i64::MAX);
                let row = ResultRow { values: vec![Some(AttributeValue::One(Value::Int(count)))] };
                // OFFSET may leave the one row out.
                if self.skip == 0 { vec![row] } else { Vec::new() }
            }
            Kind::Sort(sort) => {
                if !over {
                    return None;
                }
                while self.skip > 0 {
                    let skipped = sort.take(usize::try_from(self.skip).unwrap_or(PAGE).min(PAGE), budget);
                    self.skip = if skipped.is_empty() { 0 } else { self.skip - skipped.len() as u64 };
                }
                let rows = sort.take(PAGE, budget);
                self.left = self.left.saturating_sub(rows.len() as u64);
                if let Some((key, _)) = rows.last() {
                    self.last = Some(Place::Sorted { key: key.bytes.clone(), row: key.row.clone() });
                }
                rows.into_iter().map(|(_, row)| row).collect()
            }
        };
        self.returned += page.len() as u64;
        (!page.is_empty()).then_some(page)
    }

    /// Where the answer goes on, if as many rows as were wanted were returned and there may be more.
    pub(super) fn end(&self, plan: &Plan) -> Option<Position> {
        let more = self.left == 0 && plan.query.limit.is_none_or(|limit| self.returned < limit);
        let place = self.last.clone().filter(|_| more)?;
        Some(Position { returned: self.returned, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::model::{Cell, Row};
    use crate::query::execute::found::BaseRow;
    use crate::query::plan::{candidates, plan};
    use crate::query::testing::schema;
    use crate::query::{Options, bind, parse};

    struct Fed {
        sink: Sink,
        plan: Plan,
        budget: Budget,
    }

    impl Fed {
        fn new(sql: &str, memory: u64) -> Self {
            let schema = schema(&[]);
            let query = bind(&parse(sql).unwrap(), &schema, &[]).unwrap();
            let found = candidates(&query, &schema);
            let options = Options { allow_scan: true, memory, ..Options::default() };
            let plan = plan(query, &schema, &found, None, &options);
            Self { sink: Sink::new(&plan), budget: Budget::new(&plan), plan }
        }

        fn push(&mut self, size: usize) -> Result<()> {
            let cell = Cell::put("a", "size", 1, size.to_string());
            let row = Row { key: format!("row {size}").into(), cells: vec![cell] };
            let base = BaseRow::decode(row, &self.plan.slots, &[0], None);
            self.sink.push(&Found::Base(&base), (0, Bytes::new()), &self.plan, &mut self.budget)
        }

        fn sizes(&mut self) -> Vec<String> {
            let page = self.sink.page(true, &mut self.budget).unwrap_or_default();
            page.iter().map(|row| row.values[0].as_ref().unwrap().to_string()).collect()
        }
    }

    #[test]
    fn a_sort_that_does_not_fit_is_refused() {
        let mut fed = Fed::new("SELECT size FROM packages ORDER BY size DESC", 100_000);
        let error = (0..100_000).find_map(|i| fed.push(i).err()).unwrap();
        assert_eq!(error.kind(), ErrorKind::TooCostly);
        let text = error.to_string();
        assert!(text.starts_with("the query would hold more than its 97.6 KiB of memory: 97."), "{text}");
        assert!(text.contains("KiB for rows to be sorted; add a LIMIT"), "{text}");
    }

    #[test]
    fn a_sort_with_limit_keeps_no_more_than_that() {
        let mut fed = Fed::new("SELECT size FROM packages ORDER BY size DESC LIMIT 3 OFFSET 2", 2_000);
        for i in 0..50_000_usize {
            fed.push(i * 7_919 % 50_000).unwrap();
        }
        assert!(fed.sink.page(false, &mut fed.budget).is_none());
        assert_eq!(fed.sizes(), ["49997", "49996", "49995"]);
        assert!(fed.sizes().is_empty());
    }
}
