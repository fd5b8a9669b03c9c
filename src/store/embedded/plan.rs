//! What to read of each row.

use super::tables::Table;
use crate::error::{Error, Result};
use crate::store::rules::unknown_family;
use crate::store::sieve::Sieve;
use crate::store::{Columns, ReadSpec};
use bytes::Bytes;

/// A [`ReadSpec`] bound to a table.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// All families of the table, in stored order.
    pub(super) families: Vec<FamilyPlan>,
    pub(super) raw: bool,
    pub(super) sieve: Option<Sieve>,
}

/// What to read of a family.
#[derive(Debug, Clone)]
pub(super) struct FamilyPlan {
    pub(super) name: Bytes,
    pub(super) max_versions: u32,
    /// The qualifiers read, in stored order; none is all.
    pub(super) qualifiers: Option<Vec<Bytes>>,
}

impl FamilyPlan {
    /// Whether a column is read.
    pub(super) fn reads(&self, qualifier: &[u8]) -> bool {
        self.qualifiers.as_ref().is_none_or(|wanted| wanted.iter().any(|q| q == qualifier))
    }

    /// Whether anything of the family is read, and with it its family-wide markers.
    pub(super) fn is_read(&self) -> bool {
        self.qualifiers.as_ref().is_none_or(|wanted| !wanted.is_empty())
    }
}

impl Plan {
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for a family the table doesn't have, no versions, or
    /// a filter that doesn't pass [`Filter::check`](crate::store::Filter::check).
    pub(super) fn new(table: &Table, spec: &ReadSpec) -> Result<Self> {
        if spec.max_versions == 0 {
            return Err(Error::invalid("expected at least 1 version to read, found 0"));
        }
        let plan = |(name, versions): &(Bytes, u32)| FamilyPlan {
            name: name.clone(),
            max_versions: spec.max_versions.min(*versions),
            qualifiers: None,
        };
        let mut families: Vec<FamilyPlan> = table.families.iter().map(plan).collect();
        families.sort_by(|a, b| a.name.cmp(&b.name));
        if let Columns::Exact(columns) = &spec.columns {
            families.iter_mut().for_each(|f| f.qualifiers = Some(Vec::new()));
            for (family, qualifier) in columns {
                let plan = families
                    .iter_mut()
                    .find(|f| f.name == family)
                    .ok_or_else(|| unknown_family(&table.descriptor, family))?;
                plan.qualifiers.get_or_insert_default().push(qualifier.clone());
            }
            families.iter_mut().filter_map(|f| f.qualifiers.as_mut()).for_each(|q| q.sort());
        }
        let sieve = spec.filter.as_ref().filter(|_| !spec.raw).map(Sieve::new).transpose()?;
        Ok(Self { families, raw: spec.raw, sieve })
    }
}
