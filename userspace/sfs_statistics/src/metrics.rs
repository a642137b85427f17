//! The published statistics. Each is declared once: counters of the kernel half in
//! `counters.h`, those of hints in [`sfs_listener::counters`], the others here.

use std::time::Instant;

use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};
use sfs_bpf::bpf_intf::*;
use sfs_bpf::exit::End;
use sfs_bpf::kernel::{Policy, Queues};
use sfs_bpf::with_kernel_counters;
use sfs_listener::{with_hint_counters, HintCounters};
use sfs_policy::{Counters, Mode};

/// Declares the statistics, and everything that names each of them. `kernel` lists counters of
/// the kernel half with their numbers, `hints` fields of [`HintCounters`], `loader` further
/// counters of the loader. All of these are published as the growth since the last answer.
/// `state` lists the values published as they are.
macro_rules! metrics {
    (
        state { $($state:ident: $type:ident = $state_text:tt,)* }
        loader { $($count:ident: $count_text:tt,)* }
        kernel { $($counter:ident = $number:ident: $counter_text:tt,)* }
        hints { $($of_hints:ident = $hints:ident: $hints_text:tt,)* }
    ) => {
        /// The published statistics. Counters are since loading in the first answer on a
        /// connection, and since the previous answer in the following ones.
        #[stat_doc]
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
        #[stat(top)]
        pub struct Metrics {
            $(#[stat(desc = $state_text)] pub $state: $type,)*
            $(#[stat(desc = $count_text)] pub $count: u64,)*
            $(#[stat(desc = $counter_text)] pub $counter: u64,)*
            $(#[stat(desc = $hints_text)] pub $hints: u64,)*
        }

        impl Metrics {
            /// Returns the sums of the kernel half's counters; all other values are 0.
            fn of_kernel(per_cpu: &[sfs_stats]) -> Self {
                Self {
                    $($counter: sum(per_cpu, $number),)*
                    ..Self::default()
                }
            }

            /// Returns the counters of the loader, the kernel half and hints, with what they
            /// count and their values.
            pub fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![
                    $((stringify!($count), $count_text, self.$count),)*
                    $((stringify!($counter), $counter_text, self.$counter),)*
                    $((stringify!($hints), $hints_text, self.$hints),)*
                ]
            }

            /// Adds the counters of hints.
            pub fn with_hints(self, hints: HintCounters) -> Self {
                Self {
                    $($hints: hints.$of_hints,)*
                    ..self
                }
            }

            /// Returns these values, with each counter replaced by its growth since `earlier`,
            /// at least 0.
            fn with_growth_since(&self, earlier: &Self) -> Self {
                Self {
                    $($count: self.$count.saturating_sub(earlier.$count),)*
                    $($counter: self.$counter.saturating_sub(earlier.$counter),)*
                    $($hints: self.$hints.saturating_sub(earlier.$hints),)*
                    ..self.clone()
                }
            }
        }
    };
}

with_kernel_counters! { with_hint_counters { metrics {
    state {
        policy: String = "Current policy: sfs, learned or fair; sfs also if learned has failed",
        mode: u64 = "Mode: 0 FILTER, 1 fair-only (overload)",
        slice_us: u64 = "S, the CPU time that a new invocation may use in FILTER, in microseconds",
        mean_iat_us: u64 = "Mean IAT from which S was computed, in microseconds; 0 before the first window",
        cpus: u64 = "CPUs that functions may use",
        sandboxes: u64 = "Cgroups known as sandboxes (--cgroup)",
        sandboxes_left_out: u64 = "Sandboxes beyond --max-sandboxes, whose tasks are not \
             functions",
        functions: u64 = "Functions with learned service times (--policy learned)",
        rank_tables: u64 = "Rank tables that functions share; 0 if nothing is ranked",
        queued_filter: u64 = "Tasks that wait in FILTER now",
        queued_ranked: u64 = "Tasks that wait in the order of ranks now",
        queued_fair: u64 = "Function tasks that wait in FAIR now",
        queued_outside: u64 = "Tasks outside of functions that wait now",
        runnable: u64 = "Function tasks that run or wait now (--policy learned)",
        queue_delay_mean_us: f64 = "Mean queueing delay of FILTER work, in microseconds",
        queue_delay_p99_us: u64 = "99th percentile of the queueing delay since load, in \
             microseconds (upper end of a power of two)",
        queue_delay_max_us: u64 = "Maximum queueing delay since load, in microseconds",
        build: String = "Version and build of the loader",
        uptime_s: u64 = "Seconds since the scheduler was loaded",
        last_exit: String = "How the previous scheduler ended: stopped, failed, hotplug, \
             stalled, error, sysrq, unloaded, killed; none: the first since boot",
        ejections: u64 = "Ejections of scx_sfs by the kernel in the hour before it was loaded",
    }
    loader {
        overloads: "Switches to fair-only mode",
    }
} } }

/// Facts about a run other than counters.
pub struct RunInfo {
    loaded_at: Instant,
    /// How the previous scheduler ended, if there was one since boot.
    pub last_end: Option<End>,
    /// Number of ejections in the hour before loading.
    pub ejections: u64,
}

impl RunInfo {
    /// Returns the facts of a scheduler that has just been loaded.
    pub fn now() -> Self {
        Self {
            loaded_at: Instant::now(),
            last_end: None,
            ejections: 0,
        }
    }
}

impl Metrics {
    /// Sums the counters of all CPUs.
    pub fn new(per_cpu: &[sfs_stats], policy: &Counters, mode: Mode, sandboxes: u64) -> Self {
        let counted = Self::of_kernel(per_cpu);
        let delay_us = sum(per_cpu, sfs_counter_SFS_FILTER_DELAY_NS) as f64 / 1000.0;
        let longest = per_cpu.iter().map(|s| s.delay_max).max().unwrap_or(0);
        Self {
            mode: u64::from(mode == Mode::FairOnly),
            slice_us: policy.slice_ns / 1000,
            mean_iat_us: policy.mean_iat_ns.unwrap_or(0) / 1000,
            cpus: u64::from(policy.cpus),
            sandboxes,
            queue_delay_mean_us: mean(delay_us, counted.filter_starts),
            queue_delay_p99_us: percentile_us(per_cpu, 0.99),
            queue_delay_max_us: longest / 1000,
            overloads: policy.fair_only_entered,
            ..counted
        }
    }

    /// Adds the facts about the run.
    pub fn with_run(self, run: &RunInfo) -> Self {
        let last_end = run.last_end.map(|end| end.to_string());
        Self {
            build: sfs_bpf::version(),
            uptime_s: run.loaded_at.elapsed().as_secs(),
            last_exit: last_end.unwrap_or_else(|| "none".to_owned()),
            ejections: run.ejections,
            ..self
        }
    }

    /// Adds the policy in force.
    pub fn with_policy(self, policy: Policy) -> Self {
        Self {
            policy: policy.to_string(),
            ..self
        }
    }

    /// Adds the present lengths of the queues.
    pub fn with_queues(self, queues: Queues) -> Self {
        Self {
            queued_filter: queues.filter,
            queued_ranked: queues.ranked,
            queued_fair: queues.fair,
            queued_outside: queues.outside,
            runnable: queues.runnable,
            ..self
        }
    }

    /// Adds the number of sandboxes that did not fit.
    pub fn with_left_out(self, sandboxes: usize) -> Self {
        Self {
            sandboxes_left_out: sandboxes as u64,
            ..self
        }
    }

    /// Adds the numbers of learned functions and of the tables that they share.
    pub fn with_learned(self, (functions, rank_tables): (usize, usize)) -> Self {
        Self {
            functions: functions as u64,
            rank_tables: rank_tables as u64,
            ..self
        }
    }

    /// Returns the growth since `earlier`, 0 for counters that have not grown.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let grown = self.with_growth_since(earlier);
        let delay_us = self.queue_delay_mean_us * self.filter_starts as f64
            - earlier.queue_delay_mean_us * earlier.filter_starts as f64;
        Self {
            queue_delay_mean_us: mean(delay_us, grown.filter_starts),
            ..grown
        }
    }
}

fn sum(per_cpu: &[sfs_stats], counter: sfs_counter) -> u64 {
    per_cpu.iter().map(|s| s.counter[counter as usize]).sum()
}

fn mean(sum: f64, count: u64) -> f64 {
    if count == 0 {
        0.0
    } else {
        sum.max(0.0) / count as f64
    }
}

/// Returns the upper end, in microseconds, of the bucket with the percentile `share` (0 to 1)
/// of the delays.
fn percentile_us(per_cpu: &[sfs_stats], share: f64) -> u64 {
    let bucket = |b: usize| -> u64 { per_cpu.iter().map(|s| s.delay[b]).sum() };
    let total: u64 = (0..SFS_DELAY_BUCKETS as usize).map(bucket).sum();
    let rank = (total as f64 * share).ceil() as u64;
    let mut seen = 0;
    for b in 0..SFS_DELAY_BUCKETS as usize {
        seen += bucket(b);
        if seen >= rank && seen > 0 {
            return 1u64 << b;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    use sfs_policy::{Config, Controller, SlicePolicy};
    use zerocopy::FromZeros;

    /// Returns counters of one CPU, each set to its number plus one.
    fn numbered() -> sfs_stats {
        let mut one = sfs_stats::new_zeroed();
        for (number, counter) in (1..).zip(&mut one.counter) {
            *counter = number;
        }
        one
    }

    fn counters() -> Counters {
        let slice = SlicePolicy::fixed(5000).unwrap();
        Controller::new(Config {
            window: NonZeroUsize::MIN,
            slice,
            initial_slice_ns: 1,
            overload: None,
            cpus: 3,
        })
        .counters()
    }

    #[test]
    fn the_counters_of_all_cpus_are_summed_up() {
        let (mut first, mut second) = (numbered(), numbered());
        (first.delay_max, second.delay_max) = (7000, 9000);
        (first.delay[3], second.delay[5]) = (98, 2);
        let metrics = Metrics::new(&[first, second], &counters(), Mode::FairOnly, 4);
        let twice = |counter: sfs_counter| 2 * (u64::from(counter) + 1);
        assert_eq!(metrics.arrivals, twice(sfs_counter_SFS_ARRIVALS));
        assert_eq!(metrics.begun_by_idle, twice(sfs_counter_SFS_BEGUN_BY_IDLE));
        assert_eq!(metrics.lost_events, twice(sfs_counter_SFS_LOST_EVENTS));
        let starts = twice(sfs_counter_SFS_FILTER_STARTS);
        let delay_us = twice(sfs_counter_SFS_FILTER_DELAY_NS) as f64 / 1000.0;
        assert_eq!(metrics.filter_starts, starts);
        assert!((metrics.queue_delay_mean_us - delay_us / starts as f64).abs() < 1e-9);
        assert_eq!(
            (metrics.queue_delay_max_us, metrics.queue_delay_p99_us),
            (9, 32)
        );
        assert_eq!((metrics.mode, metrics.slice_us, metrics.cpus), (1, 5, 3));
        assert_eq!(metrics.sandboxes, 4);
    }

    /// A counter that could not be read must not lead to a huge value, or to no statistics.
    #[test]
    fn counters_that_go_back_have_not_grown() {
        let before = Metrics {
            arrivals: 7,
            hints: 5,
            filter_starts: 3,
            queue_delay_mean_us: 10.0,
            overloads: 1,
            ..Metrics::default()
        };
        let nothing = Metrics::default().since(&before);
        assert_eq!((nothing.arrivals, nothing.hints), (0, 0));
        assert_eq!((nothing.filter_starts, nothing.overloads), (0, 0));
        assert!(nothing.queue_delay_mean_us.abs() < 1e-9);
        let later = Metrics {
            arrivals: 9,
            ..before.clone()
        };
        assert_eq!(later.since(&before).arrivals, 2);
        let counters = later.counters();
        let count = |wanted| {
            let mut counters = counters.iter();
            counters.find_map(|(name, _, count)| (*name == wanted).then_some(*count))
        };
        assert_eq!((count("arrivals"), count("overloads")), (Some(9), Some(1)));
        assert_eq!(count("queued_fair"), None);
    }
}
