//! The real HBase that `tests/cluster up` has started, which `tests/run` does for the whole run, and others of a test's own.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

const CLUSTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/cluster");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster");

/// A running cluster.
pub struct Cluster {
    folder: PathBuf,
    own: bool,
}

impl Cluster {
    /// The one that all tests share: none kills it.
    pub fn shared() -> Self {
        Self { folder: PathBuf::from(CLUSTERS).join("main"), own: false }
    }

    /// One of a test's own, to kill parts of.
    pub fn own(name: &str) -> Self {
        let cluster = Self { folder: PathBuf::from(CLUSTERS).join(name), own: true };
        cluster.script(&["up"]);
        cluster
    }

    /// An address by its name: `THRIFT2`, `THRIFT2_FRAMED`, `THRIFT1`, `HBASE`, `ZOOKEEPER`.
    pub fn address(&self, name: &str) -> String {
        let (name, env) = (format!("SIDEINDEX_TEST_{name}"), self.folder.join("env"));
        let text = std::fs::read_to_string(&env).unwrap_or_else(|e| {
            panic!("expected a running HBase, found no {} ({e}); start one with `tests/cluster up`", env.display())
        });
        let line = text.lines().find_map(|line| line.strip_prefix(&name)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("expected {name} in {}; start the cluster anew", env.display())).to_owned()
    }

    /// What HBase's control port answers to a request, such as `flush TABLE`; it must succeed.
    pub fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address("HBASE")).expect("HBase's control port");
        writeln!(stream, "{request}").unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        let answer = answer.trim_end();
        assert!(answer == "ok" || answer.starts_with("ok "), "{request}: {answer}");
        answer.trim_start_matches("ok").trim_start().to_owned()
    }

    /// Ends a part with SIGKILL.
    pub fn kill(&self, service: &str) {
        self.script(&["kill", service]);
    }

    /// Starts a part again, and waits until it is ready.
    pub fn start(&self, service: &str) {
        self.script(&["start", service]);
    }

    fn script(&self, args: &[&str]) {
        assert!(self.own, "no test changes the cluster that all share");
        let output = Command::new(SCRIPT).args(args).env("SIDEINDEX_CLUSTER", &self.folder).output().unwrap();
        assert!(output.status.success(), "tests/cluster {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.own {
            self.script(&["down"]);
        }
    }
}

/// An address of the cluster that all tests share.
pub fn address(name: &str) -> String {
    Cluster::shared().address(name)
}

/// A request to the control port of the cluster that all tests share.
pub fn ask(request: &str) -> String {
    Cluster::shared().ask(request)
}
