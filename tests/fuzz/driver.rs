//! Runs a check over a corpus and over what random changes make of it. Used by `tests/fuzz` and by unit tests of the crate.
//!
//! A target's corpus is a folder under `tests/fuzz/corpus`. A file ending in `.lines` holds one input a line, one ending in
//! `.escaped` one a line with `\x00`, `\n`, `\\` for what is no plain character; any other file is one input. Every input
//! of the corpus is checked on every run, so a failure that was found once stays found: its line goes into `found.escaped`.
//!
//! `SIDEINDEX_FUZZ` says how long to go on: a number of inputs a target, or a time like `10m`. `SIDEINDEX_SEED` replays.

use fastrand::Rng;
use std::collections::HashSet;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Inputs a target unless told otherwise.
const INPUTS: u64 = 5_000;
/// The longest input made, in bytes.
const LONGEST: usize = 4_096;
/// The most inputs kept for what they showed first.
const KEPT: usize = 2_000;

/// Checks every input of the corpus of `target`, then random changes of them, which may put one of `words` in.
///
/// `check` panics where something does not hold, and names what became of the input: the first input of each outcome is
/// changed further, as those of the corpus are.
pub fn run(target: &str, words: &[&str], check: impl Fn(&[u8]) -> String) {
    let mut pool = corpus(target);
    let seeds = pool.len();
    let budget = Budget::of_environment();
    let seed = std::env::var("SIDEINDEX_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| budget.seed());
    let mut rng = Rng::with_seed(seed);
    let mut outcomes = HashSet::new();
    let attempt = |input: &[u8]| catch_unwind(AssertUnwindSafe(|| check(input)));
    let failed = |input: &[u8], number: u64, payload: &(dyn std::any::Any + Send)| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let message = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        let smallest = shrunk(input, &|shorter| attempt(shorter).is_err());
        panic!(
            "{target}, SIDEINDEX_SEED={seed}, input {number}: {message}\nthe line for tests/fuzz/corpus/{target}/found.escaped, after which it stays found:\n{}",
            smallest.escape_ascii()
        );
    };
    for input in &pool {
        match attempt(input) {
            Ok(outcome) => _ = outcomes.insert(outcome),
            Err(payload) => failed(input, 0, payload.as_ref()),
        }
    }
    let (mut number, mut slowest) = (0, Duration::ZERO);
    while budget.lasts(number) {
        number += 1;
        let input = changed(&pool, seeds, words, &mut rng);
        let started = Instant::now();
        let attempted = attempt(&input);
        slowest = slowest.max(started.elapsed());
        match attempted {
            Ok(outcome) => {
                if pool.len() < seeds + KEPT && outcomes.insert(outcome) {
                    pool.push(input);
                }
            }
            Err(payload) => failed(&input, number, payload.as_ref()),
        }
    }
    println!(
        "{target}: {seeds} inputs of the corpus, {number} made of them, {} outcomes, slowest {slowest:?}",
        outcomes.len()
    );
}

/// What became of an input: `ok`, or the error's message without what it quotes and counts.
pub fn outcome<T, E: Display>(result: &Result<T, E>) -> String {
    let Err(error) = result else { return "ok".to_owned() };
    let message = error.to_string();
    assert!(!message.trim().is_empty(), "an error without a message");
    let expected = message.split("found").next().unwrap_or_default();
    let unquoted = expected.split(['"', '\'']).step_by(2);
    unquoted.flat_map(str::chars).filter(|c| c.is_alphabetic() || *c == ' ').take(120).collect()
}

/// How long to go on.
enum Budget {
    Inputs(u64),
    Until(Instant),
}

impl Budget {
    fn of_environment() -> Self {
        let Ok(text) = std::env::var("SIDEINDEX_FUZZ") else { return Self::Inputs(INPUTS) };
        match (text.parse(), humantime::parse_duration(&text)) {
            (Ok(inputs), _) => Self::Inputs(inputs),
            (_, Ok(time)) => Self::Until(Instant::now() + time.max(Duration::from_secs(1))),
            _ => panic!("SIDEINDEX_FUZZ: expected a number of inputs or a time like 10m, found {text:?}"),
        }
    }

    /// The seed unless one is given: a short run is the same every time, a long one goes where none has been.
    fn seed(&self) -> u64 {
        match self {
            Self::Inputs(INPUTS) => 0,
            _ => fastrand::u64(..),
        }
    }

    fn lasts(&self, number: u64) -> bool {
        match self {
            Self::Inputs(inputs) => number < *inputs,
            Self::Until(end) => !number.is_multiple_of(16) || Instant::now() < *end,
        }
    }
}

/// The inputs of a target's corpus, in the order of their files.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let mut inputs = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        match path.extension().and_then(|e| e.to_str()) {
            Some("lines") => inputs.extend(lines.map(<[u8]>::to_vec)),
            Some("escaped") => inputs.extend(lines.map(unescaped)),
            _ => inputs.push(bytes),
        }
    }
    assert!(!inputs.is_empty(), "{}: expected inputs, found none", folder.display());
    inputs
}

/// Undoes [`slice::escape_ascii`].
fn unescaped(line: &[u8]) -> Vec<u8> {
    let shown = line.escape_ascii();
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'\\', [b'n', after @ ..]) => (b'\n', after),
            (b'\\', [b'r', after @ ..]) => (b'\r', after),
            (b'\\', [b't', after @ ..]) => (b'\t', after),
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digit = |d: u8| char::from(d).to_digit(16).unwrap_or_else(|| panic!("no escape: {shown}"));
                ((digit(*high) * 16 + digit(*low)) as u8, after)
            }
            (b'\\', [c @ (b'\\' | b'\'' | b'"'), after @ ..]) => (*c, after),
            (b'\\', _) => panic!("no escape: {shown}"),
            (plain, after) => (*plain, after),
        };
        out.push(byte);
        rest = after;
    }
    out
}

/// One of the pool after a few random changes; every other time one of the corpus, with which it starts.
fn changed(pool: &[Vec<u8>], seeds: usize, words: &[&str], rng: &mut Rng) -> Vec<u8> {
    let among = if rng.bool() { seeds } else { pool.len() };
    let mut input = pool[rng.usize(..among)].clone();
    for _ in 0..1 + rng.usize(..6).saturating_sub(2) {
        change(&mut input, pool, words, rng);
    }
    input.truncate(LONGEST);
    input
}

fn change(input: &mut Vec<u8>, pool: &[Vec<u8>], words: &[&str], rng: &mut Rng) {
    /// Bytes that mean something somewhere: type bytes, signs, terminators, quotes.
    const BYTES: &[u8] = b"\x00\x01\x02\x05\x10\x20\x28\x30\x40\x50\x60\x7f\x80\xc0\xfe\xff'\"\\%_(){}[],:;.-+eE \n\r$";
    const TEXTS: [&str; 12] = [
        "0",
        "-0",
        "1",
        "-1",
        "255",
        "65536",
        "2147483648",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551616",
        "1e400",
        "0.1",
    ];
    let at = rng.usize(..=input.len());
    let stretch = |of: &[u8], rng: &mut Rng| {
        let start = rng.usize(..=of.len());
        start..(start + rng.usize(..16)).min(of.len())
    };
    match rng.u8(..13) {
        0 if at < input.len() => input[at] ^= 1 << rng.u8(..8),
        1 if at < input.len() => input[at] = BYTES[rng.usize(..BYTES.len())],
        2 => input.insert(at, BYTES[rng.usize(..BYTES.len())]),
        3 => input.insert(at, rng.u8(..)),
        4 => _ = input.drain(stretch(input, rng)),
        5 => input.truncate(at),
        6 => _ = input.drain(..at),
        // The start of this one, the end of another.
        7 => {
            let other = &pool[rng.usize(..pool.len())];
            input.truncate(at);
            input.extend_from_slice(&other[rng.usize(..=other.len())..]);
        }
        // A piece of another, or of itself, put in or written over.
        8 => {
            let other = if rng.bool() { input.clone() } else { pool[rng.usize(..pool.len())].clone() };
            let piece = stretch(&other, rng);
            let end = if rng.bool() { at } else { (at + piece.len()).min(input.len()) };
            input.splice(at..end, other[piece].iter().copied());
        }
        9 | 10 if !words.is_empty() => {
            let word = words[rng.usize(..words.len())];
            input.splice(at..at, word.bytes());
        }
        // A number at its edge, in bytes.
        11 => {
            const EDGES: [i64; 9] = [0, 1, -1, i64::MIN, i64::MAX, i32::MIN as i64, i32::MAX as i64, 1 << 32, 1 << 16];
            let bytes = (EDGES[rng.usize(..EDGES.len())].wrapping_add(rng.i64(-1..=1))).to_be_bytes();
            let bytes = &bytes[8 - [1, 2, 4, 8][rng.usize(..4)]..];
            let end = (at + bytes.len()).min(input.len());
            input.splice(at..end, bytes.iter().copied());
        }
        // The same in digits, in the place of one that is there.
        _ => {
            let is_digit = |b: &u8| b.is_ascii_digit();
            let start = input[at..].iter().position(is_digit).map_or(at, |n| at + n);
            let len = input[start..].iter().take_while(|b| is_digit(b)).count();
            input.splice(start..start + len, TEXTS[rng.usize(..TEXTS.len())].bytes());
        }
    }
}

/// A smaller input that fails too, by leaving stretches out.
fn shrunk(input: &[u8], fails: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut stretch = best.len().next_power_of_two();
    while stretch > 0 {
        let mut at = 0;
        while at < best.len() {
            let mut shorter = best.clone();
            shorter.drain(at..(at + stretch).min(best.len()));
            if fails(&shorter) { best = shorter } else { at += stretch }
        }
        stretch /= 2;
    }
    best
}
