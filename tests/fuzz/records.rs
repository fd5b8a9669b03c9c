//! Records at rest as JSON.

use crate::driver::{outcome, run};
use serde::{Serialize, de::DeserializeOwned};
use sideindex::model::Position;
use sideindex::schema::domain::Domain;
use sideindex::schema::state::TermValue;
use sideindex::schema::{Attribute, Condition, Definition, Filter, FilterTree, Key, Pattern};
use sideindex::store::TableDescriptor;
use std::fmt::Debug;

/// What is read and written again is read as the same.
fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(input: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(input).ok()?;
    let written = serde_json::to_vec(&value).unwrap();
    assert_eq!(serde_json::from_slice::<T>(&written).unwrap(), value);
    Some(value)
}

#[test]
fn fuzz_records() {
    let words = [
        "\"below 50\"",
        "\"above 500001\"",
        "\"start\"",
        "\"end\"",
        "\"null\"",
        "{\"some\":",
        "{\"every\":",
        "{\"like\":",
        "{\"unlike\":",
        "\"any\"",
        "\"one\"",
        "{\"and\":[",
        "{\"or\":[",
        "{\"test\":",
        "]",
        "}",
        "[",
        ",",
        "-",
        "[]",
    ];
    run("records", &words, |input| {
        let definition: Option<Definition> = read(input);
        if let Some(definition) = &definition {
            let codes = definition.codes();
            assert!(codes.is_sorted() && codes.iter().all(|code| definition.mentions(*code)));
            assert!((0..definition.terms.len()).all(|i| codes.contains(&definition.terms[i].operand.code)));
            assert!(!definition.shape(definition.terms.len()).descending);
        }
        let filter: Option<Filter> = read(input);
        if let Some(filter) = &filter {
            holds(&filter.tree);
        }
        let domain: Option<Domain> = read(input);
        if let Some(domain) = &domain {
            assert_eq!(domain.complement().complement(), *domain);
            assert!(domain.intersection(&domain.complement()).is_empty());
            assert_eq!(Domain::union_of([domain, &domain.complement()].into_iter()), Domain::all());
        }
        let pattern: Option<Pattern> = read(input);
        if let Some(pattern) = &pattern {
            pattern.matches(input);
            assert!(!pattern.is_exact() || pattern.matches(pattern.prefix().as_bytes()));
        }
        let others = [
            read::<Attribute>(input).is_some(),
            read::<FilterTree>(input).is_some(),
            read::<Key>(input).is_some(),
            read::<Position>(input).is_some(),
            read::<TableDescriptor>(input).is_some(),
        ];
        let json = serde_json::from_slice::<Definition>(input).map_err(|e| e.classify());
        let refused = json.err().map(|class| format!("{class:?}"));
        let read = (definition.is_some(), filter.is_some(), domain.is_some(), pattern.is_some());
        outcome(&refused.map_or(Ok(()), Err)) + &format!("{read:?} {others:?}")
    });
}

/// Conditions of a filter can be asked of any value.
fn holds(tree: &FilterTree) {
    let values =
        [TermValue::Tombstone, TermValue::Live([0x05].as_slice().into()), TermValue::Live(b"P\0\x01"[..].into())];
    for value in values {
        let ask = &mut |_: &_, condition: &Condition| condition.accepts(&value);
        tree.holds(ask).unwrap();
    }
}
