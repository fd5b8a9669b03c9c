//! Bad input and bad surroundings: each is told with its place and what to do, good neighbours are kept, nothing panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[allow(dead_code, reason = "shared with tests/catalogue.rs, which uses the rest")]
mod support;

use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{count, query, run, try_run};

struct Things {
    dir: tempfile::TempDir,
}

impl Things {
    fn new() -> Self {
        let things = Self { dir: tempfile::tempdir().unwrap() };
        run(
            &things.data(),
            &["table", "create", "things", "--family", "a", "--attr", "size:int", "--attr", "colour:text"],
        );
        run(&things.data(), &["index", "create", "things", "by_size", "--on", "size", "--ordered"]);
        things
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn file(&self, content: impl AsRef<[u8]>) -> String {
        let path = self.dir.path().join("lines.jsonl");
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Loads two good lines and a bad third. Message and exit code; the good ones are counted.
    #[track_caller]
    fn refuses(&self, bad: impl AsRef<[u8]>, parts: &[&str]) {
        let good = "{\"id\": \"g1\", \"attrs\": {\"size\": 1}}\n{\"id\": \"g2\", \"attrs\": {\"size\": 2}}\n";
        let file = self.file([good.as_bytes(), bad.as_ref(), b"\n"].concat());
        let message = fails(try_run(&self.data(), &["load", "things", &file]), 3);
        assert!(message.contains("lines.jsonl"), "{message}");
        assert!(message.len() < 1_000, "a message of {} bytes", message.len());
        for part in parts {
            assert!(message.contains(part), "expected {part:?} in {message}");
        }
        // What it says was loaded is there, and in the index.
        let kept = if message.contains("2 rows were loaded before this") { 2 } else { 0 };
        assert!(kept == 2 || message.contains("nothing was loaded"), "{message}");
        assert_eq!(count(&self.data(), "SELECT COUNT(*) FROM things WHERE size >= 0", &[]), kept);
        // And the rest goes on as if nothing had been.
        run(&self.data(), &["load", "things", &self.file(good)]);
        assert_eq!(count(&self.data(), "SELECT COUNT(*) FROM things WHERE size >= 0", &[]), 2);
    }
}

#[track_caller]
fn fails(output: Output, code: i32) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!message.contains("panicked"), "{message}");
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.contains("error: "), "{message}");
    message
}

#[test]
fn a_malformed_json_line() {
    let things = Things::new();
    things.refuses(
        "{\"id\": \"x\", \"attrs\": {\"size\": }}",
        &["lines.jsonl:3", "at column 31", "2 rows were loaded before this"],
    );
}

#[test]
fn a_line_that_ends_too_early() {
    Things::new().refuses("{\"id\": \"x\", \"attrs\": {", &["lines.jsonl:3", "EOF"]);
}

#[test]
fn a_wrong_type() {
    let things = Things::new();
    things.refuses(
        "{\"id\": \"x\", \"attrs\": {\"size\": \"L\"}}",
        &["line 3, row x: attribute size: expected int, found \"L\""],
    );
    let message = fails(try_run(&things.data(), &["put", "things", "x", "size=7"]), 3);
    assert!(message.contains("name:=json"), "{message}");
    // Whoever wrote := knows of it.
    let message = fails(try_run(&things.data(), &["put", "things", "x", "colour=red", "size:=\"L\""]), 3);
    assert!(message.contains("attribute size: expected int") && !message.contains("name:=json"), "{message}");
}

#[test]
fn a_key_that_is_too_long() {
    let line = json!({"id": "k".repeat(32_768), "attrs": {}}).to_string();
    Things::new().refuses(line, &["line 3, row kkkk", "1 to 32767 bytes, found 32768"]);
    let things = Things::new();
    run(&things.data(), &["put", "things", &"k".repeat(32_767), "colour=red"]);
}

#[test]
fn a_line_that_is_not_utf_8() {
    let things = Things::new();
    things.refuses(b"{\"id\": \"caf\xe9\", \"attrs\": {}}", &["lines.jsonl:3", "the byte 0xe9 as byte 12", "iconv"]);
}

#[test]
fn a_value_over_the_cell_limit() {
    let limit = sideindex::model::MAX_CELL;
    let line = |length: usize| json!({"id": "x", "attrs": {"note": "n".repeat(length)}}).to_string();
    let things = Things::new();
    things.refuses(line(limit), &["line 3, row x: attribute note", "at most 10485760 bytes", "a reference to it"]);
    // 20 bytes of a key-value, the row, the family and the qualifier count.
    let most = limit - 20 - "x".len() - "a".len() - "note".len();
    run(&things.data(), &["load", "things", &things.file(line(most))]);
    fails(try_run(&things.data(), &["load", "things", &things.file(line(most + 1))]), 3);
}

#[test]
fn a_key_twice_in_one_line() {
    let things = Things::new();
    things.refuses(
        "{\"id\": \"x\", \"attrs\": {\"size\": 5, \"size\": 6}}",
        &["lines.jsonl:3", "\"size\" is given twice"],
    );
    let things = Things::new();
    things.refuses("{\"id\": \"x\", \"id\": \"y\", \"attrs\": {}}", &["lines.jsonl:3", "duplicate field `id`"]);
}

#[test]
fn an_unknown_table_column_or_function() {
    let things = Things::new();
    run(&things.data(), &["put", "things", "x", "colour=red"]);
    for (sql, code, part) in [
        ("SELECT id FROM thing", 4, "did you mean \"things\""),
        ("SELECT id FROM things WHERE color = 'red'", 4, "did you mean \"colour\""),
        ("SELECT color FROM things WHERE size = 1", 4, "did you mean \"colour\""),
        ("SELECT id FROM things WHERE upper(colour) = 'RED'", 5, "upper"),
    ] {
        let message = fails(try_run(&things.data(), &["query", sql]), code);
        assert!(message.contains(part), "{sql}: {message}");
    }
    fails(try_run(&things.data(), &["load", "thing", &things.file("")]), 4);
}

#[test]
fn an_empty_file_says_so() {
    let things = Things::new();
    let said = run(&things.data(), &["load", "things", &things.file("\n\n")]);
    assert!(said.contains("lines.jsonl: it is empty, nothing was loaded"), "{said}");
}

#[test]
fn a_delete_says_what_was_there() {
    let things = Things::new();
    run(&things.data(), &["put", "things", "x", "colour=red"]);
    let said = run(&things.data(), &["delete", "things", "x", "y", "x"]);
    assert_eq!(said, "1 row deleted; 1 was not there: y\n");
    let said = run(&things.data(), &["delete", "things", "x", "--format", "json"]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["deleted"], &said["missing"]), (&json!([]), &json!(["x"])), "{said}");
}

/// Runs a script where it may mount things, without being root outside.
fn in_own_mounts(script: &str, arguments: &[&Path]) -> Output {
    let script = format!("set -e; {script}");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "bash", "-c", &script, "bash"]).args(arguments);
    let output = command.env("SIDEINDEX", env!("CARGO_BIN_EXE_sideindex")).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!message.contains("unshare: ") && !message.contains("mount: "), "this test mounts file systems: {message}");
    output
}

#[test]
fn a_full_disk_stops_the_load_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    let lines: Vec<String> = (0..12_000)
        .map(|i| {
            let noise: String = (0..800).map(|_| random.alphanumeric()).collect();
            json!({"id": format!("n{i:05}"), "attrs": {"noise": noise}}).to_string()
        })
        .collect();
    let file = support::write_lines(&dir.path().join("lines.jsonl"), &lines);
    let script = "
        mount -t tmpfs -o size=16m tmpfs $1
        head -c 8M /dev/zero > $1/filler
        $SIDEINDEX --data $1/data table create t --family a >&2
        $SIDEINDEX --data $1/data load t $2 2> $1/../first && exit 99
        cat $1/../first >&2
        rm $1/filler
        $SIDEINDEX --data $1/data query 'SELECT COUNT(*) FROM t' --allow-scan --format json
        $SIDEINDEX --data $1/data put t after noise=x >&2
        $SIDEINDEX --data $1/data doctor --quiet";
    let mount = dir.path().join("mount");
    fs::create_dir(&mount).unwrap();
    let output = in_own_mounts(script, &[&mount, &file]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}{}", String::from_utf8_lossy(&output.stdout));
    assert!(message.contains("No space left on device") && message.contains("free some"), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    // What was said to be loaded is there when there is space again; a batch that was under way may be too.
    let said = fs::read_to_string(dir.path().join("first")).unwrap();
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap_or(0);
    let said = said.split("rows were loaded before this").next().and_then(|s| s.rsplit(' ').nth(1)).map_or(0, digits);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let kept: serde_json::Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    let kept = kept["count"].as_u64().unwrap();
    assert!(kept >= said && kept < 12_000, "said {said}, kept {kept}");
}

#[test]
fn a_read_only_directory() {
    let things = Things::new();
    run(&things.data(), &["put", "things", "x", "colour=red"]);
    let script = "
        mount --bind $1 $1
        mount -o remount,ro,bind $1
        $SIDEINDEX --data $1 doctor --quiet
        $SIDEINDEX --data $1 table list";
    let output = in_own_mounts(script, &[&things.data()]);
    // Looking is possible, opening is not.
    assert!(String::from_utf8_lossy(&output.stdout).contains("nothing is wrong"), "{output:?}");
    let message = fails(output, 1);
    assert!(message.contains("Read-only file system") && message.contains("where it can be written"), "{message}");
    assert!(message.contains(things.data().to_str().unwrap()), "{message}");
}

#[test]
fn an_output_that_takes_nothing() {
    let things = Things::new();
    run(&things.data(), &["put", "things", "x", "size:=1"]);
    for format in ["table", "json", "csv"] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let sql = "SELECT id FROM things WHERE size = 1";
        let mut command = support::sideindex(&things.data());
        let output = command.args(["query", sql, "--format", format]).stdout(full).output().unwrap();
        let message = fails(output, 1);
        assert!(message.contains("No space left"), "{message}");
    }
}

#[test]
fn a_killed_writer_loses_nothing_it_acknowledged() {
    let things = Things::new();
    let mut child = support::sideindex(&things.data())
        .args(["load", "things", "-", "--no-apply"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for i in 0..4_500 {
        writeln!(input, "{}", json!({"id": format!("n{i:04}"), "attrs": {"size": i}})).unwrap();
    }
    // Two full batches; the store is where it says when they are in its journal.
    let journal = || fs::read_dir(things.data().join("db")).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let holds = |id: &[u8]| {
        let files = journal().into_iter().filter(|p| p.extension().is_some_and(|e| e == "jnl"));
        files.map(|p| fs::read(p).unwrap()).any(|bytes| bytes.windows(id.len()).any(|w| w == id))
    };
    while !holds(b"n3999") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    run(&things.data(), &["doctor"]);
    let rows = count(&things.data(), "SELECT COUNT(*) FROM things", &["--allow-scan"]);
    assert_eq!(rows % 2_000, 0, "half a batch");
    assert!(rows >= 2_000, "{rows}");
    run(&things.data(), &["apply"]);
    assert_eq!(count(&things.data(), "SELECT COUNT(*) FROM things WHERE size >= 0", &[]), rows);
    assert_eq!(query(&things.data(), "SELECT id FROM things WHERE size = 1999", &[]), [json!({"id": "n1999"})]);
}
