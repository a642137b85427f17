//! Replays what has no result yet, one VM after the other.

use crate::points::{Machine, Point};
use crate::results::{Line, Results};
use anyhow::{bail, Context, Result};
use faas_data::summary::json;
use sfs_jobs::failure::{refuse, Failure};
use sfs_jobs::job::{self, Job};
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_lab::bench::rows::{servers, Server};
use sfs_lab::bench::Row;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes of a digest that stand for what a result was made from.
const BYTES: usize = 6;

/// The exit status of `faasbench run` if its summary says what went wrong with the scheduler.
const TOLD: i32 = 3;

/// How often an interruption is looked for while a VM runs.
const LOOK: Duration = Duration::from_secs(1);

/// What is to be measured.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The repository.
    pub tree: &'a Tree,
    /// The schedulers.
    pub rows: Vec<Row>,
    /// The points.
    pub points: Vec<Point>,
    /// Number of invocations of the trace.
    pub invocations: u32,
    /// The kernel, as for `vm/run`; none is its default.
    pub kernel: Option<String>,
    /// Real time in seconds after which a VM is given up.
    pub timeout_s: u32,
    /// The folder for the runs, from the root.
    pub out: PathBuf,
    /// The commit of the programs.
    pub commit: String,
}

impl Plan<'_> {
    /// Measures it, and keeps each result at once. Returns the number of runs that are no clean
    /// measurement.
    ///
    /// # Errors
    /// If a program is missing, a trace cannot be made, a result cannot be kept, or
    /// [`Failure::Interrupted`]: the same call does the rest.
    pub fn carry_out(
        &self,
        results: &mut Results,
        progress: &Progress,
        interrupt: &Interrupt,
    ) -> Result<usize> {
        let servers = servers(self.tree, &self.rows)?;
        let mut troubles = 0;
        let all = self.points.len() * self.rows.len();
        let mut number = 0;
        let mut traces: BTreeMap<&str, PathBuf> = BTreeMap::new();
        for point in &self.points {
            let machine = point.machine;
            if !traces.contains_key(machine.name) {
                traces.insert(machine.name, self.trace(machine)?);
            }
            let trace = &traces[machine.name];
            for (row, server) in self.rows.iter().zip(&servers) {
                number += 1;
                let programs = self.programs(row, server, trace)?;
                let known = results.line(point, &row.name);
                if known.is_some_and(|line| line.programs == programs && line.status == "ok") {
                    continue;
                }
                progress.say(&format!(
                    "{number} of {all}: {}, {}",
                    row.name,
                    point.told()
                ));
                let line = self.run(point, row, server, trace, interrupt)?;
                if line.status != "ok" {
                    troubles += 1;
                    progress.say(&format!("{}: {}", row.name, line.status));
                }
                results.put(Line { programs, ..line })?;
            }
        }
        Ok(troubles)
    }

    /// The trace of a machine, made anew: it is the same each time.
    fn trace(&self, machine: &Machine) -> Result<PathBuf> {
        let out = self.tree.at(&self.out);
        fs::create_dir_all(&out)
            .with_context(|| format!("cannot make the folder {}", out.display()))?;
        let trace = self.out.join(format!("demo-{}.csv", machine.cpus));
        let mut command = job::call(self.tree, self.tree.program("faasbench"));
        command
            .args([
                "gen",
                "table1-artefact",
                "--load",
                "1.0",
                "--scale",
                "0.25",
                "--seed",
                "5",
            ])
            .args(["--invocations", &self.invocations.to_string()])
            .args(["--cpus", &machine.cpus.to_string(), "--output"])
            .arg(&trace);
        match job::run(&mut command).context("faasbench is not built; run make first")? {
            0 => Ok(trace),
            status => Err(Failure::of_program("faasbench gen", status).into()),
        }
    }

    /// A digest of what decides about a result.
    fn programs(&self, row: &Row, server: &Server, trace: &Path) -> Result<String> {
        let mut sum = Sha256::new();
        let bench = self.tree.program("faasbench");
        let waste = self.tree.program("sfs_waste");
        let mut files = vec![bench.as_path(), &waste, trace, Path::new("vm/run")];
        if let Server::Program(path) = server {
            files.push(path);
        }
        for file in files {
            let bytes = fs::read(self.tree.at(file))
                .with_context(|| format!("cannot read {}; run make first", file.display()))?;
            sum.update(Sha256::digest(bytes));
        }
        sum.update(row.args());
        sum.update(self.kernel.as_deref().unwrap_or_default());
        let sum = sum.finalize();
        let digits = sum[..BYTES].iter().map(|byte| format!("{byte:02x}"));
        Ok(digits.collect())
    }

    /// Runs one VM.
    fn run(
        &self,
        point: &Point,
        row: &Row,
        server: &Server,
        trace: &Path,
        interrupt: &Interrupt,
    ) -> Result<Line> {
        if server.is_simulated() {
            refuse!(
                "{} is simulated: it has neither switches nor a kernel that cost",
                row.name
            );
        }
        let out = self.out.join(point.folder()).join(&row.name);
        let folder = self.tree.at(&out);
        // What an earlier run left would pass for this one's.
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", folder.display()))?;
            }
            _ => {}
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let mut command = self.vm(point, server, row.scheduler(), &out)?;
        command
            .args(["--in", &format!("{}:/demo.csv", trace.display()), "--"])
            .args(["faasbench", "run", "--trace", "/demo.csv", "--out", "/out"])
            .args(["--scheduler", row.given(), "--name", &row.name])
            .args(["--cpus", &point.machine.cpus.to_string()])
            .args(["--refill", &point.refill()]);
        if !row.args().is_empty() {
            command.args(["--scheduler-args", row.args()]);
        }
        let status = Job::start(&mut command)?.wait_and(interrupt, LOOK, || {})?;
        let summary = folder.join(format!("{}.json", row.name));
        if ![0, TOLD].contains(&status) || !summary.is_file() {
            bail!(
                "{} gave no result for {}: exit status {status}; {} says more",
                row.name,
                point.told(),
                out.join("errors").display()
            );
        }
        Ok(Line {
            commit: self.commit.clone(),
            ..Line::of(point, &row.name, &json::read(&summary)?)
        })
    }

    /// The call of `vm/run` up to the files of the task; its messages go to `errors` in `out`.
    pub fn vm(&self, point: &Point, server: &Server, name: &str, out: &Path) -> Result<Command> {
        let errors = self.tree.at(out.join("errors"));
        let file =
            File::create(&errors).with_context(|| format!("cannot write {}", errors.display()))?;
        let again = file.try_clone().context("cannot share a file")?;
        let mut command = job::call_tied(self.tree, "vm/run");
        command
            .args(["--accel", "icount", "--shift", &point.shift.to_string()])
            .args(point.machine.option)
            .args([
                "--quiet",
                "--timeout",
                &self.timeout_s.to_string(),
                "--console",
            ])
            .arg(out.join("console"))
            .args(self.kernel.iter().flat_map(|kernel| ["--kernel", kernel]))
            .args(["--env", "FAASBENCH_ACCEL=icount", "--in"])
            .arg(self.tree.program("faasbench"))
            .arg("--in")
            .arg(self.tree.program("sfs_waste"))
            .args(["--out", &format!("/out:{}", out.display())]);
        if let Server::Program(path) = server {
            command.args(["--in", &format!("{}:/bin/{name}", path.display())]);
        }
        command.stdout(file).stderr(again);
        Ok(command)
    }
}
