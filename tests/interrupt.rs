//! Ctrl-C: what is under way stops, says what was kept, and the store opens clean.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[allow(dead_code, reason = "shared with tests/catalogue.rs, which uses the rest")]
mod support;

use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{count, run};

fn spawn(data: &Path, args: &[&str]) -> Child {
    let mut command = support::sideindex(data);
    command.env("SIDEINDEX_LOG", "info");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// Its exit code, and the rest of what it says.
fn end(mut child: Child, mut messages: impl Read) -> (Option<i32>, String) {
    let mut text = String::new();
    messages.read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code(), text)
}

fn create(rows: usize) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    run(&data, &["table", "create", "things", "--family", "a", "--attr", "size:int"]);
    if rows > 0 {
        let lines = (0..rows)
            .map(|i| json!({"id": format!("a long row key, number {i:05}"), "attrs": {"size": i}}).to_string());
        let file = support::write_lines(&dir.path().join("lines.jsonl"), lines);
        run(&data, &["load", "things", file.to_str().unwrap()]);
    }
    (dir, data)
}

#[test]
fn a_load_keeps_what_it_wrote() {
    let (_dir, data) = create(0);
    run(&data, &["index", "create", "things", "by_size", "--on", "size", "--ordered"]);
    let mut child = spawn(&data, &["load", "things", "-"]);
    let mut input = child.stdin.take().unwrap();
    for i in 0..5_000 {
        writeln!(input, "{}", json!({"id": format!("n{i}"), "attrs": {"size": i}})).unwrap();
    }
    // It waits for more, which never comes; the pipe holds less than was written, so it has begun.
    interrupt(&child);
    let messages = child.stderr.take().unwrap();
    let (code, message) = end(child, messages);
    drop(input);
    assert_eq!(code, Some(130), "{message}");
    assert!(message.contains("interrupted; the indexes may be behind, `apply`"), "{message}");
    let rows = count(&data, "SELECT COUNT(*) FROM things", &["--allow-scan"]);
    match message.split_once(" rows were loaded before this") {
        Some((before, _)) => {
            let said = before.rsplit(' ').next().unwrap().replace(',', "");
            assert_eq!(said, rows.to_string(), "{message}");
        }
        None => assert!(rows == 0 && message.contains("nothing was loaded"), "{message}"),
    }
    run(&data, &["doctor"]);
    run(&data, &["apply"]);
    assert_eq!(count(&data, "SELECT COUNT(*) FROM things WHERE size >= 0", &[]), rows);
}

#[test]
fn a_query_stops_between_pages() {
    let (_dir, data) = create(10_000);
    let mut child = spawn(&data, &["query", "SELECT id, size FROM things", "--allow-scan", "--format", "json"]);
    // Nobody takes its output, which is more than the pipe holds: it is in the middle of it.
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    output.read_line(&mut first).unwrap();
    interrupt(&child);
    let mut messages = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("stopping") {
        assert!(messages.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let rest = output.lines().count();
    let (code, message) = end(child, messages);
    assert_eq!(code, Some(130), "{message}");
    assert!(message.contains("error: interrupted"), "{message}");
    assert!(rest < 9_999, "it went on to the end");
    run(&data, &["doctor"]);
}

#[test]
fn an_index_that_was_not_completed_is_completed_later() {
    let (_dir, data) = create(10_000);
    let create = ["index", "create", "things", "by_size", "--on", "size"];
    let mut child = spawn(&data, &create);
    let mut messages = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("building") {
        assert!(messages.read_line(&mut said).unwrap() > 0, "{said}");
    }
    interrupt(&child);
    let (code, message) = end(child, messages);
    assert_eq!(code, Some(130), "{message}");
    assert!(
        message.contains("interrupted: index by_size is not complete; the same command again completes it"),
        "{message}"
    );
    run(&data, &["doctor"]);
    run(&data, &create);
    assert_eq!(count(&data, "SELECT COUNT(*) FROM things WHERE size = 77", &[]), 1);
    let list = run(&data, &["index", "list", "things"]);
    assert!(list.contains("active"), "{list}");
}
