//! What can be wrong with a hint, and where.

use std::fmt;
use std::io;

use crate::hint::{MAX_DATAGRAM_BYTES, MAX_FUNCTION_BYTES, MAX_HINTS};

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No hint in it.
    #[error("no hint in it")]
    Empty,
    /// Longer than a datagram may be.
    #[error("longer than {MAX_DATAGRAM_BYTES} bytes; send several datagrams")]
    TooLong,
    /// More hints than a datagram may hold.
    #[error("more than {MAX_HINTS} hints; send several datagrams")]
    TooMany,
    /// Text that is no UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// A key that there is not.
    #[error("unknown key {0:?}; there are pid, arrival_us, function, start and service_us")]
    UnknownKey(String),
    /// A key that came before.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// The one key that is needed.
    #[error("no process id; want pid=N")]
    NoPid,
    /// A word without a key in a place where none may be.
    #[error("{0:?} has no key; want KEY=VALUE, PID, or PID ARRIVAL_US")]
    NoKey(String),
    /// A value that is no number, or one out of range.
    #[error("{key}={value:?} is no whole number that fits; want {want}")]
    Number {
        /// The key whose value it is.
        key: &'static str,
        /// The value, cut off after some characters.
        value: String,
        /// What it should be.
        want: &'static str,
    },
    /// A process id that no process has.
    #[error("a process id is at least 1")]
    Pid,
    /// A name that is empty or too long; how many bytes it has.
    #[error("a function's name has 1 to {MAX_FUNCTION_BYTES} bytes, not {0}")]
    NameLength(usize),
    /// A name with a character that names may not have.
    #[error("a function's name has no control characters and no double quotes")]
    NameCharacter,
    /// A quote without its counterpart, or with something behind that.
    #[error("want a name with blanks as function=\"NAME\", and a blank behind it")]
    Quote,
    /// A version of the binary form that this code does not know.
    #[error("version {0} of the binary form; this program knows version 1")]
    Version(u8),
    /// Bits of a binary record's fields that mean nothing.
    #[error("unknown fields {0:#04x} in a binary record")]
    Fields(u8),
    /// The datagram ends within a binary record.
    #[error("ends too early")]
    Short,
    /// Bytes behind the last binary record.
    #[error("{0} bytes behind the last record")]
    Trailing(usize),
}

/// Where in a datagram something is wrong; lines and records count from 1.
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
    /// Where.
    pub place: Place,
    /// What.
    pub problem: Problem,
}

/// A hint that cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("hint for process {pid}: {problem}")]
pub struct EncodeError {
    /// The process that it is for.
    pub pid: i32,
    /// What is wrong with it.
    pub problem: Problem,
}

/// A hint that could not be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The hint is not valid; nothing was sent.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// Nobody listens, or the system refuses.
    #[error("cannot send hints: {0}")]
    Io(#[from] io::Error),
}

/// Characters of a value that an error repeats.
const EXCERPT: usize = 32;

/// Returns the start of `text`, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT).collect()
}
