//! What can go wrong, and what the caller can do about it.

use std::fmt;

/// The result type of the whole crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is malformed: a query, a name, an option, a line of input.
    InvalidInput,
    /// A value does not have the declared type of its attribute.
    WrongType,
    /// A table, attribute, definition or row that was named does not exist.
    NotFound,
    /// Something of this name exists already, and differs from what was asked for.
    AlreadyExists,
    /// The request would read more than it was allowed to.
    TooCostly,
    /// The store or the format does not offer what was asked for.
    Unsupported,
    /// Another process or a deadline stands in the way for now.
    Busy,
    /// Whoever asked for it no longer wants it.
    Interrupted,
    /// The store could not be reached: nothing of what was asked for has happened.
    Unreachable,
    /// The store could not complete an operation.
    Store,
    /// Stored bytes do not decode: damaged, or written by a newer version.
    Corrupt,
    /// An index does not say what its base table says.
    Inconsistent,
    /// A broken invariant of sideindex itself.
    Internal,
}

impl ErrorKind {
    /// Its name, as metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid_input",
            Self::WrongType => "wrong_type",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::TooCostly => "too_costly",
            Self::Unsupported => "unsupported",
            Self::Busy => "busy",
            Self::Interrupted => "interrupted",
            Self::Unreachable => "unreachable",
            Self::Store => "store",
            Self::Corrupt => "corrupt",
            Self::Inconsistent => "inconsistent",
            Self::Internal => "internal",
        }
    }
}

/// What the caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// The same call may succeed at once.
    Retry,
    /// The same call may succeed after a pause.
    BackOff,
    /// Find the region again, then retry.
    Relocate,
    /// Set the offending input aside and go on.
    Quarantine,
    /// Correct the input, the query or the configuration; retrying is of no use.
    FixConfig,
    /// Stop and look: retrying is of no use and may do harm.
    Stop,
}

/// The one public error type: a kind, a message for people, an action, and the source if there is one.
///
/// ```
/// use sideindex::error::{Action, Error, ErrorKind};
/// let error = Error::new(ErrorKind::WrongType, "expected int, found \"red\"").within("attribute size");
/// assert_eq!(error.to_string(), "attribute size: expected int, found \"red\"");
/// assert_eq!(error.action(), Action::Quarantine);
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    action: Action,
    context: Vec<String>,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of `kind`, with the action that is usual for it.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let action = match kind {
            ErrorKind::WrongType => Action::Quarantine,
            ErrorKind::Busy | ErrorKind::Unreachable => Action::BackOff,
            ErrorKind::Interrupted => Action::Retry,
            ErrorKind::InvalidInput
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::TooCostly
            | ErrorKind::Unsupported => Action::FixConfig,
            ErrorKind::Store | ErrorKind::Corrupt | ErrorKind::Inconsistent | ErrorKind::Internal => Action::Stop,
        };
        Self(Box::new(Inner { kind, action, context: Vec::new(), message: message.into(), source: None }))
    }

    /// Shorthand for [`ErrorKind::InvalidInput`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// Shorthand for [`ErrorKind::Corrupt`].
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Replaces the usual action of the kind.
    #[must_use]
    pub fn with_action(mut self, action: Action) -> Self {
        self.0.action = action;
        self
    }

    /// Keeps the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Says where it happened; the outermost place is printed first.
    #[must_use]
    pub fn within(mut self, place: impl Into<String>) -> Self {
        self.0.context.push(place.into());
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What to do about it.
    pub fn action(&self) -> Action {
        self.0.action
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in self.0.context.iter().rev() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("action", &self.0.action)
            .field("message", &self.to_string())
            .field("source", &self.0.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|s| s as &(dyn std::error::Error + 'static))
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}
