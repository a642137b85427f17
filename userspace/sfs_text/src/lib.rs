//! Text of others, shown as lines that nobody can forge.
//!
//! A task chooses its own name: any 15 bytes but NUL, line feeds, escape sequences of
//! terminals and invalid UTF-8 among them. Who makes a cgroup chooses that one's name. The
//! kernel copies both into its reasons and dumps as they are. So whatever a program prints
//! of such text goes through here:
//!
//! | function | for |
//! |---|---|
//! | [`line`](fn@line) | a message, or a name within a sentence |
//! | [`word`] | a name in a table: no blanks either |
//! | [`note`] | a line on standard error |
//! | [`lines`] | text that has lines of its own, such as a dump |
//!
//! What is shown are the letters, digits, marks and symbols of any script. Shown escaped, as
//! in a Rust string, are control characters (line feeds and escape sequences), characters
//! that order or join others or cannot be seen (bidirectional formats, joiners, variation
//! selectors, combining marks), blanks but the ordinary one, and what Unicode has not
//! assigned; as `\xff`, what is no UTF-8.
//!
//! A backslash stays as it is, so that text may go through here twice. So `\n` may have
//! been a line feed, or just these two characters; it is one line in any case.
//! Letters that are written from right to left are letters: a terminal may show what
//! follows them in another order.
#![forbid(unsafe_code)]

use std::ffi::c_char;
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// Most characters of a message on one line.
pub const LINE_CHARS: usize = 4096;

/// Most characters of a name in a table.
pub const NAME_CHARS: usize = 160;

/// What stands for the rest of text that is too long.
const CUT: &str = "...";

/// Returns `text` as one line, of at most `most` characters (but no less than 3).
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

/// Returns `name` as one word, of at most [`NAME_CHARS`] characters: blanks are shown as
/// `\u{20}`, and no name as `""`, so that each is one column of a table.
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

/// Returns the lines of `text`, each as [`line`](fn@line) shows it, with `prefix` before it:
/// whatever is in `text`, none of them can be taken for a line of somebody else, who does
/// not use this prefix.
pub fn lines<'text>(text: &'text [u8], prefix: &str) -> impl Iterator<Item = String> + 'text {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let prefix = prefix.to_owned();
    text.split(|byte| *byte == b'\n').map(move |one| {
        let rest = line(one, LINE_CHARS);
        let rest = rest.trim_end();
        // A blank at the end of a line would only be in the way.
        let prefix = if rest.is_empty() {
            prefix.trim_end()
        } else {
            &prefix
        };
        format!("{prefix}{rest}")
    })
}

/// Returns the bytes of a string of C's: those before the first NUL, or all.
pub fn until_nul(text: &[c_char]) -> Vec<u8> {
    let text = text.iter().take_while(|byte| **byte != 0);
    // On some machines a `char` has a sign; its bits are meant.
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
    text.map(|byte| *byte as u8).collect()
}

/// Returns `text` with `blank`s as they are and all else as the crate's head has it.
fn shown(text: &[u8], most: usize, blank: impl Fn(char) -> bool) -> String {
    let mut line = Line::new(most);
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let is_taken = match c {
                '\'' | '"' | '\\' => line.put(c, 1),
                ' ' if blank(c) => line.put(c, 1),
                ' ' => line.put(c.escape_unicode(), 6),
                // Escapes what cannot be seen, and what joins the character before.
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

/// A line that is being written.
struct Line {
    text: String,
    most: usize,
    chars: usize,
    /// Where to cut it off if it becomes too long, in bytes: behind something that is whole.
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

    /// Adds `piece`, which has so many characters. Returns false, and cuts the line off, if
    /// that is too long.
    fn put(&mut self, piece: impl std::fmt::Display, chars: usize) -> bool {
        if self.chars + chars > self.most {
            self.text.truncate(self.cut);
            self.text.push_str(CUT);
            return false;
        }
        // Into a string, which takes all.
        let _ = write!(self.text, "{piece}");
        self.chars += chars;
        if self.chars + CUT.len() <= self.most {
            self.cut = self.text.len();
        }
        true
    }
}
