//! The sharing policies compared with a simple, slow simulation that recomputes
//! all rates from the definition at each event.

mod common;

use common::{run, Random};
use faas_data::trace::{Invocation, Phase};
use sfs_sim::policy::Kind;

/// Two times or attained services less than this apart, in microseconds, are
/// equal.
const CLOSE: f64 = 1e-5;

struct Job {
    /// When it is ready for its next phase; infinite while it computes.
    ready: f64,
    /// CPU time left in the current phase.
    left: f64,
    attained: f64,
    phases: std::vec::IntoIter<Phase>,
    end: f64,
}

impl Job {
    fn computes(&self) -> bool {
        self.left > 0.0
    }

    fn proceed(&mut self, now: f64) {
        self.ready = f64::INFINITY;
        match self.phases.next() {
            Some(Phase::Cpu { us, .. }) => self.left = us as f64,
            Some(Phase::Io { us, .. }) => self.ready = now + us as f64,
            None => self.end = now,
        }
    }
}

/// The share of a CPU that each job has, on this many CPUs.
type Rates = fn(&[Job], f64) -> Vec<f64>;

fn ps_rates(jobs: &[Job], cpus: f64) -> Vec<f64> {
    let ready = jobs.iter().filter(|job| job.computes()).count() as f64;
    let rate = |job: &Job| {
        if job.computes() {
            (cpus / ready).min(1.0)
        } else {
            0.0
        }
    };
    jobs.iter().map(rate).collect()
}

fn las_rates(jobs: &[Job], cpus: f64) -> Vec<f64> {
    let among = |job: &Job, wanted: &dyn Fn(f64) -> bool| {
        let others = jobs.iter().filter(|other| other.computes());
        others
            .filter(|other| wanted(other.attained - job.attained))
            .count() as f64
    };
    let rate = |job: &Job| {
        let below = among(job, &|by| by <= -CLOSE);
        let equal = among(job, &|by| by.abs() < CLOSE);
        if job.computes() {
            ((cpus - below).max(0.0) / equal).min(1.0)
        } else {
            0.0
        }
    };
    jobs.iter().map(rate).collect()
}

/// Time until a phase ends, or one job catches up with another in attained
/// service.
fn next_change(jobs: &[Job], rates: &[f64]) -> f64 {
    let mut next = f64::INFINITY;
    for (job, rate) in jobs.iter().zip(rates).filter(|(job, _)| job.computes()) {
        if *rate > 0.0 {
            next = next.min(job.left / rate);
        }
        for (other, slower) in jobs.iter().zip(rates).filter(|(job, _)| job.computes()) {
            let distance = other.attained - job.attained;
            if distance >= CLOSE && rate - slower > 1e-9 {
                next = next.min(distance / (rate - slower));
            }
        }
    }
    next
}

fn naive(trace: &[Invocation], rates: Rates, cpus: u32) -> Vec<f64> {
    let job = |one: &Invocation| Job {
        ready: one.arrival_us as f64,
        left: 0.0,
        attained: 0.0,
        phases: one.phases.clone().into_iter(),
        end: f64::NAN,
    };
    let mut jobs: Vec<Job> = trace.iter().map(job).collect();
    let mut now = 0.0;
    while jobs.iter().any(|job| job.end.is_nan()) {
        let rates = rates(&jobs, f64::from(cpus));
        let ready = jobs
            .iter()
            .map(|job| job.ready)
            .fold(f64::INFINITY, f64::min);
        let step = next_change(&jobs, &rates).min(ready - now).max(0.0);
        now += step;
        for (job, rate) in jobs.iter_mut().zip(rates) {
            let ends = job.computes() && job.left - rate * step < CLOSE;
            job.attained += rate * step;
            job.left -= rate * step;
            if ends || job.ready <= now + CLOSE {
                job.left = 0.0;
                job.proceed(now);
            }
        }
    }
    jobs.iter().map(|job| job.end).collect()
}

/// Phases alternate, since the naive simulation does not merge phases of one
/// kind.
fn random_trace(seed: u64) -> Vec<Invocation> {
    let mut random = Random::new(seed);
    let mut arrival_us = 0;
    let mut draw = |_| {
        arrival_us += (random.unit() * 400.0) as u64;
        let phases = (0..=(random.unit() * 4.0) as usize).map(|index| {
            let us = 1 + (random.unit().powi(3) * 3000.0) as u64;
            if index % 2 == 0 {
                Phase::cpu(us)
            } else {
                Phase::io(us)
            }
        });
        Invocation {
            arrival_us,
            function: "f".into(),
            phases: phases.collect(),
            class: None,
        }
    };
    (0..40).map(&mut draw).collect()
}

#[test]
fn sharing_agrees_with_the_naive_simulation() {
    let policies: [(Kind, Rates); 2] = [(Kind::Ps, ps_rates), (Kind::Las, las_rates)];
    for seed in 0..100 {
        let (trace, cpus) = (random_trace(seed), 1 + seed as u32 % 5);
        for (kind, rates) in policies {
            let ends = naive(&trace, rates, cpus);
            for (id, (outcome, want)) in run(&trace, kind, cpus).iter().zip(ends).enumerate() {
                let found = outcome.end as f64 / sfs_sim::time::PER_US as f64;
                assert!(
                    (found - want).abs() < 0.01,
                    "{kind:?}, seed {seed}, id {id}: {found} {want}"
                );
            }
        }
    }
}
