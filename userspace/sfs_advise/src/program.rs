//! The command line of the program.

use std::env;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Command, FromArgMatches};
use faas_data::output::{print, Output};
use faas_data::trace::{self, Trace};
use sfs_advice::AdviseCommand;
use sfs_text::note;

use crate::machine::{self, Scheduler};
use crate::prediction::{predict, Prediction};
use crate::recorder::{record, Plan};
use crate::recording::Recording;
use crate::replayer;
use crate::report::Report;
use crate::seen::Seen;
use crate::text;

/// The command, as people know it.
pub const NAME: &str = "scx_sfs advise";

/// Reads the options; help and errors end the program.
fn options() -> AdviseCommand {
    let named = Command::new("sfs_advise").bin_name(NAME).max_term_width(80);
    let mut command = AdviseCommand::augment_args(named);
    let matches = command.get_matches_mut();
    AdviseCommand::from_arg_matches(&matches)
        .unwrap_or_else(|error| error.format(&mut command).exit())
}

/// Executes the command line. Returns the exit code of the program.
pub fn run() -> ExitCode {
    let is_replayer = env::args_os()
        .nth(1)
        .is_some_and(|word| word == replayer::ROLE);
    let result = if is_replayer {
        replayer::serve()
    } else {
        advise(&options())
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("{NAME}: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn advise(options: &AdviseCommand) -> Result<()> {
    sfs_log::init(false, false);
    // A file that cannot be written is known before the recording.
    let file = options.save.as_deref().map(Output::create).transpose()?;
    let recording = match &options.from {
        Some(path) => read(path, options.cpus)?,
        None => record(&Plan {
            time: options.record.context("--record or --from is needed")?,
            patterns: options.cgroup.clone(),
        })?,
    };
    if let Some(file) = file {
        save(&recording, file)?;
    }
    let seen = Seen::of(&recording);
    let predictions = match seen.obstacle() {
        None => predict(&recording, &seen)?,
        Some(_) => Vec::<Prediction>::new(),
    };
    let report = Report::new(&recording, seen, predictions);
    let text = if options.json {
        serde_json::to_string_pretty(&report).context("the advice is no JSON")? + "\n"
    } else {
        text::of(&report, is_coloured())
    };
    print(text.as_bytes())
}

/// Reads a recording that was saved.
fn read(path: &Path, cpus: Option<u16>) -> Result<Recording> {
    let trace = Trace::read(path)?;
    let cpus = match cpus {
        Some(cpus) => cpus.into(),
        None => machine::cpus()?,
    };
    Ok(Recording::of_trace(
        &trace.invocations,
        cpus,
        Scheduler::now(),
    ))
}

fn save(recording: &Recording, file: Output) -> Result<()> {
    let invocations = recording.trace();
    if invocations.is_empty() {
        note(&format!(
            "{NAME}: nothing was recorded, so no trace is written"
        ));
        return Ok(());
    }
    file.commit(trace::to_csv(&invocations).as_bytes())
}

/// Whether text on standard output has colours: on a terminal, unless NO_COLOR is set
/// (<https://no-color.org>) or the terminal is dumb.
fn is_coloured() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
    io::stdout().is_terminal() && !refused && !is_dumb
}
