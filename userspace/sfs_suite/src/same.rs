//! `sfs_suite same`: runs a workload PAIRS + 1 times, and compares all that came out with the
//! first run. See vm/README.md.

use crate::pool;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use sfs_jobs::failure::Failure;
use sfs_jobs::job::{call, call_tied, Job};
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Exit status: a run differs from the first.
const DIFFERS: u8 = 1;
/// Exit status: the first run failed, so that there is nothing to compare with.
const NO_RUN: u8 = 125;
/// The exit status of the guest in which vm/race came to its end.
const RACE_ENDED: i32 = 7;
/// How many lines of a difference are printed.
const LINES: usize = 4;

/// The command line of `sfs_suite same`.
#[derive(Args, Debug)]
#[command(
    override_usage = "sfs_suite same [OPTIONS] PAIRS [WORKLOAD]",
    after_help = "The first run and those that differ from it are kept in DIR.\n\
        Exit status: 0; 1 a run differs; 2 bad usage; 125 the first run failed; 130 interrupted."
)]
pub struct SameArgs {
    /// How many runs are compared with the first, 1 to 999999
    #[arg(value_name = "PAIRS", value_parser = clap::value_parser!(u32).range(1..1_000_000))]
    pairs: u32,
    /// What is run
    #[arg(value_name = "WORKLOAD", value_enum, default_value = "race")]
    workload: Workload,
    /// Runs at the same time, 1 to 99
    #[arg(long, value_name = "J", default_value = "1", value_parser = clap::value_parser!(u16).range(1..100))]
    jobs: u16,
    /// Where runs are kept; the folder is emptied first (default: out/same/WORKLOAD)
    #[arg(long, value_name = "DIR", env = "OUT", hide_env_values = true)]
    out: Option<OsString>,
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// 300 processes that race for four CPUs
    Race,
    /// Google's Functions Framework, under each scheduler
    FunctionsFramework,
    /// AWS Lambda's runtime, under each scheduler
    Lambda,
}

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::FunctionsFramework => "functions-framework",
            Self::Lambda => "lambda",
        }
    }

    /// The exit status of a run that came to its end.
    fn ended(self) -> i32 {
        match self {
            Self::Race => RACE_ENDED,
            Self::FunctionsFramework | Self::Lambda => 0,
        }
    }
}

/// Runs the workload and compares; returns the exit status.
///
/// # Errors
///
/// A program cannot be run, a file cannot be written, vm/fetch fails, or
/// [`Failure::Interrupted`]; all runs then end.
pub fn run(tree: &Tree, args: &SameArgs, interrupt: &Interrupt) -> Result<u8> {
    let runs = Runs {
        tree,
        interrupt,
        workload: args.workload,
        pairs: args.pairs,
        out: folder(tree, args)?,
    };
    runs.fetch()?;
    if !runs.run(0)? {
        let first = runs.folder(0);
        say(&format!(
            "the first run failed; {} has what it said",
            first.display()
        ));
        return Ok(NO_RUN);
    }
    let numbers = (1..=args.pairs).collect();
    let same = pool::for_each(args.jobs.into(), numbers, |number| {
        runs.run(number)?;
        runs.compare(number)
    })?;
    let differ = same.into_iter().filter(|same| !same).count();
    let (name, pairs) = (args.workload.name(), args.pairs);
    let _ = writeln!(std::io::stdout(), "{name}: {pairs} pairs, {differ} differ");
    Ok(if differ == 0 { 0 } else { DIFFERS })
}

/// Makes the folder for all runs, empty.
fn folder(tree: &Tree, args: &SameArgs) -> Result<PathBuf> {
    let given = args.out.as_ref().filter(|out| !out.is_empty());
    let usual = || Path::new("out/same").join(args.workload.name());
    let out = tree.at(given.map_or_else(usual, PathBuf::from));
    let out = std::path::absolute(&out).with_context(|| cannot("find", &out))?;
    remove(&out)?;
    fs::create_dir_all(&out).with_context(|| cannot("make", &out))?;
    Ok(out)
}

/// Runs of one workload.
struct Runs<'a> {
    tree: &'a Tree,
    interrupt: &'a Interrupt,
    workload: Workload,
    pairs: u32,
    /// Has a folder for each run, by its number.
    out: PathBuf,
}

impl Runs<'_> {
    /// Fetches what guests need, before several of them do.
    fn fetch(&self) -> Result<()> {
        let mut command = call(self.tree, "vm/fetch");
        let status = Job::start(command.stdout(Stdio::null()))?.wait(self.interrupt)?;
        match u8::try_from(status).unwrap_or(NO_RUN) {
            0 => Ok(()),
            status => Err(Failure::Program("vm/fetch".to_string(), status).into()),
        }
    }

    fn folder(&self, number: u32) -> PathBuf {
        self.out.join(number.to_string())
    }

    /// The file for the messages of a platform. It is not compared: it has paths and times.
    fn log(&self, number: u32) -> PathBuf {
        self.out.join(format!("{number}.log"))
    }

    /// Runs the workload to its end. Returns whether it succeeded; if not, the file `failed` in
    /// the run's folder has the exit status.
    fn run(&self, number: u32) -> Result<bool> {
        let folder = self.folder(number);
        fs::create_dir(&folder).with_context(|| cannot("make", &folder))?;
        let mut command = match self.workload {
            Workload::Race => self.race(&folder)?,
            platform => self.platform(platform.name(), &folder, &self.log(number))?,
        };
        let status = Job::start(&mut command)?.wait(self.interrupt)?;
        let succeeded = status == self.workload.ended();
        if !succeeded {
            let failed = folder.join("failed");
            let text = format!("exit status {status}\n");
            fs::write(&failed, text).with_context(|| cannot("write", &failed))?;
        }
        Ok(succeeded)
    }

    /// The race, in one guest.
    fn race(&self, folder: &Path) -> Result<Command> {
        let mut command = call_tied(self.tree, self.tree.at("vm/run"));
        command
            .args(["--quiet", "--console"])
            .arg(folder.join("console"));
        command.arg("--in").arg(self.tree.at("vm/race"));
        let mut results = OsString::from("/out:");
        results.push(folder.join("out"));
        command
            .arg("--out")
            .arg(results)
            .args(["--", "sh", "/bin/race"]);
        command.stdout(create(&folder.join("stdout"))?);
        command.stderr(create(&folder.join("stderr"))?);
        Ok(command)
    }

    /// A platform, one guest after another. This alone knows how platforms are called.
    fn platform(&self, name: &str, folder: &Path, log: &Path) -> Result<Command> {
        let program = self.tree.at(self.tree.program("sfs_platforms"));
        let mut command = call_tied(self.tree, program);
        command.arg("--tree").arg(self.tree.at("")).arg(name);
        command.env("OUT", folder).env("JOBS", "1");
        let log = create(log)?;
        command.stdout(log.try_clone().context("cannot share a file")?);
        command.stderr(log);
        Ok(command)
    }

    /// Returns whether a run is the same as the first. Says where they part, or removes it.
    fn compare(&self, number: u32) -> Result<bool> {
        let mut diff = Command::new("diff");
        diff.arg("-r").arg(self.folder(0)).arg(self.folder(number));
        let output = diff.stderr(Stdio::inherit()).output();
        let output = output.context("cannot run diff")?;
        let of = self.pairs;
        if output.status.success() {
            say(&format!("run {number} of {of} is the same"));
            remove(&self.folder(number))?;
            remove(&self.log(number))?;
            return Ok(true);
        }
        let lines = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = lines.lines().take(LINES).collect();
        let lines = lines.join("\n");
        say(&format!("run {number} of {of} DIFFERS: {lines}"));
        Ok(false)
    }
}

/// Says one line. That nobody reads it is no reason to stop.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "same: {text}");
}

fn cannot(what: &str, path: &Path) -> String {
    format!("cannot {what} {}", path.display())
}

fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| cannot("write", path))
}

/// Removes a file or a folder, if there is one.
fn remove(path: &Path) -> Result<()> {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| cannot("remove", path))
        }
        _ => Ok(()),
    }
}
