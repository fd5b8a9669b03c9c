//! What can be seen from outside.

use super::{RESTORE, Report, Severity};
use crate::error::{Error, ErrorKind, Result};
use std::path::Path;

/// Free space below which it gets tight: what the journals and one merge of files may need.
const TIGHT: u64 = 512 << 20;

pub(super) fn examine(path: &Path, report: &mut Report) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(path) else {
        // Whether there is a store is for whoever opens it to say.
        return Ok(());
    };
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("torn-journal-") {
            report.add(
                Severity::Note,
                path.join(name).display().to_string(),
                "the machine stopped while this was being written, and it was not acknowledged as durable",
                "nothing; delete it when nobody wants to look at it",
            );
        }
    }
    if let Some(free) = free(path).filter(|free| *free < TIGHT) {
        report.add(
            Severity::Warning,
            path.display().to_string(),
            format!("{} MiB are free on its disk", free >> 20),
            "free some space, or move the directory: a store that cannot write stops",
        );
    }
    Ok(())
}

/// Bytes that this user may still write.
#[cfg(unix)]
fn free(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}

/// What to do about a store that doesn't open.
pub(super) fn advice(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Unsupported => "use a newer sideindex",
        ErrorKind::InvalidInput => "move away what does not belong there, or name another directory",
        ErrorKind::Corrupt if error.to_string().contains("another version") => {
            "use the version of sideindex that wrote it; if none did, name another directory"
        }
        ErrorKind::Corrupt => RESTORE,
        _ => "look at the disk, the permissions and the system's log",
    }
}
