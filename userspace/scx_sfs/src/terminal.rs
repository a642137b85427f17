//! The terminal: its width, and whether text has colours.

use std::env;
use std::io::{self, IsTerminal};

/// Width where there is no terminal, in columns: lines are not broken.
const UNLIMITED: usize = usize::MAX;

/// Text is not broken into fewer columns.
const LEAST: usize = 40;

/// Whether text has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// It has none.
    Plain,
    /// It has.
    Coloured,
}

impl Paint {
    /// Returns a word in the colour of its meaning: ok, warn or fail.
    pub fn outcome(self, word: &str) -> String {
        match word {
            "ok" => self.in_colour("32", word),
            "warn" => self.in_colour("33", word),
            _ => self.in_colour("31", word),
        }
    }

    /// Returns text in bold type.
    pub fn bold(self, text: &str) -> String {
        self.in_colour("1", text)
    }

    fn in_colour(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

/// Returns whether text on standard output has colours: on a terminal, unless NO_COLOR is set
/// (<https://no-color.org>) or the terminal is dumb.
pub fn paint() -> Paint {
    paint_of(io::stdout().is_terminal(), |name| env::var_os(name))
}

/// The same for standard error.
pub fn paint_errors() -> Paint {
    paint_of(io::stderr().is_terminal(), |name| env::var_os(name))
}

fn paint_of(is_terminal: bool, variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Paint {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = variable("TERM").is_some_and(|value| value == "dumb");
    if is_terminal && !refused && !is_dumb {
        Paint::Coloured
    } else {
        Paint::Plain
    }
}

/// Returns the width of standard output in columns: that of the terminal, otherwise without
/// bound, since programs read lines.
pub fn columns() -> usize {
    terminal_size::terminal_size_of(io::stdout())
        .map_or(UNLIMITED, |(width, _)| usize::from(width.0).max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_whose_user_wants_them() {
        let with = |is_terminal, no_colour: Option<&str>, term: &str| {
            paint_of(is_terminal, |name| match name {
                "NO_COLOR" => no_colour.map(Into::into),
                "TERM" => Some(term.into()),
                _ => None,
            })
        };
        assert_eq!(with(true, None, "xterm"), Paint::Coloured);
        assert_eq!(with(true, Some(""), "xterm"), Paint::Coloured);
        assert_eq!(with(false, None, "xterm"), Paint::Plain);
        assert_eq!(with(true, Some("1"), "xterm"), Paint::Plain);
        assert_eq!(with(true, None, "dumb"), Paint::Plain);
    }
}
