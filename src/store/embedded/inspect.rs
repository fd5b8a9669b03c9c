//! Looking at a store without changing it.
//!
//! Opening writes: fjall cuts journals, deletes what it has no use for and merges files. So what is opened is a copy: table
//! files, which never change, are linked, and the rest, which is small, is copied.

use super::cells::pair;
use super::tables::Table;
use super::{DurabilityMode, EmbeddedStore, Options, directory, key, layout};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::term;
use bytes::Bytes;
use fjall::Readable;
use std::fs::{self, File, TryLockError};
use std::path::Path;
use tempfile::TempDir;

/// A store as it was when it was opened so. Its directory stays locked meanwhile.
pub struct Inspection {
    store: EmbeddedStore,
    _copy: TempDir,
    _lock: File,
}

impl Inspection {
    /// Opens the store in a directory, which may be read-only.
    ///
    /// # Errors
    /// As [`EmbeddedStore::open`]; [`ErrorKind::NotFound`] where there is no store. A busy one is named with the process that
    /// has it, where the system tells.
    pub fn open(path: &Path) -> Result<Self> {
        if !EmbeddedStore::is_at(path) {
            return Err(Error::new(ErrorKind::NotFound, format!("no store at {}", path.display())));
        }
        let lock = lock(path)?;
        directory::check_format(path).map_err(|e| e.within(path.display().to_string()))?;
        let database = path.join(directory::DATABASE);
        layout::check(&database)?;
        let copy = tempfile::tempdir()?;
        mirror(path, copy.path())?;
        let options = Options { durability: DurabilityMode::Os, ..Options::default() };
        let store = EmbeddedStore::open(copy.path(), options)?;
        Ok(Self { store, _copy: copy, _lock: lock })
    }

    /// The store. What is written to it is lost.
    pub fn store(&self) -> &EmbeddedStore {
        &self.store
    }

    /// Number of the last record that was trimmed from a table's change log; 0 when none was.
    ///
    /// # Errors
    /// As [`EmbeddedStore::log_head`].
    pub fn log_start(&self, table: &str) -> Result<u64> {
        Ok(self.store.0.tables.get(table)?.log()?.tail().trimmed)
    }

    /// Roughly how many cells a table has, hidden ones included.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`].
    pub fn cells(&self, table: &str) -> Result<u64> {
        Ok(self.store.0.tables.get(table)?.keyspace.approximate_len() as u64)
    }

    /// Reads every stored cell of a table and decodes its key. `seen` is called for each, with what is wrong with it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Corrupt`] and [`ErrorKind::Store`] when the table cannot be read further.
    pub fn check_cells(&self, table: &str, mut seen: impl FnMut(Result<()>)) -> Result<()> {
        let table = self.store.0.tables.get(table)?;
        let snapshot = self.store.0.moments.now();
        let mut cells = snapshot.iter(&table.keyspace);
        while let Some((key, _)) = pair(cells.next())? {
            seen(check_key(&table, &key).map_err(|e| e.within(format!("cell \"{}\"", key.escape_ascii()))));
        }
        Ok(())
    }
}

fn lock(path: &Path) -> Result<File> {
    let file = File::open(path.join(directory::LOCK_FILE))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::new(ErrorKind::Busy, format!("the store in {} is in use{}", path.display(), holder(&file))))
        }
        Err(TryLockError::Error(e)) => Err(e.into()),
    }
}

/// ` by process 17 (sideindex load …)`, where `/proc` tells.
#[cfg(unix)]
fn holder(file: &File) -> String {
    use std::os::unix::fs::MetadataExt;
    let holder = || {
        let metadata = file.metadata().ok()?;
        let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
        let place = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let words = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let pid = words.filter(|w| w.get(5) == Some(&place.as_str())).find_map(|w| w.get(4)?.parse::<u32>().ok())?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        Some(format!(" by process {pid} ({})", command.trim().chars().take(80).collect::<String>()))
    };
    holder().unwrap_or_default()
}

#[cfg(not(unix))]
fn holder(_: &File) -> String {
    String::new()
}

/// Copies a directory, but for table files, which are linked.
fn mirror(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            mirror(&entry.path(), &target)?;
        } else if from.file_name().is_some_and(|name| name == "tables") {
            link(&fs::canonicalize(entry.path())?, &target)?;
        } else {
            fs::write(&target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::copy(from, to).map(|_| ())
}

fn check_key(table: &Table, key: &Bytes) -> Result<()> {
    let (prefix, row) = key::split_row(key)?;
    key::check_row(&row).map_err(|e| Error::corrupt(e.to_string()))?;
    let rest = &key[prefix.len()..];
    let family = table.families.iter().find(|(name, _)| rest.starts_with(name) && rest.get(name.len()) == Some(&0));
    let (family, _) = family.ok_or_else(|| Error::corrupt("expected a family of the table"))?;
    let column = &rest[family.len() + 1..];
    let (length, _) = term::escaped_len(column)?;
    key::split_tail(&column[length..]).map(|_| ())
}
