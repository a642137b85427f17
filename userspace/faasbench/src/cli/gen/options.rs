//! Options of the workloads of `faasbench gen`.

use super::super::choices::IoAt;
use super::super::{between, factor, kind, mean_ms};
use anyhow::{bail, Context, Result};
use clap::Args;
use faas_data::kind::{Blocking, Work};
use faas_data::output::{note, Sink};
use faas_data::trace::{self, Invocation};
use faas_workload::arrivals::{Arrivals, Bursts, Spikes};
use faas_workload::convert::azure;
use faas_workload::distribution::{ByDuration, Distribution};
use faas_workload::files;
use faas_workload::functions::{Functions, Popularity, MAX_FUNCTIONS, WITHIN_CV};
use faas_workload::io::Io;
use faas_workload::kinds;
use faas_workload::random::Random;
use faas_workload::table1::Table1;
use faas_workload::{describe, stream, Amount, Durations, Workload, MAX_INVOCATIONS};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Number of functions with --popularity skewed, unless --functions is given.
const SKEWED_FUNCTIONS: u32 = 50;

/// Options of all workloads, and the mean to scale a sample to; not for workloads
/// with a mean of their own.
#[derive(Debug, Args)]
pub(in crate::cli) struct Scalable {
    /// Scale all durations, including I/O, so that these invocations have this
    /// mean service time (0.001 to 1000000); a few thousand draws from a
    /// long-tailed distribution may be far from its mean
    #[arg(long, value_name = "MS", value_parser = mean_ms, conflicts_with = "scale")]
    pub(super) mean_ms: Option<f64>,
    #[command(flatten)]
    pub(super) common: Common,
}

/// Options of all workloads.
#[derive(Debug, Args)]
pub(in crate::cli) struct Common {
    /// Number of invocations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_INVOCATIONS)))]
    pub(super) invocations: u32,
    /// Load to offer, as a share of the capacity of the CPUs (0.001 to 100), or
    /// own: the rate of the workload's source (classes, w1, w2, w3)
    #[arg(long, default_value = "1.0", value_parser = load)]
    load: Load,
    /// Factor on all durations, including I/O (0.001 to 1000)
    #[arg(long, default_value = "1.0", value_parser = factor)]
    pub(super) scale: f64,
    /// Seed of the random numbers
    #[arg(long, default_value = "1", value_name = "X")]
    pub(super) seed: u64,
    /// Number of CPUs that the load refers to
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: u32,
    /// The trace to write; - is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten, next_help_heading = "Arrivals")]
    arrivals: ArrivalArgs,
    #[command(flatten, next_help_heading = "Functions")]
    pub(super) functions: FunctionArgs,
    #[command(flatten, next_help_heading = "I/O and classes")]
    pub(super) io: IoArgs,
    #[command(flatten, next_help_heading = "What functions do")]
    pub(super) kinds: KindArgs,
}

#[derive(Debug, Args)]
struct ArrivalArgs {
    /// poisson, uniform (constant gaps), bursty (Poisson at a rate that jumps),
    /// replay:FILE (the gaps of a trace, or of a file of times, one per line),
    /// or azure:FILE (those of 100 applications with more than 200 invocations
    /// in Azure's file of invocations, as in the SFS paper)
    #[arg(long, default_value = "poisson", value_name = "HOW", value_parser = arrivals)]
    arrivals: Kind,
    /// bursty: rate in a burst / rate outside (1 to 1000)
    #[arg(long, default_value = "10", value_name = "X", value_parser = burst_factor)]
    burst_factor: f64,
    /// bursty: mean duration of a burst, in mean gaps between invocations
    #[arg(long, default_value = "20", value_name = "GAPS", value_parser = gaps)]
    burst_gaps: f64,
    /// bursty: mean duration of the time between bursts, in mean gaps
    #[arg(long, default_value = "180", value_name = "GAPS", value_parser = gaps)]
    quiet_gaps: f64,
    /// Number of spikes: groups that arrive at once, in addition to --arrivals
    #[arg(long, value_name = "N", requires = "spike_invocations", value_parser = clap::value_parser!(u32).range(1..))]
    spikes: Option<u32>,
    /// Number of invocations in each spike, taken from --invocations
    #[arg(long, value_name = "M", requires = "spikes", value_parser = clap::value_parser!(u32).range(2..))]
    spike_invocations: Option<u32>,
}

#[derive(Debug, Args)]
pub(super) struct FunctionArgs {
    /// Number of functions, each with its own typical duration (1 to 100000);
    /// default: each class of durations is a function
    #[arg(long, value_name = "F", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_FUNCTIONS)))]
    functions: Option<u32>,
    /// zipf:S (share of the k-th ~ 1 / k^S), skewed (one function has 90 %, the
    /// others, 49 by default, have the rest) or uniform
    #[arg(long, value_name = "HOW", value_parser = popularity)]
    popularity: Option<Popularity>,
    /// Coefficient of variation within a function (0 to 10); default: 1, which
    /// is about Azure's
    #[arg(long, value_name = "CV", value_parser = cv)]
    within_cv: Option<f64>,
}

#[derive(Debug, Args)]
pub(super) struct IoArgs {
    /// Share of the invocations that block (0 to 1; the SFS paper has 0.75)
    #[arg(long, default_value = "0", value_name = "P", value_parser = share)]
    pub(super) io_share: f64,
    /// Minimum and maximum total time blocked, in milliseconds
    #[arg(long, default_value = "10..100", value_name = "LOW..HIGH", value_parser = range_ms)]
    io_ms: (f64, f64),
    /// When an invocation blocks
    #[arg(long, default_value = "start", value_name = "WHEN")]
    io_at: IoAt,
    /// Class LS for functions with a mean service time up to this many
    /// microseconds, LD for the others; default: no class
    #[arg(long, value_name = "US")]
    pub(super) class_split_us: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct KindArgs {
    /// Kind of work of functions: one, or several separated by commas that
    /// functions use in turn; default: `run` decides
    #[arg(long, value_parser = kind::<Work>(), value_delimiter = ',', value_name = "KIND")]
    pub(super) work: Vec<Work>,
    /// Kind of blocking of functions, in the same form
    #[arg(long, value_parser = kind::<Blocking>(), value_delimiter = ',', value_name = "KIND")]
    io_kind: Vec<Blocking>,
}

/// The value of --arrivals.
#[derive(Debug, Clone)]
enum Kind {
    Poisson,
    Uniform,
    Bursty,
    Replay(PathBuf),
    Azure(PathBuf),
}

/// The value of --load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Load {
    /// The rate of the workload's source.
    Own,
    /// A share of the CPUs' capacity.
    Share(f64),
}

impl Scalable {
    /// Writes a trace with these durations.
    pub(super) fn write(&self, distribution: Distribution) -> Result<()> {
        let durations = self.common.durations(distribution)?;
        self.common.write_with(&*durations, self.mean_ms)
    }
}

impl Common {
    /// Writes a trace with these durations, unscaled.
    pub(super) fn write(&self, distribution: Distribution) -> Result<()> {
        self.write_with(&*self.durations(distribution)?, None)
    }

    /// Writes the trace, scaled to a mean service time of `mean_ms` if given.
    pub(super) fn write_with(&self, durations: &dyn Durations, mean_ms: Option<f64>) -> Result<()> {
        self.write_made(durations, mean_ms, None, |_| {})
    }

    /// The same with other arrivals, if given, and with the last word to
    /// `finish`, which keeps CPU times and arrivals.
    pub(super) fn write_made(
        &self,
        durations: &dyn Durations,
        mean_ms: Option<f64>,
        arrivals: Option<Arrivals>,
        finish: impl Fn(&mut [Invocation]),
    ) -> Result<()> {
        let arrivals = match arrivals {
            Some(given) => given,
            None => self.arrivals.read(self.seed, self.invocations)?,
        };
        let workload = Workload {
            durations,
            arrivals,
            spikes: self.arrivals.spikes(),
            io: self.io.io(self.scale),
            class_split_us: self.io.class_split_us,
            mean_us: mean_ms.map(|ms| ms * 1e3),
        };
        let sink = Sink::open(&self.output)?;
        let mut invocations = workload.make(Amount {
            invocations: self.invocations,
            load: self.load(durations)?,
            cpus: self.cpus,
            seed: self.seed,
        })?;
        finish(&mut invocations);
        kinds::assign(&mut invocations, &self.kinds.work, &self.kinds.io_kind);
        sink.commit(trace::to_csv(&invocations).as_bytes())?;
        note(&describe(&invocations, self.cpus));
        Ok(())
    }

    /// The load to offer.
    fn load(&self, durations: &dyn Durations) -> Result<f64> {
        match self.load {
            Load::Share(share) => Ok(share),
            Load::Own => durations
                .own_load(self.cpus)
                .context("this workload has no rate of its own: want a number for --load"),
        }
    }

    /// Whether arrivals were asked for.
    pub(super) fn has_arrivals(&self) -> bool {
        !matches!(self.arrivals.arrivals, Kind::Poisson)
    }

    /// The durations, and their functions.
    pub(super) fn durations(&self, distribution: Distribution) -> Result<Box<dyn Durations>> {
        let scale = self.scale;
        let Some(count) = self.functions.count()? else {
            return Ok(match distribution {
                Distribution::Table1(version) => Box::new(Table1 { version, scale }),
                distribution => Box::new(ByDuration {
                    distribution,
                    scale,
                }),
            });
        };
        Ok(Box::new(Functions::new(
            count,
            self.functions.popularity.unwrap_or(Popularity::Uniform),
            &distribution,
            scale,
            self.functions.within_cv.unwrap_or(WITHIN_CV),
            Random::stream(self.seed, stream::FUNCTIONS),
        )))
    }
}

impl ArrivalArgs {
    fn read(&self, seed: u64, invocations: u32) -> Result<Arrivals> {
        Ok(match &self.arrivals {
            Kind::Poisson => Arrivals::Poisson,
            Kind::Uniform => Arrivals::Uniform,
            Kind::Bursty => Arrivals::Bursty(Bursts {
                factor: self.burst_factor,
                burst_gaps: self.burst_gaps,
                quiet_gaps: self.quiet_gaps,
            }),
            Kind::Replay(path) => Arrivals::Replay(files::gaps_us(path)?),
            Kind::Azure(path) => Arrivals::Replay(azure_gaps(path, seed, invocations)?),
        })
    }

    fn spikes(&self) -> Option<Spikes> {
        Some(Spikes {
            count: self.spikes?,
            invocations: self.spike_invocations?,
        })
    }
}

impl FunctionArgs {
    /// The number of functions, unless they are classes of durations.
    pub(super) fn count(&self) -> Result<Option<u32>> {
        match (self.functions, self.popularity) {
            (Some(1), Some(Popularity::Skewed)) => {
                bail!("--popularity skewed needs 2 functions or more")
            }
            (None, Some(Popularity::Skewed)) => Ok(Some(SKEWED_FUNCTIONS)),
            (None, Some(_)) => bail!("--popularity needs --functions, except with skewed"),
            (None, None) if self.within_cv.is_some() => bail!("--within-cv needs --functions"),
            (count, _) => Ok(count),
        }
    }
}

impl IoArgs {
    fn io(&self, scale: f64) -> Option<Io> {
        (self.io_share > 0.0).then_some(Io {
            share: self.io_share,
            low_us: self.io_ms.0 * 1e3 * scale,
            high_us: self.io_ms.1 * 1e3 * scale,
            place: self.io_at.into(),
        })
    }
}

/// The gaps of the SFS paper's sample of applications, as many as
/// `invocations` need or as there are.
fn azure_gaps(path: &Path, seed: u64, invocations: u32) -> Result<Vec<u64>> {
    let name = path.display().to_string();
    let file = open(path)?;
    let first = (invocations as usize).max(2);
    let sample = azure::arrivals::of_applications(&name, file, seed, first)?;
    note(&format!(
        "{name}: the first {} arrivals of {} of {} applications with more than {} invocations; {} rows skipped",
        sample.arrivals.len(),
        sample.sources,
        sample.eligible,
        azure::arrivals::MORE_THAN,
        sample.skipped,
    ));
    Ok(sample.gaps_us())
}

/// Opens an input file.
pub(super) fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

fn load(text: &str) -> Result<Load, String> {
    match text {
        "own" => Ok(Load::Own),
        share => super::super::load(share)
            .map(Load::Share)
            .map_err(|error| format!("{error}, or own")),
    }
}

fn arrivals(text: &str) -> Result<Kind, String> {
    let (kind, file) = match text.split_once(':') {
        Some((kind, file)) if !file.is_empty() => (kind, Some(file)),
        _ => (text, None),
    };
    match (kind, file) {
        ("poisson", None) => Ok(Kind::Poisson),
        ("uniform", None) => Ok(Kind::Uniform),
        ("bursty", None) => Ok(Kind::Bursty),
        ("replay", Some(file)) => Ok(Kind::Replay(file.into())),
        ("azure", Some(file)) => Ok(Kind::Azure(file.into())),
        _ => Err("want poisson, uniform, bursty, replay:FILE or azure:FILE".to_string()),
    }
}

fn popularity(text: &str) -> Result<Popularity, String> {
    match (text, text.strip_prefix("zipf:")) {
        ("skewed", _) => Ok(Popularity::Skewed),
        ("uniform", _) => Ok(Popularity::Uniform),
        (_, Some(exponent)) => between(exponent, 0.0, 10.0).map(Popularity::Zipf),
        _ => Err("want zipf:S, skewed or uniform".to_string()),
    }
}

/// Two numbers of milliseconds, as `10..100`.
pub(super) fn range_ms(text: &str) -> Result<(f64, f64), String> {
    let parts = text.split_once("..");
    let range = parts.and_then(|(low, high)| Some((ms(low).ok()?, ms(high).ok()?)));
    let ordered = range.filter(|(low, high)| low <= high);
    ordered.ok_or_else(|| "want LOW..HIGH as 10..100, from 0.001 to 1000000".to_string())
}

pub(super) fn ms(text: &str) -> Result<f64, String> {
    between(text, 0.001, 1e6)
}

pub(super) fn us(text: &str) -> Result<f64, String> {
    between(text, 1.0, 1e12)
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    between(text, 0.0, 1.0)
}

fn cv(text: &str) -> Result<f64, String> {
    between(text, 0.0, 10.0)
}

pub(super) fn mu(text: &str) -> Result<f64, String> {
    between(text, -20.0, 10.0)
}

pub(super) fn sigma(text: &str) -> Result<f64, String> {
    between(text, 0.001, 10.0)
}

fn burst_factor(text: &str) -> Result<f64, String> {
    between(text, 1.0, 1000.0)
}

fn gaps(text: &str) -> Result<f64, String> {
    between(text, 0.01, 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_and_popularities_are_read() {
        assert!(matches!(arrivals("bursty"), Ok(Kind::Bursty)));
        assert!(
            matches!(arrivals("replay:a:b"), Ok(Kind::Replay(path)) if path.as_os_str() == "a:b")
        );
        assert!(matches!(arrivals("azure:f"), Ok(Kind::Azure(_))));
        assert_eq!(load("own"), Ok(Load::Own));
        assert_eq!(load("0.9"), Ok(Load::Share(0.9)));
        assert!(load("x").unwrap_err().ends_with(", or own"));
        assert_eq!(popularity("zipf:1.1"), Ok(Popularity::Zipf(1.1)));
        for bad in [
            "",
            "zipf",
            "zipf:",
            "zipf:-1",
            "zipf:nan",
            "replay:",
            "replay",
            "azure:",
            "poisson:x",
        ] {
            assert!(arrivals(bad).is_err() && popularity(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_are_in_order() {
        assert_eq!(range_ms("10..100"), Ok((10.0, 100.0)));
        assert_eq!(range_ms("0.5...7"), Ok((0.5, 0.7)));
        for bad in ["", "..", "1", "1..", "2..1", "0..1", "1..nan", "1-2"] {
            assert!(range_ms(bad).is_err(), "{bad}");
        }
    }
}
