//! Untrusted text, printed as lines that cannot be forged.
//!
//! A task chooses its own name: any 15 bytes but NUL, including line feeds,
//! terminal escape sequences and invalid UTF-8. The creator of a cgroup chooses
//! that cgroup's name. The kernel copies both unchanged into its reasons and
//! dumps. All printing of such text therefore goes through this crate:
//!
//! | function | for |
//! |---|---|
//! | [`line`](fn@line) | a message, or a name within a sentence |
//! | [`word`] | a name in a table, without blanks |
//! | [`note`] | a line on standard error |
//! | [`lines`] | text with lines of its own, such as a dump |
//!
//! [`wrap`] breaks what is printed into lines.
//!
//! Letters, digits, marks and symbols of any script are printed as they are.
//! Escaped as in a Rust string are control characters (line feeds and escape
//! sequences), characters that order or join others or are invisible
//! (bidirectional formats, joiners, variation selectors, combining marks),
//! blanks other than the ordinary one, and unassigned code points. Bytes that
//! are not UTF-8 are printed as `\xff`.
//!
//! A backslash stays as it is, so that text may pass through here twice. An
//! `\n` in the output was therefore either a line feed or these two characters;
//! it is one line in either case. Right-to-left letters are letters: a terminal
//! may show the text after them in another order.
#![forbid(unsafe_code)]

use std::ffi::c_char;
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// Maximum length of a message on one line, in characters.
pub const LINE_CHARS: usize = 4096;

/// Maximum length of a name in a table, in characters.
pub const NAME_CHARS: usize = 160;

/// Replaces the rest of text that is too long.
const CUT: &str = "...";

/// Returns `text` as one line of at most `most` characters (but at least 3).
///
/// # Example
///
/// ```
/// assert_eq!(sfs_text::line("f\nEXIT: all is well", 80), r"f\nEXIT: all is well");
/// assert_eq!(sfs_text::line(b"f\xff\x1b[2J", 80), r"f\xff\u{1b}[2J");
/// assert_eq!(sfs_text::line("much too long", 8), "much ...");
/// ```
pub fn line(text: impl AsRef<[u8]>, most: usize) -> String {
    shown(text.as_ref(), most, |c| c == ' ')
}

/// Writes `text` to standard error as one line. A failed write (full disk, closed terminal) is
/// ignored.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", line(text, LINE_CHARS));
}

/// Returns `name` as one word of at most [`NAME_CHARS`] characters. Blanks are
/// shown as `\u{20}` and an empty name as `""`, so that each name is one column
/// of a table.
///
/// # Example
///
/// ```
/// assert_eq!(sfs_text::word("resize 100 1.0"), r"resize\u{20}100\u{20}1.0");
/// ```
pub fn word(name: impl AsRef<[u8]>) -> String {
    match name.as_ref() {
        [] => "\"\"".to_owned(),
        name => shown(name, NAME_CHARS, |_| false),
    }
}

/// Returns the lines of `text`, each as [`line`](fn@line) shows it and with
/// `prefix` before it, so that no content of `text` can be mistaken for a line
/// without this prefix.
pub fn lines<'text>(text: &'text [u8], prefix: &str) -> impl Iterator<Item = String> + 'text {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let prefix = prefix.to_owned();
    text.split(|byte| *byte == b'\n').map(move |one| {
        let rest = line(one, LINE_CHARS);
        let rest = rest.trim_end();
        // No blank at the end of an empty line.
        let prefix = if rest.is_empty() {
            prefix.trim_end()
        } else {
            &prefix
        };
        format!("{prefix}{rest}")
    })
}

/// Returns the bytes of a C string: those before the first NUL, or all.
pub fn until_nul(text: &[c_char]) -> Vec<u8> {
    let text = text.iter().take_while(|byte| **byte != 0);
    // On some machines `char` is signed; only its bits matter.
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
    text.map(|byte| *byte as u8).collect()
}

/// Returns `text` with `blank`s unchanged and the rest escaped as the crate
/// documentation describes.
fn shown(text: &[u8], most: usize, blank: impl Fn(char) -> bool) -> String {
    let mut line = Line::new(most);
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let is_taken = match c {
                '\'' | '"' | '\\' => line.put(c, 1),
                ' ' if blank(c) => line.put(c, 1),
                ' ' => line.put(c.escape_unicode(), 6),
                // Escapes invisible characters, and those that join the
                // previous one.
                _ => line.put(c.escape_debug(), c.escape_debug().count()),
            };
            if !is_taken {
                return line.text;
            }
        }
        for byte in chunk.invalid() {
            if !line.put(format_args!("\\x{byte:02x}"), 4) {
                return line.text;
            }
        }
    }
    line.text
}

/// A line under construction.
struct Line {
    text: String,
    most: usize,
    chars: usize,
    /// Where to cut it if it becomes too long, in bytes: after a whole
    /// character or escape.
    cut: usize,
}

impl Line {
    fn new(most: usize) -> Self {
        Self {
            text: String::new(),
            most: most.max(CUT.len()),
            chars: 0,
            cut: 0,
        }
    }

    /// Adds `piece`, which has this many characters. Returns false, and cuts
    /// the line, if that is too long.
    fn put(&mut self, piece: impl std::fmt::Display, chars: usize) -> bool {
        if self.chars + chars > self.most {
            self.text.truncate(self.cut);
            self.text.push_str(CUT);
            return false;
        }
        // Writing to a string does not fail.
        let _ = write!(self.text, "{piece}");
        self.chars += chars;
        if self.chars + CUT.len() <= self.most {
            self.cut = self.text.len();
        }
        true
    }
}

/// Returns text in lines of at most `columns`, each but the first after `indent` blanks. A longer
/// word has a line of its own.
#[must_use]
pub fn wrap(text: &str, columns: usize, indent: usize) -> String {
    let room = columns.saturating_sub(indent).max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let length = lines[last].chars().count() + 1 + word.chars().count();
        if lines[last].is_empty() {
            lines[last] += word;
        } else if length <= room {
            lines[last] += &format!(" {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}
