//! The VMs, some at the same time.

use crate::platform::Platform;
use crate::rows::Row;
use crate::say;
use crate::settings::Settings;
use anyhow::Result;
use sfs_jobs::failure::refuse;
use sfs_jobs::job::Job;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::{in_path, Tree};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How often the VMs are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The programs of this workspace that every guest needs.
const PROGRAMS: [&str; 2] = ["faasbench", "sfs_waste"];

/// The programs and variables that only this platform's guests have.
pub struct Own {
    tools: Vec<PathBuf>,
    programs: &'static [&'static str],
    variables: Vec<(&'static str, OsString)>,
}

impl Own {
    /// Finds what the guests need of the platform's programs, and of those of every guest.
    /// `variables` are for the guest.
    ///
    /// # Errors
    /// If a program is missing.
    pub fn find(
        tree: &Tree,
        platform: &Platform,
        variables: Vec<(&'static str, OsString)>,
    ) -> Result<Self> {
        for name in platform.programs.iter().chain(&PROGRAMS) {
            if !tree.is_program(tree.program(name)) {
                refuse!("{name} is not built; run make first");
            }
        }
        let mut tools = Vec::new();
        for (name, package) in platform.tools {
            match in_path(name) {
                Some(path) => tools.push(path),
                None => refuse!(
                    "this machine has no {name}, which the guest needs; install the package {package}"
                ),
            }
        }
        Ok(Self {
            tools,
            programs: platform.programs,
            variables,
        })
    }
}

/// What all VMs have in common.
pub struct Guests<'a> {
    pub tree: &'a Tree,
    pub interrupt: &'a Interrupt,
    pub platform: &'a Platform,
    pub settings: &'a Settings,
    pub own: Own,
    /// The folder of the results.
    pub out: &'a Path,
    /// The archive with Python.
    pub python: &'a Path,
    pub trace: &'a Path,
    /// The functions of the trace, a space behind each.
    pub functions: &'a str,
}

/// A VM that runs.
struct Running<'a> {
    row: &'a Row,
    job: Job,
    since: Instant,
}

impl Guests<'_> {
    /// Runs all rows, and returns how many have failed.
    ///
    /// # Errors
    /// If a VM cannot be started, and [`sfs_jobs::failure::Failure::Interrupted`]; the others
    /// then end.
    pub fn run(&self, rows: &[Row]) -> Result<usize> {
        let mut running = Vec::new();
        let result = self.run_all(rows, &mut running);
        // All at once: each takes a moment to end.
        running
            .iter()
            .for_each(|one: &Running| one.job.ask_to_end());
        result
    }

    fn run_all<'r>(&self, rows: &'r [Row], running: &mut Vec<Running<'r>>) -> Result<usize> {
        let (mut waiting, mut failed) = (rows.iter(), 0);
        loop {
            self.interrupt.check()?;
            let free = self.settings.jobs().saturating_sub(running.len());
            for row in waiting.by_ref().take(free) {
                running.push(self.start(row)?);
            }
            if running.is_empty() {
                return Ok(failed);
            }
            failed += self.reap(running)?;
            thread::sleep(LOOK);
        }
    }

    fn start<'r>(&self, row: &'r Row) -> Result<Running<'r>> {
        let (cpus, accel) = (self.settings.cpus, &self.settings.accel);
        say(
            self.platform.name,
            &format!(
                "{}: booting a VM ({cpus} CPUs, {accel}), starting the platform, sending the requests; takes a few minutes",
                row.name
            ),
        );
        Ok(Running {
            row,
            job: Job::start(&mut self.command(row))?,
            since: Instant::now(),
        })
    }

    /// Takes what ended VMs have left; returns how many of them have failed.
    fn reap(&self, running: &mut Vec<Running>) -> Result<usize> {
        let mut failed = 0;
        let mut index = 0;
        while let Some(one) = running.get_mut(index) {
            match one.job.poll()? {
                None => index += 1,
                Some(status) => {
                    failed += usize::from(!self.finish(&running.remove(index), status));
                }
            }
        }
        Ok(failed)
    }

    /// Takes a row's results; returns whether all is well.
    fn finish(&self, ended: &Running, status: i32) -> bool {
        let name = &ended.row.name;
        let took_s = ended.since.elapsed().as_secs();
        say(
            self.platform.name,
            &format!("{name} took {took_s} s, status {status}"),
        );
        let copied = ["csv", "json"].map(|kind| {
            let file = format!("{name}.{kind}");
            fs::copy(self.out.join(name).join(&file), self.out.join(&file)).is_ok()
        });
        status == 0 && copied == [true; 2]
    }

    /// The call of vm/run for a row. It ends with the thread that starts it; relative paths
    /// start at the current folder.
    fn command(&self, row: &Row) -> Command {
        let settings = self.settings;
        let mut vm = Command::new("setpriv");
        vm.args(["--pdeathsig", "TERM"])
            .arg(self.tree.at("vm/run"))
            .args(["--accel", &settings.accel])
            .args(["--cpus", &settings.cpus.to_string()])
            .args(["--mem", &settings.mem, "--quiet", "--console"])
            .arg(self.out.join(format!("{}.console", row.name)));
        if let Some(kernel) = &settings.kernel {
            vm.arg("--kernel").arg(kernel);
        }
        self.bring_own(&mut vm, row);
        self.set_variables(&mut vm, row);
        self.bring_common(&mut vm);
        vm.arg("--out").arg(bound("/out", self.out.join(&row.name)));
        vm.args(["--", "sh"])
            .arg(format!("/platform/guest/{}", self.platform.name));
        vm
    }

    /// The scheduler, and what the platform needs.
    fn bring_own(&self, vm: &mut Command, row: &Row) {
        let programs = self.own.programs.iter();
        let programs = programs.map(|name| self.tree.at(self.tree.program(name)));
        let files = row.program.iter().chain(&self.own.tools).cloned();
        for file in files.chain(programs) {
            vm.arg("--in").arg(file);
        }
        for (name, value) in &self.own.variables {
            set(vm, name, value);
        }
    }

    fn set_variables(&self, vm: &mut Command, row: &Row) {
        let settings = self.settings;
        set(vm, "FAASBENCH_ACCEL", &settings.accel);
        set(vm, "FUNCTIONS", self.functions);
        set(vm, "WORKERS", settings.workers.to_string());
        set(vm, "CPUS", settings.cpus.to_string());
        set(vm, "SCHEDULER", &row.name);
        set(vm, "SCHEDULER_ARGS", &row.options);
    }

    fn bring_common(&self, vm: &mut Command) {
        for name in PROGRAMS {
            vm.arg("--in").arg(self.tree.at(self.tree.program(name)));
        }
        let platforms = self.tree.at("vm/platforms");
        for (host, guest) in [
            (self.python, "/platform.tar"),
            (self.trace, "/trace.csv"),
            (&platforms.join("functions"), "/platform/functions"),
            (&platforms.join("guest"), "/platform/guest"),
        ] {
            vm.arg("--in").arg(bound(host, guest));
        }
    }
}

/// `ONE:OTHER`.
fn bound(one: impl AsRef<OsStr>, other: impl AsRef<OsStr>) -> OsString {
    let mut word = one.as_ref().to_owned();
    word.push(":");
    word.push(other);
    word
}

/// Sets a variable of the guest.
fn set(vm: &mut Command, name: &str, value: impl AsRef<OsStr>) {
    let mut word = OsString::from(format!("{name}="));
    word.push(value);
    vm.arg("--env").arg(word);
}
