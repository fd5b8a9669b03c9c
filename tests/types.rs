//! Types and base encodings beside fixtures of other programs, and row keys made of parts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use proptest::prelude::*;
use serde::Deserialize;
use sideindex::schema::{
    Attribute, AttributeSpec, AttributeValue, BaseEncoding, Decimal, Key, Value, calendar, encoding, term,
};

fn attribute(kind: &str, encoding: BaseEncoding) -> Attribute {
    Attribute { encoding, ..Attribute::inferred("x", kind.parse().unwrap(), "f", 1) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// `tests/fixtures/types.json`: made by another program, from the definitions of the formats alone. Terms are at rest; HBase's
/// bytes are what its class `Bytes` writes and reads.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypeFixtures {
    terms: Vec<TextFixture>,
    hbase: Vec<TextFixture>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextFixture {
    #[serde(rename = "type")]
    kind: String,
    text: String,
    hex: String,
    /// False for bytes that are read and not written.
    #[serde(default = "yes")]
    written: bool,
}

fn yes() -> bool {
    true
}

#[test]
fn further_types_are_as_they_were() {
    let fixtures: TypeFixtures = serde_json::from_str(include_str!("fixtures/types.json")).unwrap();
    assert!(fixtures.terms.len() >= 28 && fixtures.hbase.len() >= 32);
    for f in &fixtures.terms {
        let value = encoding::parse(&attribute(&f.kind, BaseEncoding::Utf8), &f.text).unwrap();
        let mut term = Vec::new();
        term::encode(&value, &mut term);
        assert_eq!(hex(&term), f.hex, "term {} {}", f.kind, f.text);
    }
    for f in &fixtures.hbase {
        let attribute = attribute(&f.kind, BaseEncoding::Hbase);
        let value = AttributeValue::One(encoding::parse(&attribute, &f.text).unwrap());
        let bytes: Vec<u8> =
            (0..f.hex.len()).step_by(2).map(|i| u8::from_str_radix(&f.hex[i..i + 2], 16).unwrap()).collect();
        assert_eq!(encoding::decode(&attribute, &bytes).unwrap(), value, "{} {}", f.kind, f.text);
        if f.written {
            assert_eq!(hex(&encoding::encode(&attribute, &value)), f.hex, "{} {}", f.kind, f.text);
        }
    }
}

#[test]
fn decimals_out_of_bounds_are_refused_at_once() {
    for text in ["1e1000", "1e-1001", "1e999999999999", "-1e-9223372036854775807", "1e9223372036854775808"] {
        assert!(text.parse::<Decimal>().is_err(), "{text}");
    }
    for text in ["", ".", "e5", "NaN", "inf", "1_000", "0x10", " 1", "1 ", "--1", "1e", "٣"] {
        assert!(text.parse::<Decimal>().is_err(), "{text:?}");
    }
    assert_eq!("0e999999".parse::<Decimal>().unwrap().to_string(), "0");
    assert!("9".repeat(1_001).parse::<Decimal>().unwrap_err().to_string().contains("1000 digits before the point"));
    assert!("9".repeat(100_000).parse::<Decimal>().is_err());
}

#[test]
fn json_numbers_are_decimals_only_where_they_are_exact() {
    let read = |json: &str| {
        let json = serde_json::from_str(json).unwrap();
        encoding::from_json(&attribute("decimal", BaseEncoding::Json), &json).map(|v| v.unwrap().to_string())
    };
    for (json, shown) in [
        ("1.10", "1.1"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551615", "18446744073709551615"),
        ("0.000000123456789012345", "0.000000123456789012345"),
        ("-1e-7", "-0.0000001"),
        ("\"0.12345678901234567890\"", "0.1234567890123456789"),
    ] {
        assert_eq!(read(json).unwrap(), shown, "{json}");
    }
    for json in ["0.12345678901234567", "18446744073709551617", "true", "\"x\""] {
        assert!(read(json).unwrap_err().to_string().contains("decimal"), "{json}");
    }
}

#[test]
fn timestamps_are_read_in_every_form_or_refused() {
    let noon = Some(1_796_126_400_000);
    for text in ["2026-12-01T12:00:00Z", "2026-12-01T12:00:00.000+00:00", "2026-12-01T07:30:00-04:30", "1796126400000"]
    {
        assert_eq!(calendar::parse(text), noon, "{text}");
    }
    for text in [
        "",
        "2026",
        "2026-13-01T00:00:00Z",
        "2026-12-01T12:00:00",
        "2026-12-01T12:00:00.0001Z",
        "noon",
        "1.5",
        "2026-12-01T12:00:00+01:00[Europe/Berlin]",
    ] {
        assert_ne!(calendar::parse(text), noon, "{text}");
        assert!(text == "2026" || calendar::parse(text).is_none(), "{text}");
    }
    for ms in [i64::MIN, i64::MAX, 253_402_300_799_999, 253_402_300_800_000, -377_705_116_800_001] {
        assert_eq!(calendar::parse(&calendar::show(ms)), Some(ms));
    }
}

#[test]
fn declarations_are_read_and_refused_by_what_is_wrong() {
    for text in ["a:int", "a:text[]", "a:decimal:hbase", "a:bytes:hbase:f:q", "a:bytes:json:f:q:r"] {
        assert_eq!(text.parse::<AttributeSpec>().unwrap().to_string(), text);
    }
    for (text, message) in [
        ("a", "name:type[:encoding[:family:qualifier]]"),
        ("a:colour", "unknown attribute type"),
        ("a:int:phoenix", "expected utf8, json, hbase"),
        ("a:int:utf8:f", "expected family:qualifier"),
    ] {
        let error = text.parse::<AttributeSpec>().unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let arrays = "a:int[]:hbase".parse::<AttributeSpec>().unwrap().resolve("f", 1).unwrap_err().to_string();
    assert!(arrays.contains("expected the encoding json for int[], found hbase"), "{arrays}");
}

/// A kind of part with values for it; those of one kind are close to each other.
fn kind_and_values(last: bool) -> BoxedStrategy<(String, Vec<Value>)> {
    let text = |chars: &'static [char], len: std::ops::RangeInclusive<usize>| {
        let one = prop::collection::vec(prop::sample::select(chars), len);
        prop::collection::vec(one.prop_map(|c| Value::Text(c.into_iter().collect())), 6)
    };
    let bytes = |values: &'static [u8], len: std::ops::RangeInclusive<usize>| {
        let one = prop::collection::vec(prop::sample::select(values), len);
        prop::collection::vec(one.prop_map(|b| Value::Bytes(b.into())), 6)
    };
    let ints =
        prop::collection::vec(prop_oneof![-2..2i64, Just(-(1 << 31)), Just((1 << 31) - 1)].prop_map(Value::Int), 6);
    let int_kinds = prop::sample::select(vec!["int", "int:4", "int ordered", "int:4 ordered"]);
    let open = prop_oneof![
        (Just("text".to_owned()), text(&['a', 'b', '\0', '\u{1}', '\u{ff}'], 0..=3)),
        (Just("bytes".to_owned()), bytes(&[0, 1, 0x61, 0xFF], 0..=3)),
        (Just("text:3".to_owned()), text(&['a', 'b', '\0'], 3..=3)),
        (Just("bytes:2".to_owned()), bytes(&[0, 1, 0xFF], 2..=2)),
        (int_kinds.prop_map(str::to_owned), ints),
    ];
    if last {
        return open.boxed();
    }
    prop_oneof![
        2 => open,
        1 => (Just("text sep '|'".to_owned()), text(&['a', '}', '!'], 0..=3)),
        1 => (Just("bytes sep '\\x00'".to_owned()), bytes(&[1, 0xFF], 0..=3)),
    ]
    .boxed()
}

/// A key of one to four parts, perhaps under a hash, and some values of each part.
fn key_and_values() -> impl Strategy<Value = (Key, Vec<Vec<Value>>)> {
    let parts = (prop::collection::vec(kind_and_values(false), 0..3), kind_and_values(true));
    (parts, prop::option::of((any::<bool>(), 1..8u8))).prop_map(|((mut parts, last), hash)| {
        parts.push(last);
        let names: Vec<String> = (0..parts.len()).map(|i| format!("p{i}")).collect();
        let mut text: Vec<String> = names.iter().zip(&parts).map(|(n, (kind, _))| format!("{n}={kind}")).collect();
        let mut values: Vec<Vec<Value>> = parts.into_iter().map(|(_, values)| values).collect();
        if let Some((md5, len)) = hash {
            text.insert(0, format!("h={}({}):{len}", if md5 { "md5" } else { "xxh3" }, names[0]));
            values.insert(0, Vec::new());
        }
        (text.join(", ").parse().unwrap(), values)
    })
}

/// The choices of one value of each part, none for a hash.
fn choices(values: &[Vec<Value>]) -> Vec<Vec<Option<Value>>> {
    (0..36)
        .map(|n: usize| {
            let pick = |(i, of): (usize, &Vec<Value>)| of.get((n / (i + 1) + n * i) % 6).cloned();
            values.iter().enumerate().map(pick).collect()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn keys_come_apart_into_what_they_were_joined_of((key, values) in key_and_values(), given in 0..5usize) {
        prop_assert_eq!(key.to_string().parse::<Key>().unwrap(), key.clone());
        let choices = choices(&values);
        let mut rows = Vec::new();
        for choice in &choices {
            // Only an empty key cannot be.
            let Ok(row) = key.join(choice) else {
                prop_assert!(choice.iter().flatten().all(|v| v.to_string().is_empty() || v.to_string() == "\\x"));
                continue;
            };
            let parts = key.split(&row).unwrap();
            for (part, chosen) in parts.iter().zip(choice) {
                prop_assert!(chosen.as_ref().is_none_or(|chosen| chosen == part));
            }
            // The hash may be given as well.
            let whole: Vec<Option<Value>> = parts.iter().cloned().map(Some).collect();
            prop_assert_eq!(key.join(&whole).unwrap(), row.clone());
            rows.push((row, parts));
        }
        // A prefix covers exactly the keys with its leading values.
        let given = given.min(key.parts().len());
        for (_, leading) in &rows {
            let leading = &leading[..given];
            // What the hash is made of may come later.
            let known: Vec<Option<Value>> = leading.iter().cloned().map(Some).collect();
            let prefix = key.prefix(&known).unwrap();
            for (row, parts) in &rows {
                let covers = if given == key.parts().len() { *row == prefix } else { row.starts_with(&prefix) };
                prop_assert_eq!(covers, parts[..given] == *leading, "{} {:?}", key, row);
            }
        }
    }

    #[test]
    fn keys_are_in_the_order_of_their_parts_where_that_is_promised((key, values) in key_and_values()) {
        use sideindex::schema::key::{Extent, PartKind};
        let promised = key.parts().iter().all(|p| match p.kind {
            PartKind::Text(extent) | PartKind::Bytes(extent) => !matches!(extent, Extent::Separated(1..)),
            PartKind::Int { ordered, .. } => ordered,
            PartKind::Hash { .. } => false,
        });
        if !promised {
            return Ok(());
        }
        let choices = choices(&values);
        let rows: Vec<_> = choices.iter().filter_map(|c| Some((key.join(c).ok()?, c))).collect();
        for (a, parts_of_a) in &rows {
            for (b, parts_of_b) in &rows {
                prop_assert_eq!(a.cmp(b), parts_of_a.cmp(parts_of_b));
            }
        }
    }

    #[test]
    fn no_key_makes_splitting_panic((key, values) in key_and_values(), row in prop::collection::vec(any::<u8>(), 0..20), cut in 0..20usize) {
        let _ = key.split(&row);
        if let Ok(row) = key.join(&choices(&values)[0]) {
            let cut = &row[..cut.min(row.len())];
            if let Ok(parts) = key.split(cut) {
                prop_assert_eq!(key.join(&parts.into_iter().map(Some).collect::<Vec<_>>()).unwrap(), cut);
            }
        }
    }
}

#[test]
fn keys_that_do_not_fit_say_why() {
    let key: Key = "hash=md5(user):2, user=text:4, n=int:4, action=text, month=text".parse().unwrap();
    let row = key.join(&[None, Some("anna".into()), Some(7.into()), Some("a\0b".into()), Some("2026".into())]).unwrap();
    assert_eq!(hex(&row), "a70f616e6e610000000761 00ff 62 0001 32303236".replace(' ', ""));
    for (row, message) in [
        (&b"\xa7"[..], "part hash: expected 2 bytes, found 1"),
        (b"\xa7\x0fan", "part user: expected 4 bytes, found 2"),
        (b"\xa7\x0f\xff\xff\xff\xff", "part user: expected text in UTF-8"),
        (b"\xa7\x0fanna\0\0", "part n: expected 4 bytes, found 2"),
        (b"\xa7\x0fanna\0\0\0\x07a", "part action: expected a terminator"),
        (b"\xa7\x0eanna\0\0\0\x07a\0\x01", "part hash: expected \\xa70f, the hash of the other parts, found \\xa70e"),
    ] {
        let error = key.split(row).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let fixed: Key = "a=text:1, b=bytes:1".parse().unwrap();
    assert!(fixed.split(b"xyz").unwrap_err().to_string().contains("expected the end of the key"));
    for (a, b, message) in [
        (Some("xy".into()), Some(Value::Bytes("z".into())), "part a: expected 1 bytes, found 2: xy"),
        (Some(1.into()), Some(Value::Bytes("z".into())), "part a: expected text, found 1"),
        (Some("x".into()), None, "expected a value for the key part b"),
    ] {
        let error = fixed.join(&[a, b]).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn keys_are_read_or_refused_by_what_is_wrong() {
    for text in [
        "a=text",
        "a=md5(b, c):16, b=int:4 ordered, c=bytes sep '\\xff', d=text:12",
        "a=text sep ',', b=xxh3(a):8, c=bytes",
        "a=text sep '\\x27', b=int",
    ] {
        assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
    }
    for (text, message) in [
        ("", "expected a key part as name=kind"),
        ("a", "expected a key part as name=kind"),
        ("a=colour", "key part a: expected text, text:4"),
        ("a=text:0", "key part a: expected a length of at least 1 byte"),
        ("a=text:x", "key part a: expected text, text:4"),
        ("a=int:3", "key part a: expected text, text:4"),
        ("a=float", "key part a: expected text, text:4"),
        ("a=text, a=text", "key part a: there are two parts of this name"),
        ("id=text", "key part id: id names the whole row key"),
        ("a=text sep '|'", "the last part runs to the end"),
        ("a=text sep '||', b=text", "expected one separating byte"),
        ("h=md5(a):17, a=text", "expected 1 to 16 bytes of md5, found 17"),
        ("h=md5():2, a=text", "expected the names of the parts"),
        ("h=md5(b):2, a=text", "b, which is to be hashed, is no part"),
        ("h=md5(a):2, a=xxh3(h):2", "a is a hash itself"),
        ("h=sha1(a):2, a=text", "key part h: expected text, text:4"),
    ] {
        let error = text.parse::<Key>().unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}
