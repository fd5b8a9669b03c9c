//! A damaged store is refused or answers as if it were whole; it is never half-read, and nothing panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use futures::executor::block_on;
use sideindex::error::{ErrorKind, Result};
use sideindex::model::{Cell, ChangeEvent, Row, RowMutation};
use sideindex::store::embedded::{DurabilityMode, EmbeddedStore, Options};
use sideindex::store::{Durability, Read, ReadSpec, Scan, Store, TableDescriptor};
use std::fs;
use std::path::{Path, PathBuf};

fn options() -> Options {
    Options { durability: DurabilityMode::Os, memtable_bytes: 64 << 10, ..Options::default() }
}

/// All there is: the rows of each table with every version and marker, and its log.
type Content = Vec<(String, Vec<Row>, Vec<ChangeEvent>)>;

fn read(path: &Path) -> Result<Content> {
    let store = EmbeddedStore::open(path, options())?;
    let mut content = Vec::new();
    for table in block_on(store.list_tables())? {
        let spec = ReadSpec { raw: true, ..ReadSpec::default() };
        let mut scanner = block_on(store.scan(&table, Scan { spec, ..Scan::all() }))?;
        let mut rows = Vec::new();
        loop {
            let page = block_on(scanner.next_page())?;
            rows.extend(page.rows);
            if page.done {
                break;
            }
        }
        let log = if table == "plain" { Vec::new() } else { store.read_log(&table, 0, usize::MAX, usize::MAX)? };
        content.push((table, rows, log));
    }
    Ok(content)
}

/// A store with table files, and a journal with something in it.
fn build(path: &Path) {
    let store = EmbeddedStore::open(path, options()).unwrap();
    let noise = |seed: u64, length: usize| -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..length).map(|_| random.u8(..)).collect()
    };
    block_on(async {
        store.create_table(&TableDescriptor::new("logged", &["c"], 3).with_change_log()).await.unwrap();
        store.create_table(&TableDescriptor::new("plain", &["c"], 1)).await.unwrap();
        for i in 0..60 {
            for table in ["logged", "plain"] {
                let cells = vec![Cell::put("c", "q", i, noise(i.unsigned_abs(), 2_000))];
                let put = RowMutation::new(format!("row {:02}", i % 25), cells);
                store.mutate(table, vec![put], Durability::Durable).await.unwrap();
            }
        }
    });
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target)
        } else {
            drop(fs::copy(entry.path(), target))
        }
    }
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// A whole store, and copies of it to damage.
struct Patient {
    dir: tempfile::TempDir,
    whole: PathBuf,
    content: Content,
    files: Vec<PathBuf>,
}

impl Patient {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let whole = dir.path().join("whole");
        build(&whole);
        let spare = dir.path().join("spare");
        copy(&whole, &spare);
        let content = read(&spare).unwrap();
        assert_eq!(
            content.iter().map(|(_, rows, log)| (rows.len(), log.len())).collect::<Vec<_>>(),
            [(25, 60), (25, 0)]
        );
        let files: Vec<PathBuf> = files(&whole).iter().map(|f| f.strip_prefix(&whole).unwrap().to_owned()).collect();
        let named = |part: &str| files.iter().filter(|f| f.to_string_lossy().contains(part)).count();
        assert!(named("/tables/") > 2 && named(".jnl") > 0, "{files:?}");
        Self { dir, whole, content, files }
    }

    /// Damages one file of a copy. What is read must be all there is, or an error.
    fn judge(&self, file: &Path, what: &str, damage: impl FnOnce(&Path)) -> Option<String> {
        let patient = self.dir.path().join("patient");
        let _ = fs::remove_dir_all(&patient);
        copy(&self.whole, &patient);
        damage(&patient.join(file));
        let found = std::panic::catch_unwind(|| read(&patient));
        let found = found.unwrap_or_else(|_| panic!("{} {what}: panicked", file.display()));
        match found {
            Ok(content) => {
                assert!(content == self.content, "{} {what}: half-read", file.display());
                None
            }
            Err(error) => {
                let kinds = [ErrorKind::Corrupt, ErrorKind::Store, ErrorKind::InvalidInput];
                assert!(kinds.contains(&error.kind()), "{} {what}: {error:?}", file.display());
                assert!(
                    error.to_string().contains(patient.to_str().unwrap()) || error.kind() == ErrorKind::Corrupt,
                    "{error}"
                );
                Some(error.to_string())
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_noticed_or_without_effect() {
    let patient = Patient::new();
    let mut noticed = 0;
    for (n, file) in patient.files.iter().enumerate() {
        let size = fs::metadata(patient.whole.join(file)).unwrap().len() as usize;
        let mut random = fastrand::Rng::with_seed(n as u64);
        // Both ends are headers; what is between them is sampled.
        let ends = (0..size).filter(|p| *p < 14 || *p + 14 >= size);
        let places: Vec<usize> =
            ends.chain((0..6).map(|_| random.usize(0..size.max(1)))).filter(|p| *p < size).collect();
        for place in places {
            let bit = random.u8(0..8);
            let error = patient.judge(file, &format!("bit {bit} of byte {place}"), |path| {
                let mut bytes = fs::read(path).unwrap();
                bytes[place] ^= 1 << bit;
                fs::write(path, bytes).unwrap();
            });
            noticed += usize::from(error.is_some());
        }
    }
    assert!(noticed > 100, "only {noticed} were noticed");
}

#[test]
fn a_file_that_is_missing_is_noticed() {
    let patient = Patient::new();
    let mut noticed = Vec::new();
    for file in &patient.files {
        noticed.extend(patient.judge(file, "deleted", |path| fs::remove_file(path).unwrap()).map(|_| file));
    }
    // What is not noticed has no effect: a lock is made anew, and a manifest may be an old one.
    let named = |part: &str| patient.files.iter().filter(|f| f.to_string_lossy().contains(part)).count();
    assert!(noticed.len() >= named("/current") * 2 + named("/tables/") + 3, "{noticed:?} of {:?}", patient.files);
}

#[test]
fn a_file_cut_short_is_noticed_but_for_the_end_of_the_newest_journal() {
    let patient = Patient::new();
    let newest = patient.files.iter().rfind(|f| f.extension().is_some_and(|e| e == "jnl")).unwrap();
    for file in patient.files.iter().filter(|f| *f != newest) {
        let size = fs::metadata(patient.whole.join(file)).unwrap().len();
        for length in [0, size / 2, size.saturating_sub(1)] {
            patient.judge(file, &format!("cut to {length} of {size} bytes"), |path| {
                fs::File::options().write(true).open(path).unwrap().set_len(length).unwrap();
            });
        }
    }
}
