//! HBase through a Thrift 2 gateway.

mod filter;
// Written by Thrift's compiler from proto/hbase2.thrift.
#[allow(missing_docs, dead_code, clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic, unused, unreachable_pub)]
#[rustfmt::skip]
mod gateway;
mod read;
mod scan;
mod table;
mod write;

use self::gateway::{
    TColumnIncrement, TCompareOperator, TDurability, TIOError, TIllegalArgument, TIncrement, TTHBaseServiceSyncClient,
    TThriftServerType,
};
use self::read::Plan;
use self::scan::GatewayScanner;
use self::table::COMPRESSIONS;
use self::write::Call;
use super::thrift::{Connection, Gateway, Input, Output, Place, Pool, connect};
use super::{
    Capabilities, ColumnCheck, Durability, Layout, Read, ReadSpec, Scan, Scanner, Store, TableDescriptor, rules,
};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Row, RowMutation};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// What was asked of the gateway before. A table that is dropped and made anew differently is asked for again after the
    /// first call that fails for it.
    tables: Mutex<HashMap<String, Arc<Table>>>,
}

/// What is known of a table.
struct Table {
    descriptor: TableDescriptor,
    /// How large a row of the last scan was, in bytes; 0 before the first.
    row_bytes: AtomicUsize,
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
        let (mut answered, mut unreachable) = (false, None);
        for (place, gateway) in pool.gateways() {
            match pool.call_at(place, |client| client.get_thrift_server_type()).await {
                Ok(TThriftServerType::TWO) => answered = true,
                Ok(_) => {
                    return Err(Error::invalid(format!(
                        "expected a Thrift 2 gateway at {}, found one of Thrift 1; choose the store thrift1, or start \
                         `hbase thrift2`",
                        gateway.address
                    )));
                }
                Err(e) if e.kind() == ErrorKind::Unreachable => unreachable = Some(e),
                Err(e) => return Err(e),
            }
        }
        if let Some(e) = unreachable.filter(|_| !answered) {
            return Err(e);
        }
        Ok(Self(Arc::new(Shared { pool, tables: Mutex::default() })))
    }

    async fn table(&self, name: &str) -> Result<Arc<Table>> {
        if let Some(table) = self.tables().get(name) {
            return Ok(Arc::clone(table));
        }
        let asked = table::table_name(name);
        let described = self.0.pool.call(move |client| client.get_table_descriptor(asked)).await;
        let table = match described {
            Ok(table) => {
                let descriptor = table::from_gateway(name, table);
                Arc::new(Table { descriptor, row_bytes: AtomicUsize::new(0) })
            }
            // The text for a table that is not there is its name.
            Err(e) => return Err(if self.exists(name).await? { e } else { missing(name) }),
        };
        self.tables().insert(name.to_owned(), Arc::clone(&table));
        Ok(table)
    }

    async fn exists(&self, name: &str) -> Result<bool> {
        let asked = table::table_name(name);
        self.0.pool.call(move |client| client.table_exists(asked)).await
    }

    fn tables(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Table>>> {
        self.0.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what is known of a table when a call tells that it is no longer true.
    fn forgetting<T>(&self, table: &str, result: Result<T>) -> Result<T> {
        result.inspect_err(|e| {
            if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) {
                self.tables().remove(table);
            }
        })
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
            let mut scanner = GatewayScanner::new(self.0.pool.clone(), Arc::clone(table), &scan, plan.clone())?;
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
            let gets = keys.iter().map(|key| plan.get(key)).collect();
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
        let plan = Plan::new(&known.descriptor, spec, false)?;
        // There is no row of a key that no row can have.
        let possible: Vec<Bytes> =
            keys.iter().filter(|k| !plan.nothing && rules::check_row_key(k).is_ok()).cloned().collect();
        let read = async {
            match plan.is_raw() {
                true => self.raw_rows(&known, possible, &plan).await,
                false => self.rows(table, possible, &plan).await,
            }
        };
        let mut rows = self.forgetting(table, read.await)?.into_iter().peekable();
        let row = |key: &Bytes| rows.next_if(|r| r.key == *key).unwrap_or(Row { key: key.clone(), cells: Vec::new() });
        Ok(keys.iter().map(row).collect())
    }

    async fn scan(&self, table: &str, scan: Scan) -> Result<Box<dyn Scanner>> {
        let table = self.table(table).await?;
        let plan = Plan::new(&table.descriptor, &scan.spec, scan.reversed)?;
        Ok(Box::new(GatewayScanner::new(self.0.pool.clone(), table, &scan, plan)?))
    }
}

#[async_trait]
impl Store for Thrift2Store {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshots: false,
            raw_reads: true,
            atomic_put_and_delete: true,
            reverse_scans: true,
            atomic_updates: true,
            change_logs: false,
            regions: true,
        }
    }

    fn row_key_fits(&self, key: &[u8]) -> bool {
        rules::check_row_key(key).is_ok()
    }

    async fn create_table(&self, table: &TableDescriptor) -> Result<()> {
        rules::check_descriptor(table)?;
        let own = table.families.iter().any(|f| f.layout != Layout::Base);
        let compressions = if own { &COMPRESSIONS[..] } else { &COMPRESSIONS[COMPRESSIONS.len() - 1..] };
        if self.exists(&table.name).await? {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("table {} exists already", table.name)));
        }
        let mut refused = None;
        for compression in compressions {
            let described = table::to_gateway(table, *compression)?;
            let splits = table.splits.iter().map(|key| key.to_vec()).collect();
            match self.0.pool.call(move |client| client.create_table(described, splits)).await {
                // A table is refused when a region server could not open its regions.
                Err(e) if e.to_string().contains("sanity.checks") => refused = Some(e),
                done => return done,
            }
        }
        refused.map_or(Ok(()), Err)
    }

    async fn list_tables(&self) -> Result<Vec<String>> {
        let tables = self.0.pool.call(|client| client.get_table_names_by_pattern(".*".to_owned(), false)).await?;
        let mut names: Vec<String> = tables.iter().map(table::name_of).collect();
        names.sort();
        Ok(names)
    }

    async fn describe_table(&self, table: &str) -> Result<TableDescriptor> {
        self.tables().remove(table);
        Ok(self.table(table).await?.descriptor.clone())
    }

    async fn mutate(&self, table: &str, mutations: Vec<RowMutation>, _durability: Durability) -> Result<()> {
        let described = self.table(table).await?;
        self.forgetting(table, write::check(&described.descriptor, &mutations))?;
        for wave in write::calls(mutations) {
            let written = try_join_all(wave.into_iter().map(|call| self.call(table, call))).await;
            self.forgetting(table, written)?;
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
        let sum = self.forgetting(table, result)?.column_values.pop().map(|c| c.value);
        let sum: Option<[u8; 8]> = sum.and_then(|value| value.try_into().ok());
        sum.map(i64::from_be_bytes)
            .ok_or_else(|| Error::corrupt("expected a sum of 8 bytes from the gateway, found none"))
    }

    async fn check_and_mutate(&self, table: &str, check: &ColumnCheck, mutation: RowMutation) -> Result<bool> {
        let described = self.table(table).await?;
        rules::check_update(&described.descriptor, check, &mutation).map_err(|e| e.within(format!("table {table}")))?;
        write::check(&described.descriptor, std::slice::from_ref(&mutation))?;
        let mutations = write::row_mutations(&mutation);
        let name = table.as_bytes().to_vec();
        let (row, family, qualifier) = (mutation.row.to_vec(), check.family.to_vec(), check.qualifier.to_vec());
        // No value: HBase takes an empty one for it.
        let expected = check.expected.clone().unwrap_or_default().to_vec();
        let result = self.0.pool.call(move |client| {
            client.check_and_mutate(name, row, family, qualifier, TCompareOperator::EQUAL, expected, mutations)
        });
        self.forgetting(table, result.await)
    }

    async fn split_points(&self, table: &str, parts: usize) -> Result<Vec<Bytes>> {
        self.table(table).await?;
        let name = table.as_bytes().to_vec();
        let regions = self.0.pool.call(move |client| client.get_all_region_locations(name)).await?;
        let mut starts: Vec<Bytes> = regions
            .into_iter()
            .filter_map(|r| r.region_info.start_key)
            .filter(|k| !k.is_empty())
            .map(Bytes::from)
            .collect();
        starts.sort();
        starts.dedup();
        // Every so many regions, where there are more of them than parts.
        let step = (starts.len() + 1).div_ceil(parts.max(1));
        Ok(starts.into_iter().enumerate().filter(|(i, _)| (i + 1) % step == 0).map(|(_, key)| key).collect())
    }

    async fn sync(&self) -> Result<()> {
        Ok(())
    }

    async fn snapshot(&self) -> Result<Arc<dyn Read>> {
        Err(Error::new(ErrorKind::Unsupported, "a Thrift gateway has no snapshots to read from"))
    }
}
