//! The catalogue in HBase by the example's configuration: the answers of the embedded store, and of brute force.

use crate::bed::Bed;
use crate::cluster::Cluster;
use crate::support::{self, Oracle, PACKAGES, UPDATES};
use std::collections::BTreeSet;

/// With what follows FROM; all but the last are answered by an index.
const QUERIES: [&str; 6] = [
    "WHERE section = 'games'",
    "WHERE depends = 'libc6' AND section = 'net'",
    "WHERE section IN ('games', 'science') AND installed_size > 100000",
    "WHERE depends = 'no such package'",
    "WHERE depends = 'libc6' AND NOT section = 'libs'",
    "WHERE installed_size BETWEEN 1000000 AND 1200000",
];

#[test]
fn the_answers_are_those_of_the_embedded_store() {
    let cluster = Cluster::shared();
    let bed = Bed::new(&cluster, "catalogue");
    let embedded = tempfile::tempdir().unwrap();
    support::create(embedded.path(), false);
    for (name, on) in [("by_section", "section"), ("by_depends", "depends")] {
        support::run(embedded.path(), &["index", "create", "packages", name, "--on", on]);
    }

    assert!(bed.run(&["table", "apply"]).contains("created"));
    bed.run(&["load", &bed.table, PACKAGES]);
    // What there is already is indexed by a scan, and kept from then on.
    bed.run(&["index", "create", &bed.table, "by_source", "--on", "source"]);
    cluster.ask(&format!("split {} {}", bed.table, hex(b"libm")));
    bed.run(&["load", &bed.table, UPDATES]);
    bed.run(&["put", &bed.table, "0ad", "section:=null", "source=nobody"]);
    bed.run(&["delete", &bed.table, "zsh"]);
    for file in [PACKAGES, UPDATES] {
        support::run(embedded.path(), &["load", "packages", file]);
    }
    support::run(embedded.path(), &["put", "packages", "0ad", "section:=null", "source=nobody"]);
    support::run(embedded.path(), &["delete", "packages", "zsh"]);

    for query in QUERIES {
        for consistency in ["verified", "indexed"] {
            let options = ["--format", "csv", "--allow-scan", "--consistency", consistency];
            let sorted = |out: String| out.lines().map(str::to_owned).collect::<BTreeSet<_>>();
            let sql = |table: &str| format!("SELECT id, section, version FROM {table} {query}");
            let here = bed.run(&[&["query", &sql(&bed.table)][..], &options].concat());
            let there = support::run(embedded.path(), &[&["query", &sql("packages")][..], &options].concat());
            assert_eq!(sorted(here), sorted(there), "{query}, {consistency}");
        }
    }
    let status = bed.run(&["index", "status", &bed.table]);
    assert!(status.contains("up to date") && status.contains("0 in quarantine"), "{status}");

    let _inside = bed.runtime.enter();
    let oracle = Oracle::read(bed.store(), &bed.table);
    let (missing, extra) = oracle.compare();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?}");
    assert_eq!(oracle.rows, Oracle::open(embedded.path()).rows);
    for table in [bed.table.clone(), format!("sx_{}_index", bed.table), format!("sx_{}_state", bed.table)] {
        cluster.ask(&format!("drop {table}"));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
