//! What can be set, and where it was set: `sideindex.toml`, the environment, the command line.
//!
//! ```text
//!  defaults ─► file ─► environment ─► flags ─► Config
//! ```
//!
//! [`SETTINGS`] is the list of everything that can be set outside of tables: it gives the key, its place in [`Config`], and
//! by its name the environment variable. `docs/configuration.md` is compared with it by a test.

mod file;
mod secret;
mod setting;
mod slot;
mod table;

pub use secret::Secret;
pub use setting::{SETTINGS, Setting};
pub use slot::{Given, Limit, Size, Slot, Time, Whole};
pub use table::{ATTRIBUTE_KEYS, INDEX_KEYS, IndexConfig, TABLE_KEYS, TableConfig};

use crate::error::{Error, ErrorKind, Result};
use crate::query;
use crate::schema::nearest;
use crate::store::embedded::{DurabilityMode, Options};
use crate::store::{Gateway, Retry};
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file that is read when none is named, if it is there.
pub const FILE: &str = "sideindex.toml";
/// Names the file.
pub const FILE_VARIABLE: &str = "SIDEINDEX_CONFIG";

/// What a write that has returned survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// The machine losing power
    Fsync,
    /// This process being killed, not the machine losing power
    Os,
}

/// Where tables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StoreKind {
    /// In a directory of this machine
    Embedded,
    /// In HBase, through Thrift 2 gateways
    Thrift2,
    /// In HBase, through Thrift 1 gateways
    Thrift1,
}

/// What a gateway sends its messages in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// As they are: HBase's default
    Buffered,
    /// Each with its length before it: gateways started with -f
    Framed,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One JSON object per line
    Json,
    /// RFC 4180 with a header; arrays as JSON, NULL as nothing, an empty text as ""
    Csv,
}

/// Whether entries are checked against the base rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Consistency {
    /// Every entry is checked against its base row
    Verified,
    /// Only disputed entries are checked
    Indexed,
}

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    /// `[store]`
    pub store: StoreConfig,
    /// `[hbase]`
    pub hbase: HBaseConfig,
    /// `[output]`
    pub output: OutputConfig,
    /// `[query]`
    pub query: QueryConfig,
    /// `[[table]]`
    pub tables: Vec<TableConfig>,
}

/// `[store]`: where tables are, and the embedded store.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// Where tables are.
    pub kind: StoreKind,
    /// The embedded store's directory.
    pub data: Option<PathBuf>,
    /// What a write that has returned survives.
    pub durability: Durability,
    /// Memory for cached blocks, in bytes.
    pub cache_bytes: Size,
    /// What a table collects in memory before it is written to a file, in bytes.
    pub memtable_bytes: Size,
    /// How large the change log of a table may get before its writers wait, in bytes.
    pub log_bytes: Size,
}

/// `[hbase]`: the gateways of a cluster.
#[derive(Debug, Clone)]
pub struct HBaseConfig {
    /// Their addresses, `host:port`.
    pub gateways: Vec<String>,
    /// What they send their messages in.
    pub transport: Transport,
    /// Connections to each.
    pub connections: Whole,
    /// How long to wait for a connection.
    pub connect_timeout: Time,
    /// How long to wait for more of an answer.
    pub answer_timeout: Time,
    /// How long a call may take, all tries together.
    pub deadline: Time,
}

/// `[output]`
#[derive(Debug, Clone)]
pub struct OutputConfig {
    /// How results are printed.
    pub format: Format,
}

/// `[query]`: what holds unless a query says otherwise.
#[derive(Debug, Clone)]
pub struct QueryConfig {
    /// Whether entries are checked.
    pub consistency: Consistency,
    /// Whether a table may be read whole when no index helps.
    pub allow_scan: bool,
    /// Memory a query may hold, in bytes.
    pub memory_limit: Size,
    /// How long a query may take.
    pub time_limit: Limit<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        let (store, gateway) = (Options::default(), Gateway::new(""));
        Self {
            store: StoreConfig {
                kind: StoreKind::Embedded,
                data: None,
                durability: Durability::Fsync,
                cache_bytes: Size::between(store.cache_bytes, 1 << 20, 1 << 40),
                memtable_bytes: Size::between(store.memtable_bytes, 1 << 20, 1 << 30),
                log_bytes: Size::between(store.log_bytes, 1 << 20, 1 << 40),
            },
            hbase: HBaseConfig {
                gateways: Vec::new(),
                transport: Transport::Buffered,
                connections: Whole { value: Some(gateway.connections as u64), least: 1, most: 1_000 },
                connect_timeout: Time(gateway.connect_timeout),
                answer_timeout: Time(gateway.answer_timeout),
                deadline: Time(Retry::default().deadline),
            },
            output: OutputConfig { format: Format::Table },
            query: QueryConfig {
                consistency: Consistency::Verified,
                allow_scan: false,
                memory_limit: Size::between(query::Options::MEMORY, 1 << 20, 1 << 40),
                time_limit: Limit(None),
            },
            tables: Vec::new(),
        }
    }
}

impl StoreConfig {
    /// How the store is opened.
    pub fn options(&self) -> Options {
        Options {
            durability: match self.durability {
                Durability::Fsync => DurabilityMode::Fsync,
                Durability::Os => DurabilityMode::Os,
            },
            cache_bytes: self.cache_bytes.bytes(),
            memtable_bytes: self.memtable_bytes.bytes(),
            log_bytes: self.log_bytes.bytes(),
            ..Options::default()
        }
    }
}

impl HBaseConfig {
    /// The gateways.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when none is set.
    pub fn gateways(&self) -> Result<Vec<Gateway>> {
        if self.gateways.is_empty() {
            return Err(Error::invalid(
                "name the Thrift gateways of the cluster: gateways = [\"host:9090\"] under [hbase] in sideindex.toml, or \
                 SIDEINDEX_HBASE_GATEWAYS",
            ));
        }
        let gateway = |address: &String| Gateway {
            transport: match self.transport {
                Transport::Buffered => crate::store::Transport::Buffered,
                Transport::Framed => crate::store::Transport::Framed,
            },
            connections: self.connections.value().and_then(|n| usize::try_from(n).ok()).unwrap_or(1),
            connect_timeout: self.connect_timeout.0,
            answer_timeout: self.answer_timeout.0,
            ..Gateway::new(address)
        };
        Ok(self.gateways.iter().map(gateway).collect())
    }
}

impl From<Consistency> for query::Consistency {
    fn from(consistency: Consistency) -> Self {
        match consistency {
            Consistency::Verified => Self::Verified,
            Consistency::Indexed => Self::Indexed,
        }
    }
}

/// Where a setting's value is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A file and its line, from 1.
    File(PathBuf, usize),
    /// An environment variable.
    Environment(String),
    /// A flag of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A configuration, and where each setting is from.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// What holds.
    pub config: Config,
    /// The file that was read.
    pub file: Option<PathBuf>,
    origins: BTreeMap<&'static str, Origin>,
}

impl Loaded {
    /// Reads the file and the environment. The file is `named`, else what `SIDEINDEX_CONFIG` names, else `./sideindex.toml` if
    /// that is there; no file is no error unless one was named.
    ///
    /// ```
    /// use sideindex::config::Loaded;
    /// let environment = [("SIDEINDEX_STORE_CACHE_BYTES".to_owned(), "1 GiB".to_owned())];
    /// let loaded = Loaded::read(None, environment)?;
    /// assert_eq!(loaded.config.store.cache_bytes.bytes(), 1 << 30);
    /// # Ok::<(), sideindex::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a file that was named; [`ErrorKind::InvalidInput`] names the place, the key and what was
    /// expected.
    pub fn read(named: Option<&Path>, environment: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let environment: BTreeMap<String, String> =
            environment.into_iter().filter(|(name, _)| name.starts_with("SIDEINDEX_")).collect();
        let mut loaded = Self::default();
        let by_variable = environment.get(FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        match named.map(Path::to_owned).or(by_variable) {
            Some(path) => loaded.take_file(&path)?,
            None if Path::new(FILE).is_file() => loaded.take_file(Path::new(FILE))?,
            None => {}
        }
        loaded.take_environment(&environment)?;
        Ok(loaded)
    }

    /// Reads a file over what is there.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn take_file(&mut self, path: &Path) -> Result<()> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            let kind = match e.kind() {
                std::io::ErrorKind::NotFound => ErrorKind::NotFound,
                std::io::ErrorKind::InvalidData => ErrorKind::InvalidInput,
                _ => ErrorKind::Store,
            };
            Error::new(kind, format!("cannot read the configuration {}: {e}", path.display())).with_source(e)
        })?;
        file::read(path, &text, self)?;
        self.file = Some(path.to_owned());
        Ok(())
    }

    fn take_environment(&mut self, environment: &BTreeMap<String, String>) -> Result<()> {
        for (name, text) in environment {
            let Some(setting) = SETTINGS.iter().find(|s| s.variable() == *name) else {
                let mut sections = SETTINGS.iter().map(|s| format!("SIDEINDEX_{}_", s.section().to_uppercase()));
                if !sections.any(|section| name.starts_with(&section)) {
                    continue;
                }
                let names: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
                let hint = nearest(name, names.iter().map(String::as_str));
                return Err(Error::invalid(format!(
                    "environment variable {name} sets nothing{hint}; `config show` lists those that do"
                )));
            };
            let given = Given::Text(text);
            setting.slot(&mut self.config).set(&given).map_err(|e| e.within(format!("environment variable {name}")))?;
            self.origins.insert(setting.key, Origin::Environment(name.clone()));
        }
        Ok(())
    }

    /// Takes over what a flag says, if it was given.
    pub fn take_flag<T>(
        &mut self,
        key: &'static str,
        flag: &'static str,
        value: Option<T>,
        set: impl FnOnce(&mut Config, T),
    ) {
        if let Some(value) = value {
            set(&mut self.config, value);
            self.origins.insert(key, Origin::Flag(flag));
        }
    }

    /// Where a setting is from.
    pub fn origin(&self, setting: &Setting) -> Origin {
        self.origins.get(setting.key).cloned().unwrap_or(Origin::Default)
    }
}

/// The variables of this process that may set something.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, text)| (name.to_string_lossy().into_owned(), text.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests;
