//! `faasbench calibrate`: what small things cost on a machine, with their spread.
//!
//! The costs are those of [`Costs`], and one more: a thread wakes up another one by a futex.
//! Each is measured several times; a measurement is itself a mean over many calls, so the
//! spread is that of means.

use crate::calibrate::Costs;
use crate::show;
use anyhow::{bail, Context, Result};
use faas_data::output::print;
use faas_data::stats::{nearest_rank, round, sorted};
use faas_replay::clock::monotonic_ns;
use faas_replay::cpus::{confine, usable};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::thread::Thread;
use std::time::Duration;

/// Wake-ups to and fro in a measurement.
const WAKES: u32 = 1000;

/// For how long a thread waits for the other one at most, which a lost thread exceeds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Median and quartiles by nearest rank, in nanoseconds of elapsed time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The 25th percentile.
    pub q1: f64,
    /// The 75th percentile.
    pub q3: f64,
}

impl Spread {
    /// Of some values in microseconds; `None` if empty.
    fn of_us(values: Vec<f64>) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let values = sorted(values);
        let at = |quarter| round(nearest_rank(&values, quarter, 4) * 1e3, 1);
        Some(Self {
            median: at(2),
            q1: at(1),
            q3: at(3),
        })
    }
}

/// What small things cost on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Number of measurements.
    pub repetitions: u32,
    /// Number of CPUs that were used: 1 or 2.
    pub cpus: u32,
    /// A byte through a pipe to a process on the same CPU, and one back.
    pub pipe_ns: Option<Spread>,
    /// The same with a process that sleeps on another CPU; `None` with one CPU.
    pub pipe_other_cpu_ns: Option<Spread>,
    /// A fork, the exit of the child, and the wait for it.
    pub fork_exit_ns: Option<Spread>,
    /// From one thread that wakes up another by a futex, until that one does the same; on
    /// another CPU if there is one.
    pub wakeup_ns: Option<Spread>,
    /// A switch between two processes on one CPU that yield to each other; `None` if the
    /// scheduler did not switch.
    pub switch_ns: Option<Spread>,
    /// How late a sleep of a millisecond ends.
    pub timer_ns: Option<Spread>,
}

impl Calibration {
    /// Measures under the scheduler that is in force, on the first two CPUs that this process
    /// may use.
    ///
    /// # Errors
    /// If CPUs cannot be counted or used, or a process cannot be started.
    pub fn measure(repetitions: u32) -> Result<Self> {
        let cpus = usable().context("cannot count the CPUs")?;
        let cpus = &cpus[..cpus.len().min(2)];
        let mut costs = Vec::new();
        let mut wakeups = Vec::new();
        for _ in 0..repetitions {
            costs.push(Costs::measure(cpus)?);
            wakeups.push(futex(cpus)?);
        }
        let spread = |cost: fn(&Costs) -> Option<f64>| {
            Spread::of_us(costs.iter().filter_map(cost).collect())
        };
        Ok(Self {
            repetitions,
            cpus: cpus.len() as u32,
            pipe_ns: spread(|one| Some(one.handoff_us * 2.0)),
            pipe_other_cpu_ns: spread(|one| Some(one.wakeup_us? * 2.0)),
            fork_exit_ns: spread(|one| Some(one.fork_exit_us)),
            wakeup_ns: Spread::of_us(wakeups),
            switch_ns: spread(|one| one.switch_us),
            timer_ns: spread(|one| Some(one.timer_us)),
        })
    }

    /// Its rows: what, and how long it took.
    pub fn rows(&self) -> [(&'static str, Option<Spread>); 6] {
        [
            ("pipe round trip, same CPU", self.pipe_ns),
            ("pipe round trip, other CPU", self.pipe_other_cpu_ns),
            ("fork, exit and wait", self.fork_exit_ns),
            ("wake-up by a futex, other CPU", self.wakeup_ns),
            ("switch by sched_yield", self.switch_ns),
            ("end of a sleep, late by", self.timer_ns),
        ]
    }
}

/// Measures, and prints a table, or JSON.
///
/// # Errors
/// As of [`Calibration::measure`], or if nobody reads the output.
pub fn report(repetitions: u32, as_json: bool) -> Result<()> {
    let found = Calibration::measure(repetitions)?;
    let text = match as_json {
        true => serde_json::to_string_pretty(&found)? + "\n",
        false => table(&found),
    };
    print(text.as_bytes())
}

fn table(found: &Calibration) -> String {
    let mut table = show::table(&["cost", "median ns", "25 %", "75 %"], 0);
    let shown = |value: Option<f64>| value.map_or("-".to_string(), |ns| format!("{ns:.0}"));
    for (what, spread) in found.rows() {
        table.add_row([
            what.to_string(),
            shown(spread.map(|one| one.median)),
            shown(spread.map(|one| one.q1)),
            shown(spread.map(|one| one.q3)),
        ]);
    }
    show::lines(&table)
}

/// Whose turn it is, and whether the other thread has given up.
#[derive(Default)]
struct Shared {
    turn: AtomicU32,
    is_over: AtomicBool,
}

impl Shared {
    /// Sleeps until it is this turn; false if the other thread is gone.
    fn wait(&self, turn: u32) -> bool {
        let begun_ns = monotonic_ns();
        // A thread that is unparked at the wrong time looks again.
        while self.turn.load(Ordering::Acquire) != turn {
            let waited_ns = monotonic_ns() - begun_ns;
            if self.is_over.load(Ordering::Acquire) || waited_ns > PATIENCE.as_nanos() as u64 {
                return false;
            }
            std::thread::park_timeout(PATIENCE);
        }
        true
    }

    fn pass(&self, turn: u32, to: &Thread) {
        self.turn.store(turn, Ordering::Release);
        to.unpark();
    }
}

/// The time of one wake-up by a futex in microseconds: two threads wake up each other, on the
/// first and the last of `cpus`.
fn futex(cpus: &[usize]) -> Result<f64> {
    let (Some(first), Some(last)) = (cpus.first(), cpus.last()) else {
        bail!("no CPU can be used");
    };
    let (first, last) = (*first, *last);
    let shared = Arc::new(Shared::default());
    let other = Arc::clone(&shared);
    // A thread of its own, so that the caller stays where it may run.
    let measured = std::thread::spawn(move || -> Result<f64> {
        confine(&[first]).with_context(|| format!("cannot use CPU {first}"))?;
        let caller = std::thread::current();
        let partner = std::thread::spawn(move || {
            let confined = confine(&[last]);
            for round in 0..WAKES {
                if confined.is_err() || !other.wait(2 * round + 1) {
                    break;
                }
                other.pass(2 * round + 2, &caller);
            }
            other.is_over.store(true, Ordering::Release);
            caller.unpark();
            confined
        });
        let begun_ns = monotonic_ns();
        let done = (0..WAKES).all(|round| {
            shared.pass(2 * round + 1, partner.thread());
            shared.wait(2 * round + 2)
        });
        let took_ns = monotonic_ns() - begun_ns;
        shared.is_over.store(true, Ordering::Release);
        partner.thread().unpark();
        let confined = partner.join().ok().context("a thread ended early")?;
        confined.with_context(|| format!("cannot use CPU {last}"))?;
        if !done {
            bail!("a thread was not woken up within {} s", PATIENCE.as_secs());
        }
        Ok(took_ns as f64 / 1e3 / f64::from(2 * WAKES))
    });
    measured.join().ok().context("a thread ended early")?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_by_nearest_rank_in_nanoseconds() {
        let spread = Spread::of_us(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.q1, spread.median, spread.q3), (1e3, 2e3, 3e3));
        assert_eq!(Spread::of_us(Vec::new()), None);
    }

    #[test]
    fn threads_wake_up_each_other_on_cpus_that_exist() {
        let cpus = usable().unwrap();
        assert!(futex(&cpus[..1]).unwrap() > 0.0);
        let missing = [cpus[0], 1 << 20];
        let said = futex(&missing).unwrap_err().to_string();
        assert_eq!(said, "cannot use CPU 1048576");
        let said = futex(&[1 << 20]).unwrap_err().to_string();
        assert_eq!(said, "cannot use CPU 1048576");
        assert!(futex(&[]).is_err());
    }

    #[test]
    fn what_is_unknown_is_a_dash() {
        let spread = Spread::of_us(vec![1.5]);
        let found = Calibration {
            repetitions: 1,
            cpus: 1,
            pipe_ns: spread,
            pipe_other_cpu_ns: None,
            fork_exit_ns: spread,
            wakeup_ns: spread,
            switch_ns: None,
            timer_ns: spread,
        };
        let text = table(&found);
        let words = |line: &str| line.split_whitespace().last().map(str::to_string);
        let last: Vec<_> = text.lines().skip(2).filter_map(words).collect();
        assert_eq!(last, ["1500", "-", "1500", "1500", "-", "1500"]);
    }
}
