//! The store's directory: who may open it, and whether we know what is in it.
//!
//! `FORMAT` says what the directory is, `LOCK` is held while it is open, `db` is fjall's. A database is made as `db.new`
//! and renamed when it is whole, so an interrupted creation never looks like a store, and nothing else is ever removed. `torn-journal-….bin` is what was
//! cut from a journal, see [`journal`].

use super::{DurabilityMode, Options, error, journal, layout};
use crate::error::{Error, ErrorKind, Result};
use fjall::{Database, JournalRecoveryError};
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
use std::num::NonZero;
use std::path::Path;

const FORMAT: &str = "sideindex embedded store, format 1\n";
const FORMAT_FILE: &str = "FORMAT";
const FORMAT_DRAFT: &str = "FORMAT.new";
pub(super) const LOCK_FILE: &str = "LOCK";
pub(super) const DATABASE: &str = "db";
const DATABASE_DRAFT: &str = "db.new";
/// Bytes of full journals that are kept before the tables that need them are written to files; the one in use comes on
/// top, up to as much again. Opening reads them all, at about 60 MiB a second. fjall allows no less.
const JOURNAL_BYTES: u64 = 64 << 20;
/// Threads that write and merge files, at least and at most. With two, fjall's first one spins while the other merges.
const WORKERS: (usize, usize) = (3, 4);

/// Keeps others out until it is dropped.
pub(super) struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

/// Locks the directory, makes sure it is a store of our format or nothing at all, and opens the database.
pub(super) fn open(path: &Path, options: Options) -> Result<(Database, Lock)> {
    let at = |e: Error| e.within(path.display().to_string());
    fs::create_dir_all(path).map_err(|e| at(e.into()))?;
    refuse_foreign(path).map_err(at)?;
    let lock = acquire(path)?;
    if path.join(FORMAT_FILE).try_exists().map_err(|e| at(e.into()))? {
        check_format(path).map_err(at)?;
    } else {
        mark(path).map_err(at)?;
    }
    let database = path.join(DATABASE);
    if !database.try_exists().map_err(|e| at(e.into()))? {
        create(path, options).map_err(at)?;
    }
    layout::check(&database)?;
    let opened = match open_database(&database, options) {
        Err(fjall::Error::JournalRecovery(JournalRecoveryError::ChecksumMismatch))
            if journal::cut_torn_tail(&database).map_err(at)? =>
        {
            open_database(&database, options)
        }
        opened => opened,
    };
    let database = opened.map_err(|e| match e {
        fjall::Error::Locked => error::busy(path),
        e => at(error::store("opening the database", e)),
    })?;
    Ok((database, lock))
}

fn open_database(path: &Path, options: Options) -> fjall::Result<Database> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).clamp(WORKERS.0, WORKERS.1);
    Database::builder(path)
        .cache_size(options.cache_bytes)
        .max_journaling_size(JOURNAL_BYTES)
        .worker_threads(threads)
        .open()
}

/// Whether a store was created in the directory.
pub(super) fn is_store(path: &Path) -> bool {
    path.join(FORMAT_FILE).is_file()
}

/// A directory without `FORMAT` must hold nothing but what an interrupted creation leaves.
fn refuse_foreign(path: &Path) -> Result<()> {
    if path.join(FORMAT_FILE).try_exists()? {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if name != LOCK_FILE && name != FORMAT_DRAFT && name != FORMAT_FILE {
            return Err(Error::invalid(format!(
                "expected an empty directory or a sideindex store, found {}",
                name.display()
            )));
        }
    }
    Ok(())
}

fn acquire(path: &Path) -> Result<Lock> {
    let name = path.join(LOCK_FILE);
    let file = File::options().create(true).truncate(false).write(true).open(&name).map_err(|e| {
        let hint = match e.kind() {
            ReadOnlyFilesystem | PermissionDenied => "; a store can be opened only where it can be written",
            _ => "",
        };
        Error::new(ErrorKind::Store, format!("cannot write {}: {e}{hint}", name.display())).with_source(e)
    })?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(error::busy(path)),
        Err(TryLockError::Error(e)) => Err(Error::from(e).within(name.display().to_string())),
    }
}

/// Whether the store is of the format we know.
pub(super) fn check_format(path: &Path) -> Result<()> {
    let found = fs::read(path.join(FORMAT_FILE))?;
    if found == FORMAT.as_bytes() {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "expected {:?} in {FORMAT_FILE}, found {:?}: written by another version of sideindex, or not a store",
        FORMAT.trim_end(),
        String::from_utf8_lossy(&found[..found.len().min(80)]).trim_end()
    )))
}

/// Makes the directory a store.
fn mark(path: &Path) -> Result<()> {
    let draft = path.join(FORMAT_DRAFT);
    fs::write(&draft, FORMAT)?;
    File::open(&draft)?.sync_all()?;
    fs::rename(&draft, path.join(FORMAT_FILE))?;
    sync_directory(path)?;
    path.parent().filter(|p| !p.as_os_str().is_empty()).map_or(Ok(()), sync_directory)
}

fn create(path: &Path, options: Options) -> Result<()> {
    let draft = path.join(DATABASE_DRAFT);
    match fs::remove_dir_all(&draft) {
        Err(e) if e.kind() != NotFound => return Err(e.into()),
        _ => {}
    }
    drop(open_database(&draft, options).map_err(|e| error::store("creating the database", e))?);
    fs::rename(&draft, path.join(DATABASE))?;
    if options.durability == DurabilityMode::Fsync {
        sync_directory(path)?;
    }
    Ok(())
}

/// Makes names in a directory durable. Windows has no such call and needs none.
fn sync_directory(path: &Path) -> Result<()> {
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}
