//! The metrics: names, units, help and values, independent of the format.
//!
//! Names follow Prometheus's conventions: the prefix `scx_sfs_`, base units, `_total` for counters.
//! Counters come from the lists in `counters.h` and in `sfs_statistics`, so that a new one appears
//! by itself.

use sfs_statistics::times::{FunctionTimes, Histogram, Times, FIRST_EXPONENT, OTHER};
use sfs_statistics::{Delays, Export, FunctionReport, Metrics};

/// What comes before each name.
pub const PREFIX: &str = "scx_sfs_";

/// The kinds of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, until the scheduler is loaded again.
    Counter,
    /// It goes up and down.
    Gauge,
    /// A histogram.
    Histogram,
    /// Labels only.
    Info,
}

/// A metric with all its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Its name, without the suffix of its kind.
    pub name: String,
    /// What it is: a sentence.
    pub help: String,
    /// Its unit, which also ends its name.
    pub unit: Option<&'static str>,
    /// Its kind.
    pub kind: Kind,
    /// Its values.
    pub samples: Vec<Sample>,
}

impl Family {
    /// Returns the name under which Prometheus keeps it; of a histogram without `_bucket`.
    pub fn exposed_name(&self) -> String {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("{}{suffix}", self.name)
    }
}

/// One value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its labels.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number; 1 for a metric that has only labels.
    Count(u64),
    /// Any number.
    Number(f64),
    /// A histogram.
    Histogram(Shape),
}

/// A histogram in the forms that Prometheus knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shape {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The classic buckets: each one's end, and the number of values in it alone. The last one's
    /// end is infinite.
    pub classic: Vec<(f64, u64)>,
    /// The native buckets, if there are some.
    pub native: Option<Native>,
}

/// The buckets of a native histogram of schema [`SCHEMA`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Native {
    /// Values of at most [`ZERO_THRESHOLD`].
    pub zero: u64,
    /// Numbers of buckets that are not empty, ascending, with the values in each.
    pub buckets: Vec<(i32, u64)>,
}

/// 8 buckets for each doubling.
pub const SCHEMA: i32 = 3;

/// Up to this time, 0.95 us, values count as 0 in native histograms.
pub const ZERO_THRESHOLD: f64 = 1.0 / (1u64 << -FIRST_EXPONENT) as f64;

/// The exponents of 2 in seconds at which the classic buckets of the functions' histograms end:
/// from 61 us to 512 s.
const CLASSIC: std::ops::RangeInclusive<i32> = -14..=9;

/// The exponents of 2 in microseconds at which the buckets of the queueing delay end: from 16 us to
/// 17 s.
const DELAYS: std::ops::RangeInclusive<usize> = 4..=24;

/// Statistics that other metrics contain: the histogram of the queueing delay.
pub const CONTAINED: [&str; 2] = ["queue_delay_mean_us", "queue_delay_p99_us"];

/// Returns all metrics.
pub fn families(export: &Export) -> Vec<Family> {
    let mut all = Vec::from(of_run(&export.metrics));
    all.extend(state(&export.metrics));
    all.extend(counters(&export.metrics));
    all.push(queue_delay(&export.delays));
    all.extend(by_function(&export.functions, &export.other));
    all
}

fn family(name: &str, help: &str, kind: Kind, samples: Vec<Sample>) -> Family {
    let units = ["seconds", "ratio"];
    let end = name.rsplit('_').next().unwrap_or_default();
    Family {
        name: format!("{PREFIX}{name}"),
        help: format!("{help}."),
        unit: units.into_iter().find(|unit| *unit == end),
        kind,
        samples,
    }
}

fn plain(value: Value) -> Vec<Sample> {
    vec![Sample {
        labels: Vec::new(),
        value,
    }]
}

fn info(name: &str, help: &str, label: &'static str, text: &str) -> Family {
    let sample = Sample {
        labels: vec![(label, text.to_owned())],
        value: Value::Count(1),
    };
    family(name, help, Kind::Info, vec![sample])
}

fn of_run(metrics: &Metrics) -> [Family; 3] {
    [
        info(
            "build",
            "Version and build of the loader",
            "version",
            &metrics.build,
        ),
        info(
            "policy",
            "Policy in force: sfs, learned or fair; sfs also if learned has failed",
            "policy",
            &metrics.policy,
        ),
        info(
            "last_exit",
            "How the previous scheduler ended; none: the first since boot",
            "reason",
            &metrics.last_exit,
        ),
    ]
}

fn state(metrics: &Metrics) -> Vec<Family> {
    let seconds = |us: u64| us as f64 / 1e6;
    let number = |count: u64| count as f64;
    [
        (
            "fair_only",
            "Mode: 0 FILTER, 1 fair-only (overload)",
            number(metrics.mode),
        ),
        (
            "slice_seconds",
            "S, the CPU time that a new invocation may use in FILTER",
            seconds(metrics.slice_us),
        ),
        (
            "mean_iat_seconds",
            "Mean IAT from which S was computed; 0 before the first window",
            seconds(metrics.mean_iat_us),
        ),
        ("cpus", "CPUs that functions may use", number(metrics.cpus)),
        (
            "sandboxes",
            "Cgroups known as sandboxes (--cgroup)",
            number(metrics.sandboxes),
        ),
        (
            "sandboxes_left_out",
            "Sandboxes beyond --max-sandboxes, whose tasks are not functions",
            number(metrics.sandboxes_left_out),
        ),
        (
            "functions",
            "Functions with learned service times (--policy learned)",
            number(metrics.functions),
        ),
        (
            "rank_tables",
            "Rank tables that functions share; 0 if nothing is ranked",
            number(metrics.rank_tables),
        ),
        (
            "queued_filter",
            "Tasks that wait in FILTER now",
            number(metrics.queued_filter),
        ),
        (
            "queued_ranked",
            "Tasks that wait in the order of ranks now",
            number(metrics.queued_ranked),
        ),
        (
            "queued_fair",
            "Function tasks that wait in FAIR now",
            number(metrics.queued_fair),
        ),
        (
            "queued_outside",
            "Tasks outside of functions that wait now",
            number(metrics.queued_outside),
        ),
        (
            "runnable",
            "Function tasks that run or wait now (--policy learned)",
            number(metrics.runnable),
        ),
        (
            "queue_delay_max_seconds",
            "Maximum queueing delay since load",
            seconds(metrics.queue_delay_max_us),
        ),
        (
            "uptime_seconds",
            "Time since the scheduler was loaded",
            number(metrics.uptime_s),
        ),
        (
            "ejections",
            "Ejections of scx_sfs by the kernel in the hour before it was loaded",
            number(metrics.ejections),
        ),
    ]
    .map(|(name, help, value)| family(name, help, Kind::Gauge, plain(Value::Number(value))))
    .into()
}

fn counters(metrics: &Metrics) -> impl Iterator<Item = Family> {
    let all = metrics.counters().into_iter();
    all.map(|(name, help, count)| family(name, help, Kind::Counter, plain(Value::Count(count))))
}

fn queue_delay(delays: &Delays) -> Family {
    let count: u64 = delays.buckets.iter().sum();
    let up_to = |b: usize| delays.buckets.iter().take(b + 1).sum();
    let ends = DELAYS.map(|b| ((1u64 << b) as f64 / 1e6, up_to(b)));
    let shape = Shape {
        count,
        sum: delays.sum_ns as f64 / 1e9,
        classic: classic(ends, count),
        native: None,
    };
    family(
        "queue_delay_seconds",
        "Queueing delay of all FILTER and ranked work, for each time that a task got a CPU",
        Kind::Histogram,
        plain(Value::Histogram(shape)),
    )
}

/// Returns the numbers of values in each bucket alone. `ends` has the numbers up to each end.
fn classic(ends: impl Iterator<Item = (f64, u64)>, count: u64) -> Vec<(f64, u64)> {
    let mut before = 0;
    let alone = ends.chain([(f64::INFINITY, count)]).map(|(end, up_to)| {
        let own = up_to - before;
        before = up_to;
        (end, own)
    });
    alone.collect()
}

fn shape(times: &Histogram) -> Value {
    let ends = CLASSIC.map(|exponent| (2f64.powi(exponent), times.at_most(exponent)));
    Value::Histogram(Shape {
        count: times.count(),
        sum: times.sum(),
        classic: classic(ends, times.count()),
        native: Some(Native {
            zero: times.zero(),
            buckets: times.native().collect(),
        }),
    })
}

fn by_function(functions: &[FunctionTimes], other: &Times) -> Vec<Family> {
    let of_all = |value: fn(&Times) -> Value| -> Vec<Sample> {
        let own = functions
            .iter()
            .map(|one| (one.function.as_str(), &one.times));
        own.chain([(OTHER, other)])
            .map(|(function, times)| sample(function, value(times)))
            .collect()
    };
    let learned = functions.iter().filter_map(|one| {
        let report = one.learned.as_ref()?;
        Some((one.function.as_str(), report))
    });
    let ranks = learned.clone().filter_map(|(function, report)| {
        Some(sample(function, Value::Number(f64::from(report.rank?))))
    });
    let shares = learned
        .clone()
        .map(|(function, report)| sample(function, Value::Number(report.work_share)));
    vec![
        family(
            "function_turnaround_seconds",
            "Time from arrival to the end of the invocations of a function whose end is known and \
             that no signal ended (--policy learned)",
            Kind::Histogram,
            of_all(|times| shape(&times.turnaround)),
        ),
        family(
            "function_queue_delay_seconds",
            "The part of function_turnaround_seconds that the task which ended the invocation has \
             waited in queues",
            Kind::Histogram,
            of_all(|times| shape(&times.queue_delay)),
        ),
        family(
            "function_cpu_seconds",
            "CPU time of the invocations of a function that have ended (--policy learned)",
            Kind::Counter,
            of_all(|times| Value::Number(times.cpu_ns as f64 / 1e9)),
        ),
        family(
            "function_killed",
            "Invocations of a function that a signal ended (--policy learned)",
            Kind::Counter,
            of_all(|times| Value::Count(times.killed)),
        ),
        family(
            "function_learned_service_seconds",
            "Learned service time of a function, by percentile",
            Kind::Gauge,
            learned.clone().flat_map(quantiles).collect(),
        ),
        family(
            "function_rank",
            "Rank of a new invocation of a function; lower is earlier",
            Kind::Gauge,
            ranks.collect(),
        ),
        family(
            "function_work_ratio",
            "Share of a function in the CPU time of all functions",
            Kind::Gauge,
            shares.collect(),
        ),
    ]
}

fn sample(function: &str, value: Value) -> Sample {
    Sample {
        labels: vec![("function", function.to_owned())],
        value,
    }
}

fn quantiles((function, report): (&str, &FunctionReport)) -> impl Iterator<Item = Sample> {
    let all = [
        ("50", report.p50_ms),
        ("90", report.p90_ms),
        ("99", report.p99_ms),
    ];
    let function = function.to_owned();
    all.into_iter().filter_map(move |(percentile, ms)| {
        Some(Sample {
            labels: vec![
                ("function", function.clone()),
                ("percentile", percentile.to_owned()),
            ],
            value: Value::Number(ms? / 1e3),
        })
    })
}
