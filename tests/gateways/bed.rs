//! The binary on a cluster, with a configuration made of the example's.

use crate::cluster::Cluster;
use sideindex::store::thrift2::Thrift2Store;
use sideindex::store::{Gateway, Layered, Retry, Store};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/hbase.toml");

/// The example's table under a name of its own.
pub struct Bed {
    pub table: String,
    pub file: PathBuf,
    pub runtime: tokio::runtime::Runtime,
    address: String,
    _directory: tempfile::TempDir,
}

impl Bed {
    pub fn new(cluster: &Cluster, name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (table, address) = (format!("{name}_{}", std::process::id()), cluster.address("THRIFT2"));
        let text = std::fs::read_to_string(EXAMPLE).unwrap();
        let file = directory.path().join("hbase.toml");
        let text =
            text.replace("\"127.0.0.1:9090\"", &format!("{address:?}")).replace("\"packages\"", &format!("{table:?}"));
        assert!(text.contains(&address) && text.contains(&table), "{text}");
        std::fs::write(&file, text).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { table, file, runtime, address, _directory: directory }
    }

    /// The binary, which reads the configuration.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sideindex"));
        // A killed HBase comes back within a minute, unless the machine has other work.
        command.env("SIDEINDEX_HBASE_DEADLINE", "5m");
        command.arg("--config").arg(&self.file).args(args);
        command
    }

    pub fn try_run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs it; it must succeed. Its standard output.
    pub fn run(&self, args: &[&str]) -> String {
        let output = self.try_run(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "sideindex {}: {}\n{said}", args.join(" "), output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// The table, by the library.
    pub fn store(&self) -> Arc<dyn Store> {
        let connected = self.runtime.block_on(Thrift2Store::connect(vec![Gateway::new(&self.address)]));
        Arc::new(Layered::new(Arc::new(connected.unwrap()), Retry::default()))
    }
}
