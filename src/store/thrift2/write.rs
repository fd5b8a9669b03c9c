//! From mutations to calls.

use super::gateway::{TColumn, TColumnValue, TDelete, TDeleteType, TDurability, TMutation, TPut, TRowMutations};
use crate::model::{Cell, CellKind, RowMutation};
use crate::store::thrift::{Batch, waves};
use std::collections::{HashMap, HashSet};

/// One call to the gateway.
#[derive(Debug, PartialEq)]
pub(super) enum Call {
    /// `putMultiple`.
    Puts(Vec<TPut>),
    /// `deleteMultiple`.
    Deletes(Vec<TDelete>),
    /// `mutateRow`: puts and markers of one row that become visible together.
    Row(TRowMutations),
}

/// The calls that apply mutations, in [`waves`].
pub(super) fn calls(mutations: Vec<RowMutation>) -> Vec<Vec<Call>> {
    let calls = |mutations: Vec<RowMutation>| {
        let mut wave = Wave::default();
        mutations.into_iter().for_each(|mutation| wave.add(mutation));
        wave.finish()
    };
    waves(mutations).into_iter().map(calls).collect()
}

#[derive(Default)]
struct Wave {
    done: Vec<Call>,
    puts: Batch<TPut>,
    /// By their kind; [`CellKind`]s other than puts.
    deletes: HashMap<CellKind, Batch<TDelete>>,
}

impl Wave {
    fn add(&mut self, mutation: RowMutation) {
        let bytes = mutation.cells.iter().map(|c| c.size(&mutation.row)).sum();
        let kinds: HashSet<CellKind> = mutation.cells.iter().map(|c| c.kind).collect();
        let only =
            kinds.iter().next().copied().filter(|kind| kinds.len() == 1 && fits_one_delete(*kind, &mutation.cells));
        let full = match only {
            Some(CellKind::Put) => self.puts.add(put(&mutation.row, &mutation.cells), bytes).map(Call::Puts),
            Some(kind) => {
                let batch = self.deletes.entry(kind).or_default();
                batch.add(delete(&mutation.row, kind, &mutation.cells), bytes).map(Call::Deletes)
            }
            None => Some(Call::Row(row_mutations(&mutation))),
        };
        self.done.extend(full);
    }

    fn finish(mut self) -> Vec<Call> {
        if !self.puts.items.is_empty() {
            self.done.push(Call::Puts(self.puts.items));
        }
        let rest = self.deletes.into_values().map(|b| Call::Deletes(b.items));
        self.done.extend(rest);
        self.done
    }
}

/// Whether the server takes these cells of one kind as one delete: a delete holds one marker on a whole family, and forgets the
/// one before where it is given another (`Delete.addFamily` of HBase's client).
fn fits_one_delete(kind: CellKind, cells: &[Cell]) -> bool {
    let mut families = HashSet::new();
    kind != CellKind::DeleteFamily || cells.iter().all(|c| families.insert(&c.family))
}

/// The puts and markers of one row as one atomic mutation.
pub(super) fn row_mutations(mutation: &RowMutation) -> TRowMutations {
    let mut kinds: Vec<CellKind> = mutation.cells.iter().map(|c| c.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let parts = kinds.into_iter().flat_map(|kind| {
        let cells: Vec<Cell> = mutation.cells.iter().filter(|c| c.kind == kind).cloned().collect();
        let at_once = if fits_one_delete(kind, &cells) { cells.len() } else { 1 };
        let part = |cells: &[Cell]| match kind {
            CellKind::Put => TMutation::Put(put(&mutation.row, cells)),
            kind => TMutation::DeleteSingle(delete(&mutation.row, kind, cells)),
        };
        cells.chunks(at_once).map(part).collect::<Vec<_>>()
    });
    TRowMutations::new(mutation.row.to_vec(), parts.collect())
}

fn put(row: &[u8], cells: &[Cell]) -> TPut {
    let value = |c: &Cell| {
        TColumnValue::new(c.family.to_vec(), c.qualifier.to_vec(), c.value.to_vec(), c.timestamp, None, None)
    };
    TPut::new(row.to_vec(), cells.iter().map(value).collect(), None, None, TDurability::USE_DEFAULT)
}

/// A delete of cells of one kind.
fn delete(row: &[u8], kind: CellKind, cells: &[Cell]) -> TDelete {
    let column = |c: &Cell| {
        let qualifier = (!kind.is_family_wide()).then(|| c.qualifier.to_vec());
        TColumn::new(c.family.to_vec(), qualifier, c.timestamp)
    };
    let delete_type = match kind {
        CellKind::DeleteVersion => TDeleteType::DELETE_COLUMN,
        CellKind::DeleteFamily => TDeleteType::DELETE_FAMILY,
        CellKind::DeleteFamilyVersion => TDeleteType::DELETE_FAMILY_VERSION,
        CellKind::DeleteColumn | CellKind::Put => TDeleteType::DELETE_COLUMNS,
    };
    let columns: Vec<TColumn> = cells.iter().map(column).collect();
    TDelete::new(row.to_vec(), columns, None, delete_type, None, TDurability::USE_DEFAULT)
}
