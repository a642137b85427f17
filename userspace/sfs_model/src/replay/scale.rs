//! `sfs_model scale`: what the kernel half costs on more and more CPUs, from its own code.
//!
//! A trace is replayed on machines with more and more CPUs, several times over, so that the load of
//! a CPU stays the same. Transfers of cache lines between CPUs are counted
//! ([`sfs_kernel_model::lines`]). Two times per transfer, within a cache and beyond it, make times
//! of them. A line goes from CPU to CPU one transfer after the other, so the line with most
//! transfers bounds the rate of switches: 1 / (its transfers in a switch x their time), the
//! asymptotic bound of operational analysis (Denning and Buzen, Computing Surveys 1978).

use super::expenses::Expenses;
use super::{replay, Policy, Setup};
use crate::machine::Settings;
use anyhow::{bail, ensure, Context, Result};
use clap::Args;
use faas_data::output::print;
use faas_data::trace::{Invocation, Trace};
use sfs_kernel_model::lines::Report;
use sfs_kernel_model::oddities::Oddities;
use sfs_kernel_model::topology::Place;
use sfs_kernel_objects::lines::Tally;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// CPUs that share a cache: eight cores of two threads.
const CPUS_OF_CACHE: usize = 16;
/// Caches of a socket.
const CACHES_OF_NODE: usize = 8;
/// Fractional part of the golden ratio: multiples of it spread evenly over the unit interval.
const SPREAD: f64 = 0.618_033_988_749_895;
/// Structures with a smaller part of all transfers are one row, in per cent.
const SMALL_PER_CENT: f64 = 1.0;

/// The command line.
#[derive(Debug, Args)]
pub struct ScaleArgs {
    /// The trace (`faasbench gen`)
    trace: PathBuf,
    /// The number of CPUs that the trace is made for
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    trace_cpus: u16,
    /// Numbers of CPUs, each a multiple of --trace-cpus
    #[arg(long, value_delimiter = ',', default_value = "4,16,64,128,192,384,512", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Vec<u16>,
    /// Policies
    #[arg(long, value_delimiter = ',', default_value = "sfs,learned,fair")]
    policy: Vec<Policy>,
    /// FILTER's shards; default: one for each cache, as the loader has it
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=64))]
    shards: Option<u8>,
    /// A transfer between CPUs that share a cache takes so many ns
    #[arg(long, default_value_t = 42.0, value_parser = time)]
    near_ns: f64,
    /// Any other transfer takes so many ns
    #[arg(long, default_value_t = 126.0, value_parser = time)]
    far_ns: f64,
    /// Replay on this machine alone, and print counts for the command itself
    #[arg(long, hide = true)]
    alone: bool,
}

fn time(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok();
    let value = value.filter(|value| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| "want a number of ns, 0 or more".into())
}

/// What a machine has shown.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    switches: u64,
    ns: u64,
    structures: BTreeMap<String, Tally>,
    hottest: Option<(String, Tally)>,
}

impl ScaleArgs {
    /// Replays on all machines, each in a process of its own, and prints two tables.
    ///
    /// # Errors
    /// If the trace cannot be read, if a number of CPUs is no multiple of the trace's, and if a
    /// machine violates an invariant.
    pub fn execute(&self) -> Result<()> {
        if self.alone {
            return print(self.one()?.as_bytes());
        }
        let mut rows = String::from(
            "| policy | CPUs | shards | switches of a CPU a second | stores | transfers near | far | ns | of a CPU, % | most transferred | transfers | of its bound, % |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        let mut last = Vec::new();
        for &policy in &self.policy {
            for &cpus in &self.cpus {
                let counted = self.call(policy, cpus)?;
                rows.push_str(&self.row(policy, cpus, &counted));
                if Some(&cpus) == self.cpus.last() {
                    last.push((policy, counted));
                }
            }
        }
        for (policy, counted) in &last {
            rows.push_str(&self.structures(*policy, counted));
        }
        print(rows.as_bytes())
    }

    /// Runs this program for one machine.
    fn call(&self, policy: Policy, cpus: u16) -> Result<Counted> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.arg("scale").arg(&self.trace);
        for (option, value) in [
            ("--trace-cpus", self.trace_cpus.to_string()),
            ("--cpus", cpus.to_string()),
            ("--policy", name(policy).to_string()),
            ("--shards", self.shards_of(policy, cpus).to_string()),
        ] {
            command.args([option, &value]);
        }
        let output = command.arg("--alone").stdin(Stdio::null()).output();
        let output = output.context("cannot run this program again")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let why = errors.trim_end();
            let why = why.strip_prefix("sfs_model: ").unwrap_or(why);
            bail!("{} with {cpus} CPUs: {why}", name(policy));
        }
        Counted::parse(&String::from_utf8_lossy(&output.stdout))
            .with_context(|| format!("{} with {cpus} CPUs gives no counts", name(policy)))
    }

    fn shards_of(&self, policy: Policy, cpus: u16) -> u8 {
        let caches = usize::from(cpus).div_ceil(CPUS_OF_CACHE);
        match (self.shards, policy) {
            (Some(shards), _) => u16::from(shards).min(cpus) as u8,
            (None, Policy::Sfs) => caches as u8,
            (None, _) => 1,
        }
    }

    /// The counts of a machine, as [`Counted::parse`] reads them.
    fn one(&self) -> Result<String> {
        let (Some(&cpus), Some(&policy)) = (self.cpus.first(), self.policy.first()) else {
            bail!("want a policy and a number of CPUs");
        };
        ensure!(
            cpus % self.trace_cpus == 0,
            "{cpus} CPUs are no multiple of the {} of the trace",
            self.trace_cpus
        );
        let trace = Trace::read(&self.trace)?.invocations;
        let trace = superpose(&trace, cpus / self.trace_cpus);
        let cpus = usize::from(cpus);
        let shards = u32::from(self.shards_of(policy, cpus as u16));
        let setup = Setup {
            trace: &trace,
            cpus,
            policy,
            topology: places(cpus),
            expenses: Expenses::NONE,
            is_named: false,
            others: Vec::new(),
            settings: Settings {
                oddities: Some(Oddities {
                    shards,
                    ..Oddities::default()
                }),
                counts_lines: true,
                ..Settings::default()
            },
        };
        let (outcome, _) = replay(&setup)?;
        if let Some(finding) = outcome.findings.first() {
            bail!("{finding}");
        }
        let report = outcome.lines.context("no lines were counted")?;
        Ok(text(outcome.switches, outcome.lasted_ns, &report))
    }

    fn ns(&self, tally: &Tally) -> f64 {
        tally.near as f64 * self.near_ns + tally.far as f64 * self.far_ns
    }

    /// A row of the first table: everything per switch.
    fn row(&self, policy: Policy, cpus: u16, counted: &Counted) -> String {
        let switches = counted.switches.max(1) as f64;
        let mut all = Tally::default();
        for of in counted.structures.values() {
            all.add_all(of);
        }
        let seconds = counted.ns as f64 / 1e9;
        let rate = switches / seconds;
        let ns = self.ns(&all) / switches;
        let (hottest, of) = counted.hottest.clone().unwrap_or_default();
        format!(
            "| `{}` | {cpus} | {} | {:.0} | {:.1} | {:.2} | {:.2} | {ns:.0} | {:.2} | {hottest} | {:.2} | {:.2} |\n",
            name(policy),
            self.shards_of(policy, cpus),
            rate / f64::from(cpus),
            all.stores as f64 / switches,
            all.near as f64 / switches,
            all.far as f64 / switches,
            ns * rate / 1e7 / f64::from(cpus),
            of.transfers() as f64 / switches,
            100.0 * self.ns(&of) / 1e9 / seconds,
        )
    }

    /// The second table: the structures of the largest machine.
    fn structures(&self, policy: Policy, counted: &Counted) -> String {
        let switches = counted.switches.max(1) as f64;
        let all: u64 = counted.structures.values().map(Tally::transfers).sum();
        let mut sorted: Vec<(&String, &Tally)> = counted.structures.iter().collect();
        sorted.sort_by_key(|(_, of)| std::cmp::Reverse(of.transfers()));
        let cpus = self.cpus.last().copied().unwrap_or_default();
        let mut text = format!(
            "\n`{}`, {cpus} CPUs, in each switch:\n\n\
             | structure | accesses | stores | transfers near | far | ns |\n|---|---|---|---|---|---|\n",
            name(policy)
        );
        for (structure, of) in sorted {
            if 100.0 * of.transfers() as f64 <= SMALL_PER_CENT * all as f64 {
                continue;
            }
            let _ = writeln!(
                text,
                "| {structure} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} |",
                of.accesses as f64 / switches,
                of.stores as f64 / switches,
                of.near as f64 / switches,
                of.far as f64 / switches,
                self.ns(of) / switches,
            );
        }
        text
    }
}

fn name(policy: Policy) -> &'static str {
    match policy {
        Policy::Sfs => "sfs",
        Policy::Learned => "learned",
        Policy::Fair => "fair",
    }
}

/// What the CPUs of the machine share.
fn places(cpus: usize) -> Vec<Place> {
    let place = |cpu: usize| Place {
        core: (cpu / 2) as u16,
        cache: (cpu / CPUS_OF_CACHE) as u16,
        node: (cpu / CPUS_OF_CACHE / CACHES_OF_NODE) as u16,
        isolated: false,
    };
    (0..cpus).map(place).collect()
}

/// So many copies of a trace at a time. Each is turned by another part of its length, so bursts of
/// the copies do not come together.
fn superpose(trace: &[Invocation], copies: u16) -> Vec<Invocation> {
    let length = trace.last().map_or(0, |one| one.arrival_us) + 1;
    let mut all = Vec::with_capacity(trace.len() * usize::from(copies));
    for copy in 0..copies {
        let turn = (f64::from(copy) * SPREAD).fract() * length as f64;
        all.extend(trace.iter().map(|one| Invocation {
            arrival_us: (one.arrival_us + turn as u64) % length,
            ..one.clone()
        }));
    }
    all.sort_by_key(|one| one.arrival_us);
    all
}

/// Counts as text: a line for all, one for the hottest line, and one for each structure.
fn text(switches: u64, ns: u64, report: &Report) -> String {
    let mut text = format!("{switches}\t{ns}\n");
    let mut line = |name: &str, of: &Tally| {
        let Tally {
            accesses,
            stores,
            near,
            far,
        } = of;
        let _ = writeln!(text, "{name}\t{accesses}\t{stores}\t{near}\t{far}");
    };
    let none = (String::new(), Tally::default());
    let (name, of) = report.hottest.as_ref().unwrap_or(&none);
    line(name, of);
    let structures = kinds(&report.structures);
    structures.iter().for_each(|(name, of)| line(name, of));
    text
}

/// The queues of single CPUs and groups are one structure each.
fn kinds(structures: &BTreeMap<String, Tally>) -> BTreeMap<String, Tally> {
    let mut kinds: BTreeMap<String, Tally> = BTreeMap::new();
    for (name, of) in structures {
        let kind = name.split(" of CPU ").next().unwrap_or(name);
        let kind = if kind == name {
            name.clone()
        } else {
            format!("{kind} of a CPU")
        };
        kinds.entry(kind).or_default().add_all(of);
    }
    kinds
}

impl Counted {
    /// Reads [`text`]; `None`: it is something else.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (switches, ns) = lines.next()?.split_once('\t')?;
        let tally = |line: &str| {
            let mut words = line.split('\t');
            let name = words.next()?.to_string();
            let mut number = || words.next()?.parse().ok();
            Some((
                name,
                Tally {
                    accesses: number()?,
                    stores: number()?,
                    near: number()?,
                    far: number()?,
                },
            ))
        };
        Some(Self {
            switches: switches.parse().ok()?,
            ns: ns.parse().ok()?,
            hottest: Some(tally(lines.next()?)?),
            structures: lines.map(tally).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(near: u64) -> Tally {
        Tally {
            accesses: 10,
            stores: 5,
            near,
            far: 1,
        }
    }

    #[test]
    fn counts_are_read_as_they_are_written() {
        let report = Report {
            structures: [
                ("FILTER".to_string(), tally(2)),
                ("FAIR of CPU 1".to_string(), tally(3)),
                ("FAIR of CPU 2".to_string(), tally(4)),
            ]
            .into(),
            hottest: Some(("FILTER".to_string(), tally(2))),
        };
        let counted = Counted::parse(&text(7, 9, &report)).unwrap();
        assert_eq!((counted.switches, counted.ns), (7, 9));
        assert_eq!(counted.hottest, report.hottest);
        assert_eq!(counted.structures["FAIR of a CPU"].near, 7);
        assert_eq!(counted.structures.len(), 2);
        assert_eq!(Counted::parse("1 2\n"), None);
    }

    #[test]
    fn copies_of_a_trace_keep_its_load_and_are_turned() {
        let trace = [(0, "a"), (100, "b")].map(|(at, of)| Invocation::cpu(at, of, 10));
        let all = superpose(&trace, 3);
        assert_eq!(all.len(), 6);
        assert!(all.is_sorted_by_key(|one| one.arrival_us));
        assert!(all.iter().all(|one| one.arrival_us <= 100));
        assert_eq!(superpose(&trace, 1), trace);
    }
}
