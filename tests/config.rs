//! The configuration as its users meet it: the examples, the reference, `config check|show`, `table apply`, completions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use serde_json::{Value, json};
use sideindex::config::{ATTRIBUTE_KEYS, Config, INDEX_KEYS, Loaded, SETTINGS, TABLE_KEYS};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The binary in a directory of its own, with nothing set.
fn sideindex(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sideindex"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SIDEINDEX_")) {
        command.env_remove(name);
    }
    command.args(args).current_dir(dir);
    command
}

fn run(dir: &Path, args: &[&str]) -> String {
    let output = sideindex(dir, args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn fails(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    assert!(!status.success());
    (status.code(), String::from_utf8(stderr).unwrap())
}

fn examples() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let found = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let found: Vec<PathBuf> = found.filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    assert!(found.len() >= 3, "{found:?}");
    found
}

#[test]
fn every_example_is_right() {
    let dir = tempfile::tempdir().unwrap();
    for example in examples() {
        let said = run(dir.path(), &["config", "check", example.to_str().unwrap()]);
        assert!(said.contains("all right"), "{said}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a check made something");
}

/// The keys a document's tables have in their first column, with the second.
fn documented() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let (key, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((key.to_owned(), rest.split_once('|')?.0.trim().to_owned()))
    });
    rows.collect()
}

#[test]
fn every_key_is_documented_with_its_default_and_no_other_is() {
    let documented = documented();
    let mut known: BTreeSet<String> = SETTINGS.iter().map(|s| s.key.to_owned()).collect();
    for (section, keys) in [("table", TABLE_KEYS), ("table.attribute", ATTRIBUTE_KEYS), ("table.index", INDEX_KEYS)] {
        known.extend(keys.iter().map(|key| format!("{section}.{key}")));
    }
    assert_eq!(documented.keys().cloned().collect::<BTreeSet<_>>(), known);
    let mut defaults = Config::default();
    for setting in SETTINGS {
        let shown = setting.slot(&mut defaults).shown().map(|v| format!("`{v}`")).unwrap_or_default();
        assert_eq!(documented[setting.key], shown, "{}", setting.key);
    }
}

#[test]
fn config_show_says_where_each_value_is_from() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[store]\ndata = \"data\"\n\n[query]\ntime_limit = \"30 s\"\n";
    std::fs::write(dir.path().join("sideindex.toml"), text).unwrap();
    let output = sideindex(dir.path(), &["config", "show", "--format", "json"])
        .env("SIDEINDEX_STORE_CACHE_BYTES", "1 GiB")
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let shown: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let from = |key: &str| {
        let setting = shown.iter().find(|s| s["setting"] == key).unwrap();
        (setting["value"].clone(), setting["from"].as_str().unwrap().to_owned())
    };
    assert_eq!(shown.len(), SETTINGS.len());
    assert_eq!(from("store.data"), (json!("data"), "sideindex.toml:2".to_owned()));
    assert_eq!(from("query.time_limit"), (json!("30s"), "sideindex.toml:5".to_owned()));
    assert_eq!(from("store.cache_bytes"), (json!("1 GiB"), "SIDEINDEX_STORE_CACHE_BYTES".to_owned()));
    assert_eq!(from("store.durability"), (json!("fsync"), "default".to_owned()));
    assert_eq!(from("output.format"), (json!("json"), "--format".to_owned()));
    let table = run(dir.path(), &["config", "show"]);
    assert!(table.contains("SIDEINDEX_STORE_DATA") && table.contains("sideindex.toml:2"), "{table}");
}

#[test]
fn the_file_is_found_and_its_settings_hold() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("etc")).unwrap();
    let text = "[store]\ndata = \"../things\"\n[output]\nformat = \"json\"\n[query]\nallow_scan = true\n";
    let file = dir.path().join("etc/own.toml");
    std::fs::write(&file, text).unwrap();
    let named = ["--config", file.to_str().unwrap()];
    run(dir.path(), &[&named[..], &["table", "create", "t", "--family", "a"]].concat());
    assert!(dir.path().join("things").is_dir());
    run(dir.path(), &[&named[..], &["put", "t", "x", "colour=red"]].concat());
    // By the variable, as JSON, by a scan: all three as the file says.
    let mut query = sideindex(dir.path(), &["query", "SELECT id FROM t WHERE colour = 'red'"]);
    let output = query.env("SIDEINDEX_CONFIG", &file).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\"id\":\"x\"}\n");
    // A limit is a limit.
    let mut query = sideindex(dir.path(), &["query", "SELECT id FROM t WHERE colour = 'red'"]);
    let (code, message) = fails(query.env("SIDEINDEX_CONFIG", &file).env("SIDEINDEX_QUERY_TIME_LIMIT", "1ns"));
    assert_eq!(code, Some(6), "{message}");
    // Without either nothing is set.
    let (code, message) = fails(&mut sideindex(dir.path(), &["table", "list"]));
    assert_eq!(code, Some(3));
    for way in ["--data DIR", "[store]", "SIDEINDEX_STORE_DATA"] {
        assert!(message.contains(way), "{message}");
    }
    let output = sideindex(dir.path(), &["table", "list"]).env("SIDEINDEX_STORE_DATA", "things").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "t\n");
}

#[test]
fn what_is_wrong_is_named_and_nothing_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sideindex.toml");
    std::fs::write(&file, "[store]\ndata = \"data\"\ncache = \"1 GiB\"\n").unwrap();
    for args in
        [&["config", "check"][..], &["config", "check", "sideindex.toml"], &["table", "list"], &["config", "show"]]
    {
        let (code, message) = fails(&mut sideindex(dir.path(), args));
        assert_eq!(code, Some(3), "{message}");
        assert!(message.contains("sideindex.toml:3:1: unknown key \"store.cache\""), "{message}");
    }
    // What needs no settings works all the same.
    run(dir.path(), &["completions", "fish"]);
    let (code, message) = fails(&mut sideindex(dir.path(), &["config", "check", "nowhere.toml"]));
    assert_eq!(code, Some(4), "{message}");
    assert!(message.contains("nowhere.toml"), "{message}");
    std::fs::remove_file(&file).unwrap();
    let (code, message) = fails(sideindex(dir.path(), &["table", "list"]).env("SIDEINDEX_STORE_DATE", "x"));
    assert_eq!(code, Some(3));
    assert!(message.contains("did you mean \"SIDEINDEX_STORE_DATA\""), "{message}");
}

#[test]
fn table_apply_makes_what_is_not_there_and_refuses_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let example = examples().into_iter().find(|p| p.ends_with("catalogue.toml")).unwrap();
    let text = std::fs::read_to_string(example).unwrap();
    std::fs::write(dir.path().join("sideindex.toml"), &text).unwrap();
    let made = run(dir.path(), &["table", "apply"]);
    assert!(made.contains("table products created") && made.contains("by_tags, by_brand_price"), "{made}");
    run(dir.path(), &["put", "products", "p1", "brand=ACME", "price:=5", "status=live", "tags:=[\"new\"]"]);
    run(dir.path(), &["put", "products", "p2", "brand=Acme", "price:=7", "status=gone"]);
    let again = run(dir.path(), &["table", "apply", "products"]);
    assert!(again.contains("table products is there; its indexes are there"), "{again}");

    let mut loaded = Loaded::default();
    loaded.take_file(&dir.path().join("sideindex.toml")).unwrap();
    let indexes: Vec<Value> = run(dir.path(), &["index", "list", "products", "--format", "json"])
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let asked: Vec<(&str, Vec<&str>)> = loaded.config.tables[0]
        .indexes
        .iter()
        .map(|i| (i.name.as_str(), i.on.iter().map(String::as_str).collect()))
        .collect();
    for (name, on) in asked {
        let index = indexes.iter().find(|i| i["index"] == name).unwrap();
        assert_eq!((&index["on"], &index["state"]), (&json!(on), &json!("active")), "{index}");
    }
    let answer = run(dir.path(), &["query", "SELECT id FROM products WHERE tags = 'new'", "--format", "csv"]);
    assert_eq!(answer, "id\r\np1\r\n");

    for (from, to, part) in [
        ("families = [\"a\"]", "families = [\"b\"]", "other column families or versions: a (1 version)"),
        ("on = [\"tags\"]", "on = [\"brand\"]", "by_tags exists already"),
        ("type = \"float\"", "type = \"int\"", "price is float"),
    ] {
        assert!(text.contains(from));
        std::fs::write(dir.path().join("sideindex.toml"), text.replace(from, to)).unwrap();
        let (code, message) = fails(&mut sideindex(dir.path(), &["table", "apply"]));
        assert_eq!(code, Some(4), "{message}");
        assert!(message.contains("table products: ") && message.contains(part), "{message}");
    }
    let (code, message) = fails(&mut sideindex(dir.path(), &["table", "apply", "product"]));
    assert_eq!(code, Some(4));
    assert!(message.contains("did you mean \"products\""), "{message}");
}

#[test]
fn completions_are_scripts_and_name_the_commands() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = run(dir.path(), &["completions", shell]);
        for command in ["table", "load", "query", "doctor", "completions"] {
            assert!(script.contains(command), "{shell} doesn't know {command}");
        }
    }
    use std::io::Write;
    let script = run(dir.path(), &["completions", "bash"]);
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
    // And bash completes with it.
    let complete = "source /dev/stdin; COMP_WORDS=(sideindex q); COMP_CWORD=1; _sideindex sideindex q sideindex; echo \"${COMPREPLY[@]}\"";
    let mut bash =
        Command::new("bash").args(["-c", complete]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let words = String::from_utf8(bash.wait_with_output().unwrap().stdout).unwrap();
    assert!(words.split_whitespace().any(|w| w == "query"), "{words}");
}
