//! Values at rest: base cells, terms, candidates, mutations.

use crate::driver::{outcome, run};
use bytes::Bytes;
use sideindex::error::ErrorKind;
use sideindex::model::{Cell, CellKind, Position, RowMutation, wire};
use sideindex::schema::state::{self, Candidate, TermValue};
use sideindex::schema::term::{self, Shape};
use sideindex::schema::{Attribute, AttributeType, AttributeValue, BaseEncoding, ScalarType, encoding};

#[test]
fn fuzz_terms() {
    run("terms", &[], |input| {
        if let Ok(len) = term::len(input) {
            assert!((1..=input.len()).contains(&len));
        }
        if let Ok(terms) = term::split(input) {
            assert_eq!(terms.concat(), input);
            assert!(TermValue::Live(Bytes::copy_from_slice(input)).elements().unwrap().len() <= terms.len());
            terms.windows(2).for_each(|pair| descending_is_the_reverse(pair[0], pair[1]));
        }
        let decoded = term::decode(input);
        match &decoded {
            Ok(None) => assert_eq!(input, [term::NULL]),
            Ok(Some(value)) => {
                let mut encoded = Vec::new();
                term::encode(value, &mut encoded);
                assert_eq!(encoded.escape_ascii().to_string(), input.escape_ascii().to_string(), "{value:?}");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
        }
        format!("{:?} {}", input.first(), outcome(&decoded))
    });
}

/// Ascending and descending key forms of whole terms sort in opposite ways, whatever follows them.
fn descending_is_the_reverse(a: &[u8], b: &[u8]) {
    if term::decode(a).is_err() || term::decode(b).is_err() {
        return;
    }
    let descending = Shape { descending: true, limit: 0 };
    let (up, down) = (descending.encode(a).unwrap(), descending.encode(b).unwrap());
    assert_eq!(a.cmp(b), down.cmp(&up));
}

#[test]
fn fuzz_key_forms() {
    run("key_forms", &[], |input| {
        let whole = term::decode(input).is_ok();
        for descending in [false, true] {
            for limit in [0, 1, 16, 20, 256] {
                let shape = Shape { descending, limit };
                if whole {
                    stands_in_keys(shape, input);
                }
                if let Ok(len) = shape.len(input)
                    && let Some(found) = shape.decode(&input[..len]).unwrap()
                {
                    let whole = Shape { limit: 0, ..shape }.encode(&found).unwrap();
                    assert_eq!(whole, &input[..len]);
                }
            }
        }
        outcome(&Shape { descending: true, limit: 0 }.len(input)) + if whole { " whole" } else { "" }
    });
}

/// The key form of a whole term ends itself, and gives the term back unless it is cut.
fn stands_in_keys(shape: Shape, term: &[u8]) {
    let key = shape.encode(term).unwrap();
    assert_eq!(shape.len(&[&key, &b"row"[..]].concat()).unwrap(), key.len());
    let limit = shape.limit as usize;
    match shape.decode(&key).unwrap() {
        Some(found) => assert_eq!(found, term),
        None => assert!(limit > 0 && term.len() > limit),
    }
    // A text is escaped in a key: twice its length at most, and a type byte, a terminator and a hash.
    let is_run = matches!(term[0], 0x50 | 0x60);
    assert!(!is_run || limit == 0 || key.len() <= 2 * limit + 19, "{shape:?}");
    let (reach, _) = shape.reach(term).unwrap();
    assert!(key.starts_with(&reach), "{shape:?}");
}

#[test]
fn fuzz_candidates() {
    run("candidates", &[], |input| {
        // timestamp(1) qualifier(19) value…
        let (head, value) = input.split_at(input.len().min(20));
        let Some((timestamp, qualifier)) = head.split_first() else { return String::new() };
        let cell = Cell::put(
            state::FAMILY,
            Bytes::copy_from_slice(qualifier),
            i64::from(*timestamp),
            Bytes::copy_from_slice(value),
        );
        let decoded = state::decode(&cell);
        match &decoded {
            Ok((code, candidate)) => {
                let put = candidate.put(*code);
                assert_eq!(state::decode(&put).unwrap(), (*code, candidate.clone()));
                assert_eq!((put.timestamp, &put.value), (cell.timestamp, &cell.value));
                assert_eq!(put.qualifier[..2], cell.qualifier[..2]);
                assert_eq!(candidate.prune(*code, 1).qualifier, put.qualifier);
                let as_put = Candidate::own(candidate.source, candidate.value.clone());
                assert_ne!(as_put.put(*code).qualifier == put.qualifier, candidate.is_settled());
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
        }
        outcome(&decoded)
    });
}

#[test]
fn fuzz_mutations() {
    run("mutations", &[], |input| {
        let position = Position::Changelog { number: 7 };
        let decoded = wire::decode(Bytes::copy_from_slice(input), position.clone());
        match &decoded {
            Ok(event) => {
                assert_eq!(event.position, position);
                let again = RowMutation::new(event.row.clone(), event.cells.clone());
                let encoded = wire::encode(&again, event.append_time);
                assert_eq!(&wire::decode(encoded, position).unwrap(), event);
                let kinds = event.cells.iter().map(|c| c.kind);
                assert!(kinds.clone().all(|kind| CellKind::from_code(kind.code()) == Some(kind)));
                format!("{:?}", kinds.take(4).collect::<Vec<_>>())
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                outcome(&decoded)
            }
        }
    });
}

/// One attribute of every type in every encoding that has it.
fn attributes() -> Vec<Attribute> {
    let mut attributes = Vec::new();
    for encoding in BaseEncoding::ALL {
        for scalar in ScalarType::ALL {
            for array in [false, true] {
                let attribute = Attribute::inferred("a", AttributeType { scalar, array }, "f", 1);
                if !array || encoding == BaseEncoding::Json {
                    attributes.push(Attribute { encoding, ..attribute });
                }
            }
        }
    }
    attributes
}

#[test]
fn fuzz_base_cells() {
    let attributes = attributes();
    run("base_cells", &["null", "[", "]", "\"", "NaN", "-inf", "T00:00:00Z", "\\x"], |input| {
        let mut outcomes = String::new();
        for attribute in &attributes {
            let decoded = encoding::decode(attribute, input);
            match &decoded {
                Ok(value) => {
                    let cell = encoding::encode(attribute, value);
                    assert_eq!(&encoding::decode(attribute, &cell).unwrap(), value, "{attribute:?}");
                    for element in value.elements() {
                        let mut encoded = Vec::new();
                        term::encode(element, &mut encoded);
                        assert_eq!(term::decode(&encoded).unwrap().as_ref(), Some(element));
                        let scalar = AttributeType { array: false, ..attribute.kind };
                        let text = Attribute { kind: scalar, encoding: BaseEncoding::Utf8, ..attribute.clone() };
                        assert_eq!(&encoding::parse(&text, &element.to_string()).unwrap(), element);
                    }
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WrongType, "{error}");
                    assert!(error.to_string().contains("attribute a"), "{error}");
                }
            }
            if attribute.kind.array && input == b"[]" {
                assert_eq!(decoded.as_ref().unwrap(), &AttributeValue::Many(Vec::new()));
            }
            outcomes.push(if decoded.is_ok() { '1' } else { '0' });
        }
        outcomes
    });
}

#[test]
fn fuzz_json_values() {
    let attributes = attributes();
    run("json_values", &["null", "[", "]", "\"", "NaN", "-inf", "e308", "T00:00:00Z", "\\u0000"], |input| {
        let Ok(json) = serde_json::from_slice::<serde_json::Value>(input) else { return String::new() };
        let inferred = encoding::infer(&json);
        if let Ok(Some(kind)) = inferred {
            let attribute = Attribute::inferred("a", kind, "f", 1);
            assert!(encoding::from_json(&attribute, &json).unwrap().is_some(), "{attribute:?}");
        }
        let mut outcomes = format!("{inferred:?}").chars().take(60).collect::<String>();
        for attribute in &attributes {
            match encoding::from_json(attribute, &json) {
                Ok(Some(value)) => {
                    assert_eq!(encoding::from_json(attribute, &value.to_json()).unwrap().as_ref(), Some(&value));
                    let cell = encoding::encode(attribute, &value);
                    assert_eq!(encoding::decode(attribute, &cell).unwrap(), value, "{attribute:?}");
                    if attribute.encoding == BaseEncoding::Json {
                        assert_eq!(encoding::decode(attribute, input).unwrap(), value);
                    }
                    outcomes.push('1');
                }
                Ok(None) => assert!(json.is_null() || json.as_array().is_some_and(Vec::is_empty)),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WrongType, "{error}");
                    outcomes.push('0');
                }
            }
        }
        outcomes
    });
}
