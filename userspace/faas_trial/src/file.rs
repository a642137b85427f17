//! The file of a trial: what was measured, from which everything said can be computed again.
//!
//! It has no name of a host, user, program's place or address: only the fields of this
//! module. Numbers with fractions are rounded to few digits, so that they are read back as
//! they were written.

use crate::analysis::Said;
use crate::calibrate::{Capacity, Costs};
use crate::counters::Counts;
use crate::plan::{Plan, Row};
use anyhow::{bail, Context, Result};
use faas_data::trace::hex_sha256;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The format of the file.
pub const SCHEMA: &str = "faasbench.trial/1";

/// A file larger than this is no trial, in bytes.
const LARGEST: u64 = 1 << 30;

/// What a trial has measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of faasbench.
    pub version: String,
    /// What functions do.
    pub work: Work,
    /// What was to be run.
    pub plan: Plan,
    /// The machine.
    pub about: About,
    /// Seconds from the first to the last replay by the kernel's clock and by the hardware's;
    /// `None` if there is none.
    pub clocks_s: Option<[u64; 2]>,
    /// What it can do.
    pub capacity: Capacity,
    /// What small things cost; `None` if they could not be measured.
    pub costs: Option<Costs>,
    /// What was measured, block by block of the plan.
    pub blocks: Vec<Measured>,
}

/// What functions do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Each uses a fixed CPU time, however much it computes in it.
    CpuTime,
}

/// What is kept of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The model of its CPUs.
    pub cpu_model: String,
    /// CPUs that were used.
    pub cpus: u32,
    /// The kernel's release.
    pub kernel: String,
    /// Version of scx_sfs, as the kernel has it; `None` if it was never loaded.
    pub scx_sfs: Option<String>,
    /// The kernel's clock.
    pub clock: String,
    /// How the frequency is chosen; empty if it cannot be.
    pub governor: String,
    /// Whether cores run two threads, if known.
    pub smt: Option<bool>,
    /// Whether it is a virtual machine.
    pub is_virtual: bool,
    /// Whether its CPUs are emulated by a program.
    pub is_emulated: bool,
}

/// One block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// When each invocation arrived, in microseconds from the first moment of the replay.
    pub arrival_us: Vec<u64>,
    /// CPU time that each needs, in microseconds.
    pub service_us: Vec<u64>,
    /// The rows, in the order in which they ran.
    pub rows: Vec<Replayed>,
}

/// One replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// The row.
    pub row: Row,
    /// `ok`, or what went wrong with the scheduler.
    pub status: String,
    /// Rounds of the calibration in a millisecond of CPU time right before, all CPUs busy.
    pub speed: f64,
    /// Mean frequency before and after, in MHz, if the kernel tells it.
    pub frequency_mhz: [Option<f64>; 2],
    /// Share of CPU time that was used, from 0 to 1.
    pub busy: Option<f64>,
    /// Share of CPU time that the hypervisor took, from 0 to 1.
    pub steal: Option<f64>,
    /// Counters of all CPUs over the replay.
    pub counters: Counts,
    /// Mean delay of the load generator, in microseconds.
    pub late_us: f64,
    /// From arrival to completion, in microseconds; `None` for one that failed.
    pub turnaround_us: Vec<Option<u64>>,
    /// From arrival to the first run, in microseconds; `None` for one that failed.
    pub delay_us: Vec<Option<u64>>,
    /// CPU time used, in microseconds.
    pub cpu_us: Vec<u64>,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What was measured.
    pub trial: Trial,
    /// What follows from it.
    pub said: Said,
    /// SHA-256 of the two above, as compact JSON one after the other.
    pub sha256: String,
}

/// Rounds to six digits after the point. A value that is not finite becomes 0.
pub fn round(value: f64) -> f64 {
    if !value.is_finite() {
        return 0.0;
    }
    (value * 1e6).round() / 1e6
}

impl Kept {
    /// The file of a trial, with what follows from it.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn new(trial: Trial, said: Said) -> Result<Self> {
        let sha256 = digest(&trial, &said)?;
        Ok(Self {
            trial,
            said,
            sha256,
        })
    }

    /// The digest that fits its content.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn digest(&self) -> Result<String> {
        digest(&self.trial, &self.said)
    }

    /// Its text.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn text(&self) -> Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is no trial of this version.
    pub fn read(path: &Path) -> Result<Self> {
        let place = path.display();
        let size = std::fs::metadata(path).map_or(0, |found| found.len());
        if size > LARGEST {
            bail!("{place} is no trial: it has {} MiB", size >> 20);
        }
        let text = std::fs::read(path).with_context(|| format!("cannot read {place}"))?;
        let kept: Self = serde_json::from_slice(&text)
            .with_context(|| format!("{place} is no file of faasbench trial"))?;
        if kept.trial.schema != SCHEMA {
            bail!(
                "{place} has the format `{}`: want {SCHEMA}",
                faas_data::input::shorten(&kept.trial.schema, 40)
            );
        }
        Ok(kept)
    }
}

fn digest(trial: &Trial, said: &Said) -> Result<String> {
    let text = serde_json::to_string(trial)? + &serde_json::to_string(said)?;
    Ok(hex_sha256(text.as_bytes()))
}
