//! One guest.

use crate::blocks::{Allowed, Blocks};
use crate::cases::PROGRAM;
use crate::count::Count;
use anyhow::{Context, Result};
use sfs_jobs::job::Job;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Real seconds until a guest that hangs is given up: half of the suite takes 12 minutes of a
/// core.
const TIMEOUT: &str = "3000";

/// Where guests come from.
#[derive(Debug)]
pub struct Guests<'a> {
    /// The repository.
    pub tree: &'a Tree,
    /// Signals that end the guests.
    pub interrupt: &'a Interrupt,
    /// The options of vm/run for all of them.
    pub options: Vec<OsString>,
    /// The cases that are allowed to waste CPU time.
    pub allowed: Allowed,
    /// A folder for the consoles.
    pub work: PathBuf,
}

/// The task of a guest.
#[derive(Debug, Clone, Default)]
pub struct Task {
    /// Says which guest it is, in messages and names of files.
    pub name: String,
    /// More options of vm/run.
    pub machine: Vec<OsString>,
    /// The words for `sfs_behaviour`.
    pub words: Vec<String>,
    /// Stands before each line that is printed.
    pub indent: &'static str,
}

/// The end of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status; 1 as well if a case fails because of what was wasted in it.
    pub status: i32,
    /// The cases, as far as it came.
    pub count: Option<Count>,
    /// The names of those that failed.
    pub failed: Vec<String>,
}

impl Ended {
    /// Whether it came to the end of its cases. Exit status 1 is for cases that failed, and
    /// those are in the output.
    pub fn is_whole(&self) -> bool {
        self.status == 0 || (self.status == 1 && !self.failed.is_empty())
    }
}

impl Guests<'_> {
    /// The command that runs a guest, up to the options of its machine. The guest ends with
    /// the thread that starts it.
    pub fn command(&self, console: &Path, machine: &[OsString]) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM"])
            .arg(self.tree.at("vm/run"))
            .args(["--timeout", TIMEOUT, "--console"])
            .arg(console)
            .args(&self.options)
            .args(machine);
        command
    }

    /// Adds the programs and their words to a command.
    pub fn bring_in(&self, command: &mut Command, words: &[String]) {
        for name in ["scx_sfs", "sfs_advise", PROGRAM] {
            command
                .arg("--in")
                .arg(self.tree.at(self.tree.program(name)));
        }
        command.args(["--", PROGRAM]).args(words);
    }

    /// Runs a guest to its end, and prints what it says, case by case.
    ///
    /// # Errors
    /// If it cannot be started, and [`sfs_jobs::failure::Failure::Interrupted`]; the guest then
    /// ends.
    pub fn run(&self, task: &Task) -> Result<Ended> {
        let mut command = self.command(&self.console(&task.name), &task.machine);
        let ci = std::env::var("CI").unwrap_or_default();
        command.arg("--env").arg(format!("CI={ci}"));
        self.bring_in(&mut command, &task.words);
        let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
        let mut job = Job::start(command.stdout(writer))?;
        // It holds our end for writing.
        drop(command);
        std::thread::scope(|scope| {
            let blocks = scope.spawn(|| print_all(reader, Blocks::new(&self.allowed), task.indent));
            let status = job.wait(self.interrupt);
            drop(job);
            let blocks = blocks.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            Ok(Ended {
                status: if blocks.worse > 0 { 1 } else { status? },
                count: blocks.count,
                failed: blocks.failed,
            })
        })
    }

    /// The file with the console of a guest.
    pub fn console(&self, name: &str) -> PathBuf {
        self.work.join(format!("console.{name}"))
    }
}

/// Prints what can be read, case by case. That nobody reads it is no reason to stop.
fn print_all<'a>(reader: PipeReader, mut blocks: Blocks<'a>, indent: &str) -> Result<Blocks<'a>> {
    let mut reader = BufReader::new(reader);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes);
        if read.context("cannot read what a guest says")? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&bytes);
        print(
            &blocks.take(line.strip_suffix('\n').unwrap_or(&line)),
            indent,
        );
    }
    print(&blocks.finish(), indent);
    Ok(blocks)
}

/// Prints lines in one piece.
pub fn print(lines: &[String], indent: &str) {
    if lines.is_empty() {
        return;
    }
    let text: String = lines
        .iter()
        .map(|line| format!("{indent}{line}\n"))
        .collect();
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
