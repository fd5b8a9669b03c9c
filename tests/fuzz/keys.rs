//! Row keys: entries, and declared parts.

use crate::driver::{outcome, run};
use sideindex::error::ErrorKind;
use sideindex::schema::{Definition, Key, Operand, Term, entry};

/// Definitions whose keys differ in kind; an input's first byte says which is meant.
fn definitions() -> Vec<Definition> {
    let down = |code| Term { operand: Operand { code, functions: Vec::new() }, descending: true };
    let mixed = Definition::new("mixed", 3, [Term::from(1), down(2), Term::from(3)]);
    vec![
        Definition::new("one", 1, [1]),
        Definition { salts: 16, ..Definition::new("down", 2, [down(1)]) },
        Definition { salts: 4, ordered: true, value_limit: 16, ..mixed },
        Definition { format: 1, value_limit: 0, ..Definition::new("first", 258, [1, 2]) },
    ]
}

#[test]
fn fuzz_entries() {
    let definitions = definitions();
    run("entries", &[], |input| {
        let Some((which, key)) = input.split_first() else { return String::new() };
        let definition = &definitions[usize::from(*which) % definitions.len()];
        let decoded = entry::decode(key, definition);
        match &decoded {
            Ok(parts) => {
                assert_eq!((parts.terms.start, parts.terms.end, parts.row.end), (3, parts.row.start, key.len()));
                let (terms, row) = (&key[parts.terms.clone()], &key[parts.row.clone()]);
                let made = entry::encode(definition, terms, row).unwrap();
                assert_eq!(made[3..], key[3..]);
                assert!(made[0] < definition.salts);
                assert_eq!(entry::decode(&made, definition).unwrap(), *parts);
                let prefix = entry::prefix(made[0], definition.code, terms);
                assert!(made.starts_with(&prefix));
                let after = entry::after_prefix(&prefix);
                assert!(after.is_none_or(|after| after > made && !after.starts_with(&prefix)));
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
        }
        format!("{} {}", definition.name, outcome(&decoded))
    });
}

#[test]
fn fuzz_entry_values() {
    run("entry_values", &[], |input| {
        let decoded = entry::decode_value(input);
        if let Ok((disputed, covered)) = decoded {
            let made = entry::encode_value(disputed, covered);
            assert_eq!(entry::decode_value(&made).unwrap(), (disputed, covered));
            // Flags of later versions apart, it is the same.
            assert_eq!((made[0], &made[2..]), (input[0], &input[2..]));
            assert_eq!(made[1], input[1] & 1);
        }
        outcome(&decoded.map(|(disputed, _)| disputed))
    });
}

#[test]
fn fuzz_row_keys() {
    let keys: Vec<Key> = [
        "user=text",
        "hash=md5(user):2, user=text:4, action=text sep '|', month=text",
        "a=bytes, b=int, c=bytes sep '\\x00', d=int:4 ordered",
        "a=text sep ',', b=xxh3(a, c):8, c=int ordered, d=bytes:3, e=text",
        "a=text, b=bytes",
        "a=int:4, b=text, c=md5(b):16",
    ]
    .map(|text| text.parse().unwrap())
    .into();
    run("row_keys", &[], |input| {
        let Some((which, row)) = input.split_first() else { return String::new() };
        let key = &keys[usize::from(*which) % keys.len()];
        let split = key.split(row);
        match &split {
            Ok(values) => {
                assert_eq!(values.len(), key.parts().len());
                let values: Vec<_> = values.iter().cloned().map(Some).collect();
                assert_eq!(key.join(&values).unwrap().escape_ascii().to_string(), row.escape_ascii().to_string());
                for leading in 0..values.len() {
                    // A hash of later parts has no value yet; what is given stands for it.
                    let prefix = key.prefix(&values[..leading]).unwrap();
                    assert!(row.starts_with(&prefix), "{leading} parts");
                }
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WrongType, "{error}"),
        }
        format!("{} {}", which % 6, outcome(&split))
    });
}
