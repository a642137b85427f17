//! A progress bar with the time left, for simulations of more than a moment.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// A simulation that is over within this time gets no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar on standard error, if that is a terminal.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    shown: Cell<bool>,
}

impl Progress {
    /// A bar for so many invocations; `name` stands before it.
    pub fn new(name: &str, invocations: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(invocations), ProgressDrawTarget::hidden());
        let template = "{msg} [{bar:25}] {human_pos} of {human_len} invocations, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(name.to_string());
        Self {
            bar,
            since: Instant::now(),
            shown: Cell::new(false),
        }
    }

    /// So many are complete.
    pub fn at(&self, completed: u64) {
        self.bar.set_position(completed);
        if !self.shown.get() && self.since.elapsed() >= PATIENCE {
            self.shown.set(true);
            if std::io::stderr().is_terminal() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
