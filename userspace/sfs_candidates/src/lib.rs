//! Simulates the candidates for `--policy` on many workloads: the tables of
//! `docs/policy.md`, in Markdown on standard output.

mod parts;
mod traces;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use sfs_jobs::failure::{refuse, Failure};
use sfs_jobs::job;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_sim::policy::Kind;
use std::io::Write;
use std::path::PathBuf;
use traces::Traces;

/// The options.
#[derive(Debug, Args)]
pub struct PoliciesArgs {
    /// The tables; by default all
    parts: Vec<Part>,
    /// Seeds of the workloads, separated by spaces
    #[arg(
        long,
        env = "SEEDS",
        value_name = "SEEDS",
        default_value = "1 2 3 4 5",
        value_delimiter = ' '
    )]
    seeds: Vec<u32>,
    /// The folder with azure2019/500 and sfs/test1.txt; what is not there is skipped
    #[arg(
        long,
        env = "TRACES",
        value_name = "DIR",
        default_value = "../shared/traces"
    )]
    traces: PathBuf,
    /// Where traces go, from the top of the repository; those that are there are kept
    #[arg(long, env = "OUT", value_name = "DIR", default_value = "out/policies")]
    out: PathBuf,
}

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Every workload at load 1.0
    Workloads,
    /// Two workloads at other loads
    Loads,
    /// Small traces, seed by seed
    Goals,
    /// What each rule is worth, over all workloads on 4 CPUs
    Rules,
}

/// Prints the tables; returns the exit status.
///
/// # Errors
/// If a trace cannot be made or simulated, which the program that does it has said then;
/// and [`Failure::Interrupted`].
pub fn run(tree: &Tree, args: PoliciesArgs, interrupt: &Interrupt) -> Result<u8> {
    for name in ["faasbench", "sfs_sim"] {
        let path = tree.program(name);
        if !tree.is_program(&path) {
            refuse!("{} is not built; run make first", path.display());
        }
    }
    if let Err(error) = std::fs::create_dir_all(tree.at(&args.out)) {
        refuse!("cannot make the folder OUT={}: {error}", args.out.display());
    }
    let progress = Progress::new("policies");
    let traces = Traces::new(
        tree,
        args.out,
        args.traces,
        args.seeds,
        interrupt,
        &progress,
    );
    traces.make_all()?;
    let tables = Tables { traces: &traces };
    let parts = match &args.parts[..] {
        [] => Part::value_variants(),
        given => given,
    };
    for part in parts {
        match part {
            Part::Workloads => parts::workloads(&tables)?,
            Part::Loads => parts::loads(&tables)?,
            Part::Goals => parts::goals(&tables)?,
            Part::Rules => parts::rules(&tables)?,
        }
        tables.print("\n");
    }
    Ok(0)
}

/// Prints tables about traces.
struct Tables<'a> {
    traces: &'a Traces<'a>,
}

impl Tables<'_> {
    /// That nobody reads it is no reason to stop.
    fn print(&self, text: &str) {
        self.traces.progress.aside(|| {
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        });
    }

    /// Prints the head of a table.
    fn head(&self, title: &str) {
        let head = sfs_sim::compare::header();
        self.print(&format!("## {title}\n{head}"));
    }

    /// Prints the rows of `policies`, over all of `traces` on so many CPUs.
    fn compare(
        &self,
        label: &str,
        cpus: u32,
        policies: &[Kind],
        traces: &[PathBuf],
        options: &[&str],
    ) -> Result<()> {
        let Traces {
            tree,
            interrupt,
            progress,
            ..
        } = self.traces;
        let names: Vec<&str> = policies.iter().map(|kind| kind.name()).collect();
        let mut command = job::call(tree, tree.program("sfs_sim"));
        command
            .args(["compare", "--no-header", "--label", label])
            .args(["--cpus", &cpus.to_string(), "--policy", &names.join(",")])
            .args(options)
            .args(traces)
            .stderr(std::process::Stdio::inherit());
        progress.show(label);
        let output = command.output().context("cannot run sfs_sim");
        progress.clear();
        interrupt.check()?;
        let output = output?;
        self.print(&String::from_utf8_lossy(&output.stdout));
        match output.status.success() {
            true => Ok(()),
            false => Err(Failure::Program(
                format!("the simulation of {label}"),
                output
                    .status
                    .code()
                    .and_then(|code| u8::try_from(code).ok())
                    .unwrap_or(1),
            )
            .into()),
        }
    }
}
