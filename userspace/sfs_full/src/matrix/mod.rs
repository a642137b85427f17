//! Runs the behaviour suite (`tests/run`) on several kernels, numbers of CPUs and ways of
//! emulation, and prints a table in Markdown.

pub mod machine;
pub mod said;

use anyhow::{Context, Result};
use clap::Args;
use machine::Machine;
use said::Said;
use sfs_jobs::job::{self, Job};
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Exit status: a case failed somewhere.
const FAILED: u8 = 1;

/// How often the line about the suite is written anew.
const SHOW: Duration = Duration::from_millis(500);

/// The head of the table.
const HEAD: &str = "| kernel | CPUs | emulation | cases | verified instructions | failed |\n|---|---|---|---|---|---|";

/// The options.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0; 1 a case failed somewhere; 2 bad usage; 130 interrupted.")]
pub struct MatrixArgs {
    /// The machines: CPUS is a number (4 by default), or a topology as 2x2x2; ACCEL is
    /// icount (the default), tcg, kvm or auto
    ///
    /// By default each sched_ext kernel that vm/fetch-kernel finds in Debian's archive with
    /// 4 CPUs, and one of them with 1, 2, 3, 8 and 64 CPUs, with two sockets, and with real
    /// parallelism (tcg).
    #[arg(value_name = "KERNEL[:CPUS[:ACCEL]]")]
    machines: Vec<Machine>,
    /// Cases to run, separated by spaces, instead of all that make sense on the machine
    #[arg(long, env = "CASE", value_name = "CASES", default_value = "")]
    case: String,
    /// More options of scx_sfs for each case
    #[arg(
        long,
        env = "WITH",
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true
    )]
    with: String,
    /// The folder that keeps what each run said, from the top of the repository
    #[arg(long, env = "OUT", value_name = "DIR", default_value = "out/matrix")]
    out: PathBuf,
}

/// Runs the suite on each machine; returns the exit status. A kernel that cannot be had is
/// skipped, which is said.
///
/// # Errors
/// If what is said cannot be kept, or tests/run cannot be run; and
/// [`sfs_jobs::failure::Failure::Interrupted`].
pub fn run(tree: &Tree, args: MatrixArgs, interrupt: &Interrupt) -> Result<u8> {
    let matrix = Matrix {
        tree,
        interrupt,
        progress: Progress::new("matrix"),
        args: &args,
    };
    let out = tree.at(&args.out);
    std::fs::create_dir_all(&out)
        .with_context(|| format!("cannot make the folder {}", out.display()))?;
    let machines = match &args.machines[..] {
        [] => machine::defaults(),
        given => given.to_vec(),
    };
    matrix.print(HEAD);
    let mut status = 0;
    for (index, machine) in machines.iter().enumerate() {
        if let Some(why) = matrix.cannot_fetch(machine)? {
            let kernel = &machine.kernel;
            matrix.progress.say(&format!("{kernel} is skipped: {why}"));
            continue;
        }
        matrix.progress.say(&machine.to_string());
        let place = format!("{} of {}", index + 1, machines.len());
        if matrix.suite(machine, &place)? != 0 {
            status = FAILED;
        }
        matrix.print(&matrix.said(machine)?.row(machine));
    }
    Ok(status)
}

struct Matrix<'a> {
    tree: &'a Tree,
    interrupt: &'a Interrupt,
    progress: Progress,
    args: &'a MatrixArgs,
}

impl Matrix<'_> {
    /// Prints a line of the table. That nobody reads it is no reason to stop.
    fn print(&self, line: &str) {
        self.progress.aside(|| {
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        });
    }

    /// The file that keeps what the suite said on a machine, on standard output or on
    /// standard error.
    fn kept(&self, machine: &Machine, end: &str) -> PathBuf {
        let name = format!("{}{end}", machine.file_name());
        self.tree.at(&self.args.out).join(name)
    }

    /// The reason why the machine's kernel cannot be had, if so.
    fn cannot_fetch(&self, machine: &Machine) -> Result<Option<String>> {
        let mut fetch = job::call(self.tree, "vm/fetch-kernel");
        let output = fetch.arg(&machine.kernel).output();
        let output = output.context("cannot run vm/fetch-kernel")?;
        self.interrupt.check()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().last().unwrap_or_default().to_string();
        Ok(Some(last).filter(|_| !output.status.success()))
    }

    /// Runs the suite on a machine; returns its exit status.
    fn suite(&self, machine: &Machine, place: &str) -> Result<i32> {
        let create = |end| {
            let path = self.kept(machine, end);
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))
        };
        let mut command = job::call(self.tree, "tests/run");
        command
            .args(machine.options())
            .args(Some("--with").filter(|_| !self.args.with.is_empty()))
            .args(Some(&self.args.with).filter(|with| !with.is_empty()))
            .args(["--accel", &machine.accel]);
        match self.args.case.is_empty() {
            true => command.args(machine.cases()),
            false => command.args(self.args.case.split_whitespace()),
        };
        let mut job = Job::start(command.stdout(create("")?).stderr(create(".err")?))?;
        let since = Instant::now();
        let status = job.wait_and(self.interrupt, SHOW, || {
            let seconds = since.elapsed().as_secs();
            self.progress
                .show(&format!("{place}: {machine} ({seconds} s)"));
        });
        self.progress.clear();
        status
    }

    /// The output of the suite on a machine.
    fn said(&self, machine: &Machine) -> Result<Said> {
        let read = |end| {
            let path = self.kept(machine, end);
            let bytes =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read("").and_then(|out| Ok(Said::parse(&out, &read(".err")?)))
    }
}
