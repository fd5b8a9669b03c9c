//! The real HBase that `tests/cluster up` has started; `tests/run` does so for the whole run.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

const ENV: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/cluster/main/env");

/// An address by its name in `target/cluster/main/env`: `THRIFT2`, `THRIFT2_FRAMED`, `THRIFT1`, `HBASE`, `ZOOKEEPER`.
pub fn address(name: &str) -> String {
    let name = format!("SIDEINDEX_TEST_{name}");
    let env = std::fs::read_to_string(ENV).unwrap_or_else(|e| {
        panic!("expected a running HBase, found no {ENV} ({e}); start one with `tests/cluster up`")
    });
    let line = env.lines().find_map(|line| line.strip_prefix(&name)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("expected {name} in {ENV}; start the cluster anew with `tests/cluster up`"))
        .to_owned()
}

/// What HBase's control port answers to a request, such as `flush TABLE`; it must succeed.
pub fn ask(request: &str) -> String {
    let mut stream = TcpStream::connect(address("HBASE")).expect("HBase's control port");
    writeln!(stream, "{request}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    let answer = answer.trim_end();
    assert!(answer == "ok" || answer.starts_with("ok "), "{request}: {answer}");
    answer.trim_start_matches("ok").trim_start().to_owned()
}
