//! The same on the command line.

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod support;

use serde_json::{Value, json};
use sideindex::store::embedded::EmbeddedStore;
use sideindex::store::{Durability, Store};
use std::path::Path;
use std::time::Duration;
use support::{count, query, run, sideindex, try_run, write_lines};

/// A store with so many things of one colour.
fn things(dir: &Path, rows: usize) -> std::path::PathBuf {
    let data = dir.join("data");
    run(&data, &["table", "create", "things", "--family", "a", "--attr", "size:int"]);
    let line = |i| json!({"id": format!("t{i:05}"), "attrs": {"colour": "red", "size": i, "tags": ["a", "b", "c"]}});
    let file = write_lines(&dir.join("lines.jsonl"), (0..rows).map(|i| line(i).to_string()));
    run(&data, &["load", "things", file.to_str().unwrap()]);
    for (name, on) in [("by_colour", "colour"), ("by_tags", "tags"), ("by_size", "size")] {
        run(&data, &["index", "create", "things", name, "--on", on]);
    }
    data
}

fn json_of(text: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(text).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn verify_ends_with_code_7_until_it_is_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let data = things(dir.path(), 10);
    assert!(run(&data, &["verify", "things"]).contains("nothing wrong"));
    {
        let store = EmbeddedStore::open(&data, Default::default()).unwrap();
        let schema = futures::executor::block_on(async {
            let catalog = sideindex::schema::Catalog::open(std::sync::Arc::new(store.clone()) as _).await.unwrap();
            catalog.table("things").await.unwrap()
        });
        let mut terms = Vec::new();
        sideindex::schema::term::encode(&"green".into(), &mut terms);
        let definition = schema.definition("by_colour").unwrap();
        let key = sideindex::schema::entry::encode(definition, &terms, b"t00003").unwrap();
        let cell = sideindex::model::Cell::put("i", "e", 7, vec![1, 0]);
        let mutation = sideindex::model::RowMutation::new(key, vec![cell]);
        futures::executor::block_on(store.mutate("sx_things_index", vec![mutation], Durability::Durable)).unwrap();
    }
    let output = try_run(&data, &["verify", "things", "--format", "json"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`verify --repair` writes them anew"));
    let report = &json_of(&output.stdout)[0];
    assert_eq!((&report["wrong"], &report["indexes"]["by_colour"]["outdated"]), (&json!(1), &json!(1)));
    assert_eq!(
        (&report["findings"][0]["values"], &report["findings"][0]["row"]),
        (&json!(["green"]), &json!("t00003"))
    );
    let output = try_run(&data, &["verify", "things", "--index", "by_size"]);
    assert!(output.status.success(), "another index is fine");
    let output = try_run(&data, &["verify", "things", "--repair", "--format", "json", "--limit-reported", "0"]);
    assert!(output.status.success(), "{output:?}");
    let reports = json_of(&output.stdout);
    assert_eq!((reports.len(), &reports[0]["repaired"], &reports[1]["wrong"]), (2, &json!(1), &json!(0)));
    assert_eq!(reports[0]["findings"], json!([]));
    assert_eq!(try_run(&data, &["verify", "things", "--index", "by_siz"]).status.code(), Some(4));
}

/// SIGKILL at random moments of a drop: what is left is no answer, and the next drop ends it.
#[test]
fn a_killed_drop_is_ended_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let data = things(dir.path(), 4_000);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut kills = 0;
    for round in 0..6 {
        let mut child = sideindex(&data)
            .args(["index", "drop", "things", "by_tags"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(rng.u64(0..400)));
        kills += u32::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
        let answer = try_run(&data, &["query", "SELECT COUNT(*) FROM things WHERE tags = 'b'", "--format", "json"]);
        if answer.status.success() {
            assert_eq!(json_of(&answer.stdout), [json!({"count": 4_000})], "round {round}: a part of an answer");
        } else {
            assert_eq!(answer.status.code(), Some(5), "round {round}: {answer:?}");
        }
        assert_eq!(count(&data, "SELECT COUNT(*) FROM things WHERE colour = 'red'", &[]), 4_000, "round {round}");
        run(&data, &["verify", "things"]);
    }
    println!("{kills} of 6 drops were killed before their end");
    let _ = try_run(&data, &["index", "drop", "things", "by_tags"]);
    assert_eq!(try_run(&data, &["index", "drop", "things", "by_tags"]).status.code(), Some(4));
    let status =
        json_of(run(&data, &["index", "status", "things", "--count", "--format", "json"]).as_bytes()).remove(0);
    let entries: Vec<(&Value, &Value)> =
        status["indexes"].as_array().unwrap().iter().map(|i| (&i["index"], &i["entries"])).collect();
    assert_eq!(entries, [(&json!("by_colour"), &json!(4_000)), (&json!("by_size"), &json!(4_000))]);
    run(&data, &["index", "create", "things", "by_tags", "--on", "colour,tags"]);
    assert_eq!(query(&data, "SELECT id FROM things WHERE colour = 'red' AND tags = 'b'", &[]).len(), 4_000);
    run(&data, &["verify", "things"]);
}

#[test]
fn the_quarantine_is_listed_shown_replayed_and_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let data = things(dir.path(), 3);
    for (row, at) in [("t00000", 4_000_000_000_000), ("t00001", 4_000_000_000_000_i64)] {
        let store = EmbeddedStore::open(&data, Default::default()).unwrap();
        let cell = sideindex::model::Cell::put("a", "size", at, "large");
        let mutation = sideindex::model::RowMutation::new(row, vec![cell]);
        futures::executor::block_on(store.mutate("things", vec![mutation], Durability::Durable)).unwrap();
    }
    run(&data, &["apply", "things"]);
    let list = json_of(run(&data, &["quarantine", "list", "things", "--format", "json"]).as_bytes());
    assert_eq!(list.len(), 2);
    assert_eq!((&list[0]["attribute"], &list[0]["row"]), (&json!("size"), &json!("t00000")));
    let page = try_run(&data, &["quarantine", "list", "things", "--limit", "1", "--format", "json"]);
    let more = String::from_utf8(page.stderr).unwrap();
    let token = more.trim().strip_prefix("more: --after ").unwrap();
    let rest = json_of(run(&data, &["quarantine", "list", "things", "--after", token, "--format", "json"]).as_bytes());
    assert_eq!(rest, list[1..]);
    let id = list[0]["id"].as_str().unwrap();
    let shown = run(&data, &["quarantine", "show", "things", id]);
    assert!(shown.contains("a:size at 4000000000000, Put, large"), "{shown}");
    assert!(run(&data, &["quarantine", "replay", "things"]).contains("2 records kept"));
    let status = run(&data, &["index", "status", "things"]);
    assert!(status.contains("active, degraded") && status.contains("2 in quarantine"), "{status}");
    let unsure = try_run(&data, &["quarantine", "drop", "things", id]);
    assert_eq!(unsure.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&unsure.stderr).contains("--yes"));
    let dropped = run(&data, &["quarantine", "drop", "things", id, "--yes"]);
    assert!(dropped.contains("degraded until `verify things` finds them fine"), "{dropped}");
    assert_eq!(try_run(&data, &["quarantine", "show", "things", id]).status.code(), Some(4));
    assert_eq!(try_run(&data, &["quarantine", "list", "things", "--index", "by_siz"]).status.code(), Some(4));
    assert_eq!(try_run(&data, &["quarantine", "list", "things", "--after", "xyz"]).status.code(), Some(3));

    // The declaration was wrong all the time.
    run(&data, &["index", "drop", "things", "by_size"]);
    run(&data, &["attribute", "drop", "things", "size"]);
    run(&data, &["attribute", "declare", "things", "size:text"]);
    run(&data, &["index", "create", "things", "by_size", "--on", "size"]);
    assert_eq!(query(&data, "SELECT id FROM things WHERE size = 'large'", &[]).len(), 2);
    assert!(run(&data, &["verify", "things"]).contains("nothing wrong"));
}
