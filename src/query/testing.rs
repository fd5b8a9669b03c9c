//! A schema for the tests of the stages.

use crate::schema::{Attribute, AttributeType, BaseEncoding, Code, Definition, Lifecycle, NO_FLOOR, TableSchema};

/// Packages: section text, priority text, size int, weight float, essential bool, depends text[], ports int[].
pub(crate) fn schema(definitions: &[Definition]) -> TableSchema {
    let attributes = [
        ("section", "text"),
        ("priority", "text"),
        ("size", "int"),
        ("weight", "float"),
        ("essential", "bool"),
        ("depends", "text[]"),
        ("ports", "int[]"),
    ];
    let attributes = attributes.iter().zip(1..).map(|((name, kind), code)| {
        let kind: AttributeType = kind.parse().unwrap();
        Attribute {
            name: (*name).to_owned(),
            code,
            kind,
            encoding: if kind.array { BaseEncoding::Json } else { BaseEncoding::Utf8 },
            family: "a".to_owned(),
            qualifier: (*name).to_owned(),
        }
    });
    TableSchema::new("packages".to_owned(), vec!["a".to_owned()], attributes.collect(), definitions.to_vec())
}

/// A definition on attributes of [`schema`]; its name says which, and `ordered` is meant by a trailing `<`.
pub(crate) fn definition(name: &str, code: Code) -> Definition {
    let (names, ordered) = name.strip_suffix('<').map_or((name, false), |names| (names, true));
    let schema = schema(&[]);
    Definition {
        format: Definition::FORMAT,
        name: format!("by_{}", names.replace('+', "_")),
        code,
        terms: names.split('+').map(|n| schema.attribute(n).unwrap().code).collect(),
        ordered,
        salts: 1,
        floor: NO_FLOOR,
        generation: 1,
        epoch: 1,
        state: Lifecycle::Active,
        degraded: false,
    }
}

/// Definitions by their names, with codes from 1 up.
pub(crate) fn definitions(names: &[&str]) -> Vec<Definition> {
    names.iter().zip(1..).map(|(name, code)| definition(name, code)).collect()
}
