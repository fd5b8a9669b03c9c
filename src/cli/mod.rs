//! The command line: one file per command, all of them thin.

mod apply;
mod args;
mod attribute;
mod bench;
mod compact;
mod completions;
mod config;
mod csv;
mod delete;
mod demo;
mod doctor;
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
mod table_apply;
mod verify;

use crate::error::{Error, ErrorKind, Result};
use crate::store::Stop;
use args::{Cli, Command, Global};
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
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_time().enable_io().build() {
        Ok(runtime) => runtime,
        Err(e) => return fail(&Error::from(e)),
    };
    let stop = Stop::default();
    runtime.spawn(interrupts(stop.clone()));
    let done = runtime.block_on(run(&cli, stop));
    // What was given up may still wait for input.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output had enough: `| head` is no failure.
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => fail(&e),
    }
}

/// Ctrl-C stops what is under way at the next safe place, a second one at once.
async fn interrupts(stop: Stop) {
    if tokio::signal::ctrl_c().await.is_ok() {
        stop.stop();
        eprintln!("stopping; once more ends at once");
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(INTERRUPTED.into());
        }
    }
}

async fn run(cli: &Cli, stop: Stop) -> Result<()> {
    // Only when it is needed: what prints completions needs no settings, and what checks a file not those in force.
    let global = || Global::new(&cli.global, stop.clone());
    match &cli.command {
        Command::Completions { shell } => completions::run(*shell),
        Command::Doctor => doctor::run(&global()?).await,
        Command::Config(command) => config::run(&cli.global, command),
        Command::Table(command) => table::run(&global()?, command).await,
        Command::Load(args) => load::run(&global()?, args).await,
        Command::Put(args) => put::run(&global()?, args).await,
        Command::Get(args) => get::run(&global()?, args).await,
        Command::Delete(args) => delete::run(&global()?, args).await,
        Command::Index(command) => index::run(&global()?, command).await,
        Command::Apply(args) => apply::run(&global()?, args).await,
        Command::Purge(args) => purge::run(&global()?, args).await,
        Command::Demo(args) => demo::run(&global()?, args).await,
        Command::Query(args) => query::run(&global()?, args).await,
        Command::Bench(args) => bench::run(&global()?, args).await,
        Command::Compact(args) => compact::run(&global()?, args).await,
        Command::Attribute(command) => attribute::run(&global()?, command).await,
        Command::Quarantine(command) => quarantine::run(&global()?, command).await,
        Command::Verify(args) => verify::run(&global()?, args).await,
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

/// Exit code of what Ctrl-C ended, as shells have it.
const INTERRUPTED: u8 = 130;

/// The documented exit codes; 2 is the parser's own.
fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::InvalidInput | ErrorKind::WrongType => 3,
        ErrorKind::NotFound | ErrorKind::AlreadyExists => 4,
        ErrorKind::TooCostly | ErrorKind::Unsupported => 5,
        ErrorKind::Busy | ErrorKind::Unreachable => 6,
        ErrorKind::Inconsistent => 7,
        ErrorKind::Interrupted => INTERRUPTED,
        ErrorKind::Store | ErrorKind::Corrupt | ErrorKind::Internal => 1,
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    std::error::Error::source(error)
        .and_then(|e| e.downcast_ref::<std::io::Error>())
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
