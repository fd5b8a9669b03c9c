use super::*;
use crate::store::Comparison;

fn refused(sql: &str) -> String {
    let error = parse(sql).expect_err(sql);
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{sql}: {error}");
    error.to_string()
}

fn invalid(sql: &str) -> String {
    let error = parse(sql).expect_err(sql);
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
    error.to_string()
}

fn test(column: &str, condition: ParsedCondition) -> ParsedPredicate {
    ParsedPredicate::Test { column: column.to_owned(), condition }
}

fn filter(condition: &str) -> ParsedPredicate {
    parse(&format!("SELECT id FROM t WHERE {condition}")).unwrap().predicate.unwrap()
}

#[test]
fn a_whole_query() {
    let query = parse(
        "EXPLAIN ANALYZE SELECT id, \"tag-x\" FROM packages WHERE size >= 10 ORDER BY size DESC LIMIT 5; -- so it is",
    )
    .unwrap();
    assert_eq!(query.mode, Mode::Analyze);
    assert_eq!(query.table, "packages");
    assert_eq!(query.select, ParsedSelect::Columns(vec!["id".into(), "tag-x".into()]));
    let number = Literal::Number("10".into());
    assert_eq!(query.predicate, Some(test("size", ParsedCondition::Compare(Comparison::GreaterOrEqual, number))));
    assert_eq!(query.order_by, [ParsedOrder { column: "size".into(), descending: true }]);
    assert_eq!(query.limit, Some(5));
    assert_eq!(parse("explain select Count(*) from t").unwrap().select, ParsedSelect::Count);
    assert_eq!(parse("EXPLAIN SELECT id FROM t").unwrap().mode, Mode::Explain);
    assert_eq!(table_of("SELECT id FROM \"a.b\"").unwrap(), "a.b");
}

#[test]
fn literals() {
    let compared = |text: &str| match filter(&format!("a = {text}")) {
        ParsedPredicate::Test { condition: ParsedCondition::Compare(_, literal), .. } => literal,
        other => panic!("{other:?}"),
    };
    assert_eq!(compared("'it''s \\n'"), Literal::Text("it's \\n".into()));
    assert_eq!(compared("X'00fF'"), Literal::Bytes(vec![0, 255]));
    assert_eq!(compared("-9223372036854775808"), Literal::Number("-9223372036854775808".into()));
    assert_eq!(compared("-(-1.5e3)"), Literal::Number("1.5e3".into()));
    assert_eq!(compared("+1"), Literal::Number("1".into()));
    assert_eq!(compared("true"), Literal::Bool(true));
    assert!(invalid("SELECT id FROM t WHERE a = X'0'").contains("even number of hexadecimal digits"));
    assert!(invalid("SELECT id FROM t WHERE a = X'0g'").contains("even number of hexadecimal digits"));
}

#[test]
fn conditions() {
    let one = || Literal::Number("1".into());
    let compare = |c| test("a", ParsedCondition::Compare(c, one()));
    for (text, comparison) in [
        ("a = 1", Comparison::Equal),
        ("a != 1", Comparison::NotEqual),
        ("a <> 1", Comparison::NotEqual),
        ("1 < a", Comparison::Greater),
        ("1 >= a", Comparison::LessOrEqual),
        ("((a)) <= (1)", Comparison::LessOrEqual),
    ] {
        assert_eq!(filter(text), compare(comparison), "{text}");
    }
    assert_eq!(filter("a BETWEEN 1 AND 1"), test("a", ParsedCondition::Between(one(), one())));
    assert_eq!(filter("a IN (1, 1)"), test("a", ParsedCondition::In(vec![one(), one()])));
    // AND binds more tightly, and lists are flat.
    let equal = || compare(Comparison::Equal);
    assert_eq!(
        filter("a = 1 OR a = 1 AND (a = 1 AND a = 1) OR (a = 1)"),
        ParsedPredicate::Or(vec![equal(), ParsedPredicate::And(vec![equal(), equal(), equal()]), equal()])
    );
}

#[test]
fn what_is_not_supported_is_named() {
    for (sql, named) in [
        ("SELECT * FROM t", "SELECT *"),
        ("SELECT id FROM t WHERE a LIKE 'x%'", "LIKE"),
        ("SELECT id FROM t WHERE a IS NULL", "IS NULL"),
        ("SELECT id FROM t WHERE a IS NOT NULL", "IS NOT NULL"),
        ("SELECT id FROM t WHERE NOT a = 1", "NOT"),
        ("SELECT id FROM t WHERE a NOT IN (1)", "NOT IN"),
        ("SELECT id FROM t WHERE a NOT BETWEEN 1 AND 2", "NOT BETWEEN"),
        ("SELECT id FROM t WHERE a = $1", "the parameter $1"),
        ("SELECT id FROM t WHERE a = NULL", "NULL"),
        ("SELECT id FROM t WHERE a = b", "comparing two columns (a = b)"),
        ("SELECT id FROM t WHERE a = \"b\"", "single quotes"),
        ("SELECT id FROM t WHERE a + 1 = 2", "a + 1"),
        ("SELECT id FROM t WHERE tag-interface = 'x'", "double quotes"),
        ("SELECT id FROM t WHERE a IN (SELECT id FROM u)", "IN without a list"),
        ("SELECT id FROM t WHERE lower(a) = 'x'", "lower(a)"),
        ("SELECT id FROM t LIMIT 5 OFFSET 2", "OFFSET"),
        ("SELECT id FROM t ORDER BY a, b", "ORDER BY with several keys"),
        ("SELECT id FROM t ORDER BY a NULLS FIRST", "NULLS FIRST"),
        ("SELECT COUNT(*) FROM t ORDER BY a", "ORDER BY of a COUNT(*)"),
        ("SELECT COUNT(*), id FROM t", "COUNT(*) beside other columns"),
        ("SELECT COUNT(a) FROM t", "COUNT(a)"),
        ("SELECT COUNT(DISTINCT a) FROM t", "COUNT(DISTINCT a)"),
        ("SELECT DISTINCT a FROM t", "DISTINCT"),
        ("SELECT a AS b FROM t", "AS"),
        ("SELECT a FROM t AS u", "alias"),
        ("SELECT a FROM t, u", "one table"),
        ("SELECT a FROM t JOIN u ON t.a = u.a", "JOIN"),
        ("SELECT a FROM s.t", "s.t"),
        ("SELECT t.a FROM t", "t.a"),
        ("SELECT a FROM t GROUP BY a", "GROUP BY"),
        ("SELECT COUNT(*) FROM t HAVING COUNT(*) > 1", "HAVING"),
        ("SELECT a FROM t UNION SELECT a FROM t", "UNION"),
        ("WITH u AS (SELECT a FROM t) SELECT a FROM u", "WITH"),
        ("SELECT a FROM t FOR UPDATE", "FOR"),
        ("SELECT a FROM t FETCH FIRST 5 ROWS ONLY", "FETCH"),
        ("EXPLAIN VERBOSE SELECT a FROM t", "EXPLAIN with options"),
        ("DELETE FROM t", "DELETE"),
        ("INSERT INTO t VALUES (1)", "INSERT"),
        ("DROP TABLE t", "DROP"),
    ] {
        let message = refused(sql);
        assert!(message.contains(named) && message.contains("not supported"), "{sql}: {message}");
    }
}

#[test]
fn what_is_no_query_is_told() {
    assert!(invalid("").contains("found nothing"));
    assert!(invalid("SELECT id FROM t; SELECT id FROM t").contains("found 2"));
    assert!(invalid("SELECT id FROM").contains("does not parse"));
    assert!(invalid("SELECT id FROM t WHERE a = 'x").contains("Unterminated string literal"));
    assert!(invalid("SELECT id FROM t WHERE a").contains("a = TRUE"));
    assert!(invalid("SELECT id FROM t WHERE 1 = 1").contains("expected a column"));
    assert!(invalid("SELECT id FROM t WHERE a = -'x'").contains("expected a number after -"));
    assert!(invalid("SELECT id FROM t LIMIT -1").contains("from 0 up"));
    assert!(invalid("SELECT id FROM t LIMIT 1.5").contains("from 0 up"));
    let nested = format!("SELECT id FROM t WHERE {}a = 1{}", "(".repeat(200), ")".repeat(200));
    assert!(invalid(&nested).contains("nested too deeply"));
}

/// Tests run on threads with 2 MiB of stack, as tokio's workers do.
#[test]
fn long_statements_do_not_exhaust_the_stack() {
    // "a = 1 AND" has three tokens that count.
    let longest = MAX_TOKENS / 3 - 2;
    for connective in [" AND ", " OR "] {
        let parsed = filter(&vec!["a = 1"; longest].join(connective));
        let (ParsedPredicate::And(parts) | ParsedPredicate::Or(parts)) = parsed else { panic!("not a list") };
        assert_eq!(parts.len(), longest);
    }
    // The deepest of all: refused, yet built and freed.
    refused(&format!("SELECT id FROM t WHERE {}a = 1", "a+".repeat(MAX_TOKENS / 2 - 20)));
    assert!(invalid(&format!("SELECT id FROM t WHERE {}", vec!["a = 1"; MAX_TOKENS].join(" OR "))).contains("IN (…)"));
    // Lists of values may be longer.
    let list: Vec<String> = (0..100_000).map(|i| format!("'value {i}'")).collect();
    let parsed = filter(&format!("a IN ({})", list.join(",")));
    assert!(
        matches!(parsed, ParsedPredicate::Test { condition: ParsedCondition::In(list), .. } if list.len() == 100_000)
    );
}
