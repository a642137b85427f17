//! Datagrams of several hints: reading and writing.

use crate::binary::{self, MAGIC};
use crate::error::{DecodeError, EncodeError, Place, Problem};
use crate::hint::{Hint, HintRef, MAX_DATAGRAM_BYTES, MAX_HINTS};
use crate::text;

/// The two forms of a hint. A reader tells them apart by the first byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// See [`text`](crate::text).
    #[default]
    Text,
    /// See [`binary`](crate::binary).
    Binary,
}

/// Reads all hints of a datagram.
///
/// # Errors
///
/// The first hint that cannot be read, or [`Problem::Empty`].
pub fn decode(datagram: &[u8]) -> Result<Vec<Hint>, DecodeError> {
    hints(datagram)
        .map(|hint| hint.map(|hint| hint.to_hint()))
        .collect()
}

/// Writes `hints` into one datagram.
///
/// # Errors
///
/// A hint is invalid, or does not fit. Without hints the result is a datagram
/// that [`decode`] refuses.
pub fn encode(hints: &[Hint], form: Form) -> Result<Vec<u8>, EncodeError> {
    let mut datagram = Datagram::new(form);
    for hint in hints {
        if !datagram.push(hint)? {
            let problem = if datagram.hints == MAX_HINTS {
                Problem::TooMany
            } else {
                Problem::TooLong
            };
            return Err(EncodeError {
                pid: hint.pid,
                problem,
            });
        }
    }
    Ok(datagram.bytes)
}

/// Iterates over the hints of a datagram, without allocating for valid ones.
///
/// After an invalid line the following lines are still read. After an invalid
/// binary record nothing is read, since the start of the next record is
/// unknown. A datagram without a hint yields one error.
pub fn hints(datagram: &[u8]) -> Hints<'_> {
    let rest = if datagram.len() > MAX_DATAGRAM_BYTES {
        Rest::Refused(Problem::TooLong)
    } else if datagram.first() == Some(&MAGIC) {
        start_binary(datagram)
    } else {
        Rest::Lines(datagram)
    };
    Hints {
        rest,
        place: 0,
        items: 0,
    }
}

fn start_binary(mut bytes: &[u8]) -> Rest<'_> {
    match binary::take_header(&mut bytes) {
        Err(problem) => Rest::Refused(problem),
        Ok(0) if bytes.is_empty() => Rest::Refused(Problem::Empty),
        Ok(records) if records > MAX_HINTS => Rest::Refused(Problem::TooMany),
        Ok(records) => Rest::Records(records, bytes),
    }
}

/// The iterator of [`hints`].
#[derive(Debug, Clone)]
pub struct Hints<'a> {
    rest: Rest<'a>,
    /// Number of lines or records read.
    place: usize,
    /// Number of hints and errors returned.
    items: usize,
}

#[derive(Debug, Clone)]
enum Rest<'a> {
    Lines(&'a [u8]),
    Records(usize, &'a [u8]),
    Refused(Problem),
    Nothing,
}

impl<'a> Iterator for Hints<'a> {
    type Item = Result<HintRef<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = match std::mem::replace(&mut self.rest, Rest::Nothing) {
            Rest::Lines(bytes) => self.next_line(bytes),
            Rest::Records(records, bytes) => self.next_record(records, bytes),
            Rest::Refused(problem) => Some(refuse(problem)),
            Rest::Nothing => None,
        };
        self.items += usize::from(item.is_some());
        item
    }
}

impl<'a> Hints<'a> {
    fn next_line(&mut self, mut bytes: &'a [u8]) -> Option<Result<HintRef<'a>, DecodeError>> {
        while !bytes.is_empty() {
            self.place += 1;
            let end = bytes.iter().position(|&b| b == b'\n');
            let line = &bytes[..end.unwrap_or(bytes.len())];
            bytes = end.map_or(&[], |end| &bytes[end + 1..]);
            let hint = match std::str::from_utf8(line) {
                Ok(line) => text::parse_line(line),
                Err(_) => Some(Err(Problem::NotUtf8)),
            };
            let Some(mut hint) = hint else {
                continue;
            };
            if self.items == MAX_HINTS {
                hint = Err(Problem::TooMany);
            } else {
                self.rest = Rest::Lines(bytes);
            }
            let place = Place::Line(self.place);
            return Some(hint.map_err(|problem| DecodeError { place, problem }));
        }
        (self.items == 0).then_some(refuse(Problem::Empty))
    }

    fn next_record(
        &mut self,
        records: usize,
        mut bytes: &'a [u8],
    ) -> Option<Result<HintRef<'a>, DecodeError>> {
        if records == 0 {
            let trailing = Problem::Trailing(bytes.len());
            return (!bytes.is_empty()).then_some(refuse(trailing));
        }
        self.place += 1;
        let hint = binary::take_record(&mut bytes);
        if hint.is_ok() {
            self.rest = Rest::Records(records - 1, bytes);
        }
        let place = Place::Record(self.place);
        Some(hint.map_err(|problem| DecodeError { place, problem }))
    }
}

/// An error of the datagram as a whole.
fn refuse<'a>(problem: Problem) -> Result<HintRef<'a>, DecodeError> {
    let place = Place::Datagram;
    Err(DecodeError { place, problem })
}

/// A datagram under construction.
#[derive(Debug, Clone)]
pub struct Datagram {
    form: Form,
    bytes: Vec<u8>,
    hints: usize,
    line: String,
}

impl Datagram {
    /// Returns an empty datagram.
    pub fn new(form: Form) -> Self {
        let mut datagram = Self {
            form,
            bytes: Vec::new(),
            hints: 0,
            line: String::new(),
        };
        datagram.clear();
        datagram
    }

    /// Removes all hints.
    pub fn clear(&mut self) {
        self.hints = 0;
        self.bytes.clear();
        if self.form == Form::Binary {
            binary::write_header(&mut self.bytes);
        }
    }

    /// Appends a hint. Returns false, and changes nothing, if it does not fit;
    /// one hint always fits.
    ///
    /// # Errors
    ///
    /// The hint is invalid.
    pub fn push(&mut self, hint: &Hint) -> Result<bool, EncodeError> {
        hint.check()?;
        if self.hints == MAX_HINTS {
            return Ok(false);
        }
        let hint = hint.borrowed();
        let before = self.bytes.len();
        match self.form {
            Form::Text => self.push_line(&hint),
            Form::Binary => binary::write_record(&hint, &mut self.bytes),
        }
        if self.bytes.len() > MAX_DATAGRAM_BYTES {
            self.bytes.truncate(before);
            return Ok(false);
        }
        self.hints += 1;
        if self.form == Form::Binary {
            binary::write_count(self.hints as u16, &mut self.bytes);
        }
        Ok(true)
    }

    fn push_line(&mut self, hint: &HintRef<'_>) {
        self.line.clear();
        text::write_line(hint, &mut self.line);
        self.bytes.extend(self.line.as_bytes());
        self.bytes.push(b'\n');
    }

    /// Returns the number of hints.
    pub fn len(&self) -> usize {
        self.hints
    }

    /// Returns whether it has no hints.
    pub fn is_empty(&self) -> bool {
        self.hints == 0
    }

    /// Returns the bytes to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
