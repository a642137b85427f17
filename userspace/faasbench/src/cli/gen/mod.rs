//! `faasbench gen`.

mod options;
mod papers;

use anyhow::{bail, Result};
use clap::{Args, Subcommand};
use faas_workload::applications::Applications;
use faas_workload::distribution::{Distribution, Lognormal};
use faas_workload::files;
use faas_workload::table1::Version;
use faas_workload::thesis::Workload;
use options::{ms, mu, range_ms, share, sigma, us, Common, Scalable};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum Gen {
    /// Table I of the SFS paper: 83 % short functions, a few 50 times longer
    ///
    /// As printed: 40.6 % up to 50 ms, 9.8 % to 100, 6.8 % to 200, 22.7 % to
    /// 400 and 15.7 % from 1550 ms on, as fib(20) to fib(35) with the times of
    /// the artefact's list: 13 to 2344 ms, mean 414 ms, none from 346 to 1550
    /// ms. SFS's slice (mean service time / load) lands in this gap, which
    /// flatters SFS. Of the other workloads only table1-artefact and bimodal
    /// have such a gap.
    Table1(Scalable),
    /// The same with the frequencies of the SFS artefact's list of requests
    ///
    /// 40.6, 9.9, 7.3, 22.2 and 14.5 %, and durations uniform from the shortest
    /// to the longest fib(N) of a class: mean 386 ms, none from 346 to 1425 ms.
    /// The figures of this project up to November 2026 were measured with it.
    Table1Artefact(Scalable),
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
    #[command(override_usage = "\
faasbench gen empirical [OPTIONS] --durations <FILE> --invocations <N>
         --cpus <C>")]
    Empirical(EmpiricalArgs),
    /// FaaSched's applications: five latency-sensitive, five latency-desirable
    ///
    /// Service times and rates are those of Table II (Panda and Sarangi, arXiv
    /// 2303.06473): exponential, mean 27.7 ms, 325 invocations per second, of
    /// which 300 are one application's of 3 ms. With --load own they offer 9.0
    /// CPUs, which is 0.56 of the paper's 16. --file replaces them.
    Classes(ClassesArgs),
    /// fib, md and sa of the SFS paper's OpenLambda experiments
    ///
    /// Durations are those of table1. A third of the invocations each computes
    /// fib(N), reads a JSON file and makes Markdown of it, or reads a
    /// dictionary and scores a sentence (kinds fib, md and sa).
    Openlambda(Scalable),
    /// The five workloads of Hermes
    ///
    /// Kaffes et al., arXiv 2111.07226, Section 6.1: execution times are
    /// log-normal (mu -0.38, sigma 2.36 of ln seconds) within every function, or
    /// exponential with a mean of 8.9 s.
    Hermes(papers::HermesArgs),
    /// W1 of the thesis about fc-microbenchmark: microVMs that count primes
    ///
    /// 50,000 in an hour, 0.90 of 36 CPUs with --load own. Each waits for 3 s
    /// while its microVM starts, and computes for 0.7 to 4.3 s.
    W1(Common),
    /// W2 of that thesis: three of four count primes, one uses memory
    ///
    /// 25,000 in an hour, 0.48 of 36 CPUs with --load own.
    W2(Common),
    /// W3 of that thesis: microVMs that use memory
    ///
    /// 12,500 in an hour, 0.29 of 36 CPUs with --load own.
    W3(Common),
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
    /// Mean in milliseconds; the default is table1-artefact's (0.001 to 1000000)
    #[arg(long, default_value = "386", value_name = "MS", value_parser = ms)]
    mean_ms: f64,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(super) struct UniformArgs {
    /// Shortest and longest in milliseconds; the default has
    /// table1-artefact's mean
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

impl Gen {
    /// Writes the trace.
    pub(super) fn execute(self) -> Result<()> {
        match self {
            Self::Table1(sample) => sample.write(Distribution::Table1(Version::Text)),
            Self::Table1Artefact(sample) => sample.write(Distribution::Table1(Version::Artefact)),
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
            Self::Openlambda(sample) => papers::openlambda(&sample),
            Self::Hermes(args) => args.write(),
            Self::W1(common) => papers::thesis(&common, Workload::W1),
            Self::W2(common) => papers::thesis(&common, Workload::W2),
            Self::W3(common) => papers::thesis(&common, Workload::W3),
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
