//! The two stores, and histories run on both.

use crate::cluster;
use crate::history::{Call, History, Part};
use crate::random::{descriptor, read_all};
use crate::reads::{Stage, agree};
use futures::stream::{self, StreamExt, TryStreamExt};
use sideindex::error::{ErrorKind, Result};
use sideindex::model::{Cell, CellKind, Row, RowMutation};
use sideindex::store::embedded::{DurabilityMode, EmbeddedStore, Options};
use sideindex::store::thrift2::Thrift2Store;
use sideindex::store::{Durability, Gateway, Layered, Read, ReadSpec, Retry, Store};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Histories under way at once.
const AT_ONCE: usize = 8;

/// A table in both stores.
pub struct World {
    table: String,
    embedded: EmbeddedStore,
    hbase: Arc<dyn Store>,
    /// Markers of this kind don't reach the embedded store.
    forgotten: Option<CellKind>,
    compared: AtomicU64,
    _directory: tempfile::TempDir,
}

/// What a call gave: a flag, a sum, or the kind of an error.
type Outcome = std::result::Result<Option<i64>, ErrorKind>;

impl World {
    pub async fn open() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let table = format!("differential_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::tempdir().unwrap();
        let options = Options { durability: DurabilityMode::Os, ..Options::default() };
        let embedded = EmbeddedStore::open(directory.path(), options).unwrap();
        let gateway = Gateway::new(cluster::address("THRIFT2"));
        let hbase = Layered::new(Arc::new(Thrift2Store::connect(vec![gateway]).await.unwrap()), Retry::default());
        let descriptor = descriptor(table.clone());
        embedded.create_table(&descriptor).await.unwrap();
        hbase.create_table(&descriptor).await.unwrap();
        let hbase: Arc<dyn Store> = Arc::new(hbase);
        Self { table, embedded, hbase, forgotten: None, compared: AtomicU64::new(0), _directory: directory }
    }

    pub fn forgetting(self, kind: CellKind) -> Self {
        Self { forgotten: Some(kind), ..self }
    }

    /// Runs histories through all stages; how many reads were compared, or the first difference.
    pub async fn run(self, seeds: Range<u64>) -> std::result::Result<u64, String> {
        let histories: Vec<History> = seeds.map(History::of_seed).collect();
        let result = self.stages(&histories).await;
        cluster::ask(&format!("drop {}", self.table));
        result.map(|()| self.compared.into_inner())
    }

    async fn stages(&self, histories: &[History]) -> std::result::Result<(), String> {
        self.each(histories, Stage::InMemory, |h| (Some(&h.parts[0]), &h.parts[0])).await?;
        cluster::ask(&format!("flush {}", self.table));
        self.each(histories, Stage::Flushed, |h| (None, &h.parts[0])).await?;
        self.each(histories, Stage::Flushed, |h| (Some(&h.parts[1]), &h.parts[1])).await?;
        cluster::ask(&format!("compact {}", self.table));
        self.embedded.compact(Some(&self.table)).await.unwrap();
        self.each(histories, Stage::Compacted, |h| (None, &h.parts[1])).await?;
        self.each(histories, Stage::WrittenOn, |h| (Some(&h.parts[2]), &h.parts[2])).await
    }

    async fn each(
        &self,
        histories: &[History],
        stage: Stage,
        choose: impl Fn(&History) -> (Option<&Part>, &Part),
    ) -> std::result::Result<(), String> {
        let one = |history| {
            let (written, read) = choose(history);
            async move {
                let parts = match written {
                    Some(part) => self.write(part).await,
                    None => Ok(()),
                };
                let done = match parts {
                    Ok(()) => self.read(history, read, stage).await,
                    failed => failed,
                };
                done.map_err(|what| format!("SIDEINDEX_SEED={}, {stage:?}: {what}\n{history:#?}", history.seed))
            }
        };
        stream::iter(histories.iter().map(one)).buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn write(&self, part: &Part) -> std::result::Result<(), String> {
        for call in &part.calls {
            let here = self.call(&self.embedded, call, self.forgotten).await;
            let there = self.call(&*self.hbase, call, None).await;
            if here != there {
                return Err(format!("{call:?}\nembedded: {here:?}\nHBase: {there:?}"));
            }
        }
        Ok(())
    }

    async fn call(&self, store: &dyn Store, call: &Call, forgotten: Option<CellKind>) -> Outcome {
        let without = |m: &RowMutation| RowMutation {
            row: m.row.clone(),
            cells: m.cells.iter().filter(|c| Some(c.kind) != forgotten).cloned().collect(),
        };
        let done: Result<Option<i64>> = match call {
            Call::Write(mutations) => {
                let mutations = mutations.iter().map(without).collect();
                store.mutate(&self.table, mutations, Durability::Durable).await.map(|()| None)
            }
            Call::Increment { row, family, qualifier, amount } => {
                store.increment(&self.table, row, family, qualifier, *amount).await.map(Some)
            }
            Call::Check(check, mutation) => {
                store.check_and_mutate(&self.table, check, without(mutation)).await.map(|held| Some(held.into()))
            }
        };
        done.map_err(|e| e.kind())
    }

    async fn read(&self, history: &History, part: &Part, stage: Stage) -> std::result::Result<(), String> {
        let rows = history.rows();
        for spec in &part.gets {
            let here = self.embedded.get(&self.table, &rows, spec).await.map_err(|e| e.kind());
            let there = self.hbase.get(&self.table, &rows, spec).await.map_err(|e| e.kind());
            self.judge(&format!("get with {spec:?}"), here, there, spec, stage)?;
        }
        for scan in &part.scans {
            let here = Ok(read_all(&self.embedded, &self.table, scan.clone()).await);
            let there = Ok(read_all(&*self.hbase, &self.table, scan.clone()).await);
            self.judge(&format!("{scan:?}"), here, there, &scan.spec, stage)?;
        }
        Ok(())
    }

    fn judge(
        &self,
        what: &str,
        here: std::result::Result<Vec<Row>, ErrorKind>,
        there: std::result::Result<Vec<Row>, ErrorKind>,
        spec: &ReadSpec,
        stage: Stage,
    ) -> std::result::Result<(), String> {
        self.compared.fetch_add(1, Ordering::Relaxed);
        match (here, there) {
            (Ok(here), Ok(there)) if agree(&here, &there, spec, stage) => Ok(()),
            (Ok(here), Ok(there)) => {
                Err(format!("{what}\nonly embedded:\n{}only HBase:\n{}", beyond(&here, &there), beyond(&there, &here)))
            }
            (here, there) if here.as_ref().err() == there.as_ref().err() => Ok(()),
            (here, there) => Err(format!("{what}\nembedded: {here:?}\nHBase: {there:?}")),
        }
    }
}

/// The rows of one answer that the other doesn't have in this form, a line each.
fn beyond(rows: &[Row], others: &[Row]) -> String {
    rows.iter().filter(|row| !others.contains(row)).map(line).collect()
}

fn line(row: &Row) -> String {
    let cell = |c: &Cell| {
        let name = format!("{}:{}", c.family.escape_ascii(), c.qualifier.escape_ascii());
        format!(" {name}@{} {:?} {}", c.timestamp, c.kind, c.value.escape_ascii())
    };
    format!("  {}:{}\n", row.key.escape_ascii(), row.cells.iter().map(cell).collect::<Vec<_>>().join(";"))
}
