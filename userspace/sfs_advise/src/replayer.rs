//! One replay on the simulated kernel. The variables of the kernel half are those of a process, so
//! each replay has a process of its own: this program, in another role.

use std::env;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use anyhow::{ensure, Context, Result};
use clap::ValueEnum;
use faas_data::trace;
use serde::{Deserialize, Serialize};
use sfs_kernel_model::oddities::Oddities;
use sfs_kernel_model::topology;
use sfs_model::machine::Settings;
use sfs_model::replay::expenses::Expenses;
use sfs_model::replay::{replay, Other, Policy, Setup};

/// The first word of the command line in this role.
pub const ROLE: &str = "replay-for-advice";

/// What is replayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The trace, as CSV.
    pub trace: String,
    /// The policy's name.
    pub policy: String,
    /// Number of CPUs.
    pub cpus: u32,
    /// Other work: CPU time of a turn in us, sleep in us, and whether it is a kernel thread.
    pub others: Vec<(u64, u64, bool)>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// When each invocation ended since the start of the trace, us; none: it has not.
    pub ends_us: Vec<Option<u64>>,
    /// What is wrong with the run: invariants that were violated.
    pub findings: Vec<String>,
}

impl Job {
    /// Replays it in another process.
    ///
    /// # Errors
    /// If the process cannot be started, or fails.
    pub fn run(&self) -> Result<Replayed> {
        let own = env::current_exe().context("cannot find this program")?;
        let mut child = Command::new(own)
            .arg(ROLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the simulated kernel")?;
        let job = serde_json::to_vec(self).context("the job is no JSON")?;
        let given = child.stdin.take().map(|mut input| input.write_all(&job));
        let output = child.wait_with_output();
        let output = output.context("cannot wait for the simulated kernel")?;
        ensure!(
            output.status.success(),
            "the simulated kernel has failed under {}: {}",
            self.policy,
            output.status
        );
        given
            .transpose()
            .context("cannot write to the simulated kernel")?;
        serde_json::from_slice(&output.stdout).context("the simulated kernel's answer is broken")
    }

    fn replay(&self) -> Result<Replayed> {
        let invocations = trace::parse("trace", self.trace.as_bytes())?;
        let policy = Policy::from_str(&self.policy, false).map_err(anyhow::Error::msg)?;
        let cpus = self.cpus as usize;
        let others = self
            .others
            .iter()
            .map(|&(runs_us, sleeps_us, is_kernel)| Other {
                runs_us,
                sleeps_us,
                is_kernel,
            });
        let setup = Setup {
            trace: &invocations,
            cpus,
            policy,
            topology: topology::flat(cpus),
            // The CPU time that was seen has the start and the exit of each process.
            expenses: Expenses::NONE,
            is_named: true,
            others: others.collect(),
            settings: Settings {
                oddities: Some(Oddities::default()),
                ..Settings::default()
            },
        };
        let (outcome, records) = replay(&setup)?;
        Ok(Replayed {
            ends_us: records.iter().map(|one| one.end_us).collect(),
            findings: outcome.findings,
        })
    }
}

/// Replays the job on standard input, and writes what came of it to standard output.
///
/// # Errors
/// If there is no job, or the trace is not one for the simulated kernel.
pub fn serve() -> Result<()> {
    let mut text = Vec::new();
    io::stdin()
        .read_to_end(&mut text)
        .context("cannot read the job")?;
    let job: Job = serde_json::from_slice(&text).context("the job is broken")?;
    let answer = serde_json::to_vec(&job.replay()?).context("the answer is no JSON")?;
    io::stdout()
        .write_all(&answer)
        .context("cannot write the answer")
}
