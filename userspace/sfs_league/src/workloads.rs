//! The workloads of the league.

use sfs_lab::bench::settings::Sandbox;

/// Where a workload's trace comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trace {
    /// `faasbench gen`: the workload, the load, and more options. Its mean service time is
    /// [`MEAN_MS`].
    Made(&'static str, &'static str, &'static str),
    /// The same at a load of 1, as if all invocations were of one function.
    Single(&'static str),
    /// The same at a load of 1, with the workload's own times, by this factor.
    Scaled(&'static str, &'static str),
    /// `faasbench convert azure` of the trace of 500 applications: first and last minute, and
    /// more options.
    Azure(&'static str, &'static str),
    /// `faasbench convert sfs`: the multiplier of the arrivals of the SFS artefact's list.
    List(&'static str),
}

/// A row of the league.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Its name, which is also that of a folder.
    pub name: &'static str,
    /// What it is, for readers.
    pub about: &'static str,
    /// Where its trace comes from.
    pub trace: Trace,
    /// Number of invocations.
    pub invocations: u32,
    /// CPUs of the VM.
    pub cpus: u32,
    /// What serves the invocations.
    pub sandbox: Sandbox,
    /// It is one of the dozen of `QUICK=1`.
    pub is_quick: bool,
}

impl Workload {
    const fn new(name: &'static str, about: &'static str, trace: Trace) -> Self {
        Self {
            name,
            about,
            trace,
            invocations: 1000,
            cpus: 4,
            sandbox: Sandbox::Process,
            is_quick: false,
        }
    }

    const fn quick(mut self) -> Self {
        self.is_quick = true;
        self
    }

    const fn on(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    const fn in_sandboxes(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Whether its trace is made from files that are not part of this repository.
    pub fn needs_traces(&self) -> bool {
        matches!(self.trace, Trace::Azure(..) | Trace::List(_))
    }

    /// All that decides about its traces, apart from the seed.
    pub fn definition(&self) -> String {
        let Self {
            trace,
            invocations,
            cpus,
            sandbox,
            ..
        } = self;
        format!("{trace:?} {invocations} {cpus} {}", sandbox.name())
    }
}

const fn made(
    name: &'static str,
    about: &'static str,
    workload: &'static str,
    load: &'static str,
    options: &'static str,
) -> Workload {
    Workload::new(name, about, Trace::Made(workload, load, options))
}

/// The mean service time of traces that have no scale of their own, in ms. The papers' are longer:
/// shorter ones make a run cheaper, and let the cost of a start weigh more.
pub const MEAN_MS: &str = "50";

/// 200 functions, the popular ones invoked most.
const MANY: &str = "--functions 200 --popularity zipf:1.1";
/// Arrivals with a coefficient of variation of 5.
const BURSTS: &str = "--functions 200 --popularity zipf:1.1 --arrivals bursty --burst-factor 100";
/// The same of 13.
const LONG_BURSTS: &str = "--functions 200 --popularity zipf:1.1 --arrivals bursty \
    --burst-factor 1000 --burst-gaps 25 --quiet-gaps 300";

/// The rows, as `make league` runs them.
pub const ALL: [Workload; 34] = [
    made(
        "table1",
        "Table I of the SFS paper, a function for each class",
        "table1",
        "1.0",
        "",
    )
    .quick(),
    made(
        "table1x20",
        "the same with 20 functions, each of which varies (coefficient of variation 0.53)",
        "table1",
        "1.0",
        "--functions 20 --within-cv 0.533",
    )
    .quick(),
    made(
        "table1-0.5",
        "Table I at a load of 0.5",
        "table1",
        "0.5",
        "--functions 20 --within-cv 0.533",
    ),
    made(
        "table1-0.8",
        "Table I at a load of 0.8",
        "table1",
        "0.8",
        "--functions 20 --within-cv 0.533",
    ),
    made(
        "table1-warm",
        "the same 20 functions, served by warm processes",
        "table1",
        "1.0",
        "--functions 20 --within-cv 0.533",
    )
    .in_sandboxes(Sandbox::Warm),
    made(
        "table1-cgroup",
        "the same 20 functions, each in cgroups",
        "table1",
        "1.0",
        "--functions 20 --within-cv 0.533",
    )
    .in_sandboxes(Sandbox::Cgroup),
    made(
        "spikes",
        "Table I, and three times 50 invocations at once",
        "table1",
        "0.8",
        "--functions 20 --within-cv 0.533 --spikes 3 --spike-invocations 50",
    ),
    made(
        "io",
        "Table I; three of four invocations wait for I/O",
        "table1",
        "1.0",
        "--functions 20 --within-cv 0.533 --io-share 0.75",
    )
    .quick(),
    made(
        "lognormalx20",
        "log-normal as Azure's functions, 20 of them",
        "lognormal",
        "1.0",
        "--functions 20 --popularity zipf:1.1",
    ),
    made(
        "lognormalx200",
        "the same, 200 of them",
        "lognormal",
        "1.0",
        MANY,
    )
    .quick(),
    made(
        "lognormalx200-cgroup",
        "the same in cgroups",
        "lognormal",
        "1.0",
        MANY,
    )
    .in_sandboxes(Sandbox::Cgroup),
    made(
        "overload-1.2",
        "200 functions, log-normal, at a load of 1.2",
        "lognormal",
        "1.2",
        MANY,
    )
    .quick(),
    made(
        "overload-3.0",
        "the same at a load of 3",
        "lognormal",
        "3.0",
        MANY,
    ),
    made(
        "bursty-5",
        "200 functions, log-normal, in cgroups; arrivals with a coefficient of variation of 5",
        "lognormal",
        "1.0",
        BURSTS,
    )
    .in_sandboxes(Sandbox::Cgroup)
    .quick(),
    made(
        "bursty-13",
        "the same, of 13",
        "lognormal",
        "1.0",
        LONG_BURSTS,
    )
    .in_sandboxes(Sandbox::Cgroup)
    .quick(),
    Workload::new(
        "exponential",
        "one function, exponential",
        Trace::Single("exponential"),
    )
    .quick(),
    Workload::new(
        "bimodal",
        "one function, short or long",
        Trace::Single("bimodal"),
    )
    .quick(),
    Workload::new("uniform", "one function, uniform", Trace::Single("uniform")),
    made(
        "classes",
        "Table II of FaaSched: ten functions, 92 % of the invocations are of one with 3 ms",
        "classes",
        "1.0",
        "",
    )
    .quick(),
    made(
        "hermes-representative",
        "Hermes: 50 functions, one with 90 % of the load",
        "hermes",
        "1.0",
        "--mix ms-representative",
    ),
    made(
        "hermes-single",
        "Hermes: one function",
        "hermes",
        "1.0",
        "--mix single-function",
    ),
    made(
        "hermes-balanced",
        "Hermes: 50 functions with the same load",
        "hermes",
        "1.0",
        "--mix multiple-functions-balanced",
    ),
    Workload::new(
        "w1",
        "the thesis's W1: microVMs that count primes",
        Trace::Scaled("w1", "0.02"),
    )
    .quick(),
    Workload::new(
        "w2",
        "the thesis's W2: three of four count primes, one uses memory",
        Trace::Scaled("w2", "0.02"),
    ),
    Workload::new(
        "w3",
        "the thesis's W3: microVMs that use memory",
        Trace::Scaled("w3", "0.02"),
    ),
    azure("azure-1", "480..499").quick(),
    azure("azure-2", "600..619"),
    azure("azure-3", "720..739"),
    azure("azure-4", "840..859"),
    azure("azure-5", "940..959"),
    list("list-7-12", "7").on(12),
    list("list-10-12", "10").on(12),
    list("list-13-12", "13").on(12),
    list("list-13-16", "13").on(16),
];

/// The published durations are whole milliseconds: what is below half of one has 0. A slowdown of
/// such invocations would say nothing. The scale makes means of 40 to 75 ms.
const AZURE: &str = "--cap-top 0.2 --between log --scale 0.05 --min-us 500 --load 1.0";

const fn azure(name: &'static str, minutes: &'static str) -> Workload {
    let about = "20 minutes of Azure Functions 2019, 500 applications, in cgroups";
    Workload::new(name, about, Trace::Azure(minutes, AZURE)).in_sandboxes(Sandbox::Cgroup)
}

const fn list(name: &'static str, multiplier: &'static str) -> Workload {
    let about = "the front of the SFS artefact's list of requests, with its multiplier and CPUs";
    Workload::new(name, about, Trace::List(multiplier))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_folders_and_a_dozen_is_quick() {
        let names: HashSet<&str> = ALL.iter().map(|workload| workload.name).collect();
        assert_eq!(names.len(), ALL.len());
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        assert!(names.iter().all(|name| name.chars().all(plain)));
        assert_eq!(ALL.iter().filter(|workload| workload.is_quick).count(), 12);
    }

    #[test]
    fn workloads_differ_in_what_decides_about_them() {
        let all: HashSet<String> = ALL.iter().map(Workload::definition).collect();
        assert_eq!(all.len(), ALL.len());
    }
}
