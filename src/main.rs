//! The `sideindex` binary.

fn main() {}
