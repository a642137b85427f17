//! Counters of all CPUs over a replay.

use faas_replay::realtime::raise_file_limit;
use perf_event::events::{Hardware, Software};
use perf_event::{Builder, Counter};
use serde::{Deserialize, Serialize};

/// Counts of all CPUs, user and kernel. `None`: this machine does not count it, as most
/// virtual ones do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Cycles.
    pub cycles: Option<u64>,
    /// Instructions.
    pub instructions: Option<u64>,
    /// Misses of the last-level cache.
    pub cache_misses: Option<u64>,
    /// Moves of tasks from one CPU to another.
    pub migrations: Option<u64>,
    /// Context switches.
    pub switches: Option<u64>,
}

/// Counters that run from [`Watch::begin`] to [`Watch::end`].
#[derive(Debug)]
pub struct Watch {
    cycles: Option<Vec<Counter>>,
    instructions: Option<Vec<Counter>>,
    cache_misses: Option<Vec<Counter>>,
    migrations: Option<Vec<Counter>>,
    switches: Option<Vec<Counter>>,
}

impl Watch {
    /// Counts on these CPUs, which are all that the kernel numbers.
    pub fn begin(cpus: &[usize]) -> Self {
        raise_file_limit();
        Self {
            cycles: open(cpus, |one| one.kind(Hardware::CPU_CYCLES)),
            instructions: open(cpus, |one| one.kind(Hardware::INSTRUCTIONS)),
            cache_misses: open(cpus, |one| one.kind(Hardware::CACHE_MISSES)),
            migrations: open(cpus, |one| one.kind(Software::CPU_MIGRATIONS)),
            switches: open(cpus, |one| one.kind(Software::CONTEXT_SWITCHES)),
        }
    }

    /// The counts since the begin.
    pub fn end(self) -> Counts {
        Counts {
            cycles: sum(self.cycles),
            instructions: sum(self.instructions),
            cache_misses: sum(self.cache_misses),
            migrations: sum(self.migrations),
            switches: sum(self.switches),
        }
    }
}

/// One counter on each CPU; `None` if any cannot count.
fn open(
    cpus: &[usize],
    kind: impl Fn(Builder<'static>) -> Builder<'static>,
) -> Option<Vec<Counter>> {
    let one = |cpu: &usize| {
        let mut builder = kind(Builder::new().any_pid().one_cpu(*cpu));
        builder.include_kernel();
        let mut counter = builder.build().ok()?;
        counter.enable().ok()?;
        Some(counter)
    };
    cpus.iter().map(one).collect()
}

/// The sum; `None` if one was never on its CPU's unit, whose counters others use.
fn sum(counters: Option<Vec<Counter>>) -> Option<u64> {
    let mut all = 0;
    for mut counter in counters? {
        let read = counter.read_count_and_time().ok()?;
        if read.time_running == 0 {
            return None;
        }
        // Counters that share a unit take turns.
        let share = read.time_enabled as f64 / read.time_running as f64;
        all += (read.count as f64 * share) as u64;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_does_not_exist_counts_nothing() {
        assert_eq!(Watch::begin(&[1 << 20]).end(), Counts::default());
    }

    #[test]
    fn switches_are_counted() {
        let watch = Watch::begin(&[0]);
        if watch.switches.is_none() {
            sfs_skip::skip!("the kernel does not let this process count");
        }
        if !faas_replay::cpus::usable().unwrap().contains(&0) {
            sfs_skip::skip!("the first CPU is not ours");
        }
        let own = std::thread::spawn(|| {
            faas_replay::cpus::confine(&[0]).unwrap();
            for _ in 0..20 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        own.join().unwrap();
        let counts = watch.end();
        assert!(counts.switches >= Some(20), "{counts:?}");
    }
}
