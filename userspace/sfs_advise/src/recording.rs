//! What was recorded, as invocations.

use faas_data::trace::{Invocation, Phase};
use serde::Serialize;

use crate::machine::Scheduler;

/// An invocation as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Its arrival since the start of the recording, its function, and what it needed so far.
    pub invocation: Invocation,
    /// From its arrival to its end, us; `None`: it has not ended, or that was not seen.
    pub turnaround_us: Option<u64>,
    /// It had more than one thread at a time.
    pub is_parallel: bool,
    /// It has started other processes, and may have waited for them.
    pub is_parent: bool,
    /// It arrived while arrivals were recorded, and has ended by itself: it counts.
    pub is_judged: bool,
}

/// CPU time of work that is no function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Other {
    /// Its share of all CPUs, 0 to 1.
    pub share: f64,
    /// Mean length of its stays on a CPU, us.
    pub turn_us: f64,
}

/// Work that is no function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Others {
    /// Kernel threads and real-time tasks.
    pub kernel: Other,
    /// Processes that were there before, or are outside of the cgroups of functions.
    pub processes: Other,
}

impl Others {
    /// Returns the share of all CPUs that is not for functions, 0 to 1.
    pub fn share(&self) -> f64 {
        (self.kernel.share + self.processes.share).min(1.0)
    }
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The scheduler that served it, or of a trace that of this machine.
    pub scheduler: Scheduler,
    /// Number of CPUs, 1 or more.
    pub cpus: u32,
    /// For how long arrivals were recorded, us.
    pub window_us: u64,
    /// The invocations in order of arrival. Some may have arrived after that time, while others
    /// ended: they are load for those.
    pub all: Vec<Occurrence>,
    /// Other work; `None`: it was not seen, as there is only a trace.
    pub others: Option<Others>,
    /// Processes that are missing: ended ones that could not be reported, and others for which
    /// there was no room.
    pub lost: u64,
}

impl Recording {
    /// The recording that a trace is.
    pub fn of_trace(trace: &[Invocation], cpus: u32, scheduler: Scheduler) -> Self {
        let occurrence = |one: &Invocation| Occurrence {
            invocation: one.clone(),
            turnaround_us: None,
            is_parallel: false,
            is_parent: false,
            is_judged: true,
        };
        Self {
            scheduler,
            cpus,
            window_us: trace.last().map_or(0, |one| one.arrival_us),
            all: trace.iter().map(occurrence).collect(),
            others: None,
            lost: 0,
        }
    }

    /// Returns the invocations as a trace, in order of arrival.
    pub fn trace(&self) -> Vec<Invocation> {
        self.all.iter().map(|one| one.invocation.clone()).collect()
    }

    /// Returns the trace as it would take on CPUs that other work leaves a part of: each phase of
    /// CPU time is longer by that.
    pub fn stretched_trace(&self) -> Vec<Invocation> {
        let left = 1.0 - self.others.unwrap_or_default().share();
        let stretched = |phase: &Phase| match phase {
            Phase::Cpu { us, .. } => Phase::cpu((*us as f64 / left.max(0.01)).round() as u64),
            Phase::Io { us, .. } => Phase::io(*us),
        };
        let mut trace = self.trace();
        for one in &mut trace {
            one.phases = one.phases.iter().map(stretched).collect();
        }
        trace
    }

    /// Returns the invocations that count.
    pub fn judged(&self) -> impl Iterator<Item = &Occurrence> {
        self.all.iter().filter(|one| one.is_judged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_work_stretches_cpu_time_only() {
        let mut one = Invocation::cpu(0, "f", 900);
        one.phases.push(Phase::io(50));
        let mut recording = Recording::of_trace(&[one], 2, Scheduler::Eevdf);
        assert_eq!(recording.stretched_trace(), recording.trace());
        let share = |share| Other {
            share,
            turn_us: 1.0,
        };
        recording.others = Some(Others {
            kernel: share(0.05),
            processes: share(0.05),
        });
        let phases = &recording.stretched_trace()[0].phases;
        assert_eq!(phases[..], [Phase::cpu(1_000), Phase::io(50)]);
    }
}
