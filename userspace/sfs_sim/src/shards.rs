//! FILTER in one queue or in shards, on machines with very many CPUs: the cost
//! of the queues' locks, and the deviation from the order of arrival.
//!
//! CPUs with the same last-level cache share a shard; a shard may span several
//! caches. A CPU that inserts into a queue or removes from it holds the queue's
//! lock for a while, longer if the last holder has another cache, because the
//! lock, the queue's head and the task are in that cache. CPUs wait for the
//! lock in line. A free CPU chooses a queue as `scheds/sfs_bpf/shard.bpf.h`
//! does. Arrivals are Poisson, on CPUs drawn at random; service times are
//! exponential.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anyhow::{ensure, Result};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// The head of a CPU's own shard goes first unless another shard's head arrived
/// more than this earlier, in ns; as in the kernel half.
pub const LAG_NS: u64 = 2_000_000;

/// A machine, its load, and how FILTER is split.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Number of CPUs.
    pub cpus: usize,
    /// CPUs per last-level cache.
    pub cpus_of_cache: usize,
    /// Number of queues; the CPUs are split among them evenly.
    pub shards: usize,
    /// Lock hold time in ns if the last holder was a CPU with the same cache.
    pub near_ns: u64,
    /// Lock hold time in ns if the last holder was a CPU with another cache.
    pub far_ns: u64,
    /// Mean service time in ns.
    pub service_ns: u64,
    /// Length of a turn in ns, after which an invocation goes to the end of a
    /// queue; `u64::MAX`: it runs to completion.
    pub turn_ns: u64,
    /// Offered load; 1 is the capacity of all CPUs.
    pub load: f64,
    /// Number of invocations.
    pub invocations: usize,
    /// Seed of arrivals and service times.
    pub seed: u64,
}

/// The results of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Mean time from arrival to completion, in ns.
    pub turnaround_ns: f64,
    /// Share of all CPU time, 0 to 1, spent holding a queue's lock or waiting
    /// for it.
    pub lost: f64,
    /// Share of time for which the busiest queue is locked.
    pub locked: f64,
    /// Share of dispatches from a shard other than the CPU's own.
    pub moved: f64,
    /// The largest difference in arrival by which a later arrival started
    /// first, in ns.
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
    /// An invocation, and the CPU on which it arrives.
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
    /// What each CPU runs, and the end of its turn.
    running: Vec<Option<usize>>,
    /// Delay of each CPU's turn by waiting for locks.
    delayed: Vec<u64>,
    /// When each CPU stops waiting for a lock or holding one; it does nothing
    /// else until then.
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

/// Simulates `setup`. The same setup gives the same results.
///
/// # Errors
///
/// A number in it is out of range.
pub fn simulate(setup: &Setup) -> Result<Figures> {
    ensure!(
        setup.cpus > 0 && setup.invocations > 0,
        "nothing to simulate"
    );
    ensure!(setup.cpus_of_cache > 0, "a cache needs at least one CPU");
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
                    .expect("the queue is not empty");
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

    /// Queues `id` from `cpu`; returns the time at which it is queued.
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

    /// Locks a queue from `cpu`, in line; returns the time of the unlock.
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

    /// The queue that `cpu` takes from, if any invocation waits.
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
    // 53 random bits, never 0.
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
    fn one_queue_keeps_the_order_of_arrival() {
        let figures = simulate(&setup(64, 1)).unwrap();
        assert_eq!((figures.overtaking_ns, figures.moved), (0, 0.0));
    }

    #[test]
    fn two_shards_overtake_by_the_lag_at_most() {
        let mut setup = setup(64, 2);
        setup.load = 1.2;
        let figures = simulate(&setup).unwrap();
        assert!(
            figures.overtaking_ns > 0,
            "shards must deviate from one queue"
        );
        // A head that is late by at most the lag is skipped; those behind it
        // came later.
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
        // 64 CPUs could serve 64,000 a second, but the lock allows 50,000
        // operations.
        (setup.far_ns, setup.near_ns) = (20_000, 20_000);
        setup.load = 1.5;
        setup.invocations = 20_000;
        let figures = simulate(&setup).unwrap();
        assert!(figures.locked > 0.95, "{figures:?}");
        assert!(figures.lost > 0.3, "{figures:?}");
    }

    #[test]
    fn invalid_setups_are_refused() {
        assert!(simulate(&setup(4, 5)).is_err());
        assert!(simulate(&setup(0, 1)).is_err());
        let idle = Setup {
            load: 0.0,
            ..setup(4, 1)
        };
        assert!(simulate(&idle).is_err());
    }
}
