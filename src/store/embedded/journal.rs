//! Tells a journal that is damaged from one whose end was being written when the machine stopped, before fjall sees it.
//!
//! fjall takes whatever it cannot decode for the end, and cuts the journal there. That is right for an end that was never
//! acknowledged as durable. A flipped bit further up would silently cost everything behind it, so [`check`] refuses. Only
//! the newest journal may have an open end: fjall syncs a journal before it starts the next.
//!
//! [`cut_torn_tail`] cuts where fjall itself gives up.
//!
//! The journal in use is a file that is zero where nothing was written. When the machine dies, some pages of what was not
//! yet synced may have reached the disk and others not. fjall drops such a tail if it stumbles over the gap while it
//! decodes. A gap inside a large value decodes, only the checksum is wrong then, and fjall refuses to open.
//!
//! A gap proves that nothing from its batch on was ever synced, for a later sync would have filled it. So nothing
//! acknowledged as durable is lost by cutting there. A wrong checksum without a gap is damage, and is left alone.
//!
//! The layout is that of fjall 3 (its `journal/entry.rs`), little-endian:
//!
//! ```text
//! batch = 1 count(4) seqno(8)  entry…  3 xxh3(entries)(8) "FJL" 3
//! entry = 2 type(1) compression(1) keyspace(8) key length(2) value length(4) stored length(4) key value
//!       | 4 keyspace(8)
//! ```

use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const MAGIC: &[u8] = b"FJL\x03";
/// The unit in which the operating system writes, in bytes.
const PAGE: usize = 4_096;

/// Reads all journals of a database.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) when there is none, or one is damaged;
/// [`Store`](crate::error::ErrorKind::Store) when one cannot be read.
pub(super) fn check(database: &Path) -> Result<()> {
    let mut journals = journals(database)?;
    let Some((_, newest)) = journals.pop() else {
        return Err(Error::corrupt(format!(
            "expected a journal in {}, found none: files are missing",
            database.display()
        )));
    };
    for (_, path) in journals {
        if let Some(damage) = open_end(&path)? {
            return Err(damaged(&path, damage.at));
        }
    }
    match open_end(&newest)? {
        Some(end) if !end.may_be_torn() => Err(damaged(&newest, end.at)),
        _ => Ok(()),
    }
}

fn damaged(path: &Path, at: u64) -> Error {
    Error::corrupt(format!("{} is damaged at byte {at}, with changes after it; nothing was changed", path.display()))
}

/// What stands behind the last sound batch of a journal.
struct OpenEnd {
    /// Where it starts.
    at: u64,
    /// Up to the last byte that is not zero.
    bytes: Vec<u8>,
}

impl OpenEnd {
    /// Whether it can be the rest of a write that was under way: some page of it is missing, or its end.
    fn may_be_torn(&self) -> bool {
        // To the next page; the remainder is less than one.
        let first = (self.at.next_multiple_of(PAGE as u64) - self.at) as usize;
        let pages = self.bytes.get(first..).unwrap_or_default();
        if pages.chunks_exact(PAGE).any(|page| page.iter().all(|b| *b == 0)) {
            return true;
        }
        // A batch that was written to its end has all of its trailer, or all but a flipped bit of it.
        let sound_batch_at = |start: usize| {
            let (entries, checksum, end) = batch(&self.bytes, start)?;
            Some(end <= self.bytes.len() && xxh3_64(self.bytes.get(entries.0..entries.1)?) == checksum)
        };
        let goes_on = (0..self.bytes.len()).any(|start| sound_batch_at(start) == Some(true));
        !self.bytes.ends_with(MAGIC) && !goes_on
    }
}

/// What stands behind the last sound batch; none if that is nothing. Memory is bounded by it.
fn open_end(path: &Path) -> Result<Option<OpenEnd>> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    let (mut at, mut newest) = (0, 0);
    while let Some((length, seqno)) = sound_batch(&mut reader)? {
        // The checksum doesn't cover it, but later batches have later ones.
        if seqno < newest {
            break;
        }
        newest = seqno;
        at += length;
    }
    let mut file = reader.into_inner();
    file.seek(SeekFrom::Start(at))?;
    let (mut end, mut place, mut chunk) = (at, at, vec![0; 1 << 16]);
    loop {
        let n = file.read(&mut chunk)?;
        if n == 0 {
            break;
        }
        if let Some(last) = chunk[..n].iter().rposition(|b| *b != 0) {
            end = place + last as u64 + 1;
        }
        place += n as u64;
    }
    if end == at {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(end - at).read_to_end(&mut bytes)?;
    Ok(Some(OpenEnd { at, bytes }))
}

/// Length and sequence number of the batch that starts here; none if there is no whole batch with the right checksum.
fn sound_batch(reader: &mut impl Read) -> Result<Option<(u64, u64)>> {
    match read_batch(reader) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        read => Ok(read?),
    }
}

fn read_batch(reader: &mut impl Read) -> io::Result<Option<(u64, u64)>> {
    let (mut start, mut count, mut seqno) = ([0], [0; 4], [0; 8]);
    reader.read_exact(&mut start)?;
    reader.read_exact(&mut count)?;
    reader.read_exact(&mut seqno)?;
    if start[0] != START {
        return Ok(None);
    }
    let (count, seqno) = (u32::from_le_bytes(count), u64::from_le_bytes(seqno));
    let mut items = 0;
    let mut length = 1 + 4 + 8;
    let mut hasher = Xxh3::new();
    loop {
        let mut tag = [0];
        reader.read_exact(&mut tag)?;
        length += 1;
        match tag[0] {
            ITEM => {
                let mut item = [0; 1 + 1 + 8 + 2 + 4 + 4];
                reader.read_exact(&mut item)?;
                hasher.update(&tag);
                hasher.update(&item);
                let key = u16::from_le_bytes([item[10], item[11]]);
                let value = u32::from_le_bytes([item[16], item[17], item[18], item[19]]);
                let size = u64::from(key) + u64::from(value);
                hash(reader, size, &mut hasher)?;
                length += item.len() as u64 + size;
                items += 1;
            }
            CLEAR => {
                hasher.update(&tag);
                hash(reader, 8, &mut hasher)?;
                length += 8;
                items += 1;
            }
            END => {
                let mut tail = [0; 8 + MAGIC.len()];
                reader.read_exact(&mut tail)?;
                let sound = tail[..8] == hasher.digest().to_le_bytes() && tail[8..] == *MAGIC && items == count;
                return Ok(sound.then_some((length + tail.len() as u64, seqno)));
            }
            _ => return Ok(None),
        }
    }
}

/// Hashes the next bytes.
fn hash(reader: &mut impl Read, mut size: u64, hasher: &mut Xxh3) -> io::Result<()> {
    let mut chunk = [0; 1 << 12];
    while size > 0 {
        // No more than the chunk holds.
        let part = size.min(chunk.len() as u64) as usize;
        reader.read_exact(&mut chunk[..part])?;
        hasher.update(&chunk[..part]);
        size -= part as u64;
    }
    Ok(())
}

/// Cuts the newest journal of a database before its first batch with a gap, keeping what is cut in a file beside the
/// database. Whether there was such a batch.
///
/// # Errors
/// [`Store`](crate::error::ErrorKind::Store) when files cannot be read or written.
pub(super) fn cut_torn_tail(database: &Path) -> Result<bool> {
    let Some((_, path)) = journals(database)?.pop() else { return Ok(false) };
    let journal = fs::read(&path)?;
    let Some(tear) = first_tear(&journal) else { return Ok(false) };
    let kept = database.with_file_name(format!("torn-journal-{tear}.bin"));
    let end = journal.iter().rposition(|b| *b != 0).map_or(tear, |last| last + 1).max(tear);
    let mut copy = File::create(&kept)?;
    copy.write_all(&journal[tear..end])?;
    copy.sync_all()?;
    let file = File::options().write(true).open(&path)?;
    file.set_len(tear as u64)?;
    file.sync_all()?;
    tracing::warn!(
        "the machine stopped while {} bytes were being written and not yet acknowledged as durable; they were cut from \
         {} and are kept in {}",
        end - tear,
        path.display(),
        kept.display()
    );
    Ok(true)
}

/// The journals by number; the one with the highest is in use.
fn journals(database: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        let number =
            path.extension().filter(|e| *e == "jnl").and(path.file_stem()).and_then(|n| n.to_str()?.parse().ok());
        journals.extend(number.map(|number: u64| (number, path)));
    }
    journals.sort();
    Ok(journals)
}

/// Where the first whole batch with a wrong checksum starts, if it has a gap; all before it is sound.
fn first_tear(journal: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let (entries, checksum, end) = batch(journal, at)?;
        if journal.get(end - MAGIC.len()..end)? != MAGIC {
            return None;
        }
        if xxh3_64(journal.get(entries.0..entries.1)?) != checksum {
            return has_gap(journal, at, end).then_some(at);
        }
        at = end;
    }
}

/// Where a batch's entries start and end, its checksum, and where [`MAGIC`] behind it would end; none if there is no batch.
fn batch(journal: &[u8], start: usize) -> Option<((usize, usize), u64, usize)> {
    if *journal.get(start)? != START {
        return None;
    }
    let entries = start + 1 + 4 + 8;
    let mut at = entries;
    loop {
        match *journal.get(at)? {
            ITEM => {
                let lengths = at + 1 + 1 + 1 + 8;
                let key = u16::from_le_bytes(*journal.get(lengths..)?.first_chunk()?);
                let value = u32::from_le_bytes(*journal.get(lengths + 2 + 4..)?.first_chunk()?);
                at = lengths + 2 + 4 + 4 + usize::from(key) + usize::try_from(value).ok()?;
            }
            CLEAR => at += 1 + 8,
            END => {
                let checksum = u64::from_le_bytes(*journal.get(at + 1..)?.first_chunk()?);
                let end = at + 1 + 8 + MAGIC.len();
                return Some(((entries, at), checksum, end));
            }
            _ => return None,
        }
    }
}

/// Whether a page that lies wholly inside is zero.
fn has_gap(journal: &[u8], start: usize, end: usize) -> bool {
    let first = start.div_ceil(PAGE) * PAGE;
    journal.get(first..end).unwrap_or_default().chunks_exact(PAGE).any(|page| page.iter().all(|b| *b == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_of(value: &[u8]) -> Vec<u8> {
        let mut entry = vec![ITEM, 0, 0];
        entry.extend(1_u64.to_le_bytes());
        entry.extend(3_u16.to_le_bytes());
        let length = u32::try_from(value.len()).unwrap_or_default();
        entry.extend(length.to_le_bytes());
        entry.extend(length.to_le_bytes());
        entry.extend(b"key");
        entry.extend(value);
        let mut batch = vec![START, 1, 0, 0, 0];
        batch.extend(7_u64.to_le_bytes());
        batch.extend(&entry);
        batch.push(END);
        batch.extend(xxh3_64(&entry).to_le_bytes());
        batch.extend(MAGIC);
        batch
    }

    #[test]
    fn only_a_gap_is_a_tear() {
        let first = batch_of(b"value");
        let second = batch_of(&[b'v'; 20_000]);
        let whole = [&first[..], &second, &[0; 10_000]].concat();
        assert_eq!(first_tear(&whole), None);

        let mut gap = whole.clone();
        gap[PAGE..2 * PAGE].fill(0);
        assert_eq!(first_tear(&gap), Some(first.len()));

        let mut damage = whole;
        damage[PAGE + 5] ^= 1;
        assert_eq!(first_tear(&damage), None);
    }

    /// What [`check`] says of a journal that is the newest.
    fn is_refused(journal: &[u8]) -> bool {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("7.jnl"), journal).unwrap();
        check(dir.path()).is_err()
    }

    #[test]
    fn damage_is_refused_and_an_open_end_is_not() {
        let last = batch_of(b"last");
        let whole = [batch_of(b"first"), batch_of(&[b'v'; 9_000]), last.clone()].concat();
        // Nothing comes after the last batch that would show that its number is wrong; fjall counts on from it.
        let number = whole.len() - last.len() + 5..whole.len() - last.len() + 13;
        assert!(!is_refused(&whole));
        assert!(!is_refused(&[&whole[..], &[0; 10_000]].concat()));
        for at in 0..whole.len() {
            assert!(!is_refused(&whole[..at]), "cut at {at}");
            if !number.contains(&at) && (at < 100 || at + 100 > whole.len() || at % 97 == 0) {
                let mut damaged = whole.clone();
                damaged[at] ^= 0x10;
                assert!(is_refused(&damaged), "flipped at {at}");
            }
        }
        // A page that never reached the disk, whatever did behind it.
        let mut torn = whole.clone();
        torn[PAGE..2 * PAGE].fill(0);
        assert!(!is_refused(&torn));

        // Only the newest may have an open end, and there must be one.
        let dir = tempfile::tempdir().unwrap();
        assert!(check(dir.path()).is_err());
        fs::write(dir.path().join("1.jnl"), &whole[..50]).unwrap();
        fs::write(dir.path().join("2.jnl"), &whole).unwrap();
        assert!(check(dir.path()).is_err());
        fs::write(dir.path().join("1.jnl"), &whole).unwrap();
        assert!(check(dir.path()).is_ok());
    }

    #[test]
    fn any_end_is_no_end_of_the_world() {
        let journal = [batch_of(b"a"), batch_of(&[1; 9_000])].concat();
        for length in 0..journal.len() {
            assert_eq!(first_tear(&journal[..length]), None);
        }
    }

    #[test]
    fn fuzz_journals() {
        crate::fuzz::run("journals", &[], |input| {
            // After a sound batch; a gap follows, and the end of a batch.
            let end = [&[END][..], &[0; 8], MAGIC].concat();
            let first = batch_of(b"value");
            let journal = [&first, input, &[0; 2 * PAGE], &end].concat();
            let tear = first_tear(&journal);
            if let Some(at) = tear {
                let mut start = 0;
                while start < at {
                    let ((from, to), checksum, end) = batch(&journal, start).unwrap();
                    assert_eq!(xxh3_64(&journal[from..to]), checksum);
                    start = end;
                }
                assert!(start == at && at >= first.len());
                assert!(journal[at..].chunks(PAGE / 2).any(|half| half.iter().all(|b| *b == 0)));
            }
            format!("{}", tear.is_some())
        });
    }
}
