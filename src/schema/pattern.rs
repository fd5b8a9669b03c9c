//! Patterns of LIKE.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A pattern of LIKE: `%` stands for any characters, `_` for one.
///
/// ```
/// use sideindex::schema::Pattern;
/// let pattern = Pattern::new("lib%-d_v", Some('\\'))?;
/// assert!(pattern.matches(b"libc6-dev") && !pattern.matches(b"libc6-devel"));
/// assert_eq!(pattern.prefix(), "lib");
/// # Ok::<(), sideindex::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern(Vec<Part>);

/// Two parts of text are never neighbours, nor are two [`Part::Any`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Text(String),
    One,
    Any,
}

impl Pattern {
    /// Reads a pattern. The character after `escape` stands for itself.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::error::ErrorKind::InvalidInput) for a pattern that ends in its escape character.
    pub fn new(pattern: &str, escape: Option<char>) -> Result<Self> {
        let mut parts: Vec<Part> = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let literal = if Some(character) == escape {
                characters.next().ok_or_else(|| {
                    Error::invalid(format!(
                        "LIKE {pattern:?}: expected a character after the last {character}, which takes the meaning from the next one; write it twice to mean itself"
                    ))
                })?
            } else {
                match (character, parts.last()) {
                    ('%', Some(Part::Any)) => continue,
                    ('%', _) => {
                        parts.push(Part::Any);
                        continue;
                    }
                    ('_', _) => {
                        parts.push(Part::One);
                        continue;
                    }
                    (other, _) => other,
                }
            };
            match parts.last_mut() {
                Some(Part::Text(text)) => text.push(literal),
                _ => parts.push(Part::Text(literal.into())),
            }
        }
        Ok(Self(parts))
    }

    /// The text that whatever matches starts with.
    pub fn prefix(&self) -> &str {
        match self.0.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    /// Whether it stands for its [`prefix`](Self::prefix) alone.
    pub fn is_exact(&self) -> bool {
        matches!(self.0.as_slice(), [] | [Part::Text(_)])
    }

    /// Whether it stands for everything that starts with its [`prefix`](Self::prefix).
    pub fn is_prefix(&self) -> bool {
        matches!(self.0.as_slice(), [Part::Any] | [Part::Text(_), Part::Any])
    }

    /// Whether a text, in UTF-8, matches. What is not UTF-8 counts as one character a byte.
    pub fn matches(&self, text: &[u8]) -> bool {
        let (mut part, mut at) = (0, 0);
        // Where to go on when what follows the last `%` did not fit: one character further.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let fits = match self.0.get(part) {
                Some(Part::Any) => {
                    retry = Some((part + 1, at));
                    Some(0)
                }
                Some(Part::One) => (at < text.len()).then(|| character(&text[at..])),
                Some(Part::Text(literal)) => text[at..].starts_with(literal.as_bytes()).then_some(literal.len()),
                None if at == text.len() => return true,
                None => None,
            };
            match (fits, retry) {
                (Some(len), _) => {
                    part += 1;
                    at += len;
                }
                (None, Some((after, from))) if from < text.len() => {
                    let from = from + character(&text[from..]);
                    retry = Some((after, from));
                    (part, at) = (after, from);
                }
                (None, _) => return false,
            }
        }
    }
}

/// The length of the first character of a text that is not empty, in bytes.
fn character(text: &[u8]) -> usize {
    (1..=text.len().min(4)).find(|n| std::str::from_utf8(&text[..*n]).is_ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By recursion over the characters.
    fn slow(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], rest) => rest.is_empty(),
            (['%', after @ ..], _) => (0..=text.len()).any(|n| slow(after, &text[n..])),
            (['_', after @ ..], [_, rest @ ..]) => slow(after, rest),
            (['\\', c, after @ ..], [d, rest @ ..]) => c == d && slow(after, rest),
            ([c, after @ ..], [d, rest @ ..]) => c == d && slow(after, rest),
            _ => false,
        }
    }

    #[test]
    fn patterns_match_as_by_recursion() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut matched = 0;
        for _ in 0..50_000 {
            let pick = |of: &[&str], rng: &mut fastrand::Rng, n: usize| -> String {
                (0..rng.usize(0..n)).map(|_| of[rng.usize(0..of.len())]).collect()
            };
            let pattern = pick(&["a", "b", "é", "%", "_", "%", "\\%", "\\_", "\\\\"], &mut rng, 7);
            let text = pick(&["a", "b", "é", "日", "%", "_", "\\"], &mut rng, 8);
            let expected = slow(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>());
            let read = Pattern::new(&pattern, Some('\\')).unwrap();
            assert_eq!(read.matches(text.as_bytes()), expected, "{text:?} LIKE {pattern:?}");
            assert!(!expected || text.starts_with(read.prefix()), "{pattern:?}");
            if read.is_exact() {
                assert_eq!(text == read.prefix(), expected);
            } else if read.is_prefix() {
                assert_eq!(text.starts_with(read.prefix()), expected);
            }
            matched += usize::from(expected);
        }
        assert!(matched > 1_000, "{matched}");
    }

    #[test]
    fn escapes_and_bytes() {
        assert!(Pattern::new("a\\", Some('\\')).is_err());
        assert!(Pattern::new("a\\", None).unwrap().matches(b"a\\"));
        assert!(Pattern::new("a#%", Some('#')).unwrap().matches(b"a%"));
        assert!(Pattern::new("a_b", None).unwrap().matches(b"a\xffb"));
        // Many ways to split a text, and no time to try all of them.
        let many = "%a".repeat(50) + "%b";
        assert!(!Pattern::new(&many, None).unwrap().matches("a".repeat(2_000).as_bytes()));
    }
}
