//! Errors in hints, and their places.

use std::fmt;
use std::io;

use crate::hint::{MAX_DATAGRAM_BYTES, MAX_FUNCTION_BYTES, MAX_HINTS};

/// The kind of error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No hint.
    #[error("no hint")]
    Empty,
    /// Longer than the limit of a datagram.
    #[error("longer than {MAX_DATAGRAM_BYTES} bytes; send several datagrams")]
    TooLong,
    /// More hints than the limit of a datagram.
    #[error("more than {MAX_HINTS} hints; send several datagrams")]
    TooMany,
    /// Text that is not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// An unknown key.
    #[error("unknown key {0:?}; known keys are pid, arrival_us, function, start and service_us")]
    UnknownKey(String),
    /// A key that was given before.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// The only required key is missing.
    #[error("no process id; want pid=N")]
    NoPid,
    /// A word without a key where a key is required.
    #[error("{0:?} has no key; want KEY=VALUE, PID, or PID ARRIVAL_US")]
    NoKey(String),
    /// A value that is not a number or is out of range.
    #[error("{key}={value:?} is not a whole number in range; want {want}")]
    Number {
        /// The key.
        key: &'static str,
        /// The value, truncated.
        value: String,
        /// The expected value.
        want: &'static str,
    },
    /// A process id below 1.
    #[error("a process id is at least 1")]
    Pid,
    /// A name that is empty or too long, with its length in bytes.
    #[error("a function's name has 1 to {MAX_FUNCTION_BYTES} bytes, not {0}")]
    NameLength(usize),
    /// A name with a character that is not allowed.
    #[error("a function's name has no control characters and no double quotes")]
    NameCharacter,
    /// An unpaired quote, or a quote followed by something other than a blank.
    #[error("want a name with blanks as function=\"NAME\", followed by a blank")]
    Quote,
    /// An unknown version of the binary form.
    #[error("version {0} of the binary form; this program reads version 1")]
    Version(u8),
    /// Undefined bits in the fields of a binary record.
    #[error("unknown fields {0:#04x} in a binary record")]
    Fields(u8),
    /// The datagram ends within a binary record.
    #[error("ends too early")]
    Short,
    /// Bytes after the last binary record.
    #[error("{0} bytes after the last record")]
    Trailing(usize),
}

/// The place of an error in a datagram; lines and records count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The datagram as a whole.
    Datagram,
    /// A line of the text form.
    Line(usize),
    /// A record of the binary form.
    Record(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datagram => f.write_str("datagram"),
            Self::Line(number) => write!(f, "line {number}"),
            Self::Record(number) => write!(f, "record {number}"),
        }
    }
}

/// A hint that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct DecodeError {
    /// The place.
    pub place: Place,
    /// The error.
    pub problem: Problem,
}

/// A hint that cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("hint for process {pid}: {problem}")]
pub struct EncodeError {
    /// The process of the hint.
    pub pid: i32,
    /// The error.
    pub problem: Problem,
}

/// A hint that could not be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The hint is invalid; nothing was sent.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// Nobody listens, or the system refuses.
    #[error("cannot send hints: {0}")]
    Io(#[from] io::Error),
}

/// Maximum length of a quoted value in an error, in characters.
const EXCERPT: usize = 32;

/// Returns the start of `text`, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT).collect()
}
