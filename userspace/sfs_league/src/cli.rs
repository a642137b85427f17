//! The command line.

use crate::columns::{self, Column, Kind, BASE, OURS};
use crate::measure::Plan;
use crate::page;
use crate::results::Results;
use crate::workloads::{self, Workload};
use anyhow::Result;
use clap::builder::FalseyValueParser;
use clap::{ArgGroup, Parser};
use sfs_jobs::commit;
use sfs_jobs::failure::{conclude, refuse};
use sfs_jobs::options::parse;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_lab::bench::args::VmArgs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The file of the results, from the top of the repository.
const RESULTS: &str = "docs/results/league.csv";
/// Seeds by default: of the dozen, and of all.
const QUICK_SEEDS: u64 = 2;
const SEEDS: u64 = 5;
/// Paths, for git, that the results depend on, apart from the peers.
const SOURCES: [&str; 2] = ["scheds", "userspace"];

/// Compare schedulers on many workloads, and say where scx_sfs is not the best: make league
#[derive(Debug, Parser)]
#[command(version, group(ArgGroup::new("mode").args(["list", "table", "publish"])))]
#[command(
    after_help = "Each scheduler replays each trace in a VM, in virtual time, as with make bench. What is \
        measured is kept in docs/results/league.csv with the commit; the same command goes on with what \
        has no result of the present programs. Peers come from make peers.\n\n\
        Exit status: 0; 1 an error of the system; 2 bad usage; 130 interrupted."
)]
pub struct Cli {
    /// Workloads; a * at the end stands for anything (default: all)
    #[arg(value_name = "WORKLOAD")]
    workloads: Vec<String>,
    /// A dozen of the workloads, with two seeds, under EEVDF, scx_sfs, scx_bpfland and scx_cosmos: half
    /// an hour to an hour on two cores; all of them take a night
    #[arg(long, env = "QUICK", value_parser = FalseyValueParser::new())]
    quick: bool,
    /// Print the workloads
    #[arg(long)]
    list: bool,
    /// Print the tables of what has been measured already
    #[arg(long)]
    table: bool,
    /// Put them into docs/league.md
    #[arg(long)]
    publish: bool,
    /// Number of seeds [default: 5; 2 with --quick]
    #[arg(long, env = "SEEDS", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: Option<u64>,
    /// Schedulers, separated by spaces; scx_sfs+sfs is scx_sfs with --policy sfs, srtf is simulated
    ///
    /// By default all, of the peers those that make peers has built.
    #[arg(
        long,
        env = "SCHEDULERS",
        value_name = "SCHEDULERS",
        value_delimiter = ' '
    )]
    schedulers: Vec<String>,
    /// Measure only what has no result, of whatever programs
    ///
    /// Otherwise what other programs were measured with is measured again.
    #[arg(long, env = "MISSING", value_parser = FalseyValueParser::new())]
    missing: bool,
    /// The folder for the runs, from the top of the repository
    #[arg(long, env = "OUT", value_name = "DIR", default_value = "out/league")]
    out: PathBuf,
    /// The folder of the published traces, from the top of the repository; without it, workloads that
    /// need them are skipped
    #[arg(
        long,
        env = "TRACES",
        value_name = "DIR",
        default_value = "../shared/traces"
    )]
    traces: PathBuf,
    #[command(flatten)]
    vms: VmArgs,
}

/// The program: parses the command line, does what it says, and says what went wrong.
pub fn main() -> ExitCode {
    let cli: Cli = parse();
    conclude("league", cli.execute())
}

impl Cli {
    fn execute(self) -> Result<u8> {
        if self.list {
            print(&list());
            return Ok(0);
        }
        let interrupt = Interrupt::catch()?;
        let tree = Tree::find()?;
        let mut results = Results::read(&tree.at(RESULTS))?;
        if self.publish {
            page::publish(&tree, &page::text(&results))?;
            return Ok(0);
        }
        if !self.table {
            let progress = Progress::new("league");
            self.plan(&tree)?
                .carry_out(&mut results, &progress, &interrupt)?;
        }
        print(&page::text(&results));
        Ok(0)
    }

    fn plan<'a>(&'a self, tree: &'a Tree) -> Result<Plan<'a>> {
        let seeds = match (self.seeds, self.quick) {
            (Some(seeds), _) => seeds,
            (None, true) => QUICK_SEEDS,
            (None, false) => SEEDS,
        };
        let traces = std::path::absolute(tree.at(&self.traces))?;
        Ok(Plan {
            tree,
            workloads: self.workloads()?,
            columns: self.columns(tree)?,
            seeds: (1..=seeds).collect(),
            only_missing: self.missing,
            out: self.out.clone(),
            traces,
            vms: &self.vms,
            commit: commit::of(tree, &SOURCES),
        })
    }

    fn workloads(&self) -> Result<Vec<&'static Workload>> {
        let matches = |workload: &Workload, pattern: &str| match pattern.strip_suffix('*') {
            Some(beginning) => workload.name.starts_with(beginning),
            None => workload.name == pattern,
        };
        for pattern in &self.workloads {
            if !workloads::ALL.iter().any(|one| matches(one, pattern)) {
                refuse!("there is no workload {pattern}; --list prints all");
            }
        }
        let is_wanted = |workload: &&'static Workload| match &self.workloads[..] {
            [] => !self.quick || workload.is_quick,
            given => given.iter().any(|pattern| matches(workload, pattern)),
        };
        Ok(workloads::ALL.iter().filter(is_wanted).collect())
    }

    fn columns(&self, tree: &Tree) -> Result<Vec<&'static Column>> {
        let is_built = |column: &&'static Column| {
            column.kind != Kind::Peer || tree.is_program(tree.peers().join(column.name))
        };
        let given = self.schedulers.iter().filter(|name| !name.is_empty());
        let given: Vec<&String> = given.collect();
        if given.is_empty() {
            let quick = [BASE, OURS, "scx_bpfland", "scx_cosmos"];
            let is_wanted = |column: &&'static Column| !self.quick || quick.contains(&column.name);
            let columns = columns::ALL.iter().filter(is_built);
            return Ok(columns.filter(is_wanted).collect());
        }
        let mut columns = Vec::new();
        for name in given {
            match columns::find(name) {
                None => refuse!("there is no scheduler {name} in the league"),
                Some(column) if !is_built(&column) => {
                    refuse!("{name} is not built; run make peers NAME={name}")
                }
                Some(column) => columns.push(column),
            }
        }
        Ok(columns)
    }
}

/// That nobody reads it is no error.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn list() -> String {
    let line = |workload: &Workload| {
        let quick = if workload.is_quick { "quick" } else { "" };
        format!("{:22} {quick:6} {}\n", workload.name, workload.about)
    };
    workloads::ALL.iter().map(line).collect()
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
    fn workloads_are_chosen_by_name_or_by_the_dozen() {
        let chosen = |line: &[&str]| {
            let cli = Cli::parse_from([&["league"], line].concat());
            cli.workloads().map(|all| all.len())
        };
        assert_eq!(chosen(&[]).unwrap(), workloads::ALL.len());
        assert_eq!(chosen(&["--quick"]).unwrap(), 12);
        assert_eq!(chosen(&["azure*", "w1"]).unwrap(), 6);
        let error = chosen(&["nothing"]).unwrap_err().to_string();
        assert_eq!(error, "there is no workload nothing; --list prints all");
    }
}
