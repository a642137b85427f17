//! The settings of a run.

use crate::python::PythonArgs;
use clap::{value_parser, Args};
use std::ffi::OsString;
use std::path::PathBuf;

/// The options, each of which may also be given as an environment variable. Relative paths
/// start at the current folder.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct Settings {
    /// The rows, separated by spaces: eevdf, or programs in userspace/target/release or PATH
    #[arg(
        long,
        env = "SCHEDULERS",
        value_name = "ROWS",
        default_value = "eevdf scx_sfs"
    )]
    pub schedulers: String,
    /// A trace file, instead of `faasbench gen table1-artefact`
    #[arg(long, env = "TRACE", value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Number of requests
    #[arg(
        short = 'n',
        long,
        env = "N",
        value_name = "N",
        default_value = "150",
        allow_hyphen_values = true
    )]
    pub invocations: String,
    /// Offered load
    #[arg(
        long,
        env = "LOAD",
        value_name = "LOAD",
        default_value = "0.9",
        allow_hyphen_values = true
    )]
    pub load: String,
    /// Factor of all durations
    #[arg(
        long,
        env = "SCALE",
        value_name = "FACTOR",
        default_value = "0.25",
        allow_hyphen_values = true
    )]
    pub scale: String,
    /// Seed of the workload
    #[arg(
        long,
        env = "SEED",
        value_name = "SEED",
        default_value = "5",
        allow_hyphen_values = true
    )]
    pub seed: String,
    /// Sandboxes of each function, which serve one request at a time
    #[arg(long, env = "WORKERS", value_name = "WORKERS", default_value = "4", value_parser = value_parser!(u32).range(1..=9999))]
    pub workers: u32,
    /// CPUs of the VM
    #[arg(long, env = "CPUS", value_name = "CPUS", default_value = "4", value_parser = value_parser!(u32).range(1..=255))]
    pub cpus: u32,
    /// Memory of the VM, as for vm/run
    #[arg(long, env = "MEM", value_name = "MEM", default_value = "3G")]
    pub mem: String,
    /// How the VM's CPUs are made, as for vm/run
    #[arg(long, env = "ACCEL", value_name = "ACCEL", default_value = ICOUNT, value_parser = [ICOUNT, "tcg", "kvm", "auto"])]
    pub accel: String,
    /// The kernel: a version that vm/fetch-kernel knows, or an image; by default that of vm/run
    #[arg(long, env = "KERNEL", value_name = "KERNEL")]
    pub kernel: Option<OsString>,
    /// VMs at the same time; by default one for each core with icount, else 1
    #[arg(long, env = "JOBS", value_name = "JOBS", value_parser = value_parser!(u32).range(1..=999))]
    jobs: Option<u32>,
    /// Where the results go; by default out/platforms/ and the platform's name, in the
    /// repository
    #[arg(long, env = "OUT", value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub python: PythonArgs,
}

/// Virtual time.
const ICOUNT: &str = "icount";

/// What stands below the options.
const AFTER: &str = "\
Settings of one row, in the environment:
  ARGS_<row>  options of a sched_ext scheduler, instead of the platform's own. What is neither a letter nor a digit in the row's name is _ there

QUIET=1 in the environment: no messages but errors.

Exit status: 0; 2 bad usage; 125 a scheduler gave no clean run, or Python's packages could not be installed; 130 interrupted; if a program that it calls fails, the exit status of that.";

impl Settings {
    /// VMs at the same time, 1 or more.
    pub fn jobs(&self) -> usize {
        match self.jobs {
            Some(jobs) => jobs as usize,
            // Virtual time does not notice that the cores are busy.
            None if self.accel == ICOUNT => {
                std::thread::available_parallelism().map_or(1, |cores| cores.get())
            }
            None => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    fn jobs(options: &[&str]) -> usize {
        let line = [&["x"], options].concat();
        Line::parse_from(line).settings.jobs()
    }

    #[test]
    fn only_virtual_time_shares_the_cores() {
        assert_eq!(jobs(&["--accel", "tcg"]), 1);
        let cores = std::thread::available_parallelism().unwrap().get();
        assert_eq!(jobs(&["--accel", "icount"]), cores);
        assert_eq!(jobs(&["--accel", "tcg", "--jobs", "3"]), 3);
    }
}
