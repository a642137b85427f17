//! Follows the scheduler for a time: reads events, orders them, and passes what comes of them on.

use std::cell::RefCell;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::time::{clock_gettime, ClockId};
use sfs_cgroups::SandboxPattern;
use sfs_text::note;

use crate::account::{Account, Output, Source};
use crate::event::Event;
use crate::names::Names;
use crate::scheduler::{generation, Loaded};
use crate::watch::{Report, Watch};

/// Events are read this often.
const INTERVAL: Duration = Duration::from_millis(50);

/// An event may be written this much after a later one, in ns: a hypervisor or an interrupt may
/// hold a CPU up between the two.
const DISORDER_NS: u64 = 5_000_000;

/// Segments of invocations in progress that are kept at a time; 24 bytes each.
const ROOM: usize = 2_000_000;

/// What to follow.
#[derive(Debug, Clone)]
pub struct Plan {
    /// For how long; None: until a signal.
    pub time: Option<Duration>,
    /// Memory for events that have not been read, in bytes; a power of two.
    pub buffer: u32,
    /// The cgroups of the invocations; none: all.
    pub patterns: Vec<SandboxPattern>,
    /// The program's name, for messages.
    pub program: &'static str,
}

/// How it went.
#[derive(Debug, Clone)]
pub struct Followed {
    /// The scheduler.
    pub loaded: Loaded,
    /// Start and end, in ns of CLOCK_MONOTONIC.
    pub from: u64,
    pub to: u64,
    /// Events lost because the buffer was full.
    pub lost: u64,
    /// Whether another scheduler was loaded, or none, which ended it.
    pub replaced: bool,
    /// What cannot be seen here, in words.
    pub missing: Vec<&'static str>,
}

/// Gets what comes of the events.
pub trait Sink {
    /// The watch begins at `from`, in ns of CLOCK_MONOTONIC.
    ///
    /// # Errors
    ///
    /// Nothing can be taken.
    fn begin(&mut self, from: u64) -> Result<()>;

    /// A stay on a CPU or an invocation has ended.
    ///
    /// # Errors
    ///
    /// Nothing more can be taken.
    fn take(&mut self, output: Output, account: &Account, names: &Names) -> Result<()>;
}

/// Returns the time of CLOCK_MONOTONIC in ns.
fn now() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).context("cannot read the clock")?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// What cannot be seen beside another scheduler than scx_sfs.
const WITHOUT_CONTEXTS: [&str; 3] = [
    "kinds of queues and of turns",
    "stays out of quota (cpu.max), which count as waits for a CPU or as blocked",
    "invocations of warm processes: each process that begins during the watch is one invocation",
];

/// Follows the scheduler that runs, and passes what comes of it to `sink`.
///
/// # Errors
///
/// The kernel refuses the program, or the sink takes no more.
pub fn follow(plan: &Plan, sink: &mut dyn Sink) -> Result<Followed> {
    let signals = block_signals()?;
    let loaded = Loaded::now();
    let mut watch = Watch::load(&loaded, plan.buffer)?;
    let mut missing = watch.missing().to_vec();
    let ours = matches!(loaded, Loaded::ScxSfs(_));
    if !ours {
        missing = WITHOUT_CONTEXTS.to_vec();
        note(&format!(
            "{}: no scx_sfs is loaded, so less is seen of {}; missing: {}",
            plan.program,
            loaded.name(),
            missing.join("; ")
        ));
    }
    let names = Rc::new(RefCell::new(Names::of_this_machine(&plan.patterns)));
    let source = if ours {
        Source::Scheduler
    } else {
        let names = Rc::clone(&names);
        Source::Processes(Box::new(move |cgroup| names.borrow().is_wanted(cgroup)))
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let cpus = online_cpus().unwrap_or(cpus);
    let generation_before = generation();
    watch.start()?;
    let from = now()?;
    sink.begin(from)?;
    let (mut order, mut reports) = (Order::default(), Vec::new());
    let mut account = Account::new(source, cpus, from, ROOM);
    let end = plan.time.map(|time| Instant::now() + time);
    if plan.time.is_none() {
        note(&format!("{}: watching; press Ctrl-C to stop", plan.program));
    }
    let replaced = loop {
        let over = wait(&signals, end)?;
        let replaced = ours && generation() != generation_before;
        let last = over || replaced;
        if last {
            watch.stop()?;
        }
        watch.read(&mut reports)?;
        for report in reports.drain(..) {
            match report {
                Report::Cgroup(id, path) => names.borrow_mut().add(id, path),
                Report::Event(event) => order.add(event),
            }
        }
        for event in order.take(last) {
            account.add(&event);
            pass_on(&mut account, &names.borrow(), sink)?;
        }
        if last {
            break replaced;
        }
    };
    let to = now()?;
    account.finish(to);
    pass_on(&mut account, &names.borrow(), sink)?;
    let followed = Followed {
        loaded,
        from,
        to,
        lost: watch.lost()?,
        replaced,
        missing,
    };
    followed.warn(plan.program);
    Ok(followed)
}

/// Passes on what has come out of the account.
fn pass_on(account: &mut Account, names: &Names, sink: &mut dyn Sink) -> Result<()> {
    let own = std::process::id().cast_signed();
    for output in account.take() {
        // This program may be an invocation to scx_sfs, and is of no interest.
        match &output {
            Output::Ended(invocation) if invocation.pid == own => {}
            _ => sink.take(output, account, names)?,
        }
    }
    Ok(())
}

impl Followed {
    fn warn(&self, program: &str) {
        if self.replaced {
            note(&format!(
                "{program}: scx_sfs was unloaded or loaded again after {:.1} s, which has ended \
                 the watch",
                (self.to - self.from) as f64 / 1e9
            ));
        }
        if self.lost > 0 {
            note(&format!(
                "{program}: {} scheduling events were lost, so figures and traces have errors: \
                 give it more memory (--buffer)",
                self.lost
            ));
        }
    }
}

/// Returns the number of CPUs that are online.
fn online_cpus() -> Option<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let of_range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    text.trim().split(',').map(of_range).sum()
}

/// Orders events by time.
#[derive(Default)]
struct Order {
    /// In order.
    waiting: Vec<Event>,
}

impl Order {
    /// Adds an event. Few come late, and these by little.
    fn add(&mut self, event: Event) {
        let is_later = |other: &Event| other.at_ns > event.at_ns;
        let later = self
            .waiting
            .iter()
            .rev()
            .take_while(|other| is_later(other));
        let place = self.waiting.len() - later.count();
        self.waiting.insert(place, event);
    }

    /// Takes the events that no other one can precede; `all`: no further one comes.
    fn take(&mut self, all: bool) -> impl Iterator<Item = Event> + '_ {
        let newest = self.waiting.last().map_or(0, |event| event.at_ns);
        let until = if all {
            u64::MAX
        } else {
            newest.saturating_sub(DISORDER_NS)
        };
        let count = self.waiting.partition_point(|event| event.at_ns <= until);
        self.waiting.drain(..count)
    }
}

/// Makes signals that end the watch arrive at the returned descriptor.
fn block_signals() -> Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set.thread_block().context("cannot block signals")?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)
        .context("cannot create a descriptor for signals")
}

/// Waits for [`INTERVAL`]. Returns whether the watch is over.
fn wait(signals: &SignalFd, end: Option<Instant>) -> Result<bool> {
    let left = end.map_or(INTERVAL, |end| {
        end.saturating_duration_since(Instant::now())
    });
    let time = left.min(INTERVAL);
    let timeout = PollTimeout::try_from(time).context("the time is too long")?;
    let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, timeout) {
        Err(Errno::EINTR) => return Ok(false),
        ready => ready.context("cannot wait")?,
    };
    let is_over = end.is_some_and(|end| Instant::now() >= end);
    Ok(is_over || fds[0].any().unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::Cpus;
    use crate::event::What;

    #[test]
    fn events_are_ordered_within_the_disorder() {
        let event = |at_ns| Event {
            at_ns,
            what: What::Confined(1, Cpus::default()),
        };
        let mut order = Order::default();
        for at in [9_000_000, 1_000_000, 3_000_000] {
            order.add(event(at));
        }
        let times = |order: &mut Order, all| -> Vec<u64> {
            let events = order.take(all);
            events.map(|event| event.at_ns / 1_000_000).collect()
        };
        assert_eq!(times(&mut order, false), [1, 3]);
        order.add(event(8_000_000));
        assert_eq!(times(&mut order, true), [8, 9]);
        assert!(times(&mut order, true).is_empty());
    }
}
