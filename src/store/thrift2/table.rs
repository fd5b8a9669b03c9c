//! Tables as the gateway describes them.

use super::gateway::{TColumnFamilyDescriptor, TTableDescriptor, TTableName};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{FamilyDescriptor, TableDescriptor};

/// `namespace:name`, or the name alone in the default namespace.
pub(super) fn table_name(name: &str) -> TTableName {
    match name.split_once(':') {
        Some((namespace, name)) => TTableName::new(namespace.as_bytes().to_vec(), name.into()),
        None => TTableName::new(None, name.into()),
    }
}

/// What [`table_name`] was made of.
pub(super) fn name_of(table: &TTableName) -> String {
    let name = String::from_utf8_lossy(&table.qualifier).into_owned();
    match table.ns.as_deref().filter(|ns| !ns.is_empty() && *ns != b"default") {
        Some(namespace) => format!("{}:{name}", String::from_utf8_lossy(namespace)),
        None => name,
    }
}

/// A table to create.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) for a change log.
pub(super) fn to_gateway(table: &TableDescriptor) -> Result<TTableDescriptor> {
    if table.change_log {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "table {}: expected a table without a change log: HBase has none that a store could read",
                table.name
            ),
        ));
    }
    let family = |f: &FamilyDescriptor| {
        let versions = i32::try_from(f.max_versions).unwrap_or(i32::MAX);
        let name = f.name.clone().into_bytes();
        TColumnFamilyDescriptor::new(name, None, None, None, None, None, None, versions, None, None)
    };
    let families: Vec<_> = table.families.iter().map(family).collect();
    Ok(TTableDescriptor::new(table_name(&table.name), families, None, None))
}

/// A table that is there.
pub(super) fn from_gateway(name: &str, table: TTableDescriptor) -> TableDescriptor {
    let family = |f: TColumnFamilyDescriptor| FamilyDescriptor {
        name: String::from_utf8_lossy(&f.name).into_owned(),
        max_versions: f.max_versions.and_then(|v| u32::try_from(v).ok()).unwrap_or(1),
    };
    let families = table.columns.unwrap_or_default().into_iter().map(family).collect();
    TableDescriptor { name: name.to_owned(), families, change_log: false }
}
