//! Tables as the gateway describes them.

use super::gateway::{
    TBloomFilterType, TColumnFamilyDescriptor, TCompressionAlgorithm, TDataBlockEncoding, TTableDescriptor, TTableName,
};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{FamilyDescriptor, Layout, TableDescriptor};

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

/// How files of index and state tables may be compressed, the best one first. Which of them a cluster has, it tells when a
/// table is created.
pub(super) const COMPRESSIONS: [TCompressionAlgorithm; 5] = [
    TCompressionAlgorithm::ZSTD,
    TCompressionAlgorithm::SNAPPY,
    TCompressionAlgorithm::LZ4,
    TCompressionAlgorithm::GZ,
    TCompressionAlgorithm::NONE,
];

/// A table to create. Families that hold what is not sideindex's own are as HBase makes them.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) for a change log.
pub(super) fn to_gateway(table: &TableDescriptor, compression: TCompressionAlgorithm) -> Result<TTableDescriptor> {
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
        let (bloom, compression, encoding) = match f.layout {
            Layout::Base => (None, None, None),
            Layout::Entries => (Some(TBloomFilterType::NONE), Some(compression), Some(TDataBlockEncoding::FAST_DIFF)),
            Layout::States => (Some(TBloomFilterType::ROW), Some(compression), Some(TDataBlockEncoding::FAST_DIFF)),
        };
        TColumnFamilyDescriptor::new(name, None, None, None, bloom, compression, encoding, versions, None, None)
    };
    let families: Vec<_> = table.families.iter().map(family).collect();
    Ok(TTableDescriptor::new(table_name(&table.name), families, None, None))
}

/// A table that is there.
pub(super) fn from_gateway(name: &str, table: TTableDescriptor) -> TableDescriptor {
    let family = |f: TColumnFamilyDescriptor| FamilyDescriptor {
        name: String::from_utf8_lossy(&f.name).into_owned(),
        max_versions: f.max_versions.and_then(|v| u32::try_from(v).ok()).unwrap_or(1),
        layout: Layout::Base,
    };
    let families = table.columns.unwrap_or_default().into_iter().map(family).collect();
    TableDescriptor { name: name.to_owned(), families, change_log: false, splits: Vec::new() }
}
