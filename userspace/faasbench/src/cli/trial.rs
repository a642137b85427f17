//! `faasbench trial` and `faasbench verify`.

use crate::run::Run;
use crate::scheduler::Scheduler;
use anyhow::{bail, Context, Result};
use clap::Args;
use faas_data::kind::Defaults;
use faas_data::output::{note, print, Output};
use faas_data::result;
use faas_data::trace::{to_csv, Invocation, Trace};
use faas_fixed::calibration::USELESS_PERCENT;
use faas_replay::cpus;
use faas_replay::setup::Sandboxes;
use faas_trial::conduct::{conduct, deadline, Outcome, Runner};
use faas_trial::file::{Kept, Trial};
use faas_trial::guard::Guard;
use faas_trial::machine::Machine;
use faas_trial::plan::{Plan, Row};
use faas_trial::{analysis, refuse, show, verify};
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct TrialArgs {
    /// Print the plan, and what speaks against a trial now; run nothing
    #[arg(long)]
    dry_run: bool,
    /// How long it may take, in minutes
    #[arg(long, default_value = "60", value_name = "MINUTES",
          value_parser = clap::value_parser!(u32).range(1..=1440))]
    minutes: u32,
    /// Loads, as shares of the measured capacity, with commas (0.05 to 2, four
    /// at most)
    #[arg(long, default_value = "0.7,0.9", value_name = "LIST", value_delimiter = ',',
          value_parser = share)]
    loads: Vec<f64>,
    /// Seed of the order and of the traces
    #[arg(long, default_value = "1", value_name = "X",
          value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    seed: u64,
    /// The file to keep
    #[arg(long, default_value = "trial.json", value_name = "FILE")]
    out: PathBuf,
    /// The program scx_sfs; default: in PATH or beside faasbench
    #[arg(long, default_value = "scx_sfs", value_name = "PATH")]
    scx_sfs: String,
    /// Keep the file without asking
    #[arg(long)]
    yes: bool,
    /// Let the guard press SysRq-S if the scheduler stays loaded after its
    /// process was killed
    #[arg(long)]
    sysrq: bool,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The file of a trial
    file: PathBuf,
}

fn share(text: &str) -> Result<f64, String> {
    let load = super::between(text, 0.05, 2.0)?;
    // In thousandths: the loads are compared, and written into a file.
    Ok((load * 1e3).round() / 1e3)
}

impl TrialArgs {
    /// Runs a trial, or prints its plan.
    pub(super) fn execute(self) -> Result<()> {
        let mut loads = self.loads.clone();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        if loads.len() != self.loads.len() || loads.len() > 4 {
            bail!("--loads wants one to four different loads, such as 0.7,0.9");
        }
        let plan = Plan::new(self.minutes, &loads, self.seed)?;
        print(show::plan(&plan).as_bytes())?;
        let reasons = self.reasons();
        if self.dry_run {
            for reason in &reasons {
                print(format!("Now it would refuse: {reason}.\n").as_bytes())?;
            }
            return Ok(());
        }
        if !reasons.is_empty() {
            bail!("no trial: {}", reasons.join("; "));
        }
        if !self.yes && !std::io::stdin().is_terminal() {
            bail!(
                "nobody can be asked whether to keep the file: give --yes, or run it on a terminal"
            );
        }
        // Whether it can be written is found out before an hour has passed; nothing is left
        // there if the trial is killed.
        drop(Output::create(&self.out)?);
        let trial = self.measure(plan)?;
        self.keep(trial)
    }

    /// What speaks against a trial now.
    fn reasons(&self) -> Vec<String> {
        let machine = Machine::this();
        let state = refuse::watch(&machine, nix::unistd::geteuid().is_root());
        let mut all = refuse::reasons(&machine, state);
        if let Err(error) = Scheduler::find(&self.scx_sfs, Some(OPS), "") {
            all.push(format!("{error:#}"));
        }
        all
    }

    /// Runs the plan under a guard.
    fn measure(&self, plan: Plan) -> Result<Trial> {
        let machine = Machine::this();
        let is_set = |name: &str| std::env::var_os(name).is_some();
        let own = std::process::id() as i32;
        let is_remote = refuse::is_remote(&machine, own, is_set);
        let guard = Guard::start(deadline(&plan), self.sysrq, is_remote)?;
        note(&format!("the guard is {}", guard.how));
        let cpus = cpus::usable().context("cannot list the CPUs")?;
        let mut runner = Replays {
            folder: guard.folder(),
            scx_sfs: &self.scx_sfs,
            cpus: cpus.len() as u32,
        };
        conduct(plan, &cpus, &mut runner, &note)
    }

    /// Shows a trial, and keeps its file if that is wanted.
    fn keep(&self, trial: Trial) -> Result<()> {
        verify::shape(&trial)?;
        let said = analysis::analyse(&trial);
        let kept = Kept::new(trial, said)?;
        let text = kept.text()?;
        let shown = show::holds(&kept.trial, text.len()) + &show::said(&kept.trial, &kept.said);
        print(shown.as_bytes())?;
        if !self.yes && !asked(&self.out)? {
            note("nothing is kept");
            return Ok(());
        }
        Output::create(&self.out)?.commit(text.as_bytes())?;
        note(&format!(
            "kept as {}; it is sent nowhere",
            self.out.display()
        ));
        Ok(())
    }
}

/// Asks whether to keep the file.
fn asked(path: &Path) -> Result<bool> {
    print(format!("\nKeep this as {}? [y/N] ", path.display()).as_bytes())?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

impl VerifyArgs {
    /// Computes a trial again.
    pub(super) fn execute(&self) -> Result<()> {
        let kept = Kept::read(&self.file)?;
        let wrong = verify::check(&kept);
        if !wrong.is_empty() {
            let count = wrong.len();
            for one in wrong {
                note(&one);
            }
            bail!(
                "{} does not agree with itself: {count} differences",
                self.file.display()
            );
        }
        let mut text = show::holds(&kept.trial, kept.text()?.len());
        text += &show::said(&kept.trial, &kept.said);
        text += "\nVerified: plan, traces, comparisons and verdict follow from the figures in the file.\n";
        print(text.as_bytes())
    }
}

/// The kernel's name for scx_sfs.
const OPS: &str = "sfs";

/// Replays as `faasbench run` does, in a folder that is removed.
struct Replays<'a> {
    folder: &'a Path,
    scx_sfs: &'a str,
    cpus: u32,
}

impl Replays<'_> {
    fn scheduler(&self, row: Row) -> Result<Scheduler> {
        match row {
            Row::Eevdf | Row::Again => Scheduler::find("eevdf", None, ""),
            Row::Renice => Scheduler::find("renice", None, ""),
            Row::ScxSfs => Scheduler::find(self.scx_sfs, Some(OPS), ""),
        }
    }
}

impl Runner for Replays<'_> {
    fn replay(&mut self, row: Row, trace: &[Invocation]) -> Result<Outcome> {
        let path = self.folder.join("trace.csv");
        Output::create(&path)?.commit(to_csv(trace).as_bytes())?;
        let name = "row".to_string();
        let run = Run {
            trace: path.clone(),
            scheduler: self.scheduler(row)?,
            args: String::new(),
            name: name.clone(),
            cpus: self.cpus,
            out: self.folder.to_path_buf(),
            accel: "native".to_string(),
            sandboxes: Some(Sandboxes::Process),
            defaults: Defaults::default(),
            refill: None,
            max_spread: USELESS_PERCENT,
            is_watched: false,
        };
        let summary = run.execute()?;
        let status = summary.scheduler.status;
        let invocations = Trace::read(&path)?.invocations;
        let records = result::read(&self.folder.join(format!("{name}.csv")), &invocations)?;
        if status != faas_data::summary::Status::Ok {
            note(&format!(
                "{}: {status}: {}",
                row.name(),
                summary.scheduler.detail
            ));
        }
        Ok(Outcome {
            status: status.to_string(),
            version: summary.scheduler.version,
            late_us: summary.arrival_lag_ms.map_or(0.0, |lag| lag.mean * 1e3),
            records,
        })
    }
}
