//! Typed columns of existing tables and row keys made of parts, as users meet them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod support;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use support::{query, run, try_run, write_lines};

const KEY: &str = "hash=md5(who):2, who=text:4, n=int:4, action=text sep '|', month=text";

struct Data(tempfile::TempDir);

impl Data {
    fn new(create: &[&str]) -> Self {
        let data = Self(tempfile::tempdir().unwrap());
        run(&data.path(), &[&["table", "create", "events", "--family", "a"], create].concat());
        data
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn file(&self, lines: &[Value]) -> String {
        let path: &Path = &self.0.path().join("lines.jsonl");
        write_lines(path, lines.iter().map(Value::to_string)).to_str().unwrap().to_owned()
    }

    fn run(&self, args: &[&str]) -> String {
        run(&self.path(), args)
    }

    fn fails(&self, args: &[&str]) -> String {
        let output = try_run(&self.path(), args);
        assert!(!output.status.success(), "{args:?} succeeded");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!message.contains("panicked"), "{message}");
        message
    }

    fn rows(&self, sql: &str, args: &[&str]) -> Vec<Value> {
        query(&self.path(), sql, args)
    }
}

fn event(who: &str, n: i64, action: &str, month: &str) -> Value {
    json!({"ts": 10, "attrs": {"who": who, "n": n, "action": action, "month": month, "note": format!("{who}{n}")}})
}

fn events() -> Vec<(&'static str, i64, &'static str, &'static str)> {
    let mut events = Vec::new();
    for who in ["anna", "bert", "otto"] {
        for n in [-2, -1, 0, 7] {
            for action in ["click", "view"] {
                for month in ["2026-11", "2026-12"] {
                    events.push((who, n, action, month));
                }
            }
        }
    }
    events
}

#[test]
fn rows_are_found_by_the_leading_parts_of_their_keys() {
    let data = Data::new(&["--key", KEY]);
    let lines: Vec<Value> = events().iter().map(|(u, n, a, m)| event(u, *n, a, m)).collect();
    data.run(&["load", "events", &data.file(&lines)]);
    // A key that doesn't fit: the row is there, its parts are null.
    data.run(&["put", "events", "odd", "note=odd"]);
    type Holds = fn(&(&str, i64, &str, &str)) -> bool;
    let cases: [(&str, bool, Holds); 15] = [
        ("who = 'anna'", true, |e| e.0 == "anna"),
        ("who IN ('anna', 'otto') AND n = 7", true, |e| e.0 != "bert" && e.1 == 7),
        ("who = 'anna' AND n >= -1 AND n < 7", true, |e| e.0 == "anna" && (-1..7).contains(&e.1)),
        ("who = 'bert' AND n = 0 AND action = 'click' AND month > '2026-11'", true, |e| {
            *e == ("bert", 0, "click", "2026-12")
        }),
        ("who = 'bert' AND n = 0 AND action = 'click' AND month = '2026-12'", true, |e| {
            *e == ("bert", 0, "click", "2026-12")
        }),
        ("who = 'anna' AND month = '2026-12' AND note != 'anna7'", true, |e| {
            e.0 == "anna" && e.3 == "2026-12" && e.1 != 7
        }),
        ("who = 'anna' AND n = 0 AND action LIKE 'c%'", true, |e| (e.0, e.1, e.2) == ("anna", 0, "click")),
        ("who = 'anna' AND n = 0 AND action < 'view'", true, |e| (e.0, e.1, e.2) == ("anna", 0, "click")),
        ("(who = 'anna' AND n = 7) OR (who = 'otto' AND n != 7)", true, |e| {
            (e.0, e.1) == ("anna", 7) || (e.0 == "otto" && e.1 != 7)
        }),
        ("who = 'anna' AND NOT n IN (0, 7)", true, |e| e.0 == "anna" && e.1 < 0),
        ("hash = X'a70f' AND who = 'otto'", true, |_| false),
        ("lower(who) = 'anna'", false, |e| e.0 == "anna"),
        ("who = 'toolong'", true, |_| false),
        ("month = '2026-12'", false, |e| e.3 == "2026-12"),
        ("who > 'anna'", false, |e| e.0 > "anna"),
    ];
    for (condition, by_range, holds) in cases {
        let sql = format!("SELECT who, n, action, month FROM events WHERE {condition}");
        let found = data.rows(&sql, if by_range { &[] } else { &["--allow-scan"] });
        let shown = |v: &Value| v.as_object().unwrap().values().map(Value::to_string).collect::<Vec<_>>().join(" ");
        let mut found: Vec<String> = found.iter().map(shown).collect();
        let wanted = events().into_iter().filter(holds);
        let mut wanted: Vec<String> =
            wanted.map(|(u, n, a, m)| shown(&json!({"u": u, "n": n, "a": a, "m": m}))).collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{condition}");
        let plan = data.run(&["query", &format!("EXPLAIN {sql}")]);
        assert_eq!(!plan.contains("refused"), by_range, "{plan}");
    }
    let count = |condition: &str| {
        let rows = data.rows(&format!("SELECT COUNT(*) FROM events{condition}"), &["--allow-scan"]);
        rows[0]["count"].as_u64().unwrap()
    };
    let refused = data.fails(&["query", "SELECT id FROM events WHERE month = '2026-12'"]);
    assert!(refused.contains("tests of the leading parts of the row key"), "{refused}");
    let ordered = data.rows("SELECT n FROM events WHERE who = 'otto' ORDER BY n DESC, id LIMIT 5", &[]);
    let numbers: Vec<i64> = ordered.iter().map(|row| row["n"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [7, 7, 7, 7, 0]);
    assert_eq!(count(""), 49);
    assert_eq!(count(" WHERE note = 'odd'"), 1);
    assert_eq!(count(" WHERE who >= ''"), 48);
}

/// Parts of the row key stand in definitions beside columns: as later terms, covered, and in filters.
#[test]
fn key_parts_are_indexed_beside_columns() {
    let data = Data::new(&["--key", KEY, "--attr", "size:int"]);
    data.run(&["put", "events", "odd", "size:=1"]);
    let lines = |from: usize, to: usize| {
        let event = |(i, (u, n, a, m)): (usize, (&str, i64, &str, &str))| {
            let mut event = event(u, n, a, m);
            event["attrs"]["size"] = json!(i % 3);
            event
        };
        events().into_iter().enumerate().skip(from).take(to - from).map(event).collect::<Vec<_>>()
    };
    data.run(&["load", "events", &data.file(&lines(0, 20))]);
    let create = |args: &[&str]| data.run(&[&["index", "create", "events"], args].concat());
    create(&["by_size", "--on", "size,who,n desc", "--cover", "month"]);
    create(&["views", "--on", "size,month", "--where", "action = 'view' AND who != 'bert'"]);
    data.run(&["load", "events", &data.file(&lines(20, 48))]);
    for (condition, index) in [
        ("size = 1 AND who = 'anna'", "by_size"),
        ("size = 2 AND who = 'otto' AND n >= 0", "by_size"),
        ("size = 0", "by_size"),
        ("size = 1 AND month = '2026-12' AND action = 'view' AND who = 'anna'", "views"),
        ("size = 1 AND who IS NULL", "by_size"),
    ] {
        let sql = format!("SELECT id, month FROM events WHERE {condition}");
        let sorted = |rows: Vec<Value>| {
            let mut rows: Vec<String> = rows.iter().map(Value::to_string).collect();
            rows.sort();
            rows
        };
        let by_hand: Vec<Value> = data
            .rows("SELECT id, month, size, who, n, action FROM events", &["--allow-scan"])
            .into_iter()
            .filter(|row| {
                let size = condition.as_bytes()["size = ".len()] - b'0';
                row["size"] == size
                    && (!condition.contains("'anna'") || row["who"] == "anna")
                    && (!condition.contains("'otto'") || row["who"] == "otto" && row["n"].as_i64() >= Some(0))
                    && (!condition.contains("action") || row["action"] == "view" && row["month"] == "2026-12")
                    && (!condition.contains("IS NULL") || row["who"].is_null())
            })
            .map(|row| json!({"id": row["id"], "month": row["month"]}))
            .collect();
        for consistency in ["verified", "indexed"] {
            assert_eq!(
                sorted(data.rows(&sql, &["--consistency", consistency])),
                sorted(by_hand.clone()),
                "{condition}"
            );
        }
        assert!(!by_hand.is_empty(), "{condition}");
        let plan = data.run(&["query", &format!("EXPLAIN {sql}")]);
        assert!(plan.contains(&format!("read the index {index}")), "{plan}");
    }
    let refused = data.fails(&["index", "create", "events", "by_who", "--on", "who,size"]);
    assert!(refused.contains("expected an attribute in a column in the first place, found who"), "{refused}");
}

#[test]
fn a_row_key_and_its_parts_agree() {
    let data = Data::new(&["--key", "who=text:4, month=text"]);
    data.run(&["put", "events", "-", "who=anna", "month=2026-12", "note=x"]);
    data.run(&["put", "events", "anna2026-12", "who=anna", "colour=red"]);
    let row: Value = serde_json::from_str(&data.run(&["get", "events", "anna2026-12", "--format", "json"])).unwrap();
    assert_eq!(row["attrs"], json!({"who": "anna", "month": "2026-12", "colour": "red", "note": "x"}));
    for (args, message) in [
        (&["anna2026-12", "who=otto"][..], "attribute who: expected anna, as in the row key, found otto"),
        (&["ann", "who=ann"], "part who: expected 4 bytes, found 3"),
        (&["-", "who=anna"], "expected a value for the key part month, found none"),
        (&["-", "who=annabel", "month=1"], "part who: expected 4 bytes, found 7: annabel"),
        (&["anna2026-12", "who:=null"], "attribute who: expected a value, found null: it is a part of the row key"),
        (&["anna2026-12", "who:=4"], "attribute who: expected text, found 4"),
    ] {
        let found = data.fails(&[&["put", "events"], args].concat());
        assert!(found.contains(message), "{found}");
    }
    let file = data.file(&[json!({"attrs": {"who": "anna", "month": "1"}}), json!({"attrs": {"note": "lost"}})]);
    let found = data.fails(&["load", "events", &file]);
    assert!(found.contains("line 2: expected a value for the key part who"), "{found}");
    let other = Data::new(&[]);
    let found = other.fails(&["put", "events", "-", "who=anna"]);
    assert!(found.contains("expected a row key, found none: only a table with declared key parts"), "{found}");
}

#[test]
fn keys_are_declared_once_and_shown() {
    let data = Data::new(&["--key", KEY, "--attr", "note:text"]);
    let described = data.run(&["table", "describe", "events"]);
    assert!(described.contains(&format!("row keys: {KEY}")) && described.contains("row key, part 3"), "{described}");
    let found = data.fails(&["index", "create", "events", "by_who", "--on", "who"]);
    assert!(found.contains("who, which is row key, part 2"), "{found}");
    let file = data.file(&[]);
    let found = data.fails(&["load", "events", &file, "--attr", "who:int"]);
    assert!(found.contains("attribute who is text, and cannot be int as well"), "{found}");
    let found = data.fails(&["load", "events", &file, "--attr", "who:text:hbase:a:u"]);
    assert!(found.contains("attribute who is row key, part 2, and cannot be in a column as well"), "{found}");
    let found = data.fails(&["table", "create", "more", "--family", "a", "--key", "id=text"]);
    assert!(found.contains("id names the whole row key"), "{found}");
}

#[test]
fn columns_of_existing_tables_are_described() {
    let attributes = ["total:decimal:hbase:d:t", "at:timestamp:hbase:d:at:1", "raw:bytes", "days:timestamp[]"];
    let declared: Vec<&str> = attributes.iter().flat_map(|a| ["--attr", *a]).collect();
    let data = Data::new(&[&["--family", "d"], &declared[..]].concat());
    let line = json!({"id": "r1", "attrs": {
        "total": "12.50", "at": "2026-12-01T01:00:00+01:00", "raw": "AP+A", "days": ["2026-12-01", 0]
    }});
    data.run(&["load", "events", &data.file(&[line])]);
    for (name, on, ordered) in [("by_total", "total", true), ("by_at", "at", true), ("by_raw", "raw", false)] {
        let ordered = if ordered { &["--ordered"][..] } else { &[] };
        data.run(&[&["index", "create", "events", name, "--on", on], ordered].concat());
    }
    data.run(&["index", "create", "events", "by_days", "--on", "days"]);
    let row = json!({
        "total": "12.5", "at": "2026-12-01T00:00:00.000Z", "raw": "AP+A",
        "days": ["2026-12-01T00:00:00.000Z", "1970-01-01T00:00:00.000Z"]
    });
    let shown = data.run(&["get", "events", "r1"]);
    assert!(shown.contains(r"\x00ff80") && shown.contains("2026-12-01T00:00:00.000Z"), "{shown}");
    for condition in [
        "total = 12.500",
        "at = TIMESTAMP '2026-12-01T01:00:00+01:00'",
        "at >= DATE '2026-12-01'",
        "total > 12.4999999999999999999999999999999",
        "at = '2026-12-01'",
        "at BETWEEN 1796083200000 AND '2026-12-01T00:00:00Z'",
        "raw = X'00ff80'",
        "days = 0",
    ] {
        let found = data.rows(&format!("SELECT total, at, raw, days FROM events WHERE {condition}"), &[]);
        assert_eq!(found, std::slice::from_ref(&row), "{condition}");
    }
    for (condition, message) in [
        ("total = '12.5'", "expected a number, found '12.5'; write 12.5 without quotes"),
        ("at = 'noon'", "expected a time like '2026-12-01T00:00:00Z'"),
        ("raw = 'x'", "expected bytes like X'00ff', found 'x'"),
    ] {
        let found = data.fails(&["query", &format!("SELECT id FROM events WHERE {condition}")]);
        assert!(found.contains(message), "{found}");
    }
    let described = data.run(&["table", "describe", "events"]);
    assert!(described.contains("d:at:1") && described.contains("hbase"), "{described}");
    let file = data.file(&[]);
    for (attribute, message) in [
        ("total:decimal:utf8", "attribute total is encoded as hbase, and cannot be utf8 as well"),
        ("total:decimal:hbase:a:t", "attribute total is in column d:t, and cannot be in column a:t as well"),
        ("sum:decimal:hbase:d:t", "attribute sum: column d:t is that of attribute total already"),
        ("sum:decimal:hbase:x:t", "table events has no column family \"x\"; it has a, d"),
        ("sums:decimal[]:hbase", "expected the encoding json for decimal[], found hbase"),
    ] {
        let found = data.fails(&["load", "events", &file, "--attr", attribute]);
        assert!(found.contains(message), "{found}");
    }
}
