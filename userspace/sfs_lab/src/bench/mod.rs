//! Replays one trace under each of several schedulers, each in a VM of its own, and
//! compares them.
//!
//! [`run`] does what [`Settings`] say: it makes the trace, runs the rows that have no
//! result yet, and has `faasbench report` print the table. What a row is, [`rows`] says;
//! what decides whether a result still counts, [`manifest`]; how the results are kept,
//! [`folder`]. A [`series`] does so for several seeds.

pub mod args;
pub mod folder;
pub mod manifest;
pub mod rows;
mod runner;
pub mod series;
pub mod settings;

pub use settings::{Row, Settings, Source, Workload};

use anyhow::Result;
use folder::Folder;
use manifest::Machines;
use rows::Server;
use runner::Runner;
use settings::Size;
use sfs_jobs::failure::{refuse, Failure};
use sfs_jobs::job;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Exit status: a scheduler did not load, did not stay or took its machine with it.
pub const TROUBLED: u8 = 3;

/// How a comparison went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All rows are clean measurements.
    Clean,
    /// Some are not: these rows, each with the reason.
    Troubled(Vec<String>),
}

impl Outcome {
    /// The exit status of the program.
    pub fn status(&self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Troubled(_) => TROUBLED,
        }
    }
}

/// Measures what is missing of `settings`, and prints the table of all rows.
///
/// VMs end with the thread that calls this.
///
/// # Errors
/// One sentence for the user: settings that cannot be, a trace that cannot be made, a disk
/// that is full. [`Failure::Interrupted`] if a signal came: finished rows are kept then, and
/// the same call does the others.
pub fn run(tree: &Tree, settings: &Settings, interrupt: &Interrupt) -> Result<Outcome> {
    let progress = Progress::new("bench");
    let (folder, troubles) = measure(tree, settings, interrupt, &progress)?;
    let reported = report(tree, settings, &folder, Table::Printed);
    interrupt.check()?;
    reported?;
    let out = folder.out().display();
    progress.say(&format!(
        "results are in {out}: summary.json, report.html, and a .csv for each row"
    ));
    Ok(conclude(settings.rows.len(), troubles, &progress))
}

/// Measures what is missing of `settings`. Returns the folder, still locked, and the rows
/// that are no clean measurement, each with the reason.
///
/// # Errors
/// As of [`run`].
pub fn measure(
    tree: &Tree,
    settings: &Settings,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<(Folder, Vec<String>)> {
    let servers = check(tree, settings)?;
    let folder = Folder::open(tree, &settings.out)?;
    let trace = trace(tree, settings, &settings.source);
    // Ctrl-C ends faasbench as well, which is no error of its own.
    interrupt.check()?;
    let trace = trace?;
    let machines = Machines::find(tree, settings, &servers)?;
    let common = manifest::common(tree, &trace, settings.cpus)?;
    if let Some(changed) = folder.keep_common(&common, settings.fresh)? {
        let out = folder.out().display();
        progress.say(&format!(
            "{out} has results of other settings ({changed}): starting afresh"
        ));
    }
    let mut runner = Runner::new(tree, settings, &trace, &machines, &folder, progress);
    runner.run(&servers, interrupt)?;
    let troubles = runner.into_troubles();
    Ok((folder, troubles))
}

/// Finds what serves each row, and refuses settings that cannot be.
fn check(tree: &Tree, settings: &Settings) -> Result<Vec<Server>> {
    let (faasbench, waste) = (tree.program("faasbench"), tree.program("sfs_waste"));
    if !tree.is_program(&faasbench) || !tree.is_program(&waste) {
        refuse!(
            "{} or {} is not built; run make first",
            faasbench.display(),
            waste.display()
        );
    }
    check_source(tree, &settings.source)?;
    rows::servers(tree, &settings.rows)
}

/// Refuses what cannot be a trace.
fn check_source(tree: &Tree, source: &Source) -> Result<()> {
    match source {
        Source::Moved { of, .. } => check_source(tree, of)?,
        Source::File(file) => {
            let path = tree.at(file);
            if !path.is_file() || File::open(path).is_err() {
                refuse!("cannot read TRACE={}", file.display());
            }
        }
        // It becomes the name of a file.
        Source::Generated(Workload { name, .. }) => {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            if name.is_empty() || name.starts_with('-') || !name.chars().all(plain) {
                refuse!(
                    "WORKLOAD={name} is no workload; see {} gen --help",
                    tree.program("faasbench").display()
                );
            }
        }
    }
    Ok(())
}

/// The trace, made if need be. The file's name is the trace's name in the summary.
fn trace(tree: &Tree, settings: &Settings, source: &Source) -> Result<PathBuf> {
    match source {
        Source::File(file) => Ok(file.clone()),
        Source::Generated(workload) => generate(tree, settings, workload),
        Source::Moved { of, by, seed } => {
            let original = trace(tree, settings, of)?;
            let name = original.file_name().unwrap_or_default().to_string_lossy();
            let name = name.trim_end_matches(".csv").trim_end_matches(".trace");
            let copy = settings.out.join(format!("{name}-moved.trace.csv"));
            let mut command = job::call(tree, tree.program("faasbench"));
            command.arg("jitter").arg(&original).args(["--by", by]);
            command.args(["--seed", &seed.to_string(), "--output"]);
            succeed("faasbench jitter", command.arg(&copy))?;
            Ok(copy)
        }
    }
}

/// A trace of `faasbench gen`.
fn generate(tree: &Tree, settings: &Settings, workload: &Workload) -> Result<PathBuf> {
    let trace = settings.out.join(format!("{}.trace.csv", workload.name));
    let size = match &workload.size {
        Size::Scale(factor) => ["--scale", factor],
        Size::MeanMs(mean) => ["--mean-ms", mean],
    };
    let mut command = job::call(tree, tree.program("faasbench"));
    command
        .args(["gen", &workload.name])
        .args(["--invocations", &workload.invocations])
        .args(["--load", &workload.load])
        .args(size)
        .args(["--seed", &workload.seed])
        .args(["--cpus", &settings.cpus.to_string()])
        .arg("--output")
        .arg(&trace)
        .args(workload.options.split_whitespace());
    succeed("faasbench gen", &mut command)?;
    Ok(trace)
}

/// Runs a program that says itself what is wrong, if anything is.
fn succeed(name: &str, command: &mut Command) -> Result<()> {
    match job::run(command)? {
        0 => Ok(()),
        status => Err(Failure::Program(name.into(), u8::try_from(status).unwrap_or(1)).into()),
    }
}

/// What becomes of the table of one trace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Printed,
    /// Only the page is written.
    Hidden,
}

/// Prints the table, and writes the page.
fn report(tree: &Tree, settings: &Settings, folder: &Folder, table: Table) -> Result<()> {
    let summaries = settings.rows.iter();
    let summaries = summaries.map(|row| folder.result(&row.name, "json"));
    let mut command = job::call(tree, tree.program("faasbench"));
    command.args([Path::new("report"), Path::new("--out"), folder.out()]);
    if table == Table::Hidden {
        // As in the table of the series.
        let first = settings.rows.first();
        command.args(first.iter().flat_map(|row| ["--baseline", &row.name]));
        command.stdout(Stdio::null());
    }
    succeed("faasbench report", command.args(summaries))
}

/// Says what is wrong with how many rows.
fn conclude(rows: usize, troubles: Vec<String>, progress: &Progress) -> Outcome {
    if troubles.is_empty() {
        progress.say(&format!("all {rows} rows are clean"));
        return Outcome::Clean;
    }
    progress.say(&format!(
        "{} of {rows} rows are no clean measurement:",
        troubles.len()
    ));
    for trouble in &troubles {
        progress.say(&format!("  {trouble}"));
    }
    Outcome::Troubled(troubles)
}
