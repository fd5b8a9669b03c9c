//! From what a gateway says to what can be done about it.
//!
//! A gateway passes on the text of the server's exception, and no code: HBASE-WIRE.md §3.6 lists the classes.

use super::socket::{Gateway, Transport};
use crate::error::{Action, Error, ErrorKind};

/// The text of an exception that the gateway's interface declares, if the error is one.
pub(in crate::store) type Declared = fn(&(dyn std::error::Error + 'static)) -> Option<String>;

/// Exceptions by a part of their text, with what they mean. The first that is found counts.
const EXCEPTIONS: [(&str, ErrorKind, Action); 25] = [
    ("NoSuchColumnFamilyException", ErrorKind::InvalidInput, Action::FixConfig),
    ("TableNotFoundException", ErrorKind::NotFound, Action::FixConfig),
    ("TableExistsException", ErrorKind::AlreadyExists, Action::FixConfig),
    ("TableNotEnabledException", ErrorKind::InvalidInput, Action::FixConfig),
    ("AccessDeniedException", ErrorKind::InvalidInput, Action::FixConfig),
    ("KeyValue size too large", ErrorKind::InvalidInput, Action::FixConfig),
    ("Field is not a long", ErrorKind::InvalidInput, Action::FixConfig),
    ("NotServingRegionException", ErrorKind::Store, Action::Relocate),
    ("RegionMovedException", ErrorKind::Store, Action::Relocate),
    ("RegionOpeningException", ErrorKind::Store, Action::Relocate),
    ("WrongRegionException", ErrorKind::Store, Action::Relocate),
    ("FailedSanityCheckException", ErrorKind::Store, Action::Relocate),
    ("RegionTooBusyException", ErrorKind::Store, Action::BackOff),
    ("CallQueueTooBigException", ErrorKind::Store, Action::BackOff),
    ("CallDroppedException", ErrorKind::Store, Action::BackOff),
    ("RpcThrottlingException", ErrorKind::Store, Action::BackOff),
    ("ServerNotRunningYetException", ErrorKind::Store, Action::BackOff),
    ("UnknownScannerException", ErrorKind::Store, Action::Retry),
    ("OutOfOrderScannerNextException", ErrorKind::Store, Action::Retry),
    ("ScannerResetException", ErrorKind::Store, Action::Retry),
    ("scanner ID is invalid", ErrorKind::Store, Action::Retry),
    ("nvalid scanner", ErrorKind::Store, Action::Retry),
    ("WrongRowIOException", ErrorKind::Internal, Action::Stop),
    ("DoNotRetryIOException", ErrorKind::Store, Action::Stop),
    ("IllegalArgumentException", ErrorKind::InvalidInput, Action::FixConfig),
];

/// The error a caller sees.
pub(in crate::store) fn classify(error: thrift::Error, gateway: &Gateway, declared: Declared) -> Error {
    match error {
        thrift::Error::User(e) => refused(&declared(&*e).unwrap_or_else(|| e.to_string())),
        thrift::Error::Application(e) if e.kind == thrift::ApplicationErrorKind::UnknownMethod => {
            let found = first_line(&e.message);
            Error::invalid(format!(
                "expected a gateway that knows the call, found \"{found}\"; is it Thrift 1 where Thrift 2 is configured, or \
                 the other way round?"
            ))
            .with_source(thrift::Error::Application(e))
        }
        thrift::Error::Application(e) => refused(&e.message),
        other => broken(Box::new(other), gateway),
    }
}

fn refused(text: &str) -> Error {
    let known = EXCEPTIONS.iter().find(|(part, ..)| text.contains(part));
    // What is not known may be a server on its way up or down: the gateway's own client has tried for a while.
    let (kind, action) = known.map_or((ErrorKind::Store, Action::BackOff), |(_, kind, action)| (*kind, *action));
    Error::new(kind, format!("HBase: {}", first_line(text))).with_action(action)
}

/// Stack traces are for the gateway's own log.
fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or("no text").chars().take(400).collect()
}

fn broken(source: Box<thrift::Error>, gateway: &Gateway) -> Error {
    let other = match gateway.transport {
        Transport::Buffered => "framed",
        Transport::Framed => "buffered",
    };
    let (message, action) = match &*source {
        thrift::Error::Transport(e) => match e.kind {
            thrift::TransportErrorKind::TimedOut => (
                format!(
                    "expected an answer within {:?}, found none; does the gateway use the {other} transport?",
                    gateway.answer_timeout
                ),
                Action::BackOff,
            ),
            _ => (
                format!(
                    "the connection ended before the answer ({}); if it always does: is this a gateway, of the {other} \
                     transport perhaps, and is the request smaller than its limit?",
                    e.message
                ),
                Action::BackOff,
            ),
        },
        thrift::Error::Protocol(e) => (
            format!(
                "expected an answer in Thrift's binary protocol, found something else ({}); is this a gateway, of the \
                 {other} transport perhaps?",
                e.message
            ),
            Action::FixConfig,
        ),
        e => (e.to_string(), Action::BackOff),
    };
    Error::new(ErrorKind::Store, message).with_action(action).with_source(source)
}
