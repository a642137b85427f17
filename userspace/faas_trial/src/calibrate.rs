//! What the machine can do: the speed of its CPUs, alone and all busy, and what small things
//! cost.

use crate::file::round;
use crate::COSTS;
use anyhow::{ensure, Context, Result};
use faas_data::stats::mean;
use faas_replay::clock::{monotonic_ns, sleep_until, thread_cpu_ns};
use faas_replay::cpus::confine;
use faas_replay::fork::fork;
use faas_replay::meter::Usage;
use nix::sched::sched_yield;
use nix::sys::wait::waitpid;
use nix::unistd::{pipe, Pid};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// For how long a CPU is measured alone at the start.
const ALONE: Duration = Duration::from_millis(60);

/// For how long all CPUs are measured at the start, and before each replay.
const BUSY: Duration = Duration::from_millis(600);

/// Rounds between two looks at the clock: some microseconds.
const ROUNDS: u64 = 4096;

/// Speeds of the CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Rounds in a millisecond of CPU time while the others idle: the slowest CPU, the mean,
    /// and the fastest.
    pub alone: [f64; 3],
    /// The same while all are busy.
    pub busy: [f64; 3],
    /// The share of the time that busy CPUs gave, from 0 to 1. Loads are shares of it.
    pub available: f64,
}

/// What one CPU has done.
#[derive(Debug, Clone, Copy)]
struct Burnt {
    rounds: f64,
    cpu_ms: f64,
    wall_ms: f64,
}

impl Burnt {
    fn speed(&self) -> f64 {
        self.rounds / self.cpu_ms.max(1e-6)
    }
}

impl Capacity {
    /// Measures `cpus`, some of which may not be missing.
    ///
    /// # Errors
    /// If a thread cannot be restricted to a CPU.
    pub fn measure(cpus: &[usize]) -> Result<Self> {
        let alone = cpus.iter().map(|cpu| Ok(burn_all(&[*cpu], ALONE)?[0]));
        let alone = alone.collect::<Result<Vec<_>>>()?;
        let busy = burn_all(cpus, BUSY)?;
        let shares: Vec<f64> = busy.iter().map(|one| one.cpu_ms / one.wall_ms).collect();
        let available = mean(&shares).unwrap_or(1.0).clamp(0.01, 1.0);
        Ok(Self {
            alone: speeds(&alone),
            busy: speeds(&busy),
            available: round(available),
        })
    }
}

/// The mean speed of all CPUs while all are busy: rounds in a millisecond of CPU time.
///
/// # Errors
/// If a thread cannot be restricted to a CPU.
pub fn speed(cpus: &[usize]) -> Result<f64> {
    Ok(speeds(&burn_all(cpus, BUSY)?)[1])
}

/// The least, the mean and the most.
fn speeds(burnt: &[Burnt]) -> [f64; 3] {
    let all: Vec<f64> = burnt.iter().map(Burnt::speed).collect();
    let least = all.iter().copied().fold(f64::MAX, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    [least, mean(&all).unwrap_or(0.0), most].map(round)
}

/// Keeps all of `cpus` busy for this time.
fn burn_all(cpus: &[usize], time: Duration) -> Result<Vec<Burnt>> {
    let threads = cpus.iter().map(|cpu| {
        let cpu = *cpu;
        std::thread::spawn(move || burn(cpu, time))
    });
    let threads: Vec<_> = threads.collect();
    let joined = threads.into_iter().map(|thread| {
        let burnt = thread
            .join()
            .ok()
            .context("a thread of the calibration ended")?;
        burnt.context("the calibration cannot use a CPU")
    });
    joined.collect()
}

fn burn(cpu: usize, time: Duration) -> nix::Result<Burnt> {
    confine(&[cpu])?;
    let (begun, cpu_begun) = (monotonic_ns(), thread_cpu_ns());
    let end = begun + time.as_nanos() as u64;
    let (mut state, mut rounds) = (1u64, 0u64);
    let ended = loop {
        for _ in 0..ROUNDS {
            state = black_box(state ^ state << 13);
            state ^= state >> 7;
            state ^= state << 17;
        }
        rounds += ROUNDS;
        let now = monotonic_ns();
        if now >= end {
            break now;
        }
    };
    black_box(state);
    Ok(Burnt {
        rounds: rounds as f64,
        cpu_ms: (thread_cpu_ns() - cpu_begun) as f64 / 1e6,
        wall_ms: (ended - begun) as f64 / 1e6,
    })
}

/// What small things cost, in microseconds of elapsed time, under the kernel's own scheduler
/// on an idle machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// A fork, the exit of the child, and the wait for it.
    pub fork_exit_us: f64,
    /// A switch between two processes that yield to each other; `None` if they did not.
    pub switch_us: Option<f64>,
    /// A byte through a pipe to a process on the same CPU.
    pub handoff_us: f64,
    /// A byte through a pipe to a process that sleeps on another CPU; `None` with one CPU.
    pub wakeup_us: Option<f64>,
    /// How late a sleep ends.
    pub timer_us: f64,
}

/// The number of forks, and of bytes to and fro.
const FORKS: u32 = 200;
const BYTES: u32 = 1000;
const SLEEPS: u32 = 100;
const YIELDING_NS: u64 = 100_000_000;

impl Costs {
    /// Measures in a process of its own, which is small.
    ///
    /// # Errors
    /// If that process cannot be started, or fails.
    pub fn measure(cpus: &[usize]) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let two = [cpus.first(), cpus.get(1)].into_iter().flatten();
        let two: Vec<String> = two.map(usize::to_string).collect();
        let output = Command::new(program)
            .args([COSTS, &two.join(",")])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .context("cannot start the process that measures costs")?;
        serde_json::from_slice(&output.stdout).context("the process that measures costs failed")
    }

    fn on(cpus: &[usize]) -> Result<Self> {
        let first = *cpus.first().context("no CPU")?;
        confine(&[first])?;
        let fork_exit_us = each(FORKS, || child(|| {}))?;
        let handoff_us = to_and_fro(first)?;
        let wakeup_us = cpus.get(1).map(|cpu| to_and_fro(*cpu)).transpose()?;
        Ok(Self {
            fork_exit_us,
            switch_us: yielding()?,
            handoff_us,
            wakeup_us,
            timer_us: lateness(),
        })
    }
}

/// Runs the process that measures costs on these CPUs, one or two numbers with a comma.
pub fn main(cpus: &str) -> ExitCode {
    let cpus: Vec<usize> = cpus.split(',').filter_map(|cpu| cpu.parse().ok()).collect();
    let costs = Costs::on(&cpus).and_then(|costs| Ok(serde_json::to_string(&costs)?));
    match costs {
        Ok(text) if faas_data::output::print(text.as_bytes()).is_ok() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The mean time of one of `count` calls, in microseconds.
fn each(count: u32, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let begun = monotonic_ns();
    for _ in 0..count {
        call()?;
    }
    Ok(round(
        (monotonic_ns() - begun) as f64 / 1e3 / f64::from(count),
    ))
}

/// A child that does this and ends; waits for it.
fn child(work: impl FnOnce()) -> Result<()> {
    let pid = start(work)?;
    waitpid(Pid::from_raw(pid), None).context("cannot wait for a child")?;
    Ok(())
}

/// A child that does this and ends.
fn start(work: impl FnOnce()) -> Result<i32> {
    let pid = fork().context("cannot fork")?;
    if pid == 0 {
        work();
        std::process::exit(0);
    }
    Ok(pid)
}

/// The time of one way of a byte to a child on `cpu`, in microseconds.
fn to_and_fro(cpu: usize) -> Result<f64> {
    let (from_us, to_child) = pipe().context("cannot make a pipe")?;
    let (from_child, to_us) = pipe().context("cannot make a pipe")?;
    let (mut from_us, mut to_us) = (File::from(from_us), File::from(to_us));
    let (mut to_child, mut from_child) = (File::from(to_child), File::from(from_child));
    let pid = start(|| {
        let _ = confine(&[cpu]);
        let mut byte = [0];
        for _ in 0..BYTES {
            let passed = from_us
                .read_exact(&mut byte)
                .and_then(|()| to_us.write_all(&byte));
            if passed.is_err() {
                break;
            }
        }
    })?;
    drop((from_us, to_us));
    let mut byte = [0];
    let both = each(BYTES, || {
        to_child.write_all(&byte)?;
        Ok(from_child.read_exact(&mut byte)?)
    });
    waitpid(Pid::from_raw(pid), None).context("cannot wait for a child")?;
    Ok(round(both? / 2.0))
}

/// The time of a switch between two processes that yield, in microseconds.
fn yielding() -> Result<Option<f64>> {
    let before = Usage::own();
    let begun = monotonic_ns();
    let until = begun + YIELDING_NS;
    let turns = move || {
        while monotonic_ns() < until {
            let _ = sched_yield();
        }
    };
    let pid = start(turns)?;
    turns();
    let used = Usage::own().since(before);
    waitpid(Pid::from_raw(pid), None).context("cannot wait for a child")?;
    // Each switch from us is followed by one back.
    let switches = 2 * (used.voluntary + used.involuntary);
    ensure!(used.cpu_us > 0, "no CPU time");
    Ok((switches > 100).then(|| round(YIELDING_NS as f64 / 1e3 / switches as f64)))
}

/// How late sleeps of a millisecond end on average, in microseconds.
fn lateness() -> f64 {
    let late = (0..SLEEPS).map(|_| {
        let until = monotonic_ns() + 1_000_000;
        sleep_until(until);
        (monotonic_ns() - until) as f64 / 1e3
    });
    round(mean(&late.collect::<Vec<_>>()).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use faas_replay::clock::monotonic_ns;
    use faas_replay::cpus;

    fn first() -> usize {
        cpus::usable().unwrap()[0]
    }

    #[test]
    fn a_cpu_has_a_speed_and_gives_at_most_its_time() {
        let capacity = Capacity::measure(&[first()]).unwrap();
        assert!(capacity.alone[0] > 0.0, "{capacity:?}");
        assert!(capacity.busy[0] <= capacity.busy[2], "{capacity:?}");
        assert!(capacity.available > 0.0 && capacity.available <= 1.0);
        assert!(Capacity::measure(&[1 << 20]).is_err());
    }

    #[test]
    fn twice_the_work_on_half_the_speed_is_seen() {
        let burnt = |rounds, cpu_ms| Burnt {
            rounds,
            cpu_ms,
            wall_ms: 100.0,
        };
        assert_eq!(
            speeds(&[burnt(50.0, 10.0), burnt(50.0, 20.0)]),
            [2.5, 3.75, 5.0]
        );
        let begun = monotonic_ns();
        let nap = || {
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        };
        assert!(each(10, nap).unwrap() >= 1e3);
        assert!(monotonic_ns() - begun >= 10_000_000);
    }
}
