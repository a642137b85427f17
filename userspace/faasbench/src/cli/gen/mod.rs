//! `faasbench gen`.

use super::choices::IoAt;
use super::{between, factor, kind, load, mean_ms};
use anyhow::{bail, Result};
use clap::{Args, Subcommand};
use faas_data::kind::{Blocking, Work};
use faas_data::output::{note, Sink};
use faas_data::trace;
use faas_workload::applications::Applications;
use faas_workload::arrivals::{Arrivals, Bursts, Spikes};
use faas_workload::distribution::{ByDuration, Distribution, Lognormal};
use faas_workload::files;
use faas_workload::functions::{Functions, Popularity, MAX_FUNCTIONS, WITHIN_CV};
use faas_workload::io::Io;
use faas_workload::kinds;
use faas_workload::random::Random;
use faas_workload::table1::Table1;
use faas_workload::{describe, stream, Amount, Durations, Workload, MAX_INVOCATIONS};
use std::path::PathBuf;

/// Number of functions with --popularity skewed, unless --functions is given.
const SKEWED_FUNCTIONS: u32 = 50;

#[derive(Debug, Subcommand)]
pub(super) enum Gen {
    /// Table I of the SFS paper: 83 % short functions, a few 50 times longer
    ///
    /// Durations are those of fib(20) to fib(35): 13 to 2344 ms, mean 386 ms,
    /// none from 346 to 1425 ms. SFS's slice (mean service time / load) lands
    /// in this gap, which flatters SFS. Of the other workloads only bimodal has
    /// such a gap.
    Table1(Scalable),
    /// Log-normal, fitted to Azure's functions: very long tail, mean 11 s
    ///
    /// Median 684 ms. Parameters: Hermes (Kaffes et al., arXiv 2111.07226),
    /// fitted to Azure Functions 2019.
    Lognormal(LognormalArgs),
    /// Exponential, as in M/M/c
    Exponential(ExponentialArgs),
    /// Uniform: no duration is special
    Uniform(UniformArgs),
    /// Two kinds of functions, short and long, with a gap between
    Bimodal(BimodalArgs),
    /// Durations drawn from a file of measurements
    Empirical(EmpiricalArgs),
    /// Applications in classes: five latency-sensitive, five latency-desirable
    ///
    /// The structure is that of FaaSched (Panda and Sarangi, arXiv 2303.06473).
    /// The built-in service times and rates are our own, because the paper's
    /// Table II was not available; --file replaces them.
    Classes(ClassesArgs),
}

#[derive(Debug, Args)]
pub(super) struct ClassesArgs {
    /// The applications, one line each: application,class,service_ms,cv,rate;
    /// default: the built-in ones
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    sample: Scalable,
}

#[derive(Debug, Args)]
pub(super) struct LognormalArgs {
    /// Mean of the logarithm of the duration in seconds (-20 to 10)
    #[arg(long, default_value_t = Lognormal::MU, allow_negative_numbers = true, value_parser = mu)]
    mu: f64,
    /// Standard deviation of that logarithm (0.001 to 10)
    #[arg(long, default_value_t = Lognormal::SIGMA, value_parser = sigma)]
    sigma: f64,
    /// Redraw durations shorter than this, in microseconds, before --scale
    #[arg(long, default_value = "1", value_name = "US", value_parser = us)]
    min_us: f64,
    /// Redraw durations longer than this, in microseconds, before --scale; the
    /// default, eleven days, is no limit
    #[arg(long, default_value = "1000000000000", value_name = "US", value_parser = us)]
    max_us: f64,
    #[command(flatten)]
    sample: Scalable,
}

#[derive(Debug, Args)]
pub(super) struct ExponentialArgs {
    /// Mean in milliseconds; the default is Table I's (0.001 to 1000000)
    #[arg(long, default_value = "386", value_name = "MS", value_parser = ms)]
    mean_ms: f64,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(super) struct UniformArgs {
    /// Shortest and longest in milliseconds; the default has Table I's mean
    #[arg(long, default_value = "1..771", value_name = "LOW..HIGH", value_parser = range_ms)]
    range_ms: (f64, f64),
    #[command(flatten)]
    sample: Scalable,
}

#[derive(Debug, Args)]
pub(super) struct BimodalArgs {
    /// Mean of the short ones in milliseconds (0.001 to 1000000)
    #[arg(long, default_value = "50", value_name = "MS", value_parser = ms)]
    short_ms: f64,
    /// Mean of the long ones in milliseconds (0.001 to 1000000)
    #[arg(long, default_value = "2000", value_name = "MS", value_parser = ms)]
    long_ms: f64,
    /// Share of the long ones (0 to 1); the default is the paper's
    #[arg(long, default_value = "0.17", value_name = "P", value_parser = share)]
    long_share: f64,
    /// Each kind is uniform within this share of its mean to both sides (0 to
    /// 1)
    #[arg(long, default_value = "0.1", value_name = "P", value_parser = share)]
    spread: f64,
    #[command(flatten)]
    sample: Scalable,
}

#[derive(Debug, Args)]
pub(super) struct EmpiricalArgs {
    /// The durations, one per line: in microseconds, or with a unit such as
    /// 1.5ms
    #[arg(long, value_name = "FILE")]
    durations: PathBuf,
    #[command(flatten)]
    sample: Scalable,
}

/// Options of all workloads, and the mean to scale a sample to; not for workloads
/// with a mean of their own.
#[derive(Debug, Args)]
pub(super) struct Scalable {
    /// Scale all durations, including I/O, so that these invocations have this
    /// mean service time (0.001 to 1000000); a few thousand draws from a
    /// long-tailed distribution may be far from its mean
    #[arg(long, value_name = "MS", value_parser = mean_ms, conflicts_with = "scale")]
    mean_ms: Option<f64>,
    #[command(flatten)]
    common: Common,
}

/// Options of all workloads.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Number of invocations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_INVOCATIONS)))]
    invocations: u32,
    /// Load to offer, as a share of the capacity of the CPUs (0.001 to 100)
    #[arg(long, default_value = "1.0", value_parser = load)]
    load: f64,
    /// Factor on all durations, including I/O (0.001 to 1000)
    #[arg(long, default_value = "1.0", value_parser = factor)]
    scale: f64,
    /// Seed of the random numbers
    #[arg(long, default_value = "1", value_name = "X")]
    seed: u64,
    /// Number of CPUs that the load refers to
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: u32,
    /// The trace to write; - is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten, next_help_heading = "Arrivals")]
    arrivals: ArrivalArgs,
    #[command(flatten, next_help_heading = "Functions")]
    functions: FunctionArgs,
    #[command(flatten, next_help_heading = "I/O and classes")]
    io: IoArgs,
    #[command(flatten, next_help_heading = "What functions do")]
    kinds: KindArgs,
}

#[derive(Debug, Args)]
struct ArrivalArgs {
    /// poisson, uniform (constant gaps), bursty (Poisson at a rate that jumps),
    /// or replay:FILE (the gaps of a trace, or of a file of times, one per
    /// line)
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
struct FunctionArgs {
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
struct IoArgs {
    /// Share of the invocations that block (0 to 1; the SFS paper has 0.75)
    #[arg(long, default_value = "0", value_name = "P", value_parser = share)]
    io_share: f64,
    /// Minimum and maximum total time blocked, in milliseconds
    #[arg(long, default_value = "10..100", value_name = "LOW..HIGH", value_parser = range_ms)]
    io_ms: (f64, f64),
    /// When an invocation blocks
    #[arg(long, default_value = "start", value_name = "WHEN")]
    io_at: IoAt,
    /// Class LS for functions with a mean service time up to this many
    /// microseconds, LD for the others; default: no class
    #[arg(long, value_name = "US")]
    class_split_us: Option<u64>,
}

#[derive(Debug, Args)]
struct KindArgs {
    /// Kind of work of functions: one, or several separated by commas that
    /// functions use in turn; default: `run` decides
    #[arg(long, value_parser = kind::<Work>(), value_delimiter = ',', value_name = "KIND")]
    work: Vec<Work>,
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
}

impl Gen {
    /// Writes the trace.
    pub(super) fn execute(self) -> Result<()> {
        match self {
            Self::Table1(sample) => sample.write(Distribution::Table1),
            Self::Lognormal(args) => {
                let lognormal = Lognormal::new(args.mu, args.sigma, args.min_us, args.max_us)?;
                args.sample.write(Distribution::Lognormal(lognormal))
            }
            Self::Exponential(args) => args.common.write(Distribution::Exponential {
                mean_us: args.mean_ms * 1e3,
            }),
            Self::Uniform(args) => args.sample.write(Distribution::Uniform {
                low_us: args.range_ms.0 * 1e3,
                high_us: args.range_ms.1 * 1e3,
            }),
            Self::Bimodal(args) => args.sample.write(Distribution::Bimodal {
                short_us: args.short_ms * 1e3,
                long_us: args.long_ms * 1e3,
                long_share: args.long_share,
                spread: args.spread,
            }),
            Self::Empirical(args) => {
                let all = files::times_us(&args.durations)?;
                args.sample.write(Distribution::Empirical(all))
            }
            Self::Classes(args) => args.write(),
        }
    }
}

impl ClassesArgs {
    fn write(&self) -> Result<()> {
        let common = &self.sample.common;
        if common.io.class_split_us.is_some() {
            bail!("classes has its own classes and takes no --class-split-us");
        }
        if common.functions.count()?.is_some() {
            bail!("classes has its own functions and takes no --functions or --popularity");
        }
        let scale = common.scale;
        let mix = match &self.file {
            Some(file) => Applications::read(file, scale)?,
            None => Applications::built_in(scale)?,
        };
        common.write_with(&mix, self.sample.mean_ms)
    }
}

impl Scalable {
    fn write(&self, distribution: Distribution) -> Result<()> {
        let durations = self.common.durations(distribution)?;
        self.common.write_with(&*durations, self.mean_ms)
    }
}

impl Common {
    /// Writes a trace with these durations, unscaled.
    fn write(&self, distribution: Distribution) -> Result<()> {
        self.write_with(&*self.durations(distribution)?, None)
    }

    /// Writes the trace, scaled to a mean service time of `mean_ms` if given.
    fn write_with(&self, durations: &dyn Durations, mean_ms: Option<f64>) -> Result<()> {
        let workload = Workload {
            durations,
            arrivals: self.arrivals.read()?,
            spikes: self.arrivals.spikes(),
            io: self.io.io(self.scale),
            class_split_us: self.io.class_split_us,
            mean_us: mean_ms.map(|ms| ms * 1e3),
        };
        let sink = Sink::open(&self.output)?;
        let mut invocations = workload.make(Amount {
            invocations: self.invocations,
            load: self.load,
            cpus: self.cpus,
            seed: self.seed,
        })?;
        kinds::assign(&mut invocations, &self.kinds.work, &self.kinds.io_kind);
        sink.commit(trace::to_csv(&invocations).as_bytes())?;
        note(&describe(&invocations, self.cpus));
        Ok(())
    }

    /// The durations, and their functions.
    fn durations(&self, distribution: Distribution) -> Result<Box<dyn Durations>> {
        let scale = self.scale;
        let Some(count) = self.functions.count()? else {
            return Ok(match distribution {
                Distribution::Table1 => Box::new(Table1 { scale }),
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
    fn read(&self) -> Result<Arrivals> {
        Ok(match &self.arrivals {
            Kind::Poisson => Arrivals::Poisson,
            Kind::Uniform => Arrivals::Uniform,
            Kind::Bursty => Arrivals::Bursty(Bursts {
                factor: self.burst_factor,
                burst_gaps: self.burst_gaps,
                quiet_gaps: self.quiet_gaps,
            }),
            Kind::Replay(path) => Arrivals::Replay(files::gaps_us(path)?),
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
    fn count(&self) -> Result<Option<u32>> {
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

fn arrivals(text: &str) -> Result<Kind, String> {
    match (text, text.strip_prefix("replay:")) {
        ("poisson", _) => Ok(Kind::Poisson),
        ("uniform", _) => Ok(Kind::Uniform),
        ("bursty", _) => Ok(Kind::Bursty),
        (_, Some(file)) if !file.is_empty() => Ok(Kind::Replay(file.into())),
        _ => Err("want poisson, uniform, bursty or replay:FILE".to_string()),
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
fn range_ms(text: &str) -> Result<(f64, f64), String> {
    let parts = text.split_once("..");
    let range = parts.and_then(|(low, high)| Some((ms(low).ok()?, ms(high).ok()?)));
    let ordered = range.filter(|(low, high)| low <= high);
    ordered.ok_or_else(|| "want LOW..HIGH as 10..100, from 0.001 to 1000000".to_string())
}

fn ms(text: &str) -> Result<f64, String> {
    between(text, 0.001, 1e6)
}

fn us(text: &str) -> Result<f64, String> {
    between(text, 1.0, 1e12)
}

fn share(text: &str) -> Result<f64, String> {
    between(text, 0.0, 1.0)
}

fn cv(text: &str) -> Result<f64, String> {
    between(text, 0.0, 10.0)
}

fn mu(text: &str) -> Result<f64, String> {
    between(text, -20.0, 10.0)
}

fn sigma(text: &str) -> Result<f64, String> {
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
        assert_eq!(popularity("zipf:1.1"), Ok(Popularity::Zipf(1.1)));
        for bad in [
            "", "zipf", "zipf:", "zipf:-1", "zipf:nan", "replay:", "replay",
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
