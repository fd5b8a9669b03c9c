//! HBase through a Thrift 1 gateway, on the stubs of the crate `hbase-thrift`.
//!
//! What Thrift 1 has no call for is a missing capability: see [`Capabilities`].

mod filter;
mod read;
mod write;

use self::read::Thrift1;
use super::thrift::{
    Connection, Dialect, Gateway, GatewayScanner, Input, Output, Plan, Pool, Table, Tables, connect, create_compressed,
    row_of_each,
};
use super::{
    Capabilities, ColumnCheck, Durability, FamilyDescriptor, Layout, Read, ReadSpec, Scan, Scanner, Store,
    TableDescriptor, rules,
};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{CellKind, Row, RowMutation};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use hbase_thrift::hbase::{
    AlreadyExists, ColumnDescriptor, HbaseSyncClient, IOError, IllegalArgument, THbaseSyncClient, TThriftServerType,
};
use std::collections::BTreeMap;
use std::sync::Arc;

type Client = HbaseSyncClient<Input, Output>;

/// A get asks for so many rows a call.
const GET_ROWS: usize = 256;
/// Compressions for sideindex's own tables, the best first; not every cluster has all.
const COMPRESSIONS: [&str; 5] = ["ZSTD", "SNAPPY", "LZ4", "GZ", "NONE"];

/// HBase through Thrift 1 gateways. Clones are handles to the same connections.
///
/// Calls run on Tokio's blocking threads, so it needs a Tokio runtime. Nothing is tried again here.
#[derive(Clone)]
pub struct Thrift1Store(Arc<Shared>);

struct Shared {
    pool: Pool<Client>,
    tables: Tables,
}

impl Thrift1Store {
    /// Checks that there are Thrift 1 gateways, all of one cluster. One that doesn't answer is left out until it does, as
    /// long as another answers.
    ///
    /// # Errors
    /// [`Unreachable`](ErrorKind::Unreachable) when nobody answers, [`Store`](ErrorKind::Store) for an answer that is not in
    /// Thrift's protocol, [`InvalidInput`](ErrorKind::InvalidInput) for a Thrift 2 gateway, and for none at all.
    pub async fn connect(gateways: Vec<Gateway>) -> Result<Self> {
        let pool = Pool::new(gateways, open, declared)?;
        pool.expect_all(
            |client| client.get_thrift_server_type().map(|kind| kind == TThriftServerType::ONE),
            ["Thrift 1", "Thrift 2", "thrift2"],
        )
        .await?;
        Ok(Self(Arc::new(Shared { pool, tables: Tables::default() })))
    }

    async fn table(&self, name: &str) -> Result<Arc<Table>> {
        if let Some(table) = self.0.tables.get(name) {
            return Ok(table);
        }
        // It describes a table that is not there with no columns.
        if !self.list_tables().await?.iter().any(|t| t == name) {
            return Err(Error::new(ErrorKind::NotFound, format!("table {name} does not exist")));
        }
        let asked = name.as_bytes().to_vec();
        let columns = self.0.pool.call(move |client| client.get_column_descriptors(asked)).await?;
        let family = |(column, f): (Vec<u8>, ColumnDescriptor)| FamilyDescriptor {
            name: String::from_utf8_lossy(column.strip_suffix(b":").unwrap_or(&column)).into_owned(),
            max_versions: f.max_versions.and_then(|v| u32::try_from(v).ok()).unwrap_or(1),
            layout: Layout::Base,
        };
        let families = columns.into_iter().map(family).collect();
        Ok(self.0.tables.learn(TableDescriptor {
            name: name.to_owned(),
            families,
            change_log: false,
            splits: Vec::new(),
        }))
    }

    /// The newest version of each column.
    async fn rows(&self, table: &str, keys: &[Bytes], plan: &Plan) -> Result<Vec<Row>> {
        let calls = keys.chunks(GET_ROWS).map(|keys| {
            let (name, columns) = (table.as_bytes().to_vec(), read::columns(plan));
            let asked: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
            self.0.pool.call(move |client| match columns {
                Some(columns) => client.get_rows_with_columns(name, asked, columns, BTreeMap::new()),
                None => client.get_rows(name, asked, BTreeMap::new()),
            })
        });
        // Rows without cells are left out.
        try_join_all(calls).await?.into_iter().flatten().map(Thrift1::row).collect()
    }

    /// The same with all versions that are asked for: a call for each column.
    async fn with_versions(&self, table: &Table, rows: Vec<Row>, versions: i32) -> Result<Vec<Row>> {
        let families = &table.descriptor.families;
        let kept = |name: &[u8]| families.iter().find(|f| f.name.as_bytes() == name).map_or(1, |f| f.max_versions);
        let more = |row: Row| async move {
            let mut cells = Vec::with_capacity(row.cells.len());
            for cell in row.cells {
                if kept(&cell.family) <= 1 {
                    cells.push(cell);
                    continue;
                }
                let (name, key) = (table.descriptor.name.clone().into_bytes(), row.key.to_vec());
                let column = write::column(&cell.family, &cell.qualifier);
                let asked = column.clone();
                let call = move |client: &mut Client| client.get_ver(name, key, asked, versions, BTreeMap::new());
                for version in self.0.pool.call(call).await? {
                    cells.push(read::cell(&column, version)?);
                }
            }
            Ok::<Row, Error>(Row { key: row.key, cells })
        };
        stream::iter(rows.into_iter().map(more)).buffered(self.0.pool.connections()).try_collect().await
    }
}

fn open(gateway: &Gateway) -> Result<Connection<Client>> {
    let (input, output, socket) = connect(gateway)?;
    Ok(Connection { client: Client::new(input, output), socket })
}

fn declared(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let io = error.downcast_ref::<IOError>().and_then(|e| e.message.clone());
    let argument = || error.downcast_ref::<IllegalArgument>().and_then(|e| e.message.clone());
    let exists = || error.downcast_ref::<AlreadyExists>().map(|e| format!("TableExistsException: {:?}", e.message));
    io.or_else(argument).or_else(exists)
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("a Thrift 1 gateway has no call for {what}; use the store thrift2"))
}

#[async_trait]
impl Read for Thrift1Store {
    async fn get(&self, table: &str, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>> {
        let known = self.table(table).await?;
        let plan = Plan::new(&known.descriptor, spec, |_| false, false)?;
        if plan.raw {
            return Err(unsupported("reads that show markers"));
        }
        let possible = plan.possible(keys);
        let read = async {
            let rows = self.rows(table, &possible, &plan).await?;
            if plan.max_versions == 1 { Ok(rows) } else { self.with_versions(&known, rows, plan.max_versions).await }
        };
        let mut rows = row_of_each(keys, self.0.tables.forgetting(table, read.await)?);
        rows.iter_mut().for_each(|row| plan.clone().finish(row));
        Ok(rows)
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        let table = self.table(table).await?;
        let plan = Plan::new(&table.descriptor, &scan.spec, filter::can_be_told, scan.reversed)?;
        if plan.raw {
            return Err(unsupported("reads that show markers"));
        }
        if plan.max_versions > 1 && table.descriptor.families.iter().any(|f| f.max_versions > 1) {
            return Err(unsupported("scans of several versions"));
        }
        Ok(Box::new(GatewayScanner::<Thrift1>::new(self.0.pool.clone(), table, &scan, plan)?))
    }
}

#[async_trait]
impl Store for Thrift1Store {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshots: false,
            raw_reads: false,
            atomic_put_and_delete: false,
            version_markers: false,
            versions_in_scans: false,
            reverse_scans: true,
            atomic_updates: true,
            timed_checks: false,
            change_logs: false,
            regions: true,
        }
    }

    fn row_key_fits(&self, key: &[u8]) -> bool {
        rules::check_row_key(key).is_ok()
    }

    /// Creates a table. The gateway has no splits: a table begins as one region.
    async fn create_table(&self, table: &TableDescriptor) -> Result<()> {
        rules::check_descriptor(table)?;
        if self.list_tables().await?.contains(&table.name) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("table {} exists already", table.name)));
        }
        if !table.splits.is_empty() {
            tracing::warn!(
                "table {} begins as one region instead of {}: Thrift 1 gateways cannot create splits; create it in HBase's shell \
                 beforehand, or split it there",
                table.name,
                table.splits.len() + 1
            );
        }
        create_compressed(table, &COMPRESSIONS, |compression| async move {
            let families = table.families.iter().map(|f| described(f, compression)).collect::<Result<Vec<_>>>()?;
            let name = table.name.clone().into_bytes();
            self.0.pool.call(move |client| client.create_table(name, families)).await
        })
        .await
    }

    async fn list_tables(&self) -> Result<Vec<String>> {
        let tables = self.0.pool.call(|client| client.get_table_names()).await?;
        let mut names: Vec<String> = tables.iter().map(|t| String::from_utf8_lossy(t).into_owned()).collect();
        names.sort();
        Ok(names)
    }

    async fn describe_table(&self, table: &str) -> Result<TableDescriptor> {
        self.0.tables.forget(table);
        Ok(self.table(table).await?.descriptor.clone())
    }

    async fn mutate(&self, table: &str, mutations: Vec<RowMutation>, _durability: Durability) -> Result<()> {
        let described = self.table(table).await?;
        self.0.tables.forgetting(table, write::check(&described.descriptor, &mutations))?;
        for wave in write::calls(mutations) {
            let call = |call: write::Call| {
                let name = table.as_bytes().to_vec();
                self.0.pool.call(move |client| client.mutate_rows_ts(name, call.rows, call.timestamp, BTreeMap::new()))
            };
            let written = try_join_all(wave.into_iter().map(call)).await;
            self.0.tables.forgetting(table, written)?;
        }
        Ok(())
    }

    async fn increment(&self, table: &str, row: &Bytes, family: &Bytes, qualifier: &Bytes, amount: i64) -> Result<i64> {
        rules::check_row_key(row)?;
        rules::check_family(&self.table(table).await?.descriptor, family)?;
        let (name, key, column) = (table.as_bytes().to_vec(), row.to_vec(), write::column(family, qualifier));
        let result = self.0.pool.call(move |client| client.atomic_increment(name, key, column, amount)).await;
        self.0.tables.forgetting(table, result)
    }

    async fn check_and_mutate(&self, table: &str, check: &ColumnCheck, mutation: RowMutation) -> Result<bool> {
        let described = self.table(table).await?;
        rules::check_update(&described.descriptor, check, &mutation).map_err(|e| e.within(format!("table {table}")))?;
        write::check(&described.descriptor, std::slice::from_ref(&mutation))?;
        let [cell] = &mutation.cells[..] else { return Err(unsupported("checked writes of several cells")) };
        if cell.kind != CellKind::Put {
            return Err(unsupported("checked deletes"));
        }
        let (name, row, put) = (table.as_bytes().to_vec(), mutation.row.to_vec(), write::one(cell));
        let column = write::column(&check.family, &check.qualifier);
        // No value: HBase takes an empty one for it.
        let expected = check.expected.clone().unwrap_or_default().to_vec();
        let call = move |client: &mut Client| client.check_and_put(name, row, column, expected, put, BTreeMap::new());
        self.0.tables.forgetting(table, self.0.pool.call(call).await)
    }

    async fn split_points(&self, table: &str, parts: usize) -> Result<Vec<Bytes>> {
        self.table(table).await?;
        let name = table.as_bytes().to_vec();
        let regions = self.0.pool.call(move |client| client.get_table_regions(name)).await?;
        Ok(super::thrift::split_points(regions.into_iter().filter_map(|r| r.start_key), parts))
    }

    async fn sync(&self) -> Result<()> {
        Ok(())
    }

    async fn snapshot(&self) -> Result<Arc<dyn Read>> {
        Err(Error::new(ErrorKind::Unsupported, "a Thrift gateway has no snapshots to read from"))
    }
}

fn described(family: &FamilyDescriptor, compression: &str) -> Result<ColumnDescriptor> {
    let versions = i32::try_from(family.max_versions).map_err(|_| {
        Error::invalid(format!("expected at most {} versions, found {}", i32::MAX, family.max_versions))
    })?;
    let (bloom, compression) = match family.layout {
        Layout::Base => ("ROW", "NONE"),
        Layout::Entries => ("NONE", compression),
        Layout::States => ("ROW", compression),
    };
    let name = [family.name.as_bytes(), b":"].concat();
    Ok(ColumnDescriptor::new(name, versions, compression.to_owned(), None, bloom.to_owned(), None, None, true, None))
}
