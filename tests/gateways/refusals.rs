//! Gateways that are not what they should be, and what HBase doesn't take: each told apart, with what to do.

use crate::bed::Bed;
use crate::cluster::Cluster;
use std::io::{Read, Write};
use std::net::TcpListener;

/// The exit code and the message of a command that must fail.
fn refused(bed: &Bed, variables: &[(&str, &str)], args: &[&str]) -> (i32, String) {
    let output = bed.command(args).envs(variables.iter().copied()).output().unwrap();
    assert!(!output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn assert_says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{message:?} does not say {word:?}");
    }
}

#[test]
fn gateways_that_are_none_or_others() {
    let cluster = Cluster::shared();
    let bed = Bed::new(&cluster, "refused");
    let list = |gateways: &str, more: &[(&str, &str)]| {
        let quick = [
            ("SIDEINDEX_HBASE_GATEWAYS", gateways),
            ("SIDEINDEX_HBASE_ANSWER_TIMEOUT", "2s"),
            ("SIDEINDEX_HBASE_DEADLINE", "3s"),
        ];
        refused(&bed, &[&quick[..], more].concat(), &["table", "list"])
    };
    // Nobody there.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (code, message) = list(&free, &[]);
    assert_eq!(code, 6, "{message}");
    assert_says(&message, &[&free, "is it running?"]);
    // No address.
    let (code, message) = list("gateway", &[]);
    assert_eq!(code, 3, "{message}");
    assert_says(&message, &["host:port", "gateway"]);
    // The other Thrift.
    let (_, message) = list(&cluster.address("THRIFT1"), &[]);
    assert_says(&message, &["Thrift 1", "Thrift 2"]);
    // The other transport, both ways.
    let (_, message) = list(&cluster.address("THRIFT2_FRAMED"), &[]);
    assert_says(&message, &["framed"]);
    let (_, message) = list(&cluster.address("THRIFT2"), &[("SIDEINDEX_HBASE_TRANSPORT", "framed")]);
    assert_says(&message, &["buffered"]);
    // Something else altogether: one that answers, and HBase itself.
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = http.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in http.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 64];
            if stream.read(&mut request).is_ok() {
                // The client may have gone.
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            }
        }
    });
    let (_, message) = list(&address, &[]);
    assert_says(&message, &["binary protocol", "is this a gateway"]);
    // One of several is enough.
    let both = format!("{free},{}", cluster.address("THRIFT2"));
    let output = bed.command(&["table", "list"]).env("SIDEINDEX_HBASE_GATEWAYS", &both).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // None at all, and an embedded store beside.
    let empty = bed.file.with_file_name("empty.toml");
    std::fs::write(&empty, "[store]\nkind = \"thrift2\"\n").unwrap();
    let none = ["--config", empty.to_str().unwrap(), "table", "list"];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_sideindex")).args(none).output().unwrap();
    assert_says(&String::from_utf8_lossy(&output.stderr), &["SIDEINDEX_HBASE_GATEWAYS", "[hbase]"]);
    let (code, message) = refused(&bed, &[], &["--data", "here", "table", "list"]);
    assert_eq!(code, 3);
    assert_says(&message, &["--data", "both"]);
}

#[test]
fn what_hbase_does_not_take() {
    let cluster = Cluster::shared();
    let bed = Bed::new(&cluster, "limits");
    bed.run(&["table", "apply"]);
    let long = "k".repeat(32_768);
    let (code, message) = refused(&bed, &[], &["put", &bed.table, &long, "section=x"]);
    assert_eq!(code, 3);
    assert_says(&message, &["32767", "32768"]);
    let (_, message) = refused(&bed, &[], &["put", &bed.table, "", "section=x"]);
    assert_says(&message, &["row key"]);
    let line = bed.file.with_file_name("large.jsonl");
    let large = "v".repeat(11 << 20);
    std::fs::write(&line, format!("{{\"id\":\"a\",\"attrs\":{{\"note\":\"{large}\"}}}}\n")).unwrap();
    let (code, message) = refused(&bed, &[], &["load", &bed.table, line.to_str().unwrap()]);
    assert_eq!(code, 3);
    assert_says(&message, &["line 1", "attribute note", "at most"]);
    assert!(message.len() < 1_000, "{}", message.len());

    // A table that HBase has already is adopted, if it has the family.
    let index = format!("sx_{}_index", bed.table);
    let (code, message) = refused(&bed, &[], &["table", "create", &index, "--family", "i"]);
    assert_eq!(code, 3, "{message}");
    let there = format!("there_{}", std::process::id());
    let store = bed.store();
    let descriptor = sideindex::store::TableDescriptor::new(&there, &["x", "y"], 7);
    bed.runtime.block_on(store.create_table(&descriptor)).unwrap();
    let (code, message) = refused(&bed, &[], &["table", "create", &there, "--family", "a"]);
    assert_eq!(code, 3);
    assert_says(&message, &["x, y", "expected a", "alter"]);
    bed.run(&["table", "create", &there, "--family", "y"]);
    bed.run(&["put", &there, "r", "colour=red"]);
    assert!(bed.run(&["get", &there, "r", "--format", "json"]).contains("red"));
    let kept = bed.runtime.block_on(store.describe_table(&there)).unwrap();
    assert_eq!(kept.difference(&descriptor), None, "the table is as it was");
    // What works on the embedded store only says so.
    for args in [&["compact"][..], &["verify", &bed.table], &["doctor"]] {
        let (code, message) = refused(&bed, &[], args);
        assert_eq!(code, 5, "{message}");
        assert_says(&message, &["embedded store only"]);
    }
    for base in [&bed.table, &there] {
        for table in [base.clone(), format!("sx_{base}_index"), format!("sx_{base}_state")] {
            cluster.ask(&format!("drop {table}"));
        }
    }
}
