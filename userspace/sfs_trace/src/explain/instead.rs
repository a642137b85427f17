//! Who ran instead: what the CPUs that an invocation might have used did while it waited.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde::Serialize;

use crate::account::Run;
use crate::cpus::Cpus;
use crate::names::Names;
use crate::roster::{Class, Roster};

/// Stays on CPUs that are remembered; 32 bytes each.
const MOST: usize = 1_000_000;

/// A runner that used a CPU meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Instead {
    /// Its function, or the name of its program.
    pub name: String,
    /// Its class: `function`, `outside`, `kernel`, `real_time` or `idle`.
    pub class: &'static str,
    /// Number of invocations; 0: it is no function.
    pub invocations: usize,
    /// CPU time that it had, in ms, on all the CPUs together.
    pub cpu_ms: f64,
    /// Its share of the time of these CPUs, 0 to 1.
    pub share: f64,
}

/// A stretch of time, in ns.
pub type Stretch = (u64, u64);

#[derive(Debug, Clone, Copy)]
struct Stay {
    from: u64,
    to: u64,
    serial: u64,
    who: u32,
    cpu: u32,
}

impl From<&Run> for Stay {
    fn from(run: &Run) -> Self {
        Self {
            from: run.from,
            to: run.to,
            serial: run.serial,
            who: run.who,
            cpu: run.cpu as u32,
        }
    }
}

/// The last stays on all CPUs, in the order of their ends.
#[derive(Debug, Default)]
pub struct History {
    stays: VecDeque<Stay>,
}

impl History {
    /// A stay has ended.
    pub fn add(&mut self, run: &Run) {
        if self.stays.len() == MOST {
            self.stays.pop_front();
        }
        self.stays.push_back(run.into());
    }

    /// Returns who used the CPUs `allowed` in the stretches `waits`, which are in order and do not
    /// overlap, those with the most CPU time first. It does not count the invocation `own`.
    /// `running` are the stays that have not ended.
    pub fn instead(
        &self,
        waits: &[Stretch],
        allowed: &Cpus,
        own: u64,
        running: impl Iterator<Item = Run>,
        roster: &Roster,
        names: &Names,
    ) -> Vec<Instead> {
        let Some((first, _)) = waits.first() else {
            return Vec::new();
        };
        let start = self.stays.partition_point(|stay| stay.to <= *first);
        let running: Vec<Stay> = running.map(|run| Stay::from(&run)).collect();
        let mut used: HashMap<u32, (u64, BTreeSet<u64>)> = HashMap::new();
        for stay in self.stays.range(start..).chain(&running) {
            if !allowed.contains(stay.cpu as usize) || (own != 0 && stay.serial == own) {
                continue;
            }
            let time = overlap(waits, stay.from, stay.to);
            if time > 0 {
                let (sum, serials) = used.entry(stay.who).or_default();
                *sum += time;
                if stay.serial != 0 {
                    serials.insert(stay.serial);
                }
            }
        }
        let waited: u64 = waits.iter().map(|(from, to)| to - from).sum();
        let total = waited as f64 * allowed.count() as f64;
        by_name(used, total, roster, names)
    }
}

/// Returns how much of the stretches is in the time from `from` to `to`.
fn overlap(waits: &[Stretch], from: u64, to: u64) -> u64 {
    let first = waits.partition_point(|wait| wait.1 <= from);
    waits[first..]
        .iter()
        .take_while(|wait| wait.0 < to)
        .map(|wait| wait.1.min(to) - wait.0.max(from))
        .sum()
}

/// Puts runners of one name and class together.
fn by_name(
    used: HashMap<u32, (u64, BTreeSet<u64>)>,
    total: f64,
    roster: &Roster,
    names: &Names,
) -> Vec<Instead> {
    let mut sums: HashMap<(String, Class), (u64, usize)> = HashMap::new();
    for (number, (time, serials)) in used {
        let class = roster.who(number).class;
        let name = names.runner(roster, number);
        let sum = sums.entry((name, class)).or_default();
        sum.0 += time;
        // A function may become a real-time task.
        if class == Class::Function {
            sum.1 += serials.len();
        }
    }
    let mut found: Vec<Instead> = sums
        .into_iter()
        .map(|((name, class), (time, invocations))| Instead {
            name,
            class: class.name(),
            invocations,
            cpu_ms: time as f64 / 1e6,
            share: if total > 0.0 {
                time as f64 / total
            } else {
                0.0
            },
        })
        .collect();
    found.sort_by(|a, b| {
        let by_time = b.cpu_ms.total_cmp(&a.cpu_ms);
        by_time.then_with(|| a.name.cmp(&b.name))
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Turn;
    use crate::roster::Who;

    fn run(cpu: usize, from: u64, to: u64, who: u32, serial: u64) -> Run {
        let (pid, turn) = (1, Turn::Fair);
        Run {
            cpu,
            from,
            to,
            who,
            serial,
            pid,
            turn,
        }
    }

    fn roster() -> (Roster, u32, u32) {
        let mut roster = Roster::default();
        let program = |class, comm: &[u8; 16]| Who {
            class,
            function: 0,
            group: 0,
            comm: *comm,
        };
        let crop = roster.number(program(Class::Function, b"crop\0\0\0\0\0\0\0\0\0\0\0\0"));
        let sshd = roster.number(program(Class::Outside, b"sshd\0\0\0\0\0\0\0\0\0\0\0\0"));
        (roster, crop, sshd)
    }

    #[test]
    fn only_the_waits_on_the_allowed_cpus_count() {
        let (roster, crop, sshd) = roster();
        let mut history = History::default();
        for run in [
            run(0, 0, 100, crop, 1),
            run(1, 0, 150, sshd, 0),
            run(2, 0, 200, crop, 9),
            run(0, 100, 250, crop, 2),
            run(0, 250, 300, crop, 5),
        ] {
            history.add(&run);
        }
        let waits = [(50, 100), (200, 280)];
        let still = [run(1, 150, 400, sshd, 0)];
        let found = history.instead(
            &waits,
            &Cpus::first(2),
            5,
            still.into_iter(),
            &roster,
            &Names::default(),
        );
        // crop: 50 of the first wait, 50 of the second; not what is its own, not CPU 2.
        let names: Vec<_> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["sshd", "crop"]);
        assert_eq!(found[1].cpu_ms, 100.0 / 1e6);
        assert_eq!((found[1].invocations, found[1].class), (2, "function"));
        assert_eq!(found[0].cpu_ms, 130.0 / 1e6);
        assert!((found[0].share - 0.5).abs() < 1e-9);
    }

    #[test]
    fn without_waits_nobody_ran_instead() {
        let (roster, ..) = roster();
        let found = History::default().instead(
            &[],
            &Cpus::first(4),
            1,
            std::iter::empty(),
            &roster,
            &Names::default(),
        );
        assert!(found.is_empty());
    }

    #[test]
    fn the_history_is_bounded() {
        let mut history = History::default();
        for at in 0..MOST as u64 + 10 {
            history.add(&run(0, at, at + 1, 0, 0));
        }
        assert_eq!(history.stays.len(), MOST);
        assert_eq!(history.stays[0].from, 10);
    }
}
