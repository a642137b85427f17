//! Replays what has no result yet.

use crate::columns::Column;
use crate::figures::Figures;
use crate::results::{Line, Results};
use crate::workloads::{Trace, Workload, MEAN_MS};
use anyhow::{bail, Context, Result};
use faas_data::summary::Summary;
use sfs_jobs::job;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_lab::bench::args::VmArgs;
use sfs_lab::bench::settings::{Machine, Size};
use sfs_lab::bench::{self, Settings, Source};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a digest that stand for the programs.
const BYTES: usize = 6;

/// What is to be measured.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The repository.
    pub tree: &'a Tree,
    /// The rows.
    pub workloads: Vec<&'static Workload>,
    /// The schedulers.
    pub columns: Vec<&'static Column>,
    /// The seeds of the traces. All rows have a result of the first one before any has one of the
    /// second.
    pub seeds: Vec<u64>,
    /// Only what has no result at all, of whatever programs.
    pub only_missing: bool,
    /// The folder for the runs.
    pub out: PathBuf,
    /// The folder of the published traces, which may be missing.
    pub traces: PathBuf,
    /// How the VMs are run.
    pub vms: &'a VmArgs,
    /// The commit of the programs.
    pub commit: String,
}

impl Plan<'_> {
    /// Measures it, and keeps each result at once.
    ///
    /// # Errors
    /// If a trace cannot be made, a row cannot be run, a result cannot be kept, or
    /// [`sfs_jobs::failure::Failure::Interrupted`]: what is measured is kept then, and the same call
    /// does the rest.
    pub fn carry_out(
        &self,
        results: &mut Results,
        progress: &Progress,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let programs = self.programs()?;
        let runs = self.seeds.len() * self.workloads.len();
        let mut number = 0;
        for &seed in &self.seeds {
            for workload in &self.workloads {
                number += 1;
                if workload.needs_traces() && !self.traces.is_dir() {
                    let (name, traces) = (workload.name, self.traces.display());
                    progress.say(&format!(
                        "{name} is skipped: it needs the published traces, and {traces} is not there; set TRACES"
                    ));
                    continue;
                }
                let columns = self.without_result(results, workload, seed, &programs);
                if columns.is_empty() {
                    continue;
                }
                progress.say(&format!(
                    "{}, seed {seed} ({number} of {runs})",
                    workload.name
                ));
                let lines = self.run(workload, seed, &columns, &programs, (progress, interrupt))?;
                for line in lines {
                    results.put(line)?;
                }
            }
        }
        Ok(())
    }

    /// The digest of what decides about each column's results.
    fn programs(&self) -> Result<HashMap<&'static str, String>> {
        let bench = self.digest_of(&self.tree.program("faasbench"))?;
        let digest = |column: &&'static Column| {
            let own = match column.program() {
                None => String::new(),
                Some(name) => self.digest_of(&self.program(name))?,
            };
            let args = column.args.unwrap_or_default();
            Ok((column.name, format!("{bench} {own} {args}")))
        };
        self.columns.iter().map(digest).collect()
    }

    /// The path of a scheduler's program, from the repository's root.
    fn program(&self, name: &str) -> PathBuf {
        let own = self.tree.program(name);
        match self.tree.is_program(&own) {
            true => own,
            false => self.tree.peers().join(name),
        }
    }

    fn digest_of(&self, program: &Path) -> Result<String> {
        let bytes = std::fs::read(self.tree.at(program))
            .with_context(|| format!("cannot read {}; run make first", program.display()))?;
        Ok(digest(&bytes))
    }

    /// What a result of these is kept under.
    fn key(workload: &Workload, programs: &str, machine: u16) -> String {
        digest(format!("{} {programs} {machine}", workload.definition()).as_bytes())
    }

    fn without_result(
        &self,
        results: &Results,
        workload: &Workload,
        seed: u64,
        programs: &HashMap<&'static str, String>,
    ) -> Vec<&'static Column> {
        let has_result = |column: &&&'static Column| {
            let line = results.line(workload.name, seed, column.name);
            let key = Self::key(workload, &programs[column.name], self.machine().of(seed));
            let line = line.filter(|line| !line.is_lost());
            line.is_some_and(|line| self.only_missing || line.programs == key)
        };
        let columns = self.columns.iter().filter(|column| !has_result(column));
        columns.copied().collect()
    }

    /// Replays one trace under these schedulers.
    fn run(
        &self,
        workload: &Workload,
        seed: u64,
        columns: &[&'static Column],
        programs: &HashMap<&'static str, String>,
        (progress, interrupt): (&Progress, &Interrupt),
    ) -> Result<Vec<Line>> {
        let rows = columns.iter().map(|column| column.row()).collect();
        let out = self.out.join(workload.name).join(format!("seed-{seed}"));
        let mut settings = Settings::new(rows, self.source(workload, seed, &out)?);
        settings.sandbox = workload.sandbox;
        settings.cpus = workload.cpus;
        settings.out = out;
        self.vms.apply(&mut settings);
        let machine = self.machine().of(seed);
        settings.machine = Machine::One(machine);
        let (folder, _) = bench::measure(self.tree, &settings, interrupt, progress)?;
        let line = |column: &&'static Column| {
            let path = self.tree.at(folder.result(column.name, "json"));
            let text =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let summary: Summary = serde_json::from_slice(&text)
                .with_context(|| format!("{} is no summary", path.display()))?;
            Ok(self.line(workload, seed, column, &summary, &programs[column.name]))
        };
        columns.iter().map(line).collect()
    }

    fn line(
        &self,
        workload: &Workload,
        seed: u64,
        column: &Column,
        summary: &Summary,
        programs: &str,
    ) -> Line {
        let scheduler = &summary.scheduler;
        let detail = match scheduler.detail.lines().next() {
            Some(line) => format!("{}: {line}", scheduler.status),
            None => scheduler.status.to_string(),
        };
        let line = Line {
            workload: workload.name.into(),
            seed,
            scheduler: column.name.into(),
            mean_slowdown: None,
            p99_slowdown: None,
            mean_ms: None,
            short_ms: None,
            long_ms: None,
            p999_ms: None,
            status: match summary.failed {
                0 => detail,
                failed => format!("{detail}, {failed} invocations failed"),
            },
            kernel: summary.kernel.clone(),
            machine: Some(self.machine().of(seed)),
            commit: self.commit.clone(),
            programs: Self::key(workload, programs, self.machine().of(seed)),
        };
        line.with(Figures::of(summary))
    }

    /// By default each seed has another machine: what else than the trace differs there belongs to
    /// the intervals.
    fn machine(&self) -> Machine {
        self.vms.perturb.unwrap_or(Machine::Seed)
    }

    /// The trace, made here if bench cannot make it.
    fn source(&self, workload: &Workload, seed: u64, out: &Path) -> Result<Source> {
        let made = |name: &str, load: &str, size: Size, options: &str| bench::Workload {
            name: name.into(),
            invocations: workload.invocations.to_string(),
            load: load.into(),
            size,
            seed: seed.to_string(),
            options: options.into(),
        };
        let mean = || Size::MeanMs(MEAN_MS.into());
        match workload.trace {
            Trace::Made(name, load, options) => {
                let made = made(name, load, mean(), options);
                return Ok(Source::Generated(made));
            }
            Trace::Scaled(name, factor) => {
                let made = made(name, "1.0", Size::Scale(factor.into()), "");
                return Ok(Source::Generated(made));
            }
            Trace::Single(_) | Trace::Azure(..) | Trace::List(_) => {}
        }
        let folder = self.tree.at(out);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
        let trace = out.join(format!("{}.trace.csv", workload.name));
        match workload.trace {
            Trace::Single(name) => self.make_single(workload, name, seed, &trace)?,
            _ => self.convert(workload, seed, &trace)?,
        }
        Ok(Source::File(trace))
    }

    /// Makes a trace whose invocations are all of one function.
    fn make_single(&self, workload: &Workload, name: &str, seed: u64, trace: &Path) -> Result<()> {
        let mut command = job::call(self.tree, self.tree.program("faasbench"));
        command
            .args(["gen", name, "--mean-ms", MEAN_MS, "--load", "1.0"])
            .args(["--invocations", &workload.invocations.to_string()])
            .args(["--cpus", &workload.cpus.to_string()])
            .args(["--seed", &seed.to_string(), "--output"]);
        succeed(workload, command.arg(trace))?;
        let path = self.tree.at(trace);
        let text = std::fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let named =
            with_one_function(&text).with_context(|| format!("{} is no trace", path.display()))?;
        std::fs::write(&path, named).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Converts a part of a published trace. Other seeds take other parts of the same length.
    fn convert(&self, workload: &Workload, seed: u64, trace: &Path) -> Result<()> {
        let first = workload.invocations;
        let skip = (seed - 1) * u64::from(first);
        let mut command = job::call(self.tree, self.tree.program("faasbench"));
        command.arg("convert");
        match workload.trace {
            Trace::Azure(minutes, options) => {
                let folder = self.traces.join("azure2019/500");
                command.args(["azure", "--minutes", minutes]);
                command.args(options.split_whitespace());
                command.args(["--cpus", &workload.cpus.to_string()]);
                command.args(["--seed", &seed.to_string()]);
                command
                    .arg("--invocations")
                    .arg(folder.join("invocations.csv"));
                command.arg("--durations").arg(folder.join("durations.csv"));
            }
            Trace::List(multiplier) => {
                command.args(["sfs", "--multiplier", multiplier]);
                command.arg(self.traces.join("sfs/test1.txt"));
            }
            _ => bail!("{} is not converted", workload.name),
        }
        command.args(["--skip", &skip.to_string(), "--first", &first.to_string()]);
        succeed(workload, command.arg("--output").arg(trace))
    }
}

/// Runs faasbench, which says itself what is wrong, if anything is.
fn succeed(workload: &Workload, command: &mut Command) -> Result<()> {
    let status = job::run(command).context("faasbench is not built; run make first")?;
    match status {
        0 => Ok(()),
        _ => bail!("faasbench cannot make the trace of {}", workload.name),
    }
}

/// A trace in which all invocations are of one function.
fn with_one_function(trace: &str) -> Result<Vec<u8>> {
    let mut reader = csv::Reader::from_reader(trace.as_bytes());
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = reader.headers()?.clone();
    let function = head.iter().position(|field| field == "function");
    let function = function.context("it has no functions")?;
    writer.write_record(&head)?;
    for record in reader.records() {
        let record = record?;
        let fields = record.iter().enumerate();
        writer.write_record(fields.map(|(index, field)| match index == function {
            true => "one",
            false => field,
        }))?;
    }
    Ok(writer.into_inner()?)
}

/// The beginning of a checksum, in hexadecimal digits.
fn digest(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    sum[..BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_get_one_name_and_the_rest_stays() {
        let trace = "arrival_us,function,phases\n5,a,cpu:1\n7,b,io:2;cpu:3\n";
        let named = with_one_function(trace).unwrap();
        let want = "arrival_us,function,phases\n5,one,cpu:1\n7,one,io:2;cpu:3\n";
        assert_eq!(String::from_utf8(named).unwrap(), want);
        with_one_function("a,b\n1,2\n").unwrap_err();
    }
}
