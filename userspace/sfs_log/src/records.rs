//! Messages with fields: for systemd's journal, in its own protocol, and as JSON.
//!
//! Each value is one line of printable text. So a datagram to the journal is a list of lines
//! `FIELD=value` (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL>).

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;

use serde_json::{Map, Value};
use sfs_text::{line, LINE_CHARS};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::Context;
use tracing_subscriber::Layer;

/// Where the journal listens.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// What comes before the names of our fields in the journal.
const PREFIX: &str = "SCX_SFS_";

/// Writes each message as a record.
pub struct Records(Sink);

enum Sink {
    Journal(UnixDatagram),
    Json(Box<dyn Fn() -> Box<dyn Write> + Send + Sync>),
}

impl Records {
    /// Sends records to the journal.
    ///
    /// # Errors
    ///
    /// There is no journal.
    pub fn journal() -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(JOURNAL)?;
        Ok(Self(Sink::Journal(socket)))
    }

    /// Writes records as lines of JSON.
    pub fn json<W: Write + 'static>(out: impl Fn() -> W + Send + Sync + 'static) -> Self {
        Self(Sink::Json(Box::new(move || Box::new(out()))))
    }
}

impl<S: Subscriber> Layer<S> for Records {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut found = Found::default();
        event.record(&mut found);
        let level = *event.metadata().level();
        // A message that cannot be written has nowhere else to go.
        match &self.0 {
            Sink::Journal(socket) => {
                let _ = socket.send(datagram(level, &found).as_bytes());
            }
            Sink::Json(out) => {
                let _ = writeln!(out(), "{}", object(level, found));
            }
        }
    }
}

/// The message and the fields of an event.
#[derive(Default)]
struct Found {
    message: String,
    fields: Map<String, Value>,
}

impl Found {
    fn add(&mut self, field: &Field, value: Value) {
        // Source location of a message from the `log` crate.
        if !field.name().starts_with("log.") {
            self.fields.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Found {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = line(format!("{value:?}"), LINE_CHARS);
        match field.name() {
            "message" => self.message = text,
            _ => self.add(field, text.into()),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, line(value, LINE_CHARS).into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}

/// Returns a record for the journal. Priorities are those of syslog.
fn datagram(level: Level, found: &Found) -> String {
    let priority = match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    };
    let mut text = format!(
        "PRIORITY={priority}\nSYSLOG_IDENTIFIER=scx_sfs\nMESSAGE={}\n",
        found.message
    );
    for (name, value) in &found.fields {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{PREFIX}{}={value}", name.to_uppercase());
    }
    text
}

/// Returns a record as JSON: time, level, message, and the fields.
fn object(level: Level, found: Found) -> Value {
    let mut time = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    let mut object = Map::new();
    object.insert("time".into(), time.into());
    object.insert("level".into(), level.as_str().into());
    object.insert("message".into(), found.message.into());
    object.extend(found.fields);
    object.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing::{info, warn};
    use tracing_subscriber::prelude::*;

    #[derive(Clone, Default)]
    struct Out(Arc<Mutex<Vec<u8>>>);

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn with(records: Records, log: impl FnOnce()) {
        let subscriber = tracing_subscriber::registry().with(records);
        tracing::subscriber::with_default(subscriber, log);
    }

    #[test]
    fn json_has_a_line_for_each_message() {
        let out = Out::default();
        let sink = out.clone();
        with(Records::json(move || sink.clone()), || {
            info!(
                mode = "fair-only",
                delay_ms = 340u64,
                "overload: {}",
                "a\n\x1b[2J\""
            );
            warn!("second");
        });
        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[0]["mode"], "fair-only");
        assert_eq!(lines[0]["delay_ms"], 340);
        assert_eq!(lines[0]["level"], "INFO");
        assert_eq!(lines[0]["message"], "overload: a\\n\\u{1b}[2J\"");
        assert!(lines[0]["time"].as_str().unwrap().ends_with('Z'), "{text}");
        assert_eq!(lines[1]["message"], "second");
    }

    #[test]
    fn the_journal_gets_fields_that_no_name_can_forge() {
        let dir = tempfile::tempdir().unwrap();
        let journal = UnixDatagram::bind(dir.path().join("socket")).unwrap();
        let socket = UnixDatagram::unbound().unwrap();
        socket.connect(dir.path().join("socket")).unwrap();
        with(Records(Sink::Journal(socket)), || {
            let forged = "f\nPRIORITY=0\nMESSAGE=all is well";
            warn!(mode = forged, tasks = 7u64, "sandbox {forged}");
        });
        let mut bytes = [0; 4096];
        let count = journal.recv(&mut bytes).unwrap();
        let text = std::str::from_utf8(&bytes[..count]).unwrap();
        let expected = r"PRIORITY=4
SYSLOG_IDENTIFIER=scx_sfs
MESSAGE=sandbox f\nPRIORITY=0\nMESSAGE=all is well
SCX_SFS_MODE=f\nPRIORITY=0\nMESSAGE=all is well
SCX_SFS_TASKS=7
";
        assert_eq!(text, expected);
    }
}
