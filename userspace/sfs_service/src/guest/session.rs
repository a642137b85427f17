//! What an operator types, and what that prints: each command is run by a shell, and written down
//! with its output.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{ensure, Context, Result};

use crate::part::{OUT, TRANSCRIPT};

/// What a command has printed, on both of its outputs, and how it ended.
#[derive(Debug)]
pub struct Said {
    command: String,
    text: String,
    status: Option<i32>,
}

/// Runs a command line as an operator would, and adds it to the transcript.
///
/// # Errors
///
/// It cannot be run, or the transcript cannot be written.
pub fn types(command: &str) -> Result<Said> {
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("{{ {command}\n}} 2>&1")]);
    for (name, value) in [
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("SYSTEMD_COLORS", "0"),
        ("SYSTEMD_PAGER", "cat"),
        ("COLUMNS", "100"),
        ("LC_ALL", "C.UTF-8"),
        ("HOME", "/root"),
        ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
    ] {
        shell.env(name, value);
    }
    let output = shell.current_dir("/root").stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {command}"))?;
    let said = Said {
        command: command.to_owned(),
        text: shown(&String::from_utf8_lossy(&output.stdout)),
        status: output.status.code(),
    };
    write(&said)?;
    Ok(said)
}

/// What a terminal shows in the end: of a line that is written again and again, the last state.
fn shown(text: &str) -> String {
    let last = |line: &str| {
        line.trim_end_matches('\r')
            .rsplit('\r')
            .next()
            .map(str::to_owned)
    };
    let lines = text.lines().filter_map(last);
    lines.map(|line| line + "\n").collect()
}

/// Adds a command and its output to the transcript, as they would stand in a terminal.
fn write(said: &Said) -> Result<()> {
    fs::create_dir_all(OUT).with_context(|| format!("cannot make {OUT}"))?;
    let path = Path::new(OUT).join(TRANSCRIPT);
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(said.transcript().as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}

impl Said {
    /// The lines of the transcript.
    fn transcript(&self) -> String {
        let mut text = format!("# {}\n{}", self.command, self.text);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        match self.status {
            Some(0) => {}
            Some(status) => text += &format!("[exit status {status}]\n"),
            None => text += "[killed]\n",
        }
        text + "\n"
    }

    /// Checks that it has succeeded, and printed each of these.
    ///
    /// # Errors
    ///
    /// It has not.
    pub fn well(&self, words: &[&str]) -> Result<()> {
        ensure!(self.status == Some(0), "{}", self.account("it failed"));
        self.has(words)
    }

    /// Checks that it has failed, and printed each of these.
    ///
    /// # Errors
    ///
    /// It has not.
    pub fn in_vain(&self, words: &[&str]) -> Result<()> {
        ensure!(self.status != Some(0), "{}", self.account("it succeeded"));
        self.has(words)
    }

    fn has(&self, words: &[&str]) -> Result<()> {
        for part in words {
            let missing = || self.account(&format!("it does not say {part:?}"));
            ensure!(self.text.contains(part), "{}", missing());
        }
        Ok(())
    }

    /// What it has printed.
    pub fn text(&self) -> &str {
        self.text.trim_end()
    }

    fn account(&self, why: &str) -> String {
        format!("{}: {why}\n{}", self.command, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, status: Option<i32>) -> Said {
        Said {
            command: "x".to_owned(),
            text: text.to_owned(),
            status,
        }
    }

    #[test]
    fn the_transcript_is_that_of_a_terminal() {
        assert_eq!(said("a\n", Some(0)).transcript(), "# x\na\n\n");
        assert_eq!(
            said("a", Some(9)).transcript(),
            "# x\na\n[exit status 9]\n\n"
        );
        assert_eq!(said("", None).transcript(), "# x\n[killed]\n\n");
    }

    #[test]
    fn progress_is_shown_once() {
        assert_eq!(shown("5%\r10%\rdone\nnext\r\n"), "done\nnext\n");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn words_and_the_end_are_looked_at() {
        said("one two", Some(0)).well(&["one", "two"]).unwrap();
        said("one", Some(1)).in_vain(&["one"]).unwrap();
        let why = said("one", Some(0)).well(&["two"]).unwrap_err();
        assert_eq!(why.to_string(), "x: it does not say \"two\"\none");
        said("one", Some(1)).well(&[]).unwrap_err();
        said("one", Some(0)).in_vain(&[]).unwrap_err();
    }
}
