//! Every `sh` block of the README is run, in order, in one folder. A line's `# → text` must be in what it prints.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::Command;

#[test]
fn the_tour_works_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("data"), dir.path().join("data")).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_sideindex")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let mut commands = 0;
    let mut inside = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
            continue;
        }
        if !inside || line.trim().is_empty() {
            continue;
        }
        let expected = line.split_once("# → ").map(|(_, text)| text.trim());
        let script = format!("set -o pipefail; {line}");
        let output =
            Command::new("bash").args(["-c", &script]).current_dir(dir.path()).env("PATH", &path).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{line}\n{printed}{}", String::from_utf8_lossy(&output.stderr));
        if let Some(expected) = expected {
            assert!(printed.contains(expected), "{line}\nexpected {expected:?} in\n{printed}");
        }
        commands += 1;
    }
    assert!(commands >= 10, "only {commands} commands were found in the README");
}
