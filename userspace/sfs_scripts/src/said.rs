//! Runs commands, and keeps their output.

use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Held while a program is written, and while a process starts. A process that starts has a
/// copy of each open file for a moment, and the kernel starts no program that is open for
/// writing.
pub(crate) static STARTING: Mutex<()> = Mutex::new(());

/// The end of a command.
#[derive(Debug)]
pub struct Said {
    /// The exit status; -1 after a signal.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs `command` to its end, without input.
///
/// # Panics
///
/// If it cannot be started.
pub fn run(command: &mut Command) -> Said {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = {
        let _starting = STARTING.lock().unwrap_or_else(|held| held.into_inner());
        command.spawn()
    };
    let output = child
        .and_then(|child| child.wait_with_output())
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Said {
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Said {
    /// Checks that the command succeeded. Returns its standard output.
    ///
    /// # Panics
    ///
    /// If it failed.
    #[track_caller]
    pub fn succeeded(&self) -> &str {
        assert_eq!(self.status, 0, "{self:#?}");
        &self.out
    }

    /// Checks the exit status, and that `text` is in the output or among the errors.
    ///
    /// # Panics
    ///
    /// If one of them is not as expected.
    #[track_caller]
    pub fn ended(&self, status: i32, text: &str) {
        assert_eq!(self.status, status, "{text:?} expected; {self:#?}");
        let said = self.out.contains(text) || self.err.contains(text);
        assert!(said, "{text:?} is not in {self:#?}");
    }

    /// The last line of standard output, empty without one.
    #[must_use]
    pub fn last_line(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}
