//! HBase's rules for tables and what is written to them, the same in every store.

use super::{ColumnCheck, TableDescriptor};
use crate::error::{Error, Result};
use crate::model::{Cell, RowMutation, check_timestamp};
use bytes::Bytes;

/// The longest name of a table, in bytes: the embedded store's, which HBase takes too.
const NAME_LIMIT: usize = 253;
/// The longest name of a family, in bytes.
const FAMILY_LIMIT: usize = 127;
/// The longest row key, in bytes.
pub(super) const ROW_KEY_LIMIT: usize = 32_767;

/// Whether a table can be created so.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput), saying what is wrong.
pub(super) fn check_descriptor(descriptor: &TableDescriptor) -> Result<()> {
    let name = &descriptor.name;
    let legal = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if name.is_empty() || name.len() > NAME_LIMIT || name.starts_with(['-', '.', ':']) || !name.chars().all(legal) {
        return Err(Error::invalid(format!(
            "expected a table name of 1 to {NAME_LIMIT} bytes of letters, digits and _ - . : that starts with none of \
             - . :, found {name:?}"
        )));
    }
    if descriptor.families.is_empty() {
        return Err(Error::invalid("expected at least 1 family, found none").within(format!("table {name}")));
    }
    for (i, family) in descriptor.families.iter().enumerate() {
        let at = |message: String| Error::invalid(message).within(format!("table {name}, family {:?}", family.name));
        let illegal = |c: char| c.is_control() || matches!(c, ':' | '/' | '\\');
        let length = family.name.len();
        if length == 0 || length > FAMILY_LIMIT || family.name.starts_with('.') || family.name.contains(illegal) {
            return Err(at(format!(
                "expected a name of 1 to {FAMILY_LIMIT} bytes without control characters and : / \\ that does not start \
                 with a dot"
            )));
        }
        if family.max_versions == 0 {
            return Err(at("expected at least 1 version, found 0".to_owned()));
        }
        if descriptor.families[..i].iter().any(|f| f.name == family.name) {
            return Err(at("expected each family once, found it twice".to_owned()));
        }
    }
    Ok(())
}

/// Whether a row can have this key.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput), saying why not.
pub(super) fn check_row_key(row: &[u8]) -> Result<()> {
    if row.is_empty() || row.len() > ROW_KEY_LIMIT {
        return Err(Error::invalid(format!("expected a row key of 1 to {ROW_KEY_LIMIT} bytes, found {}", row.len())));
    }
    Ok(())
}

/// Whether a cell can be written to a table.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput), saying why not.
pub(super) fn check_cell(table: &TableDescriptor, cell: &Cell) -> Result<()> {
    check_family(table, &cell.family)?;
    check_timestamp(cell.timestamp)?;
    if cell.kind.is_family_wide() && !cell.qualifier.is_empty() {
        return Err(Error::invalid(format!(
            "expected no qualifier on a family-wide marker, found \"{}\"",
            cell.qualifier.escape_ascii()
        )));
    }
    Ok(())
}

/// Whether a table has a family.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput), naming those it has.
pub(super) fn check_family(table: &TableDescriptor, family: &[u8]) -> Result<()> {
    if table.families.iter().any(|f| f.name.as_bytes() == family) { Ok(()) } else { Err(unknown_family(table, family)) }
}

/// Whether a column can be checked, and something written if it is as expected.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for an unknown family, an empty value to be expected, which HBase takes
/// for absence, and nothing to write.
pub(super) fn check_update(table: &TableDescriptor, check: &ColumnCheck, mutation: &RowMutation) -> Result<()> {
    check_family(table, &check.family)?;
    check_row_key(&mutation.row)?;
    if check.expected.as_ref().is_some_and(Bytes::is_empty) {
        return Err(Error::invalid("expected a value to compare with, found an empty one; none is for absence"));
    }
    if mutation.cells.is_empty() {
        return Err(Error::invalid("expected cells to write if the check holds, found none"));
    }
    Ok(())
}

/// The error for a family a table doesn't have.
pub(super) fn unknown_family(table: &TableDescriptor, family: &[u8]) -> Error {
    let names: Vec<&str> = table.families.iter().map(|f| f.name.as_str()).collect();
    Error::invalid(format!("expected a family of {}, found \"{}\"", names.join(", "), family.escape_ascii()))
}
