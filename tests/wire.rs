//! `src/model/wire.rs` against the schema it claims to follow, `proto/sideindex/v1/mutation.proto`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage, Value};
use sideindex::error::ErrorKind;
use sideindex::model::{Cell, CellKind, MAX_TIMESTAMP, Position, RowMutation, wire};

const POSITION: Position = Position::Changelog { number: 7 };

fn compile() -> MessageDescriptor {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let files = protox::compile(["sideindex/v1/mutation.proto"], [root]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
    pool.get_message_by_name("sideindex.v1.Mutation").unwrap()
}

/// Sets a field unless it has its default value, which proto3 leaves out.
fn set(message: &mut DynamicMessage, field: &str, value: Value) {
    let field = message.descriptor().get_field_by_name(field).expect("a field of the schema");
    if !value.is_default_for_field(&field) {
        message.set_field(&field, value);
    }
}

/// The same mutation by field names of the schema.
fn by_schema(descriptor: &MessageDescriptor, mutation: &RowMutation, append_time: i64) -> DynamicMessage {
    let cell_type = descriptor.parent_pool().get_message_by_name("sideindex.v1.CellRecord").unwrap();
    let cell = |c: &Cell| {
        let mut message = DynamicMessage::new(cell_type.clone());
        set(&mut message, "family", Value::Bytes(c.family.clone()));
        set(&mut message, "qualifier", Value::Bytes(c.qualifier.clone()));
        set(&mut message, "timestamp", Value::I64(c.timestamp));
        set(&mut message, "kind", Value::U32(c.kind.code().into()));
        set(&mut message, "value", Value::Bytes(c.value.clone()));
        Value::Message(message)
    };
    let mut message = DynamicMessage::new(descriptor.clone());
    set(&mut message, "row", Value::Bytes(mutation.row.clone()));
    set(&mut message, "append_time", Value::I64(append_time));
    set(&mut message, "cells", Value::List(mutation.cells.iter().map(cell).collect()));
    message
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..20).prop_map(Bytes::from)
}

fn cell() -> impl Strategy<Value = Cell> {
    let kind = (0..16u8).prop_filter_map("a type code", CellKind::from_code);
    (bytes(), bytes(), 0..=MAX_TIMESTAMP, kind, bytes()).prop_map(|(family, qualifier, timestamp, kind, value)| Cell {
        family,
        qualifier,
        timestamp,
        kind,
        value,
    })
}

fn mutation() -> impl Strategy<Value = RowMutation> {
    (bytes(), vec(cell(), 0..8)).prop_map(|(row, cells)| RowMutation { row, cells })
}

#[test]
fn the_code_writes_what_the_schema_writes() {
    let descriptor = compile();
    proptest!(|(mutation in mutation(), append_time in any::<i64>())| {
        let by_code = wire::encode(&mutation, append_time);
        prop_assert_eq!(&by_code[..], &by_schema(&descriptor, &mutation, append_time).encode_to_vec()[..]);
    });
}

#[test]
fn the_schema_and_the_code_read_each_other() {
    let descriptor = compile();
    proptest!(|(mutation in mutation(), append_time in any::<i64>())| {
        let message = by_schema(&descriptor, &mutation, append_time);
        let event = wire::decode(message.encode_to_vec().into(), POSITION).unwrap();
        prop_assert_eq!((&event.row, &event.cells, event.append_time), (&mutation.row, &mutation.cells, append_time));
        prop_assert_eq!(event.position, POSITION);
        let read = DynamicMessage::decode(descriptor.clone(), wire::encode(&mutation, append_time)).unwrap();
        prop_assert_eq!(read.unknown_fields().count(), 0);
        prop_assert_eq!(read, message);
    });
}

proptest! {
    #[test]
    fn random_bytes_are_refused_or_read(bytes in vec(any::<u8>(), 0..200)) {
        if let Err(error) = wire::decode(bytes.into(), POSITION) {
            prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }

    #[test]
    fn damaged_mutations_are_refused_or_read(mutation in mutation(), at in any::<usize>(), bit in 0..8u32, cut in any::<bool>()) {
        let mut bytes = wire::encode(&mutation, 1).to_vec();
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
        if let Err(error) = wire::decode(bytes.into(), POSITION) {
            prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }
}

/// One cell of each kind, a zero timestamp and empty parts, which proto3 leaves out.
fn golden() -> RowMutation {
    RowMutation::new(
        b"row\0\xff".as_slice(),
        vec![
            Cell::put("c", "color", 1_700_000_000_000, "red"),
            Cell::put("c", "", 0, ""),
            Cell::delete(CellKind::DeleteVersion, "c", "size", 5),
            Cell::delete(CellKind::DeleteFamilyVersion, "c", "", 4),
            Cell::delete(CellKind::DeleteColumn, "d", "note", MAX_TIMESTAMP),
            Cell::delete(CellKind::DeleteFamily, "d", "", 3),
        ],
    )
}

#[test]
fn the_stored_form_is_fixed() {
    let stored = include_bytes!("fixtures/mutation.bin");
    let written = wire::encode(&golden(), 1_700_000_000_123);
    assert_eq!(written.escape_ascii().to_string(), stored.escape_ascii().to_string());
    let event = wire::decode(Bytes::from_static(stored), POSITION).unwrap();
    assert_eq!((event.row, event.cells), (golden().row, golden().cells));
    assert_eq!(event.append_time, 1_700_000_000_123);
}

#[test]
fn what_is_no_cell_is_refused() {
    let cell = |timestamp, kind| wire::CellRecord { timestamp, kind, ..wire::CellRecord::default() };
    for (bad, what) in [
        (cell(1, 0), "cell type 0"),
        (cell(1, 260), "cell type 260"),
        (cell(-1, 4), "timestamp -1"),
        (cell(i64::MAX, 4), "timestamp 9223372036854775807"),
    ] {
        let message = wire::Mutation { row: "r".into(), append_time: 1, cells: vec![bad] };
        let error = wire::decode(message.encode_to_vec().into(), POSITION).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(what) && error.to_string().contains("changelog:7"), "{error}");
    }
}
