//! Encodings: order, round trip, golden fixtures, and no panic on any bytes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use proptest::prelude::*;
use serde::Deserialize;
use sideindex::model::{Cell, CellKind};
use sideindex::schema::state::{self, Candidate, TermValue};
use sideindex::schema::term::Shape;
use sideindex::schema::{
    Attribute, AttributeValue, BaseEncoding, Decimal, Definition, Lifecycle, ScalarType, Value, calendar, encoding,
    entry, term,
};
use std::cmp::Ordering;

fn encoded(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    term::encode(value, &mut out);
    out
}

/// Text with what encodings stumble over: zero bytes, and bytes next to the escapes.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![Just('\0'), Just('\u{1}'), Just('\u{ff}'), any::<char>()], 0..12)
        .prop_map(|chars| chars.into_iter().collect())
}

/// Decimals near each other, decimals of every size, and the same numbers in several spellings.
fn decimal() -> impl Strategy<Value = Decimal> {
    let near = (-1_100..1_100i64, 0..4u32).prop_map(|(n, scale)| format!("{n}e-{scale}"));
    let any = ("[+-]?[0-9]{1,40}", -900..900i32).prop_map(|(digits, exponent)| format!("{digits}e{exponent}"));
    let long = "-?[1-9][0-9]{0,999}\\.[0-9]{0,1000}";
    prop_oneof![4 => near, 4 => any, 1 => long].prop_map(|text| text.parse().unwrap())
}

fn bytes() -> impl Strategy<Value = bytes::Bytes> {
    prop::collection::vec(prop_oneof![Just(0), Just(1), Just(0xFF), any::<u8>()], 0..12).prop_map(Into::into)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        decimal().prop_map(Value::Decimal),
        prop_oneof![any::<i64>(), -3..3i64, 1_700_000_000_000..1_800_000_000_000i64].prop_map(Value::Timestamp),
        bytes().prop_map(Value::Bytes),
        any::<bool>().prop_map(Value::from),
        prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), -3..3i64].prop_map(Value::from),
        prop_oneof![any::<f64>(), Just(-0.0), Just(f64::NAN), Just(f64::NEG_INFINITY)].prop_map(Value::from),
        text().prop_map(Value::Text),
    ]
}

fn same_type_pair() -> impl Strategy<Value = (Value, Value)> {
    (value(), value()).prop_filter("two of one type", |(a, b)| std::mem::discriminant(a) == std::mem::discriminant(b))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn terms_keep_the_order_of_values((a, b) in same_type_pair(), tail in any::<[u8; 3]>()) {
        prop_assert_eq!(encoded(&a).cmp(&encoded(&b)), a.cmp(&b));
        // Whatever follows, a term decides before it: keys are terms and a row key.
        if a != b {
            let key = |v: &Value, tail: &[u8]| [encoded(v), tail.to_vec()].concat();
            prop_assert_eq!(key(&a, &tail).cmp(&key(&b, &[])), a.cmp(&b));
        }
        prop_assert!(vec![term::NULL] < encoded(&a));
    }

    #[test]
    fn terms_round_trip_and_end_themselves(values in prop::collection::vec(value(), 0..4), tail in any::<[u8; 3]>()) {
        let all: Vec<u8> = values.iter().flat_map(encoded).collect();
        let split = term::split(&all).unwrap();
        prop_assert_eq!(split.len(), values.len());
        for (one, v) in split.iter().zip(&values) {
            prop_assert_eq!(term::decode(one).unwrap(), Some(v.clone()));
            prop_assert_eq!(term::len(&[*one, &tail].concat()).unwrap(), one.len());
        }
    }

    #[test]
    fn no_bytes_make_decoders_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), terms in 0..4usize) {
        let _ = term::len(&bytes);
        let _ = term::decode(&bytes);
        let _ = term::split(&bytes);
        let _ = entry::decode(&bytes, &definition(terms));
        let _ = entry::decode_value(&bytes);
        let _ = sideindex::source::file::parse(&bytes);
        let _ = state::decode(&Cell::put("s", bytes.clone(), 1, bytes.clone()));
        for encoding in BaseEncoding::ALL {
            for kind in ScalarType::ALL.map(|s| s.name().to_owned()) {
                let _ = encoding::decode(&attribute(&kind, encoding), &bytes);
                let _ = encoding::decode(&attribute(&format!("{kind}[]"), encoding), &bytes);
            }
        }
    }

    /// Bytes that start like a term, so that the deeper checks are reached.
    #[test]
    fn no_damaged_term_makes_decoders_panic(v in value(), cut in 0..20usize, flip in any::<(usize, u8)>()) {
        let mut bytes = encoded(&v);
        bytes.truncate(cut.max(1));
        let at = flip.0 % bytes.len();
        bytes[at] ^= flip.1;
        let _ = term::decode(&bytes);
        let _ = term::split(&bytes);
    }

    #[test]
    fn base_encodings_round_trip(v in value(), many in prop::collection::vec(value(), 1..4)) {
        for encoding in BaseEncoding::ALL {
            let attribute = attribute(kind(&v), encoding);
            let value = AttributeValue::One(v.clone());
            let decoded = encoding::decode(&attribute, &encoding::encode(&attribute, &value)).unwrap();
            prop_assert_eq!(&decoded, &value);
            // Not only equal: the same to whoever reads it.
            prop_assert_eq!(decoded.to_string(), value.to_string());
        }
        let attribute = attribute(&format!("{}[]", kind(&many[0])), BaseEncoding::Json);
        let same = many.iter().filter(|v| kind(v) == kind(&many[0])).cloned().collect();
        let value = AttributeValue::Many(same);
        prop_assert_eq!(encoding::decode(&attribute, &encoding::encode(&attribute, &value)).unwrap(), value);
    }

    #[test]
    fn what_is_shown_reads_back(v in value()) {
        prop_assert_eq!(encoding::parse(&attribute(kind(&v), BaseEncoding::Utf8), &v.to_string()).unwrap(), v.clone());
        let json = encoding::from_json(&attribute(kind(&v), BaseEncoding::Json), &v.to_json()).unwrap();
        prop_assert_eq!(json, Some(AttributeValue::One(v)));
    }

    /// Decimals against whole numbers of hundredths.
    #[test]
    fn decimals_are_ordered_like_numbers(a in -100_000..100_000i64, b in -100_000..100_000i64) {
        let decimal = |n: i64| Value::Decimal(format!("{}{}.{:02}", if n < 0 { "-" } else { "" }, n.abs() / 100, n.abs() % 100).parse().unwrap());
        prop_assert_eq!(encoded(&decimal(a)).cmp(&encoded(&decimal(b))), a.cmp(&b));
    }

    /// Timestamps against the calendar, counted out day by day.
    #[test]
    fn timestamps_are_shown_by_the_calendar(days in 0..40_000i64, ms in 0..86_400_000i64) {
        let (mut year, mut month, mut day) = (1970, 0, days);
        let leap = |y: i64| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
        let length = |y: i64, m: usize| [31, if leap(y) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][m];
        while day >= length(year, month) {
            day -= length(year, month);
            (year, month) = if month == 11 { (year + 1, 0) } else { (year, month + 1) };
        }
        let (s, ms_) = (ms / 1000, ms % 1000);
        let shown = format!("{year}-{:02}-{:02}T{:02}:{:02}:{:02}.{ms_:03}Z", month + 1, day + 1, s / 3600, s / 60 % 60, s % 60);
        prop_assert_eq!(calendar::show(days * 86_400_000 + ms), shown);
    }

    #[test]
    fn entry_keys_come_apart(values in prop::collection::vec(value(), 1..4), row in prop::collection::vec(any::<u8>(), 1..20), salts in 1..5u8, ordered: bool) {
        let definition = Definition { salts, ordered, ..definition(values.len()) };
        let terms: Vec<u8> = values.iter().flat_map(encoded).collect();
        let key = entry::encode(&definition, &terms, &row).unwrap();
        let parts = entry::decode(&key, &definition).unwrap();
        prop_assert_eq!(&key[parts.terms], &terms[..]);
        prop_assert_eq!(&key[parts.row], &row[..]);
        prop_assert!(key[0] < salts);
        prop_assert!(key.starts_with(&entry::prefix(key[0], definition.code, &terms)));
        let after = entry::after_prefix(&entry::prefix(key[0], definition.code, &terms)).unwrap();
        prop_assert!(key < after);
    }

    #[test]
    fn descending_key_forms_of_every_type_reverse_the_order((a, b) in same_type_pair(), tail in any::<[u8; 3]>()) {
        let shape = Shape { descending: true, limit: 0 };
        let form = |v: &Value| shape.encode(&encoded(v)).unwrap().into_owned();
        prop_assert_eq!(form(&a).cmp(&form(&b)), b.cmp(&a));
        prop_assert_eq!(shape.len(&[form(&a), tail.to_vec()].concat()).unwrap(), form(&a).len());
        prop_assert_eq!(shape.decode(&form(&a)).unwrap().unwrap().into_owned(), encoded(&a));
    }

    #[test]
    fn key_forms_keep_or_reverse_the_order(a in long_text(), b in long_text(), limit in prop::sample::select(vec![0u32, 16, 20]), descending: bool) {
        let shape = Shape { descending, limit };
        let (ta, tb) = (encoded(&a.as_str().into()), encoded(&b.as_str().into()));
        let (ka, kb) = (shape.encode(&ta).unwrap().into_owned(), shape.encode(&tb).unwrap().into_owned());
        let directed = |order: Ordering| if descending { order.reverse() } else { order };
        let limit = limit as usize;
        for (key, text, term) in [(&ka, &a, &ta), (&kb, &b, &tb)] {
            prop_assert_eq!(shape.len(&[key.as_slice(), b"rest"].concat()).unwrap(), key.len());
            match shape.decode(key).unwrap() {
                Some(whole) => prop_assert!(whole.as_ref() == &term[..] && (limit == 0 || text.len() <= limit)),
                None => prop_assert!(limit > 0 && text.len() > limit && key.len() <= 1 + 2 * limit + 18),
            }
        }
        prop_assert_eq!(ka == kb, a == b);
        // One is never a start of the other, so that rows of one value stand together.
        prop_assert!(ka == kb || !ka.starts_with(&kb));
        let starts_differ = a.as_bytes()[..a.len().min(limit.saturating_sub(3))] != b.as_bytes()[..b.len().min(limit.saturating_sub(3))];
        if limit == 0 || starts_differ {
            prop_assert_eq!(ka.cmp(&kb), directed(a.cmp(&b)));
        }
        // What a range from `a` on has to start with lets no `b` of the range out.
        let (reach, is_wide) = shape.reach(&ta).unwrap();
        if is_wide {
            prop_assert!(ka.starts_with(&reach));
            let stop = entry::after_prefix(&reach).unwrap();
            let is_in = if directed(b.cmp(&a)).is_ge() { kb >= reach.to_vec() } else { kb < stop };
            prop_assert!(is_in);
        } else {
            prop_assert_eq!(reach.as_ref(), &ka[..]);
            prop_assert_eq!(ka.cmp(&kb), directed(a.cmp(&b)));
        }
    }

    #[test]
    fn long_bytes_are_cut_like_texts(a in long_bytes(), b in long_bytes(), limit in 16..20u32, descending: bool) {
        let shape = Shape { descending, limit };
        let form = |v: &[u8]| shape.encode(&encoded(&Value::Bytes(v.to_vec().into()))).unwrap().into_owned();
        let (ka, kb) = (form(&a), form(&b));
        prop_assert_eq!(shape.len(&[&ka[..], b"rest"].concat()).unwrap(), ka.len());
        prop_assert_eq!(shape.decode(&ka).unwrap().is_none(), a.len() > limit as usize);
        prop_assert_eq!(ka == kb, a == b);
        prop_assert!(ka == kb || !ka.starts_with(&kb));
        let start = limit as usize - 3;
        if a[..a.len().min(start)] != b[..b.len().min(start)] {
            prop_assert_eq!(ka.cmp(&kb), if descending { b.cmp(&a) } else { a.cmp(&b) });
        }
    }

    #[test]
    fn key_forms_of_garbage_are_refused_without_panicking(bytes in prop::collection::vec(any::<u8>(), 0..40), descending: bool, limit in 0..20u32) {
        let shape = Shape { descending, limit };
        let _ = shape.len(&bytes);
        let _ = shape.decode(&bytes);
        let _ = shape.encode(&bytes);
        let _ = shape.reach(&bytes);
    }

    #[test]
    fn candidates_round_trip(v in prop::option::of(value()), source in 0..9i64, above in 0..9i64) {
        let value = v.map_or(TermValue::Tombstone, |v| TermValue::of(&AttributeValue::One(v)));
        let candidate = Candidate { as_of: source + above, source, value };
        prop_assert_eq!(state::decode(&candidate.put(7)).unwrap(), (7, candidate.clone()));
        let prune = candidate.prune(7, 3);
        prop_assert_eq!((prune.kind, &prune.qualifier), (CellKind::DeleteColumn, &candidate.put(7).qualifier));
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Decimal(_) => "decimal",
        Value::Timestamp(_) => "timestamp",
        Value::Text(_) => "text",
        Value::Bytes(_) => "bytes",
    }
}

/// Bytes around the limits, alike at the start.
fn long_bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec![0, 1, 0x61, 0x80, 0xFF]);
    (0..24usize, prop::collection::vec(part, 0..6)).prop_map(|(n, end)| [vec![0x61; n], end].concat())
}

/// Texts around the limits, alike at the start, with characters of several bytes and zeros.
fn long_text() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "a", "b", "é", "€", "𝄞", "\0", "\u{1}"]);
    (0..24usize, prop::collection::vec(part, 0..6)).prop_map(|(n, end)| "a".repeat(n) + &end.concat())
}

fn attribute(kind: &str, encoding: BaseEncoding) -> Attribute {
    Attribute {
        name: "x".into(),
        code: 1,
        kind: kind.parse().unwrap(),
        encoding,
        family: "f".into(),
        qualifier: "x".into(),
        key_part: None,
    }
}

fn definition(terms: usize) -> Definition {
    let terms = 1..=u16::try_from(terms).unwrap();
    Definition { state: Lifecycle::Active, ..Definition::new("d", 0x0102, terms) }
}

/// `tests/fixtures/formats.json`: bytes that are on disk somewhere. A change here is a new format, not a new fixture.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixtures {
    terms: Vec<TermFixture>,
    entries: Vec<EntryFixture>,
    entry_values: Vec<EntryValueFixture>,
    candidates: Vec<CandidateFixture>,
    definition: serde_json::Value,
    attribute: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermFixture {
    value: serde_json::Value,
    #[serde(rename = "type")]
    kind: String,
    hex: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryFixture {
    terms: Vec<String>,
    row: String,
    ordered: bool,
    salts: u8,
    hex: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryValueFixture {
    disputed: bool,
    hex: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CandidateFixture {
    as_of: i64,
    source: i64,
    /// Elements of a text array; null is a tombstone.
    value: Option<Vec<String>>,
    qualifier: String,
    cell: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn formats_are_as_they_were() {
    let fixtures: Fixtures = serde_json::from_str(include_str!("fixtures/formats.json")).unwrap();
    assert!(fixtures.terms.len() >= 20 && fixtures.entries.len() >= 5 && fixtures.candidates.len() >= 4);
    for f in &fixtures.terms {
        let bytes = if f.kind == "null" {
            vec![term::NULL]
        } else {
            let value = encoding::from_json(&attribute(&f.kind, BaseEncoding::Json), &f.value).unwrap().unwrap();
            encoded(&value.elements()[0])
        };
        assert_eq!(hex(&bytes), f.hex, "term {} {}", f.kind, f.value);
    }
    for f in &fixtures.entries {
        let definition = Definition { ordered: f.ordered, salts: f.salts, ..definition(f.terms.len()) };
        let terms: Vec<u8> = f.terms.iter().flat_map(|t| encoded(&t.as_str().into())).collect();
        let key = entry::encode(&definition, &terms, f.row.as_bytes()).unwrap();
        assert_eq!(hex(&key), f.hex, "entry of row {}", f.row);
    }
    for f in &fixtures.entry_values {
        assert_eq!(hex(&entry::encode_value(f.disputed, &[])), f.hex);
    }
    for f in &fixtures.candidates {
        let value = f.value.as_ref().map_or(TermValue::Tombstone, |elements| {
            TermValue::of(&AttributeValue::Many(elements.iter().map(|e| e.as_str().into()).collect()))
        });
        let cell = Candidate { as_of: f.as_of, source: f.source, value }.put(0x0304);
        assert_eq!((hex(&cell.qualifier), hex(&cell.value)), (f.qualifier.clone(), f.cell.clone()));
    }
    let format_1 = Definition { format: 1, value_limit: 0, ..definition(2) };
    assert_eq!(serde_json::to_value(format_1).unwrap(), fixtures.definition);
    assert_eq!(serde_json::to_value(attribute("text[]", BaseEncoding::Json)).unwrap(), fixtures.attribute);
    // What the records looked like when they were first written can still be read.
    serde_json::from_value::<Definition>(fixtures.definition).unwrap();
    serde_json::from_value::<Attribute>(fixtures.attribute).unwrap();
}

/// `tests/fixtures/formats-2.json`: what definitions of format 2 brought.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixtures2 {
    definition: serde_json::Value,
    key_forms: Vec<KeyFormFixture>,
    covered_entry_value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFormFixture {
    text: Option<String>,
    descending: bool,
    limit: u32,
    hex: String,
}

#[test]
fn formats_of_definitions_2_are_as_they_were() {
    let fixtures: Fixtures2 = serde_json::from_str(include_str!("fixtures/formats-2.json")).unwrap();
    let definition: Definition = serde_json::from_value(fixtures.definition.clone()).unwrap();
    assert_eq!(definition.format, 2);
    assert_eq!(serde_json::to_value(&definition).unwrap(), fixtures.definition);
    assert!(fixtures.key_forms.len() >= 6);
    for f in &fixtures.key_forms {
        let term = f.text.as_ref().map_or(vec![term::NULL], |text| encoded(&text.as_str().into()));
        let shape = Shape { descending: f.descending, limit: f.limit };
        assert_eq!(hex(&shape.encode(&term).unwrap()), f.hex, "{:?}", f.text);
    }
    let covered = [encoded(&7.into()), vec![term::NULL]].concat();
    assert_eq!(hex(&entry::encode_value(true, &covered)), fixtures.covered_entry_value);
}

#[test]
fn an_unknown_entry_format_is_refused() {
    let error = entry::decode_value(&[2, 0]).unwrap_err().to_string();
    assert!(error.contains("newer sideindex"), "{error}");
}

#[test]
fn wrong_types_say_what_was_expected_and_found() {
    let cases = [
        ("int", BaseEncoding::Utf8, &b"red"[..], "attribute x: expected int, found \"red\""),
        ("text[]", BaseEncoding::Json, b"[1]", "attribute x: expected text[], found 1"),
        ("bool", BaseEncoding::Json, b"null", "attribute x: expected bool, found null"),
        ("text", BaseEncoding::Utf8, b"\xff", "attribute x: expected text, found bytes that are not UTF-8: \\xff"),
    ];
    for (kind, encoding, bytes, message) in cases {
        let error = encoding::decode(&attribute(kind, encoding), bytes).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.kind(), sideindex::error::ErrorKind::WrongType);
    }
}

#[test]
fn types_are_inferred_from_first_values() {
    let infer = |json: &str| encoding::infer(&serde_json::from_str(json).unwrap()).map(|t| t.map(|t| t.to_string()));
    for (json, expected) in [
        ("\"a\"", Some("text")),
        ("1", Some("int")),
        ("1.5", Some("float")),
        ("9223372036854775808", Some("float")),
        ("true", Some("bool")),
        ("[1, 2.5]", Some("float[]")),
        ("[\"a\"]", Some("text[]")),
        ("[]", None),
        ("null", None),
    ] {
        assert_eq!(infer(json).unwrap().as_deref(), expected, "{json}");
    }
    for json in ["{}", "[[1]]", "[1, \"a\"]", "[null]"] {
        assert!(infer(json).is_err(), "{json}");
    }
}
