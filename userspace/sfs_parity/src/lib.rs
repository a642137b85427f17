//! Measures what else runs on a worker, under EEVDF and under scx_sfs, in virtual time:
//! stress-ng's stressors, messages and wake-ups, servers, a compiler, a person who types.
//!
//! `sfs_guest parity` runs in the guest. Each row's result is kept with the digest of
//! the programs that it was measured with, so interrupted runs resume.

mod archives;
mod column;
mod machines;
mod measure;
mod page;
pub mod results;
pub mod rows;
pub mod table;

use anyhow::Result;
use archives::Archives;
use clap::builder::FalseyValueParser;
use clap::{value_parser, ArgGroup, Args};
use column::Column;
use measure::Plan;
use sfs_jobs::commit;
use sfs_jobs::failure::refuse;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::io::Write;
use std::path::PathBuf;

/// The columns of a table.
const COLUMNS: [&str; 6] = [
    "eevdf",
    "sfs",
    "learned",
    "fair",
    "scx_bpfland",
    "scx_cosmos",
];

/// Paths, for git, that the results depend on, apart from the peers.
const SOURCES: [&str; 2] = ["scheds", "userspace"];

/// The options, most of which may also be given as environment variables.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("mode").args(["rows", "all", "list", "table", "publish"])))]
#[command(
    after_help = "A row that ends in +load runs beside functions that want twice the machine, from a cgroup\n\
                  of which the scheduler knows (--cgroup functions/*).\n\n\
                  Exit status: 0; 1 an error of the system; 2 bad usage; 130 interrupted."
)]
pub struct ParityArgs {
    /// These rows only; a * stands for anything
    ///
    /// By default those that matter most, on 4 CPUs: half an hour on two cores.
    #[arg(value_name = "ROW")]
    rows: Vec<String>,
    /// Every row, on 1, 4 and 8 CPUs unless CPUS says otherwise: a night
    #[arg(long)]
    all: bool,
    /// Print the names of all rows
    #[arg(long)]
    list: bool,
    /// Print the table of what has been measured already
    #[arg(long)]
    table: bool,
    /// Put that table into docs/parity.md
    #[arg(long)]
    publish: bool,
    /// Numbers of CPUs, 1 to 999, separated by spaces; of a table all that there are
    #[arg(long, env = "CPUS", value_name = "CPUS", value_delimiter = ' ', value_parser = value_parser!(u32).range(1..=999))]
    cpus: Vec<u32>,
    /// Machines that measure each row, each a little different (vm/run --perturb); the tables have how
    /// far it varies
    #[arg(long, env = "MACHINES", value_name = "N", default_value = "1", value_parser = value_parser!(u32).range(1..=99))]
    machines: u32,
    /// Columns, separated by spaces; sfs, learned and fair are policies of scx_sfs
    ///
    /// By default eevdf, sfs, learned and fair, and scx_bpfland and scx_cosmos if `make
    /// peers` has built them.
    #[arg(
        long,
        env = "SCHEDULERS",
        value_name = "SCHEDULERS",
        value_delimiter = ' '
    )]
    schedulers: Vec<String>,
    /// Measure only rows without a result, of whatever programs
    ///
    /// Otherwise those that other programs were measured with are measured again.
    #[arg(long, env = "MISSING", value_parser = FalseyValueParser::new())]
    missing: bool,
    /// Guests at the same time; one for each core by default
    #[arg(long, env = "JOBS", value_name = "JOBS", value_parser = value_parser!(u32).range(1..=999))]
    jobs: Option<u32>,
    /// The folder of the results, SCHEDULER-CPUS.tsv, from the top of the repository
    #[arg(
        long,
        env = "OUT",
        value_name = "DIR",
        default_value = "docs/results/parity"
    )]
    out: PathBuf,
    /// The folder of the programs, from the top of the repository
    #[arg(
        long,
        env = "RELEASE",
        value_name = "DIR",
        default_value = "userspace/target/release"
    )]
    release: PathBuf,
    /// The commit that the programs were built from; by default this tree's
    #[arg(long, env = "COMMIT", value_name = "COMMIT")]
    commit: Option<String>,
}

/// Does what the options say, and prints the table; returns the exit status.
///
/// # Errors
/// If a row, a scheduler or a program is unknown or missing, if an archive cannot be made,
/// which vm/debian-root has said then, or if results cannot be read or kept; and
/// [`sfs_jobs::failure::Failure::Interrupted`].
pub fn run(tree: &Tree, args: ParityArgs, interrupt: &Interrupt) -> Result<u8> {
    if args.publish {
        page::publish(tree, &args.text(tree)?)?;
    } else if args.list {
        let names = rows::all(&archives::stressors(tree, interrupt)?);
        print(&(names.join("\n") + "\n"));
    } else {
        if !args.table {
            args.measure(tree, interrupt)?;
        }
        print(&args.text(tree)?);
    }
    Ok(0)
}

/// That nobody reads it is no error.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

impl ParityArgs {
    /// The table of the results that there are.
    fn text(&self, tree: &Tree) -> Result<String> {
        let columns = match self.schedulers() {
            given if given.is_empty() => COLUMNS.to_vec(),
            given => given,
        };
        let files = results::files(&tree.at(&self.out), &columns, &self.cpus)?;
        if files.is_empty() {
            refuse!("there are no results in {}", self.out.display());
        }
        let first: Vec<_> = files.iter().filter(|of| of.machine == 0).cloned().collect();
        Ok(table::text(&first) + &machines::text(&files))
    }

    fn measure(&self, tree: &Tree, interrupt: &Interrupt) -> Result<()> {
        for name in ["scx_sfs", "sfs_crowd", "sfs_guest"] {
            let path = self.release.join(name);
            if !tree.is_program(&path) {
                refuse!("{} is not built; run make first", path.display());
            }
        }
        let columns = self.columns(tree)?;
        let rows = self.rows(tree, interrupt)?;
        let out = tree.at(&self.out);
        if let Err(error) = std::fs::create_dir_all(&out) {
            refuse!("cannot make the folder OUT={}: {error}", self.out.display());
        }
        let cpus = match (&self.cpus[..], self.all) {
            ([], true) => vec![1, 4, 8],
            ([], false) => vec![4],
            (given, _) => given.to_vec(),
        };
        let plan = Plan {
            tree,
            interrupt,
            archives: Archives::make(tree, interrupt)?,
            columns,
            rows,
            cpus,
            machines: self.machines,
            only_missing: self.missing,
            jobs: self.jobs(),
            out: &self.out,
            release: &self.release,
            commit: self.commit(tree),
        };
        plan.carry_out()
    }

    /// The schedulers that are asked for, if any; two spaces in a row count as one.
    fn schedulers(&self) -> Vec<&str> {
        let given = self.schedulers.iter().map(String::as_str);
        given.filter(|name| !name.is_empty()).collect()
    }

    fn columns(&self, tree: &Tree) -> Result<Vec<Column>> {
        let is_there =
            |name: &&str| !column::is_peer(name) || tree.is_program(tree.peers().join(name));
        let names = match self.schedulers() {
            given if given.is_empty() => COLUMNS.into_iter().filter(is_there).collect(),
            given => given,
        };
        let found = names
            .iter()
            .map(|name| Column::find(tree, &self.release, name));
        found.collect()
    }

    fn rows(&self, tree: &Tree, interrupt: &Interrupt) -> Result<Vec<String>> {
        if self.rows.is_empty() && !self.all {
            return Ok(rows::first());
        }
        let all = rows::all(&archives::stressors(tree, interrupt)?);
        match self.all {
            true => Ok(all),
            false => rows::chosen(&all, &self.rows),
        }
    }

    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        self.jobs.map_or_else(cores, |jobs| jobs as usize)
    }

    /// The commit that the programs are of; with a + if something has been changed since.
    fn commit(&self, tree: &Tree) -> String {
        if let Some(commit) = &self.commit {
            return commit.clone();
        }
        commit::of(tree, &SOURCES)
    }
}
