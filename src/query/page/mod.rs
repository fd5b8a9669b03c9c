//! Answers in pages: where a page ends, and tokens that say where the next one starts.
//!
//! A token holds the place of the last row, and hashes of the query and of the plan: the same paths have to be read in the
//! same order. It does not depend on estimates, on other definitions, or on the process that made it. It is signed with a
//! key of the store, so that nobody can make one up.

mod fingerprint;
mod key;
mod token;

pub use key::TokenKey;
pub(crate) use token::Token;

use super::plan::{Candidates, Choice, Plan};
use super::{BoundQuery, Consistency};
use crate::error::{Error, Result};
use bytes::Bytes;

/// One page of an answer is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paging {
    /// Rows a page; at least 1.
    pub size: u64,
    /// The token of the page before; none asks for the first page.
    pub after: Option<String>,
    /// What tokens are signed with.
    pub key: TokenKey,
}

/// The part of an answer that a plan is to give.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) size: u64,
    /// Where it starts; none at the start of the answer.
    pub(crate) from: Option<Position>,
    key: TokenKey,
    /// What its tokens say of the query and the plan.
    query: u128,
    plan: u128,
    choices: Vec<u32>,
}

/// How far an answer has been given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    /// Rows returned so far.
    pub(crate) returned: u64,
    /// The last of them.
    pub(crate) place: Place,
}

/// The place of a row in the order of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where it was read: the path, and there the row's key, or the entry's without its salt.
    Read { path: usize, key: Bytes },
    /// Where it is among the rows sorted.
    Sorted { key: Vec<u8>, row: Bytes },
}

impl Page {
    /// The page that is asked for of a planned query.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) when the token is of another plan.
    pub(crate) fn new(
        paging: &Paging,
        plan: &Plan,
        candidates: &Candidates,
        choice: Option<&Choice>,
        token: Option<Token>,
    ) -> Result<Self> {
        let decisions = choice.map(|c| c.decisions.as_slice()).unwrap_or_default();
        let page = Self {
            size: paging.size,
            from: None,
            key: paging.key.clone(),
            query: fingerprint::query(&plan.query, plan.consistency),
            plan: fingerprint::plan(plan),
            choices: fingerprint::choices(candidates, decisions),
        };
        let Some(token) = token else { return Ok(page) };
        if token.plan != page.plan {
            return Err(stale());
        }
        Ok(Self { from: Some(token.position), ..page })
    }

    /// The token of the page after a position.
    pub(crate) fn token(&self, position: Position) -> String {
        let Self { query, plan, .. } = *self;
        Token { query, plan, choices: self.choices.clone(), position }.seal(&self.key)
    }
}

/// What was chosen for the page before.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) when the token is of another query, or the choice is no longer
/// there.
pub(crate) fn chosen_before(
    token: &Token,
    query: &BoundQuery,
    consistency: Consistency,
    candidates: &Candidates,
) -> Result<Vec<usize>> {
    if token.query != fingerprint::query(query, consistency) {
        return Err(Error::invalid(
            "the page token belongs to another query, or to one with other parameters or another consistency; ask for the first page",
        ));
    }
    fingerprint::decisions(candidates, &token.choices).ok_or_else(stale)
}

fn stale() -> Error {
    Error::invalid(
        "the page token is out of date: an index it was reading was dropped or rebuilt, or the table's schema has changed; ask for the first page",
    )
}
