//! `parity`: what else runs on a worker, a row after the other under one scheduler.

mod compile;
mod figures;
mod kernel;
mod root;
mod servers;

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use clap::Args;
use sfs_testbed::cgroup::{enable_cpu_controller, Cgroup};
use sfs_testbed::clock::wait_until;
use sfs_testbed::process::Process;

use crate::loader::{is_enabled, Loader};
use crate::programs;

/// The kernel's own scheduler.
const EEVDF: &str = "eevdf";

/// The end of a row that runs beside functions.
const LOAD: &str = "+load";

/// Enough for programs that begin slowly beside a load; a row that takes longer has no value.
const LIMIT: Duration = Duration::from_secs(60);

const SCHEDULER_LOG: &str = "/tmp/scheduler.log";
const FUNCTIONS_LOG: &str = "/tmp/functions.log";

/// The rows to run, and the scheduler to run them under.
#[derive(Debug, Args)]
pub struct ParityArgs {
    /// eevdf, or a program in /bin
    #[arg(long, env = "SCHEDULER", default_value = EEVDF)]
    scheduler: String,
    /// Options of that program, separated by spaces
    #[arg(
        long,
        env = "SCHEDULER_ARGS",
        default_value = "",
        allow_hyphen_values = true
    )]
    scheduler_args: String,
    /// Rows, separated by spaces; ROW+load runs beside functions that want twice the machine,
    /// from the cgroup /functions/f
    #[arg(long, env = "ROWS", default_value = "")]
    rows: String,
}

/// A guest that measures.
struct Guest {
    args: ParityArgs,
    cpus: usize,
    loader: Option<Loader>,
    functions: Cgroup,
    /// Outputs of programs that several rows read.
    outputs: HashMap<String, String>,
}

/// Prepares the guest, loads the scheduler, and measures each row.
///
/// # Errors
/// If the guest cannot be prepared, or the scheduler does not load.
pub fn run(args: ParityArgs) -> Result<()> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("no /proc")?;
    println!("kernel {}", release.trim_end());
    root::prepare()?;
    let mut guest = Guest {
        args,
        cpus: programs::cpus(),
        loader: None,
        functions: functions_group()?,
        outputs: HashMap::new(),
    };
    guest.load()?;
    let rows = guest.args.rows.clone();
    for row in rows.split_whitespace() {
        guest.row(row)?;
    }
    Ok(())
}

/// The cgroup of the functions, with a CPU controller.
fn functions_group() -> Result<Cgroup> {
    let all = Path::new("/sys/fs/cgroup/functions");
    fs::create_dir_all(all).context("cannot make the cgroup of functions")?;
    enable_cpu_controller()?;
    fs::write(all.join("cgroup.subtree_control"), "+cpu")
        .context("cannot enable the CPU controller for functions")?;
    Cgroup::new("functions/f")
}

impl Guest {
    /// Loads the scheduler, if there is one to load.
    fn load(&mut self) -> Result<()> {
        let name = &self.args.scheduler;
        if name == EEVDF {
            return Ok(());
        }
        let mut command = Command::new(name);
        command.args(self.args.scheduler_args.split_whitespace());
        let loader = Loader::start(&mut command, Path::new(SCHEDULER_LOG));
        self.loader = Some(loader.with_context(|| name.clone())?);
        Ok(())
    }

    /// Measures a row and prints its line.
    fn row(&mut self, row: &str) -> Result<()> {
        let measured = match row.strip_suffix(LOAD) {
            None => self.measure(row, ""),
            Some(alone) => self.beside_functions(|guest| guest.measure(alone, LOAD)),
        };
        let mut result = measured.unwrap_or_else(|error| format!("- {error:#}"));
        let gone = self.loader.as_mut().filter(|_| !is_enabled());
        if let Some(loader) = gone {
            let last: String = loader.last_lines(1).chars().take(200).collect();
            result = format!("- the scheduler is gone: {last}");
            loader.kill();
            self.load()?;
        }
        println!("row {row} {}", result.replace('\n', " "));
        Ok(())
    }

    /// Measures while functions want twice the machine.
    fn beside_functions(
        &mut self,
        measure: impl FnOnce(&mut Self) -> Result<String>,
    ) -> Result<String> {
        let log = File::create(FUNCTIONS_LOG).context("cannot write the functions' log")?;
        let errors = log.try_clone()?;
        let mut crowd = Command::new("sfs_crowd");
        crowd
            .args(["turns", "--end", "fork", "--burst-us", "10000", "--tasks"])
            .arg((self.cpus * 2).to_string())
            .stdout(log)
            .stderr(errors);
        let functions = Process::spawn_in(&self.functions, move |_| {
            panic!("cannot start sfs_crowd: {}", crowd.exec());
        })?;
        let ready = || fs::read_to_string(FUNCTIONS_LOG).is_ok_and(|log| log.contains("ready"));
        // If they are not ready by then, the row is measured nevertheless.
        wait_until(Duration::from_secs(30), ready);
        let measured = measure(self);
        drop(functions);
        programs::kill_all("sfs_crowd")?;
        measured
    }

    /// Measures a row, beside functions if `load` is [`LOAD`]. Returns its value and unit.
    ///
    /// # Errors
    /// The reason why it has no value.
    fn measure(&mut self, row: &str, load: &str) -> Result<String> {
        let all = self.cpus.to_string();
        let mut parts: Vec<&str> = row.split('/').collect();
        if let Some(count) = parts.get_mut(2).filter(|part| **part == "all") {
            *count = &all;
        }
        match parts[..] {
            ["stress", name, instances] => kernel::stress(name, instances),
            ["hackbench", through, of] => kernel::hackbench(through, of, self.cpus),
            ["handoffs", through, rings] => kernel::handoffs(through, rings),
            ["requests", clients] => kernel::latency(&["requests", "--clients", clients]),
            ["keystrokes"] => kernel::latency(&["keystrokes", "--keys", "100"]),
            ["perf", collection, name] => kernel::perf(collection, name, self.cpus),
            ["nginx", what] => self.nginx(what, load),
            ["redis", command, what] => self.redis(command, what, load),
            ["postgres", kind, what] => self.postgres(kind, what, load),
            ["compile"] => compile::compile(self.cpus),
            _ => bail!("there is no such row"),
        }
    }

    /// Returns the output of a program that is kept under `name`; runs it if there is none.
    fn output(&mut self, name: String, program: impl FnOnce() -> Result<String>) -> Result<&str> {
        if !self.outputs.contains_key(&name) {
            self.outputs.insert(name.clone(), program()?);
        }
        Ok(&self.outputs[&name])
    }
}

/// Runs a program of /debian there, for at most [`LIMIT`].
fn enter(arguments: &[&str]) -> Result<programs::Ended> {
    programs::run(&mut root::command(arguments), LIMIT)
}

/// Stands for the value of a row without one.
fn measured(value: Option<String>) -> Result<String> {
    value.context("nothing was measured")
}

/// The same for a program that has printed nothing to read a value from.
fn value_of(ended: &programs::Ended, value: Option<String>) -> Result<String> {
    ensure!(
        value.is_some() || ended.status == 0,
        "status {} {}",
        ended.status,
        ended.last_line()
    );
    measured(value)
}
