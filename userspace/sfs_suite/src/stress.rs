//! `sfs_suite stress`: scx_sfs in a guest, under mixes of load by stress-ng.

use crate::vm;
use anyhow::Result;
use clap::Args;
use sfs_jobs::failure::refuse;
use sfs_jobs::tree::{in_path, Tree};
use std::ffi::OsString;

/// Real seconds until the guest is given up.
const TIMEOUT: &str = "7200";

/// What the guest needs beside stress-ng.
const PROGRAMS: [&str; 3] = ["scx_sfs", "sfs_crowd", "sfs_stress"];

/// The command line of `sfs_suite stress`.
#[derive(Args, Debug)]
pub struct StressArgs {
    /// Guest seconds for each mix: what scx's own acceptance test gives it
    #[arg(long, value_name = "S", default_value = "45", value_parser = clap::value_parser!(u32).range(1..100_000))]
    seconds: u32,
    /// Cycles of the mixes that load and unload
    #[arg(long, value_name = "N", default_value = "200", value_parser = clap::value_parser!(u32).range(1..100_000))]
    cycles: u32,
    /// Options of scx_sfs
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true
    )]
    args: String,
    /// CPUs, as for vm/run
    #[arg(long, value_name = "N")]
    cpus: Option<OsString>,
    /// The kernel, as for vm/run
    #[arg(long, value_name = "K")]
    kernel: Option<OsString>,
    /// How CPUs are emulated, as for vm/run
    #[arg(long, value_name = "A")]
    accel: Option<OsString>,
    /// Memory, as for vm/run
    #[arg(long, value_name = "M")]
    mem: Option<OsString>,
    /// aggressive, affinity, fork, cyclic, messages, groups, memory, cycles or kills (default: all)
    #[arg(value_name = "MIX", value_parser = ["aggressive", "affinity", "fork", "cyclic", "messages", "groups", "memory", "cycles", "kills"])]
    mixes: Vec<String>,
}

/// Becomes `vm/run` with the guest's side, `sfs_stress`.
///
/// # Errors
///
/// A program is missing, or `vm/run` does not start.
pub fn run(tree: &Tree, args: &StressArgs) -> Result<u8> {
    let options = [
        ("--cpus", args.cpus.as_deref()),
        ("--kernel", args.kernel.as_deref()),
        ("--accel", args.accel.as_deref()),
        ("--mem", args.mem.as_deref()),
    ];
    let mut command = vm::call(tree, TIMEOUT, &options);
    vm::bring_in(tree, &mut command, &PROGRAMS)?;
    let Some(stress_ng) = in_path("stress-ng") else {
        refuse!("stress-ng is not installed; scripts/setup-host stress installs it");
    };
    command
        .arg("--in")
        .arg(stress_ng)
        .args(["--", "sfs_stress"]);
    command.args(["--seconds", &args.seconds.to_string()]);
    command.args(["--cycles", &args.cycles.to_string()]);
    command.args(["--args", &args.args]).args(&args.mixes);
    Err(vm::become_it(&mut command))
}
