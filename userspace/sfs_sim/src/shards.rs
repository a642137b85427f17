//! FILTER in one queue or in shards, on machines with very many CPUs: what the queues'
//! locks cost, and how far from the order of arrival shards are.
//!
//! CPUs that share a last-level cache share a shard, or several such do. Who puts
//! something into a queue or takes it out holds the queue's lock for a while: longer
//! if the CPU that held it before has another cache, as the lock, the queue's head and
//! the task are in that one. Whoever comes meanwhile waits in line, and its CPU with
//! it. A free CPU chooses as `scheds/sfs_bpf/shard.bpf.h` does. Arrivals are Poisson,
//! on CPUs drawn at random; service times are exponential.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anyhow::{ensure, Result};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// As in the kernel half: so much later may the head of a CPU's own shard have come than
/// another's, and still go first; in ns.
pub const LAG_NS: u64 = 2_000_000;

/// A machine, its load, and how FILTER is split.
#[derive(Debug, Clone)]
pub struct Setup {
    /// CPUs.
    pub cpus: usize,
    /// CPUs that share a last-level cache.
    pub cpus_of_cache: usize,
    /// Queues; CPUs are split among them evenly.
    pub shards: usize,
    /// For how long a queue is locked, in ns, if it was last locked by a CPU with the
    /// same cache.
    pub near_ns: u64,
    /// The same, if by one with another cache.
    pub far_ns: u64,
    /// Mean service time in ns.
    pub service_ns: u64,
    /// After so much, in ns, an invocation goes to the end of a queue; `u64::MAX`: it
    /// runs to its end.
    pub turn_ns: u64,
    /// Offered load; 1 is all CPUs.
    pub load: f64,
    /// Invocations.
    pub invocations: usize,
    /// Seed of arrivals and service times.
    pub seed: u64,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Mean time from arrival to the end, in ns.
    pub turnaround_ns: f64,
    /// Share of all CPU time, 0 to 1, that went into locked queues, or waiting for one.
    pub lost: f64,
    /// Share of the time in which the queue that is locked most is locked.
    pub locked: f64,
    /// Share of the dispatches from another shard than the CPU's own.
    pub moved: f64,
    /// The most by which an invocation that started earlier came later, in ns.
    pub overtaking_ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Lock {
    free_at: u64,
    cache: usize,
    held_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Invocation {
    arrived: u64,
    left: u64,
    started: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Of an invocation, seen by a CPU.
    Arrival(usize, usize),
    TurnEnd(usize),
}

struct Machine<'a> {
    setup: &'a Setup,
    jobs: Vec<Invocation>,
    queues: Vec<VecDeque<(u64, usize)>>,
    locks: Vec<Lock>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    idle: Vec<usize>,
    /// What each CPU runs, and until when its turn is.
    running: Vec<Option<usize>>,
    /// By how much each CPU's turn is longer, as it had to wait for a lock.
    delayed: Vec<u64>,
    /// Until when each CPU waits for a lock, or holds one: it can do nothing else.
    stalled: Vec<u64>,
    rotation: Vec<usize>,
    lost_ns: u64,
    dispatches: u64,
    moves: u64,
    latest: u64,
    overtaking_ns: u64,
    turnaround_ns: f64,
    end: u64,
}

/// Simulates `setup`. The same makes the same.
///
/// # Errors
///
/// A number in it makes no sense.
pub fn simulate(setup: &Setup) -> Result<Figures> {
    ensure!(
        setup.cpus > 0 && setup.invocations > 0,
        "nothing to simulate"
    );
    ensure!(setup.cpus_of_cache > 0, "a cache has a CPU at least");
    ensure!(
        (1..=setup.cpus).contains(&setup.shards),
        "{} shards for {} CPUs",
        setup.shards,
        setup.cpus
    );
    ensure!(
        setup.load > 0.0 && setup.load.is_finite(),
        "the load is {}",
        setup.load
    );
    ensure!(setup.service_ns > 0 && setup.turn_ns > 0, "no time to run");
    let mut machine = Machine::new(setup);
    machine.run();
    Ok(machine.figures())
}

impl<'a> Machine<'a> {
    fn new(setup: &'a Setup) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(setup.seed);
        let mut now = 0.0;
        let gap = setup.service_ns as f64 / (setup.cpus as f64 * setup.load);
        let jobs: Vec<Invocation> = (0..setup.invocations)
            .map(|_| {
                now += gap * exponential(&mut random);
                Invocation {
                    arrived: now as u64,
                    left: 1 + (setup.service_ns as f64 * exponential(&mut random)) as u64,
                    started: false,
                }
            })
            .collect();
        let arrivals = jobs.iter().enumerate();
        let events = arrivals.map(|(id, one)| {
            let seen_by = (random.next_u64() % setup.cpus as u64) as usize;
            Reverse((one.arrived, Event::Arrival(id, seen_by)))
        });
        Self {
            setup,
            events: events.collect(),
            jobs,
            queues: vec![VecDeque::new(); setup.shards],
            locks: vec![Lock::default(); setup.shards],
            idle: (0..setup.cpus).rev().collect(),
            running: vec![None; setup.cpus],
            delayed: vec![0; setup.cpus],
            stalled: vec![0; setup.cpus],
            rotation: vec![0; setup.cpus],
            lost_ns: 0,
            dispatches: 0,
            moves: 0,
            latest: 0,
            overtaking_ns: 0,
            turnaround_ns: 0.0,
            end: 0,
        }
    }

    fn run(&mut self) {
        while let Some(Reverse((now, event))) = self.events.pop() {
            match event {
                Event::Arrival(_, cpu) if self.stalled[cpu] > now => {
                    self.events.push(Reverse((self.stalled[cpu], event)));
                }
                Event::Arrival(id, cpu) => self.arrive(id, cpu, now),
                Event::TurnEnd(cpu) if self.delayed[cpu] > 0 => {
                    let late = now + std::mem::take(&mut self.delayed[cpu]);
                    self.events.push(Reverse((late, event)));
                }
                Event::TurnEnd(cpu) => self.end_turn(cpu, now),
            }
        }
    }

    fn arrive(&mut self, id: usize, seen_by: usize, now: u64) {
        if let Some(cpu) = self.idle.pop() {
            self.start(id, cpu, now);
            return;
        }
        let queued = self.enqueue(id, seen_by, now);
        self.delayed[seen_by] += queued - now;
    }

    fn end_turn(&mut self, cpu: usize, now: u64) {
        let mut free_at = now;
        if let Some(id) = self.running[cpu].take() {
            if self.jobs[id].left > 0 {
                free_at = self.enqueue(id, cpu, now);
            } else {
                self.turnaround_ns += (now - self.jobs[id].arrived) as f64;
                self.end = self.end.max(now);
            }
        }
        match self.choose(cpu) {
            Some(shard) => {
                let (_, id) = self.queues[shard]
                    .pop_front()
                    .expect("something waits there");
                self.dispatches += 1;
                self.moves += u64::from(shard != self.shard_of(cpu));
                let got = self.hold(shard, cpu, free_at);
                self.start(id, cpu, got);
            }
            None => self.idle.push(cpu),
        }
    }

    fn start(&mut self, id: usize, cpu: usize, now: u64) {
        let job = &mut self.jobs[id];
        if !job.started {
            job.started = true;
            self.overtaking_ns = self
                .overtaking_ns
                .max(self.latest.saturating_sub(job.arrived));
            self.latest = self.latest.max(job.arrived);
        }
        let turn = job.left.min(self.setup.turn_ns);
        job.left -= turn;
        self.running[cpu] = Some(id);
        self.events.push(Reverse((now + turn, Event::TurnEnd(cpu))));
    }

    /// Queues `id` from `cpu`; returns when that is done.
    fn enqueue(&mut self, id: usize, cpu: usize, now: u64) -> u64 {
        let mut shard = self.shard_of(cpu);
        if self.setup.shards > 1 {
            let other = self.next_other(cpu);
            if self.queues[other].len() < self.queues[shard].len() {
                shard = other;
            }
        }
        self.queues[shard].push_back((now, id));
        self.hold(shard, cpu, now)
    }

    /// Locks a queue from `cpu`, in line; returns when it is unlocked again.
    fn hold(&mut self, shard: usize, cpu: usize, now: u64) -> u64 {
        let cache = cpu / self.setup.cpus_of_cache;
        let lock = &mut self.locks[shard];
        let cost = if lock.cache == cache {
            self.setup.near_ns
        } else {
            self.setup.far_ns
        };
        lock.cache = cache;
        lock.free_at = lock.free_at.max(now) + cost;
        lock.held_ns += cost;
        self.lost_ns += lock.free_at - now;
        self.stalled[cpu] = lock.free_at;
        lock.free_at
    }

    /// The queue that `cpu` takes from, if anything waits.
    fn choose(&mut self, cpu: usize) -> Option<usize> {
        let own = self.shard_of(cpu);
        let head = |queue: &VecDeque<(u64, usize)>| queue.front().map(|(since, _)| *since);
        let mine = head(&self.queues[own]);
        if self.setup.shards > 1 {
            let other = self.next_other(cpu);
            let theirs = head(&self.queues[other]);
            if theirs.is_some_and(|since| mine.is_none_or(|mine| since + LAG_NS < mine)) {
                return Some(other);
            }
        }
        let shards = self.setup.shards;
        let mut all = (0..shards).map(|i| (own + i) % shards);
        all.find(|shard| !self.queues[*shard].is_empty())
    }

    fn shard_of(&self, cpu: usize) -> usize {
        cpu * self.setup.shards / self.setup.cpus
    }

    fn next_other(&mut self, cpu: usize) -> usize {
        let seen = self.rotation[cpu];
        self.rotation[cpu] += 1;
        (self.shard_of(cpu) + 1 + seen % (self.setup.shards - 1)) % self.setup.shards
    }

    fn figures(&self) -> Figures {
        let end = self.end.max(1) as f64;
        let held = self.locks.iter().map(|lock| lock.held_ns).max();
        Figures {
            turnaround_ns: self.turnaround_ns / self.jobs.len() as f64,
            lost: self.lost_ns as f64 / (end * self.setup.cpus as f64),
            locked: held.unwrap_or_default() as f64 / end,
            moved: self.moves as f64 / self.dispatches.max(1) as f64,
            overtaking_ns: self.overtaking_ns,
        }
    }
}

/// A draw from the exponential distribution with mean 1, by inversion.
fn exponential(random: &mut ChaCha8Rng) -> f64 {
    // 53 random bits, and never 0.
    let uniform = ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    -uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(cpus: usize, shards: usize) -> Setup {
        Setup {
            cpus,
            cpus_of_cache: 16,
            shards,
            near_ns: 0,
            far_ns: 0,
            service_ns: 1_000_000,
            turn_ns: u64::MAX,
            load: 0.8,
            invocations: 100_000,
            seed: 1,
        }
    }

    /// Mean time in an M/M/c queue, in service times (Erlang's C).
    fn mmc(cpus: u32, load: f64) -> f64 {
        let a = f64::from(cpus) * load;
        // B by recursion, then C.
        let b = (1..=cpus).fold(1.0, |b, n| a * b / (f64::from(n) + a * b));
        let wait = b / (1.0 - load * (1.0 - b));
        1.0 + wait / (f64::from(cpus) * (1.0 - load))
    }

    #[test]
    fn one_queue_without_costs_is_mmc() {
        for cpus in [1, 4] {
            let mean = simulate(&setup(cpus, 1)).unwrap().turnaround_ns / 1e6;
            let exact = mmc(cpus as u32, 0.8);
            assert!((mean / exact - 1.0).abs() < 0.05, "{mean} and {exact}");
        }
    }

    #[test]
    fn one_queue_overtakes_nobody() {
        let figures = simulate(&setup(64, 1)).unwrap();
        assert_eq!((figures.overtaking_ns, figures.moved), (0, 0.0));
    }

    #[test]
    fn two_shards_overtake_by_the_lag_at_most() {
        let mut setup = setup(64, 2);
        setup.load = 1.2;
        let figures = simulate(&setup).unwrap();
        assert!(figures.overtaking_ns > 0, "shards are not one queue");
        // A head that is late by no more than the lag is left; those behind it came
        // later than it.
        assert!(figures.overtaking_ns <= LAG_NS, "{figures:?}");
    }

    #[test]
    fn shards_lose_no_work() {
        let [one, many] = [1, 8].map(|shards| simulate(&setup(64, shards)).unwrap());
        let ratio = many.turnaround_ns / one.turnaround_ns;
        assert!((ratio - 1.0).abs() < 0.01, "{one:?} and {many:?}");
    }

    #[test]
    fn a_lock_bounds_throughput() {
        let mut setup = setup(64, 1);
        // 64 CPUs could serve 64,000 a second; 50,000 operations can be done.
        (setup.far_ns, setup.near_ns) = (20_000, 20_000);
        setup.load = 1.5;
        setup.invocations = 20_000;
        let figures = simulate(&setup).unwrap();
        assert!(figures.locked > 0.95, "{figures:?}");
        assert!(figures.lost > 0.3, "{figures:?}");
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(simulate(&setup(4, 5)).is_err());
        assert!(simulate(&setup(0, 1)).is_err());
        let idle = Setup {
            load: 0.0,
            ..setup(4, 1)
        };
        assert!(simulate(&idle).is_err());
    }
}
