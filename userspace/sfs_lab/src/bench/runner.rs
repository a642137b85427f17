//! Runs rows, some at a time, and says how far it is.
//!
//! This process is the parent of every VM: it can end them, and they end with it, however
//! it ends.

use super::folder::{is_same, Folder, LEFT};
use super::manifest::{self, Machines};
use super::rows::{files, Server};
use super::settings::{Row, Settings};
use super::succeed;
use anyhow::{Context, Result};
use sfs_jobs::failure::Failure;
use sfs_jobs::job::{self, Job};
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How often the VMs are looked at, and the line about them is written anew.
const LOOK: Duration = Duration::from_millis(100);
const SHOW: Duration = Duration::from_millis(500);

/// The exit status of `faasbench run` if it has written a summary that says what went wrong
/// with the scheduler.
const TOLD: i32 = 3;

/// A VM that replays a row.
struct Running<'a> {
    row: &'a Row,
    job: Job,
    since: Instant,
}

/// Runs the rows of one comparison.
pub struct Runner<'a> {
    tree: &'a Tree,
    settings: &'a Settings,
    /// From the repository's root.
    trace: &'a Path,
    machines: &'a Machines,
    folder: &'a Folder,
    progress: &'a Progress,
    running: Vec<Running<'a>>,
    /// Rows that are done, and that wait for a VM.
    done: usize,
    waiting: usize,
    /// Rows that are no clean measurement, each with the reason.
    troubles: Vec<String>,
}

impl<'a> Runner<'a> {
    pub fn new(
        tree: &'a Tree,
        settings: &'a Settings,
        trace: &'a Path,
        machines: &'a Machines,
        folder: &'a Folder,
        progress: &'a Progress,
    ) -> Self {
        Self {
            tree,
            settings,
            trace,
            machines,
            folder,
            progress,
            running: Vec::new(),
            done: 0,
            waiting: 0,
            troubles: Vec::new(),
        }
    }

    /// The rows that are no clean measurement, each with the reason.
    pub fn into_troubles(self) -> Vec<String> {
        self.troubles
    }

    /// Runs the rows that have no result yet. `servers` says what serves each row.
    pub fn run(&mut self, servers: &[Server], interrupt: &Interrupt) -> Result<()> {
        let result = self.run_all(servers, interrupt);
        self.progress.clear();
        if let Err(Some(Failure::Interrupted(_))) = result.as_ref().map_err(|e| e.downcast_ref()) {
            self.abandon()?;
            self.progress.say(&format!(
                "interrupted: {} of {} rows are finished and kept in {}; the same command does the others",
                self.done,
                self.settings.rows.len(),
                self.folder.out().display()
            ));
        }
        result
    }

    fn run_all(&mut self, servers: &[Server], interrupt: &Interrupt) -> Result<()> {
        let (mut simulated, mut live) = (Vec::new(), Vec::new());
        for (row, server) in self.settings.rows.iter().zip(servers) {
            if self.is_finished(row, server)? {
                self.keep(row)?;
            } else if server.is_simulated() {
                simulated.push((row, server));
            } else {
                live.push((row, server));
            }
        }
        for (row, server) in simulated {
            self.simulate(row, server, interrupt)?;
        }
        self.waiting = live.len();
        for (row, server) in live {
            while self.running.len() >= self.settings.jobs() {
                self.reap(interrupt)?;
            }
            self.waiting -= 1;
            self.boot(row, server)?;
        }
        while !self.running.is_empty() {
            self.reap(interrupt)?;
        }
        Ok(())
    }

    /// Whether a row's results are there and were made from what would make them now; says
    /// why not if they were made from something else.
    fn is_finished(&self, row: &Row, server: &Server) -> Result<bool> {
        let Some(old) = self.folder.manifest(&row.name)? else {
            return Ok(false);
        };
        let new = self.manifest(row, server)?;
        if is_same(&old, &new) {
            return Ok(true);
        }
        let changed = manifest::changed(&old, &new);
        self.progress
            .say(&format!("{} is run again: its {changed} changed", row.name));
        Ok(false)
    }

    /// Counts a row that an earlier run has finished.
    fn keep(&mut self, row: &Row) -> Result<()> {
        self.done += 1;
        self.note_trouble(row)?;
        let (done, rows) = (self.done, self.settings.rows.len());
        self.progress.say(&format!(
            "{} ({done} of {rows}) is finished from an earlier run",
            row.name
        ));
        Ok(())
    }

    fn manifest(&self, row: &Row, server: &Server) -> Result<String> {
        let machine = self.machines.of(self.settings, row)?;
        manifest::row(self.tree, row, server, machine)
    }

    fn begin(&self, row: &Row, server: &Server) -> Result<()> {
        let manifest = self.manifest(row, server)?;
        self.folder.begin(&row.name, &manifest)
    }

    /// Lets a program of a row's run write to the folder of that run.
    fn start(&self, row: &Row, command: &mut Command) -> Result<Job> {
        let open = |name| {
            let path = self.folder.in_run(&row.name, name);
            let mut options = File::options();
            let file = options.create(true).append(true).open(&path);
            file.with_context(|| format!("cannot write {}", path.display()))
        };
        Job::start(command.stdout(open("output")?).stderr(open("errors")?))
    }

    fn simulate(&mut self, row: &Row, server: &Server, interrupt: &Interrupt) -> Result<()> {
        self.begin(row, server)?;
        let status = match self.simulate_until(row, interrupt) {
            Ok(status) => status,
            Err(error) => {
                self.folder.forget(&row.name)?;
                return Err(error);
            }
        };
        self.finish(row, server, status, 0)
    }

    /// Returns the exit status of the first program that failed, or 0.
    fn simulate_until(&self, row: &Row, interrupt: &Interrupt) -> Result<i32> {
        let status = self
            .start(row, &mut self.simulation(row))?
            .wait(interrupt)?;
        if status != 0 {
            return Ok(status);
        }
        let mut summarize = self.simulation_summary(row)?;
        self.start(row, &mut summarize)?.wait(interrupt)
    }

    fn simulation(&self, row: &Row) -> Command {
        let mut command = job::call(self.tree, self.tree.program("sfs_sim"));
        command
            .args(["run", "--policy", row.scheduler(), "--name", &row.name])
            .arg("--trace")
            .arg(self.trace)
            .args(["--cpus", &self.settings.cpus.to_string()])
            .arg("--out")
            .arg(self.folder.run(&row.name))
            .args(row.args().split_whitespace());
        command
    }

    fn simulation_summary(&self, row: &Row) -> Result<Command> {
        let mut version = job::call(self.tree, self.tree.program("sfs_sim"));
        let version = version.arg("--version").output();
        let version = version.context("cannot run sfs_sim")?.stdout;
        let version = String::from_utf8_lossy(&version).trim_end().to_string();
        let run = self.folder.run(&row.name);
        let mut command = self.summarize(row, &version);
        command
            .arg(run.join(format!("{}.csv", row.name)))
            .args(["--kernel", "simulated", "--accel", "simulated", "--output"])
            .arg(run.join(format!("{}.json", row.name)));
        Ok(command)
    }

    /// Fields common to all summaries that are not made in a VM.
    fn summarize(&self, row: &Row, version: &str) -> Command {
        let mut command = job::call(self.tree, self.tree.program("faasbench"));
        command
            .arg("summarize")
            .arg("--trace")
            .arg(self.trace)
            .args(["--cpus", &self.settings.cpus.to_string()])
            .args(["--scheduler", &row.name, "--scheduler-version", version])
            .args(["--scheduler-args", row.args()]);
        command
    }

    /// Boots a VM for a row; its results go to a folder of their own.
    fn boot(&mut self, row: &'a Row, server: &Server) -> Result<()> {
        self.begin(row, server)?;
        let job = self.start(row, &mut self.vm(row, server)?)?;
        self.running.push(Running {
            row,
            job,
            since: Instant::now(),
        });
        if !self.progress.is_watched() {
            let (cpus, accel) = (self.settings.cpus, self.settings.accel.name());
            self.progress.say(&format!(
                "{}: booting a VM ({cpus} CPUs, {accel}) and replaying",
                row.name
            ));
        }
        Ok(())
    }

    fn vm(&self, row: &Row, server: &Server) -> Result<Command> {
        let settings = self.settings;
        let (accel, cpus) = (settings.accel.name(), settings.cpus.to_string());
        let run = self.folder.run(&row.name);
        let kernel = manifest::kernel(settings, row)?;
        let mut command = job::call_tied(self.tree, "vm/run");
        command
            .args(["--accel", accel, "--cpus", &cpus, "--quiet"])
            .args(["--timeout", &settings.timeout_s.to_string(), "--console"])
            .arg(run.join(format!("{}.console", row.name)))
            .args(kernel.iter().flat_map(|kernel| ["--kernel", kernel]))
            .args(["--perturb", &settings.machine().to_string()]);
        if let Server::Program(path) = server {
            command.args([
                "--in",
                &format!("{}:/bin/{}", path.display(), row.scheduler()),
            ]);
        }
        for (host, guest) in files(row) {
            command.args(["--in", &format!("{host}:{guest}")]);
        }
        command
            .args(["--env", &format!("FAASBENCH_ACCEL={accel}"), "--in"])
            .arg(self.tree.program("faasbench"))
            .arg("--in")
            .arg(self.tree.program("sfs_waste"))
            .args([
                "--in",
                &format!("{}:{}", self.trace.display(), self.guest_trace()),
            ])
            .args(["--out", &format!("/out:{}", run.display()), "--"]);
        self.add_replay(&mut command, row);
        Ok(command)
    }

    fn guest_trace(&self) -> String {
        let name = self.trace.file_name().unwrap_or_default();
        format!("/{}", name.to_string_lossy())
    }

    /// The guest's task.
    fn add_replay(&self, command: &mut Command, row: &Row) {
        let settings = self.settings;
        command
            .args(["faasbench", "run", "--trace", &self.guest_trace()])
            .args(["--scheduler", row.given(), "--name", &row.name])
            .args(["--cpus", &settings.cpus.to_string(), "--out", "/out"])
            .args(["--sandbox", settings.sandbox.name()])
            .args(settings.sandbox_args.split_whitespace());
        if !row.args().is_empty() {
            command.args(["--scheduler-args", row.args()]);
        }
    }

    /// Waits until a VM has ended, and takes what it left.
    fn reap(&mut self, interrupt: &Interrupt) -> Result<()> {
        let mut shown: Option<Instant> = None;
        loop {
            for index in 0..self.running.len() {
                if let Some(status) = self.running[index].job.poll()? {
                    let ended = self.running.swap_remove(index);
                    let took_s = ended.since.elapsed().as_secs();
                    return self.finish(ended.row, &Server::Kernel, status, took_s);
                }
            }
            interrupt.check()?;
            if shown.is_none_or(|shown| shown.elapsed() >= SHOW) {
                self.progress.show(&self.status_line());
                shown = Some(Instant::now());
            }
            std::thread::sleep(LOOK);
        }
    }

    fn status_line(&self) -> String {
        let running = self.running.iter();
        let running =
            running.map(|one| format!("{} ({} s)", one.row.name, one.since.elapsed().as_secs()));
        let running = running.collect::<Vec<_>>().join(", ");
        let (done, rows) = (self.done, self.settings.rows.len());
        format!(
            "{done} of {rows} rows done, running {running}{}",
            self.time_left()
        )
    }

    /// `, about 3 min left`, once that can be told.
    fn time_left(&self) -> String {
        let mean_s = self.folder.mean_took_s();
        match mean_s.filter(|_| self.done < self.settings.rows.len()) {
            Some(mean_s) => {
                let elapsed = self.running.iter().map(|one| one.since.elapsed().as_secs());
                about(left_s(mean_s, elapsed, self.waiting, self.settings.jobs()))
            }
            None => String::new(),
        }
    }

    /// Takes what a row left.
    fn finish(&mut self, row: &Row, server: &Server, status: i32, took_s: u64) -> Result<()> {
        self.done += 1;
        self.progress.clear();
        let (done, rows) = (self.done, self.settings.rows.len());
        let summary = self.folder.in_run(&row.name, &format!("{}.json", row.name));
        let is_written = summary.metadata().is_ok_and(|data| data.len() > 0);
        if !is_written || (status != 0 && status != TOLD) {
            self.lose(row, status)?;
            let log = self.folder.result(&row.name, "log");
            self.progress.say(&format!(
                "{} ({done} of {rows}): no result came back after {took_s} s; {} says more",
                row.name,
                log.display()
            ));
            return Ok(());
        }
        // That nobody reads what it said is no reason to stop.
        let mut stdout = std::io::stdout().lock();
        let printed = stdout.write_all(&self.said(row, "output"));
        let _ = printed.and_then(|()| stdout.flush());
        let _ = std::io::stderr().write_all(&self.said(row, "errors"));
        for kind in LEFT {
            self.folder.take(&row.name, kind)?;
        }
        self.folder.settle(&row.name, took_s)?;
        self.note_trouble(row)?;
        if !server.is_simulated() {
            let left = self.time_left();
            self.progress.say(&format!(
                "{} ({done} of {rows}) took {took_s} s{left}",
                row.name
            ));
        }
        Ok(())
    }

    /// The output of a row's run.
    fn said(&self, row: &Row, name: &str) -> Vec<u8> {
        fs::read(self.folder.in_run(&row.name, name)).unwrap_or_default()
    }

    /// No result came back. The row says so, and is tried again by the next run.
    fn lose(&mut self, row: &Row, status: i32) -> Result<()> {
        let (output, errors) = (self.said(row, "output"), self.said(row, "errors"));
        let text = loss(status, &String::from_utf8_lossy(&errors));
        let mut command = self.summarize(row, "unknown");
        command
            .args(["--lost", &text, "--kernel", "unknown"])
            .args(["--accel", self.settings.accel.name(), "--output"])
            .arg(self.folder.result(&row.name, "json"));
        succeed("faasbench summarize", &mut command)?;
        self.troubles.push(format!("{} (lost): {text}", row.name));
        self.folder.give_up(&row.name, &[output, errors].concat())
    }

    /// Remembers a row whose scheduler did not load or did not stay.
    fn note_trouble(&mut self, row: &Row) -> Result<()> {
        let path = self.tree.at(self.folder.result(&row.name, "json"));
        let cannot = || format!("cannot read {}", path.display());
        let text = fs::read(&path).with_context(cannot)?;
        let summary: serde_json::Value = serde_json::from_slice(&text).with_context(cannot)?;
        let field = |name: &str| summary["scheduler"][name].as_str().unwrap_or_default();
        let (status, detail) = (field("status"), field("detail"));
        if status != "ok" {
            self.troubles
                .push(format!("{} ({status}): {detail}", row.name));
        }
        Ok(())
    }

    /// Ends the VMs. What they would have measured is lost.
    fn abandon(&mut self) -> Result<()> {
        // All at once: each takes a moment to end.
        self.running.iter().for_each(|one| one.job.ask_to_end());
        let rows: Vec<&Row> = self.running.drain(..).map(|one| one.row).collect();
        rows.iter()
            .try_for_each(|row| self.folder.forget(&row.name))
    }
}

/// The message about a row without a result; `errors` is the output of its run.
fn loss(status: i32, errors: &str) -> String {
    let last = errors.lines().last().unwrap_or_default();
    // Of the user's settings, that is the one.
    let last = last.replace("--timeout", "TIMEOUT");
    let colon = if last.is_empty() { "" } else { ": " };
    format!("no result came back, exit status {status}{colon}{last}")
}

/// Seconds until all are done, if each VM takes `mean_s`: some have been running for
/// `elapsed` seconds, others wait until one of `jobs` ends.
fn left_s(mean_s: u64, elapsed: impl Iterator<Item = u64>, waiting: usize, jobs: usize) -> u64 {
    let running = elapsed.map(|elapsed| mean_s.saturating_sub(elapsed)).max();
    running.unwrap_or(0) + waiting.div_ceil(jobs.max(1)) as u64 * mean_s
}

/// `, about 3 min left`.
fn about(left_s: u64) -> String {
    match left_s {
        120.. => format!(", about {} min left", (left_s + 30) / 60),
        _ => format!(", about {left_s} s left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_running_and_of_the_waiting() {
        assert_eq!(left_s(100, [30, 90].into_iter(), 3, 2), 70 + 200);
        assert_eq!(left_s(100, [130].into_iter(), 0, 1), 0);
        assert_eq!(left_s(100, std::iter::empty(), 1, 4), 100);
        assert_eq!(about(119), ", about 119 s left");
        assert_eq!(about(150), ", about 3 min left");
    }

    #[test]
    fn a_loss_is_told_by_the_last_line() {
        let said = loss(124, "a\nrun: no end; --timeout sets the limit\n");
        assert_eq!(
            said,
            "no result came back, exit status 124: run: no end; TIMEOUT sets the limit"
        );
        assert_eq!(loss(137, ""), "no result came back, exit status 137");
    }
}
