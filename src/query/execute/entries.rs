//! Reading the entries of an index path: range after range, the salts of each merged by (terms, row).

use super::Actuals;
use crate::error::Result;
use crate::model::Row;
use crate::query::plan::{EntryRange, IndexPath};
use crate::schema::Definition;
use crate::schema::entry::{self, EntryKey};
use crate::store::{Read, ReadSpec, Scan, Scanner};
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// One entry.
pub(super) struct Entry {
    key: Bytes,
    parts: EntryKey,
    value: Bytes,
    /// Whether it has to be checked whatever the consistency.
    pub(super) disputed: bool,
}

impl Entry {
    /// What it takes in memory, in bytes.
    pub(super) fn weight(&self) -> u64 {
        (self.key.len() + size_of::<Self>()) as u64
    }

    /// The encoded terms.
    pub(super) fn terms(&self) -> &[u8] {
        &self.key[self.parts.terms.clone()]
    }

    /// Its key without the salt, which says where it is among the entries of its path.
    pub(super) fn place(&self) -> Bytes {
        self.key.slice(1..)
    }

    /// The covered terms.
    ///
    /// # Errors
    /// None for entries that were decoded here.
    pub(super) fn covered(&self) -> Result<&[u8]> {
        Ok(entry::decode_value(&self.value)?.1)
    }

    /// The base row's key.
    pub(super) fn row(&self) -> Bytes {
        self.key.slice(self.parts.row.clone())
    }
}

/// The entries of one path, in order.
pub(super) struct EntryStream {
    definition: Arc<Definition>,
    ranges: Vec<EntryRange>,
    /// Ranges still to be opened: taken from the front, or from the back when reversed.
    reversed: bool,
    page_rows: usize,
    heads: Vec<Head>,
    /// The next row of each head, when there are several.
    queue: BinaryHeap<Next>,
}

/// The scan of one salt.
struct Head {
    scanner: Box<dyn Scanner>,
    rows: std::vec::IntoIter<Row>,
    done: bool,
}

/// The next row of a head. The heap gives the one that is to be read first.
struct Next {
    row: Row,
    head: usize,
    reversed: bool,
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        // The salt is left out.
        let order = self.row.key.get(1..).cmp(&other.row.key.get(1..));
        if self.reversed { order } else { order.reverse() }
    }
}
impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Next {}

impl EntryStream {
    /// The entries of `path`, those after one of this place, read in pages of `page_rows` for each salt.
    pub(super) fn new(path: &IndexPath, reversed: bool, page_rows: usize, after: Option<&Bytes>) -> Self {
        let mut ranges = match after {
            Some(place) => path.ranges.iter().filter_map(|range| range.after(place, reversed)).collect(),
            None => path.ranges.clone(),
        };
        if !reversed {
            ranges.reverse();
        }
        Self {
            definition: Arc::clone(&path.definition),
            ranges,
            reversed,
            page_rows,
            heads: Vec::new(),
            queue: BinaryHeap::new(),
        }
    }

    /// Appends up to `most` entries to `out`; fewer, or none, do not mean the end. False at the end.
    pub(super) async fn next(
        &mut self,
        reader: &dyn Read,
        table: &str,
        most: usize,
        out: &mut Vec<Entry>,
        actuals: &mut Actuals,
    ) -> Result<bool> {
        if self.heads.is_empty() {
            let Some(range) = self.ranges.pop() else { return Ok(false) };
            self.open(reader, table, &range, actuals).await?;
        }
        if let [head] = self.heads.as_mut_slice() {
            if head.rows.len() == 0 && !head.done {
                head.fill().await?;
            }
            for row in head.rows.by_ref().take(most) {
                out.extend(entry(row, &self.definition, actuals)?);
            }
            if head.rows.len() == 0 && head.done {
                self.heads.clear();
            }
        } else {
            for _ in 0..most {
                let Some(Next { row, head, .. }) = self.queue.pop() else {
                    self.heads.clear();
                    break;
                };
                out.extend(entry(row, &self.definition, actuals)?);
                self.advance(head).await?;
            }
        }
        Ok(true)
    }

    async fn open(&mut self, reader: &dyn Read, table: &str, range: &EntryRange, actuals: &mut Actuals) -> Result<()> {
        for salt in range.salts.clone() {
            let (start, stop) = range.bounds(salt);
            let scan = Scan {
                start: Some(start),
                stop,
                reversed: self.reversed,
                spec: ReadSpec::default(),
                page_rows: self.page_rows,
            };
            let scanner = reader.scan(table, scan).await?;
            actuals.seeks += 1;
            self.heads.push(Head { scanner, rows: Vec::new().into_iter(), done: false });
        }
        if self.heads.len() > 1 {
            futures::future::try_join_all(self.heads.iter_mut().map(Head::fill)).await?;
            for head in 0..self.heads.len() {
                self.advance(head).await?;
            }
        }
        Ok(())
    }

    /// Puts a head's next row into the queue.
    async fn advance(&mut self, number: usize) -> Result<()> {
        let head = &mut self.heads[number];
        loop {
            if let Some(row) = head.rows.next() {
                self.queue.push(Next { row, head: number, reversed: self.reversed });
                return Ok(());
            }
            if head.done {
                return Ok(());
            }
            head.fill().await?;
        }
    }
}

impl Head {
    /// Reads the next page; the last one must be used up.
    async fn fill(&mut self) -> Result<()> {
        let page = self.scanner.next_page().await?;
        self.rows = page.rows.into_iter();
        self.done = page.done;
        Ok(())
    }
}

/// The entry in a row of the index table; none in a row that holds something else.
fn entry(row: Row, definition: &Definition, actuals: &mut Actuals) -> Result<Option<Entry>> {
    actuals.weigh(&row);
    let Some(cell) = row.newest(entry::FAMILY, entry::QUALIFIER) else { return Ok(None) };
    let value = cell.value.clone();
    let (disputed, _) = entry::decode_value(&value)?;
    let parts = entry::decode(&row.key, definition)?;
    actuals.entries += 1;
    Ok(Some(Entry { key: row.key, parts, value, disputed }))
}
