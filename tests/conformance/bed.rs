//! What checks are written with: a table of their own, and cells as short strings.

use bytes::Bytes;
use futures::future::BoxFuture;
use sideindex::error::{ErrorKind, Result};
use sideindex::model::{Cell, CellKind, Row, RowMutation};
use sideindex::store::{Columns, Durability, Read, ReadSpec, Scan, Store, TableDescriptor};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A store to check, and what must live as long as it.
pub struct Backend {
    /// The store.
    pub store: Arc<dyn Store>,
    /// A directory, a process.
    pub keep: Box<dyn Any + Send>,
}

/// Runs one check in a runtime of its own.
pub fn run<C>(open: fn() -> BoxFuture<'static, Backend>, name: &'static str, check: C)
where
    C: for<'a> Fn(&'a Bed) -> BoxFuture<'a, ()>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let backend = open().await;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let table = format!("sx_check_{}_{number}_{name}", std::process::id());
        let descriptor = TableDescriptor::new(&table, &["a", "b"], 3);
        backend.store.create_table(&descriptor).await.unwrap();
        check(&Bed { store: Arc::clone(&backend.store), table }).await;
        drop(backend.keep);
    });
}

/// A store and a table with the families `a` and `b` that keep 3 versions.
pub struct Bed {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The table's name.
    pub table: String,
}

impl Bed {
    /// Writes cells of one row in one mutation.
    pub async fn write(&self, row: impl Into<Bytes>, cells: Vec<Cell>) {
        self.try_write(vec![RowMutation::new(row, cells)]).await.unwrap();
    }

    /// Whether markers on single versions can be written; if not, they are refused.
    pub async fn marks_versions(&self) -> bool {
        if self.store.capabilities().version_markers {
            return true;
        }
        for kind in [CellKind::DeleteVersion, CellKind::DeleteFamilyVersion] {
            let (family, qualifier) = column(if kind.is_family_wide() { "a:" } else { "a:x" });
            let marker = RowMutation::new("refused", vec![Cell::delete(kind, family, qualifier, 1)]);
            assert_eq!(kind_of(self.try_write(vec![marker]).await), ErrorKind::Unsupported);
        }
        false
    }

    /// Scans of some versions; the newest only where a scan of more is refused.
    pub async fn scan_versions(&self, max: u32) -> ReadSpec {
        if self.store.capabilities().versions_in_scans {
            return versions(max);
        }
        let scan = self.store.scan(&self.table, Scan { spec: versions(max), ..Scan::all() }).await;
        assert_eq!(scan.err().map(|e| e.kind()), Some(ErrorKind::Unsupported));
        versions(1)
    }

    /// Writes mutations in one call.
    pub async fn try_write(&self, mutations: Vec<RowMutation>) -> Result<()> {
        self.store.mutate(&self.table, mutations, Durability::Durable).await
    }

    /// Puts a value in `a:q` of each row, at timestamp 1.
    pub async fn rows<R: Into<Bytes>>(&self, rows: impl IntoIterator<Item = R>) {
        let mutations = rows.into_iter().map(|r| RowMutation::new(r, vec![put("a:q", 1, "v")])).collect();
        self.try_write(mutations).await.unwrap();
    }

    /// The cells of one row.
    pub async fn get(&self, row: impl Into<Bytes>, spec: &ReadSpec) -> Vec<String> {
        let rows = self.store.get(&self.table, &[row.into()], spec).await.unwrap();
        assert_eq!(rows.len(), 1);
        show(&rows[0].cells)
    }

    /// The rows of a scan, by [`scan_all`].
    pub async fn scan(&self, scan: Scan) -> Vec<Row> {
        scan_all(&*self.store, &self.table, scan).await
    }

    /// The keys of a scan's rows.
    pub async fn keys(&self, scan: Scan) -> Vec<Bytes> {
        self.scan(scan).await.into_iter().map(|r| r.key).collect()
    }
}

/// Reads a scan to its end, and checks what the trait promises of every page.
pub async fn scan_all<R: Read + ?Sized>(reader: &R, table: &str, scan: Scan) -> Vec<Row> {
    let mut scanner = reader.scan(table, scan.clone()).await.unwrap();
    let mut rows: Vec<Row> = Vec::new();
    let mut examined = 0;
    loop {
        let page = scanner.next_page().await.unwrap();
        assert!(page.rows.len() <= scan.page_rows, "a page of {} rows, {} asked", page.rows.len(), scan.page_rows);
        assert!(page.examined >= page.rows.len() as u64);
        assert!(page.done || page.examined > 0, "a page that makes no progress");
        examined += page.examined;
        rows.extend(page.rows);
        if page.done {
            break;
        }
    }
    let after = scanner.next_page().await.unwrap();
    assert!(after.done && after.rows.is_empty() && after.examined == 0, "a page after the end");
    assert!(examined >= rows.len() as u64);
    assert!(rows.iter().all(|r| !r.cells.is_empty()), "a row without cells in a scan");
    let in_order = |w: &[Row]| if scan.reversed { w[0].key > w[1].key } else { w[0].key < w[1].key };
    assert!(rows.windows(2).all(in_order), "rows out of order");
    rows
}

/// `family:qualifier`.
pub fn column(name: &str) -> (Bytes, Bytes) {
    let (family, qualifier) = name.split_once(':').expect("family:qualifier");
    (family.to_owned().into(), qualifier.to_owned().into())
}

/// A put of a `family:qualifier`.
pub fn put(name: &str, timestamp: i64, value: &str) -> Cell {
    let (family, qualifier) = column(name);
    Cell::put(family, qualifier, timestamp, value.to_owned())
}

/// A marker on a `family:qualifier`; the qualifier is empty for family-wide ones.
pub fn delete(kind: CellKind, name: &str, timestamp: i64) -> Cell {
    let (family, qualifier) = column(name);
    Cell::delete(kind, family, qualifier, timestamp)
}

/// Cells as `family:qualifier@timestamp=value` or, for markers, `family:qualifier@timestamp!kind`.
pub fn show(cells: &[Cell]) -> Vec<String> {
    let show = |c: &Cell| {
        let column = format!("{}:{}@{}", c.family.escape_ascii(), c.qualifier.escape_ascii(), c.timestamp);
        match c.kind {
            CellKind::Put => format!("{column}={}", c.value.escape_ascii()),
            kind => format!("{column}!{kind:?}"),
        }
    };
    cells.iter().map(show).collect()
}

/// All columns, up to `max` versions.
pub fn versions(max: u32) -> ReadSpec {
    ReadSpec { max_versions: max, ..ReadSpec::default() }
}

/// The newest version of some columns.
pub fn columns(names: &[&str]) -> ReadSpec {
    ReadSpec { columns: Columns::Exact(names.iter().map(|n| column(n)).collect()), ..ReadSpec::default() }
}

/// The error kind of a call that must fail.
pub fn kind_of<T: Debug>(result: Result<T>) -> ErrorKind {
    result.expect_err("this call must be refused").kind()
}
