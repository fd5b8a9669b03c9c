//! The command line: one file per command, all of them thin.

mod apply;
mod args;
mod attribute;
mod bench;
mod compact;

mod delete;
mod demo;

mod get;
mod index;
mod load;
mod output;
mod purge;
mod put;
mod quarantine;
mod query;

mod session;
mod table;
mod verify;

use crate::error::{Error, ErrorKind, Result};
use args::{Cli, Command};
use clap::Parser;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_env("SIDEINDEX_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let ansi = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(ansi).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_time().build() {
        Ok(runtime) => runtime,
        Err(e) => return fail(&Error::from(e)),
    };
    match runtime.block_on(run(&cli)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output had enough: `| head` is no failure.
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => fail(&e),
    }
}

async fn run(cli: &Cli) -> Result<()> {
    let global = &cli.global;
    match &cli.command {
        Command::Table(command) => table::run(global, command).await,
        Command::Load(args) => load::run(global, args).await,
        Command::Put(args) => put::run(global, args).await,
        Command::Get(args) => get::run(global, args).await,
        Command::Delete(args) => delete::run(global, args).await,
        Command::Attribute(command) => attribute::run(global, command).await,
        Command::Index(command) => index::run(global, command).await,
        Command::Apply(args) => apply::run(global, args).await,
        Command::Purge(args) => purge::run(global, args).await,
        Command::Compact(args) => compact::run(global, args).await,
        Command::Demo(args) => demo::run(global, args).await,
        Command::Query(args) => query::run(global, args).await,
        Command::Quarantine(command) => quarantine::run(global, command).await,
        Command::Verify(args) => verify::run(global, args).await,
        Command::Bench(args) => bench::run(global, args).await,
    }
}

fn fail(error: &Error) -> ExitCode {
    eprintln!("error: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let text = cause.to_string();
        // A message usually holds its cause's text already.
        if !error.to_string().contains(&text) {
            eprintln!("  caused by: {text}");
        }
        source = cause.source();
    }
    ExitCode::from(exit_code(error.kind()))
}

/// The documented exit codes; 2 is the parser's own.
fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::InvalidInput | ErrorKind::WrongType => 3,
        ErrorKind::NotFound | ErrorKind::AlreadyExists => 4,
        ErrorKind::TooCostly | ErrorKind::Unsupported => 5,
        ErrorKind::Busy => 6,
        ErrorKind::Inconsistent => 7,
        ErrorKind::Store | ErrorKind::Corrupt | ErrorKind::Internal => 1,
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    std::error::Error::source(error)
        .and_then(|e| e.downcast_ref::<std::io::Error>())
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
