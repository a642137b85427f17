//! The command line.

use crate::compare::{compare, Comparison};
use crate::{page, workload};
use anyhow::Result;
use clap::Parser;
use sfs_jobs::failure::{conclude, refuse};
use sfs_jobs::options::parse;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_lab::bench::args::VmArgs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compare scx_sfs with EEVDF on workloads that nobody has chosen: make wild
#[derive(Debug, Parser)]
#[command(version)]
#[command(
    after_help = "Each seed draws functions, their times, arrivals, a load, sleeps, a sandbox and a number of \
        CPUs, and another machine. EEVDF and scx_sfs without an option replay it in VMs, in virtual time; \
        beside them stands what the policy has in simulation, over processor sharing. What is measured is \
        kept in OUT, and the same command goes on.\n\n\
        Exit status: 0; 1 an error of the system; 2 bad usage; 130 interrupted."
)]
pub struct Cli {
    /// The first seed
    #[arg(long, env = "SEED", value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// How many: a minute or two each on two cores
    #[arg(long, env = "SEEDS", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// Print the workloads only
    #[arg(long)]
    list: bool,
    /// The folder for the runs, from the top of the repository
    #[arg(long, env = "OUT", value_name = "DIR", default_value = "out/wild")]
    out: PathBuf,
    #[command(flatten)]
    vms: VmArgs,
}

/// The program: parses the command line, does what it says, and says what went wrong.
pub fn main() -> ExitCode {
    let cli: Cli = parse();
    conclude("wild", cli.execute())
}

impl Cli {
    fn execute(self) -> Result<u8> {
        let Some(end) = self.seed.checked_add(self.seeds) else {
            refuse!("SEED={} is too large", self.seed);
        };
        let workloads = (self.seed..end).map(|seed| (seed, workload::draw(seed)));
        if self.list {
            let line = |(seed, one): (u64, workload::Workload)| format!("{seed} {}\n", one.about);
            print(&workloads.map(line).collect::<String>());
            return Ok(0);
        }
        let (interrupt, tree, progress) =
            (Interrupt::catch()?, Tree::find()?, Progress::new("wild"));
        let mut all: Vec<Comparison> = Vec::new();
        for (seed, one) in workloads {
            progress.say(&format!("seed {seed}: {}", one.about));
            let told = (&progress, &interrupt);
            match compare(&tree, (seed, &one), &self.out, &self.vms, told) {
                Ok(one) => all.push(one),
                Err(error) => {
                    print(&page::text(all));
                    return Err(error);
                }
            }
        }
        print(&page::text(all));
        Ok(0)
    }
}

/// That nobody reads it is no error.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
