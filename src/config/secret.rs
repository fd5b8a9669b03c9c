//! Secrets: read from files, never printed.

use super::{Given, Slot};
use crate::error::{Error, ErrorKind, Result};
use serde::{Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// Bytes a secret may have.
const LONGEST: u64 = 64 << 10;
/// What is printed in its place.
const HIDDEN: &str = "(secret)";

/// A secret from a file. The file names the file, never the secret: `password_file = "/run/secrets/kafka"`.
///
/// Nothing prints it: not `Debug`, not `Display`, not serde.
///
/// ```
/// # use std::os::unix::fs::PermissionsExt;
/// # fn main() -> sideindex::error::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("password");
/// # std::fs::write(&path, "hunter2\n")?;
/// # std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
/// let secret = sideindex::config::Secret::read(&path)?;
/// assert_eq!(secret.reveal(), "hunter2");
/// assert_eq!(format!("{secret} {secret:?}"), "(secret) (secret)");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: String,
    path: PathBuf,
}

impl Secret {
    /// Reads a secret; a line break at its end is not a part of it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Store`] for a file that cannot be read; [`ErrorKind::InvalidInput`] for one that
    /// others may read, and for one that is empty, too long or no text. None of them has anything of the secret in it.
    pub fn read(path: &Path) -> Result<Self> {
        let at = |e: Error| e.within(format!("secret {}", path.display()));
        let cannot = |e: std::io::Error| {
            let kind = if e.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Store };
            at(Error::new(kind, format!("cannot be read: {e}")).with_source(e))
        };
        let metadata = std::fs::metadata(path).map_err(cannot)?;
        check_permissions(&metadata).map_err(at)?;
        if metadata.len() > LONGEST {
            return Err(at(Error::invalid(format!("expected at most {LONGEST} bytes, found {}", metadata.len()))));
        }
        let bytes = std::fs::read(path).map_err(cannot)?;
        let text = String::from_utf8(bytes).map_err(|_| at(Error::invalid("expected UTF-8, found other bytes")))?;
        let text = text.strip_suffix('\n').map_or(text.as_str(), |t| t.strip_suffix('\r').unwrap_or(t));
        if text.is_empty() {
            return Err(at(Error::invalid("expected a secret, found an empty file")));
        }
        Ok(Self { text: text.to_owned(), path: path.to_owned() })
    }

    /// The secret itself, for whoever it is meant for.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

/// As ssh has it for keys: nobody but the owner.
#[cfg(unix)]
fn check_permissions(metadata: &std::fs::Metadata) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(Error::invalid(format!("expected a file for its owner alone, found mode {mode:03o}; `chmod 600` it")))
}

#[cfg(not(unix))]
fn check_permissions(_: &std::fs::Metadata) -> Result<()> {
    Ok(())
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

impl Slot for Option<Secret> {
    fn expected(&self) -> String {
        "the path of a file that holds the secret".to_owned()
    }

    fn set(&mut self, given: &Given<'_>) -> Result<()> {
        let mut path: Option<PathBuf> = None;
        // What was found is not shown: it may be the secret itself.
        path.set(given).map_err(|_| Error::invalid(format!("expected {}", self.expected())))?;
        *self = path.map(|path| Secret::read(&path)).transpose()?;
        Ok(())
    }

    fn shown(&self) -> Option<String> {
        self.as_ref().map(|secret| format!("{:?}", secret.path.to_string_lossy()))
    }
}
