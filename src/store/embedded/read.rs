//! Reading as of one moment.

use super::cells::read_row;
use super::plan::Plan;
use super::row::RowBuilder;
use super::scan::PageScanner;
use super::tables::{Table, TableMap};
use super::{Shared, key};
use crate::error::Result;
use crate::model::Row;
use crate::store::{Read, ReadSpec, Scan, Scanner};
use async_trait::async_trait;
use bytes::Bytes;
use fjall::Snapshot;
use std::sync::Arc;

/// All tables as they were at one moment. Keeps the store open, and fjall from dropping what it can see.
pub(super) struct View {
    snapshot: Snapshot,
    tables: Arc<TableMap>,
    shared: Arc<Shared>,
}

impl View {
    /// The tables as they are now.
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let tables = shared.tables.current();
        Self { snapshot: shared.moments.now(), tables, shared }
    }

    fn table(&self, name: &str) -> Result<&Arc<Table>> {
        super::tables::find(&self.tables, name)
    }
}

#[async_trait]
impl Read for View {
    async fn get(&self, table: &str, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>> {
        let table = self.table(table)?;
        let mut builder = RowBuilder::new(Plan::new(table, spec)?);
        let mut rows = Vec::with_capacity(keys.len());
        for row in keys {
            if key::check_row(row).is_err() {
                rows.push(Row { key: row.clone(), cells: Vec::new() });
                continue;
            }
            rows.push(read_row(&self.snapshot, &table.keyspace, row, &mut builder)?);
        }
        Ok(rows)
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        let table = self.table(table)?;
        let plan = Plan::new(table, &scan.spec)?;
        let scanner =
            PageScanner::new(Arc::clone(&self.shared), self.snapshot.clone(), table.keyspace.clone(), &scan, plan)?;
        Ok(Box::new(scanner))
    }
}
