//! The guests in which it is measured, some at the same time.

use super::archives::Archives;
use super::column::Column;
use super::results::{self, Log};
use super::rows::LOAD;
use anyhow::{Context, Result};
use sfs_jobs::job::{self, Job};
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::collections::VecDeque;
use std::fs::File;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};

/// Rows per guest: few, so that a dead guest costs little; many, so that booting does not count.
const ROWS_OF_A_GUEST: usize = 12;

/// Real seconds until a guest is given up.
const TIMEOUT: &str = "1800";

/// Exit statuses from this one on: the guest did not start, or was ended from outside.
const NOT_BY_ITSELF: i32 = 126;

/// Rows that need the archive with stress-ng, and those that need the one with the servers.
const NEED_STRESS: [&str; 2] = ["stress/", "hackbench/"];
const NEED_SERVERS: [&str; 5] = ["perf", "nginx", "redis", "postgres", "compile"];

/// The rows to measure, and the programs to measure with.
pub struct Plan<'a> {
    pub tree: &'a Tree,
    pub interrupt: &'a Interrupt,
    pub archives: Archives,
    pub columns: Vec<Column>,
    pub rows: Vec<String>,
    pub cpus: Vec<u32>,
    /// How many machines, each a little different, measure every row.
    pub machines: u32,
    /// Whether rows that other programs were measured with are left alone.
    pub only_missing: bool,
    /// Guests at the same time.
    pub jobs: usize,
    /// The folder of the results, from the repository's root.
    pub out: &'a Path,
    /// The folder of the programs, from the repository's root.
    pub release: &'a Path,
    /// The commit that the programs were built from.
    pub commit: String,
}

/// Rows that one guest measures, all of them with a load or all without.
struct Batch<'a> {
    cpus: u32,
    /// What `vm/run --perturb` makes of the machine.
    machine: u32,
    column: &'a Column,
    rows: Vec<String>,
}

impl Plan<'_> {
    /// Measures what has no result of these programs yet, and keeps each guest's results
    /// when it ends.
    ///
    /// # Errors
    /// If results cannot be kept, or vm/run cannot be run; and
    /// [`sfs_jobs::failure::Failure::Interrupted`]. The guests under way then end, and what
    /// they have measured is kept.
    pub fn carry_out(&self) -> Result<()> {
        let progress = Progress::new("parity");
        let batches = self.batches()?;
        let all = batches.len();
        progress.say(&format!(
            "{all} guests to run, {} at a time; what is measured is kept in {}",
            self.jobs,
            self.out.display()
        ));
        let queue = Mutex::new(VecDeque::from(batches));
        let (sender, lines) = mpsc::channel();
        let result = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs.min(all))
                .map(|_| {
                    let (sender, queue) = (sender.clone(), &queue);
                    scope.spawn(move || self.work(queue, &sender))
                })
                .collect();
            drop(sender);
            // Until the last worker ends.
            for (done, line) in lines.iter().enumerate() {
                progress.say(&line);
                progress.show(&format!("{} of {all} guests have ended", done + 1));
            }
            let ended: Vec<Result<()>> = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect();
            ended.into_iter().collect()
        });
        progress.clear();
        result
    }

    /// Takes one batch after the other. After an error nobody goes on.
    fn work(&self, queue: &Mutex<VecDeque<Batch>>, lines: &Sender<String>) -> Result<()> {
        let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(batch) = lock().pop_front() else {
                return Ok(());
            };
            match self.measure(batch) {
                // Their reader waits for this thread.
                Ok(line) => drop(lines.send(line)),
                Err(error) => {
                    lock().clear();
                    return Err(error);
                }
            }
        }
    }

    fn batches(&self) -> Result<Vec<Batch<'_>>> {
        let mut batches = Vec::new();
        let machines = 0..self.machines;
        for (machine, cpus) in
            machines.flat_map(|one| self.cpus.iter().map(move |&cpus| (one, cpus)))
        {
            for column in &self.columns {
                let programs = column.made_of(self.tree, self.release, &self.archives)?;
                let kept = results::read(&self.file(column, cpus, machine))?;
                let missing = results::missing(&kept, &self.rows, &programs, self.only_missing);
                let (loaded, alone): (Vec<_>, Vec<_>) =
                    missing.into_iter().partition(|row| row.ends_with(LOAD));
                let guests = [&alone, &loaded]
                    .into_iter()
                    .flat_map(|rows| rows.chunks(ROWS_OF_A_GUEST));
                batches.extend(guests.map(|rows| Batch {
                    cpus,
                    machine,
                    column,
                    rows: rows.to_vec(),
                }));
            }
        }
        Ok(batches)
    }

    /// The file of a column's results.
    fn file(&self, column: &Column, cpus: u32, machine: u32) -> PathBuf {
        results::path(&self.tree.at(self.out), &column.name, cpus, machine)
    }

    /// Measures all rows of a batch, in as many guests as it takes: a guest that ends takes
    /// the row that it was at with it, and the next one goes on after that. Returns what is
    /// to be said about it.
    fn measure(&self, mut batch: Batch) -> Result<String> {
        let file = self.file(batch.column, batch.cpus, batch.machine);
        let programs = batch
            .column
            .made_of(self.tree, self.release, &self.archives)?;
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let mut place = format!("{} on {} CPUs", batch.column.name, batch.cpus);
        if batch.machine > 0 {
            place += &format!(", machine {}", batch.machine);
        }
        while !batch.rows.is_empty() {
            let ended = self.boot(&batch, folder.path());
            let text = read(&folder.path().join("log"));
            let mut log = Log::parse(&text, &self.commit, &programs);
            let (status, said) = match ended {
                Ok(ended) => ended,
                Err(error) => {
                    results::keep(&file, log.lines)?;
                    return Err(error);
                }
            };
            // That says nothing about a row.
            if status >= NOT_BY_ITSELF || !log.has_begun {
                results::keep(&file, log.lines)?;
                return Ok(format!("a guest with {place} ended with {status}: {said}"));
            }
            batch.rows = log.left(&batch.rows);
            if !batch.rows.is_empty() {
                let row = batch.rows.remove(0);
                log.note(&row, &format!("the guest ended with {status}: {said}"));
            }
            results::keep(&file, log.lines)?;
        }
        Ok(format!("{place}: {} rows", results::read(&file)?.len()))
    }

    /// Runs a batch in a guest; returns vm/run's exit status, and the last line of what it
    /// has said. What the guest has printed is in `FOLDER/log`.
    fn boot(&self, batch: &Batch, folder: &Path) -> Result<(i32, String)> {
        let create = |name: &str| {
            let path = folder.join(name);
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))
        };
        let needs = |starts: &[&str]| {
            let mut rows = batch.rows.iter();
            rows.any(|row| starts.iter().any(|start| row.starts_with(start)))
        };
        let mut vm = job::call_tied(self.tree, "vm/run");
        vm.args(["--quiet", "--timeout", TIMEOUT, "--mem", "3G"])
            .args(["--cpus", &batch.cpus.to_string(), "--console"])
            .arg(folder.join("console"))
            .arg("--in")
            .arg(self.release.join("sfs_crowd"))
            .arg("--in")
            .arg(self.release.join("sfs_guest"));
        if needs(&NEED_STRESS) {
            let stress = self.archives.stress.display();
            vm.arg("--in").arg(format!("{stress}:/stress.tar"));
        }
        if needs(&NEED_SERVERS) {
            let servers = self.archives.servers.display();
            vm.arg("--in").arg(format!("{servers}:/servers.tar"));
        }
        if batch.machine > 0 {
            vm.args(["--perturb", &batch.machine.to_string()]);
        }
        if let Some(program) = &batch.column.program {
            vm.arg("--in").arg(program);
        }
        let options = batch.column.options(batch.rows[0].ends_with(LOAD));
        for (name, value) in [
            ("SCHEDULER", batch.column.scheduler()),
            ("SCHEDULER_ARGS", options),
            ("ROWS", batch.rows.join(" ")),
        ] {
            vm.arg("--env").arg(format!("{name}={value}"));
        }
        vm.args(["--", "sfs_guest", "parity"])
            .stdout(create("log")?)
            .stderr(create("said")?);
        let status = Job::start(&mut vm)?.wait(self.interrupt)?;
        let said = read(&folder.join("said"));
        Ok((status, said.lines().last().unwrap_or_default().to_string()))
    }
}

/// The output of a program so far.
fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
