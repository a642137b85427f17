//! The log: which messages appear, and in which form. Names in messages cannot forge lines.
//!
//! | module | purpose |
//! |---|---|
//! | `text` | lines for people |
//! | `records` | messages with fields, for the journal and as JSON |

#![forbid(unsafe_code)]

mod records;
mod text;

use std::env;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use clap::ValueEnum;
use nix::sys::stat::fstat;
use tracing::{error, Level};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{reload, Layer, Registry};

use records::Records;
pub use text::{fields, Fields};

/// The crates whose messages an operator must know; docs/runbook.md has them.
pub const CRATES: [&str; 8] = [
    "scx_sfs",
    "sfs_bpf",
    "sfs_cgroups",
    "sfs_listener",
    "sfs_log",
    "sfs_metrics",
    "sfs_state",
    "sfs_statistics",
];

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Form {
    /// The journal's if standard error is the journal's, else text.
    #[default]
    Auto,
    /// Lines for people.
    Text,
    /// Each message with its priority and its fields, for systemd's journal.
    Journal,
    /// An object of JSON in each line.
    Json,
}

type Boxed = Box<dyn Layer<Registry> + Send + Sync>;

/// Changes the form while the log is in use.
static FORM: OnceLock<reload::Handle<Boxed, Registry>> = OnceLock::new();

/// Whether the log is JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Starts the log, as text. Quiet by default: one line at start, then only messages that an
/// operator must know. Messages of libraries, benign by experience, appear if it is `verbose`.
/// `is_coloured`: levels have colours.
pub fn init(verbose: bool, is_coloured: bool) {
    let filter = if verbose {
        Targets::new().with_default(Level::DEBUG)
    } else {
        Targets::new()
            .with_targets(CRATES.map(|name| (name, Level::INFO)))
            .with_default(Level::ERROR)
    };
    let (layer, form) = reload::Layer::new(text::lines(verbose, is_coloured));
    tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .init();
    let _ = FORM.set(form);
}

/// Gives the log another form. If the journal cannot be reached, the log stays text.
pub fn use_form(form: Form) {
    let is_journal = form == Form::Journal || (form == Form::Auto && stderr_is_the_journal());
    let records = match form {
        Form::Json => Some(Records::json(io::stderr)),
        _ if is_journal => Records::journal().ok(),
        _ => None,
    };
    IS_JSON.store(form == Form::Json, Ordering::Relaxed);
    if let (Some(records), Some(handle)) = (records, FORM.get()) {
        let _ = handle.reload(records.boxed());
    }
}

/// Returns whether systemd has connected standard error with the journal (systemd.exec(5),
/// `JOURNAL_STREAM`).
fn stderr_is_the_journal() -> bool {
    let Some(named) = env::var_os("JOURNAL_STREAM") else {
        return false;
    };
    fstat(io::stderr().as_fd())
        .is_ok_and(|found| *named == *format!("{}:{}", found.st_dev, found.st_ino))
}

/// Writes the reason for the end of program `name`. It goes to standard error even where the log
/// has the journal's form: the journal may no longer find the unit of a process that has ended.
pub fn last_words(name: &str, reason: &str) {
    if IS_JSON.load(Ordering::Relaxed) {
        return error!("{reason}");
    }
    sfs_text::note(&format!("{name}: {reason}"));
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
