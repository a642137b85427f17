//! `sfs_suite search`: a tenant that cheats searches for better plans, in a guest. See
//! tests/README.md.

use crate::vm;
use anyhow::Result;
use clap::Args;
use sfs_jobs::tree::Tree;
use std::ffi::OsString;
use std::process::Command;

/// The program that searches, and plays the matches.
const PROGRAM: &str = "sfs_behaviour";

/// The command line of `sfs_suite search`.
#[derive(Args, Debug)]
#[command(
    args_override_self = true,
    override_usage = "sfs_suite search [OPTIONS] GENERATIONS\n       sfs_suite search [OPTIONS] --replay PLAN",
    after_help = "Exit status: 0; 1 a plan gains more than 5 % over its due; 2 bad usage; another one of vm/run."
)]
pub struct SearchArgs {
    /// How often two new plans are bred and played, 0 to 99999; a match takes some 4 s of a
    /// core; 0: the first plans alone
    #[arg(value_name = "GENERATIONS", value_parser = generations, required_unless_present = "replay", conflicts_with = "replay")]
    generations: Option<u32>,
    /// Plays this plan alone, at length
    #[arg(long, value_name = "PLAN")]
    replay: Option<String>,
    /// Options of scx_sfs, or eevdf (default: --policy sfs --cgroup fn/*)
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    options: Option<String>,
    /// For other plans (default: 1); the same seed gives the same plans
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// Judges plans by the neighbour's loss
    #[arg(long)]
    harm: bool,
    /// Real seconds until the guest is given up
    #[arg(long, value_name = "S", default_value = "14400")]
    timeout: String,
    /// CPUs, as for vm/run (default: 4)
    #[arg(long, value_name = "N")]
    cpus: Option<OsString>,
    /// The kernel, as for vm/run (default: its own)
    #[arg(long, value_name = "K")]
    kernel: Option<OsString>,
}

fn generations(text: &str) -> Result<u32, String> {
    let is_number = text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number);
    number.ok_or_else(|| format!("want a number of generations, not '{text}'"))
}

impl SearchArgs {
    /// The words for [`PROGRAM`].
    fn words(&self) -> Vec<String> {
        let generations = self.generations.map(|number| number.to_string());
        let valued = [
            ("--search", &generations),
            ("--replay", &self.replay),
            ("--options", &self.options),
            ("--seed", &self.seed),
        ];
        let mut words = Vec::new();
        for (name, value) in valued {
            words.extend(value.iter().flat_map(|value| [name.into(), value.clone()]));
        }
        words.extend(self.harm.then(|| "--harm".into()));
        words
    }

    /// The call of vm/run.
    fn command(&self, tree: &Tree) -> Result<Command> {
        let options = [
            ("--cpus", self.cpus.as_deref()),
            ("--kernel", self.kernel.as_deref()),
        ];
        let mut command = vm::call(tree, &self.timeout, &options);
        vm::bring_in(tree, &mut command, &["scx_sfs", PROGRAM])?;
        command.args(["--", PROGRAM]).args(self.words());
        Ok(command)
    }
}

/// Becomes `vm/run` with the search.
///
/// # Errors
///
/// A program is not built ([`sfs_jobs::failure::Failure::Usage`]), or `vm/run` does not start.
pub fn run(tree: &Tree, args: &SearchArgs) -> Result<u8> {
    Err(vm::become_it(&mut args.command(tree)?))
}
