//! `completions`: what a shell completes.

use super::args::{Cli, Shell};
use crate::error::Result;
use clap::CommandFactory;
use std::io::Write;

pub fn run(shell: Shell) -> Result<()> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sideindex", &mut script);
    Ok(std::io::stdout().lock().write_all(&script)?)
}
