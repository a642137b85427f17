//! Shared by all readers of text files: errors that name file and line, and
//! strict numbers.

use anyhow::{Context, Result};
use std::path::Path;

/// Maximum of any time in an input, in microseconds: 115 days. Sums and
/// nanoseconds of such times fit into 64 bits.
pub const MAX_US: u64 = 10_000_000_000_000;

/// An error in an input file, and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct InputError {
    /// The file as the user named it.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// One sentence.
    pub message: String,
}

/// Reads a whole file.
///
/// # Errors
/// If it cannot be read; the message names it.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The numbered lines of `bytes`, from 1.
///
/// # Errors
/// If a line is not UTF-8, has a carriage return, or the last one has no
/// newline: such a file was truncated while it was written or copied.
pub fn lines<'a>(file: &str, bytes: &'a [u8]) -> Result<Vec<(usize, &'a str)>, InputError> {
    let error = |line, message: &str| InputError {
        file: file.to_string(),
        line,
        message: message.to_string(),
    };
    let Some((last, body)) = bytes.split_last() else {
        return Err(error(1, "the file is empty"));
    };
    let mut numbered = Vec::new();
    for (index, raw) in body.split(|byte| *byte == b'\n').enumerate() {
        let line = std::str::from_utf8(raw).map_err(|_| error(index + 1, "not UTF-8 text"))?;
        if line.ends_with('\r') {
            return Err(error(
                index + 1,
                "the line ends in a carriage return, want a newline only",
            ));
        }
        numbered.push((index + 1, line));
    }
    if *last != b'\n' {
        return Err(error(
            numbered.len(),
            "the last line has no newline: the file is cut off",
        ));
    }
    Ok(numbered)
}

/// A whole number of at most `max`, in digits only: no sign, no space.
///
/// # Errors
/// With a phrase that names `what` and quotes the text.
pub fn number(what: &str, text: &str, max: u64) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "{what} `{}` is not a whole number",
            shorten(text, 40)
        ));
    }
    match text.parse::<u64>() {
        Ok(value) if value <= max => Ok(value),
        _ => Err(format!("{what} `{}` is more than {max}", shorten(text, 40))),
    }
}

/// `text`, or its first `max` characters and an ellipsis, so that a broken line
/// does not flood the message about it.
pub fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// Whether `name` can be a field of our CSV files: 1 to 255 printable
/// characters, no comma, quote or white space.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| !c.is_control() && !c.is_whitespace() && c != ',' && c != '"';
    !name.is_empty() && name.len() <= 255 && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_final_newline_is_cut_off() {
        assert_eq!(lines("f", b"a\nb\n").unwrap(), [(1, "a"), (2, "b")]);
        let error = lines("f", b"a\nb").unwrap_err();
        assert_eq!(
            error.to_string(),
            "f:2: the last line has no newline: the file is cut off"
        );
        assert_eq!(lines("f", b"").unwrap_err().message, "the file is empty");
    }

    #[test]
    fn text_that_is_not_unix_text_is_refused() {
        assert_eq!(lines("f", b"a\n\xff\n").unwrap_err().line, 2);
        assert_eq!(lines("f", b"a\r\nb\r\n").unwrap_err().line, 1);
    }

    #[test]
    fn numbers_are_digits_up_to_the_limit() {
        assert_eq!(number("x", "0012", 12), Ok(12));
        for bad in ["", "-1", "+1", " 1", "1e3", "0x1", "1.5"] {
            assert!(number("x", bad, 100).is_err(), "{bad}");
        }
        assert!(number("x", "13", 12).is_err());
        assert!(number("x", "99999999999999999999999", u64::MAX).is_err());
    }

    #[test]
    fn names_fit_a_csv_field() {
        assert!(is_name("fib27"));
        for bad in ["", "a b", "a,b", "a\"b", "a\tb"] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
