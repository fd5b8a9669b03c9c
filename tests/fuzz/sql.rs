//! SQL: text → parsed → bound → planned → answered, over a table with all types and nothing in it.

use crate::driver::{outcome, run};
use async_trait::async_trait;
use bytes::Bytes;
use futures::executor::block_on;
use sideindex::error::{Error, ErrorKind, Result};
use sideindex::model::Row;
use sideindex::query::{self, Consistency, Literal, Mode, Options, Output, Paging, TokenKey};
use sideindex::schema::{
    Attribute, AttributeSpec, Definition, DefinitionSpec, FilterTree, Key, Lifecycle, TableSchema,
};
use sideindex::store::{Page, Read, ReadSpec, Scan, Scanner};
use std::sync::Arc;

const WORDS: [&str; 44] = [
    "SELECT ",
    " FROM t ",
    " WHERE ",
    " AND ",
    " OR ",
    "NOT ",
    "(",
    ")",
    " IN (",
    " BETWEEN ",
    " LIKE '",
    " ESCAPE '",
    "%",
    "_",
    " IS NULL",
    " IS NOT NULL",
    " ORDER BY ",
    " DESC",
    " NULLS FIRST",
    " LIMIT ",
    " OFFSET ",
    "$1",
    "lower(",
    "trim(",
    "nfkc(",
    "COUNT(*)",
    "*",
    "EXPLAIN ",
    "ANALYZE ",
    "X'00ff'",
    "TRUE",
    "NULL",
    "TIMESTAMP '",
    "name",
    "size",
    "tags",
    "price",
    "at",
    "raw",
    "id",
    "month",
    "--",
    "/*",
    "''",
];

/// A table with attributes of all types, parts of the key among them, and definitions of all kinds.
fn schema() -> TableSchema {
    let key: Key = "hash=md5(user):2, user=text:4, action=text sep '|', month=text".parse().unwrap();
    let declared = [
        "name:text",
        "size:int",
        "weight:float",
        "live:bool",
        "price:decimal",
        "at:timestamp",
        "raw:bytes",
        "tags:text[]",
        "ports:int[]",
        "weights:float[]",
        "odd-name:text",
    ];
    let columns = declared.iter().zip(1..).map(|(text, code)| {
        let spec: AttributeSpec = text.parse().unwrap();
        spec.resolve("a", code).unwrap()
    });
    let parts = key.parts().iter().zip(key.kinds()).zip(0..);
    let parts = parts.map(|((part, kind), place)| Attribute::of_key(&part.name, kind, place, 100 + place as u16));
    let attributes: Vec<Attribute> = columns.chain(parts).collect();
    let table = |definitions| {
        TableSchema::new("t".into(), vec!["a".into()], attributes.clone(), definitions)
            .with_key(Some(Arc::new(key.clone())))
    };
    let bare = table(Vec::new());
    let definition = |code: u16, on: &[&str], spec: DefinitionSpec| {
        let spec =
            DefinitionSpec { name: format!("d{code}"), on: on.iter().map(|s| (*s).to_owned()).collect(), ..spec };
        let definition = bare.definition_of(&spec).unwrap();
        Definition { code, state: Lifecycle::Active, ..definition }
    };
    let ordered = || DefinitionSpec { ordered: true, salts: Some(2), ..DefinitionSpec::default() };
    let covering = || DefinitionSpec { covered: vec!["size".into(), "at".into()], ..DefinitionSpec::default() };
    let partial =
        |text| DefinitionSpec { filter: Some(query::filter(text, &bare).unwrap()), ..DefinitionSpec::default() };
    table(vec![
        definition(200, &["name", "size desc"], ordered()),
        definition(201, &["lower(name)", "month"], covering()),
        definition(202, &["tags"], DefinitionSpec { value_limit: Some(16), ..ordered() }),
        definition(203, &["price desc", "at"], ordered()),
        definition(204, &["at", "live"], covering()),
        definition(205, &["ports", "tags"], DefinitionSpec::default()),
        definition(206, &["size"], partial("live = TRUE AND name LIKE 'a%'")),
        definition(207, &["raw desc"], DefinitionSpec { value_limit: Some(16), ..DefinitionSpec::default() }),
    ])
}

/// A store without rows.
struct Nothing;

#[async_trait]
impl Read for Nothing {
    async fn get(&self, _: &str, keys: &[Bytes], _: &ReadSpec) -> Result<Vec<Row>> {
        Ok(keys.iter().map(|key| Row { key: key.clone(), cells: Vec::new() }).collect())
    }

    async fn scan(&self, _: &str, _: Scan) -> Result<Box<dyn Scanner>> {
        Ok(Box::new(Self))
    }
}

#[async_trait]
impl Scanner for Nothing {
    async fn next_page(&mut self) -> Result<Page> {
        Ok(Page { done: true, ..Page::default() })
    }
}

/// An error that the query is to blame for.
fn of_the_query(error: &Error) {
    assert!(
        matches!(
            error.kind(),
            ErrorKind::InvalidInput
                | ErrorKind::Unsupported
                | ErrorKind::WrongType
                | ErrorKind::NotFound
                | ErrorKind::TooCostly
        ),
        "{error:?}"
    );
}

/// As many values as the text seems to have parameters.
fn parameters(sql: &str) -> Vec<Literal> {
    const VALUES: [&str; 6] = ["7", "abc", "true", "1.5", "2026-12-01", "\\x00"];
    let numbers = sql.split('$').skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    });
    let count: usize = numbers.max().unwrap_or(0).min(6);
    VALUES[..count].iter().map(|v| Literal::Untyped((*v).to_owned())).collect()
}

#[test]
fn fuzz_queries() {
    let schema = schema();
    let key = TokenKey::random().unwrap();
    run("queries", &WORDS, |input| {
        let Ok(sql) = std::str::from_utf8(input) else { return String::new() };
        let parsed = match query::parse(sql) {
            Ok(parsed) => parsed,
            Err(error) => {
                of_the_query(&error);
                return outcome(&Err::<(), _>(error));
            }
        };
        assert_eq!(query::table_of(sql).unwrap(), parsed.table);
        let parsed = query::ParsedQuery { table: "t".into(), ..parsed };
        let parameters = parameters(sql);
        let bound = match query::bind(&parsed, &schema, &parameters) {
            Ok(bound) => bound,
            Err(error) => {
                of_the_query(&error);
                return outcome(&Err::<(), _>(error));
            }
        };
        let consistency = if sql.len() % 2 == 0 { Consistency::Verified } else { Consistency::Indexed };
        let paging = (sql.len() % 3 == 0).then(|| Paging { size: 2, after: None, key: key.clone() });
        let options = Options { consistency, paging, parameters, ..Options::default() };
        let planned = block_on(query::prepare(&Nothing, &schema, &parsed, &options));
        if let Err(error) = &planned {
            assert_eq!(error.kind(), ErrorKind::TooCostly, "{error}");
        }
        let prepared =
            block_on(query::prepare(&Nothing, &schema, &parsed, &Options { allow_scan: true, ..options })).unwrap();
        assert_eq!(prepared.columns(), bound.names);
        let explained = prepared.explain();
        assert!(!explained.to_string().is_empty());
        if parsed.mode == Mode::Run {
            answers(&prepared, bound.output == Output::Count, bound.limit == Some(0));
        }
        let chosen = explained.to_string();
        chosen.chars().filter(|c| c.is_alphabetic() || *c == ' ').take(200).collect()
    });
}

/// Nothing is found where nothing is: no row, or a count of 0. No index is there either, which a reader of one notices.
fn answers(prepared: &query::Prepared, is_count: bool, none_wanted: bool) {
    let mut cursor = prepared.cursor(Arc::new(Nothing));
    let mut rows = Vec::new();
    loop {
        match block_on(cursor.next_page()) {
            Ok(Some(page)) => rows.extend(page),
            Ok(None) => break,
            Err(error) => {
                assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("index d"), "{error}");
                return;
            }
        }
    }
    assert!(rows.len() <= usize::from(is_count && !none_wanted), "{rows:?}");
    for row in rows {
        assert_eq!(row.values[0].as_ref().map(ToString::to_string).as_deref(), Some("0"));
    }
}

#[test]
fn fuzz_filters() {
    let schema = schema();
    run("filters", &WORDS[3..], |input| {
        let Ok(text) = std::str::from_utf8(input) else { return String::new() };
        let read = query::filter(text, &schema);
        match &read {
            Ok(filter) => {
                assert_eq!(query::filter(&filter.text, &schema).unwrap(), *filter);
                let written = serde_json::to_string(filter).unwrap();
                assert_eq!(serde_json::from_str::<sideindex::schema::Filter>(&written).unwrap(), *filter);
                filter.tree.codes(&mut |code| assert!(schema.attribute_by_code(code).is_some()));
            }
            Err(error) => of_the_query(error),
        }
        if let Ok(filter) = &read
            && let Ok(parsed) = query::parse(&format!("SELECT id FROM t WHERE {text}"))
            && parsed.order_by.is_empty()
        {
            let shown = query::bind(&parsed, &schema, &[]).unwrap().predicate.to_string();
            reads_back(&shown, &filter.tree, &schema);
        }
        outcome(&read)
    });
}

/// What is shown of a WHERE clause says the same when it is read, unless values of a long list are left out or a name would
/// have to be quoted.
fn reads_back(shown: &str, tree: &FilterTree, schema: &TableSchema) {
    if shown.contains('…') || shown.contains("odd-name") || matches!(shown, "true" | "false") {
        return;
    }
    let again = query::filter(shown, schema).unwrap_or_else(|e| panic!("{shown}: {e}"));
    assert_eq!(without_repetition(&again.tree), without_repetition(tree), "{shown}");
}

/// A pattern is shown with the range that leads to its rows, and so has it twice when it is read.
fn without_repetition(tree: &FilterTree) -> FilterTree {
    let (parts, conjunction) = match tree {
        FilterTree::And(parts) => (parts, true),
        FilterTree::Or(parts) => (parts, false),
        test @ FilterTree::Test { .. } => return test.clone(),
    };
    let mut kept = Vec::new();
    for part in parts.iter().map(without_repetition) {
        let inner = match part {
            FilterTree::And(inner) if conjunction => inner,
            FilterTree::Or(inner) if !conjunction => inner,
            other => vec![other],
        };
        inner.into_iter().for_each(|part| {
            if !kept.contains(&part) {
                kept.push(part)
            }
        });
    }
    match (kept.as_slice(), conjunction) {
        ([only], _) => only.clone(),
        (_, true) => FilterTree::And(kept),
        (_, false) => FilterTree::Or(kept),
    }
}
