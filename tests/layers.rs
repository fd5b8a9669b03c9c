//! Layers around a store: what is tried again, for how long, and what metrics tell of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use bytes::Bytes;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use sideindex::error::{Action, Error, ErrorKind, Result};
use sideindex::model::{Cell, RowMutation};
use sideindex::store::embedded::{EmbeddedStore, Options};
use sideindex::store::{Call, Durability, Layer, Layered, Meter, Operation, Read, Retry, Scan, Store, TableDescriptor};
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TABLE: &str = "things";

/// Fails calls of one operation so many times, before they reach the store.
#[derive(Clone)]
struct Faulty {
    operation: Operation,
    kind: ErrorKind,
    action: Action,
    left: Arc<AtomicU32>,
}

impl Layer for Faulty {
    const REPEATS: bool = false;

    async fn around<'a, T: Send + 'a>(&'a self, operation: Operation, call: &'a mut Call<'a, T>) -> Result<T> {
        let fails = |left: u32| left.checked_sub(1);
        if operation == self.operation && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok() {
            return Err(Error::new(self.kind, "a fault on purpose").with_action(self.action));
        }
        call().await
    }
}

/// A store whose calls of an operation fail so many times, behind retries.
struct Bed {
    store: Arc<dyn Store>,
    left: Arc<AtomicU32>,
    _directory: tempfile::TempDir,
}

const QUICK: Retry = Retry {
    deadline: Duration::from_secs(20),
    first_pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(2),
};

async fn bed(operation: Operation, kind: ErrorKind, action: Action, times: u32, retry: Retry) -> Bed {
    let directory = tempfile::tempdir().unwrap();
    let embedded = EmbeddedStore::open(directory.path(), Options::default()).unwrap();
    embedded.create_table(&TableDescriptor::new(TABLE, &["f"], 1)).await.unwrap();
    embedded.mutate(TABLE, vec![row("a"), row("b"), row("c")], Durability::Durable).await.unwrap();
    let left = Arc::new(AtomicU32::new(times));
    let faulty = Layered::new(Arc::new(embedded), Faulty { operation, kind, action, left: Arc::clone(&left) });
    let metered = Layered::new(Arc::new(faulty), Meter::new("embedded"));
    Bed { store: Arc::new(Layered::new(Arc::new(metered), retry)), left, _directory: directory }
}

fn row(key: &str) -> RowMutation {
    RowMutation::new(key.to_owned(), vec![Cell::put("f", "q", 1, "v")])
}

/// Runs a test with a recorder of its own; what the counters say at its end.
fn recorded<F: Future>(test: F) -> (F::Output, Vec<String>) {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let output = metrics::with_local_recorder(&recorder, || runtime.block_on(test));
    (output, counters(&snapshotter))
}

fn counters(snapshotter: &Snapshotter) -> Vec<String> {
    let shown = |(key, _, _, value): (metrics_util::CompositeKey, _, _, DebugValue)| {
        let DebugValue::Counter(count) = value else { return None };
        let labels: Vec<&str> = key.key().labels().map(metrics::Label::value).collect();
        Some(format!("{} {} {count}", key.key().name(), labels.join(" ")))
    };
    let mut counters: Vec<String> = snapshotter.snapshot().into_vec().into_iter().filter_map(shown).collect();
    counters.sort();
    counters
}

#[test]
fn what_may_succeed_later_is_tried_again_and_counted() {
    for (action, name) in [(Action::Retry, "retry"), (Action::BackOff, "back_off"), (Action::Relocate, "relocate")] {
        let (rows, counters) = recorded(async {
            let bed = bed(Operation::Get, ErrorKind::Store, action, 3, QUICK).await;
            bed.store.get(TABLE, &["a".into(), "x".into()], &sideindex::store::ReadSpec::default()).await.unwrap()
        });
        assert_eq!(rows.iter().map(|r| r.cells.len()).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(
            counters,
            [
                "sideindex_store_operations_total embedded get ok 1".to_owned(),
                "sideindex_store_operations_total embedded get store 3".to_owned(),
                format!("sideindex_store_retries_total get {name} 3"),
            ]
        );
    }
}

#[test]
fn what_is_of_no_use_is_not_tried_again() {
    for action in [Action::FixConfig, Action::Stop, Action::Quarantine] {
        recorded(async {
            let bed = bed(Operation::Mutate, ErrorKind::Store, action, 3, QUICK).await;
            let refused = bed.store.mutate(TABLE, vec![row("d")], Durability::Durable).await.unwrap_err();
            assert_eq!(refused.action(), action);
            assert_eq!(bed.left.load(Ordering::SeqCst), 2, "one try");
        });
    }
}

#[test]
fn a_write_is_written_whole_by_the_last_try() {
    recorded(async {
        let bed = bed(Operation::Mutate, ErrorKind::Store, Action::BackOff, 4, QUICK).await;
        bed.store.mutate(TABLE, vec![row("d"), row("e")], Durability::Durable).await.unwrap();
        assert_eq!(keys(&*bed.store).await, ["a", "b", "c", "d", "e"]);
    });
}

#[test]
fn an_increment_is_tried_again_only_if_the_store_was_not_reached() {
    let increment = |kind, left| async move {
        let bed = bed(Operation::Increment, kind, Action::BackOff, left, QUICK).await;
        let (row, family, qualifier) = (Bytes::from("n"), Bytes::from("f"), Bytes::from("q"));
        let sum = bed.store.increment(TABLE, &row, &family, &qualifier, 5).await;
        (sum, bed.left.load(Ordering::SeqCst))
    };
    let ((sum, left), _) = recorded(increment(ErrorKind::Unreachable, 3));
    assert_eq!((sum.unwrap(), left), (5, 0));
    let ((sum, left), _) = recorded(increment(ErrorKind::Store, 3));
    assert_eq!((sum.unwrap_err().kind(), left), (ErrorKind::Store, 2), "it may have been applied");
}

#[test]
fn a_deadline_ends_retries_and_says_so() {
    let retry = Retry { deadline: Duration::from_millis(30), ..QUICK };
    recorded(async {
        let bed = bed(Operation::ListTables, ErrorKind::Unreachable, Action::BackOff, u32::MAX, retry).await;
        let error = bed.store.list_tables().await.unwrap_err();
        assert_eq!((error.kind(), error.action()), (ErrorKind::Unreachable, Action::BackOff));
        let text = error.to_string();
        assert!(text.contains("list_tables given up after") && text.contains("a fault on purpose"), "{text}");
        assert!(bed.left.load(Ordering::SeqCst) < u32::MAX - 1, "more than one try");
    });
}

/// Never answers.
#[derive(Clone)]
struct Silent;

impl Layer for Silent {
    const REPEATS: bool = false;

    async fn around<'a, T: Send + 'a>(&'a self, _: Operation, _: &'a mut Call<'a, T>) -> Result<T> {
        std::future::pending().await
    }
}

#[test]
fn a_deadline_ends_a_call_without_an_answer() {
    recorded(async {
        let bed = bed(Operation::Sync, ErrorKind::Store, Action::Stop, 0, QUICK).await;
        let silent = Layered::new(bed.store, Silent);
        let store = Layered::new(Arc::new(silent), Retry { deadline: Duration::from_millis(10), ..QUICK });
        let error = store.sync().await.unwrap_err();
        assert_eq!(error.action(), Action::BackOff);
        assert!(error.to_string().contains("within 10ms"), "{error}");
    });
}

#[test]
fn a_scan_goes_on_after_a_page_that_failed() {
    recorded(async {
        let bed = bed(Operation::Page, ErrorKind::Store, Action::Retry, 3, QUICK).await;
        assert_eq!(keys(&*bed.store).await, ["a", "b", "c"]);
        assert_eq!(bed.left.load(Ordering::SeqCst), 0);
        let snapshot = bed.store.snapshot().await.unwrap();
        bed.left.store(2, Ordering::SeqCst);
        assert_eq!(keys(&*snapshot).await, ["a", "b", "c"], "the layer is around snapshots, too");
        assert_eq!(bed.left.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn pauses_grow_and_vary() {
    // What a caller sees of pauses is the time between its tries.
    let tries = Arc::new(Mutex::new(Vec::new()));
    #[derive(Clone)]
    struct Noted(Arc<Mutex<Vec<std::time::Instant>>>);
    impl Layer for Noted {
        const REPEATS: bool = false;
        async fn around<'a, T: Send + 'a>(&'a self, _: Operation, call: &'a mut Call<'a, T>) -> Result<T> {
            self.0.lock().unwrap().push(std::time::Instant::now());
            call().await
        }
    }
    recorded(async {
        let faulty = bed(Operation::Sync, ErrorKind::Store, Action::BackOff, 6, QUICK).await;
        // The inner retries would hide the tries: this bed's own store gives up at once.
        let once = Retry { deadline: Duration::ZERO, ..QUICK };
        let inner = Layered::new(faulty.store, once);
        let noted = Layered::new(Arc::new(inner), Noted(Arc::clone(&tries)));
        let retry = Retry { first_pause: Duration::from_millis(4), longest_pause: Duration::from_millis(64), ..QUICK };
        Layered::new(Arc::new(noted), retry).sync().await.unwrap();
    });
    let tries = tries.lock().unwrap();
    let pauses: Vec<Duration> = tries.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(pauses.iter().all(|p| *p >= Duration::from_millis(4)), "{pauses:?}");
    assert!(pauses.last().unwrap() >= &Duration::from_millis(32), "{pauses:?}");
}

async fn keys<R: Read + ?Sized>(reader: &R) -> Vec<String> {
    let mut scanner = reader.scan(TABLE, Scan { page_rows: 2, ..Scan::all() }).await.unwrap();
    let mut keys = Vec::new();
    loop {
        let page = scanner.next_page().await.unwrap();
        keys.extend(page.rows.iter().map(|r| String::from_utf8_lossy(&r.key).into_owned()));
        if page.done {
            return keys;
        }
    }
}
