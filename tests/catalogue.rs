//! The real catalogue through the real binary, in every order and through SIGKILL: answers equal brute force over the base.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use support::{
    Oracle, bundled_lines, count, create, create_indexes, elements, query, run, sideindex, try_run, write_lines,
};

type Condition = fn(&support::BaseRow) -> bool;

fn has(row: &support::BaseRow, name: &str, value: &str) -> bool {
    elements(row.get(name)).iter().any(|e| e == value)
}

fn size(row: &support::BaseRow) -> i64 {
    row.get("installed_size").and_then(Value::as_i64).unwrap_or(-1)
}

/// Queries with what they mean, and how many rows they have once both files are applied in any order that keeps the newest.
const QUERIES: [(&str, Condition, usize); 10] = [
    ("section = 'games'", |r| has(r, "section", "games"), 1_108),
    (
        "section = 'games' AND tag_interface = 'x11'",
        |r| has(r, "section", "games") && has(r, "tag_interface", "x11"),
        544,
    ),
    ("depends = 'libc6'", |r| has(r, "depends", "libc6"), 21_815),
    ("depends = 'libc6' AND section = 'net'", |r| has(r, "depends", "libc6") && has(r, "section", "net"), 1_349),
    ("priority = 'required'", |r| has(r, "priority", "required"), 33),
    ("installed_size >= 1000000", |r| size(r) >= 1_000_000, 51),
    ("section IN ('games', 'science')", |r| has(r, "section", "games") || has(r, "section", "science"), 2_762),
    ("source = 'linux'", |r| has(r, "source", "linux"), 104),
    (
        "section = 'kernel' AND source = 'linux'",
        |r| has(r, "section", "kernel") && has(r, "source", "linux"),
        usize::MAX,
    ),
    (
        "depends = 'libc6' AND (section = 'net' OR installed_size BETWEEN 100000 AND 200000)",
        |r| has(r, "depends", "libc6") && (has(r, "section", "net") || (100_000..=200_000).contains(&size(r))),
        usize::MAX,
    ),
];

/// How the events reached the maintainer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As they were written: nothing undisputed may be wrong.
    Kept,
    /// Otherwise. Then an undisputed outdated entry may remain until the row's next change (DESIGN.md §3): few, and only
    /// `indexed` may return their rows.
    Lost,
}

/// Every query under both consistencies against brute force, and the whole index against the whole base.
fn judge(data: &Path, order: Order, known_answers: bool) {
    let oracle = Oracle::open(data);
    let (missing, extra) = oracle.compare();
    let outdated: BTreeSet<String> = extra.iter().filter(|e| !e.disputed).map(|e| e.id.clone()).collect();
    println!("{} rows, {} outdated entries, undisputed ones of {}", oracle.rows.len(), extra.len(), outdated.len());
    assert!(missing.is_empty(), "{} entries are missing: {:?}", missing.len(), &missing[..missing.len().min(5)]);
    let most = if order == Order::Kept { 0 } else { 20 };
    assert!(outdated.len() <= most, "{outdated:?}");
    // Two judges that share nothing: the library's own finds the same.
    let report = oracle.verify();
    let counted = report.indexes.values().fold([0; 3], |n, c| [n[0] + c.missing, n[1] + c.outdated, n[2] + c.disputed]);
    let disputed = extra.iter().filter(|e| e.disputed).count();
    assert_eq!(counted, [0, extra.len() - disputed, disputed].map(|n| n as u64), "{:?}", report.findings);
    assert_eq!((report.wrong(), report.pending), (counted[1], 0), "{:?}", report.findings);
    println!("verify: {:.0} rows and entries a second", report.rows_per_second());
    let expected: Vec<BTreeSet<String>> = QUERIES.iter().map(|(_, condition, _)| oracle.ids(condition)).collect();
    let rows = oracle.rows.len();
    drop(oracle);
    for ((condition, _, known), expected) in QUERIES.iter().zip(expected) {
        assert!(!expected.is_empty(), "{condition} finds nothing: it proves nothing");
        if known_answers && *known != usize::MAX {
            assert_eq!(expected.len(), *known, "{condition}");
        }
        // Nothing is indexed on priority.
        let scan: &[&str] = if condition.starts_with("priority") { &["--allow-scan"] } else { &[] };
        for consistency in ["verified", "indexed"] {
            let options = [&["--consistency", consistency], scan].concat();
            let found = query(data, &format!("SELECT id FROM packages WHERE {condition}"), &options);
            let ids: Vec<&str> = found.iter().map(|row| row["id"].as_str().unwrap()).collect();
            let distinct: BTreeSet<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            assert_eq!(ids.len(), distinct.len(), "{condition}, {consistency}: a row came twice");
            let wrong: Vec<&String> = distinct
                .symmetric_difference(&expected)
                .filter(|id| consistency == "verified" || expected.contains(*id) || !outdated.contains(*id))
                .collect();
            assert!(wrong.is_empty(), "{condition}, {consistency}: {wrong:?}");
            let counted = count(data, &format!("SELECT COUNT(*) FROM packages WHERE {condition}"), &options);
            assert_eq!(counted as usize, distinct.len(), "{condition}, {consistency}");
        }
    }
    assert_eq!(count(data, "SELECT COUNT(*) FROM packages", &["--allow-scan"]) as usize, rows);
    if known_answers {
        assert_eq!(rows, 63_681);
    }
}

fn load(data: &Path, file: &Path) {
    let out = run(data, &["load", "packages", file.to_str().unwrap(), "--format", "json"]);
    let out: Value = serde_json::from_str(&out).unwrap();
    let number = |name: &str| out[name].as_u64().unwrap();
    assert_eq!(
        number("rows"),
        number("events_applied") + number("events_quarantined") + number("events_irrelevant"),
        "{out}"
    );
    assert_eq!(number("events_quarantined"), 0, "{out}");
}

/// Loads lines in the given order into a table with indexes.
fn prove(rearrange: impl FnOnce(Vec<String>) -> Vec<String>, order: Order, known_answers: bool) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    create(&data, true);
    let file = write_lines(&dir.path().join("lines.jsonl"), rearrange(bundled_lines()));
    load(&data, &file);
    judge(&data, order, known_answers);
}

#[test]
fn in_order_then_indexed_then_updated() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    run(&data, &["table", "create", "packages", "--family", "a"]);
    load(&data, Path::new(support::PACKAGES));
    create_indexes(&data);
    for (sql, expected) in [
        ("SELECT COUNT(*) FROM packages WHERE depends = 'libc6'", 21_784),
        ("SELECT COUNT(*) FROM packages WHERE installed_size >= 1000000", 21),
        ("SELECT COUNT(*) FROM packages WHERE source = 'linux'", 44),
    ] {
        assert_eq!(count(&data, sql, &[]), expected, "{sql}");
    }
    load(&data, Path::new(support::UPDATES));
    judge(&data, Order::Kept, true);
}

#[test]
fn reversed() {
    prove(|lines| lines.into_iter().rev().collect(), Order::Lost, false);
}

#[test]
fn shuffled() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    prove(
        |mut lines| {
            fastrand::Rng::with_seed(seed).shuffle(&mut lines);
            lines
        },
        Order::Lost,
        false,
    );
}

#[test]
fn doubled() {
    prove(|lines| [lines.clone(), lines].concat(), Order::Lost, true);
}

/// A child that loads both files is killed again and again; whatever it had acknowledged is there, and after a last load that is
/// let finish the answers are right. `SIDEINDEX_KILLS=50` kills more often.
#[test]
fn killed_at_random_moments() {
    let kills = std::env::var("SIDEINDEX_KILLS").map_or(10, |v| v.parse().expect("SIDEINDEX_KILLS must be a number"));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    create(&data, true);
    let mut survived = 0;
    for kill in 0..kills {
        let mut child = sideindex(&data)
            .args(["load", "packages", support::PACKAGES, support::UPDATES])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(rng.u64(50..3_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let status: Value =
            serde_json::from_str(&run(&data, &["index", "status", "packages", "--format", "json"])).unwrap();
        let changes = status["changes"].as_u64().unwrap();
        assert!(changes >= survived, "kill {kill}: {survived} changes were there, now {changes}");
        assert!(status["applied"].as_u64().unwrap() <= changes, "{status}");
        survived = changes;
        // Whatever had been applied is right; the rest is pending.
        let output = try_run(&data, &["verify", "packages", "--format", "json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let missing =
            report["indexes"].as_object().unwrap().values().map(|c| c["missing"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(missing, 0, "kill {kill}: {report}");
    }
    assert!(survived > 0, "nothing was ever loaded before a kill");
    run(&data, &["apply", "packages"]);
    load(&data, Path::new(support::PACKAGES));
    load(&data, Path::new(support::UPDATES));
    judge(&data, Order::Lost, true);
}
