//! Workloads of the papers that are more than a distribution of durations.

use super::super::choices::Mix;
use super::options::{open, us, Common, Scalable};
use anyhow::{bail, Context, Result};
use clap::Args;
use faas_data::output::note;
use faas_workload::arrivals::Arrivals;
use faas_workload::convert::azure;
use faas_workload::distribution::Distribution;
use faas_workload::hermes::{self, Hermes};
use faas_workload::openlambda;
use faas_workload::table1::Version;
use faas_workload::thesis::{Thesis, Workload};
use std::path::PathBuf;

/// fib, md and sa.
pub(super) fn openlambda(sample: &Scalable) -> Result<()> {
    let common = &sample.common;
    if !common.kinds.work.is_empty() {
        bail!("openlambda has its own kinds of work and takes no --work");
    }
    refuse_functions(common, "openlambda")?;
    let durations = common.durations(Distribution::Table1(Version::Text))?;
    let finish = |made: &mut [_]| openlambda::assign(made, common.seed);
    common.write_made(&*durations, sample.mean_ms, None, finish)
}

/// W1 to W3.
pub(super) fn thesis(common: &Common, workload: Workload) -> Result<()> {
    let name = format!("{workload:?}").to_lowercase();
    refuse_functions(common, &name)?;
    if common.io.io_share > 0.0 {
        bail!("{name} has waits of its own and takes no --io-share");
    }
    let thesis = Thesis::new(workload, common.scale);
    common.write_made(&thesis, None, None, |made| thesis.add_starts(made))
}

/// Refuses options about functions for a workload that has its own.
fn refuse_functions(common: &Common, name: &str) -> Result<()> {
    if common.functions.count()?.is_some() {
        bail!("{name} has its own functions and takes no --functions or --popularity");
    }
    Ok(())
}

#[derive(Debug, Args)]
pub(in crate::cli) struct HermesArgs {
    /// Which of the five
    #[arg(long, value_name = "WHICH")]
    mix: Mix,
    /// Azure's file of invocations, for ms-trace and
    /// homogeneous-execution-times: their arrivals and functions
    #[arg(long, value_name = "FILE")]
    azure: Option<PathBuf>,
    /// Draw log-normal times longer than this again, in microseconds, before
    /// --scale; the default, eleven days, is no limit
    #[arg(long, default_value = "1000000000000", value_name = "US", value_parser = us)]
    max_us: f64,
    #[command(flatten)]
    sample: Scalable,
}

impl HermesArgs {
    /// Writes the trace.
    pub(super) fn write(&self) -> Result<()> {
        let common = &self.sample.common;
        refuse_functions(common, "hermes")?;
        let mix = hermes::Mix::from(self.mix);
        let durations = Hermes::new(mix, common.scale, self.max_us)?;
        if mix.needs_trace() {
            return self.write_traced(&durations);
        }
        if self.azure.is_some() {
            bail!("this mix has Poisson arrivals and takes no --azure");
        }
        common.write_with(&durations, self.sample.mean_ms)
    }

    /// With the arrivals and functions of Azure's file.
    fn write_traced(&self, durations: &Hermes) -> Result<()> {
        let common = &self.sample.common;
        let path = self.azure.as_deref().context(
            "this mix takes its arrivals from Azure's file of invocations: name it with --azure",
        )?;
        if common.has_arrivals() {
            bail!("this mix has the arrivals of --azure and takes no --arrivals");
        }
        let name = path.display().to_string();
        let count = common.invocations as usize;
        let sample = azure::arrivals::of_functions(&name, open(path)?, common.seed, count)?;
        note(&format!(
            "{name}: {count} arrivals of {} of {} functions; {} rows skipped",
            sample.sources, sample.eligible, sample.skipped,
        ));
        let gaps = sample.gaps_us();
        if gaps.iter().sum::<u64>() == 0 {
            bail!("{name}: its arrivals are at the same time: want more invocations");
        }
        let finish = |made: &mut [faas_data::trace::Invocation]| {
            for (one, (_, source)) in made.iter_mut().zip(&sample.arrivals) {
                one.function = hermes::name(*source);
            }
        };
        common.write_made(
            durations,
            self.sample.mean_ms,
            Some(Arrivals::Replay(gaps)),
            finish,
        )
    }
}
