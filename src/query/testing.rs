//! A schema for the tests of the stages.

use crate::schema::{Attribute, AttributeType, Code, Definition, Lifecycle, TableSchema};

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
        Attribute::inferred(name, kind, "a", code)
    });
    TableSchema::new("packages".to_owned(), vec!["a".to_owned()], attributes.collect(), definitions.to_vec())
}

/// A definition on attributes of [`schema`]; its name says which, and `ordered` is meant by a trailing `<`.
pub(crate) fn definition(name: &str, code: Code) -> Definition {
    let (names, ordered) = name.strip_suffix('<').map_or((name, false), |names| (names, true));
    let schema = schema(&[]);
    let terms: Vec<Code> = names.split('+').map(|n| schema.attribute(n).unwrap().code).collect();
    let definition = Definition::new(format!("by_{}", names.replace('+', "_")), code, terms);
    Definition { ordered, state: Lifecycle::Active, ..definition }
}

/// Definitions by their names, with codes from 1 up.
pub(crate) fn definitions(names: &[&str]) -> Vec<Definition> {
    names.iter().zip(1..).map(|(name, code)| definition(name, code)).collect()
}
