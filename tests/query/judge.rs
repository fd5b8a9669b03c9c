//! Runs a query and compares its answer with what it must be.

use crate::cond::Name;
use crate::fixture::Fixture;
use crate::oracle;
use crate::sql::{Item, Query, tests_keys};
use fastrand::Rng;
use sideindex::error::ErrorKind;
use sideindex::query::{self, Consistency, Means, Options, Paging, Prepared, TokenKey};
use sideindex::store::Read;
use std::collections::HashMap;
use std::sync::Arc;

/// What the queries of a run were answered by.
#[derive(Debug, Default)]
pub struct Coverage {
    checked: u64,
    nothing: u64,
    get: u64,
    range: u64,
    index: u64,
    union: u64,
    scan: u64,
    refused: u64,
    rows: u64,
    dropped_by_verification: u64,
    served_order: u64,
    without_base_rows: u64,
    undisputed_outdated_answers: u64,
    partial: u64,
    nearly_in_order: u64,
    /// Answers in several pages, by what they were answered by.
    paged: HashMap<String, u64>,
    tokens_refused: u64,
}

impl Coverage {
    /// A test that no longer reaches something must not pass for it.
    pub fn assert_wide(&self) {
        let seen = [
            ("nothing", self.nothing),
            ("get", self.get),
            ("range", self.range),
            ("partial definitions", self.partial),
            ("tokens refused", self.tokens_refused),
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
        assert!(self.nearly_in_order >= 20, "only {} times: long texts put in order; {self:?}", self.nearly_in_order);
        for means in ["Get", "Range", "Index", "Union", "Scan", "Index sorted", "Union sorted", "Scan sorted"] {
            let times = self.paged.get(means).copied().unwrap_or(0);
            assert!(times >= 5, "only {times} times in several pages: {means}; {self:?}");
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
        let options = Options {
            consistency,
            allow_scan: rng.bool(),
            estimate: rng.bool(),
            parameters: query.parameters.clone(),
            ..Options::default()
        };
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
                let options = Options { allow_scan: true, ..options.clone() };
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
        let may_get = query.filter.as_ref().is_some_and(tests_keys);
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
            Means::Range => coverage.range += 1,
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
        let explained = prepared.explain().to_string();
        coverage.nearly_in_order += u64::from(explained.contains("long texts sorted"));
        let is_partial = |name: &String| fixture.schema.definition(name).is_some_and(|d| d.filter.is_some());
        let considered = prepared.explain().considered;
        let partial = considered.iter().any(|way| way.chosen && way.definition.as_ref().is_some_and(is_partial));
        coverage.partial += u64::from(partial);
        // Where entries are wrong and not marked so, pages may differ from the whole.
        if exact && query.select.is_some() && rng.u8(0..2) == 0 {
            let options = Options { allow_scan: true, ..options.clone() };
            match in_pages(Arc::clone(&reader), fixture, query, options, rng, coverage).await {
                Err(error) => return fail(&format!("in pages: {error}")),
                Ok(rows) => {
                    if let Some(problem) = differs(fixture, query, &right, &rows) {
                        return fail(&format!("in pages: {problem}\nanswer: {rows:?}\n{explained}"));
                    }
                }
            }
        }
    }
    Ok(())
}

/// The pages of an answer one after the other, each by a query of its own.
async fn in_pages(
    reader: Arc<dyn Read>,
    fixture: &Fixture,
    query: &Query,
    options: Options,
    rng: &mut Rng,
    coverage: &mut Coverage,
) -> Result<Vec<Row>, String> {
    let told = |e: sideindex::error::Error| e.to_string();
    let parsed = query::parse(&query.sql).map_err(told)?;
    let key = TokenKey::random().map_err(told)?;
    let most = if fixture.rows.len() > 100 { [400, 3_000][rng.usize(0..2)] } else { [2, 7][rng.usize(0..2)] };
    let (mut rows, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let size = rng.u64(1..=most);
        let paging = Paging { size, after, key: key.clone() };
        let options = Options { paging: Some(paging), ..options.clone() };
        let prepared = query::prepare(reader.as_ref(), &fixture.schema, &parsed, &options).await.map_err(told)?;
        let answer = run(&prepared, Arc::clone(&reader)).await.map_err(told)?;
        if answer.rows.len() as u64 > size {
            return Err(format!("a page of {size} has {} rows", answer.rows.len()));
        }
        rows.extend(answer.rows);
        pages += 1;
        let Some(token) = answer.token else {
            if pages > 2 {
                let sorted = if prepared.explain().to_string().contains(". sort by") { " sorted" } else { "" };
                *coverage.paged.entry(format!("{:?}{sorted}", chosen(&prepared))).or_default() += 1;
            }
            return Ok(rows);
        };
        if rng.u8(0..8) == 0 {
            refuses(reader.as_ref(), fixture, &parsed, &options, &token, rng).await?;
            coverage.tokens_refused += 1;
        }
        after = Some(token);
    }
}

/// A token is good for nothing but the query it was given for, and only as it was given.
async fn refuses(
    reader: &dyn Read,
    fixture: &Fixture,
    parsed: &query::ParsedQuery,
    options: &Options,
    token: &str,
    rng: &mut Rng,
) -> Result<(), String> {
    let with = |after: String, options: Options| {
        let paging = options.paging.clone().map(|p| Paging { after: Some(after), ..p });
        Options { paging, ..options }
    };
    let mut attempts = Vec::new();
    let at = rng.usize(0..token.len());
    let other = ["A", "b", "-", "="].into_iter().find(|c| !token[at..].starts_with(c)).unwrap();
    let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
    attempts.push((parsed.clone(), fixture.schema.clone(), with(changed, options.clone())));
    let consistency = match options.consistency {
        Consistency::Verified => Consistency::Indexed,
        Consistency::Indexed => Consistency::Verified,
    };
    let same = with(token.to_owned(), options.clone());
    attempts.push((parsed.clone(), fixture.schema.clone(), Options { consistency, ..same.clone() }));
    let mut longer = parsed.clone();
    longer.offset = Some(query::Literal::Number("77".to_owned()));
    attempts.push((longer, fixture.schema.clone(), same));
    for (parsed, schema, options) in attempts {
        match query::prepare(reader, &schema, &parsed, &options).await {
            Err(error) if error.kind() == ErrorKind::InvalidInput && error.to_string().contains("page token") => {}
            other => return Err(format!("a wrong token was not refused: {other:?} {options:?}")),
        }
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
    token: Option<String>,
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
    Ok(Answer { rows, dropped: actuals.dropped_by_verification, base_rows: actuals.base_rows, token: cursor.token() })
}

/// How an answer differs from the right one. Of rows that compare equal by ORDER BY any may come first.
fn differs(fixture: &Fixture, query: &Query, right: &[Vec<u8>], rows: &[Row]) -> Option<String> {
    let (first, last) = wanted(query, right.len());
    let Some(select) = &query.select else {
        let counted = query.limit != Some(0) && query.offset == 0;
        let expected: Vec<Row> = if counted { vec![vec![serde_json::json!(right.len())]] } else { vec![] };
        return (rows != expected).then(|| format!("expected {expected:?}"));
    };
    let expected: Vec<Row> = right.iter().map(|key| oracle::shown(fixture, key, select)).collect();
    if rows.len() != last - first {
        return Some(format!("expected {} rows of {expected:?}", last - first));
    }
    let mut from = 0;
    while from < right.len() {
        let equal = |key: &&Vec<u8>| oracle::compare(fixture, &query.order, &right[from], key).is_eq();
        let to = from + right[from..].iter().take_while(equal).count();
        // Every row of the answer at these places is one of these, and none is there more often.
        let mut left: HashMap<String, usize> = HashMap::new();
        for row in &expected[from..to] {
            *left.entry(format!("{row:?}")).or_default() += 1;
        }
        for row in (from.max(first)..to.min(last)).map(|place| &rows[place - first]) {
            match left.get_mut(&format!("{row:?}")) {
                Some(times) if *times > 0 => *times -= 1,
                _ => return Some(format!("{row:?} is not right, out of order or doubled; expected {expected:?}")),
            }
        }
        from = to;
    }
    None
}

/// The places of the rows asked for among all that are right.
fn wanted(query: &Query, right: usize) -> (usize, usize) {
    let first = usize::try_from(query.offset).unwrap().min(right);
    let limit = usize::try_from(query.limit.unwrap_or(u64::MAX)).unwrap();
    (first, first.saturating_add(limit).min(right))
}

/// What an answer lacks that may hold too much: with outdated entries that nothing tells of.
fn lacks(query: &Query, right: &[Vec<u8>], rows: &[Row]) -> Option<String> {
    let (first, last) = wanted(query, right.len());
    let Some(select) = &query.select else {
        let count = rows.first().and_then(|r| r[0].as_u64());
        let counted = query.limit != Some(0) && query.offset == 0;
        let fits = if counted { count >= Some(right.len() as u64) } else { count.is_none() };
        return (!fits).then(|| format!("expected a count of {} at least", right.len()));
    };
    if rows.len() < last - first || query.limit.is_some_and(|limit| rows.len() as u64 > limit) {
        return Some(format!("expected {} rows at least", last - first));
    }
    let is_id = |item: &Item| match item {
        Item::All => true,
        Item::One(operand) => operand.name == Name::Id,
    };
    // Before the first * every item is one column.
    let place = select.iter().position(is_id)?;
    let mut ids: Vec<&str> = rows.iter().filter_map(|row| row[place].as_str()).collect();
    ids.sort_unstable();
    if query.limit.is_none()
        && query.offset == 0
        && let Some(missing) =
            right.iter().map(|k| oracle::key_text(k)).find(|id| ids.binary_search(&id.as_str()).is_err())
    {
        return Some(format!("{missing} is missing"));
    }
    ids.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| format!("{} is doubled", pair[0]))
}
