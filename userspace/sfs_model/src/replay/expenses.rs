//! What a replay costs besides the work of its invocations, as measured in a guest in virtual time
//! (docs/model.md).

use anyhow::{anyhow, Context, Error, Result};
use sfs_kernel_model::replay::Costs;
use sfs_kernel_model::workload::Behaviour;
use std::str::FromStr;

/// Costs in ns, those of instructions while one CPU is busy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expenses {
    /// From an arrival until the replayer runs: the timer's interrupt.
    pub wake_ns: u64,
    /// From there until the process that it forks is runnable.
    pub fork_ns: u64,
    /// From there until it looks for ended processes.
    pub after_ns: u64,
    /// To collect one that has ended: wait4().
    pub collect_ns: u64,
    /// CPU time of a step of the loader.
    pub loader_ns: u64,
    /// CPU time of a process until it works.
    pub start_ns: u64,
    /// CPU time of a process behind its work.
    pub exit_ns: u64,
    /// How much longer than asked for a sleep lasts.
    pub slack_ns: u64,
    /// The turns in which emulated CPUs run; 0: they are real.
    pub turn_ns: u64,
    /// Mean CPU time of a turn of a kernel thread; there is one for each CPU.
    pub thread_ns: u64,
    /// Mean sleep of a kernel thread; 0: there are none.
    pub pause_ns: u64,
}

impl Expenses {
    /// Nothing costs anything.
    pub const NONE: Self = Self {
        wake_ns: 0,
        fork_ns: 0,
        after_ns: 1_000,
        collect_ns: 0,
        loader_ns: 1_000,
        start_ns: 0,
        exit_ns: 0,
        slack_ns: 0,
        turn_ns: 0,
        thread_ns: 0,
        pause_ns: 0,
    };

    /// A guest in virtual time.
    pub const GUEST: Self = Self {
        wake_ns: 35_000,
        fork_ns: 133_000,
        after_ns: 23_000,
        collect_ns: 30_000,
        loader_ns: 50_000,
        start_ns: 60_000,
        exit_ns: 150_000,
        slack_ns: 50_000,
        turn_ns: 400_000,
        thread_ns: 22_000,
        pause_ns: 17_800_000,
    };

    /// Those of processes.
    pub(crate) fn of_process(&self) -> Costs {
        Costs {
            start_ns: self.start_ns,
            exit_ns: self.exit_ns,
            slack_ns: self.slack_ns,
            turn_ns: self.turn_ns,
        }
    }

    /// What runs besides on a machine with `cpus` CPUs; with `true` a kernel thread.
    pub(crate) fn outside(&self, cpus: usize) -> Vec<(Behaviour, bool)> {
        let thread = Behaviour::Daemon {
            runs_us: (self.thread_ns / 1_000).max(1),
            sleeps_us: self.pause_ns / 1_000,
        };
        let number = if self.pause_ns == 0 { 0 } else { cpus };
        vec![(thread, true); number]
    }

    fn place(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "wake" => &mut self.wake_ns,
            "fork" => &mut self.fork_ns,
            "after" => &mut self.after_ns,
            "collect" => &mut self.collect_ns,
            "loader" => &mut self.loader_ns,
            "start" => &mut self.start_ns,
            "exit" => &mut self.exit_ns,
            "slack" => &mut self.slack_ns,
            "turn" => &mut self.turn_ns,
            "thread" => &mut self.thread_ns,
            "pause" => &mut self.pause_ns,
            _ => return None,
        })
    }
}

impl FromStr for Expenses {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut expenses = match text {
            "none" => return Ok(Self::NONE),
            _ => Self::GUEST,
        };
        for word in text.split(',').filter(|word| *word != "guest") {
            let (name, value) = word.split_once('=').context("a word without =")?;
            let value = value.parse::<u32>().context("want a number of ns")?;
            let place = expenses.place(name);
            *place.ok_or_else(|| anyhow!("nothing that costs is called {name}"))? = value.into();
        }
        Ok(expenses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_a_guest_with_changes() {
        let read = |text: &str| text.parse::<Expenses>().ok();
        assert_eq!(read("guest"), Some(Expenses::GUEST));
        assert_eq!(read("none"), Some(Expenses::NONE));
        let changed = read("fork=7,turn=0").unwrap();
        assert_eq!((changed.fork_ns, changed.turn_ns), (7, 0));
        assert_eq!(changed.exit_ns, Expenses::GUEST.exit_ns);
        for wrong in ["fork", "fork=-1", "fork=x", "spoon=1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
