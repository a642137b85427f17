//! A trace on the model instead of a live kernel: `sfs_model replay`.
//!
//! Each invocation is a process that the replayer forks at its arrival, as `faas_replay` does: a
//! real-time process that sleeps to absolute times, forks, and collects ended children while the
//! next arrival is not near. The loader is scx_sfs without options. Besides there are kernel threads
//! as in a guest. Invariants are checked as in a search.

pub mod command;
pub mod compare;
pub mod expenses;
pub mod scale;

use crate::loader::plan::Plan;
use crate::machine::{live, Outcome, Settings};
use anyhow::{ensure, Result};
use expenses::Expenses;
use faas_data::result::{Exit, Record};
use faas_data::trace::{self, Phase};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use sfs_kernel_model::group_load::GroupLoad;
use sfs_kernel_model::replay::{Invocation, Replay, Step};
use sfs_kernel_model::topology::Place;
use sfs_kernel_model::workload::{Behaviour, Boundaries, Habits, Workload};
use sfs_policy::defaults;
use std::collections::HashMap;
use std::ffi::CString;

/// CONFIG_HZ=250, ns.
const TICK_NS: u64 = 4_000_000;
/// Time from load to the start of the trace, ns, of which 200 ms are the replayer's `LEAD_NS`;
/// measured in a guest.
pub(crate) const LEAD_NS: u64 = 383_000_000;
/// The seed of what is left to chance: how long interrupts to other CPUs take.
const SEED: u64 = 1;

/// The policy of the kernel half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Policy {
    /// The paper's.
    Sfs,
    /// By learned service times.
    Learned,
    /// FAIR only.
    Fair,
}

/// A trace and the machine that replays it.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The trace.
    pub trace: &'a [trace::Invocation],
    /// Number of CPUs.
    pub cpus: usize,
    /// The policy.
    pub policy: Policy,
    /// What its CPUs share.
    pub topology: Vec<Place>,
    /// What things cost.
    pub expenses: Expenses,
    /// Each invocation runs the program that its function names; else all run one program, as in a
    /// replay by faasbench, and are invocations of one function.
    pub is_named: bool,
    /// What runs besides, apart from what the expenses have.
    pub others: Vec<Other>,
    /// How the machine is run.
    pub settings: Settings,
}

/// A task that is no function: it runs and sleeps in turns of random length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other {
    /// Mean CPU time of a turn, us, 1 or more.
    pub runs_us: u64,
    /// Mean sleep, us.
    pub sleeps_us: u64,
    /// It is a kernel thread, or else a daemon.
    pub is_kernel: bool,
}

/// The program of all processes of a replay without names.
const PROGRAM: &str = "faasbench";

/// Arrivals and the process that serves them.
#[derive(Debug, Clone)]
pub(crate) struct Replayer {
    /// ns since the start of the trace, in order.
    pub arrivals: Vec<u64>,
    /// The number of the next one.
    pub next: usize,
    /// Until when the replayer is busy, ns since boot.
    pub busy_until: u64,
    /// Ended processes that it has collected.
    pub collected: usize,
    /// What it costs.
    pub expenses: Expenses,
    /// The program of each invocation.
    pub programs: Vec<CString>,
    invocations: Vec<Invocation>,
    policy: Policy,
}

impl Replayer {
    fn new(setup: &Setup<'_>) -> Self {
        Self {
            arrivals: setup.trace.iter().map(|i| i.arrival_us * 1_000).collect(),
            next: 0,
            busy_until: 0,
            collected: 0,
            expenses: setup.expenses.clone(),
            programs: programs(setup),
            invocations: setup.trace.iter().map(invocation).collect(),
            policy: setup.policy,
        }
    }

    /// The replay of the machine.
    pub fn replay(&mut self) -> Replay {
        Replay {
            invocations: std::mem::take(&mut self.invocations),
            gone: 0,
            costs: self.expenses.of_process(),
        }
    }

    /// The loader of the machine.
    pub fn loader(&self) -> Plan {
        Plan::default_of(self.policy as u32, (self.expenses.loader_ns / 1_000).max(1))
    }
}

/// The program of each invocation: a number for each function, as the kernel keeps 15 bytes only.
fn programs(setup: &Setup<'_>) -> Vec<CString> {
    let mut numbers = HashMap::new();
    let mut program = |one: &trace::Invocation| {
        let next = numbers.len();
        let number = numbers.entry(one.function.clone()).or_insert(next);
        let name = if setup.is_named {
            format!("function-{number}")
        } else {
            PROGRAM.to_owned()
        };
        CString::new(name).expect("a name without zeros")
    };
    setup.trace.iter().map(&mut program).collect()
}

/// The steps of an invocation: phases of CPU time end by the process's CPU clock.
fn invocation(of: &trace::Invocation) -> Invocation {
    let mut demand_ns = 0;
    let step = |phase: &Phase| match phase {
        Phase::Cpu { us, .. } => {
            demand_ns += us * 1_000;
            Step::Cpu(demand_ns)
        }
        Phase::Io { us, .. } => Step::Sleep(us * 1_000),
    };
    Invocation::new(of.phases.iter().map(step).collect())
}

/// Replays a trace. One process replays one trace only: the kernel half's variables are those of
/// the process.
///
/// # Errors
/// If a phase blocks otherwise than by sleeping, which the model does not know.
pub fn replay(setup: &Setup<'_>) -> Result<(Outcome, Vec<Record>)> {
    let sleeps = |phase: &Phase| !phase.to_string().contains("@pipe");
    let phases = || setup.trace.iter().flat_map(|one| &one.phases);
    ensure!(
        phases().all(sleeps) && phases().all(|phase| !phase.to_string().contains("@file")),
        "the model knows no pipes and files: want phases io:MICROSECONDS"
    );
    let random = ChaCha8Rng::seed_from_u64(SEED);
    let replayer = Replayer::new(setup);
    let machine = (workload(setup), random);
    let ns = longest_ns(setup.trace);
    let (mut outcome, state) = live(machine, SEED, ns, &setup.settings, Some(replayer));
    let replay = state.replay.as_ref().expect("it is replayed");
    let origin = state.booted_at + LEAD_NS;
    let pairs = setup.trace.iter().zip(&replay.invocations).enumerate();
    let records = pairs.map(|(id, (one, of))| record(id, one, of, origin));
    let records: Vec<Record> = records.collect();
    let open = replay.invocations.iter().filter(|one| !one.is_gone).count();
    if open > 0 && outcome.findings.is_empty() {
        let text = format!(
            "{open} invocations have not ended after {} s",
            ns / TICK_NS / 250
        );
        outcome.findings.push(text);
    }
    Ok((outcome, records))
}

/// A replay that takes longer does not end: ten times as long as one CPU needs, and a minute.
fn longest_ns(trace: &[trace::Invocation]) -> u64 {
    let last = trace.last().map_or(0, |one| one.arrival_us);
    let work: u64 = trace.iter().map(trace::Invocation::uncontended_us).sum();
    (last + 10 * work + 60_000_000) * 1_000
}

/// The tasks that are there before the trace, with whether they are kernel threads.
fn residents(setup: &Setup<'_>) -> Vec<(Behaviour, bool)> {
    let resident = |other: &Other| {
        let behaviour = Behaviour::Daemon {
            runs_us: other.runs_us.max(1),
            sleeps_us: other.sleeps_us,
        };
        (behaviour, other.is_kernel)
    };
    let others = setup.others.iter().map(resident);
    let mut all = setup.expenses.outside(setup.cpus);
    all.extend(others);
    all
}

/// The replayer and its processes, and what runs besides; scx_sfs's defaults.
fn workload(setup: &Setup<'_>) -> Workload {
    Workload {
        cpus: setup.cpus,
        policy: setup.policy as u32,
        slice_ns: defaults::INITIAL_SLICE_NS,
        tick_ns: TICK_NS,
        residents: residents(setup),
        arrivals_ns: 0,
        burst_ns: 0,
        function_ns: 0,
        pinned_of: u64::MAX,
        changes_ns: 0,
        real_time: None,
        habits: Habits {
            stays_of: 0,
            has_families: false,
        },
        topology: setup.topology.clone(),
        boundaries: Boundaries {
            kinds: 1 | 1 << 2,
            unit: 0,
            idle_ns: 0,
            port: 0,
        },
        groups: GroupLoad::default(),
    }
}

/// The measurements of an invocation, as the replayer takes them.
fn record(id: usize, one: &trace::Invocation, of: &Invocation, origin: u64) -> Record {
    let us = |at: u64| at.saturating_sub(origin) / 1_000;
    let wait = |end: u64| (end - of.forked_at).saturating_sub(of.worked_ns + of.blocked_ns);
    Record {
        id,
        function: one.function.clone(),
        arrival_us: one.arrival_us,
        start_us: of.started_at.map(us),
        end_us: of.ended_at.map(us),
        cpu_us: of.cpu_ns / 1_000,
        service_us: one.service_us(),
        voluntary_switches: of.blocked + 1,
        involuntary_switches: of.preempted,
        exit: if of.is_gone {
            Exit::Code(0)
        } else {
            Exit::Signal(9)
        },
        runqueue_wait_us: of.ended_at.map(|end| wait(end) / 1_000),
        alone_us: None,
    }
}
