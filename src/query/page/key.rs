//! The key that page tokens are signed with.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Cell, RowMutation};
use crate::schema::{META_FAMILY, META_TABLE};
use crate::store::{Durability, ReadSpec, Store};
use bytes::Bytes;
use std::fmt;

/// The row of `sx_meta` that holds it, and its column.
const ROW: &[u8] = b"secret/page-tokens";
const QUALIFIER: &[u8] = b"key";

/// A secret of 32 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKey([u8; 32]);

impl TokenKey {
    /// A random key: its tokens are good as long as it is kept.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] when the system has no random numbers.
    pub fn random() -> Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)
            .map_err(|e| Error::new(ErrorKind::Store, format!("no random numbers for page tokens: {e}")))?;
        Ok(Self(key))
    }

    /// The key kept in a store, made when there is none: its tokens are good for every process that uses the store. Whoever
    /// can read `sx_meta` can read the tables too, and has no need to forge tokens.
    ///
    /// # Errors
    /// Those of the store; [`ErrorKind::Corrupt`] for a key of another length.
    pub async fn of_store(store: &dyn Store) -> Result<Self> {
        if let Some(key) = Self::read(store).await? {
            return Ok(key);
        }
        let key = Self::random()?;
        let at = crate::clock::now();
        let put = Cell::put(META_FAMILY, QUALIFIER, at, Bytes::copy_from_slice(&key.0));
        store.mutate(META_TABLE, vec![RowMutation::new(ROW, vec![put])], Durability::Durable).await?;
        // Another process may have made one at the same time: all use the one that stays.
        Ok(Self::read(store).await?.unwrap_or(key))
    }

    async fn read(store: &dyn Store) -> Result<Option<Self>> {
        let rows = store.get(META_TABLE, &[Bytes::from_static(ROW)], &ReadSpec::default()).await?;
        let Some(cell) = rows.first().and_then(|row| row.newest(META_FAMILY.as_bytes(), QUALIFIER)) else {
            return Ok(None);
        };
        let key = cell.value.as_ref().try_into().map_err(|_| {
            Error::corrupt(format!("expected a key of 32 bytes for page tokens, found {} bytes", cell.value.len()))
                .within(format!("{META_TABLE} row {}", ROW.escape_ascii()))
        })?;
        Ok(Some(Self(key)))
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.0, bytes)
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(…)")
    }
}
