//! Runs a query and compares its answer with what it must be.

use crate::fixture::Fixture;
use crate::oracle;
use crate::sql::{Query, has_key_equality};
use fastrand::Rng;
use sideindex::error::ErrorKind;
use sideindex::query::{self, Consistency, Means, Options, Prepared};
use sideindex::store::Read;
use std::collections::HashMap;
use std::sync::Arc;

/// What the queries of a run were answered by.
#[derive(Debug, Default)]
pub struct Coverage {
    checked: u64,
    nothing: u64,
    get: u64,
    index: u64,
    union: u64,
    scan: u64,
    refused: u64,
    rows: u64,
    dropped_by_verification: u64,
    served_order: u64,
    without_base_rows: u64,
    undisputed_outdated_answers: u64,
}

impl Coverage {
    /// A test that no longer reaches something must not pass for it.
    pub fn assert_wide(&self) {
        let seen = [
            ("nothing", self.nothing),
            ("get", self.get),
            ("index", self.index),
            ("union", self.union),
            ("scan", self.scan),
            ("refused", self.refused),
            ("dropped by verification", self.dropped_by_verification),
            ("order served by an index", self.served_order),
            ("answered without base rows", self.without_base_rows),
            ("undisputed outdated answers", self.undisputed_outdated_answers),
        ];
        for (what, times) in seen {
            assert!(times >= 50, "only {times} times: {what}; {self:?}");
        }
        assert!(self.rows > self.checked, "the answers are too small to mean anything: {self:?}");
    }
}

type Row = Vec<serde_json::Value>;

pub async fn check(
    reader: Arc<dyn Read>,
    fixture: &Fixture,
    query: &Query,
    rng: &mut Rng,
    coverage: &mut Coverage,
) -> Result<(), String> {
    let right = oracle::answer(fixture, query);
    for consistency in [Consistency::Verified, Consistency::Indexed] {
        let options = Options { consistency, allow_scan: rng.bool(), estimate: rng.bool() };
        let fail = |what: &str| Err(format!("{what}\n{}\n{options:?}\nright keys: {right:?}", query.sql));
        let parsed = match query::parse(&query.sql) {
            Ok(parsed) => parsed,
            Err(error) => return fail(&error.to_string()),
        };
        if parsed.table != fixture.table {
            return fail("the wrong table");
        }
        let prepared = match query::prepare(reader.as_ref(), &fixture.schema, &parsed, &options).await {
            Err(error) if error.kind() == ErrorKind::TooCostly && !options.allow_scan => {
                coverage.refused += 1;
                // Nothing but the whole predicate's shape decides, so permission must be all that is missing.
                let options = Options { allow_scan: true, ..options };
                match query::prepare(reader.as_ref(), &fixture.schema, &parsed, &options).await {
                    Ok(prepared) if chosen(&prepared) == Means::Scan => prepared,
                    other => return fail(&format!("{error}, then {other:?}")),
                }
            }
            Err(error) => return fail(&error.to_string()),
            Ok(prepared) => prepared,
        };
        let means = chosen(&prepared);
        let may_use_index = fixture.schema.active_definitions().next().is_some();
        let may_get = query.filter.as_ref().is_some_and(has_key_equality);
        if !may_use_index && !may_get && !matches!(means, Means::Scan | Means::Nothing) {
            return fail(&format!("{means:?} with nothing to read from"));
        }
        let answer = match run(&prepared, Arc::clone(&reader)).await {
            Ok(answer) => answer,
            Err(error) => return fail(&format!("{error}\n{}", prepared.explain())),
        };
        let exact = consistency == Consistency::Verified || !fixture.has_outdated_undisputed;
        let problem =
            if exact { differs(fixture, query, &right, &answer.rows) } else { lacks(query, &right, &answer.rows) };
        if let Some(problem) = problem {
            return fail(&format!("{problem}\nanswer: {:?}\n{}", answer.rows, prepared.explain()));
        }
        coverage.checked += 1;
        match means {
            Means::Nothing => coverage.nothing += 1,
            Means::Get => coverage.get += 1,
            Means::Index => coverage.index += 1,
            Means::Union => coverage.union += 1,
            Means::Scan => coverage.scan += 1,
        }
        coverage.rows += answer.rows.len() as u64;
        coverage.dropped_by_verification += answer.dropped;
        coverage.served_order +=
            u64::from(means == Means::Index && prepared.explain().to_string().contains(" as read"));
        coverage.without_base_rows +=
            u64::from(means == Means::Index && answer.base_rows == 0 && !answer.rows.is_empty());
        coverage.undisputed_outdated_answers +=
            u64::from(!exact && differs(fixture, query, &right, &answer.rows).is_some());
    }
    Ok(())
}

fn chosen(prepared: &Prepared) -> Means {
    prepared.explain().considered.iter().find(|way| way.chosen).map_or(Means::Nothing, |way| way.means)
}

struct Answer {
    rows: Vec<Row>,
    dropped: u64,
    base_rows: u64,
}

async fn run(prepared: &Prepared, reader: Arc<dyn Read>) -> sideindex::error::Result<Answer> {
    let mut cursor = prepared.cursor(reader);
    let mut rows = Vec::new();
    while let Some(page) = cursor.next_page().await? {
        assert!(!page.is_empty(), "an empty page");
        for row in page {
            assert_eq!(row.values.len(), prepared.columns().len());
            let values = row.values.iter();
            rows.push(values.map(|v| v.as_ref().map_or(serde_json::Value::Null, |v| v.to_json())).collect());
        }
    }
    assert!(cursor.next_page().await?.is_none(), "a page after the end");
    let actuals = cursor.actuals();
    assert_eq!(actuals.returned, rows.len() as u64);
    Ok(Answer { rows, dropped: actuals.dropped_by_verification, base_rows: actuals.base_rows })
}

/// How an answer differs from the right one.
fn differs(fixture: &Fixture, query: &Query, right: &[Vec<u8>], rows: &[Row]) -> Option<String> {
    let limit = usize::try_from(query.limit.unwrap_or(u64::MAX)).unwrap();
    let Some(select) = &query.select else {
        let expected: Vec<Row> = if limit == 0 { vec![] } else { vec![vec![serde_json::json!(right.len())]] };
        return (rows != expected).then(|| format!("expected {expected:?}"));
    };
    let mut expected: Vec<Row> = right.iter().map(|key| oracle::shown(fixture, key, select)).collect();
    if query.order.is_some() {
        expected.truncate(limit);
        return (rows != expected).then(|| format!("expected in this order {expected:?}"));
    }
    if rows.len() != expected.len().min(limit) {
        return Some(format!("expected {} rows of {expected:?}", expected.len().min(limit)));
    }
    // Every row of the answer is one of the right ones, and none is there more often.
    let mut left: HashMap<String, usize> = HashMap::new();
    for row in &expected {
        *left.entry(format!("{row:?}")).or_default() += 1;
    }
    for row in rows {
        match left.get_mut(&format!("{row:?}")) {
            Some(times) if *times > 0 => *times -= 1,
            _ => return Some(format!("{row:?} is not right, or doubled; expected {expected:?}")),
        }
    }
    None
}

/// What an answer lacks that may hold too much: with outdated entries that nothing tells of.
fn lacks(query: &Query, right: &[Vec<u8>], rows: &[Row]) -> Option<String> {
    let limit = usize::try_from(query.limit.unwrap_or(u64::MAX)).unwrap();
    let Some(select) = &query.select else {
        let count = rows.first().and_then(|r| r[0].as_u64());
        let fits = if limit == 0 { count.is_none() } else { count >= Some(right.len() as u64) };
        return (!fits).then(|| format!("expected a count of {} at least", right.len()));
    };
    if rows.len() < right.len().min(limit) || rows.len() > limit {
        return Some(format!("expected {} rows at least", right.len().min(limit)));
    }
    let place = select.iter().position(|name| *name == crate::sql::Name::Id)?;
    let mut ids: Vec<&str> = rows.iter().filter_map(|row| row[place].as_str()).collect();
    ids.sort_unstable();
    if query.limit.is_none()
        && let Some(missing) =
            right.iter().map(|k| oracle::key_text(k)).find(|id| ids.binary_search(&id.as_str()).is_err())
    {
        return Some(format!("{missing} is missing"));
    }
    ids.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| format!("{} is doubled", pair[0]))
}
