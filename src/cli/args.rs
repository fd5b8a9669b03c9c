//! What can be said on the command line.

pub use crate::config::Format;
use crate::config::{self, Consistency, Durability, Loaded};
use crate::error::{Error, Result};
use crate::store::Stop;
use crate::store::embedded::Options;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};

/// Secondary indexes for HBase tables, kept in step with the change stream.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "\
Examples:
  sideindex demo
  sideindex --data D table create packages --family a
  sideindex --data D load packages debian-packages.jsonl.zst
  sideindex --data D index create packages by_section --on section
  sideindex --data D query \"SELECT id FROM packages WHERE section = 'games' LIMIT 5\"

Exit codes:
  0 done   1 the store failed or sideindex has a bug   2 wrong usage   3 bad input or query
  4 something is missing, or there already   5 refused: too costly or not supported   6 busy, try later
  7 an index does not say what its table says   130 interrupted

Settings come from sideindex.toml, the environment and flags, the last one wins: `config show` lists them.
SIDEINDEX_LOG=debug shows what happens inside."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Read settings from this file instead of ./sideindex.toml
    #[arg(long, global = true, value_name = "FILE", help_heading = "Configuration")]
    pub config: Option<PathBuf>,
    /// Directory of the embedded store
    #[arg(long, global = true, value_name = "DIR", help_heading = "Store")]
    pub data: Option<PathBuf>,
    /// What a write that has returned survives [default: fsync]
    #[arg(long, global = true, value_enum, help_heading = "Store")]
    pub durability: Option<Durability>,
    /// How results are printed [default: table]
    #[arg(long, global = true, value_enum, help_heading = "Output")]
    pub format: Option<Format>,
    /// No progress bars
    #[arg(long, short, global = true, help_heading = "Output")]
    pub quiet: bool,
}

/// What holds for every command: flags over the environment over the configuration file.
#[derive(Debug)]
pub struct Global {
    /// All settings.
    pub loaded: Loaded,
    /// How results are printed.
    pub format: Format,
    /// No progress bars.
    pub quiet: bool,
    /// Told by Ctrl-C.
    pub stop: Stop,
}

impl Global {
    /// Puts the settings together.
    pub fn new(args: &GlobalArgs, stop: Stop) -> Result<Self> {
        let mut loaded = Loaded::read(args.config.as_deref(), config::environment())?;
        loaded.take_flag("store.data", "--data", args.data.clone(), |c, data| c.store.data = Some(data));
        loaded.take_flag("store.durability", "--durability", args.durability, |c, d| c.store.durability = d);
        loaded.take_flag("output.format", "--format", args.format, |c, format| c.output.format = format);
        let format = loaded.config.output.format;
        Ok(Self { loaded, format, quiet: args.quiet, stop })
    }

    /// The directory of the embedded store.
    pub fn data(&self) -> Result<&Path> {
        self.loaded.config.store.data.as_deref().ok_or_else(|| {
            Error::invalid(
                "name the directory of the embedded store with --data DIR, or set data under [store] in sideindex.toml, \
                 or SIDEINDEX_STORE_DATA",
            )
        })
    }

    /// How the store is opened.
    pub fn options(&self) -> Options {
        self.loaded.config.store.options()
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the main job on real data: load, update, query
    #[command(after_help = "Example:\n  sideindex demo --keep demo-data")]
    Demo(DemoArgs),
    /// Create, list and describe tables
    #[command(subcommand)]
    Table(TableCommand),
    /// Load JSON lines into a table and bring its indexes up to date
    #[command(after_help = "\
Each line: {\"id\": \"0ad\", \"ts\": 1783764997000, \"attrs\": {\"section\": \"games\", \"tags\": [\"a\", \"b\"], \"old\": null}}
\"ts\" (ms) may be left out. Arrays are multi-valued, null deletes, an attribute not mentioned is unchanged.
The type of an attribute is recorded when it is first seen, unless it is declared.

Examples:
  sideindex --data D load packages debian-packages.jsonl.zst
  sideindex --data D load packages more.jsonl --attr installed_size:int --attr 'depends:text[]'
  zcat more.jsonl.gz | sideindex --data D load packages -")]
    Load(LoadArgs),
    /// Change one row
    #[command(after_help = "\
name=text puts a text, name:=json puts any JSON value, name:=null clears.

Example:
  sideindex --data D put packages 0ad section:=null note=seen installed_size:=28591")]
    Put(PutArgs),
    /// Print one row
    #[command(after_help = "Example:\n  sideindex --data D get packages 0ad --format json")]
    Get(GetArgs),
    /// Delete rows
    #[command(after_help = "Example:\n  sideindex --data D delete packages 0ad 0ad-data")]
    Delete(DeleteArgs),
    /// Create, list, inspect and drop indexes
    #[command(subcommand)]
    Index(IndexCommand),
    /// Declare and forget attributes
    #[command(subcommand)]
    Attribute(AttributeCommand),
    /// Answer a query
    #[command(after_help = "\
SELECT columns | * | COUNT(*) FROM table [WHERE …] [ORDER BY column [DESC] [NULLS FIRST], …] [LIMIT n] [OFFSET m]
with =, !=, <, <=, >, >=, BETWEEN, IN, LIKE, IS NULL, AND, OR, NOT, parentheses, the functions trim(x), lower(x) and
nfkc(x), and parameters $1, $2, … `id` is the row key. On an array a comparison means \"some element\", its negation
\"no element\". EXPLAIN SELECT … shows the plan, EXPLAIN ANALYZE SELECT … runs it and shows what it cost.

Examples:
  sideindex --data D query \"SELECT id FROM packages WHERE depends = 'libc6' AND section = 'net'\"
  sideindex --data D query \"SELECT COUNT(*) FROM packages WHERE depends = 'libc6'\" --consistency indexed
  sideindex --data D query \"SELECT COUNT(*) FROM packages\" --allow-scan
  sideindex --data D query 'SELECT id FROM packages WHERE section = $1' --param games --page-size 20")]
    Query(QueryArgs),
    /// Check a store without changing it
    #[command(after_help = "\
Reads everything: files, cells, change logs, schemas, index entries. Says what is wrong and what to do; exits with 1 when
something has to be repaired. The store must not be in use.

Example:
  sideindex --data D doctor")]
    Doctor,
    /// Check and show the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  sideindex completions bash > /etc/bash_completion.d/sideindex
  sideindex completions zsh > ~/.zfunc/_sideindex
  sideindex completions fish > ~/.config/fish/completions/sideindex.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Bring indexes up to date with the change log
    #[command(after_help = "Example:\n  sideindex --data D apply packages")]
    Apply(ApplyArgs),
    /// Look at what could not be indexed, and release it
    #[command(subcommand)]
    Quarantine(QuarantineCommand),
    /// Compare indexes with their table, and repair them
    #[command(after_help = "\
Rows with changes that are not applied yet are left out. Ends with code 7 when something is wrong and was not repaired.

Examples:
  sideindex --data D verify packages
  sideindex --data D verify packages --index by_section --repair")]
    Verify(VerifyArgs),
    /// Forget what quiet rows have left behind: tombstones, superseded candidates, entries in doubt
    #[command(after_help = "\
Rows that were written since then are left alone. Changes that are older and come again are settled by the base row, which
costs more: keep to what the change stream may still bring. `compact` then frees the space.

Example:
  sideindex --data D purge packages --older-than 7d")]
    Purge(PurgeArgs),
    /// Remove for good what was deleted or overwritten, and give its space back
    #[command(after_help = "\
As HBase's major compaction does: delete markers go, with what they hide. A change that comes afterwards with a timestamp
at or below that of a removed marker is visible.

Example:
  sideindex --data D compact packages")]
    Compact(CompactArgs),
    /// Measure loads and lookups on the bundled catalogue
    #[command(after_help = "Example:\n  sideindex bench --runs 3")]
    Bench(BenchArgs),
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the data in this directory, which must not exist yet
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum TableCommand {
    /// Create a table
    #[command(after_help = "\
Examples:
  sideindex --data D table create packages --family a --attr installed_size:int
  sideindex --data D table create events --family a --key 'hash=md5(account):2, account=text:8, month=text:7, event=text'
  sideindex --data D table create orders --family d --attr total:decimal:hbase:d:t")]
    Create {
        /// The table's name
        table: String,
        /// A column family; attributes live in the first
        #[arg(long = "family", required = true, value_name = "NAME")]
        families: Vec<String>,
        /// Declare an attribute: text, int, float, bool, decimal, timestamp, bytes, or one of them followed by []; encoded as
        /// utf8, json or hbase (the class Bytes)
        #[arg(long = "attr", value_name = "NAME:TYPE[:ENCODING[:FAMILY:QUALIFIER]]")]
        attributes: Vec<String>,
        /// What the row keys are made of, each part an attribute: text:4, text, text sep '|', the same of bytes, int,
        /// int:4, int ordered, md5(part, …):2, xxh3(part, …):2
        #[arg(long, value_name = "NAME=KIND, …")]
        key: Option<String>,
        /// Versions of a cell that can be read
        #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        versions: u32,
    },
    /// Create the tables, attributes and indexes of the configuration that are not there yet
    #[command(after_help = "Example:\n  sideindex --config shop.toml table apply")]
    Apply {
        /// The table's name; all tables of the configuration when left out
        table: Option<String>,
    },
    /// List the tables
    List,
    /// Print a table's attributes and indexes
    Describe {
        /// The table's name
        table: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check a configuration file; the one in force, and the environment, when left out
    Check {
        /// The file
        file: Option<PathBuf>,
    },
    /// Print every setting with where it is from, and the tables of the file
    Show,
}

#[derive(Debug, Args)]
pub struct LoadArgs {
    /// The table's name
    pub table: String,
    /// Files of JSON lines, plain or .zst; - is standard input
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Declare an attribute before loading, as for `table create`
    #[arg(long = "attr", value_name = "NAME:TYPE[:ENCODING[:FAMILY:QUALIFIER]]")]
    pub attributes: Vec<String>,
    /// Leave the indexes behind; `apply` brings them up to date
    #[arg(long)]
    pub no_apply: bool,
}

#[derive(Debug, Args)]
pub struct PutArgs {
    /// The table's name
    pub table: String,
    /// The row key; - joins it from its parts, which are then given like attributes
    pub id: String,
    /// name=text or name:=json
    #[arg(required = true, value_name = "NAME=TEXT|NAME:=JSON")]
    pub assignments: Vec<String>,
    /// Timestamp in ms; the row's next one when left out
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(0..=crate::model::MAX_TIMESTAMP))]
    pub ts: Option<i64>,
    /// Leave the indexes behind; `apply` brings them up to date
    #[arg(long)]
    pub no_apply: bool,
}

#[derive(Debug, Args)]
pub struct GetArgs {
    /// The table's name
    pub table: String,
    /// The row key
    pub id: String,
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// The table's name
    pub table: String,
    /// Row keys
    #[arg(required = true)]
    pub ids: Vec<String>,
    /// Leave the indexes behind; `apply` brings them up to date
    #[arg(long)]
    pub no_apply: bool,
}

#[derive(Debug, Subcommand)]
pub enum IndexCommand {
    /// Create an index and fill it from the rows that are there
    #[command(after_help = "\
Examples:
  sideindex --data D index create packages by_section --on section
  sideindex --data D index create packages by_size --on installed_size --ordered
  sideindex --data D index create packages by_section_priority --on section,priority
  sideindex --data D index create packages by_maintainer --on 'lower(maintainer)' --cover section,version
  sideindex --data D index create packages big_games --on 'installed_size desc' --ordered --where \"section = 'games'\"")]
    Create {
        /// The table's name
        table: String,
        /// The index's name
        name: String,
        /// The attribute, perhaps under trim, lower or nfkc, perhaps followed by desc; several, separated by commas, make a
        /// composite
        #[arg(long, required = true, value_delimiter = ',', value_name = "TERM")]
        on: Vec<String>,
        /// Serve ranges and ORDER BY
        #[arg(long)]
        ordered: bool,
        /// Pack the values of these attributes into the entries, so that queries of them read no base row
        #[arg(long, value_delimiter = ',', value_name = "ATTRIBUTE")]
        cover: Vec<String>,
        /// Index only rows that satisfy this condition
        #[arg(long = "where", value_name = "CONDITION")]
        filter: Option<String>,
        /// Cut longer texts in the keys, in bytes; 0 cuts none
        #[arg(long, value_name = "BYTES")]
        value_limit: Option<u32>,
        /// Spread the entries over this many key ranges
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(u8).range(1..))]
        salts: Option<u8>,
    },
    /// List a table's indexes
    List {
        /// The table's name
        table: String,
    },
    /// Show how far the indexes are
    Status {
        /// The table's name; all tables when left out
        table: Option<String>,
        /// Count the entries, which reads all of them
        #[arg(long)]
        count: bool,
    },
    /// Drop an index, or go on with a drop that was interrupted
    #[command(after_help = "\
Its name can be given to another index afterwards. `compact` then frees the space.

Example:
  sideindex --data D index drop packages by_section")]
    Drop {
        /// The table's name
        table: String,
        /// The index's name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum AttributeCommand {
    /// Declare attributes
    #[command(after_help = "Example:\n  sideindex --data D attribute declare packages installed_size:int")]
    Declare {
        /// The table's name
        table: String,
        /// As for `table create --attr`
        #[arg(required = true, value_name = "NAME:TYPE")]
        attributes: Vec<String>,
    },
    /// Forget an attribute that no index is made of, so that it can be declared with another type
    #[command(after_help = "\
The values stay in the table. Drop the indexes on the attribute first, and create them again afterwards.

Example:
  sideindex --data D attribute drop packages installed_size")]
    Drop {
        /// The table's name
        table: String,
        /// The attribute's name
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct QueryArgs {
    /// The query
    pub sql: String,
    /// Whether entries are checked against the base rows [default: verified]
    #[arg(long, value_enum)]
    pub consistency: Option<Consistency>,
    /// Allow reading the whole table when no index helps
    #[arg(long)]
    pub allow_scan: bool,
    /// Show the plan and what it cost after the answer, on standard error
    #[arg(long)]
    pub analyze: bool,
    /// The value of $1, the next time of $2, …; read as the type of the column it is compared with
    #[arg(long = "param", value_name = "VALUE", allow_hyphen_values = true)]
    pub parameters: Vec<String>,
    /// Answer with so many rows, and print a token for the next ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Paging")]
    pub page_size: Option<u64>,
    /// Go on after the page that ended with this token
    #[arg(long, value_name = "TOKEN", requires = "page_size", allow_hyphen_values = true, help_heading = "Paging")]
    pub after: Option<String>,
    /// The most memory the query may hold, in MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20), help_heading = "Limits")]
    pub memory: Option<u64>,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1 << 32), help_heading = "Limits")]
    pub timeout: Option<u64>,
}

#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The table's name; all tables when left out
    pub table: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List what is in quarantine
    #[command(after_help = "Example:\n  sideindex --data D quarantine list packages --attribute installed_size")]
    List {
        /// The table's name
        table: String,
        #[command(flatten)]
        which: WhichArgs,
        /// Records a page
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
        limit: usize,
        /// Where the page before ended, as it was printed
        #[arg(long, value_name = "TOKEN")]
        after: Option<String>,
    },
    /// Print one record with its cells
    Show {
        /// The table's name
        table: String,
        /// The record
        id: String,
    },
    /// Apply the changes in quarantine again, and release those that fit now
    #[command(after_help = "\
A change fits once the declaration of its attribute was corrected, its row has fewer values, or a newer value has taken its
place. An index of which nothing is left in quarantine no longer is degraded.

Example:
  sideindex --data D quarantine replay packages --attribute installed_size")]
    Replay {
        /// The table's name
        table: String,
        #[command(flatten)]
        which: WhichArgs,
    },
    /// Forget changes in quarantine without applying them
    #[command(after_help = "\
Their indexes stay degraded until `verify` finds them fine.

Example:
  sideindex --data D quarantine drop packages 0f5e2c7d9a1b3c4e --yes")]
    Drop {
        /// The table's name
        table: String,
        #[command(flatten)]
        which: WhichArgs,
        /// They are not wanted any more
        #[arg(long)]
        yes: bool,
    },
}

/// Which records of the quarantine.
#[derive(Debug, Args)]
pub struct WhichArgs {
    /// Only these records
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Only values of this attribute
    #[arg(long, value_name = "NAME")]
    pub attribute: Option<String>,
    /// Only what this index misses
    #[arg(long, value_name = "NAME")]
    pub index: Option<String>,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The table's name; all tables when left out
    pub table: Option<String>,
    /// Only this index
    #[arg(long, value_name = "NAME", requires = "table")]
    pub index: Option<String>,
    /// Write what is wrong anew
    #[arg(long)]
    pub repair: bool,
    /// Show no more wrong entries than this; all are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit_reported: usize,
    /// Read no more rows and entries a second than this
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,
}

#[derive(Debug, Args)]
pub struct PurgeArgs {
    /// The table's name
    pub table: String,
    /// Rows whose last change is older than this
    #[arg(long, default_value = "7d", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub older_than: std::time::Duration,
}

#[derive(Debug, Args)]
pub struct CompactArgs {
    /// The table's name, for it and its indexes; everything in the store when left out
    pub table: Option<String>,
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Runs of each measurement; the median is printed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// One measured load in a process of its own
    #[arg(long, hide = true)]
    pub child: Option<String>,
}
