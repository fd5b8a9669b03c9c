use super::*;
use crate::error::Action;
use crate::query::parse;
use crate::query::testing::schema;

fn bound(condition: &str) -> BoundQuery {
    let parsed = parse(&format!("SELECT id FROM packages WHERE {condition}")).unwrap();
    bind(&parsed, &schema(&[])).unwrap()
}

fn failure(sql: &str) -> Error {
    bind(&parse(sql).unwrap(), &schema(&[])).expect_err(sql)
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
            "size is int: expected an integer, found 1.5; round it, for only a float attribute has fractions",
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
