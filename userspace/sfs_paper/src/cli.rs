//! The command line.

use crate::data::Measured;
use crate::figures::{self, Figure};
use crate::measure::{measure, How, Places};
use crate::plan::{Setting, Size, Source};
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

/// Table I of the SFS paper as its text has it, as `faasbench gen` calls it.
const TEXT: &str = "table1";

/// Table I by the frequencies of the SFS artefact's list.
const ARTEFACT: &str = "table1-artefact";

/// Reproduce the figures of the papers: measure like make bench, and draw
/// charts and tables
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure and draw figures; finished measurements are reused
    ///
    /// Writes OUT/nN/figures/ID/: figure.md, and the data of each table and
    /// picture as CSV. If a figure fails, the others are still made. Exit
    /// status: 1 if a figure could not be made, 3 if a scheduler did not load
    /// or did not stay loaded.
    Run(RunArgs),
    /// List the figures
    List,
    /// Insert the drawn figures into a document
    ///
    /// Each goes between the lines `<!-- figure ID -->` and `<!-- end of figure
    /// ID -->`. Where nothing was measured, what the papers publish stands
    /// alone.
    Markdown(MarkdownArgs),
}

#[derive(Debug, Args)]
struct Common {
    /// Invocations per setting; default: 10000 for the headline, all of SFS's
    /// own list, otherwise 2000, a fifth of the papers' number. Simulations of
    /// Hermes's and FaaSched's workloads always have 50000 and 100000
    #[arg(short = 'n', long, env = "N", value_name = "N", value_parser = clap::value_parser!(u32).range(20..=1_000_000))]
    invocations: Option<u32>,
    /// Folder for the measurements
    #[arg(long, env = "OUT", default_value = "out/paper", value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    common: Common,
    /// IDs of the figures, see `list`; default: all
    #[arg(long, env = "FIG", value_delimiter = ' ', value_name = "ID")]
    figure: Vec<String>,
    /// CPUs of the virtual machine
    #[arg(long, env = "CPUS", default_value = "12", value_name = "C", value_parser = clap::value_parser!(u32).range(1..=255))]
    cpus: u32,
    /// Seed of the workloads
    #[arg(long, env = "SEED", default_value = "1", value_name = "X")]
    seed: u64,
    /// Which Table I of the SFS paper: table1, as its text has it, or
    /// table1-artefact, with which earlier figures were measured. The latter's
    /// figures have IDs that end in -artefact in documents
    #[arg(long, env = "WORKLOAD", default_value = TEXT, value_parser = [TEXT, ARTEFACT], value_name = "NAME")]
    workload: String,
    /// Folder of the published traces; without it, figures that need them are
    /// skipped
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
    /// The document; its pictures go to the folder of the same name beside it
    #[arg(long, default_value = "docs/results.md", value_name = "FILE")]
    into: PathBuf,
}

impl RunArgs {
    /// Which Table I.
    fn table1(&self) -> &'static str {
        match self.workload.as_str() {
            ARTEFACT => ARTEFACT,
            _ => TEXT,
        }
    }
}

impl Common {
    /// The folder of measurements of this size.
    fn folder(&self) -> PathBuf {
        self.out.join(match self.invocations {
            Some(count) => format!("n{count}"),
            None => "full".to_string(),
        })
    }
}

impl Cli {
    /// Executes the command.
    ///
    /// # Errors
    /// One sentence on what is wrong, for the user.
    pub fn execute(self) -> Result<ExitCode> {
        match self.command {
            Command::Run(args) => run(&args),
            Command::List => {
                let mut out = std::io::stdout().lock();
                for figure in figures::all() {
                    writeln!(out, "{:18} {}", figure.id, figure.title)
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
            format!(
                "unknown figure `{id}`; known figures are {}",
                known.join(", ")
            )
        })
    };
    ids.iter().map(find).collect()
}

/// The outcome of a figure.
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
        list: args.common.invocations,
        table1: args.table1(),
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
            say("interrupted; run the same command again to resume");
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
                "{troubled} of {} figures have rows that are not clean measurements",
                chosen.len()
            ));
            ExitCode::from(TROUBLED)
        }
    })
}

fn make(places: &Places, how: &How, figure: &Figure, interrupt: &Interrupt) -> Result<Made> {
    if figure.needs_traces && !places.traces.is_dir() {
        say(&format!(
            "figure {} skipped: it needs the published traces, and {} does not exist; set TRACES",
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
    let folder = places.out.join("figures").join(drawn_id(figure, how.size));
    write::figure(&folder, figure, &drawn, &measured)?;
    say(&format!("figure {} is in {}", figure.id, folder.display()));
    Ok(made)
}

/// The ID of a figure in documents: with `-artefact` if it was drawn from that
/// Table I.
fn drawn_id(figure: &Figure, size: Size) -> String {
    let from_artefact = |setting: &Setting| match &setting.source {
        Source::Generated { workload, .. } => *workload == ARTEFACT,
        Source::Fc { .. } | Source::List { .. } => false,
    };
    match (figure.settings)(size).iter().any(from_artefact) {
        true => format!("{}-artefact", figure.id),
        false => figure.id.to_string(),
    }
}

fn markdown(args: &MarkdownArgs) -> Result<ExitCode> {
    let path = &args.into;
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let figures = args.common.folder().join("figures");
    let (filled, count) = write::fill(&text, &figures, &path.with_extension(""))
        .with_context(|| path.display().to_string())?;
    Output::create(path)?.commit(filled.as_bytes())?;
    say(&format!(
        "{count} measured figures of {} inserted into {}",
        figures.display(),
        path.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Prints `text` on standard error. Errors are ignored.
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
    fn figures_of_the_other_table_have_ids_of_their_own() {
        let size = |table1| Size {
            invocations: 20,
            headline: 20,
            cpus: 4,
            seed: 1,
            list: None,
            table1,
        };
        let ids = |table1| {
            let of = |id: &str| drawn_id(&chosen(&[id.into()]).unwrap()[0], size(table1));
            ["headline", "8", "13", "list-7"].map(of)
        };
        assert_eq!(ids(TEXT), ["headline", "8", "13", "list-7"]);
        let want = ["headline-artefact", "8-artefact", "13", "list-7"];
        assert_eq!(ids(ARTEFACT), want);
    }

    #[test]
    fn figures_are_found_by_their_ids() {
        assert_eq!(chosen(&[]).unwrap().len(), figures::all().len());
        assert_eq!(chosen(&["".into()]).unwrap().len(), figures::all().len());
        assert_eq!(chosen(&["6".into()]).unwrap()[0].id, "6");
        let said = chosen(&["5".into()]).err().unwrap().to_string();
        assert!(
            said.contains(
                "unknown figure `5`; known figures are headline, list-simulated, list-7, list-8"
            ),
            "{said}"
        );
    }
}
