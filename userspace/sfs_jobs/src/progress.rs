//! Progress of a long run, on standard error.

use indicatif::{ProgressBar, ProgressStyle};
use std::cell::RefCell;
use std::io::{IsTerminal, Write};

/// Lines, and on a terminal one line below them that is written over.
#[derive(Debug)]
pub struct Progress {
    /// Stands before each line.
    name: &'static str,
    terminal: bool,
    bar: RefCell<Option<ProgressBar>>,
}

impl Progress {
    /// For the subcommand `name`.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            terminal: std::io::stderr().is_terminal(),
            bar: RefCell::new(None),
        }
    }

    /// Whether somebody watches: standard error is a terminal.
    pub fn is_watched(&self) -> bool {
        self.terminal
    }

    /// Prints one line. An error of writing does not end the run.
    pub fn say(&self, text: &str) {
        self.aside(|| {
            let _ = writeln!(std::io::stderr(), "{}: {text}", self.name);
        });
    }

    /// Lets `print` write to the terminal.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &*self.bar.borrow() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// On a terminal: shows `text` below all lines, in place of the text before.
    pub fn show(&self, text: &str) {
        if !self.terminal {
            return;
        }
        let mut bar = self.bar.borrow_mut();
        let bar = bar.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        bar.set_message(format!("{}: {text}", self.name));
        bar.tick();
    }

    /// Removes the text of [`show`](Self::show).
    pub fn clear(&self) {
        if let Some(bar) = self.bar.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }
}
