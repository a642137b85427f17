//! Records a machine for a time.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use faas_data::trace::Invocation;
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::time::{clock_gettime, ClockId};
use sfs_cgroups::{Change, SandboxPattern, Sandboxes, CGROUP_ROOT};
use sfs_text::note;

use crate::machine::{self, Scheduler};
use crate::process::{valid, Process};
use crate::program::NAME;
use crate::recording::{Occurrence, Other, Others, Recording};
use crate::watch::{Usage, Usages, Watch};

/// Ended processes are read this often.
const INTERVAL: Duration = Duration::from_millis(100);

/// Processes at a time for which there is room; 424 bytes each.
const ROOM: u32 = 16_384;

/// Invocations that are kept; some hundred bytes each. With more the recording ends.
const MOST: usize = 200_000;

/// What to record.
#[derive(Debug, Clone)]
pub struct Plan {
    /// For how long.
    pub time: Duration,
    /// The cgroups of functions; none: each process that begins is an invocation.
    pub patterns: Vec<SandboxPattern>,
}

/// Returns the time of CLOCK_MONOTONIC, ns.
fn now() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).context("cannot read the clock")?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// Records the machine until the time is over, or a signal arrives. Then it waits for up to half
/// as long until the invocations that have arrived have ended.
///
/// # Errors
/// If the kernel refuses the program that records, or something cannot be read.
pub fn record(plan: &Plan) -> Result<Recording> {
    let cpus = machine::cpus()?;
    let mut recorder = Recorder::start(plan)?;
    let scheduler = Scheduler::now();
    note(&format!(
        "{NAME}: watching for {} s under {}; Ctrl-C ends it early",
        plan.time.as_secs_f64(),
        scheduler.name()
    ));
    let window_ns = recorder.record(plan.time)?;
    recorder.wait_for_the_open(plan.time / 2, window_ns)?;
    let recorded = recorder.stop()?;
    if Scheduler::now() != scheduler {
        note(&format!(
            "{NAME}: the scheduler has changed meanwhile: what was measured is of both"
        ));
    }
    Ok(recorded.recording(scheduler, cpus, window_ns))
}

struct Recorder {
    watch: Watch,
    signals: SignalFd,
    is_stopped: bool,
    sandboxes: Option<Sandboxes>,
    functions: HashMap<u64, String>,
    ended: Vec<Process>,
    from: u64,
}

impl Recorder {
    fn start(plan: &Plan) -> Result<Self> {
        let signals = block_signals()?;
        let with_groups = !plan.patterns.is_empty();
        let mut watch = Watch::load(ROOM, with_groups)?;
        let mut functions = HashMap::new();
        let sandboxes = if with_groups {
            let root = Path::new(CGROUP_ROOT);
            let (watch, changes) = Sandboxes::watch(root, plan.patterns.clone(), false)?;
            functions.extend(changes.into_iter().filter_map(appeared));
            Some(watch)
        } else {
            None
        };
        let from = now()?;
        watch.start(from)?;
        Ok(Self {
            watch,
            signals,
            is_stopped: false,
            sandboxes,
            functions,
            ended: Vec::new(),
            from,
        })
    }

    /// Records for `time`, or until a signal. Returns for how long, ns.
    fn record(&mut self, time: Duration) -> Result<u64> {
        let until = self.from + time.as_nanos() as u64;
        while self.look(until)? && self.ended.len() < MOST {}
        if self.ended.len() >= MOST {
            note(&format!(
                "{NAME}: {MOST} processes have ended, which is enough: the recording ends"
            ));
        }
        Ok(now()? - self.from)
    }

    /// Records for `time` at most, until what arrived in the first `window_ns` has ended.
    fn wait_for_the_open(&mut self, time: Duration, window_ns: u64) -> Result<()> {
        let begun = self.watch.begun()?;
        let last = self.from + window_ns;
        let until = last + time.as_nanos() as u64;
        loop {
            let of_window = self.ended.iter().filter(|one| one.forked_at <= last);
            let gone = of_window.count() as u64 + self.watch.lost()?.0;
            let is_full = self.ended.len() >= MOST + MOST / 2;
            if gone >= begun || self.is_stopped || is_full || !self.look(until)? {
                return Ok(());
            }
        }
    }

    /// Waits for a moment, and reads what there is. Returns whether to go on: it is not `until`
    /// yet, and no signal has arrived.
    fn look(&mut self, until: u64) -> Result<bool> {
        let left = Duration::from_nanos(until.saturating_sub(now()?));
        let wait = left.min(INTERVAL) + Duration::from_micros(999);
        let timeout = PollTimeout::try_from(wait).context("the time is too long")?;
        let mut fds = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Err(Errno::EINTR) | Ok(0) => {}
            Ok(_) => {
                let _ = self.signals.read_signal();
                self.is_stopped = true;
            }
            Err(error) => return Err(error).context("cannot wait"),
        }
        self.watch.read_ended(&mut self.ended)?;
        if let Some(sandboxes) = &mut self.sandboxes {
            let changes = sandboxes.changes()?;
            self.functions
                .extend(changes.into_iter().filter_map(appeared));
        }
        Ok(!self.is_stopped && now()? < until)
    }

    fn stop(mut self) -> Result<Recorded> {
        let now = now()?;
        let usages = self.watch.usages(now)?;
        self.watch.stop()?;
        self.watch.read_ended(&mut self.ended)?;
        let (lost, missed) = self.watch.lost()?;
        // From now on a signal ends the program.
        ends().thread_unblock().context("cannot unblock signals")?;
        let mut processes = self.ended;
        processes.extend(self.watch.unended()?);
        Ok(Recorded {
            processes,
            functions: self.sandboxes.is_some().then_some(self.functions),
            usages,
            from: self.from,
            to: now,
            lost: lost + missed,
        })
    }
}

/// The signals that end the recording.
fn ends() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set
}

/// Makes signals that end the recording arrive at the returned descriptor.
fn block_signals() -> Result<SignalFd> {
    let set = ends();
    set.thread_block().context("cannot block signals")?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .context("cannot create a descriptor for signals")
}

fn appeared(change: Change) -> Option<(u64, String)> {
    match change {
        Change::Appeared(id, function) => Some((id, function)),
        Change::Vanished(_) => None,
    }
}

/// What the kernel has reported.
#[derive(Debug)]
struct Recorded {
    processes: Vec<Process>,
    /// The functions by the ids of their cgroups; `None`: all processes are invocations.
    functions: Option<HashMap<u64, String>>,
    usages: Usages,
    /// ns of CLOCK_MONOTONIC.
    from: u64,
    to: u64,
    lost: u64,
}

impl Recorded {
    /// The function of a process; `None`: it is no invocation.
    fn function(&self, of: &Process) -> Option<String> {
        let Some(functions) = &self.functions else {
            return Some(of.function.clone());
        };
        let function = of.groups.iter().find_map(|id| functions.get(id));
        function.map(|name| valid(name))
    }

    fn recording(mut self, scheduler: Scheduler, cpus: u32, window_ns: u64) -> Recording {
        self.processes.sort_by_key(|one| one.forked_at);
        let mut used = Usage::default();
        let mut all = Vec::with_capacity(self.processes.len());
        for one in &self.processes {
            let Some(function) = self.function(one) else {
                continue;
            };
            used.ns += one.cpu_ns();
            used.turns += one.turns;
            all.push(occurrence(one, function, self.from, window_ns));
        }
        let capacity_ns = u64::from(cpus) * (self.to - self.from);
        Recording {
            scheduler,
            cpus,
            window_us: window_ns / 1_000,
            all,
            others: Some(others(&self.usages, used, capacity_ns)),
            lost: self.lost,
        }
    }
}

fn occurrence(of: &Process, function: String, from: u64, window_ns: u64) -> Occurrence {
    let arrival_ns = of.forked_at.saturating_sub(from);
    let turnaround = |end: u64| end.saturating_sub(of.forked_at) / 1_000;
    Occurrence {
        invocation: Invocation {
            arrival_us: arrival_ns / 1_000,
            function,
            phases: of.trace_phases(),
            class: None,
        },
        turnaround_us: of.ended_at.map(turnaround),
        is_parallel: of.threads > 1,
        is_parent: of.is_parent,
        // The end of a process that was killed is not its own, and one that has started others
        // ends when these have ended.
        is_judged: of.ended_at.is_some()
            && !of.is_killed
            && !of.is_parent
            && arrival_ns <= window_ns,
    }
}

/// What is left of the CPU time besides what invocations have `used`.
fn others(usages: &Usages, used: Usage, capacity_ns: u64) -> Others {
    let of = |usage: Usage| Other {
        share: (usage.ns as f64 / capacity_ns.max(1) as f64).min(1.0),
        turn_us: usage.ns as f64 / 1e3 / usage.turns.max(1) as f64,
    };
    Others {
        kernel: of(usages.kernel),
        processes: of(Usage {
            ns: (usages.functions.ns + usages.others.ns).saturating_sub(used.ns),
            turns: (usages.functions.turns + usages.others.turns).saturating_sub(used.turns),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(forked_at: u64, ended_at: Option<u64>, groups: &[u64]) -> Process {
        Process {
            forked_at,
            ended_at,
            phases: vec![(2_000_000, 0)],
            turns: 2,
            threads: 1,
            is_parent: false,
            is_killed: false,
            groups: groups.to_vec(),
            function: "sh".into(),
        }
    }

    fn recorded(functions: Option<HashMap<u64, String>>) -> Recorded {
        let usage = |ns, turns| Usage { ns, turns };
        Recorded {
            processes: vec![
                process(9_000_000, Some(12_000_000), &[1, 5]),
                process(3_000_000, Some(8_000_000), &[1]),
                process(4_000_000, None, &[1, 6]),
            ],
            functions,
            usages: Usages {
                functions: usage(7_000_000, 7),
                kernel: usage(1_000_000, 10),
                others: usage(2_000_000, 4),
            },
            from: 1_000_000,
            to: 21_000_000,
            lost: 3,
        }
    }

    #[test]
    fn processes_become_invocations_in_order() {
        let found = recorded(None).recording(Scheduler::Eevdf, 2, 6_000_000);
        let times = found.all.iter().map(|one| {
            let arrival_us = one.invocation.arrival_us;
            (arrival_us, one.turnaround_us, one.is_judged)
        });
        let want = [
            (2_000, Some(5_000), true),
            (3_000, None, false),
            (8_000, Some(3_000), false),
        ];
        assert_eq!(times.collect::<Vec<_>>(), want);
        assert_eq!((found.window_us, found.lost), (6_000, 3));
        // 6 of the 9 ms were those of the invocations.
        let others = found.others.unwrap();
        assert_eq!((others.kernel.share, others.kernel.turn_us), (0.025, 100.0));
        assert_eq!(others.processes.share, 0.075);
        assert_eq!(others.processes.turn_us, 600.0);
    }

    #[test]
    fn only_processes_in_cgroups_of_functions_are_invocations() {
        let functions = HashMap::from([(5, "a b".to_owned()), (7, "c".to_owned())]);
        let found = recorded(Some(functions)).recording(Scheduler::Eevdf, 2, 10_000_000);
        assert_eq!(found.all.len(), 1);
        assert_eq!(found.all[0].invocation.function, "a_b");
        // 2 of the 9 ms were those of the invocation.
        assert_eq!(found.others.unwrap().processes.share, 0.175);
    }

    #[test]
    fn processes_that_were_killed_or_wait_for_others_do_not_count() {
        let judged = |change: fn(&mut Process)| {
            let mut all = recorded(None);
            change(&mut all.processes[1]);
            let found = all.recording(Scheduler::Eevdf, 2, 20_000_000);
            found.judged().count()
        };
        assert_eq!(judged(|_| ()), 2);
        assert_eq!(judged(|one| one.is_killed = true), 1);
        assert_eq!(judged(|one| one.is_parent = true), 1);
    }
}
