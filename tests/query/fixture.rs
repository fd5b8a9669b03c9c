//! A random table: its schema, its rows, and the entries that stand for them, right ones and wrong ones.

use crate::cond::{Cond, Ground, Name, Operand, Speller};
use crate::data::{Fun, Held, Kind, V, apply, random_key};
use crate::oracle;
use bytes::Bytes;
use fastrand::Rng;
use sideindex::model::{Cell, RowMutation};
use sideindex::query;
use sideindex::schema::{
    self, Attribute, AttributeType, BaseEncoding, Catalog, Definition, Function, Lifecycle, META_FAMILY, META_TABLE,
    ScalarType, TableSchema, Value, entry, term,
};
use sideindex::store::embedded::EmbeddedStore;
use sideindex::store::{Durability, Store, TableDescriptor};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub array: bool,
    encoding: BaseEncoding,
    family: &'static str,
    code: u16,
}

/// A definition as the test knows it.
pub struct Made {
    pub terms: Vec<Operand>,
    pub filter: Option<Cond>,
    /// Columns.
    covered: Vec<usize>,
    definition: Definition,
}

/// An entry, right or wrong.
struct Entry {
    definition: usize,
    key: Vec<u8>,
    covered: Vec<u8>,
    disputed: bool,
    right: bool,
}

pub struct Fixture {
    pub table: String,
    pub columns: Vec<Column>,
    pub schema: TableSchema,
    pub rows: BTreeMap<Vec<u8>, Vec<Held>>,
    /// Whether some entries are wrong and not marked so, as `indexed` cannot see.
    pub has_outdated_undisputed: bool,
    pub most_rows: usize,
    made: Vec<Made>,
    entries: Vec<Entry>,
}

/// Names as they may be: ones that SQL has to quote among them.
const NAMES: [&str; 8] = ["a", "b", "order", "c-d", "e.f", "G", "h_1", "select"];

impl Fixture {
    pub fn random(rng: &mut Rng, table: &str, most_rows: usize) -> Self {
        let columns: Vec<Column> = (0..rng.usize(1..=6)).map(|i| random_column(i, rng)).collect();
        let mut rows = BTreeMap::new();
        for _ in 0..rng.usize(0..most_rows) {
            let held: Vec<Held> = columns.iter().map(|c| random_held(c, rng)).collect();
            rows.insert(random_key(rng, most_rows), held);
        }
        // A row without cells is none.
        rows.retain(|_, held: &mut Vec<Held>| held.iter().any(|h| !matches!(h, Held::Null)));
        let attributes: Vec<Attribute> = columns.iter().map(attribute).collect();
        let families: Vec<String> = vec!["f".into(), "g".into()];
        let bare = TableSchema::new(table.to_owned(), families.clone(), attributes.clone(), Vec::new());
        let ground = Ground::new(&columns, &rows, most_rows);
        let made: Vec<Made> = (0..rng.usize(0..=5)).map(|i| random_definition(i, &ground, &bare, rng)).collect();
        let definitions = made.iter().map(|m| m.definition.clone()).collect();
        let schema = TableSchema::new(table.to_owned(), families, attributes, definitions);
        let mut fixture = Self {
            table: table.to_owned(),
            columns,
            schema,
            rows,
            has_outdated_undisputed: rng.bool(),
            most_rows,
            made,
            entries: Vec::new(),
        };
        fixture.entries = fixture.right_entries(rng);
        let wrong = fixture.wrong_entries(rng);
        fixture.entries.extend(wrong);
        fixture
    }

    pub fn ground(&self) -> Ground<'_> {
        Ground::new(&self.columns, &self.rows, self.most_rows)
    }

    /// The definitions that may be read.
    pub fn active(&self) -> impl Iterator<Item = &Made> {
        self.made.iter().filter(|m| m.definition.state == Lifecycle::Active)
    }

    fn right_entries(&self, rng: &mut Rng) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (number, made) in self.made.iter().enumerate() {
            // Nothing may be read of a definition that is not active: it has wrong entries only.
            if made.definition.state != Lifecycle::Active {
                continue;
            }
            for (row, held) in &self.rows {
                if made.filter.as_ref().is_some_and(|f| oracle::truth(f, row, held) != Some(true)) {
                    continue;
                }
                for terms in made.combinations(held) {
                    let key = entry::encode(&made.definition, &terms.concat(), row).unwrap();
                    let disputed = rng.u8(0..6) == 0;
                    // What a disputed entry covers may be anything.
                    let anything = disputed && rng.bool();
                    let covered = made.covered.iter().flat_map(|c| match held[*c].elements() {
                        _ if anything => encoded(&V::random(self.columns[*c].kind, rng)),
                        [one] => encoded(one),
                        _ => vec![term::NULL],
                    });
                    let covered = covered.collect();
                    entries.push(Entry { definition: number, key, covered, disputed, right: true });
                }
            }
        }
        entries
    }

    /// Entries that say of a row, or of one that isn't there, what isn't so.
    fn wrong_entries(&self, rng: &mut Rng) -> Vec<Entry> {
        let right: BTreeSet<&[u8]> = self.entries.iter().map(|e| e.key.as_slice()).collect();
        let rows: Vec<&Vec<u8>> = self.rows.keys().collect();
        let mut wrong: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
        for (number, made) in self.made.iter().enumerate() {
            for _ in 0..rng.usize(0..self.most_rows / 2) {
                let row = match rng.u8(0..5) {
                    0 => random_key(rng, self.most_rows),
                    _ if rows.is_empty() => continue,
                    _ => rows[rng.usize(0..rows.len())].clone(),
                };
                let mut terms = Vec::new();
                for (place, of) in made.terms.iter().enumerate() {
                    let value = if place > 0 && rng.u8(0..5) == 0 {
                        vec![term::NULL]
                    } else {
                        encoded(&apply(&of.functions, &V::random(self.columns[of.column()].kind, rng)))
                    };
                    terms.extend_from_slice(&made.definition.shape(place).encode(&value).unwrap());
                }
                let covered =
                    made.covered.iter().flat_map(|c| encoded(&V::random(self.columns[*c].kind, rng))).collect();
                let key = entry::encode(&made.definition, &terms, &row).unwrap();
                if !right.contains(key.as_slice()) {
                    let disputed = !self.has_outdated_undisputed || rng.bool();
                    wrong.insert(key.clone(), Entry { definition: number, key, covered, disputed, right: false });
                }
            }
        }
        wrong.into_values().collect()
    }

    pub async fn write(&self, store: &EmbeddedStore) {
        store.create_table(&TableDescriptor::new(&self.table, &["f", "g"], 1)).await.unwrap();
        store.create_table(&TableDescriptor::new(self.schema.index_table(), &["i"], 1)).await.unwrap();
        record(store, &self.schema).await;
        let base = self.rows.iter().map(|(key, held)| {
            let cells = self.columns.iter().zip(held).filter_map(|(column, held)| {
                let value = cell(column, held)?;
                Some(Cell::put(column.family, format!("q-{}", column.name), 7, value))
            });
            RowMutation::new(key.clone(), cells.collect())
        });
        store.mutate(&self.table, base.collect(), Durability::Relaxed).await.unwrap();
        let entries = self.entries.iter().map(|e| {
            let put = Cell::put(entry::FAMILY, entry::QUALIFIER, 7, entry::encode_value(e.disputed, &e.covered));
            RowMutation::new(e.key.clone(), vec![put])
        });
        store.mutate(&self.schema.index_table(), entries.collect(), Durability::Relaxed).await.unwrap();
    }
}

/// Writes a table's definitions down where a running query looks whether they are still there.
pub async fn record(store: &EmbeddedStore, schema: &TableSchema) {
    Catalog::open(Arc::new(store.clone())).await.unwrap();
    if schema.definitions().is_empty() {
        return;
    }
    let put = |d: &Definition| Cell::put(META_FAMILY, d.name.clone(), 1, serde_json::to_vec(d).unwrap());
    let row = RowMutation::new(format!("definition/{}", schema.name), schema.definitions().iter().map(put).collect());
    store.mutate(META_TABLE, vec![row], Durability::Relaxed).await.unwrap();
}

fn random_column(i: usize, rng: &mut Rng) -> Column {
    let kind = [Kind::Bool, Kind::Int, Kind::Float, Kind::Text, Kind::Text][rng.usize(0..5)];
    let array = rng.u8(0..3) == 0;
    Column {
        name: NAMES[i],
        kind,
        array,
        encoding: match rng.u8(0..4) {
            _ if array => BaseEncoding::Json,
            0 => BaseEncoding::Json,
            1 => BaseEncoding::Hbase,
            _ => BaseEncoding::Utf8,
        },
        family: if rng.u8(0..4) == 0 { "g" } else { "f" },
        code: [1, 2, 0xFF, 0x100, 0xFFFE, 0xFFFF][i],
    }
}

fn random_held(column: &Column, rng: &mut Rng) -> Held {
    match rng.u8(0..12) {
        0..=2 => Held::Null,
        3 if rng.bool() && !(column.kind == Kind::Text && column.encoding != BaseEncoding::Json) => Held::Broken,
        // No element at all only as it may be met in a base table: sideindex writes none.
        _ if column.array => Held::Many((0..rng.usize(0..4)).map(|_| V::random(column.kind, rng)).collect()),
        _ => Held::One(V::random(column.kind, rng)),
    }
}

fn random_definition(i: usize, ground: &Ground<'_>, bare: &TableSchema, rng: &mut Rng) -> Made {
    let columns = ground.columns;
    let mut numbers: Vec<usize> = (0..columns.len()).collect();
    rng.shuffle(&mut numbers);
    let terms: Vec<Operand> = numbers.iter().take(rng.usize(1..=3)).map(|c| ground.of_column(*c, rng)).collect();
    rng.shuffle(&mut numbers);
    numbers.retain(|c| !columns[*c].array);
    numbers.truncate(if rng.u8(0..3) == 0 { rng.usize(0..=3) } else { 0 });
    let as_term = |operand: &Operand, rng: &mut Rng| schema::Term {
        operand: schema::Operand {
            code: columns[operand.column()].code,
            functions: operand
                .functions
                .iter()
                .map(|f| match f {
                    Fun::Trim => Function::Trim,
                    Fun::Lower => Function::Lower,
                    Fun::Nfkc => Function::Nfkc,
                })
                .collect(),
        },
        descending: rng.u8(0..3) == 0,
    };
    let filter = (rng.u8(0..4) == 0).then(|| {
        let column = rng.usize(0..columns.len());
        let operand = ground.of_column(column, rng);
        let one = ground.test(operand, rng);
        if rng.bool() { one } else { Cond::Or(vec![one, ground.test(ground.of_column(column, rng), rng)]) }
    });
    let bound = filter.as_ref().map(|filter| {
        let text = Speller { columns, rng, parameters: None }.cond(filter);
        query::filter(&text, bare).unwrap()
    });
    let definition = Definition {
        ordered: rng.bool(),
        salts: rng.u8(1..=4),
        state: if rng.u8(0..8) == 0 { Lifecycle::Building } else { Lifecycle::Active },
        covered: numbers.iter().map(|c| columns[*c].code).collect(),
        filter: bound,
        value_limit: [0, 16, 256][rng.usize(0..3)],
        ..Definition::new(
            format!("d{i}"),
            [0xFFFF, 1, 2, 0xFF, 0xFF00][i],
            terms.iter().map(|t| as_term(t, rng)).collect::<Vec<_>>(),
        )
    };
    Made { terms, filter, covered: numbers, definition }
}

impl Operand {
    /// The column; the operand is not the row key.
    pub fn column(&self) -> usize {
        let Name::Column(column) = self.name else { panic!("the row key is no column") };
        column
    }
}

impl Made {
    /// The terms of every entry a row has: none without a first term, null for a later one that is missing.
    fn combinations(&self, held: &[Held]) -> Vec<Vec<Vec<u8>>> {
        let mut combinations: Vec<Vec<Vec<u8>>> = vec![Vec::new()];
        for (place, of) in self.terms.iter().enumerate() {
            let shape = self.definition.shape(place);
            let values = held[of.column()].elements().iter().map(|element| encoded(&apply(&of.functions, element)));
            let mut elements: BTreeSet<Vec<u8>> = values.collect();
            if elements.is_empty() && place > 0 {
                elements.insert(vec![term::NULL]);
            }
            let forms: Vec<Vec<u8>> = elements.iter().map(|e| shape.encode(e).unwrap().into_owned()).collect();
            combinations = combinations
                .iter()
                .flat_map(|c| forms.iter().map(move |e| c.iter().cloned().chain([e.clone()]).collect()))
                .collect();
        }
        combinations
    }
}

fn encoded(v: &V) -> Vec<u8> {
    let mut out = Vec::new();
    term::encode(&value(v), &mut out);
    out
}

fn attribute(column: &Column) -> Attribute {
    let scalar = match column.kind {
        Kind::Bool => ScalarType::Bool,
        Kind::Int => ScalarType::Int,
        Kind::Float => ScalarType::Float,
        Kind::Text => ScalarType::Text,
    };
    Attribute {
        name: column.name.to_owned(),
        code: column.code,
        kind: AttributeType { scalar, array: column.array },
        encoding: column.encoding,
        family: column.family.to_owned(),
        qualifier: format!("q-{}", column.name),
        key_part: None,
    }
}

/// The library's value, which only its codecs see.
fn value(v: &V) -> Value {
    match v {
        V::Bool(b) => (*b).into(),
        V::Int(i) => (*i).into(),
        V::Float(f) => (*f).into(),
        V::Text(t) => t.as_str().into(),
    }
}

fn cell(column: &Column, held: &Held) -> Option<Bytes> {
    Some(match (held, column.encoding) {
        (Held::Null, _) => return None,
        (Held::Broken, BaseEncoding::Utf8) => Bytes::from_static(b"\xffneither"),
        (Held::Broken, BaseEncoding::Json) => Bytes::from_static(b"{\"no\": 1}"),
        // Three bytes are no number, and no text either.
        (Held::Broken, BaseEncoding::Hbase) => Bytes::from_static(b"\xff\xff\xff"),
        (Held::One(v), BaseEncoding::Hbase) => v.hbase().into(),
        (Held::One(v), BaseEncoding::Utf8) => v.text().into(),
        (Held::One(v), BaseEncoding::Json) => v.stored_json().into(),
        (Held::Many(values), _) => {
            format!("[{}]", values.iter().map(V::stored_json).collect::<Vec<_>>().join(",")).into()
        }
    })
}

impl fmt::Display for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "table {}", self.table)?;
        for c in &self.columns {
            let array = if c.array { "[]" } else { "" };
            writeln!(f, "  {} {:?}{array} {:?} code {}", c.name, c.kind, c.encoding, c.code)?;
        }
        for made in &self.made {
            let d = &made.definition;
            let (words, limit) = (self.schema.describe(d), d.value_limit);
            writeln!(f, "  {} {words} salts {} limit {limit} {:?} {:?}", d.name, d.salts, d.state, made.filter)?;
        }
        for (key, held) in &self.rows {
            writeln!(f, "  row {} {held:?}", key.escape_ascii())?;
        }
        for e in self.entries.iter().filter(|e| !e.right) {
            let name = &self.made[e.definition].definition.name;
            writeln!(f, "  wrong in {name}, disputed {}: {}", e.disputed, e.key.escape_ascii())?;
        }
        Ok(())
    }
}
