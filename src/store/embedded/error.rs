//! What fjall's errors mean to callers.

use crate::error::{Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// An error while the store is open.
pub(super) fn store(doing: &str, error: fjall::Error) -> Error {
    let kind = match &error {
        fjall::Error::Storage(
            fjall::LsmError::ChecksumMismatch { .. }
            | fjall::LsmError::InvalidHeader(_)
            | fjall::LsmError::InvalidTag(_)
            | fjall::LsmError::InvalidTrailer
            | fjall::LsmError::Decompress(_)
            | fjall::LsmError::Utf8(_)
            | fjall::LsmError::Unrecoverable,
        )
        | fjall::Error::JournalRecovery(_)
        | fjall::Error::InvalidVersion(_)
        | fjall::Error::Decompress(_)
        | fjall::Error::InvalidTrailer
        | fjall::Error::InvalidTag(_)
        | fjall::Error::Unrecoverable => ErrorKind::Corrupt,
        fjall::Error::Locked => ErrorKind::Busy,
        _ => ErrorKind::Store,
    };
    Error::new(kind, format!("{doing} failed: {error}")).with_source(error)
}

/// The directory is open elsewhere.
pub(super) fn busy(path: &Path) -> Error {
    Error::new(ErrorKind::Busy, format!("the store in {} is open in another process or handle", path.display()))
}

/// A commit failed; every write that was in it gets this error.
pub(super) fn commit(error: &Arc<fjall::Error>) -> Error {
    let failed = match &**error {
        fjall::Error::Io(e) if e.kind() == std::io::ErrorKind::StorageFull => {
            format!("a commit failed: {e}; free some space, then reopen the store, which has all that was acknowledged")
        }
        error => format!("a commit failed, nothing more will be written; reopen the store: {error}"),
    };
    Error::new(ErrorKind::Store, failed).with_source(Arc::clone(error))
}
