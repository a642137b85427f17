//! Drive: each invocation is an HTTP request to a running platform, sent at its
//! arrival.
//!
//! A thread with real-time priority sends and receives, so that no scheduler
//! under test can delay an arrival or the end of a turnaround. Each request has
//! its own connection, and tells the function's handler in JSON what to do:
//! `{"phases":"io:20000;cpu:150000"}`. The handler may answer with its
//! measurements, see [`answer::Measures`].

pub mod answer;
pub mod exchange;
pub mod load;
pub mod target;
mod warm;

use crate::run::{usable_cpus, Run};
use anyhow::{anyhow, bail, Context, Result};
use faas_data::progress::Progress;
use faas_data::result::{Exit, Record};
use faas_data::summary::Summary;
use faas_data::trace::{Invocation, Phase, Trace};
use faas_replay::clock::monotonic_ns;
use faas_replay::{realtime, Measured};
use load::{body, send_all, Outcome, Request};
use nix::errno::Errno;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use target::{Places, Target};

/// Time from the start of the load to the first arrival.
const LEAD_NS: u64 = 100_000_000;

/// The parameters of a drive.
#[derive(Debug, Clone)]
pub struct Drive {
    /// Trace, scheduler and output.
    pub run: Run,
    /// The targets of the requests.
    pub targets: Vec<Target>,
    /// Concurrent requests to each target before the scheduler is loaded.
    pub warm_up: u32,
    /// Maximum time until a target answers these.
    pub ready: Duration,
    /// Maximum wait for answers after the last arrival.
    pub patience: Duration,
}

impl Drive {
    /// Sends the requests, and writes the same files as [`Run::execute`].
    ///
    /// # Errors
    /// If anything is wrong before the first arrival, or the load itself cannot
    /// go on. Requests that fail are in the result.
    pub fn execute(self) -> Result<Summary> {
        let trace = Trace::read(&self.run.trace)?;
        let mut phases = trace.invocations.iter().flat_map(|one| &one.phases);
        if let Some(kernel) = phases.find_map(Phase::fixed) {
            bail!(
                "the trace has phases of {}, which only `faasbench run` can do: a platform's \
                 functions count CPU time",
                kernel.name()
            );
        }
        if self.run.refill.is_some() {
            bail!("--refill needs the functions of `faasbench run`: a platform's do not count it");
        }
        let functions = trace.invocations.iter().map(|one| one.function.as_str());
        let places = Places::find(&self.targets, functions).map_err(|error| anyhow!(error))?;
        self.run.check()?;
        let here = usable_cpus()?;
        if here != self.run.cpus {
            let cpus = self.run.cpus;
            bail!(
                "--cpus is {cpus}, but the platform has {here}: it cannot be restricted from here"
            );
        }
        warm::up(&places, self.warm_up, self.ready)?;
        self.run
            .carry_out(&trace, 0, None, || self.measure(&trace, &places))
    }

    fn measure(&self, trace: &Trace, places: &Places) -> Result<Measured> {
        let requests: Vec<Request> = trace
            .invocations
            .iter()
            .map(|one| Request {
                at_ns: one.arrival_us * 1000,
                place: places.of(&one.function),
                body: body(&one.phases),
            })
            .collect();
        let (origin_ns, outcomes) = self.send(&requests)?;
        Ok(Measured {
            records: records(trace, origin_ns, &outcomes),
            lag_ns: lag_ns(trace, origin_ns, &outcomes),
            origin_ns,
            ..Measured::default()
        })
    }

    /// Sends them from a thread with real-time priority.
    fn send(&self, requests: &[Request<'_>]) -> Result<(u64, Vec<Outcome>)> {
        let over = AtomicU64::new(0);
        let progress = Progress::new(&self.run.name, requests.len() as u64, "invocations");
        let patience_ns = self.patience.as_nanos() as u64;
        let work = || -> Result<(u64, Vec<Outcome>), Errno> {
            realtime::become_dispatcher()?;
            let origin_ns = monotonic_ns() + LEAD_NS;
            let outcomes = send_all(requests, origin_ns, patience_ns, &over)?;
            Ok((origin_ns, outcomes))
        };
        let sent = std::thread::scope(|scope| {
            let thread = scope.spawn(work);
            // Without a visible progress bar, do not disturb the measurement by
            // wake-ups.
            while progress.is_watched() && !thread.is_finished() {
                progress.at(over.load(Relaxed));
                std::thread::sleep(Duration::from_millis(200));
            }
            thread.join()
        });
        sent.map_err(|_| anyhow!("the sending thread has failed"))?
            .context("cannot send the requests")
    }
}

fn lag_ns(trace: &Trace, origin_ns: u64, outcomes: &[Outcome]) -> Vec<u64> {
    let pairs = trace.invocations.iter().zip(outcomes);
    let lag = pairs.map(|(invocation, outcome)| {
        let planned = origin_ns + invocation.arrival_us * 1000;
        outcome.sent_ns.saturating_sub(planned)
    });
    lag.collect()
}

fn records(trace: &Trace, origin_ns: u64, outcomes: &[Outcome]) -> Vec<Record> {
    let pairs = trace.invocations.iter().zip(outcomes);
    pairs
        .enumerate()
        .map(|(id, (invocation, outcome))| record(id, invocation, origin_ns, outcome))
        .collect()
}

/// The record of invocation `id`. It starts at the handler's time if that is
/// plausible, otherwise when its request was sent.
fn record(id: usize, invocation: &Invocation, origin_ns: u64, outcome: &Outcome) -> Record {
    let since = |ns: u64| ns.saturating_sub(origin_ns) / 1000;
    let measures = outcome.answer.ok().and_then(|answer| answer.measures);
    let measures = measures.unwrap_or_default();
    let possible = outcome.sent_ns..=outcome.end_ns;
    let start_ns = if possible.contains(&measures.start_ns) {
        measures.start_ns
    } else {
        outcome.sent_ns
    };
    let answered = outcome.answer.is_ok();
    Record {
        id,
        function: invocation.function.clone(),
        arrival_us: invocation.arrival_us,
        start_us: answered.then(|| since(start_ns)),
        end_us: answered.then(|| since(outcome.end_ns)),
        cpu_us: measures.cpu_us,
        service_us: invocation.service_us(),
        voluntary_switches: measures.voluntary,
        involuntary_switches: measures.involuntary,
        runqueue_wait_us: None,
        alone_us: None,
        exit: match outcome.answer {
            Ok(answer) if (200..300).contains(&answer.status) => Exit::Code(0),
            Ok(answer) => Exit::Http(u32::from(answer.status)),
            Err(errno) => Exit::Net(errno as u32),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::answer::{Answer, Measures};
    use super::*;

    fn outcome(start_ns: u64, answer: Result<u16, Errno>) -> Outcome {
        let measures = Measures {
            start_ns,
            cpu_us: 20,
            voluntary: 1,
            involuntary: 2,
        };
        Outcome {
            sent_ns: 1_005_000,
            end_ns: 1_040_000,
            answer: answer.map(|status| Answer {
                status,
                measures: Some(measures),
            }),
        }
    }

    fn row(outcome: Outcome) -> Record {
        let invocation = Invocation::cpu(5, "f", 20);
        record(3, &invocation, 1_000_000, &outcome)
    }

    #[test]
    fn a_record_has_the_measurements_of_handler_and_driver() {
        let record = row(outcome(1_012_000, Ok(200)));
        assert_eq!(record.completed(), Some((12, 40)));
        assert_eq!((record.cpu_us, record.service_us), (20, 20));
        assert_eq!(
            (record.voluntary_switches, record.involuntary_switches),
            (1, 2)
        );
    }

    #[test]
    fn a_start_on_another_clock_is_ignored() {
        for start_ns in [0, 1_004_999, 1_040_001] {
            assert_eq!(row(outcome(start_ns, Ok(204))).start_us, Some(5));
        }
    }

    #[test]
    fn failed_requests_say_why() {
        assert_eq!(row(outcome(0, Ok(503))).exit, Exit::Http(503));
        let refused = row(outcome(0, Err(Errno::ECONNREFUSED)));
        assert_eq!((refused.exit, refused.end_us), (Exit::Net(111), None));
    }

    #[test]
    fn the_body_is_json() {
        let text = body(&[Phase::io(5), Phase::cpu(7)]);
        assert_eq!(text, "{\"phases\":\"io:5;cpu:7\"}");
    }
}
