//! A progress bar with the time left, for long work.
//!
//! It appears on standard error after a second, and only on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::{IsTerminal, Read};
use std::time::{Duration, Instant};

/// Work shorter than this gets no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar, or nothing if nobody can see it.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    watched: bool,
    shown: Cell<bool>,
}

impl Progress {
    /// A bar for `length` pieces of work called `unit`, or bytes if that is
    /// `bytes`; `what` is its label.
    pub fn new(what: &str, length: u64, unit: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        let count = match unit {
            "bytes" => "{bytes} of {total_bytes}".to_string(),
            unit => format!("{{human_pos}} of {{human_len}} {unit}"),
        };
        let template = format!("{{msg}} [{{bar:25}}] {count}, {{eta}} left");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_string());
        Self {
            bar,
            since: Instant::now(),
            watched: std::io::stderr().is_terminal(),
            shown: Cell::new(false),
        }
    }

    /// Whether anybody can see it.
    pub fn is_watched(&self) -> bool {
        self.watched
    }

    /// Sets the amount done.
    pub fn at(&self, done: u64) {
        self.bar.set_position(done);
        if self.watched && !self.shown.get() && self.since.elapsed() >= PATIENCE {
            self.shown.set(true);
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Wraps `source`; reading from it advances the bar.
    pub fn reading<'a, R: Read + 'a>(&'a self, source: R) -> impl Read + 'a {
        Reading {
            source,
            progress: self,
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

struct Reading<'a, R> {
    source: R,
    progress: &'a Progress,
}

impl<R: Read> Read for Reading<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.progress.at(self.progress.bar.position() + read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_moves_the_bar_and_changes_nothing() {
        let progress = Progress::new("reading", 5, "bytes");
        let mut text = String::new();
        let mut reader = progress.reading(&b"hello"[..]);
        reader.read_to_string(&mut text).unwrap();
        drop(reader);
        assert_eq!((text.as_str(), progress.bar.position()), ("hello", 5));
    }
}
