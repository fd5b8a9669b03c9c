use super::*;
use crate::error::Action;
use crate::query::parse;
use crate::query::testing::schema;
use crate::schema::Condition;

fn bound(condition: &str) -> BoundQuery {
    let parsed = parse(&format!("SELECT id FROM packages WHERE {condition}")).unwrap();
    bind(&parsed, &schema(&[]), &[]).unwrap()
}

fn failure(sql: &str) -> Error {
    bind(&parse(sql).unwrap(), &schema(&[]), &[]).expect_err(sql)
}

#[test]
fn literals_take_the_type_of_their_column() {
    for (condition, message) in [
        ("section = 5", "section is text: expected text in single quotes, found 5; write '5'"),
        ("section = TRUE", "section is text: expected text in single quotes, found TRUE; write 'TRUE'"),
        ("section = X'00'", "section is text: expected text in single quotes, found X'00'"),
        ("depends = 5", "depends is text[]: expected text in single quotes, found 5; write '5'"),
        ("size = '5'", "size is int: expected an integer, found '5'; write 5 without quotes"),
        ("size = 'red'", "size is int: expected an integer, found 'red'"),
        (
            "size > 1.5",
            "size is int: expected an integer, found 1.5; round it, for only float and decimal attributes have fractions",
        ),
        (
            "ports IN (1, 9223372036854775808)",
            "ports is int[]: expected a 64-bit integer, found 9223372036854775808; the range is -9223372036854775808 to \
             9223372036854775807",
        ),
        ("weight BETWEEN 1 AND 'x'", "weight is float: expected a number, found 'x'"),
        (
            "weight < 1e999",
            "weight is float: expected a 64-bit float, found 1e999; the largest is 1.7976931348623157e308",
        ),
        ("essential = 1", "essential is bool: expected TRUE or FALSE, found 1"),
        ("id = 5", "id is the row key: expected text, or bytes like X'00ff', found 5; write '5'"),
    ] {
        let error = failure(&format!("SELECT id FROM packages WHERE {condition}"));
        assert_eq!(error.to_string(), message);
        assert_eq!((error.kind(), error.action()), (ErrorKind::WrongType, Action::FixConfig));
    }
    bound("weight = 3 AND weight > -1.5 AND size = -9223372036854775808 AND essential = FALSE AND id = X'ff'");
}

#[test]
fn names_are_looked_up() {
    let error = failure("SELECT sectoin FROM packages");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("did you mean \"section\"?"), "{error}");
    let query = bound("size = 1 AND (section = 'a' OR size = 2)");
    let names: Vec<&str> = query.slots.iter().map(|s| s.attribute.name.as_str()).collect();
    assert_eq!(names, ["size", "section"]);
}

#[test]
fn an_array_is_no_key_to_sort_by() {
    let error = failure("SELECT id FROM packages ORDER BY depends");
    assert!(
        error.to_string().starts_with("ORDER BY depends: expected an attribute with one value a row, found text[]")
    );
}

#[test]
fn tests_of_one_column_are_joined_where_that_changes_nothing() {
    let tests = |condition: &str| {
        let mut tests = Vec::new();
        bound(condition).predicate.visit(&mut |t| tests.push(t.text.clone()));
        tests
    };
    assert_eq!(tests("size > 1 AND section = 'a' AND size < 5"), ["size > 1 AND size < 5", "section = 'a'"]);
    assert_eq!(tests("ports > 1 AND ports < 5"), ["ports > 1", "ports < 5"]);
    assert_eq!(tests("ports = 1 OR ports BETWEEN 3 AND 5"), ["(ports = 1 OR ports BETWEEN 3 AND 5)"]);
    assert_eq!(tests("size = 1 AND (size = 1 AND (size = 1))"), ["size = 1 AND size = 1 AND size = 1"]);
    assert_eq!(
        bound("(size = 1 OR size = 2) AND section = 'a' OR id > 'x'").predicate.to_string(),
        "((size = 1 OR size = 2) AND section = 'a') OR id > 'x'"
    );
}

#[test]
fn contradictions_are_seen() {
    for condition in [
        "size > 5 AND size < 5",
        "id = 'a' AND id = 'b'",
        "section BETWEEN 'b' AND 'a'",
        "section = 'x' AND (size BETWEEN 2 AND 1 OR size = 3 AND size = 4)",
    ] {
        assert!(bound(condition).predicate.is_false(), "{condition}");
    }
    // Different elements may satisfy the two.
    assert!(!bound("ports = 1 AND ports = 2").predicate.is_false());
    assert_eq!(bound("section = 'x' OR size BETWEEN 2 AND 1").predicate.to_string(), "section = 'x'");
}

#[test]
fn negation_goes_down_to_the_tests() {
    for (condition, shown) in [
        ("NOT (size = 1 AND section = 'a')", "NOT (size = 1) OR NOT (section = 'a')"),
        ("NOT (size = 1 OR ports = 2)", "NOT (size = 1) AND NOT (ports = 2)"),
        ("NOT (size IS NULL)", "size IS NOT NULL"),
        ("NOT (section NOT LIKE '%x')", "section LIKE '%x'"),
        ("section LIKE 'a%x'", "section LIKE 'a%' AND section LIKE 'a%x'"),
        ("section NOT IN ('a')", "section NOT IN ('a')"),
    ] {
        assert_eq!(bound(condition).predicate.to_string(), shown);
    }
    let condition = |text: &str| match bound(text).predicate {
        Predicate::Test(test) => test.condition.clone(),
        other => panic!("{other}"),
    };
    // One value fails a test exactly if it passes the opposite one; of an array every element has to fail.
    assert_eq!(condition("NOT (size < 5)"), condition("size >= 5"));
    assert_eq!(condition("NOT (size BETWEEN 1 AND 5)"), condition("size NOT BETWEEN 1 AND 5"));
    assert!(matches!(condition("NOT (ports = 5)"), Condition::Every(_)));
    assert!(matches!(condition("ports != 5"), Condition::Some(_)));
    assert_eq!(condition("section LIKE 'ab'"), condition("section = 'ab'"));
    assert_eq!(condition("section LIKE 'a\\%'"), condition("section = 'a%'"));
}

#[test]
fn null_is_unknown() {
    for condition in ["size = NULL", "NOT (size = NULL)", "size NOT IN (1, NULL)", "section LIKE NULL", "id IS NULL"] {
        assert!(bound(condition).predicate.is_false(), "{condition}");
    }
    // What fails whatever the null stands for.
    let bound_to = |a: &str, b: &str| assert_eq!(conditions(a), conditions(b), "{a}, {b}");
    bound_to("size IN (1, NULL)", "size = 1");
    bound_to("size NOT BETWEEN 5 AND NULL", "size < 5");
    bound_to("size NOT BETWEEN NULL AND 5", "size > 5");
}

fn conditions(condition: &str) -> Vec<Condition> {
    let mut conditions = Vec::new();
    bound(condition).predicate.visit(&mut |t| conditions.push(t.condition.clone()));
    conditions
}

#[test]
fn parameters_take_the_type_of_their_column() {
    let with = |condition: &str, parameters: &[Literal]| {
        let parsed = parse(&format!("SELECT id FROM packages WHERE {condition}")).unwrap();
        bind(&parsed, &schema(&[]), parameters).map(|b| {
            let mut conditions = Vec::new();
            b.predicate.visit(&mut |t| conditions.push(t.condition.clone()));
            conditions
        })
    };
    let untyped = |text: &str| Literal::Untyped(text.to_owned());
    let parameters = [untyped("5"), untyped("5"), untyped("true"), untyped("-1.5")];
    assert_eq!(
        with("size = $1 AND section = $2 AND essential = $3 AND weight = $4 AND ports = $1", &parameters).unwrap(),
        conditions("size = 5 AND section = '5' AND essential = TRUE AND weight = -1.5 AND ports = 5")
    );
    assert_eq!(with("section = lower($1)", &[untyped("ÄB")]).unwrap(), conditions("section = 'äb'"));
    assert!(with("section = lower($1)", &[Literal::Null]).unwrap().is_empty());
    for (condition, parameters, told) in [
        ("size = $1", vec![], "the query has a parameter $1, and no values are given"),
        ("size IN ($1, $3)", vec![untyped("1"); 2], "the query has a parameter $3, and 2 values are given"),
        ("size = $2", vec![untyped("1"); 2], "a value is given for $1 (1), and the query has no $1"),
        ("size = 1", vec![untyped("1")], "a value is given for $1 (1), and the query has no $1"),
        ("size = $1", vec![untyped("red")], "size is int: expected an integer, found 'red'"),
        ("section = lower($1)", vec![Literal::Bool(true)], "expected a text as the value of $1, found TRUE"),
    ] {
        let error = with(condition, &parameters).expect_err(condition).to_string();
        assert!(error.contains(told), "{condition}: {error}");
    }
    let parsed = parse("SELECT id FROM packages LIMIT $1 OFFSET $2").unwrap();
    let bound = bind(&parsed, &schema(&[]), &[untyped("5"), Literal::Number("2".into())]).unwrap();
    assert_eq!((bound.limit, bound.offset), (Some(5), 2));
}

#[test]
fn names_functions_and_orders() {
    let query = |sql: &str| bind(&parse(sql).unwrap(), &schema(&[]), &[]).unwrap();
    let all = query("SELECT * FROM packages");
    assert_eq!(all.names, ["id", "depends", "essential", "ports", "priority", "section", "size", "weight"]);
    let some =
        query("SELECT size AS s, lower(section) FROM packages ORDER BY s DESC, size, lower(section), id, weight");
    assert_eq!(some.names, ["s", "lower(section)"]);
    let keys: Vec<(Column, bool)> = some.order.iter().map(|o| (o.column, o.nulls_first)).collect();
    assert_eq!(keys, [(Column::Attribute(0), true), (Column::Attribute(1), false), (Column::RowKey, false)]);
    for (sql, told) in [
        ("SELECT lower(size) FROM packages", "lower(size): expected a text attribute, found size, which is int"),
        ("SELECT id FROM packages WHERE lower(id) = 'x'", "lower(id) is not supported"),
        ("SELECT id FROM packages WHERE size LIKE 'x'", "LIKE is of text, and size is int"),
        ("SELECT size AS s, id AS s FROM packages ORDER BY s", "several columns have this name"),
    ] {
        assert!(failure(sql).to_string().contains(told), "{}", failure(sql));
    }
}

#[test]
fn filters_of_definitions_are_bound() {
    let schema = schema(&[]);
    let filter = super::filter("section = 'a' AND NOT (ports = 1 OR lower(priority) LIKE '%x')", &schema).unwrap();
    let FilterTree::And(parts) = &filter.tree else { panic!("{filter:?}") };
    assert_eq!(parts.len(), 3);
    for (text, told) in [
        ("id = 'x'", "not the row key"),
        ("size = $1", "no values are given"),
        ("size = 1 LIMIT 5", "expected the end of the condition"),
        ("size = 1 AND", "^"),
    ] {
        let error = super::filter(text, &schema).expect_err(text).to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}
