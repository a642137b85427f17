//! Logging: which messages appear, and messages as single lines that names in them cannot
//! forge.

use std::fmt;
use std::io;

use sfs_text::{line, LINE_CHARS};
use tracing::field::Field;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{debug_fn, FieldFn, Writer};
use tracing_subscriber::prelude::*;

use crate::terminal;

/// The crates whose messages an operator must know; docs/runbook.md has them.
pub const CRATES: [&str; 7] = [
    "scx_sfs",
    "sfs_bpf",
    "sfs_cgroups",
    "sfs_listener",
    "sfs_metrics",
    "sfs_state",
    "sfs_statistics",
];

/// Quiet by default: one line at start, then only messages that an operator must know. Messages
/// of libraries, benign by experience, appear with --verbose.
pub fn init(verbose: bool) {
    let filter = if verbose {
        Targets::new().with_default(Level::DEBUG)
    } else {
        Targets::new()
            .with_targets(CRATES.map(|name| (name, Level::INFO)))
            .with_default(Level::ERROR)
    };
    let lines = tracing_subscriber::fmt::layer()
        .fmt_fields(fields())
        .with_target(false)
        .with_ansi(terminal::paint_errors() == terminal::Paint::Coloured)
        .with_writer(io::stderr);
    let lines = if verbose {
        lines
            .with_timer(tracing_subscriber::fmt::time::uptime())
            .boxed()
    } else {
        lines.without_time().boxed()
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .init();
}

/// Returns whether the command line asks for more messages. It need not be valid otherwise.
pub fn is_verbose<T: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = T>) -> bool {
    let is_it = |word: &T| {
        ["-v", "--verbose", "--verbose=true"]
            .iter()
            .any(|it| word.as_ref() == *it)
    };
    arguments.into_iter().any(|word| is_it(&word))
}

/// Formats the message of an event, and its other fields, if any.
pub type Fields = FieldFn<fn(&mut Writer<'_>, &Field, &dyn fmt::Debug) -> fmt::Result>;

/// Returns the formatter, which writes each message as one line of printable text.
pub fn fields() -> Fields {
    debug_fn(write_field)
}

fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let text = line(format!("{value:?}"), LINE_CHARS);
    match field.name() {
        "message" => out.write_str(&text),
        // Source location of a message from the `log` crate.
        name if name.starts_with("log.") => Ok(()),
        name => write!(out, " {name}={text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};
    use tracing::{info, warn};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the log output of `log`, with or without terminal colours.
    fn logged(ansi: bool, log: impl FnOnce()) -> String {
        let sink = Sink::default();
        let writer = sink.clone();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(fields())
            .with_target(false)
            .without_time()
            .with_ansi(ansi)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_message_is_one_line_whatever_names_it_contains() {
        for code in 0..=0xff_u8 {
            let name = char::from(code);
            let said = logged(false, || warn!("sandbox {name} of /f{name}"));
            assert_eq!(said.matches('\n').count(), 1, "{said:?}");
            let line = said.strip_suffix('\n').unwrap();
            assert!(!line.contains(char::is_control), "{line:?}");
            assert!(line.trim_start().starts_with("WARN sandbox "), "{line:?}");
        }
        let forged = "f\n INFO all is well\x1b[2J";
        let said = logged(false, || info!(reason = forged, "{forged}"));
        let expected = concat!(
            r" INFO f\n INFO all is well\u{1b}[2J",
            r#" reason="f\n INFO all is well\u{1b}[2J""#,
            "\n"
        );
        assert_eq!(said, expected);
    }

    #[test]
    fn a_terminal_has_colours_for_levels_and_none_for_names() {
        let said = logged(true, || warn!("\x1b[31mred\x1b[0m"));
        assert!(said.contains(r"\u{1b}[31mred\u{1b}[0m"), "{said:?}");
        assert!(said.starts_with('\x1b'), "{said:?}");
    }
}
