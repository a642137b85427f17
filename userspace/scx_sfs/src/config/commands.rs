//! `scx_sfs config` and `scx_sfs set`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{anyhow, Context, Result};
use clap::Args;
use sfs_bpf::exit::{Failure, Status};
use sfs_bpf::NAME;
use sfs_statistics::{ask, Unanswered};
use sfs_text::note;

use super::report::Report;
use super::{file, template, Refusal, Request};

/// Print the configuration: each key, its value, and where that comes from.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Without a running scx_sfs it prints what the next start would use.

Examples:
  scx_sfs config                                   # of the running one, as root
  scx_sfs config --next -- --config /srv/sfs.toml  # of such a start
  scx_sfs config --example >config.toml            # all keys and their meaning

Exit status: 0 done; 1 an error, which a sentence explains; 2 wrong options;
9 a configuration file is wrong.")]
pub struct ConfigCommand {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// Print what the next start would use, even if scx_sfs runs now.
    #[arg(long)]
    pub next: bool,

    /// Print a configuration file with all keys and defaults, commented out.
    #[arg(long, conflicts_with_all = ["json", "next", "options"])]
    pub example: bool,

    /// With --next: the options of that start.
    #[arg(last = true, requires = "next", value_name = "OPTION")]
    pub options: Vec<OsString>,
}

impl ConfigCommand {
    /// Prints it.
    ///
    /// # Errors
    ///
    /// The running scheduler may not be asked, or a file is wrong.
    pub fn run(&self) -> Result<(), Failure> {
        let text = if self.example {
            template::text()
        } else {
            shown(&self.report()?, self.json)?
        };
        Ok(print(&text)?)
    }

    fn report(&self) -> Result<Report, Failure> {
        if !self.next {
            match ask("config", &[]) {
                Err(Unanswered::NoScheduler) => note(&format!(
                    "{NAME}: no scx_sfs is running; this is what the next start would use"
                )),
                answer => return Ok(of(answer)?),
            }
        }
        next(&self.options)
    }
}

/// Returns the configuration of a start with these options.
fn next(options: &[OsString]) -> Result<Report, Failure> {
    let name = [OsString::from(NAME)];
    let arguments = name.iter().chain(options);
    match Request::read(arguments, Path::new(file::USUAL)) {
        Ok(Request::Schedule(configuration)) => Ok(configuration.report(None)),
        Ok(Request::Other(_)) => Err(anyhow!(
            "with these options scx_sfs would not schedule: leave out commands and options such \
             as --monitor"
        )
        .into()),
        Err(Refusal::Options(error)) => error.exit(),
        Err(Refusal::File(sentence)) => Err(Failure {
            status: Status::Misconfigured,
            error: Some(anyhow!("{sentence}")),
        }),
    }
}

/// Change a key of the running scx_sfs, without a reload.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The change lasts until scx_sfs ends; a reload after CPU hotplug keeps it. To
keep it longer write it to /etc/scx_sfs/config.toml as well. Only root and the
user that runs scx_sfs may change it. A list is separated by commas.

Examples:
  scx_sfs set slice-us 5000         # a fixed slice from now on
  scx_sfs set overload-factor 2
  scx_sfs set --undo slice-us       # back to the value of the start")]
pub struct SetCommand {
    /// The key, which is the name of an option; scx_sfs config marks those that can change.
    pub key: String,

    /// Its new value.
    #[arg(required_unless_present = "undo")]
    pub value: Option<String>,

    /// Give the key back the value that it had at the start.
    #[arg(long, conflicts_with = "value")]
    pub undo: bool,

    /// Print the whole configuration after the change as JSON.
    #[arg(long)]
    pub json: bool,
}

impl SetCommand {
    /// Changes it, and prints the key as it is then.
    ///
    /// # Errors
    ///
    /// No scx_sfs runs, this user may not change it, the key cannot change, or the value is wrong.
    pub fn run(&self) -> Result<()> {
        let mut arguments = vec![("key", self.key.as_str())];
        arguments.extend(self.value.as_deref().map(|value| ("value", value)));
        let report = of(ask("set", &arguments))?;
        if self.json {
            return print(&shown(&report, true)?);
        }
        let key = report.keys.iter().find(|one| one.key == self.key);
        print(&format!(
            "{}\n",
            key.context("the answer lacks the key")?.sentence()
        ))
    }
}

/// The error for an answer that this version does not understand.
pub(super) const ANOTHER_VERSION: &str = "the running scx_sfs is another version: restart it";

fn of(answer: Result<serde_json::Value, Unanswered>) -> Result<Report> {
    let report = serde_json::from_value(answer?);
    report.context(ANOTHER_VERSION)
}

fn shown(report: &Report, json: bool) -> Result<String> {
    let mut text = Vec::new();
    if json {
        serde_json::to_writer_pretty(&mut text, report)?;
        text.push(b'\n');
    } else {
        report.print(&mut text)?;
    }
    Ok(String::from_utf8(text)?)
}

/// Prints, and leaves quietly if the reader has gone.
pub(super) fn print(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print the configuration"),
    }
}
