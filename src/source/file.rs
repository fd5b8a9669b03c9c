//! JSON-lines files: `{"id": "…", "ts": 1783764997000, "attrs": {"colour": "red", "tags": ["a", "b"], "old": null}}`.
//!
//! Arrays are multi-valued attributes, null deletes, an attribute that is not mentioned is unchanged. `ts` may be left out.
//! Files ending in `.zst` are decompressed on the way.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Timestamp, check_timestamp};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes a line may have.
const MAX_LINE: u64 = 64 << 20;

/// One line of a file: what is said of one row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The row key, as text; none where the parts of the key are among the attributes.
    pub id: Option<String>,
    /// Timestamp of the change in milliseconds since 1970; none leaves it to the write helper.
    pub ts: Option<Timestamp>,
    /// Attributes by name, each at most once.
    #[serde(deserialize_with = "attributes")]
    pub attrs: serde_json::Map<String, serde_json::Value>,
}

/// An object in which no key stands twice: which of the values was meant cannot be known.
fn attributes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<serde_json::Map<String, serde_json::Value>, D::Error> {
    struct Attributes;

    impl<'de> Visitor<'de> for Attributes {
        type Value = serde_json::Map<String, serde_json::Value>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of attributes")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> std::result::Result<Self::Value, A::Error> {
            let mut attributes = serde_json::Map::new();
            while let Some((name, value)) = access.next_entry::<String, serde_json::Value>()? {
                if attributes.contains_key(&name) {
                    return Err(A::Error::custom(format!("attribute {name:?} is given twice; give it once")));
                }
                attributes.insert(name, value);
            }
            Ok(attributes)
        }
    }

    deserializer.deserialize_map(Attributes)
}

/// A record and the number of its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Counted from 1.
    pub number: u64,
    /// What it says.
    pub record: Record,
    /// Its length in bytes.
    pub bytes: usize,
}

/// Reads a file line by line. Memory is bounded by one line.
pub struct JsonLines {
    path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    read: Arc<AtomicU64>,
    size: u64,
    number: u64,
    buffer: Vec<u8>,
}

impl JsonLines {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] and [`ErrorKind::Store`] name the file.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::read(path, Box::new(std::io::stdin()), 0);
        }
        let file = File::open(path).map_err(|e| cannot_read(path, e))?;
        let size = file.metadata().map_err(|e| cannot_read(path, e))?.len();
        Self::read(path, Box::new(file), size)
    }

    /// Reads bytes that are at hand as if they were the file `name`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn bundled(name: &str, bytes: &'static [u8]) -> Result<Self> {
        Self::read(Path::new(name), Box::new(bytes), bytes.len() as u64)
    }

    fn read(path: &Path, raw: Box<dyn Read + Send>, size: u64) -> Result<Self> {
        let read = Arc::new(AtomicU64::new(0));
        let raw = Counted { inner: raw, read: Arc::clone(&read) };
        let reader: Box<dyn BufRead + Send> = if path.extension().is_some_and(|e| e == "zst") {
            Box::new(BufReader::new(zstd::Decoder::new(raw).map_err(|e| cannot_read(path, e))?))
        } else {
            Box::new(BufReader::with_capacity(1 << 16, raw))
        };
        Ok(Self { path: path.to_owned(), reader, read, size, number: 0, buffer: Vec::new() })
    }

    /// Size of the file in bytes; 0 when it isn't known.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of the file read so far.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The next line that is not empty.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] names the file and the line.
    #[expect(clippy::should_implement_trait, reason = "an iterator that goes on after an error is a trap")]
    pub fn next(&mut self) -> Result<Option<Line>> {
        loop {
            self.buffer.clear();
            let mut limited = (&mut self.reader).take(MAX_LINE);
            let n = limited.read_until(b'\n', &mut self.buffer).map_err(|e| cannot_read(&self.path, e))?;
            if n == 0 {
                return Ok(None);
            }
            self.number += 1;
            let number = self.number;
            if n as u64 == MAX_LINE {
                let e = Error::invalid(format!("expected a line of less than {MAX_LINE} bytes"));
                return Err(e.within(self.place(number)));
            }
            if self.buffer.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            return match parse(&self.buffer) {
                Ok(record) => Ok(Some(Line { number, record, bytes: n })),
                Err(e) => Err(e.within(self.place(number))),
            };
        }
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `file:line`, for messages.
    fn place(&self, number: u64) -> String {
        format!("{}:{number}", self.path.display())
    }
}

/// Parses one line.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] says what was expected.
pub fn parse(line: &[u8]) -> Result<Record> {
    let text = std::str::from_utf8(line).map_err(|e| {
        let at = e.valid_up_to();
        Error::invalid(format!(
            "expected UTF-8, found the byte 0x{:02x} as byte {} of the line; convert the file, with iconv for one",
            line[at],
            at + 1
        ))
        .with_source(e)
    })?;
    let record: Record = serde_json::from_str(text).map_err(|e| {
        let message = e.to_string();
        // The line is the file's, and known.
        let place = format!(" at line {} column {}", e.line(), e.column());
        let message = message.strip_suffix(&place).unwrap_or(&message);
        let expected = r#"expected {"id": "row key", "ts": milliseconds, "attrs": {…}}"#;
        Error::invalid(format!("{expected}, found a line with: {message}, at column {}", e.column())).with_source(e)
    })?;
    if record.id.as_ref().is_some_and(String::is_empty) {
        return Err(Error::invalid("expected a row key in \"id\", found an empty text"));
    }
    if let Some(ts) = record.ts {
        check_timestamp(ts).map_err(|e| e.within("\"ts\""))?;
    }
    Ok(record)
}

fn cannot_read(path: &Path, e: std::io::Error) -> Error {
    let kind = if e.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Store };
    Error::new(kind, format!("cannot read {}: {e}", path.display())).with_source(e)
}

/// Counts the bytes that pass.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::{outcome, run};

    const GOOD: &[u8] = br#"{"id":"good","attrs":{"a":1}}"#;

    #[test]
    fn fuzz_json_lines() {
        let words = ["{\"id\":\"a\"", ",\"ts\":", ",\"attrs\":{", "}", "\n", "\r\n", "\"", "null", "\\u0000"];
        run("json_lines", &words, |input| {
            // Good lines follow whatever the input is.
            let bytes = [input, b"\n", GOOD, b"\n\n", GOOD].concat();
            let expected: Vec<(u64, Result<Record>)> = bytes
                .split(|b| *b == b'\n')
                .zip(1..)
                .filter(|(line, _)| !line.iter().all(u8::is_ascii_whitespace))
                .map(|(line, number)| (number, parse(line)))
                .collect();
            let size = bytes.len() as u64;
            let mut lines = JsonLines::read(Path::new("f.jsonl"), Box::new(std::io::Cursor::new(bytes)), size).unwrap();
            for (number, record) in &expected {
                match (lines.next(), record) {
                    (Ok(Some(line)), Ok(record)) => {
                        assert_eq!((line.number, &line.record), (*number, record));
                        assert!(record.id.as_ref().is_none_or(|id| !id.is_empty()));
                    }
                    (Err(error), Err(_)) => {
                        assert_eq!(error.kind(), ErrorKind::InvalidInput);
                        assert!(error.to_string().starts_with(&format!("f.jsonl:{number}: ")), "{error}");
                    }
                    (found, expected) => panic!("line {number}: expected {expected:?}, found {found:?}"),
                }
            }
            assert_eq!(lines.next().unwrap(), None);
            assert_eq!(lines.bytes_read(), size);
            let packed = Box::new(std::io::Cursor::new(input.to_vec()));
            let mut packed = JsonLines::read(Path::new("f.zst"), packed, 0).unwrap();
            let error = loop {
                match packed.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            assert!(error.is_none_or(|error| error.to_string().contains("f.zst")));
            expected.iter().take(4).map(|(_, record)| outcome(record)).collect::<Vec<_>>().join("; ")
        });
    }
}
