//! Tokens at rest: `format(1) body signature(32)` as base64 without padding, in the alphabet for URLs.

use super::{Place, Position, TokenKey};
use crate::error::{Error, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message;

const FORMAT: u8 = 1;
const SIGNATURE: usize = 32;
/// The longest token taken, in bytes: a row key and the terms of an entry, or the values rows are sorted by, fit.
const LONGEST: usize = 4 << 20;

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// Hash of the bound query and its consistency.
    pub(crate) query: u128,
    /// Hash of the paths read.
    pub(crate) plan: u128,
    /// Which of the alternatives were chosen.
    pub(crate) choices: Vec<u32>,
    /// Where the page ended.
    pub(crate) position: Position,
}

#[derive(Clone, PartialEq, Message)]
struct Body {
    #[prost(bytes = "vec", tag = "1")]
    query: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    plan: Vec<u8>,
    #[prost(fixed32, repeated, tag = "3")]
    choices: Vec<u32>,
    #[prost(uint64, tag = "4")]
    returned: u64,
    /// Absent where rows are sorted.
    #[prost(uint32, optional, tag = "5")]
    path: Option<u32>,
    #[prost(bytes = "vec", tag = "6")]
    sorted_by: Vec<u8>,
    /// The row or the entry.
    #[prost(bytes = "bytes", tag = "7")]
    key: bytes::Bytes,
}

impl Token {
    /// Signs the token and writes it down.
    pub(crate) fn seal(self, key: &TokenKey) -> String {
        let Position { returned, place } = self.position;
        let (path, sorted_by, place) = match place {
            Place::Read { path, key } => (Some(u32::try_from(path).unwrap_or(u32::MAX)), Vec::new(), key),
            Place::Sorted { key, row } => (None, key, row),
        };
        let body = Body {
            query: self.query.to_be_bytes().to_vec(),
            plan: self.plan.to_be_bytes().to_vec(),
            choices: self.choices,
            returned,
            path,
            sorted_by,
            key: place,
        };
        let mut bytes = vec![FORMAT];
        bytes.extend(body.encode_to_vec());
        let signature = key.sign(&bytes);
        bytes.extend_from_slice(signature.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a token that was signed with the same key.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for anything else.
    pub(crate) fn open(text: &str, key: &TokenKey) -> Result<Self> {
        let damaged =
            || Error::invalid("the page token is damaged: give it as it was printed, or ask for the first page");
        if text.len() > LONGEST {
            return Err(damaged());
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| damaged())?;
        let (signed, signature) = bytes.split_last_chunk::<SIGNATURE>().ok_or_else(damaged)?;
        // Compared in constant time.
        if key.sign(signed) != blake3::Hash::from_bytes(*signature) {
            return Err(Error::invalid(
                "the page token was not made by this store, or was changed; ask for the first page",
            ));
        }
        let body = match signed.split_first() {
            Some((&FORMAT, body)) => Body::decode(body).map_err(|_| damaged())?,
            _ => {
                return Err(Error::invalid(
                    "the page token was made by another version of sideindex; ask for the first page",
                ));
            }
        };
        let hash = |bytes: &[u8]| bytes.try_into().map(u128::from_be_bytes).map_err(|_| damaged());
        let place = match body.path {
            Some(path) => Place::Read { path: path as usize, key: body.key },
            None => Place::Sorted { key: body.sorted_by, row: body.key },
        };
        Ok(Self {
            query: hash(&body.query)?,
            plan: hash(&body.plan)?,
            choices: body.choices,
            position: Position { returned: body.returned, place },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(rng: &mut fastrand::Rng) -> Token {
        let bytes = |rng: &mut fastrand::Rng| (0..rng.usize(0..20)).map(|_| rng.u8(..)).collect::<Vec<u8>>();
        let place = if rng.bool() {
            Place::Read { path: rng.usize(0..9), key: bytes(rng).into() }
        } else {
            Place::Sorted { key: bytes(rng), row: bytes(rng).into() }
        };
        let choices = (0..rng.usize(0..4)).map(|_| rng.u32(..)).collect();
        Token { query: rng.u128(..), plan: rng.u128(..), choices, position: Position { returned: rng.u64(..), place } }
    }

    #[test]
    fn tokens_come_back_and_no_other_text_is_one() {
        let mut rng = fastrand::Rng::with_seed(11);
        let key = TokenKey::random().unwrap();
        for _ in 0..200 {
            let token = token(&mut rng);
            let text = token.clone().seal(&key);
            assert_eq!(Token::open(&text, &key).unwrap(), token);
            assert!(Token::open(&text, &TokenKey::random().unwrap()).is_err());
            let at = rng.usize(0..text.len());
            assert!(Token::open(&text[..at], &key).is_err(), "cut at {at}");
            // Every other character at some place, in the alphabet and out of it.
            for other in (0_u8..128).map(char::from).filter(|c| !text[at..].starts_with(*c)) {
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                assert!(Token::open(&changed, &key).is_err(), "{other:?} at {at}");
            }
            assert!(Token::open(&format!("{text}A"), &key).is_err());
        }
        // Every single byte of one.
        let text = token(&mut rng).seal(&key);
        for at in 0..text.len() {
            for other in (0_u8..128).map(char::from).filter(|c| !text[at..].starts_with(*c)) {
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                assert!(Token::open(&changed, &key).is_err(), "{other:?} at {at}");
            }
        }
    }

    #[test]
    fn fuzz_page_tokens() {
        let key = TokenKey::random().unwrap();
        crate::fuzz::run("page_tokens", &["A", "_", "="], |input| {
            // As it is, it is no token of ours.
            if let Ok(text) = std::str::from_utf8(input) {
                assert_eq!(Token::open(text, &key).unwrap_err().kind(), crate::error::ErrorKind::InvalidInput);
            }
            let signed = [&[FORMAT], input].concat();
            let signature = key.sign(&signed);
            let text = URL_SAFE_NO_PAD.encode([&signed[..], signature.as_bytes()].concat());
            let opened = Token::open(&text, &key);
            match &opened {
                Ok(token) => assert_eq!(Token::open(&token.clone().seal(&key), &key).unwrap(), *token),
                Err(error) => assert_eq!(error.kind(), crate::error::ErrorKind::InvalidInput),
            }
            crate::fuzz::outcome(&opened)
        });
    }
}
