//! The command line as its users meet it: the documented spellings, the answers, the messages and the exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[allow(dead_code, reason = "shared with tests/catalogue.rs, which uses the rest")]
mod support;

use serde_json::{Value, json};
use std::path::PathBuf;
use support::{query, run, try_run, write_lines};

/// A store with a small table of things.
struct Things {
    dir: tempfile::TempDir,
}

impl Things {
    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn new() -> Self {
        let things = Self { dir: tempfile::tempdir().unwrap() };
        run(&things.data(), &["table", "create", "things", "--family", "a"]);
        things.load(&[
            json!({"id": "t1", "ts": 10, "attrs": {"colour": "red", "size": 5, "tags": ["a", "b"]}}),
            json!({"id": "t2", "ts": 10, "attrs": {"colour": "blue", "size": 7}}),
            json!({"id": "t3", "ts": 10, "attrs": {"size": -1, "tags": ["b"]}}),
        ]);
        run(&things.data(), &["index", "create", "things", "by_colour", "--on", "colour"]);
        run(&things.data(), &["index", "create", "things", "by_tags", "--on", "tags"]);
        run(&things.data(), &["index", "create", "things", "by_size", "--on", "size", "--ordered"]);
        things
    }

    fn load(&self, lines: &[Value]) {
        let file = write_lines(&self.dir.path().join("lines.jsonl"), lines.iter().map(Value::to_string));
        run(&self.data(), &["load", "things", file.to_str().unwrap()]);
    }

    fn run(&self, args: &[&str]) -> String {
        run(&self.data(), args)
    }

    fn ids(&self, condition: &str) -> Vec<String> {
        let rows = query(&self.data(), &format!("SELECT id FROM things WHERE {condition}"), &[]);
        let mut ids: Vec<String> = rows.iter().map(|r| r["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    }

    /// Runs what must fail; exit code and message.
    fn fails(&self, args: &[&str]) -> (i32, String) {
        let output = try_run(&self.data(), args);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{args:?} succeeded");
        assert!(!message.contains("panicked"), "{message}");
        (output.status.code().unwrap(), message)
    }
}

#[test]
fn put_get_and_delete_keep_the_indexes_in_step() {
    let things = Things::new();
    assert_eq!(things.ids("colour = 'red'"), ["t1"]);
    things.run(&["put", "things", "t1", "colour:=null", "note=seen", "size:=6"]);
    let row: Value = serde_json::from_str(&things.run(&["get", "things", "t1", "--format", "json"])).unwrap();
    assert_eq!(row["attrs"], json!({"note": "seen", "size": 6, "tags": ["a", "b"]}));
    assert!(things.ids("colour = 'red'").is_empty());
    assert_eq!(things.ids("size BETWEEN 6 AND 7"), ["t1", "t2"]);
    things.run(&["put", "things", "t9", "tags:=[\"b\", \"c\", \"b\"]"]);
    assert_eq!(things.ids("tags = 'b'"), ["t1", "t3", "t9"]);
    things.run(&["delete", "things", "t1", "t9"]);
    assert_eq!(things.ids("tags = 'b'"), ["t3"]);
    let (code, message) = things.fails(&["get", "things", "t1"]);
    assert_eq!((code, message.trim()), (4, "error: table things has no row \"t1\""));
    // What was deleted can come back: its new timestamps are above the markers.
    things.run(&["put", "things", "t1", "colour=red"]);
    assert_eq!(things.ids("colour = 'red'"), ["t1"]);
}

#[test]
fn what_a_row_loses_and_gains_in_one_millisecond_is_kept_apart() {
    let things = Things::new();
    for i in 0..20 {
        things.run(&["put", "things", "t1", &format!("colour=c{i}"), "--no-apply"]);
        things.run(&["put", "things", "t1", "colour:=null", "--no-apply"]);
        things.run(&["put", "things", "t1", &format!("colour=d{i}"), "--no-apply"]);
    }
    let behind: Value = serde_json::from_str(&things.run(&["index", "status", "things", "--format", "json"])).unwrap();
    assert_eq!(behind["changes"].as_u64().unwrap() - behind["applied"].as_u64().unwrap(), 60);
    things.run(&["apply"]);
    assert_eq!(things.ids("colour = 'd19'"), ["t1"]);
    assert!(things.ids("colour = 'c19'").is_empty());
}

#[test]
fn left_behind_indexes_say_so_and_catch_up() {
    let things = Things::new();
    things.run(&["put", "things", "t4", "colour=red", "--no-apply"]);
    assert!(things.ids("colour = 'red'") == ["t1"], "t4 is not applied yet");
    let answer = things.run(&["query", "SELECT id FROM things WHERE colour = 'red'"]);
    assert!(answer.contains("indexes at change 3 of 4"), "{answer}");
    let out: Value = serde_json::from_str(&things.run(&["apply", "things", "--format", "json"])).unwrap();
    assert_eq!((&out["received"], &out["applied"]), (&json!(1), &json!(1)), "{out}");
    assert_eq!(things.ids("colour = 'red'"), ["t1", "t4"]);
    assert!(things.run(&["query", "SELECT id FROM things WHERE colour = 'red'"]).contains("up to date"));
}

#[test]
fn an_index_created_twice_is_there_once_and_another_of_its_name_is_refused() {
    let things = Things::new();
    let again = things.run(&["index", "create", "things", "by_colour", "--on", "colour"]);
    assert!(again.contains("is there already, unchanged"), "{again}");
    let (code, message) = things.fails(&["index", "create", "things", "by_colour", "--on", "size"]);
    assert_eq!(code, 4);
    assert!(message.contains("by_colour exists already, on (colour)"), "{message}");
    let list: Vec<Value> = things
        .run(&["index", "list", "things", "--format", "json"])
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(list.len(), 3);
    assert!(list.iter().all(|i| i["state"] == "active" && i["degraded"] == false), "{list:?}");
}

#[test]
fn composite_indexes_find_rows_without_the_later_attributes() {
    let things = Things::new();
    things.run(&["index", "create", "things", "by_tags_colour", "--on", "tags,colour"]);
    assert_eq!(things.ids("tags = 'b' AND colour = 'red'"), ["t1"]);
    assert_eq!(things.ids("tags = 'b'"), ["t1", "t3"]);
    things.run(&["put", "things", "t3", "colour=red"]);
    assert_eq!(things.ids("tags = 'b' AND colour = 'red'"), ["t1", "t3"]);
}

#[test]
fn a_salted_ordered_index_answers_in_order() {
    let things = Things::new();
    things.run(&["index", "create", "things", "by_size_salted", "--on", "size", "--ordered", "--salts", "4"]);
    let sql = "SELECT id, size FROM things WHERE size >= -5 ORDER BY size DESC LIMIT 2";
    let rows = query(&things.data(), sql, &[]);
    assert_eq!(rows, [json!({"id": "t2", "size": 7}), json!({"id": "t1", "size": 5})]);
}

#[test]
fn analyze_shows_what_it_cost_beside_the_answer() {
    let things = Things::new();
    let sql = "SELECT id FROM things WHERE colour = 'red'";
    let output = try_run(&things.data(), &["query", sql, "--analyze", "--format", "json"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\"id\":\"t1\"}\n");
    let analysis: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(analysis["actual"]["entries"], 1, "{analysis}");
    assert_eq!(analysis["actual"]["base_rows"], 1, "{analysis}");
    let explained = things.run(&["query", &format!("EXPLAIN {sql}")]);
    assert!(explained.contains("index by_colour"), "{explained}");
    let actual = things.run(&["query", &format!("EXPLAIN ANALYZE {sql}")]);
    assert!(actual.contains("1 entry, 1 base row, "), "{actual}");
}

#[test]
fn answers_come_in_pages_and_with_parameters() {
    let things = Things::new();
    let sql = "SELECT id FROM things WHERE size >= $1 AND NOT (tags = $2) OR id LIKE 't%' ORDER BY size, id";
    let page = |after: &[&str]| {
        let args = ["query", sql, "--param", "-5", "--param", "zz", "--page-size", "2", "--format", "json"];
        let output = try_run(&things.data(), &[&args[..], after].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told = String::from_utf8(output.stderr).unwrap();
        let next =
            told.lines().find_map(|line| serde_json::from_str::<Value>(line).ok()?["next"].as_str().map(str::to_owned));
        (String::from_utf8(output.stdout).unwrap(), next)
    };
    let (first, token) = page(&[]);
    assert_eq!(first, "{\"id\":\"t3\"}\n{\"id\":\"t1\"}\n");
    let token = token.unwrap();
    assert_eq!(page(&["--after", &token]), ("{\"id\":\"t2\"}\n".to_owned(), None));
    let shown = things.run(&["query", "SELECT * FROM things WHERE tags = 'b'", "--page-size", "1"]);
    assert!(shown.contains("next page: --after "), "{shown}");
    let other = "SELECT id FROM things WHERE tags = 'b'";
    for (args, told) in [
        (vec!["query", other, "--page-size", "2", "--after", &token], "belongs to another query"),
        (vec!["query", other, "--page-size", "2", "--after", &token[1..]], "page token"),
        (vec!["query", "SELECT id FROM things WHERE size = $1", "--param", "big"], "expected an integer, found 'big'"),
        (vec!["query", "SELECT id FROM things WHERE size = $2", "--param", "1"], "the query has a parameter $2"),
    ] {
        let (code, message) = things.fails(&args);
        assert!(code == 3 && message.contains(told), "{code} {message}");
    }
}

#[test]
fn errors_say_what_to_do_and_exit_with_the_documented_codes() {
    let things = Things::new();
    let bad = things.dir.path().join("bad.jsonl");
    let bad_path = bad.to_str().unwrap();
    let cases: &[(&str, &[&str], i32, &str)] = &[
        ("", &["query", "SELECT id FROM things WHERE color = 'red'"], 4, "did you mean \"colour\""),
        ("", &["query", "SELECT id FROM thing WHERE colour = 'red'"], 4, "did you mean \"things\""),
        ("", &["query", "SELEC id"], 3, "SELEC"),
        ("", &["query", "SELECT id FROM things WHERE size = = 5"], 3, "\n                                     ^"),
        ("", &["query", "SELECT id FROM things WHERE lowr(colour) = 'x'"], 5, "did you mean \"lower\""),
        ("", &["query", "SELECT id FROM things WHERE size = 'big'"], 3, "int"),
        ("", &["query", "SELECT id FROM things"], 5, "--allow-scan"),
        ("", &["put", "things", "t1", "size=big"], 3, "expected int, found \"big\""),
        ("", &["put", "things", "t1", "size:=big"], 3, "expected JSON"),
        ("", &["put", "things", "t1", "colour="], 3, "use null to clear"),
        ("", &["put", "things", "t1", "id=x"], 3, "row key"),
        ("", &["put", "things", "t1", "size:=1", "size:=2"], 3, "given twice"),
        ("", &["put", "things", "t1", "size"], 3, "name=text"),
        ("", &["index", "create", "things", "i", "--on", "colr"], 4, "did you mean \"colour\""),
        ("", &["index", "create", "things", "i", "--on", "size,size"], 3, "twice"),
        ("", &["index", "create", "things", "i", "--on", "id"], 3, "is the row key"),
        ("", &["table", "create", "things", "--family", "a"], 4, "exists already"),
        ("", &["table", "create", "sx_mine", "--family", "a"], 3, "sideindex's own"),
        ("", &["table", "create", "a/b", "--family", "a"], 3, "cannot name a table"),
        ("", &["table", "create", "t", "--family", "a", "--attr", "x:colour"], 3, "text, int, float, bool"),
        ("", &["load", "things", "nowhere.jsonl"], 4, "nowhere.jsonl"),
        ("{\"id\": \"x\", \"attrs\": {}}\n{\"id\": 5}\n", &["load", "things", bad_path], 3, "bad.jsonl:2"),
        ("{\"id\": \"x\", \"ts\": -1, \"attrs\": {}}\n", &["load", "things", bad_path], 3, "between 0 and"),
        ("{\"id\": \"\", \"attrs\": {}}\n", &["load", "things", bad_path], 3, "row key"),
        ("{\"id\": \"x\", \"attr\": {}}\n", &["load", "things", bad_path], 3, "unknown field `attr`"),
        ("\n{\"id\": \"x\", \"attrs\": {\"size\": \"L\"}}\n", &["load", "things", bad_path], 3, "line 2, row x"),
        ("{\"id\": \"x\", \"attrs\": {\"new\": {}}}\n", &["load", "things", bad_path], 3, "attribute new"),
        ("\u{0}\u{1}garbage", &["load", "things", bad_path], 3, "bad.jsonl:1"),
        ("", &["frobnicate"], 2, "unrecognized subcommand"),
    ];
    for (content, args, code, part) in cases {
        std::fs::write(&bad, content).unwrap();
        let (found, message) = things.fails(args);
        assert!(message.contains(part), "{args:?}: expected {part:?} in {message}");
        assert_eq!(found, *code, "{args:?}: {message}");
    }
    // None of it left a trace.
    assert_eq!(query(&things.data(), "SELECT COUNT(*) FROM things", &["--allow-scan"]), [json!({"count": 3})]);
}

#[test]
fn a_damaged_archive_is_told_apart_from_its_lines() {
    let things = Things::new();
    let path = things.dir.path().join("cut.jsonl.zst");
    let mut bytes = std::fs::read(support::UPDATES).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&path, bytes).unwrap();
    let (_, message) = things.fails(&["load", "things", path.to_str().unwrap()]);
    assert!(message.contains("cut.jsonl.zst") && message.contains("loaded before this"), "{message}");
}

#[test]
fn a_missing_store_and_a_locked_one_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("nowhere");
    let output = try_run(&nowhere, &["table", "list"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("table create"));
    assert!(!nowhere.exists(), "a command that only reads made a store");

    let things = Things::new();
    let store = sideindex::store::embedded::EmbeddedStore::open(&things.data(), Default::default()).unwrap();
    let (code, message) = things.fails(&["table", "list"]);
    assert_eq!(code, 6, "{message}");
    assert!(message.contains(things.data().to_str().unwrap()), "{message}");
    drop(store);
    things.run(&["table", "list"]);
}

#[test]
fn arrays_nulls_and_undeclared_attributes_load_as_documented() {
    let things = Things::new();
    things.load(&[
        json!({"id": "t1", "ts": 20, "attrs": {"tags": [], "weight": 1.5, "new": true, "gone": null}}),
        json!({"id": "t2", "ts": 5, "attrs": {"colour": "green"}}),
    ]);
    assert_eq!(things.ids("tags = 'a'"), Vec::<String>::new());
    assert_eq!(things.ids("colour = 'blue'"), ["t2"], "a change older than what is there changes nothing");
    let described: Value =
        serde_json::from_str(&things.run(&["table", "describe", "things", "--format", "json"])).unwrap();
    let types: Vec<(&str, &str)> = described["attributes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["name"].as_str().unwrap(), a["type"].as_str().unwrap()))
        .collect();
    assert_eq!(types, [("colour", "text"), ("new", "bool"), ("size", "int"), ("tags", "text[]"), ("weight", "float")]);
}

#[test]
fn compaction_says_what_it_removed_and_changes_no_answer() {
    let things = Things::new();
    things.run(&["delete", "things", "t3"]);
    things.run(&["put", "things", "t1", "colour=green"]);
    let before = things.ids("size > 0");
    let report: Value = serde_json::from_str(&things.run(&["compact", "things", "--format", "json"])).unwrap();
    assert_eq!(report["table"], "things");
    // The row's marker and its two cells, and the colour that was overwritten; the indexes' own come on top.
    assert!(report["cells_removed"].as_u64().unwrap() >= 4, "{report}");
    assert!(report["bytes_before"].as_u64().is_some() && report["bytes_after"].as_u64().is_some(), "{report}");
    assert_eq!((things.ids("size > 0"), things.ids("colour = 'green'")), (before, vec!["t1".to_owned()]));
    assert!(things.ids("tags = 'b'").iter().eq(["t1"]), "t3 is gone");
    let again = things.run(&["compact"]);
    assert!(again.starts_with("all tables: ") && again.contains(" removed from "), "{again}");
    let (code, message) = things.fails(&["compact", "thing"]);
    assert_eq!(code, 4, "{message}");
}

#[test]
fn standard_input_can_be_loaded() {
    use std::io::Write;
    let things = Things::new();
    let mut child = support::sideindex(&things.data())
        .args(["load", "things", "-", "--attr", "price:float"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let line = "{\"id\": \"t7\", \"attrs\": {\"colour\": \"red\", \"price\": 3}}\n";
    child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(things.ids("colour = 'red'"), ["t1", "t7"]);
    let rows = query(&things.data(), "SELECT price FROM things WHERE id = 't7'", &[]);
    assert_eq!(rows, [json!({"price": 3.0})]);
}

#[test]
fn the_demo_runs_and_keeps_its_data() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("kept");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_sideindex"))
        .args(["demo", "--keep"])
        .arg(&data)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for part in
        ["63,436 rows", "462,990 entries", "3,110 rows", "66,546 of 66,546", "1,349", "21,815", "What to try next"]
    {
        assert!(text.contains(part), "expected {part:?} in\n{text}");
    }
    let again = std::process::Command::new(env!("CARGO_BIN_EXE_sideindex"))
        .args(["demo", "--keep"])
        .arg(&data)
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(4));
    let answer = query(&data, "SELECT COUNT(*) FROM packages WHERE section = 'games'", &[]);
    assert_eq!(answer, [json!({"count": 1108})]);
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for attribute in ["id:text", "x", "x:colour"] {
        let output = try_run(&data, &["table", "create", "t", "--family", "a", "--attr", attribute]);
        assert_eq!(output.status.code(), Some(3), "{attribute}");
    }
    let output = try_run(&data, &["table", "create", "t", "--family", "a", "--attr", "x:int", "--attr", "x:text"]);
    assert_eq!(output.status.code(), Some(4));
    run(&data, &["table", "create", "t", "--family", "a"]);

    // The type of a refused file's attributes is not recorded either.
    let lines = ["{\"id\": \"a\", \"attrs\": {\"price\": 10}}", "{\"id\": \"b\", \"attrs\": {\"price\": 9.99}}"];
    let file = write_lines(&dir.path().join("prices.jsonl"), lines);
    let output = try_run(&data, &["load", "t", file.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 2, row b: attribute price: expected int"));
    run(&data, &["load", "t", file.to_str().unwrap(), "--attr", "price:float"]);
    let rows = query(&data, "SELECT id FROM t WHERE price < 10", &["--allow-scan"]);
    assert_eq!(rows, [json!({"id": "b"})]);
}

#[test]
fn what_could_not_be_indexed_is_told_by_writes_and_answers() {
    let things = Things::new();
    things.run(&["put", "things", "t1", "note=short"]);
    things.run(&["index", "create", "things", "whole", "--on", "note", "--value-limit", "0"]);
    let long = format!("note={}", "x".repeat(40_000));
    let output = try_run(&things.data(), &["put", "things", "t1", &long]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("quarantine"), "{output:?}");
    let answer = things.run(&["query", "SELECT id FROM things WHERE note = 'short'"]);
    assert!(answer.contains("degraded, with rows in quarantine: whole"), "{answer}");
    let answer = things.run(&["query", "SELECT id FROM things WHERE tags = 'b'"]);
    assert!(!answer.contains("degraded"), "{answer}");
}

#[test]
fn a_long_answer_has_one_header() {
    let things = Things::new();
    let lines: Vec<Value> =
        (0..2_500).map(|i| json!({"id": format!("n{i:04}"), "attrs": {"colour": "grey"}})).collect();
    things.load(&lines);
    let answer = things.run(&["query", "SELECT id FROM things WHERE colour IN ('red', 'grey')"]);
    assert_eq!(answer.lines().filter(|l| l.trim() == "id").count(), 1);
    assert_eq!(answer.lines().filter(|l| l.trim().starts_with('n')).count(), 2_500);
    assert!(answer.contains("2,501 rows"), "{answer}");
}

#[test]
fn a_table_prints_no_control_characters() {
    let things = Things::new();
    things.run(&["put", "things", "c1", "colour:=\"a\\u001b[31mb\\nc\""]);
    let answer = things.run(&["query", "SELECT id, colour FROM things WHERE id = 'c1'"]);
    assert!(answer.contains("a\\u{1b}[31mb\\nc"), "{answer}");
    assert!(!things.run(&["get", "things", "c1"]).contains('\u{1b}'));
}

#[test]
fn floats_without_a_number_are_found_by_name() {
    let things = Things::new();
    things.run(&["put", "things", "f1", "weight:=1.5"]);
    things.run(&["put", "things", "f2", "weight:=\"inf\""]);
    things.run(&["put", "things", "f3", "weight:=\"NaN\""]);
    things.run(&["put", "things", "f4", "weight:=-0.0"]);
    things.run(&["index", "create", "things", "by_weight", "--on", "weight", "--ordered"]);
    assert_eq!(things.ids("weight = 'NaN'"), ["f3"]);
    assert_eq!(things.ids("weight >= 'inf'"), ["f2", "f3"]);
    assert_eq!(things.ids("weight = 0"), ["f4"]);
}

#[test]
fn a_query_asks_for_a_write_that_the_indexes_do_not_have_yet() {
    let things = Things::new();
    let written = things.run(&["put", "things", "t9", "colour=red", "--no-apply", "--format", "json"]);
    let token = serde_json::from_str::<Value>(&written).unwrap()["fresh_after"].as_str().unwrap().to_owned();
    let sql = "SELECT id FROM things WHERE colour = 'red' AND id = 't9' OR colour = 'red'";
    let behind = things.run(&["query", sql]);
    assert!(!behind.contains("up to date"), "{behind}");
    assert!(things.run(&["query", sql, "--fresh-after", &token]).contains("t9"));
    let other = Things::new();
    let (code, message) = other.fails(&["query", sql, "--fresh-after", &token]);
    assert_eq!(code, 3);
    assert!(message.contains("it is another store's") || message.contains("ends at"), "{message}");
    let (code, message) = other.fails(&["query", sql, "--fresh-after", "nonsense"]);
    assert_eq!(code, 2);
    assert!(message.contains("expected a freshness token"), "{message}");
}
