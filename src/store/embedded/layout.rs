//! Whether the files of a database are those that fjall left, before fjall sees them.
//!
//! Where a file is missing fjall starts afresh and deletes what it then has no use for; a manifest it believes without looking
//! at its checksum. Both would lose data in silence. The layout is that of fjall 3 and its lsm-tree 3:
//!
//! ```text
//! version  lock  N.jnl  keyspaces/N/current  keyspaces/N/vM  keyspaces/N/tables/K
//! current = M(8) xxh3-128 of vM(16) 0        little-endian
//! ```

use super::journal;
use crate::error::{Error, Result};
use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

const CURRENT: &str = "current";

/// Checks a database.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) names what is missing or damaged,
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) what doesn't belong there;
/// [`Store`](crate::error::ErrorKind::Store) when files cannot be read.
pub(super) fn check(database: &Path) -> Result<()> {
    for name in ["version", "lock", "keyspaces/0/current"] {
        if !database.join(name).try_exists()? {
            return Err(missing(&database.join(name)));
        }
    }
    for entry in fs::read_dir(database.join("keyspaces"))? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        if !path.is_dir() || name.to_str().is_none_or(|n| n.parse::<u64>().is_err()) {
            return Err(Error::invalid(format!("{} does not belong there", path.display())));
        }
        check_keyspace(&path)?;
    }
    journal::check(database)
}

fn check_keyspace(path: &Path) -> Result<()> {
    let current = match fs::read(path.join(CURRENT)) {
        Ok(current) => current,
        Err(e) if e.kind() == NotFound => {
            // One that was being created has no tables yet, and is nothing.
            let tables = path.join("tables");
            return match tables.try_exists()? && fs::read_dir(tables)?.next().is_some() {
                true => Err(missing(&path.join(CURRENT))),
                false => Ok(()),
            };
        }
        Err(e) => return Err(e.into()),
    };
    let damaged = |name: &str| Error::corrupt(format!("{} is damaged", path.join(name).display()));
    let parts = current.split_first_chunk::<8>().and_then(|(number, rest)| {
        let (checksum, rest) = rest.split_first_chunk::<16>()?;
        (rest == [0]).then_some((u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
    });
    let (number, checksum) = parts.ok_or_else(|| damaged(CURRENT))?;
    let manifest = path.join(format!("v{number}"));
    match fs::read(&manifest) {
        Ok(bytes) if xxh3_128(&bytes) == checksum => Ok(()),
        Ok(_) => Err(damaged(&format!("v{number}"))),
        Err(e) if e.kind() == NotFound => Err(missing(&manifest)),
        Err(e) => Err(e.into()),
    }
}

fn missing(path: &Path) -> Error {
    Error::corrupt(format!("expected {}, found nothing: files of the store are missing", path.display()))
}
