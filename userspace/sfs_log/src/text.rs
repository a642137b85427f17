//! Lines for people: each message is one line of printable text.

use std::fmt;
use std::io;

use sfs_text::{line, LINE_CHARS};
use tracing::field::Field;
use tracing_subscriber::fmt::format::{debug_fn, FieldFn, Writer};
use tracing_subscriber::prelude::*;

use crate::Boxed;

/// Fields that a message already says in words.
const SAID: [&str; 4] = ["mode", "policy", "delay_ms", "tasks"];

/// Returns what writes lines to standard error; with the time since the start if it is `verbose`.
pub fn lines(verbose: bool, is_coloured: bool) -> Boxed {
    let lines = tracing_subscriber::fmt::layer()
        .fmt_fields(fields())
        .with_target(false)
        .with_ansi(is_coloured)
        .with_writer(io::stderr);
    if verbose {
        lines
            .with_timer(tracing_subscriber::fmt::time::uptime())
            .boxed()
    } else {
        lines.without_time().boxed()
    }
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
        name if name.starts_with("log.") || SAID.contains(&name) => Ok(()),
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
        let said = logged(false, || info!(mode = "x", reason = forged, "{forged}"));
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
