//! Connections to a gateway.

use super::wire::BoundedInput;
use crate::error::{Error, ErrorKind, Result};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use thrift::protocol::TBinaryOutputProtocol;

/// What a gateway sends its messages in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// One after the other: HBase's default.
    Buffered,
    /// Each with its length before it: gateways started with `-f`, and nonblocking ones.
    Framed,
}

/// A Thrift gateway, and how to speak to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// `host:port`.
    pub address: String,
    /// What it sends its messages in.
    pub transport: Transport,
    /// At most so many connections; callers wait for one.
    pub connections: usize,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for more of an answer. A filtered scan may look at a whole region before it finds a row.
    pub answer_timeout: Duration,
    /// The largest answer, in bytes.
    pub largest_answer: usize,
}

impl Gateway {
    /// A gateway with HBase's default transport, 8 connections, 5 seconds to connect, 60 to answer, and answers up to 256 MiB.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            transport: Transport::Buffered,
            connections: 8,
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(60),
            largest_answer: 256 << 20,
        }
    }
}

pub(in crate::store) type Input = BoundedInput<Incoming>;
pub(in crate::store) type Output = TBinaryOutputProtocol<Outgoing>;

/// Opens a connection: the two halves for a client, and the socket itself.
///
/// # Errors
/// [`Unreachable`](ErrorKind::Unreachable) when nobody answers,
/// [`InvalidInput`](ErrorKind::InvalidInput) for an address that is none.
pub(in crate::store) fn connect(gateway: &Gateway) -> Result<(Input, Output, TcpStream)> {
    let address = &gateway.address;
    let unreachable = |e: io::Error| {
        Error::new(ErrorKind::Unreachable, format!("expected a Thrift gateway at {address}, found {e}; is it running?"))
            .with_source(e)
    };
    let candidates: Vec<_> = address
        .to_socket_addrs()
        .map_err(|e| match e.kind() {
            io::ErrorKind::InvalidInput => {
                Error::invalid(format!("expected a gateway's address as host:port, found {address:?}"))
            }
            _ => unreachable(e),
        })?
        .collect();
    let mut stream = Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
    for candidate in candidates {
        stream = TcpStream::connect_timeout(&candidate, gateway.connect_timeout);
        if stream.is_ok() {
            break;
        }
    }
    let stream = stream.map_err(unreachable)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(gateway.answer_timeout))?;
    stream.set_write_timeout(Some(gateway.answer_timeout))?;
    let reader = BufReader::with_capacity(64 << 10, stream.try_clone()?);
    let writer = BufWriter::with_capacity(64 << 10, stream.try_clone()?);
    let (incoming, outgoing) = match gateway.transport {
        Transport::Buffered => (Incoming::Buffered(reader), Outgoing::Buffered(writer)),
        Transport::Framed => (Incoming::Framed { reader, left: 0 }, Outgoing::Framed { writer, frame: Vec::new() }),
    };
    Ok((BoundedInput::new(incoming, gateway.largest_answer), TBinaryOutputProtocol::new(outgoing, true), stream))
}

pub(in crate::store) enum Incoming {
    Buffered(BufReader<TcpStream>),
    Framed { reader: BufReader<TcpStream>, left: usize },
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill(buffer).map_err(|e| match e.kind() {
            // What Linux says when it has waited long enough.
            io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, e),
            _ => e,
        })
    }
}

impl Incoming {
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Buffered(reader) => reader.read(buffer),
            Self::Framed { reader, left } => {
                while *left == 0 {
                    let mut length = [0; 4];
                    reader.read_exact(&mut length)?;
                    // What a frame holds is bounded by who reads it; nothing is allocated for it here.
                    *left = usize::try_from(i32::from_be_bytes(length)).map_err(|_| {
                        let found = format!("expected the length of a frame, found {length:02x?}");
                        io::Error::new(io::ErrorKind::InvalidData, found)
                    })?;
                }
                let most = buffer.len().min(*left);
                let read = reader.read(&mut buffer[..most])?;
                *left -= read;
                Ok(read)
            }
        }
    }
}

pub(in crate::store) enum Outgoing {
    Buffered(BufWriter<TcpStream>),
    Framed { writer: BufWriter<TcpStream>, frame: Vec<u8> },
}

impl Write for Outgoing {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Buffered(writer) => writer.write(buffer),
            Self::Framed { frame, .. } => frame.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Buffered(writer) => writer.flush(),
            Self::Framed { writer, frame } => {
                let length = i32::try_from(frame.len())
                    .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a request of over 2 GiB"))?;
                writer.write_all(&length.to_be_bytes())?;
                writer.write_all(frame)?;
                frame.clear();
                frame.shrink_to(1 << 20);
                writer.flush()
            }
        }
    }
}
