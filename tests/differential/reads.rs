//! What two answers must have in common.

use crate::history::COUNTER;
use sideindex::model::{Cell, CellKind, Row};
use sideindex::store::{Filter, ReadSpec};

/// When it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    InMemory,
    Flushed,
    Compacted,
    WrittenOn,
}

/// Whether the answers agree.
///
/// Raw reads between a flush and a compaction show what is stored: HBase has dropped what nobody can read, and the embedded
/// store has not. Then HBase's cells are among the embedded store's, and the newest is the same. So they are where a raw read has
/// a filter, whose answer HBase cuts by a count of versions that markers are part of.
///
/// Rows with keys shorter than a fuzzy pattern may come or not.
pub fn agree(embedded: &[Row], hbase: &[Row], spec: &ReadSpec, stage: Stage) -> bool {
    let shortest = spec.filter.as_ref().map_or(0, longest_pattern);
    let (embedded, hbase) = (plain(embedded, shortest), plain(hbase, shortest));
    if !spec.raw || (stage != Stage::Flushed && spec.filter.is_none()) {
        return embedded == hbase;
    }
    let newest = |rows: &[Row]| rows.iter().map(|r| (r.key.clone(), r.newest_timestamp())).collect::<Vec<_>>();
    let among = |row: &Row| {
        let mut cells = embedded.iter().filter(|r| r.key == row.key).flat_map(|r| &r.cells);
        row.cells.iter().all(|cell| cells.any(|c| c == cell))
    };
    newest(&embedded) == newest(&hbase) && hbase.iter().all(among)
}

/// The rows that must come, with the newest of each counter only, its timestamp left out: the clock gives it, and two increments of one
/// millisecond are one cell or two.
fn plain(rows: &[Row], shortest: usize) -> Vec<Row> {
    let counter = |c: &Cell| c.qualifier == COUNTER && c.kind == CellKind::Put;
    let plain = |row: &Row| {
        let mut cells: Vec<Cell> = Vec::new();
        for cell in &row.cells {
            let again = |before: &Cell| counter(before) && before.family == cell.family;
            if !counter(cell) {
                cells.push(cell.clone());
            } else if !cells.iter().any(again) {
                cells.push(Cell { timestamp: 0, ..cell.clone() });
            }
        }
        Row { key: row.key.clone(), cells }
    };
    rows.iter().filter(|row| row.key.len() >= shortest).map(plain).collect()
}

/// The length of a filter's longest fuzzy pattern; 0 if there is none.
pub fn longest_pattern(filter: &Filter) -> usize {
    match filter {
        Filter::Fuzzy(keys) => keys.iter().map(|k| k.pattern().len()).max().unwrap_or(0),
        Filter::All(list) | Filter::Any(list) => list.iter().map(longest_pattern).max().unwrap_or(0),
        _ => 0,
    }
}
