//! The host's half: makes what the guests consist of, and runs one for each part.

mod root;
mod stage;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use sfs_jobs::job::{call_tied, Job};
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use tempfile::TempDir;

use crate::part::{Machine, Part, OUT, OUT_OF_HOST, PLACE, PROGRAM};
use root::Release;

/// Real seconds until a guest is given up.
const TIMEOUT: &str = "3000";

/// Lines of the console that are shown of a guest that did not come to its end.
const CONSOLE_LINES: usize = 20;

/// The command line of `sfs_service test`.
#[derive(Args, Debug)]
pub struct TestArgs {
    /// Debian's release (default: 12, which has systemd 252; 13 for the part package)
    #[arg(long, value_name = "N")]
    release: Option<Release>,
    /// The parts (default: all)
    #[arg(value_name = "PART")]
    parts: Vec<Part>,
}

/// Runs the parts, and returns 1 if a check has failed or a guest has not come to its end.
///
/// # Errors
///
/// A program is not built (exit status 2), the root file system cannot be made (125), or a
/// signal asks this process to end.
pub fn run(tree: &Tree, args: &TestArgs, interrupt: &Interrupt) -> Result<u8> {
    let work = tempfile::tempdir().context("cannot make a temporary folder")?;
    let guests = Guests {
        tree,
        interrupt,
        release: args.release,
        stage: work.path().join("stage"),
        work,
    };
    stage::fill(tree, &guests.stage)?;
    let parts = match args.parts.as_slice() {
        [] => &Part::ALL,
        some => some,
    };
    if parts.contains(&Part::Package) {
        stage::packages(tree, &guests.stage)?;
    }
    let mut status = 0;
    for part in parts {
        if guests.run(*part)? != 0 {
            status = 1;
        }
    }
    Ok(status)
}

/// What the guests have in common.
struct Guests<'a> {
    tree: &'a Tree,
    interrupt: &'a Interrupt,
    release: Option<Release>,
    /// The folder that they find at [`PLACE`].
    stage: PathBuf,
    /// For the consoles.
    work: TempDir,
}

impl Guests<'_> {
    /// Boots a guest for a part, and returns its exit status. The guest ends with this process.
    fn run(&self, part: Part) -> Result<i32> {
        let console = self.work.path().join(format!("console.{part}"));
        let mut brought = OsString::from(&self.stage);
        brought.push(format!(":{PLACE}"));
        let machine = part.machine();
        let release = self.release.unwrap_or(match machine {
            Machine::Small => Release::Bookworm,
            Machine::Fresh => Release::Trixie,
        });
        let work = self.work.path();
        let archive = root::archive(self.tree, release, machine, work, self.interrupt)?;
        let mut command = call_tied(self.tree, self.tree.at("vm/run"));
        command.arg("--root").arg(archive);
        command.arg("--in").arg(brought);
        command.args(["--cpus", &part.cpus().to_string(), "--timeout", TIMEOUT]);
        command.arg("--console").arg(&console);
        if part == Part::Package {
            let mut out = OsString::from(format!("{OUT}:"));
            out.push(self.tree.at(OUT_OF_HOST));
            command.arg("--out").arg(out);
        }
        command.args(["--", &format!("{PLACE}/{PROGRAM}"), "guest", part.name()]);
        let status = Job::start(&mut command)?.wait(self.interrupt)?;
        if status > 1 {
            let _ = std::io::stderr().write_all(end_of(&console).as_bytes());
        }
        Ok(status)
    }
}

/// The last lines of a console, if there is one.
fn end_of(console: &Path) -> String {
    let bytes = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(CONSOLE_LINES)..];
    last.iter().map(|line| format!("{line}\n")).collect()
}
