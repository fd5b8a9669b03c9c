//! HBase through a Thrift 2 gateway.

mod filter;
// Written by Thrift's compiler from proto/hbase2.thrift.
#[allow(missing_docs, dead_code, clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic, unused, unreachable_pub)]
#[rustfmt::skip]
mod gateway;
mod read;
mod table;
mod write;

use self::gateway::{
    TColumnIncrement, TCompareOperator, TDurability, TIOError, TIllegalArgument, TIncrement, TResult, TScan,
    TTHBaseServiceSyncClient, TThriftServerType,
};
use self::table::COMPRESSIONS;
use self::write::Call;
use super::thrift::{
    Connection, Dialect, Gateway, GatewayScanner, Input, Output, Plan, Pool, Table, Tables, check_mutations, connect,
    create_compressed, row_of_each,
};
use super::{Capabilities, ColumnCheck, Durability, Read, ReadSpec, Scan, Scanner, Store, TableDescriptor, rules};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Row, RowMutation};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use std::sync::Arc;

type Client = gateway::THBaseServiceSyncClient<Input, Output>;

/// A get asks for so many rows a call.
const GET_ROWS: usize = 256;

/// HBase through Thrift 2 gateways. Clones are handles to the same connections.
///
/// Calls run on Tokio's blocking threads, so it needs a Tokio runtime. Nothing is tried again here.
#[derive(Clone)]
pub struct Thrift2Store(Arc<Shared>);

struct Shared {
    pool: Pool<Client>,
    tables: Tables,
}

/// How it scans.
struct Thrift2;

impl Dialect for Thrift2 {
    type Client = Client;
    type Scan = TScan;
    type Part = TResult;

    fn scan(plan: &Plan, from: &[u8], to: &[u8], reversed: bool, caching: usize) -> TScan {
        read::scan(plan, from, to, reversed, caching)
    }

    fn first(client: &mut Client, table: Vec<u8>, scan: TScan, parts: i32) -> thrift::Result<Vec<TResult>> {
        client.get_scanner_results(table, scan, parts)
    }

    fn open(client: &mut Client, table: Vec<u8>, scan: TScan) -> thrift::Result<i32> {
        client.open_scanner(table, scan)
    }

    fn next(client: &mut Client, id: i32, parts: i32) -> thrift::Result<Vec<TResult>> {
        client.get_scanner_rows(id, parts)
    }

    fn close(client: &mut Client, id: i32) -> thrift::Result<()> {
        client.close_scanner(id)
    }

    fn row(mut part: TResult) -> Result<Row> {
        let key = Bytes::from(part.row.take().unwrap_or_default());
        Ok(Row { key, cells: read::cells(part)? })
    }
}

impl Thrift2Store {
    /// Checks that there are Thrift 2 gateways, all of one cluster. One that doesn't answer is left out until it does, as
    /// long as another answers.
    ///
    /// # Errors
    /// [`Unreachable`](ErrorKind::Unreachable) when nobody answers, [`Store`](ErrorKind::Store) for an answer that is not in
    /// Thrift's protocol, [`InvalidInput`](ErrorKind::InvalidInput) for a Thrift 1 gateway, and for none at all.
    pub async fn connect(gateways: Vec<Gateway>) -> Result<Self> {
        let pool = Pool::new(gateways, open, declared)?;
        pool.expect_all(
            |client| client.get_thrift_server_type().map(|kind| kind == TThriftServerType::TWO),
            ["Thrift 2", "Thrift 1", "thrift1"],
        )
        .await?;
        Ok(Self(Arc::new(Shared { pool, tables: Tables::default() })))
    }

    async fn table(&self, name: &str) -> Result<Arc<Table>> {
        if let Some(table) = self.0.tables.get(name) {
            return Ok(table);
        }
        let asked = table::table_name(name);
        let described = self.0.pool.call(move |client| client.get_table_descriptor(asked)).await;
        match described {
            Ok(table) => Ok(self.0.tables.learn(table::from_gateway(name, table))),
            // The text for a table that is not there is its name.
            Err(e) => Err(if self.exists(name).await? { e } else { missing(name) }),
        }
    }

    async fn exists(&self, name: &str) -> Result<bool> {
        let asked = table::table_name(name);
        self.0.pool.call(move |client| client.table_exists(asked)).await
    }

    async fn call(&self, table: &str, call: Call) -> Result<()> {
        let table = table.as_bytes().to_vec();
        self.0
            .pool
            .call(move |client| match call {
                Call::Puts(puts) => client.put_multiple(table, puts),
                Call::Deletes(deletes) => client.delete_multiple(table, deletes).map(drop),
                Call::Row(mutations) => client.mutate_row(table, mutations),
            })
            .await
    }

    /// Rows with their markers, one scan each: HBase's gets don't show them.
    async fn raw_rows(&self, table: &Arc<Table>, keys: Vec<Bytes>, plan: &Plan) -> Result<Vec<Row>> {
        let row = |key: Bytes| async move {
            let stop = [&key[..], &[0]].concat();
            // Asking for two tells at once that there is no second.
            let scan = Scan { start: Some(key.clone()), stop: Some(stop.into()), page_rows: 2, ..Scan::all() };
            let mut scanner =
                GatewayScanner::<Thrift2>::new(self.0.pool.clone(), Arc::clone(table), &scan, plan.clone())?;
            let mut row = Row { key, cells: Vec::new() };
            loop {
                let page = scanner.next_page().await?;
                row.cells.extend(page.rows.into_iter().flat_map(|r| r.cells));
                if page.done {
                    return Ok::<Row, Error>(row);
                }
            }
        };
        stream::iter(keys.into_iter().map(row)).buffered(self.0.pool.connections()).try_collect().await
    }

    async fn rows(&self, table: &str, keys: Vec<Bytes>, plan: &Plan) -> Result<Vec<Row>> {
        let calls = keys.chunks(GET_ROWS).map(|keys| {
            let gets = keys.iter().map(|key| read::get(plan, key)).collect();
            let name = table.as_bytes().to_vec();
            async move {
                let results = self.0.pool.call(move |client| client.get_multiple(name, gets)).await?;
                if results.len() != keys.len() {
                    let found = format!("expected {} rows from the gateway, found {}", keys.len(), results.len());
                    return Err(Error::corrupt(found));
                }
                let row = |(key, result): (&Bytes, _)| {
                    let mut row = Row { key: key.clone(), cells: read::cells(result)? };
                    let mut plan = plan.clone();
                    plan.finish(&mut row);
                    Ok(row)
                };
                keys.iter().zip(results).map(row).collect::<Result<Vec<Row>>>()
            }
        });
        Ok(try_join_all(calls).await?.into_iter().flatten().collect())
    }
}

fn open(gateway: &Gateway) -> Result<Connection<Client>> {
    let (input, output, socket) = connect(gateway)?;
    Ok(Connection { client: Client::new(input, output), socket })
}

fn declared(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let io = error.downcast_ref::<TIOError>().and_then(|e| e.message.clone());
    io.or_else(|| error.downcast_ref::<TIllegalArgument>().and_then(|e| e.message.clone()))
}

fn missing(table: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("table {table} does not exist"))
}

#[async_trait]
impl Read for Thrift2Store {
    async fn get(&self, table: &str, keys: &[Bytes], spec: &ReadSpec) -> Result<Vec<Row>> {
        let known = self.table(table).await?;
        let plan = Plan::new(&known.descriptor, spec, |_| true, false)?;
        let possible = plan.possible(keys);
        let read = async {
            match plan.raw {
                true => self.raw_rows(&known, possible, &plan).await,
                false => self.rows(table, possible, &plan).await,
            }
        };
        Ok(row_of_each(keys, self.0.tables.forgetting(table, read.await)?))
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        let table = self.table(table).await?;
        let plan = Plan::new(&table.descriptor, &scan.spec, |_| true, scan.reversed)?;
        Ok(Box::new(GatewayScanner::<Thrift2>::new(self.0.pool.clone(), table, &scan, plan)?))
    }
}

#[async_trait]
impl Store for Thrift2Store {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshots: false,
            raw_reads: true,
            atomic_put_and_delete: true,
            version_markers: true,
            versions_in_scans: true,
            reverse_scans: true,
            atomic_updates: true,
            timed_checks: true,
            change_logs: false,
            regions: true,
        }
    }

    fn row_key_fits(&self, key: &[u8]) -> bool {
        rules::check_row_key(key).is_ok()
    }

    async fn create_table(&self, table: &TableDescriptor) -> Result<()> {
        rules::check_descriptor(table)?;
        if self.exists(&table.name).await? {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("table {} exists already", table.name)));
        }
        create_compressed(table, &COMPRESSIONS, |compression| async move {
            let described = table::to_gateway(table, compression)?;
            let splits = table.splits.iter().map(|key| key.to_vec()).collect();
            self.0.pool.call(move |client| client.create_table(described, splits)).await
        })
        .await
    }

    async fn list_tables(&self) -> Result<Vec<String>> {
        let tables = self.0.pool.call(|client| client.get_table_names_by_pattern(".*".to_owned(), false)).await?;
        let mut names: Vec<String> = tables.iter().map(table::name_of).collect();
        names.sort();
        Ok(names)
    }

    async fn describe_table(&self, table: &str) -> Result<TableDescriptor> {
        self.0.tables.forget(table);
        Ok(self.table(table).await?.descriptor.clone())
    }

    async fn mutate(&self, table: &str, mutations: Vec<RowMutation>, _durability: Durability) -> Result<()> {
        let described = self.table(table).await?;
        self.0.tables.forgetting(table, check_mutations(&described.descriptor, &mutations))?;
        for wave in write::calls(mutations) {
            let written = try_join_all(wave.into_iter().map(|call| self.call(table, call))).await;
            self.0.tables.forgetting(table, written)?;
        }
        Ok(())
    }

    async fn increment(&self, table: &str, row: &Bytes, family: &Bytes, qualifier: &Bytes, amount: i64) -> Result<i64> {
        rules::check_row_key(row)?;
        rules::check_family(&self.table(table).await?.descriptor, family)?;
        let column = TColumnIncrement::new(family.to_vec(), qualifier.to_vec(), amount);
        let increment = TIncrement::new(row.to_vec(), vec![column], None, TDurability::USE_DEFAULT, true);
        let name = table.as_bytes().to_vec();
        let result = self.0.pool.call(move |client| client.increment(name, increment)).await;
        let sum = self.0.tables.forgetting(table, result)?.column_values.pop().map(|c| c.value);
        let sum: Option<[u8; 8]> = sum.and_then(|value| value.try_into().ok());
        sum.map(i64::from_be_bytes)
            .ok_or_else(|| Error::corrupt("expected a sum of 8 bytes from the gateway, found none"))
    }

    async fn check_and_mutate(&self, table: &str, check: &ColumnCheck, mutation: RowMutation) -> Result<bool> {
        let described = self.table(table).await?;
        rules::check_update(&described.descriptor, check, &mutation).map_err(|e| e.within(format!("table {table}")))?;
        check_mutations(&described.descriptor, std::slice::from_ref(&mutation))?;
        let mutations = write::row_mutations(&mutation);
        let name = table.as_bytes().to_vec();
        let (row, family, qualifier) = (mutation.row.to_vec(), check.family.to_vec(), check.qualifier.to_vec());
        // No value: HBase takes an empty one for it.
        let expected = check.expected.clone().unwrap_or_default().to_vec();
        let result = self.0.pool.call(move |client| {
            client.check_and_mutate(name, row, family, qualifier, TCompareOperator::EQUAL, expected, mutations)
        });
        self.0.tables.forgetting(table, result.await)
    }

    async fn split_points(&self, table: &str, parts: usize) -> Result<Vec<Bytes>> {
        self.table(table).await?;
        let name = table.as_bytes().to_vec();
        let regions = self.0.pool.call(move |client| client.get_all_region_locations(name)).await?;
        Ok(super::thrift::split_points(regions.into_iter().filter_map(|r| r.region_info.start_key), parts))
    }

    async fn sync(&self) -> Result<()> {
        Ok(())
    }

    async fn snapshot(&self) -> Result<Arc<dyn Read>> {
        Err(Error::new(ErrorKind::Unsupported, "a Thrift gateway has no snapshots to read from"))
    }
}
