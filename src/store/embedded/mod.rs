//! The embedded store: HBase's cell semantics in one process, on an LSM tree.
