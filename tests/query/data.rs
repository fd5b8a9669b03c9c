//! Random values, nasty ones among them.

use fastrand::Rng;
use std::cmp::Ordering;

/// A value, as the test knows it.
#[derive(Debug, Clone)]
pub enum V {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Float,
    Text,
}

/// What a row has in a column.
#[derive(Debug, Clone)]
pub enum Held {
    Null,
    One(V),
    Many(Vec<V>),
    /// A cell that does not decode, which counts as null.
    Broken,
}

impl Held {
    pub fn elements(&self) -> &[V] {
        match self {
            Self::Null | Self::Broken => &[],
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

impl V {
    /// The order of one type's values: false first; numbers by size, NaN last; text by its bytes.
    pub fn order(&self, other: &V) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => u8::from(*a).cmp(&u8::from(*b)),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Float(a), Self::Float(b)) => {
                a.partial_cmp(b).unwrap_or_else(|| u8::from(a.is_nan()).cmp(&u8::from(b.is_nan())))
            }
            _ => panic!("{self:?} and {other:?} have different types"),
        }
    }

    /// As the answer's JSON must show it.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Self::Bool(b) => serde_json::json!(b),
            Self::Int(i) => serde_json::json!(i),
            Self::Text(t) => serde_json::json!(t),
            Self::Float(f) if f.is_nan() => serde_json::json!("NaN"),
            Self::Float(f) if *f == 0.0 => serde_json::json!(0.0),
            Self::Float(f) => serde_json::json!(f),
        }
    }

    /// As a UTF-8 cell.
    pub fn text(&self) -> String {
        match self {
            Self::Bool(b) => b.to_string(),
            Self::Int(i) => i.to_string(),
            Self::Float(f) => f.to_string(),
            Self::Text(t) => t.clone(),
        }
    }

    /// As HBase's class `Bytes` writes it.
    pub fn hbase(&self) -> Vec<u8> {
        match self {
            Self::Bool(b) => vec![if *b { 0xFF } else { 0 }],
            Self::Int(i) => i.to_be_bytes().to_vec(),
            Self::Float(f) => f.to_bits().to_be_bytes().to_vec(),
            Self::Text(t) => t.clone().into_bytes(),
        }
    }

    /// As a JSON cell; unlike [`json`](Self::json) it keeps the sign of zero.
    pub fn stored_json(&self) -> String {
        match self {
            Self::Float(f) if !f.is_nan() => format!("{f:?}"),
            other => other.json().to_string(),
        }
    }

    pub fn random(kind: Kind, rng: &mut Rng) -> V {
        const TEXTS: [&str; 26] = [
            "",
            "a",
            "b",
            "aa",
            "ab",
            "\0",
            "a\0",
            "a\0b",
            "\0\u{1}",
            "é",
            "日本",
            "\u{10FFFF}",
            "it's",
            "\\",
            "%",
            "A",
            " a",
            "B\u{3000}",
            "\u{FF21}",
            // Longer than what definitions here keep of a text, and alike for as long.
            "aaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaab",
            "aaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaé",
            "aaaaaaaaaaaaaaaab",
            "aaaaaaaaaaaaa\0aaaa",
        ];
        const INTS: [i64; 12] = [i64::MIN, i64::MIN + 1, -256, -2, -1, 0, 1, 2, 3, 255, i64::MAX - 1, i64::MAX];
        const FLOATS: [f64; 14] =
            [f64::MIN, -1e10, -1.5, -1.0, -f64::MIN_POSITIVE, -0.0, 0.0, 5e-324, 0.1, 1.0, 1.5, 2.0, 1e300, f64::MAX];
        match kind {
            Kind::Bool => V::Bool(rng.bool()),
            // Mostly few values, so that conditions meet them.
            Kind::Int if rng.u8(0..3) == 0 => V::Int(INTS[rng.usize(0..INTS.len())]),
            Kind::Int => V::Int(rng.i64(0..5)),
            Kind::Float => V::Float(FLOATS[rng.usize(0..FLOATS.len())]),
            Kind::Text if rng.bool() => V::Text(TEXTS[rng.usize(0..TEXTS.len())].to_owned()),
            Kind::Text => V::Text(["a", "b", "c", "ab"][rng.usize(0..4)].to_owned()),
        }
    }
}

/// A function of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fun {
    Trim,
    Lower,
    Nfkc,
}

impl Fun {
    pub fn random(rng: &mut Rng) -> Vec<Self> {
        let one = |rng: &mut Rng| [Self::Trim, Self::Lower, Self::Nfkc][rng.usize(0..3)];
        // Few, so that queries and definitions meet.
        if rng.u8(0..4) > 0 { vec![one(rng)] } else { vec![Self::Nfkc, one(rng)] }
    }

    fn apply(self, text: &str) -> String {
        use unicode_normalization::UnicodeNormalization;
        match self {
            Self::Trim => text.trim_matches(char::is_whitespace).to_owned(),
            Self::Lower => text.chars().flat_map(char::to_lowercase).collect(),
            Self::Nfkc => text.nfkc().collect(),
        }
    }
}

/// A value under functions, the innermost first.
pub fn apply(functions: &[Fun], value: &V) -> V {
    match value {
        V::Text(text) => V::Text(functions.iter().fold(text.clone(), |text, f| f.apply(&text))),
        other => other.clone(),
    }
}

/// A row key: mostly plain, sometimes not even UTF-8.
pub fn random_key(rng: &mut Rng, rows: usize) -> Vec<u8> {
    const NASTY: [&[u8]; 10] =
        [b"\0", b"\0\xff", b"\xff", b"\xff\xff", b"a\0b", b"\xc3\xa9", b"x\xc3", b"a'b", b"a\\", b"\x00\x01"];
    if rng.u8(0..4) == 0 {
        return NASTY[rng.usize(0..NASTY.len())].to_vec();
    }
    format!("r{}", rng.usize(0..rows + 10)).into_bytes()
}
