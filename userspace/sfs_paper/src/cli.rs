//! The command line.

use crate::data::Measured;
use crate::figures::{self, Figure};
use crate::measure::{measure, How, Places};
use crate::plan::Size;
use crate::write;
use anyhow::{bail, Context, Result};
use clap::{Args, Parser, Subcommand};
use faas_data::output::Output;
use sfs_jobs::failure::Failure;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_lab::bench::args::VmArgs;
use sfs_lab::bench::{Outcome, TROUBLED};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Reproduces the figures of the papers: measures as make bench does, draws,
/// tabulates.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure and draw figures; what is measured already is not measured again
    ///
    /// Writes OUT/nN/figures/ID/: figure.md, and the data of each table and picture
    /// as CSV. Exits with 3 if a scheduler did not load or did not stay, with 1 if
    /// a figure could not be made; the others are made all the same.
    Run(RunArgs),
    /// List the figures
    List,
    /// Fill the figures that were drawn into a document
    ///
    /// Between the lines `<!-- figure ID -->` and `<!-- end of figure ID -->`.
    Markdown(MarkdownArgs),
}

#[derive(Debug, Args)]
struct Common {
    /// Invocations in each setting; by default 2000, a fifth of the papers', and
    /// 10000 for the headline
    #[arg(short = 'n', long, env = "N", value_name = "N", value_parser = clap::value_parser!(u32).range(20..=1_000_000))]
    invocations: Option<u32>,
    /// Where measurements go
    #[arg(long, env = "OUT", default_value = "out/paper", value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    common: Common,
    /// The figures, by what `list` calls them; by default all
    #[arg(long, env = "FIG", value_delimiter = ' ', value_name = "ID")]
    figure: Vec<String>,
    /// CPUs of the virtual machine
    #[arg(long, env = "CPUS", default_value = "12", value_name = "C", value_parser = clap::value_parser!(u32).range(1..=255))]
    cpus: u32,
    /// Seed of the workloads
    #[arg(long, env = "SEED", default_value = "1", value_name = "X")]
    seed: u64,
    /// The traces of others; figures that need them are skipped without
    #[arg(
        long,
        env = "TRACES",
        default_value = "../shared/traces",
        value_name = "DIR"
    )]
    traces: PathBuf,
    #[command(flatten)]
    vms: VmArgs,
}

#[derive(Debug, Args)]
struct MarkdownArgs {
    #[command(flatten)]
    common: Common,
    /// The document; pictures go to the folder beside it that has its name
    #[arg(long, default_value = "docs/results.md", value_name = "FILE")]
    into: PathBuf,
}

impl Common {
    /// Where measurements of this size are.
    fn folder(&self) -> PathBuf {
        self.out.join(match self.invocations {
            Some(count) => format!("n{count}"),
            None => "full".to_string(),
        })
    }
}

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    /// One sentence on what is wrong, for the user.
    pub fn execute(self) -> Result<ExitCode> {
        match self.command {
            Command::Run(args) => run(&args),
            Command::List => {
                let mut out = std::io::stdout().lock();
                for figure in figures::all() {
                    writeln!(out, "{:9} {}", figure.id, figure.title)
                        .context("cannot print the list")?;
                }
                Ok(ExitCode::SUCCESS)
            }
            Command::Markdown(args) => markdown(&args),
        }
    }
}

fn chosen(ids: &[String]) -> Result<Vec<Figure>> {
    let all = figures::all();
    let ids: Vec<&String> = ids.iter().filter(|id| !id.is_empty()).collect();
    if ids.is_empty() {
        return Ok(all);
    }
    let find = |id: &&String| {
        let found = all.iter().find(|figure| figure.id == **id).copied();
        found.with_context(|| {
            let known: Vec<&str> = all.iter().map(|figure| figure.id).collect();
            format!("there is no figure `{id}`; known are {}", known.join(", "))
        })
    };
    ids.iter().map(find).collect()
}

/// How a figure went.
enum Made {
    Clean,
    Troubled,
    Skipped,
}

fn run(args: &RunArgs) -> Result<ExitCode> {
    let chosen = chosen(&args.figure)?;
    let interrupt = Interrupt::catch()?;
    let places = Places {
        out: std::path::absolute(args.common.folder())?,
        traces: std::path::absolute(&args.traces)?,
        tree: Tree::find()?,
    };
    let size = Size {
        invocations: args.common.invocations.unwrap_or(2000),
        headline: args.common.invocations.unwrap_or(10_000),
        cpus: args.cpus,
        seed: args.seed,
    };
    let how = How {
        size,
        vms: args.vms.clone(),
    };
    let (mut troubled, mut failed) = (0, 0);
    for (index, figure) in chosen.iter().enumerate() {
        say(&format!(
            "figure {} ({} of {}): {}",
            figure.id,
            index + 1,
            chosen.len(),
            figure.title
        ));
        let made = make(&places, &how, figure, &interrupt);
        if let Err(Failure::Interrupted(status)) = interrupt.check() {
            say("interrupted; the same command goes on from here");
            return Ok(ExitCode::from(status));
        }
        match made {
            Ok(Made::Clean | Made::Skipped) => {}
            Ok(Made::Troubled) => troubled += 1,
            Err(error) => {
                say(&format!("figure {}: {error:#}", figure.id));
                failed += 1;
            }
        }
    }
    if failed > 0 {
        bail!("{failed} of {} figures could not be made", chosen.len());
    }
    Ok(match troubled {
        0 => ExitCode::SUCCESS,
        _ => {
            say(&format!(
                "{troubled} of {} figures have rows that are no clean measurement",
                chosen.len()
            ));
            ExitCode::from(TROUBLED)
        }
    })
}

fn make(places: &Places, how: &How, figure: &Figure, interrupt: &Interrupt) -> Result<Made> {
    if figure.needs_traces && !places.traces.is_dir() {
        say(&format!(
            "figure {} skipped: it needs the traces of others, and there is no {}; set TRACES",
            figure.id,
            places.traces.display()
        ));
        return Ok(Made::Skipped);
    }
    let settings = (figure.settings)(how.size);
    let mut made = Made::Clean;
    for (index, setting) in settings.iter().enumerate() {
        say(&format!(
            "figure {}, {} ({} of {})",
            figure.id,
            setting.title,
            index + 1,
            settings.len()
        ));
        match measure(places, how, setting, interrupt)? {
            Outcome::Clean => {}
            Outcome::Troubled(_) => made = Made::Troubled,
        }
    }
    let read = |setting| Measured::read(&places.folder(setting), setting);
    let measured: Vec<Measured> = settings.iter().map(read).collect::<Result<_>>()?;
    let drawn = (figure.draw)(&measured, &places.traces)?;
    let folder = places.out.join("figures").join(figure.id);
    write::figure(&folder, figure, &drawn, &measured)?;
    say(&format!("figure {} is in {}", figure.id, folder.display()));
    Ok(made)
}

fn markdown(args: &MarkdownArgs) -> Result<ExitCode> {
    let path = &args.into;
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let figures = args.common.folder().join("figures");
    let (filled, count) = write::fill(&text, &figures, &path.with_extension(""))
        .with_context(|| path.display().to_string())?;
    if count == 0 {
        bail!(
            "{} has no figures yet; make paper draws them",
            figures.display()
        );
    }
    Output::create(path)?.commit(filled.as_bytes())?;
    say(&format!("{count} figures filled into {}", path.display()));
    Ok(ExitCode::SUCCESS)
}

/// Says it on standard error; that nobody can read it is no reason to stop.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "paper: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn figures_are_found_by_their_ids() {
        assert_eq!(chosen(&[]).unwrap().len(), figures::all().len());
        assert_eq!(chosen(&["".into()]).unwrap().len(), figures::all().len());
        assert_eq!(chosen(&["6".into()]).unwrap()[0].id, "6");
        let said = chosen(&["5".into()]).err().unwrap().to_string();
        assert!(
            said.contains("no figure `5`; known are headline, 2, 6"),
            "{said}"
        );
    }
}
