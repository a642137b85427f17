//! Turns datagrams into hints for the kernel half.

use std::io::ErrorKind;

use anyhow::Result;
use sfs_bpf::kernel::{KernelHint, Verdicts, KERNEL_BATCH};
use sfs_bpf::names::Names;
use sfs_hint::process::started_ticks;
use sfs_hint::HintRef;
use tracing::{info, warn};

use super::complaints::Complaints;
use super::counters::HintCounters;
use super::rates::Rates;
use super::sender::{Sender, SenderKey};
use super::{Clock, HintOptions};

/// A request that arrived longer ago does not describe the current work of a
/// process.
const MAX_AGE_NS: u64 = 60_000_000_000;

/// Tolerance for the clock of a platform that uses wall-clock time.
const MAX_AHEAD_NS: u64 = 1_000_000_000;

/// Hints between the socket and the kernel half.
#[derive(Debug)]
pub(super) struct Intake {
    pub(super) names: Names,
    pub(super) counters: HintCounters,
    rates: Rates,
    /// Whether service times are used.
    service_times: bool,
    waiting: Vec<KernelHint>,
}

impl Intake {
    /// Takes hints according to `options`.
    pub(super) fn new(options: &HintOptions) -> Self {
        Self {
            names: Names::default(),
            counters: HintCounters::default(),
            rates: Rates::new(options.hint_rate),
            service_times: options.hint_service_time,
            waiting: Vec::new(),
        }
    }

    /// Takes over rate and use of service times of `options`. What senders have used of the old
    /// rate counts at the new one.
    pub(super) fn reconfigure(&mut self, options: &HintOptions) {
        self.rates.set(options.hint_rate);
        self.service_times = options.hint_service_time;
    }

    /// Counts a datagram of a sender who is not admitted. Its content is not read.
    pub(super) fn deny(&mut self, sender: &Sender, clock: Clock, complaints: &mut Complaints) {
        self.counters.denied += 1;
        if let Some(count) = complaints.denied.due(1, clock.now_ns) {
            warn!(
                "datagrams denied: {count}, the last one from {sender}, which is not allowed \
                 to send hints (--hint-allow-uid, --hint-allow-cgroup)"
            );
        }
    }

    /// Takes the valid hints of `datagram` from `sender`, unless they are stale or exceed its
    /// rate. `None` stands for a datagram above the size limit.
    pub(super) fn take(
        &mut self,
        sender: SenderKey,
        datagram: Option<&[u8]>,
        clock: Clock,
        complaints: &mut Complaints,
    ) {
        let granted = self.rates.granted(sender, clock.now_ns);
        let (mut taken, mut beyond) = (0, 0);
        let mut take = |this: &mut Self, hint: Result<HintRef<'_>, &dyn std::error::Error>| {
            if taken == granted {
                beyond += 1;
                return;
            }
            taken += 1;
            match hint {
                Ok(hint) => this.take_hint(&hint, clock, complaints),
                Err(error) => this.complain(error, clock, complaints),
            }
        };
        match datagram {
            None => take(self, Err(&sfs_hint::Problem::TooLong)),
            Some(datagram) => {
                for hint in sfs_hint::hints(datagram) {
                    match hint {
                        Ok(hint) => take(self, Ok(hint)),
                        Err(error) => take(self, Err(&error)),
                    }
                }
            }
        }
        self.rates.charge(sender, taken, clock.now_ns);
        self.count_limited(beyond, clock, complaints);
    }

    fn count_limited(&mut self, count: u64, clock: Clock, complaints: &mut Complaints) {
        self.counters.limited += count;
        if let Some(count) = complaints.limited.due(count, clock.now_ns) {
            warn!("hints dropped, since their sender exceeds --hint-rate: {count}");
        }
    }

    fn complain(
        &mut self,
        error: &dyn std::error::Error,
        clock: Clock,
        complaints: &mut Complaints,
    ) {
        self.counters.malformed += 1;
        if let Some(count) = complaints.malformed.due(1, clock.now_ns) {
            warn!("malformed hints: {count}, the last one: {error}");
        }
    }

    fn take_hint(&mut self, hint: &HintRef<'_>, clock: Clock, complaints: &mut Complaints) {
        self.counters.received += 1;
        let Some(arrived_at) = arrival(hint, clock) else {
            return self.count_stale(1, clock, complaints);
        };
        match target(hint) {
            Target::AsSaid => {}
            Target::Another => return self.count_stale(1, clock, complaints),
            Target::Gone => return self.count_dead(1, clock, complaints),
            Target::Unknown(error) => return self.count_failed(1, &error, clock, complaints),
        }
        let service_ns = self.service_time(hint, complaints);
        self.waiting.push(KernelHint {
            pid: hint.pid,
            flags: 0,
            arrived_at,
            function: hint.function.map_or(0, |name| self.names.number(name)),
            service_ns,
        });
    }

    /// Returns the service time for the kernel half; 0: none.
    fn service_time(&mut self, hint: &HintRef<'_>, complaints: &mut Complaints) -> u64 {
        let Some(service_ns) = hint.service_ns else {
            return 0;
        };
        if self.service_times {
            return service_ns;
        }
        self.counters.service_times_ignored += 1;
        if !complaints.said_of_service_times {
            complaints.said_of_service_times = true;
            warn!("service times in hints are ignored; --hint-service-time would use them");
        }
        0
    }

    fn count_stale(&mut self, count: u64, clock: Clock, complaints: &mut Complaints) {
        self.counters.stale += count;
        if let Some(count) = complaints.stale.due(count, clock.now_ns) {
            warn!(
                "stale hints (arrival over 60 s ago, in the future, or already known; or the \
                 process started at another time): {count}"
            );
        }
    }

    fn count_dead(&mut self, count: u64, clock: Clock, complaints: &mut Complaints) {
        self.counters.dead += count;
        if let Some(count) = complaints.dead.due(count, clock.now_ns) {
            info!("hints for nonexistent processes: {count}");
        }
    }

    /// Passes all waiting hints to `apply`.
    pub(super) fn apply(
        &mut self,
        clock: Clock,
        apply: &mut dyn FnMut(&[KernelHint]) -> Result<Verdicts>,
        complaints: &mut Complaints,
    ) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for batch in waiting.chunks(KERNEL_BATCH) {
            match apply(batch) {
                Ok(verdicts) => self.count(batch.len(), verdicts, clock, complaints),
                Err(error) => self.count_failed(batch.len(), &error, clock, complaints),
            }
        }
        waiting.clear();
        self.waiting = waiting;
    }

    fn count(
        &mut self,
        given: usize,
        verdicts: Verdicts,
        clock: Clock,
        complaints: &mut Complaints,
    ) {
        let now_ns = clock.now_ns;
        let Verdicts {
            applied,
            foreign,
            dead,
            stale,
        } = verdicts;
        self.counters.applied += applied;
        self.counters.foreign += foreign;
        if let Some(count) = complaints.foreign.due(foreign, now_ns) {
            warn!("hints for processes that are not functions: {count}");
        }
        self.count_dead(dead, clock, complaints);
        self.count_stale(stale, clock, complaints);
        // The kernel half has not looked at hints that it does not account for.
        let answered = applied + foreign + dead + stale;
        let left = (given as u64).saturating_sub(answered);
        if left > 0 {
            let error = anyhow::anyhow!("{left} hints of a batch were left unanswered");
            self.count_failed(left as usize, &error, clock, complaints);
        }
    }

    fn count_failed(
        &mut self,
        count: usize,
        error: &anyhow::Error,
        clock: Clock,
        complaints: &mut Complaints,
    ) {
        let count = count as u64;
        self.counters.failed += count;
        if let Some(count) = complaints.failed.due(count, clock.now_ns) {
            warn!("hints that did not reach the kernel half: {count}, the last one: {error:#}");
        }
    }
}

/// The process that a hint's process id refers to.
enum Target {
    /// The intended process, as far as the hint says.
    AsSaid,
    /// Another process, which has reused the id.
    Another,
    /// No process.
    Gone,
    /// Unknown, because of this error.
    Unknown(anyhow::Error),
}

/// Checks whether the process started at the time in the hint, if there is one.
fn target(hint: &HintRef<'_>) -> Target {
    let Some(said) = hint.started_ticks else {
        return Target::AsSaid;
    };
    match started_ticks(hint.pid) {
        Ok(ticks) if ticks == said => Target::AsSaid,
        Ok(_) => Target::Another,
        Err(error) if error.kind() == ErrorKind::NotFound => Target::Gone,
        Err(error) => {
            let pid = hint.pid;
            Target::Unknown(anyhow::Error::new(error).context(format!(
                "cannot read the start time of process {pid} in /proc"
            )))
        }
    }
}

/// Returns the time of arrival, 0 if not given, or `None` if it is impossible.
fn arrival(hint: &HintRef<'_>, clock: Clock) -> Option<u64> {
    let now_ns = clock.now_ns;
    match hint.arrival_monotonic_ns(clock.wall_offset_ns) {
        None => Some(0),
        // A wall-clock time before boot.
        Some(0) => None,
        Some(at) if at < now_ns.saturating_sub(MAX_AGE_NS) => None,
        Some(at) if at > now_ns.saturating_add(MAX_AHEAD_NS) => None,
        Some(at) => Some(at.min(now_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sender::ProcessSender;
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const CLOCK: Clock = Clock {
        now_ns: 1_000 * SECOND,
        wall_offset_ns: 1_750_000_000 * SECOND,
    };

    const SENDER: SenderKey = SenderKey::Process(ProcessSender { pid: 7, uid: 0 });

    fn arrived(ns: u64) -> Option<u64> {
        let hint = HintRef {
            pid: 1,
            arrived_at_ns: Some(ns),
            ..HintRef::default()
        };
        arrival(&hint, CLOCK)
    }

    #[test]
    fn arrivals_must_be_possible() {
        let now = CLOCK.now_ns;
        assert_eq!(arrival(&HintRef::default(), CLOCK), Some(0));
        assert_eq!(arrived(now), Some(now));
        assert_eq!(arrived(now - 60 * SECOND), Some(now - 60 * SECOND));
        assert_eq!(arrived(now - 60 * SECOND - 1), None);
        assert_eq!(arrived(now + SECOND), Some(now));
        assert_eq!(arrived(now + SECOND + 1), None);
        assert_eq!(arrived(u64::MAX), None);
        assert_eq!(arrived(CLOCK.wall_offset_ns + now - 5), Some(now - 5));
        assert_eq!(arrived(CLOCK.wall_offset_ns - 5), None);
    }

    #[test]
    fn old_arrivals_are_impossible_even_shortly_after_boot() {
        let clock = Clock {
            now_ns: SECOND,
            ..CLOCK
        };
        let hint = HintRef {
            pid: 1,
            arrived_at_ns: Some(CLOCK.wall_offset_ns - 1),
            ..HintRef::default()
        };
        assert_eq!(arrival(&hint, clock), None);
    }

    #[test]
    fn a_batch_that_fails_is_counted() {
        let mut intake = Intake::new(&HintOptions::default());
        let mut complaints = Complaints::default();
        let text = "1\n".repeat(100);
        for _ in 0..2 {
            intake.take(SENDER, Some(text.as_bytes()), CLOCK, &mut complaints);
        }
        let mut sizes = Vec::new();
        let mut apply = |batch: &[KernelHint]| {
            sizes.push(batch.len());
            anyhow::ensure!(sizes.len() > 1, "no");
            Ok(Verdicts {
                applied: 70,
                ..Verdicts::default()
            })
        };
        intake.apply(CLOCK, &mut apply, &mut complaints);
        intake.apply(CLOCK, &mut apply, &mut complaints);
        assert_eq!(sizes, [128, 72]);
        let counters = intake.counters;
        assert_eq!(
            (counters.received, counters.applied, counters.failed),
            (200, 70, 130)
        );
    }

    #[test]
    fn hints_beyond_the_rate_are_counted_and_dropped() {
        let options = HintOptions {
            hint_rate: 5,
            ..HintOptions::default()
        };
        let mut intake = Intake::new(&options);
        let mut complaints = Complaints::default();
        let mut take = |intake: &mut Intake, text: Option<&[u8]>, now_ns| {
            let clock = Clock { now_ns, ..CLOCK };
            intake.take(SENDER, text, clock, &mut complaints);
        };
        let now = CLOCK.now_ns;
        // Malformed hints count against the rate, too.
        take(&mut intake, Some(b"1\nx\n3\n"), now);
        take(&mut intake, None, now);
        take(&mut intake, Some(b"4\n5\n6\n"), now);
        take(&mut intake, None, now);
        let counters = intake.counters;
        assert_eq!((counters.received, counters.malformed), (3, 2));
        assert_eq!(counters.limited, 3);
        take(&mut intake, Some(b"7\n8\n"), now + SECOND / 5);
        assert_eq!((intake.counters.received, intake.counters.limited), (4, 4));
        let pids: Vec<i32> = intake.waiting.iter().map(|hint| hint.pid).collect();
        assert_eq!(pids, [1, 3, 4, 7]);
    }

    #[test]
    fn service_times_need_an_option() {
        for (hint_service_time, used, ignored) in
            [(false, [0, 0, 0], 2), (true, [5000, 0, 9000], 0)]
        {
            let options = HintOptions {
                hint_service_time,
                ..HintOptions::default()
            };
            let mut intake = Intake::new(&options);
            let text = b"pid=1 service_us=5\npid=2\npid=3 service_us=9\n";
            intake.take(SENDER, Some(text), CLOCK, &mut Complaints::default());
            let told: Vec<u64> = intake.waiting.iter().map(|hint| hint.service_ns).collect();
            assert_eq!(told, used);
            assert_eq!(intake.counters.service_times_ignored, ignored);
        }
    }
}
