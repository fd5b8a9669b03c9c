//! The `sideindex` binary.

use std::process::ExitCode;

/// The C library's allocator keeps an arena per thread, and what passes from thread to thread stays behind in all of them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    sideindex::cli::main()
}
