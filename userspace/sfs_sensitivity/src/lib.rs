//! What of the figures would survive on hardware, and the page that has the tables.
//!
//! An emulated CPU has no caches, and its kernel costs what its instructions cost. So the same
//! trace is replayed with a refill after each switch ([`points`]), and with a kernel that costs
//! two and four times as much; [`curve`] finds where rankings change, and what the figures
//! would be without costs. [`calibrate`] puts what small things cost in the guest beside what
//! they cost on the host.

#![forbid(unsafe_code)]

pub mod calibrate;
pub mod curve;
pub mod measure;
pub mod page;
pub mod points;
pub mod results;

use anyhow::Result;
use clap::builder::FalseyValueParser;
use clap::{ArgGroup, Parser};
use measure::Plan;
use points::MACHINES;
use results::Results;
use sfs_jobs::failure::conclude;
use sfs_jobs::options::parse;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_jobs::{commit, page as pages};
use sfs_lab::bench::rows::servers;
use sfs_lab::bench::{Row, TROUBLED};
use std::path::PathBuf;
use std::process::ExitCode;

/// The files of the results, from the root.
const RESULTS: &str = "docs/results/sensitivity.csv";
const COSTS: &str = "docs/results/calibration.csv";

/// The page, and the line that the tables follow.
const PAGE: &str = "docs/sensitivity.md";
const MARK: &str = "<!-- What follows is written by sfs_sensitivity --publish. -->";

/// The sources of what is measured.
const SOURCES: [&str; 3] = ["userspace", "scheds", "vm"];

/// The rows by default, of the peers those that are built.
const ROWS: [&str; 5] = [
    "eevdf",
    "scx_sfs",
    "scx_sfs+sfs",
    "scx_bpfland",
    "scx_cosmos",
];

/// Replays the demo's workload with refills after switches and with a kernel that costs more,
/// and says where rankings change: `make sensitivity`
#[derive(Debug, Parser)]
#[command(version, group(ArgGroup::new("mode").args(["publish", "calibrate"])))]
#[command(
    after_help = "Each run is a VM in virtual time. What is measured is kept in docs/results/sensitivity.csv; the \
        same command goes on with what has no result of the present programs. All runs of three rows take \
        about an hour on one core.\n\
        Exit status: 0; 1 an error of the system; 2 bad usage; 3 a scheduler did not load or stay; 130 interrupted."
)]
pub struct Cli {
    /// The rows, separated by spaces; scx_sfs+sfs is scx_sfs with --policy sfs [default: eevdf,
    /// scx_sfs, scx_sfs+sfs, and scx_bpfland and scx_cosmos if they are built]
    #[arg(
        long,
        env = "SCHEDULERS",
        value_name = "SCHEDULERS",
        value_delimiter = ' '
    )]
    schedulers: Vec<String>,
    /// Number of invocations
    #[arg(short = 'n', long, env = "N", value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    invocations: u32,
    /// Measures what small things cost in guests and on this host, and nothing else
    #[arg(long, env = "CALIBRATE", value_parser = FalseyValueParser::new())]
    calibrate: bool,
    /// Measures nothing, and writes the tables of what there is into docs/sensitivity.md
    #[arg(long)]
    publish: bool,
    /// The kernel: a version that vm/fetch-kernel knows, or an image; by default that of vm/run
    #[arg(long, env = "KERNEL", value_name = "KERNEL")]
    kernel: Option<String>,
    /// Seconds of real time after which a VM is given up
    #[arg(long, env = "TIMEOUT", value_name = "TIMEOUT", default_value_t = 3600, value_parser = clap::value_parser!(u32).range(1..=9_999_999))]
    timeout: u32,
    /// The folder for the runs, from the top of the repository
    #[arg(
        long,
        env = "OUT",
        value_name = "DIR",
        default_value = "out/sensitivity"
    )]
    out: PathBuf,
}

/// The program: parses the command line, does what it says, and says what went wrong.
pub fn main() -> ExitCode {
    let cli: Cli = parse();
    conclude("sensitivity", cli.execute())
}

impl Cli {
    fn execute(self) -> Result<u8> {
        let interrupt = Interrupt::catch()?;
        let tree = Tree::find()?;
        let mut results = Results::read(&tree.at(RESULTS))?;
        let progress = Progress::new("sensitivity");
        let mut troubles = 0;
        if !self.publish {
            let plan = self.plan(&tree, &progress)?;
            if self.calibrate {
                let path = tree.at(COSTS);
                calibrate::carry_out(&plan, &MACHINES[0], &path, &progress, &interrupt)?;
            } else {
                troubles = plan.carry_out(&mut results, &progress, &interrupt)?;
            }
        }
        let commit = commit::of(&tree, &SOURCES);
        let costs = calibrate::read(&tree.at(COSTS))?;
        pages::publish(&tree, PAGE, MARK, &page::text(&results, &costs, &commit))?;
        progress.say(&format!("the tables are in {PAGE}"));
        Ok(if troubles > 0 { TROUBLED } else { 0 })
    }

    fn plan<'a>(&self, tree: &'a Tree, progress: &Progress) -> Result<Plan<'a>> {
        let given = self.schedulers.iter().filter(|name| !name.is_empty());
        let mut rows: Vec<Row> = given.map(|name| row(name)).collect();
        if rows.is_empty() {
            rows = ROWS.into_iter().map(row).collect();
            rows.retain(|row| match servers(tree, std::slice::from_ref(row)) {
                Ok(_) => true,
                Err(error) => {
                    progress.say(&format!("{} is left out: {error}", row.name));
                    false
                }
            });
        }
        // Before anything is measured.
        servers(tree, &rows)?;
        Ok(Plan {
            tree,
            rows,
            points: points::all(),
            invocations: self.invocations,
            kernel: self.kernel.clone(),
            timeout_s: self.timeout,
            out: self.out.clone(),
            commit: commit::of(tree, &SOURCES),
        })
    }
}

fn row(name: &str) -> Row {
    Row {
        name: name.to_string(),
        args: (name == "scx_sfs+sfs").then(|| "--policy sfs".to_string()),
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn only_the_labelled_row_has_options() {
        assert_eq!(row("scx_sfs+sfs").args(), "--policy sfs");
        assert_eq!((row("scx_sfs").args(), row("eevdf").args()), ("", ""));
    }
}
