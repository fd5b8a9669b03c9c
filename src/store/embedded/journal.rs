//! Cuts off what a power failure left half-written at the end of the journal, where fjall itself gives up.
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

use crate::error::Result;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const MAGIC: &[u8] = b"FJL\x03";
/// The unit in which the operating system writes, in bytes.
const PAGE: usize = 4_096;

/// Cuts the newest journal of a database before its first batch with a gap, keeping what is cut in a file beside the
/// database. Whether there was such a batch.
///
/// # Errors
/// [`Store`](crate::error::ErrorKind::Store) when files cannot be read or written.
pub(super) fn cut_torn_tail(database: &Path) -> Result<bool> {
    let Some(path) = newest(database)? else { return Ok(false) };
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

/// The journal in use is the one with the highest number.
fn newest(database: &Path) -> Result<Option<PathBuf>> {
    let mut newest: Option<(u64, PathBuf)> = None;
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        let number =
            path.extension().filter(|e| *e == "jnl").and(path.file_stem()).and_then(|n| n.to_str()?.parse().ok());
        if let Some(number) = number
            && newest.as_ref().is_none_or(|(n, _)| number > *n)
        {
            newest = Some((number, path));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

/// Where the first whole batch with a wrong checksum starts, if it has a gap; all before it is sound.
fn first_tear(journal: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let (entries, checksum, end) = batch(journal, at)?;
        if xxh3_64(journal.get(entries.0..entries.1)?) != checksum {
            return has_gap(journal, at, end).then_some(at);
        }
        at = end;
    }
}

/// Where a batch's entries start and end, its checksum, and where it ends; none if there is no whole batch.
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
                return (journal.get(at + 1 + 8..end)? == MAGIC).then_some(((entries, at), checksum, end));
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
