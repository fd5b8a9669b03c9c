//! What people write beside SQL: declarations, values, tokens they hand back.

use crate::driver::{outcome, run};
use sideindex::schema::{AttributeSpec, AttributeType, BaseEncoding, Decimal, Function, Key, TermSpec, calendar};
use sideindex::source::Freshness;
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// What is read and written again is read as the same.
fn comes_back<T>(text: &str) -> String
where
    T: FromStr<Err: Display + Debug> + Display + PartialEq + Debug,
{
    let parsed = text.parse::<T>();
    if let Ok(value) = &parsed {
        let shown = value.to_string();
        assert_eq!(&shown.parse::<T>().unwrap_or_else(|e| panic!("{shown:?}: {e}")), value, "{shown:?}");
        assert_eq!(value.to_string(), shown);
    }
    outcome(&parsed)
}

#[test]
fn fuzz_declarations() {
    let words = [
        "lower(", "trim(", "nfkc(", ")", " desc", " asc", "text", "int", "bytes", "decimal", "[]", ":json", ":hbase",
        ":utf8", " sep '", "'", "md5(", "xxh3(", " ordered", ", ", "=", "\\x00",
    ];
    run("declarations", &words, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return String::new() };
        [
            comes_back::<TermSpec>(text),
            comes_back::<AttributeSpec>(text),
            comes_back::<AttributeType>(text),
            comes_back::<BaseEncoding>(text),
            comes_back::<Function>(text),
            comes_back::<Key>(text),
        ]
        .join("; ")
    });
}

#[test]
fn fuzz_numbers_and_times() {
    run("numbers_and_times", &["e", "E+", "-", ".", "T", "Z", "+14:00", "[UTC]", "0000"], |input| {
        let Ok(text) = std::str::from_utf8(input) else { return String::new() };
        let time = calendar::parse(text);
        if let Some(ms) = time {
            assert_eq!(calendar::parse(&calendar::show(ms)), Some(ms));
        }
        format!("{} {}", comes_back::<Decimal>(text), time.is_some())
    });
}

#[test]
fn fuzz_freshness_tokens() {
    run("freshness_tokens", &["A", "AQ", "=", "-", "_"], |input| {
        // Read as a token, and as what one is made of.
        if let Some((number, table)) = input.split_first_chunk::<8>()
            && let Ok(table) = std::str::from_utf8(table)
        {
            comes_back::<Freshness>(&Freshness::new(table, u64::from_be_bytes(*number)).to_string());
        }
        let Ok(text) = std::str::from_utf8(input) else { return String::new() };
        comes_back::<Freshness>(text)
    });
}
