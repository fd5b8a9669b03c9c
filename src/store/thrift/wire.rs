//! Thrift's binary protocol from a peer that may be anything.
//!
//! The crate's own reader allocates whatever length it is told, and panics on a negative one. This one reads no more than a
//! reply may hold, and takes memory as bytes arrive.

use std::io::{self, Read};
use thrift::protocol::{
    TBinaryInputProtocol, TFieldIdentifier, TInputProtocol, TListIdentifier, TMapIdentifier, TMessageIdentifier,
    TSetIdentifier, TStructIdentifier, TType,
};
use thrift::{Error, ProtocolError, ProtocolErrorKind, Result};

/// The most elements a list may say it has: their memory is taken before they come.
const MOST_ELEMENTS: i32 = 1 << 20;

/// Reads replies, none larger than a number of bytes.
pub(in crate::store) struct BoundedInput<R: Read> {
    inner: TBinaryInputProtocol<Metered<R>>,
    most: usize,
}

impl<R: Read> BoundedInput<R> {
    /// No reply is larger than `most` bytes.
    pub(in crate::store) fn new(reader: R, most: usize) -> Self {
        Self { inner: TBinaryInputProtocol::new(Metered { reader, left: most }, true), most }
    }

    fn length(&mut self) -> Result<usize> {
        let length = self.inner.read_i32()?;
        match usize::try_from(length) {
            Ok(length) if length <= self.inner.transport.left => Ok(length),
            _ => Err(size_limit(format!("expected at most {} bytes, found a length of {length}", self.most))),
        }
    }

    fn elements(&self, size: i32) -> Result<()> {
        // Each takes a byte at least.
        if (0..=MOST_ELEMENTS).contains(&size) && size as usize <= self.inner.transport.left {
            return Ok(());
        }
        Err(size_limit(format!("expected at most {MOST_ELEMENTS} elements, found {size}")))
    }
}

fn size_limit(message: String) -> Error {
    Error::Protocol(ProtocolError { kind: ProtocolErrorKind::SizeLimit, message })
}

impl<R: Read> TInputProtocol for BoundedInput<R> {
    fn read_message_begin(&mut self) -> Result<TMessageIdentifier> {
        self.inner.transport.left = self.most;
        // As the binary protocol's strict form has it: 0x80 0x01, a byte, the message's type; its name; its number.
        let head = self.inner.read_i32()?.to_be_bytes();
        if head[..2] != [0x80, 0x01] {
            let message =
                format!("expected the binary protocol's version 80 01, found {:02x} {:02x}", head[0], head[1]);
            return Err(Error::Protocol(ProtocolError { kind: ProtocolErrorKind::BadVersion, message }));
        }
        let message_type = head[3].try_into()?;
        let name = self.read_string()?;
        Ok(TMessageIdentifier::new(name, message_type, self.inner.read_i32()?))
    }

    fn read_bytes(&mut self) -> Result<Vec<u8>> {
        let length = self.length()?;
        let mut bytes = Vec::with_capacity(length.min(64 << 10));
        (&mut self.inner.transport).take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(bytes)
    }

    fn read_string(&mut self) -> Result<String> {
        // An exception's text may quote bytes of a row.
        Ok(String::from_utf8_lossy(&self.read_bytes()?).into_owned())
    }

    fn read_list_begin(&mut self) -> Result<TListIdentifier> {
        let list = self.inner.read_list_begin()?;
        self.elements(list.size)?;
        Ok(list)
    }

    fn read_set_begin(&mut self) -> Result<TSetIdentifier> {
        let set = self.inner.read_set_begin()?;
        self.elements(set.size)?;
        Ok(set)
    }

    fn read_map_begin(&mut self) -> Result<TMapIdentifier> {
        let map = self.inner.read_map_begin()?;
        self.elements(map.size)?;
        Ok(map)
    }

    // What is not known is read over. The default would refuse bytes that are no text, and go 64 structures deep.
    fn skip_till_depth(&mut self, kind: TType, depth: i8) -> Result<()> {
        if depth <= 0 {
            let message = "expected structures in few others, found them too deep".to_owned();
            return Err(Error::Protocol(ProtocolError { kind: ProtocolErrorKind::DepthLimit, message }));
        }
        match kind {
            TType::Bool | TType::I08 => self.read_i8().map(drop),
            TType::I16 => self.read_i16().map(drop),
            TType::I32 => self.read_i32().map(drop),
            TType::I64 | TType::Double => self.read_i64().map(drop),
            TType::String => {
                let length = self.length()? as u64;
                let skipped = io::copy(&mut (&mut self.inner.transport).take(length), &mut io::sink())?;
                if skipped < length { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) } else { Ok(()) }
            }
            TType::Struct => loop {
                let field = self.read_field_begin()?;
                if field.field_type == TType::Stop {
                    return Ok(());
                }
                self.skip_till_depth(field.field_type, depth - 1)?;
            },
            TType::List => {
                let list = self.read_list_begin()?;
                (0..list.size).try_for_each(|_| self.skip_till_depth(list.element_type, depth - 1))
            }
            TType::Set => {
                let set = self.read_set_begin()?;
                (0..set.size).try_for_each(|_| self.skip_till_depth(set.element_type, depth - 1))
            }
            TType::Map => {
                let map = self.read_map_begin()?;
                let (Some(key), Some(value)) = (map.key_type, map.value_type) else { return Ok(()) };
                (0..map.size).try_for_each(|_| {
                    self.skip_till_depth(key, depth - 1)?;
                    self.skip_till_depth(value, depth - 1)
                })
            }
            other => {
                let message = format!("expected a type of Thrift's binary protocol, found {other:?}");
                Err(Error::Protocol(ProtocolError { kind: ProtocolErrorKind::InvalidData, message }))
            }
        }
    }

    fn read_message_end(&mut self) -> Result<()> {
        self.inner.read_message_end()
    }

    fn read_struct_begin(&mut self) -> Result<Option<TStructIdentifier>> {
        self.inner.read_struct_begin()
    }

    fn read_struct_end(&mut self) -> Result<()> {
        self.inner.read_struct_end()
    }

    fn read_field_begin(&mut self) -> Result<TFieldIdentifier> {
        self.inner.read_field_begin()
    }

    fn read_field_end(&mut self) -> Result<()> {
        self.inner.read_field_end()
    }

    fn read_bool(&mut self) -> Result<bool> {
        self.inner.read_bool()
    }

    fn read_i8(&mut self) -> Result<i8> {
        self.inner.read_i8()
    }

    fn read_i16(&mut self) -> Result<i16> {
        self.inner.read_i16()
    }

    fn read_i32(&mut self) -> Result<i32> {
        self.inner.read_i32()
    }

    fn read_i64(&mut self) -> Result<i64> {
        self.inner.read_i64()
    }

    fn read_double(&mut self) -> Result<f64> {
        self.inner.read_double()
    }

    fn read_list_end(&mut self) -> Result<()> {
        self.inner.read_list_end()
    }

    fn read_set_end(&mut self) -> Result<()> {
        self.inner.read_set_end()
    }

    fn read_map_end(&mut self) -> Result<()> {
        self.inner.read_map_end()
    }

    fn read_byte(&mut self) -> Result<u8> {
        self.inner.read_byte()
    }
}

/// Counts down what a reply may still hold.
struct Metered<R> {
    reader: R,
    left: usize,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the reply is larger than it may be"));
        }
        let most = buffer.len().min(self.left);
        let read = self.reader.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn input(bytes: &[u8]) -> BoundedInput<&[u8]> {
        BoundedInput::new(bytes, 1 << 20)
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        for length in [-1_i32, i32::MIN, i32::MAX, (1 << 20) + 1] {
            let error = input(&length.to_be_bytes()).read_bytes().unwrap_err();
            assert!(format!("{error:?}").contains(&length.to_string()), "{error:?}");
            let list = [&[11][..], &length.to_be_bytes()].concat();
            assert!(input(&list).read_list_begin().is_err());
            let map = [&[11, 11][..], &length.to_be_bytes()].concat();
            assert!(input(&map).read_map_begin().is_err());
        }
        assert_eq!(input(&[0, 0, 0, 2, 7, 8]).read_bytes().unwrap(), [7, 8]);
        assert!(input(&[0, 0, 0, 3, 7, 8]).read_bytes().is_err(), "cut off");
        assert!(input(b"HTTP/1.1 400").read_message_begin().is_err());
    }

    #[test]
    fn a_reply_has_an_end() {
        let mut endless = BoundedInput::new(io::repeat(11), 1 << 16);
        assert!(endless.skip(TType::Struct).is_err());
        let mut deep = BoundedInput::new(io::repeat(12), 1 << 16);
        assert!(deep.skip(TType::Struct).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_skipped_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400), kind in 0_u8..16) {
            let kinds = [TType::Struct, TType::List, TType::Map, TType::Set, TType::String, TType::Bool];
            let _ = input(&bytes).skip(kinds[usize::from(kind) % kinds.len()]);
            let _ = input(&bytes).read_message_begin();
        }
    }
}
