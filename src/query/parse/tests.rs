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

fn plain(column: &str) -> ParsedOperand {
    ParsedOperand { name: column.to_owned(), functions: Vec::new() }
}

fn test(column: &str, condition: ParsedCondition) -> ParsedPredicate {
    ParsedPredicate::Test { operand: plain(column), condition }
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
    let column = |name| ParsedColumn::One { operand: plain(name), alias: None };
    assert_eq!(query.select, ParsedSelect::Columns(vec![column("id"), column("tag-x")]));
    let number = Literal::Number("10".into());
    assert_eq!(query.predicate, Some(test("size", ParsedCondition::Compare(Comparison::GreaterOrEqual, number))));
    assert_eq!(query.order_by, [ParsedOrder { operand: plain("size"), descending: true, nulls_first: None }]);
    assert_eq!((query.limit, query.offset), (Some(Literal::Number("5".into())), None));
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
fn negations_patterns_and_nulls() {
    let shown = |text: &str| format!("{:?}", filter(text));
    for (text, same) in [
        ("a NOT IN (1)", "NOT (a IN (1))"),
        ("a NOT BETWEEN 1 AND 2", "NOT a BETWEEN 1 AND 2"),
        ("a NOT LIKE 'x%'", "NOT (a LIKE 'x%' ESCAPE '\\')"),
        ("a IS NOT NULL", "NOT a IS NULL"),
        ("NOT (NOT (a = 1 OR a = 2))", "a = 1 OR a = 2"),
    ] {
        assert_eq!(shown(text), shown(same));
        assert_ne!(shown(text), shown("a = 1"));
    }
    assert_eq!(filter("a IS NULL"), test("a", ParsedCondition::IsNull));
    let like = |escape| ParsedCondition::Like { pattern: Literal::Text("x#%".into()), escape };
    assert_eq!(filter("a LIKE 'x#%' ESCAPE '#'"), test("a", like(Some('#'))));
    assert_eq!(filter("a LIKE 'x#%' ESCAPE ''"), test("a", like(None)));
    assert_eq!(filter("a = NULL"), test("a", ParsedCondition::Compare(Comparison::Equal, Literal::Null)));
    assert!(invalid("SELECT id FROM t WHERE a LIKE 'x' ESCAPE 'ab'").contains("one character"));
}

#[test]
fn functions_parameters_and_names() {
    let ParsedPredicate::Test { operand, condition } = filter("lower(TRIM(a)) = lower('ÄB')") else { panic!() };
    assert_eq!((operand.to_string().as_str(), condition.to_string().as_str()), ("lower(trim(a))", "= 'äb'"));
    let ParsedPredicate::Test { operand, condition } = filter("lower(trim($2)) < nfkc(a)") else { panic!() };
    assert_eq!((operand.to_string().as_str(), condition.to_string().as_str()), ("nfkc(a)", "> lower(trim($2))"));
    let query = parse("SELECT *, lower(a) AS b FROM t ORDER BY b NULLS LAST, lower(c) DESC LIMIT $1 OFFSET 2").unwrap();
    let ParsedSelect::Columns(columns) = &query.select else { panic!() };
    assert!(matches!(&columns[..], [ParsedColumn::All, ParsedColumn::One { alias: Some(b), .. }] if b == "b"));
    assert_eq!(query.order_by[0].nulls_first, Some(false));
    assert_eq!((query.order_by[1].operand.to_string().as_str(), query.order_by[1].descending), ("lower(c)", true));
    assert_eq!(query.limit, Some(Literal::Parameter(1, vec![])));
    assert_eq!(query.offset, Some(Literal::Number("2".into())));
    for (sql, told) in [
        ("SELECT id FROM t WHERE lowr(a) = 'x'", "the function lowr is not supported (did you mean \"lower\"?)"),
        ("SELECT id FROM t WHERE upper(a) = 'x'", "the function upper is not supported"),
        ("SELECT id FROM t WHERE trim(BOTH 'x' FROM a) = 'x'", "white space at both ends"),
        ("SELECT id FROM t WHERE a = $x", "the parameter $x"),
        ("SELECT id FROM t WHERE a = $0", "the parameter $0"),
    ] {
        assert!(refused(sql).contains(told), "{sql}: {}", refused(sql));
    }
    assert!(invalid("SELECT id FROM t WHERE lower(a, b) = 'x'").contains("expected lower(column)"));
    assert!(invalid("SELECT id FROM t WHERE a = lower(5)").contains("expected text in single quotes, found 5"));
}

#[test]
fn what_is_not_supported_is_named() {
    for (sql, named) in [
        ("SELECT t.* FROM t", "qualified *"),
        ("SELECT id FROM t WHERE a ILIKE 'x%'", "ILIKE (write lower(a) LIKE"),
        ("SELECT id FROM t WHERE a SIMILAR TO 'x%'", "SIMILAR TO"),
        ("SELECT id FROM t WHERE a LIKE ANY ('x%')", "LIKE ANY"),
        ("SELECT id FROM t WHERE a IS TRUE", "a IS TRUE"),
        ("SELECT id FROM t WHERE a IS DISTINCT FROM 1", "IS DISTINCT FROM"),
        ("SELECT id FROM t ORDER BY 1", "ORDER BY 1"),
        ("SELECT COUNT(*) AS n FROM t", "COUNT(*) with another name"),
        ("SELECT id FROM t WHERE a = b", "comparing two columns (a = b)"),
        ("SELECT id FROM t WHERE a = \"b\"", "single quotes"),
        ("SELECT id FROM t WHERE a + 1 = 2", "a + 1"),
        ("SELECT id FROM t WHERE tag-interface = 'x'", "double quotes"),
        ("SELECT id FROM t WHERE a IN (SELECT id FROM u)", "IN without a list"),
        ("SELECT COUNT(*) FROM t ORDER BY a", "ORDER BY of a COUNT(*)"),
        ("SELECT COUNT(*), id FROM t", "COUNT(*) beside other columns"),
        ("SELECT COUNT(a) FROM t", "COUNT(a)"),
        ("SELECT COUNT(DISTINCT a) FROM t", "COUNT(DISTINCT a)"),
        ("SELECT DISTINCT a FROM t", "DISTINCT"),
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
    assert!(invalid("SELECT id FROM t LIMIT 'x'").contains("LIMIT: expected a whole number"));
    assert!(invalid("SELECT id FROM t WHERE a").contains("a = TRUE"));
    assert!(invalid("SELECT id FROM t WHERE 1 = 1").contains("expected a column"));
    assert!(invalid("SELECT id FROM t WHERE a = -'x'").contains("expected a number after -"));
    assert!(invalid("SELECT id FROM t LIMIT -1").contains("from 0 up"));
    assert!(invalid("SELECT id FROM t LIMIT 1.5").contains("from 0 up"));
    let nested = format!("SELECT id FROM t WHERE {}a = 1{}", "(".repeat(200), ")".repeat(200));
    assert!(invalid(&nested).contains("nested too deeply"));
}

#[test]
fn mistakes_are_pointed_at() {
    let told = invalid("SELECT id FROM t\nWHERE a == = 'é' ORDER");
    let line = "  WHERE a == = 'é' ORDER";
    assert!(
        told.starts_with("the SQL does not parse: expected an expression, found = at line 2, column 12\n"),
        "{told}"
    );
    assert!(told.ends_with(&format!("\n{line}\n{}^", " ".repeat(line.find("= 'é").unwrap()))), "{told}");
    let told = invalid("SELECT id FROM t WHERE");
    assert!(told.ends_with("\n  SELECT id FROM t WHERE\n                        ^"), "{told}");
    // Of a long line a part is shown.
    let told = invalid(&format!("SELECT id FROM t WHERE a IN ({}) LIMIT ,", "1, ".repeat(500) + "1"));
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[1].starts_with("  …") && lines[1].chars().count() < 110, "{told}");
    assert_eq!(lines[1].chars().nth(lines[2].chars().count() - 1), Some(','), "{told}");
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
