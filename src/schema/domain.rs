//! Sets of values: what a condition accepts, as intervals of encoded values.
//!
//! The encodings keep their order under `memcmp`, so a condition on a value, a range of entry keys and a range of row keys
//! are all the same thing: intervals of bytes.

use crate::error::{Error, Result};
use crate::store::Comparison;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// A place between values. At rest it is a text: `start`, `end`, `below <hex>`, `above <hex>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Edge {
    /// Before every value.
    Start,
    /// Beside one value.
    At(Bytes, Side),
    /// After every value.
    End,
}

/// On which side of a value an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Just before it.
    Below,
    /// Just after it.
    Above,
}

impl Edge {
    fn below(value: &Bytes) -> Self {
        Self::At(value.clone(), Side::Below)
    }

    fn above(value: &Bytes) -> Self {
        Self::At(value.clone(), Side::Above)
    }

    fn is_at_or_below(&self, value: &[u8]) -> bool {
        match self {
            Self::Start => true,
            Self::At(at, Side::Below) => at.as_ref() <= value,
            Self::At(at, Side::Above) => at.as_ref() < value,
            Self::End => false,
        }
    }
}

/// The values between two edges; `from` is before `to`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Where it starts.
    pub from: Edge,
    /// Where it ends.
    pub to: Edge,
}

impl Interval {
    /// The value, if the interval holds exactly one.
    pub fn point(&self) -> Option<&Bytes> {
        match (&self.from, &self.to) {
            (Edge::At(from, Side::Below), Edge::At(to, Side::Above)) if from == to => Some(from),
            _ => None,
        }
    }
}

/// A set of encoded values: sorted intervals that do not touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Interval>", into = "Vec<Interval>")]
pub struct Domain(Vec<Interval>);

impl From<Vec<Interval>> for Domain {
    fn from(intervals: Vec<Interval>) -> Self {
        Self::of(intervals)
    }
}

impl From<Domain> for Vec<Interval> {
    fn from(domain: Domain) -> Self {
        domain.0
    }
}

impl From<Edge> for String {
    fn from(edge: Edge) -> Self {
        let (side, bytes) = match edge {
            Edge::Start => return "start".to_owned(),
            Edge::End => return "end".to_owned(),
            Edge::At(bytes, Side::Below) => ("below ", bytes),
            Edge::At(bytes, Side::Above) => ("above ", bytes),
        };
        let mut text = side.to_owned();
        for byte in bytes {
            // Writing to a String does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

impl TryFrom<String> for Edge {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        let unknown = || Error::corrupt(format!("expected start, end, below <hex> or above <hex>, found {text:?}"));
        let (side, hex) = match text.as_str() {
            "start" => return Ok(Self::Start),
            "end" => return Ok(Self::End),
            other => match other.split_once(' ') {
                Some(("below", hex)) => (Side::Below, hex),
                Some(("above", hex)) => (Side::Above, hex),
                _ => return Err(unknown()),
            },
        };
        let digits: Vec<u8> = hex
            .chars()
            .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()).ok_or_else(unknown))
            .collect::<Result<_>>()?;
        if !digits.len().is_multiple_of(2) {
            return Err(unknown());
        }
        Ok(Self::At(digits.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]).collect(), side))
    }
}

impl Domain {
    /// The values in some of the intervals.
    pub fn of(mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|i| i.from < i.to);
        intervals.sort_by(|a, b| a.from.cmp(&b.from));
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match merged.last_mut() {
                Some(last) if interval.from <= last.to => last.to = interval.to.max(last.to.clone()),
                _ => merged.push(interval),
            }
        }
        Self(merged)
    }

    /// What compares so with `value`.
    pub fn compared(comparison: Comparison, value: &Bytes) -> Self {
        let below = || Interval { from: Edge::Start, to: Edge::below(value) };
        let above = || Interval { from: Edge::above(value), to: Edge::End };
        Self::of(match comparison {
            Comparison::Less => vec![below()],
            Comparison::LessOrEqual => vec![Interval { from: Edge::Start, to: Edge::above(value) }],
            Comparison::Equal => vec![Interval { from: Edge::below(value), to: Edge::above(value) }],
            Comparison::NotEqual => vec![below(), above()],
            Comparison::GreaterOrEqual => vec![Interval { from: Edge::below(value), to: Edge::End }],
            Comparison::Greater => vec![above()],
        })
    }

    /// What is neither below `low` nor above `high`.
    pub fn between(low: &Bytes, high: &Bytes) -> Self {
        Self::of(vec![Interval { from: Edge::below(low), to: Edge::above(high) }])
    }

    /// These values.
    pub fn values(values: &[Bytes]) -> Self {
        Self::of(values.iter().map(|v| Interval { from: Edge::below(v), to: Edge::above(v) }).collect())
    }

    /// What is in one of them.
    pub fn union_of<'a>(domains: impl Iterator<Item = &'a Self>) -> Self {
        Self::of(domains.flat_map(|d| d.0.iter().cloned()).collect())
    }

    /// What is in both.
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let from = (&x.from).max(&y.from);
            let to = (&x.to).min(&y.to);
            if from < to {
                common.push(Interval { from: from.clone(), to: to.clone() });
            }
            if x.to <= y.to {
                a.next();
            } else {
                b.next();
            }
        }
        Self::of(common)
    }

    /// Whether an encoded value is in it.
    pub fn contains(&self, value: &[u8]) -> bool {
        let after = self.0.partition_point(|i| i.from.is_at_or_below(value));
        after > 0 && !self.0[after - 1].to.is_at_or_below(value)
    }

    /// All values.
    pub fn all() -> Self {
        Self(vec![Interval { from: Edge::Start, to: Edge::End }])
    }

    /// The values that are not in it.
    pub fn complement(&self) -> Self {
        let mut from = Edge::Start;
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        for interval in &self.0 {
            gaps.push(Interval { from, to: interval.from.clone() });
            from = interval.to.clone();
        }
        gaps.push(Interval { from, to: Edge::End });
        Self::of(gaps)
    }

    /// The intervals, in order.
    pub fn intervals(&self) -> &[Interval] {
        &self.0
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its values in order, if it consists of single values.
    pub fn points(&self) -> Option<Vec<&Bytes>> {
        self.0.iter().map(Interval::point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn b(n: u8) -> Bytes {
        Bytes::from(vec![n])
    }

    /// A random domain and the same set as a table of booleans.
    fn random(rng: &mut fastrand::Rng) -> (Domain, [bool; 8]) {
        const ALL: [Comparison; 6] = [
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::GreaterOrEqual,
            Comparison::Greater,
        ];
        match rng.u8(0..3) {
            0 => {
                let (comparison, v) = (ALL[rng.usize(0..6)], rng.u8(0..8));
                (Domain::compared(comparison, &b(v)), std::array::from_fn(|i| comparison.accepts((i as u8).cmp(&v))))
            }
            1 => {
                let (low, high) = (rng.u8(0..8), rng.u8(0..8));
                (Domain::between(&b(low), &b(high)), std::array::from_fn(|i| (low..=high).contains(&(i as u8))))
            }
            _ => {
                let values: Vec<u8> = (0..rng.usize(0..5)).map(|_| rng.u8(0..8)).collect();
                let bytes: Vec<Bytes> = values.iter().map(|v| b(*v)).collect();
                (Domain::values(&bytes), std::array::from_fn(|i| values.contains(&(i as u8))))
            }
        }
    }

    #[test]
    fn sets_agree_with_tables() {
        for seed in 0..20_000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut domain, mut table) = random(&mut rng);
            for _ in 0..rng.usize(0..4) {
                let (other, there) = random(&mut rng);
                if rng.bool() {
                    domain = Domain::union_of([&domain, &other].into_iter());
                    table = std::array::from_fn(|i| table[i] || there[i]);
                } else {
                    domain = domain.intersection(&other);
                    table = std::array::from_fn(|i| table[i] && there[i]);
                }
                if rng.u8(0..4) == 0 {
                    domain = domain.complement();
                    table = table.map(|there| !there);
                }
            }
            for (i, expected) in table.iter().enumerate() {
                assert_eq!(domain.contains(&[i as u8]), *expected, "seed {seed}, value {i}, {domain:?}");
            }
        }
    }

    #[test]
    fn domains_survive_being_written_down() {
        for seed in 0..1_000 {
            let (domain, _) = random(&mut fastrand::Rng::with_seed(seed));
            let written = serde_json::to_string(&domain).unwrap();
            assert_eq!(serde_json::from_str::<Domain>(&written).unwrap(), domain, "{written}");
        }
        for broken in ["below 0", "above 0g", "before 00", ""] {
            assert!(serde_json::from_value::<Edge>(broken.into()).is_err(), "{broken}");
        }
    }

    #[test]
    fn points_are_told_from_ranges() {
        assert_eq!(Domain::values(&[b(3), b(1), b(3)]).points(), Some(vec![&b(1), &b(3)]));
        assert_eq!(Domain::compared(Comparison::NotEqual, &b(3)).points(), None);
        assert!(Domain::between(&b(3), &b(1)).is_empty());
        assert_eq!(Domain::between(&b(2), &b(2)).points(), Some(vec![&b(2)]));
    }
}
