//! Random histories of one row in six modes, as in `model.py` of the design.

use crate::base::{self, COLUMNS, Change, Column, Event};
use crate::stepped::{Stepped, Turn, step};
use bytes::Bytes;
use futures::executor::block_on;
use sideindex::index::candidates::View;
use sideindex::index::{Maintainer, Mode as ApplyMode, Rules, purge};
use sideindex::model::{Cell, CellKind, ChangeEvent, Position, RowMutation};
use sideindex::query;
use sideindex::schema::domain::Domain;
use sideindex::schema::{
    Attribute, Catalog, Condition, Definition, Filter, FilterTree, Function, Lifecycle, META_FAMILY, META_TABLE,
    NO_FLOOR, Operand, TableSchema, Term, entry, term,
};
use sideindex::store::embedded::{DurabilityMode, EmbeddedStore, Options};
use sideindex::store::{Durability, Read, ReadSpec, Store, TableDescriptor};
use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Any order, duplicates.
    Perm,
    /// Stop anywhere, rewind, replay.
    Crash,
    /// An old consumer goes on beside the owner.
    Zombie,
    /// Two workers, the events of a row divided at random.
    Split,
    /// A snapshot reader beside the stream.
    Build,
    /// Events seen before the base shows them.
    Early,
    /// Any order, duplicates; now and then what is behind a horizon is purged.
    Purge,
}

/// An entry: the definition's place and one value, or null, per term.
type Entry = (usize, Vec<Option<&'static str>>);

#[derive(Debug, Default)]
#[expect(dead_code, reason = "a failing test prints all of it")]
pub struct Verdict {
    pub events: Vec<Event>,
    /// True values without a visible entry.
    pub missing: Vec<Entry>,
    /// Rows that a `verified` query returned and shouldn't have, or didn't and should have, or returned twice.
    pub wrong: Vec<String>,
    /// Visible entries that are not true, and whether each is disputed.
    pub outdated: Vec<(Entry, bool)>,
    /// True, undisputed entries with an older covered value.
    pub stale: usize,
}

/// A visible entry.
struct Seen {
    disputed: bool,
    /// What it covers is what the base has.
    covers: bool,
}

/// What a long history was seen to keep.
#[derive(Debug, Default)]
pub struct Most {
    pub candidates: usize,
    pub entries: usize,
    pub after_quiet_candidates: usize,
    pub after_quiet_outdated: usize,
}

/// A term: its column, and whether it is under `lower`, and descending.
type Shape = (Column, bool, bool);

/// What the maintainer keeps.
struct Kept {
    terms: &'static [Shape],
    /// Only rows with `lower(a) = 'x'` have entries.
    filtered: bool,
    /// Entries hold `a`.
    covers: bool,
}

const A: Shape = (Column::A, false, false);
const B: Shape = (Column::B, false, false);
const LOWER_A: Shape = (Column::A, true, true);

const DEFINITIONS: [Kept; 5] = [
    Kept { terms: &[A], filtered: false, covers: false },
    Kept { terms: &[B], filtered: false, covers: false },
    Kept { terms: &[A, B], filtered: false, covers: false },
    Kept { terms: &[B], filtered: true, covers: true },
    Kept { terms: &[LOWER_A, B], filtered: false, covers: false },
];
/// Those that are asked by SQL.
const ASKED: std::ops::Range<usize> = 0..3;
const A_VALUES: [&str; 3] = ["x", "X", "z"];
const B_VALUES: [&str; 3] = ["p", "q", "r"];
const CODES_PER_HISTORY: u16 = 7;

/// One store for all histories of a test; each history has a row and codes of its own.
pub struct World {
    store: Arc<dyn Store>,
    /// What its tables' names begin with.
    prefix: String,
    tables: RefCell<u16>,
    next_code: RefCell<u16>,
    _keep: Box<dyn Any>,
}

impl World {
    pub fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability: DurabilityMode::Os, ..Options::default() };
        let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path(), options).unwrap());
        Self::on(store, "", Box::new(dir))
    }

    /// On a store, with tables of their own names.
    pub fn on(store: Arc<dyn Store>, prefix: &str, keep: Box<dyn Any>) -> Self {
        let (tables, next_code) = (RefCell::new(0), RefCell::new(u16::MAX));
        Self { store, prefix: prefix.to_owned(), tables, next_code, _keep: keep }
    }

    /// A schema of two attributes and three definitions with codes nobody else has.
    fn schema(&self) -> TableSchema {
        let mut code = self.next_code.borrow_mut();
        if *code > u16::MAX - 2 * CODES_PER_HISTORY {
            *self.tables.borrow_mut() += 1;
            *code = 1;
            let name = self.table();
            let schema = TableSchema::new(name.clone(), vec!["f".into()], vec![], vec![]);
            for table in [
                TableDescriptor::new(name, &["f"], u32::MAX),
                TableDescriptor::new(schema.index_table(), &["i"], 1),
                TableDescriptor::new(schema.state_table(), &["s"], 1),
            ] {
                block_on(self.store.create_table(&table)).unwrap();
            }
        }
        let first = *code;
        *code += CODES_PER_HISTORY;
        let attribute = |name: &str, code, kind: &str| Attribute::inferred(name, kind.parse().unwrap(), "f", code);
        let attributes = vec![attribute("a", first, "text"), attribute("b", first + 1, "text[]")];
        let definitions = DEFINITIONS
            .iter()
            .enumerate()
            .map(|(i, kept)| {
                let operand = |(column, lower, _): Shape| Operand {
                    code: first + u16::from(column == Column::B),
                    functions: if lower { vec![Function::Lower] } else { vec![] },
                };
                let terms = kept.terms.iter().map(|t| Term { operand: operand(*t), descending: t.2 });
                let mut x = Vec::new();
                term::encode(&"x".into(), &mut x);
                let condition = Condition::Some(Domain::values(&[x.into()]));
                let tree = FilterTree::Test { operand: operand(LOWER_A), condition };
                Definition {
                    state: Lifecycle::Active,
                    covered: if kept.covers { vec![first] } else { vec![] },
                    filter: kept.filtered.then(|| Filter { text: "lower(a) = 'x'".to_owned(), tree }),
                    ..Definition::new(format!("d{i}"), first + 2 + i as u16, terms)
                }
            })
            .collect();
        let schema = TableSchema::new(self.table(), vec!["f".into()], attributes, definitions);
        if !self.store.capabilities().snapshots {
            self.record(&schema, first);
        }
        schema
    }

    /// A query without a snapshot looks whether its definition is still there.
    fn record(&self, schema: &TableSchema, first: u16) {
        block_on(Catalog::open(Arc::clone(&self.store))).unwrap();
        let cell =
            |d: &Definition| Cell::put(META_FAMILY, d.name.clone(), i64::from(first), serde_json::to_vec(d).unwrap());
        let cells = schema.definitions().iter().map(cell).collect();
        let mutation = RowMutation::new(format!("definition/{}", schema.name), cells);
        block_on(self.store.mutate(META_TABLE, vec![mutation], Durability::Durable)).unwrap();
    }

    fn table(&self) -> String {
        format!("{}t{}", self.prefix, self.tables.borrow())
    }

    /// Runs one history and judges where it ends.
    pub fn run(&self, mode: Mode, seed: u64, rules: Rules) -> Verdict {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let events = random_events(&mut rng);
        let history = History::new(self, seed, rules, events);
        history.play(mode, &mut rng);
        history.end();
        history.judge()
    }

    /// Runs one history, purges what it left behind, and judges then; with the number of candidates that stay.
    pub fn run_and_purge(&self, mode: Mode, seed: u64) -> (Verdict, usize) {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let history = History::new(self, seed, Rules::default(), random_events(&mut rng));
        history.play(mode, &mut rng);
        history.end();
        history.purge(1_000);
        (history.judge(), history.candidates())
    }

    /// Many updates of one row, mostly in order, with now and then a late one, a repeated one or a deletion.
    pub fn run_long(&self, seed: u64, updates: i64) -> Most {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x10_96);
        let mut events = Vec::new();
        for i in 1..=updates {
            let late = if rng.u8(..10) == 0 { rng.i64(0..5) } else { 0 };
            let mut event = random_event(&mut rng, (8, 1, 1));
            event.timestamp = (i * 2 - late * 2).max(1);
            events.push(event);
        }
        // At the end both columns are written in order: whatever was in doubt is superseded.
        for _ in 0..2 {
            let put = |c, rng: &mut fastrand::Rng| Change::Put(c, random_value(c, rng));
            let changes = vec![put(Column::A, &mut rng), put(Column::B, &mut rng)];
            events.push(Event { timestamp: updates * 2 + 2 + events.len() as i64, changes });
        }
        let history = History::new(self, seed, Rules::default(), events);
        let mut most = Most::default();
        for i in 0..history.events.len() {
            history.commit(i + 1);
            history.finish(history.apply(i..i + 1));
            history.recheck();
            most.candidates = most.candidates.max(history.candidates());
            most.entries = most.entries.max(history.visible().len());
        }
        history.end();
        let verdict = history.judge();
        assert!(verdict.missing.is_empty() && verdict.wrong.is_empty(), "SIDEINDEX_SEED={seed}: {verdict:#?}");
        most.after_quiet_candidates = history.candidates();
        most.after_quiet_outdated = verdict.outdated.len();
        most
    }
}

fn random_value(column: Column, rng: &mut fastrand::Rng) -> base::Value {
    match column {
        Column::A => [*rng.choice(&A_VALUES).unwrap()].into(),
        Column::B => {
            let n = rng.usize(1..=2);
            rng.choose_multiple(B_VALUES, n).into_iter().collect()
        }
    }
}

fn random_event(rng: &mut fastrand::Rng, mix: (u8, u8, u8)) -> Event {
    if rng.u8(..10) == 0 {
        let all = if rng.u8(..4) == 0 { Change::DeleteFamilyVersion } else { Change::DeleteFamily };
        return Event { timestamp: 0, changes: vec![all] };
    }
    let columns = if rng.u8(..10) < 6 { vec![*rng.choice(&COLUMNS).unwrap()] } else { COLUMNS.to_vec() };
    let changes = columns
        .into_iter()
        .map(|column| {
            let roll = rng.u8(..mix.0 + mix.1 + mix.2);
            if roll < mix.0 {
                Change::Put(column, random_value(column, rng))
            } else if roll < mix.0 + mix.1 {
                Change::DeleteColumn(column)
            } else {
                Change::DeleteVersion(column)
            }
        })
        .collect();
    Event { timestamp: 0, changes }
}

fn random_events(rng: &mut fastrand::Rng) -> Vec<Event> {
    let mix = *rng.choice(&[(6, 2, 0), (6, 2, 2), (5, 1, 4)]).unwrap();
    let n = rng.usize(2..=7);
    (0..n)
        .map(|_| {
            let span = *rng.choice(&[4, 9]).unwrap();
            Event { timestamp: rng.i64(1..=span), ..random_event(rng, mix) }
        })
        .collect()
}

type Consumer<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

struct History<'a> {
    world: &'a World,
    row: Bytes,
    rules: Rules,
    events: Vec<Event>,
    base: RefCell<base::Row>,
    committed: RefCell<usize>,
    late: RefCell<Vec<ChangeEvent>>,
    store: Arc<dyn Store>,
    schema: RefCell<Arc<TableSchema>>,
    rng: RefCell<fastrand::Rng>,
}

impl<'a> History<'a> {
    fn new(world: &'a World, seed: u64, rules: Rules, events: Vec<Event>) -> Self {
        let stepped =
            Stepped { inner: Arc::clone(&world.store), rng: Mutex::new(fastrand::Rng::with_seed(seed ^ 0x57e9)) };
        Self {
            world,
            row: format!("row-{seed}-{}", world.next_code.borrow()).into(),
            rules,
            events,
            base: RefCell::default(),
            committed: RefCell::new(0),
            late: RefCell::default(),
            store: Arc::new(stepped),
            schema: RefCell::new(Arc::new(world.schema())),
            rng: RefCell::new(fastrand::Rng::with_seed(seed ^ 0x3a7)),
        }
    }

    fn play(&self, mode: Mode, rng: &mut fastrand::Rng) {
        let n = self.events.len();
        match mode {
            Mode::Perm => {
                let mut order: Vec<usize> = (0..n).flat_map(|i| vec![i; 1 + usize::from(rng.u8(..3) == 0)]).collect();
                rng.shuffle(&mut order);
                if rng.bool() {
                    self.commit(n);
                }
                self.finish(self.consume(order));
            }
            Mode::Crash => {
                let (mut at, mut crashes) = (0, 0);
                while at < n {
                    let upto = (at + rng.usize(1..=2)).min(n);
                    self.commit(upto + rng.usize(0..=2));
                    let limit = if crashes < 6 { rng.usize(0..=14) } else { usize::MAX };
                    let mut apply = self.apply(at..upto);
                    let done = (0..limit).any(|_| step(&mut apply));
                    if done {
                        at = upto;
                    } else {
                        crashes += 1;
                        at = at.saturating_sub(rng.usize(0..=3));
                    }
                }
            }
            Mode::Zombie => {
                let mut old = Some(self.consume((0..rng.usize(0..=n)).collect()));
                let mut owner = self.consume((0..n).collect());
                let step_old = |old: &mut Option<Consumer<'_>>| {
                    if old.as_mut().is_some_and(step) {
                        *old = None;
                    }
                };
                loop {
                    if rng.bool() {
                        step_old(&mut old);
                    } else if step(&mut owner) {
                        break;
                    }
                }
                for _ in 0..rng.usize(0..=12) {
                    step_old(&mut old);
                }
            }
            Mode::Split => {
                let (mine, others): (Vec<usize>, Vec<usize>) = (0..n).partition(|_| rng.bool());
                interleave(vec![self.consume(mine), self.consume(others)], rng);
            }
            Mode::Build => self.play_build(rng),
            Mode::Purge => {
                let mut order: Vec<usize> = (0..n).flat_map(|i| vec![i; 1 + usize::from(rng.u8(..3) == 0)]).collect();
                if rng.bool() {
                    rng.shuffle(&mut order);
                }
                if rng.u8(..3) == 0 {
                    self.commit(n);
                }
                for i in order {
                    self.finish(self.consume(vec![i]));
                    if rng.u8(..2) == 0 {
                        self.purge(rng.i64(0..=9));
                    }
                }
            }
            Mode::Early => {
                let lagging = async {
                    for i in 0..n {
                        if self.rng.borrow_mut().u8(..10) < 6 {
                            self.commit(i + 1);
                        }
                        self.apply(i..i + 1).await;
                    }
                };
                self.finish(Box::pin(lagging));
            }
        }
    }

    /// A build reads a snapshot while the stream goes on from where it was when the build began. Either everything is built,
    /// or one definition is added to others that have followed the stream from the start.
    fn play_build(&self, rng: &mut fastrand::Rng) {
        let n = self.events.len();
        let start = rng.usize(0..=n);
        let taken = rng.usize(start..=n);
        let whole = Arc::clone(&self.schema.borrow());
        let floor = self.events[..taken].iter().map(|e| e.timestamp).max().unwrap_or(NO_FLOOR);
        let all: Vec<usize> = (0..DEFINITIONS.len()).collect();
        let built = if rng.bool() { all } else { vec![rng.usize(0..DEFINITIONS.len())] };
        let with = |choose: &dyn Fn(usize) -> bool| {
            let definitions = whole
                .definitions()
                .iter()
                .enumerate()
                .filter(|(i, _)| choose(*i))
                .map(|(i, d)| Definition { floor: if built.contains(&i) { floor } else { NO_FLOOR }, ..d.clone() });
            let attributes = whole.attributes().cloned().collect();
            Arc::new(TableSchema::new(whole.name.clone(), whole.families.clone(), attributes, definitions.collect()))
        };
        // What was there before follows the stream up to the start of the build.
        *self.schema.borrow_mut() = with(&|i| !built.contains(&i));
        self.finish(self.consume((0..start).collect()));
        self.commit(taken);
        let cells: Vec<Cell> = {
            let base = self.base.borrow();
            COLUMNS.iter().filter_map(|c| base.current(*c).map(|(t, v)| put_cell(*c, t, v))).collect()
        };
        let snapshot = ChangeEvent { row: self.row.clone(), cells, position: Position::Snapshot, append_time: 0 };
        let only_built = with(&|i| built.contains(&i));
        *self.schema.borrow_mut() = with(&|_| true);
        let reader: Consumer<'_> = Box::pin(async move {
            let maintainer = Maintainer::with_rules(Arc::clone(&self.store), only_built, self.rules);
            Turn::default().await;
            maintainer.apply(&[snapshot], ApplyMode::Snapshot).await.unwrap();
        });
        interleave(vec![reader, self.consume((start..n).collect())], rng);
    }

    /// Applies events in the given order, a few at a time, each after the base shows it.
    fn consume(&self, order: Vec<usize>) -> Consumer<'_> {
        Box::pin(async move {
            let mut rest = order.as_slice();
            while !rest.is_empty() {
                let (batch, later) = rest.split_at(self.rng.borrow_mut().usize(1..=2).min(rest.len()));
                rest = later;
                self.commit(batch.iter().max().unwrap() + 1);
                Turn::default().await;
                self.apply_these(batch.to_vec()).await;
            }
        })
    }

    fn apply(&self, which: std::ops::Range<usize>) -> Consumer<'_> {
        self.apply_these(which.collect())
    }

    /// One batch by a consumer that may be dropped anywhere.
    fn apply_these(&self, which: Vec<usize>) -> Consumer<'_> {
        let schema = Arc::clone(&self.schema.borrow());
        Box::pin(async move {
            let maintainer = Maintainer::with_rules(Arc::clone(&self.store), schema, self.rules);
            let batch: Vec<ChangeEvent> = which.iter().map(|i| self.change_event(*i)).collect();
            let outcome = maintainer.apply(&batch, ApplyMode::Stream).await.unwrap();
            assert!(outcome.counts.add_up());
            self.late.borrow_mut().extend(outcome.late);
            maintainer.flush().await.unwrap();
        })
    }

    /// Runs a future to its end.
    fn finish(&self, mut future: Consumer<'_>) {
        while !step(&mut future) {}
    }

    fn recheck(&self) {
        let late = std::mem::take(&mut *self.late.borrow_mut());
        let schema = Arc::clone(&self.schema.borrow());
        self.finish(Box::pin(async move {
            let maintainer = Maintainer::with_rules(Arc::clone(&self.store), schema, self.rules);
            for event in late {
                let outcome = maintainer.apply(&[event], ApplyMode::Again).await.unwrap();
                assert!(outcome.late.is_empty());
            }
            maintainer.flush().await.unwrap();
        }));
    }

    /// Purges what the row left behind at or below a horizon.
    fn purge(&self, horizon: i64) {
        let schema = Arc::clone(&self.schema.borrow());
        let raised = schema
            .definitions()
            .iter()
            .map(|d| Definition {
                floor: if self.rules.floor { d.floor.max(horizon + 1) } else { d.floor },
                ..d.clone()
            })
            .collect();
        let attributes = schema.attributes().cloned().collect();
        let schema = TableSchema::new(schema.name.clone(), schema.families.clone(), attributes, raised);
        *self.schema.borrow_mut() = Arc::new(schema);
        let schema = Arc::clone(&self.schema.borrow());
        let maintainer = Maintainer::with_rules(Arc::clone(&self.store), schema, self.rules);
        self.finish(Box::pin(async {
            purge::one_row(&maintainer, &self.store, self.row.clone(), horizon).await.unwrap();
        }));
    }

    /// The base has everything, and what was late has been applied again.
    fn end(&self) {
        self.commit(self.events.len());
        self.recheck();
    }

    fn commit(&self, upto: usize) {
        let mut committed = self.committed.borrow_mut();
        while *committed < upto.min(self.events.len()) {
            let event = &self.events[*committed];
            self.base.borrow_mut().write(event);
            let mutation = RowMutation::new(self.row.clone(), cells(event));
            let table = &self.schema.borrow().name;
            let durability = sideindex::store::Durability::Relaxed;
            block_on(self.world.store.mutate(table, vec![mutation], durability)).unwrap();
            *committed += 1;
        }
    }

    fn change_event(&self, i: usize) -> ChangeEvent {
        ChangeEvent {
            row: self.row.clone(),
            cells: cells(&self.events[i]),
            position: Position::Changelog { number: i as u64 + 1 },
            append_time: i as i64,
        }
    }

    /// How many candidates the state row has.
    fn candidates(&self) -> usize {
        let table = self.schema.borrow().state_table();
        let rows =
            block_on(self.world.store.get(&table, std::slice::from_ref(&self.row), &ReadSpec::default())).unwrap();
        View::decode(&rows[0]).unwrap().len()
    }

    /// Every visible entry of the row, and whether it is disputed: all possible keys are looked at.
    fn visible(&self) -> BTreeMap<Entry, Seen> {
        let schema = self.schema.borrow();
        let mut entries = Vec::new();
        let mut keys = Vec::new();
        for (i, kept) in DEFINITIONS.iter().enumerate() {
            for values in possible(kept.terms) {
                let mut terms = Vec::new();
                for (value, (.., descending)) in values.iter().zip(kept.terms) {
                    let from = terms.len();
                    match value {
                        Some(text) => term::encode(&(*text).into(), &mut terms),
                        None => term::encode_null(&mut terms),
                    }
                    if *descending {
                        terms[from..].iter_mut().for_each(|b| *b = !*b);
                    }
                }
                keys.push(Bytes::from(entry::encode(&schema.definitions()[i], &terms, &self.row).unwrap()));
                entries.push((i, values));
            }
        }
        let rows = block_on(self.world.store.get(&schema.index_table(), &keys, &ReadSpec::default())).unwrap();
        let base = self.base.borrow();
        let mut covered = Vec::new();
        match base.current(Column::A) {
            Some((_, value)) => term::encode(&(*value.iter().next().unwrap()).into(), &mut covered),
            None => term::encode_null(&mut covered),
        }
        let mut visible = BTreeMap::new();
        for (entry, row) in entries.into_iter().zip(rows) {
            let Some(cell) = row.cells.first() else { continue };
            let (disputed, found) = entry::decode_value(&cell.value).unwrap();
            let holds = if DEFINITIONS[entry.0].covers { &covered[..] } else { &[] };
            visible.insert(entry, Seen { disputed, covers: found == holds });
        }
        visible
    }

    fn judge(&self) -> Verdict {
        let base = self.base.borrow();
        let mut truth: BTreeSet<Entry> = BTreeSet::new();
        for (i, kept) in DEFINITIONS.iter().enumerate() {
            let holds = |(column, lower, _): Shape, value: Option<&str>| match (base.current(column), value) {
                (Some((_, set)), Some(value)) => {
                    set.iter().any(|v| if lower { v.to_lowercase() == value } else { *v == value })
                }
                (None, None) => true,
                _ => false,
            };
            if kept.filtered && !holds(LOWER_A, Some("x")) {
                continue;
            }
            truth.extend(
                possible(kept.terms)
                    .into_iter()
                    .filter(|values| kept.terms.iter().zip(values).all(|(t, v)| holds(*t, *v)))
                    .map(|values| (i, values)),
            );
        }
        let visible = self.visible();
        let mut verdict = Verdict {
            events: self.events.clone(),
            missing: truth.iter().filter(|e| !visible.contains_key(*e)).cloned().collect(),
            wrong: self.ask(&truth),
            stale: visible.iter().filter(|(e, s)| truth.contains(*e) && !s.covers && !s.disputed).count(),
            outdated: visible.into_iter().filter(|(e, _)| !truth.contains(e)).map(|(e, s)| (e, s.disputed)).collect(),
        };
        self.check_base(&base, &mut verdict);
        verdict
    }

    /// Asks for every value by SQL under `verified`, and compares with the truth.
    fn ask(&self, truth: &BTreeSet<Entry>) -> Vec<String> {
        let schema = self.schema.borrow();
        let mut wrong = Vec::new();
        for i in ASKED {
            let terms = DEFINITIONS[i].terms;
            for values in possible(terms).into_iter().filter(|values| values.iter().all(Option::is_some)) {
                let name = |(c, ..): &Shape| if *c == Column::A { "a" } else { "b" };
                let terms = terms.iter().zip(&values);
                let predicate: Vec<String> =
                    terms.map(|(c, v)| format!("{} = '{}'", name(c), v.unwrap_or_default())).collect();
                let sql = format!("SELECT id FROM {} WHERE {}", schema.name, predicate.join(" AND "));
                let rows = answers(&self.world.store, &schema, &sql);
                let expected = usize::from(truth.contains(&(i, values)));
                if rows != expected {
                    wrong.push(format!("{sql}: {rows} rows, expected {expected}"));
                }
            }
        }
        wrong
    }

    /// The embedded store and the oracle must agree on what the base shows, or nothing above means anything.
    fn check_base(&self, base: &base::Row, verdict: &mut Verdict) {
        let table = &self.schema.borrow().name;
        let rows =
            block_on(self.world.store.get(table, std::slice::from_ref(&self.row), &ReadSpec::default())).unwrap();
        for column in COLUMNS {
            let expected = base.current(column).map(|(t, v)| put_cell(column, t, v));
            let found = rows[0].newest(b"f", qualifier(column).as_bytes());
            if found != expected.as_ref() {
                verdict.wrong.push(format!("base {column:?}: expected {expected:?}, found {found:?}"));
            }
        }
    }
}

fn answers(store: &Arc<dyn Store>, schema: &TableSchema, sql: &str) -> usize {
    let parsed = query::parse(sql).unwrap();
    block_on(async {
        let prepared = query::prepare(&**store, schema, &parsed, &query::Options::default()).await.unwrap();
        let mut cursor = prepared.cursor(Arc::clone(store) as Arc<dyn Read>);
        let mut rows = 0;
        while let Some(page) = cursor.next_page().await.unwrap() {
            rows += page.len();
        }
        rows
    })
}

fn interleave(mut consumers: Vec<Consumer<'_>>, rng: &mut fastrand::Rng) {
    while !consumers.is_empty() {
        let i = rng.usize(..consumers.len());
        if step(&mut consumers[i]) {
            drop(consumers.swap_remove(i));
        }
    }
}

/// Every combination of values a definition's entries can have: the first term is present, later ones may be null.
fn possible(terms: &[Shape]) -> Vec<Vec<Option<&'static str>>> {
    let mut all = vec![Vec::new()];
    for (i, (column, lower, _)) in terms.iter().enumerate() {
        let values = if *column == Column::A { A_VALUES } else { B_VALUES };
        let null = (i > 0).then_some(None);
        let reached = values.into_iter().filter(|v| !lower || v.to_lowercase() == *v);
        let choices: Vec<Option<&'static str>> = reached.map(Some).chain(null).collect();
        all = all
            .into_iter()
            .flat_map(|start| {
                choices.iter().map(move |v| {
                    let mut next = start.clone();
                    next.push(*v);
                    next
                })
            })
            .collect();
    }
    all
}

fn qualifier(column: Column) -> &'static str {
    if column == Column::A { "a" } else { "b" }
}

fn put_cell(column: Column, timestamp: i64, value: &base::Value) -> Cell {
    let bytes = match column {
        Column::A => value.iter().next().unwrap().to_string(),
        Column::B => serde_json::to_string(value).unwrap(),
    };
    Cell::put("f", qualifier(column), timestamp, bytes)
}

fn cells(event: &Event) -> Vec<Cell> {
    let marker = |kind, column| Cell::delete(kind, "f", qualifier(column), event.timestamp);
    event
        .changes
        .iter()
        .map(|change| match change {
            Change::Put(column, value) => put_cell(*column, event.timestamp, value),
            Change::DeleteColumn(column) => marker(CellKind::DeleteColumn, *column),
            Change::DeleteVersion(column) => marker(CellKind::DeleteVersion, *column),
            Change::DeleteFamily => marker(CellKind::DeleteFamily, Column::A),
            Change::DeleteFamilyVersion => marker(CellKind::DeleteFamilyVersion, Column::A),
        })
        .collect()
}
