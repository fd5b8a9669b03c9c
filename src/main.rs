//! The `sideindex` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    sideindex::cli::main()
}
