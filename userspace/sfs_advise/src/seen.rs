//! Figures of what was recorded.

use std::collections::HashSet;

use faas_data::measure::shortest;
use faas_data::stats::{mean, round, variation, Stats};
use faas_data::trace::Invocation;
use serde::Serialize;

use crate::recording::{Occurrence, Others, Recording};

/// With fewer invocations there is no advice.
pub const LEAST: usize = 100;

/// With a larger share of other work there is no prediction: half of each CPU is the most that
/// scx_sfs gives to work outside of functions.
pub const MOST_OTHERS: f64 = 0.5;

/// What was seen. Shares are 0 to 1, of all CPUs for the whole recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    /// For how long arrivals were recorded, s.
    pub seconds: f64,
    /// Number of CPUs.
    pub cpus: u32,
    /// Invocations that arrived in that time.
    pub arrived: usize,
    /// Those of them that have started others. They are load, but do not count below: their
    /// turnaround is that of the others.
    pub parents: usize,
    /// Those that have ended by themselves and have not started others: they count below.
    pub ended: usize,
    /// Their functions.
    pub functions: usize,
    /// Arrivals per second.
    pub arrivals_per_s: f64,
    /// Mean inter-arrival time, ms.
    pub iat_ms: Option<f64>,
    /// Coefficient of variation of the inter-arrival times; 1: as of independent arrivals.
    pub iat_variation: Option<f64>,
    /// Service times, ms.
    pub service_ms: Option<Stats>,
    /// Time blocked, ms.
    pub blocked_ms: Option<Stats>,
    /// The longest service time of a short invocation, ms.
    pub short_up_to_ms: Option<f64>,
    /// The share of the CPU time of invocations that short ones used.
    pub short_share: Option<f64>,
    /// The load of functions: what arrived, until it ended.
    pub load: f64,
    /// The share of their CPU time that is of invocations with several threads, which the
    /// simulated kernel takes for one.
    pub parallel_share: f64,
    /// Other work; null: unknown.
    pub others: Option<Others>,
    /// Processes that are missing, for lack of room.
    pub lost: u64,
}

impl Seen {
    /// The figures of a recording.
    pub fn of(recording: &Recording) -> Self {
        let judged: Vec<&Occurrence> = recording.judged().collect();
        let trace: Vec<Invocation> = judged.iter().map(|one| one.invocation.clone()).collect();
        let is_in_window = |one: &&Occurrence| one.invocation.arrival_us <= recording.window_us;
        let arrived: Vec<&Occurrence> = recording.all.iter().filter(is_in_window).collect();
        let gaps = gaps(&arrived);
        let functions: HashSet<&str> = trace.iter().map(|one| one.function.as_str()).collect();
        let service = trace.iter().map(Invocation::service_us).collect();
        let blocked = trace
            .iter()
            .map(|one| one.uncontended_us() - one.service_us());
        let all_us: u64 = arrived.iter().map(|one| one.invocation.service_us()).sum();
        let parallel = arrived.iter().filter(|one| one.is_parallel);
        let parallel_us: u64 = parallel.map(|one| one.invocation.service_us()).sum();
        let short = Short::of(&trace);
        let seconds = recording.window_us as f64 / 1e6;
        Self {
            seconds,
            cpus: recording.cpus,
            arrived: arrived.len(),
            parents: arrived.iter().filter(|one| one.is_parent).count(),
            ended: judged.len(),
            functions: functions.len(),
            arrivals_per_s: per(arrived.len() as f64, seconds, 2),
            iat_ms: mean(&gaps).map(|ms| round(ms, 3)),
            iat_variation: variation(&gaps).map(|of| round(of, 3)),
            service_ms: Stats::of_us(service),
            blocked_ms: Stats::of_us(blocked.collect()),
            short_up_to_ms: short.map(|short| short.up_to_us as f64 / 1e3),
            short_share: short.map(|short| round(short.share, 4)),
            load: per(all_us as f64 / 1e6, f64::from(recording.cpus) * seconds, 4),
            parallel_share: per(parallel_us as f64, all_us as f64, 4),
            others: recording.others,
            lost: recording.lost,
        }
    }

    /// Returns why there is no prediction, in one sentence; `None`: there can be one.
    pub fn obstacle(&self) -> Option<String> {
        if self.ended < LEAST {
            return Some(format!(
                "No advice: {} invocations were seen to begin and end, and it takes {LEAST}. \
                 Record for longer, or at a time of more load.",
                self.ended
            ));
        }
        let others = self.others.unwrap_or_default().share();
        (others > MOST_OTHERS).then(|| {
            format!(
                "No advice: {:.0} % of the CPU time goes to work that is no function. scx_sfs \
                 shares at most half of each CPU between the two, and the simulated kernel does \
                 not know that work well enough; --cgroup names the cgroups of functions.",
                100.0 * others
            )
        })
    }
}

/// `part / whole`, rounded; 0 of nothing.
fn per(part: f64, whole: f64, decimals: i32) -> f64 {
    if whole > 0.0 {
        round(part / whole, decimals)
    } else {
        0.0
    }
}

/// Inter-arrival times, ms.
fn gaps(arrived: &[&Occurrence]) -> Vec<f64> {
    let at = |one: &Occurrence| one.invocation.arrival_us;
    let pairs = arrived.windows(2);
    pairs
        .map(|two| (at(two[1]) - at(two[0])) as f64 / 1e3)
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Short {
    up_to_us: u64,
    /// Of the CPU time.
    share: f64,
}

impl Short {
    fn of(trace: &[Invocation]) -> Option<Self> {
        let is_short = shortest(trace);
        let service = |only_short: bool| {
            let pairs = trace.iter().zip(&is_short);
            pairs
                .filter(move |(_, short)| **short || !only_short)
                .map(|(one, _)| one.service_us())
        };
        let all: u64 = service(false).sum();
        Some(Self {
            up_to_us: service(true).max()?,
            share: service(true).sum::<u64>() as f64 / all.max(1) as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Scheduler;
    use crate::recording::Other;

    fn seen(count: u64) -> Seen {
        let one = |id: u64| Invocation::cpu(id * 10_000, format!("f{}", id % 3), 1_000 * (id + 1));
        let trace: Vec<Invocation> = (0..count).map(one).collect();
        Seen::of(&Recording::of_trace(&trace, 2, Scheduler::Eevdf))
    }

    #[test]
    fn figures_are_those_of_the_invocations() {
        let seen = seen(11);
        assert_eq!((seen.seconds, seen.arrived, seen.ended), (0.1, 11, 11));
        assert_eq!((seen.functions, seen.arrivals_per_s), (3, 110.0));
        assert_eq!((seen.iat_ms, seen.iat_variation), (Some(10.0), Some(0.0)));
        assert_eq!(seen.service_ms.unwrap().max, 11.0);
        assert_eq!(seen.load, 66.0 / 200.0);
        // ceil(9.13) of 11 are short.
        assert_eq!(seen.short_up_to_ms, Some(10.0));
        assert_eq!(seen.short_share, Some(0.8333));
    }

    #[test]
    fn there_is_no_advice_of_few_invocations_or_beside_much_else() {
        assert!(seen(99).obstacle().unwrap().contains("99 invocations"));
        let mut enough = seen(100);
        assert_eq!(enough.obstacle(), None);
        let other = |share| Other {
            share,
            turn_us: 9.0,
        };
        enough.others = Some(Others {
            kernel: other(0.01),
            processes: other(0.52),
        });
        assert!(enough.obstacle().unwrap().contains("53 %"));
        assert_eq!(seen(0).iat_ms, None);
    }
}
