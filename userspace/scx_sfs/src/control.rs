//! The control loop: waits for what the kernel half, an operator, or a reader of
//! statistics has to say, and answers. It does not poll, but for completions to learn
//! from: the kernel half wakes it up for a number of them, and once a second it takes
//! those that are too few for that.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use libbpf_rs::{OpenObject, RingBuffer};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::time::{clock_gettime, ClockId};
use scx_sfs::hints::complaints::Complaint;
use scx_sfs::hints::{Clock, HintListener, KernelHint};
use scx_sfs::names::Names;
use scx_utils::{ScxExitKind, UserExitInfo};
use sfs_policy::{Controller, Mode, Transition};
use tracing::{debug, info, warn};

use crate::boundary::Identity;
use crate::bpf_intf::{
    sfs_completion, sfs_event, sfs_event_kind_SFS_EVENT_ARRIVALS as ARRIVALS,
    sfs_event_kind_SFS_EVENT_OVERLOAD_BEGUN as OVERLOAD_BEGUN,
    sfs_event_kind_SFS_EVENT_OVERLOAD_OVER as OVERLOAD_OVER, SFS_WATCHDOG_GUARD_NS,
};
use crate::cgroups::{Change, Sandboxes, CGROUP_ROOT};
use crate::counters::{LastRead, Wakeups};
use crate::cpus::function_cpus;
use crate::exit::End;
use crate::history::Span;
use crate::iat::IatMap;
use crate::kernel::{KernelHalf, Slice};
use crate::learn::Learning;
use crate::options::{Options, Policy, Settings};
use crate::preflight;
use crate::quota::{self, QuotaWatch};
use crate::service::{self, Watchdog};
use crate::signals::Signals;
use crate::stats::{Answer, Metrics, Request, RunInfo, StatsBridge};

/// The longest that completions wait to be learned from.
const LEARN_AFTER: Duration = Duration::from_secs(1);

/// The loader while its scheduler is loaded.
pub struct Control<'object> {
    // The ring buffer goes before the kernel half that it reads from.
    ring: RingBuffer<'static>,
    events: Rc<RefCell<Vec<sfs_event>>>,
    completions: Rc<RefCell<Vec<sfs_completion>>>,
    learning: Option<Learning>,
    /// When the kernel half's events were last taken.
    taken_at: Instant,
    iat: IatMap,
    stats: StatsBridge,
    counters: RefCell<LastRead>,
    sandboxes: Option<Sandboxes>,
    names: Names,
    controller: Controller,
    settings: Settings,
    policy: Policy,
    log_slice: bool,
    overload_log: OverloadLog,
    watchdog: Option<Watchdog>,
    /// Where the kernel does not tell of quotas.
    quotas: Option<QuotaWatch>,
    wakeups: Wakeups,
    run: RunInfo,
    kernel: KernelHalf<'object>,
}

impl<'object> Control<'object> {
    /// Loads the scheduler; what was started in one of the spans `past` has been a
    /// function before.
    ///
    /// # Errors
    ///
    /// The kernel refuses it; nothing stays loaded.
    pub fn start(
        options: &Options,
        settings: &Settings,
        past: &[Span],
        object: &'object mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        let cpus = function_cpus()?;
        let controller = Controller::new(settings.config(cpus));
        let stats = StatsBridge::launch()?;
        let slice = slice_of(settings, controller.slice_ns());
        let (mut sandboxes, present) = watch_sandboxes(options)?;
        quota::check_room(options)?;
        let quotas = QuotaWatch::start(options)?;
        let mut kernel = KernelHalf::load(options, cpus, slice, past, object)?;

        let events = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&events);
        let completions = Rc::new(RefCell::new(Vec::new()));
        let learned = Rc::clone(&completions);
        let ring = kernel.events(
            move |event| sink.borrow_mut().push(event),
            move |completion| learned.borrow_mut().push(completion),
        )?;
        let mut learning =
            (options.policy == Policy::Learned).then(|| Learning::new(options.learn_state.clone()));
        if let Some(learning) = learning.as_mut() {
            learning.take(&[], &mut kernel);
        }
        let iat = IatMap::new(kernel.iat_map())?;
        let mut names = Names::default();
        tell_of_sandboxes(&mut kernel, &mut names, present);
        // And those of since then: loading takes seconds on a busy machine, and until the kernel
        // half knows a sandbox, what runs there passes for daemons.
        if let Some(sandboxes) = sandboxes.as_mut() {
            tell_of_sandboxes(&mut kernel, &mut names, sandboxes.changes()?);
        }
        kernel.attach()?;
        debug!("loaded for {cpus} CPUs, S = {} us", slice.slice_ns / 1000);
        let control = Self {
            ring,
            events,
            completions,
            learning,
            taken_at: Instant::now(),
            iat,
            stats,
            counters: RefCell::default(),
            sandboxes,
            names,
            controller,
            settings: *settings,
            policy: options.policy,
            log_slice: options.log_slice,
            overload_log: OverloadLog::default(),
            watchdog: Watchdog::of_environment(),
            quotas,
            wakeups: Wakeups::new(!options.partial),
            run: RunInfo::now(),
            kernel,
        };
        control.log_slice();
        Ok(control)
    }

    /// Notes for the statistics how the scheduler before has ended, and how often the
    /// kernel has ejected one within the last hour.
    pub fn remember(&mut self, last_end: Option<End>, ejections: usize) {
        self.run.last_end = last_end;
        self.run.ejections = ejections as u64;
    }

    /// Serves until a signal comes or the kernel ends the scheduler, and unloads it.
    /// Returns how it has ended, and the error: the kernel has ejected the scheduler, or it
    /// cannot be served any more; the error has what was said of that. What was learned is
    /// saved in any case.
    pub fn run(
        &mut self,
        signals: &Signals,
        hints: &mut Option<HintListener>,
    ) -> (End, Result<()>) {
        let served = self.serve(signals, hints);
        let by_us = !self.kernel.exited();
        if by_us {
            service::stopping();
        }
        if let Err(error) = self.learn_rest() {
            warn!("the last invocations are not learned from: {error:#}");
        }
        let exit = self.kernel.unload();
        // No sooner, since a disk may hang.
        if let Some(learning) = self.learning.as_mut() {
            learning.finish_saving();
        }
        let restart = exit.as_ref().is_ok_and(UserExitInfo::should_restart);
        match (self.kernel.exit_kind(), served, exit) {
            (kind, Err(error), Ok(_)) if kind < ScxExitKind::Error as i32 => {
                (End::Failed, Err(error))
            }
            (kind, Ok(()) | Err(_), exit) => (End::of(kind, restart, by_us), exit.map(drop)),
        }
    }

    /// Serves until a signal comes or the kernel ends the scheduler.
    fn serve(&mut self, signals: &Signals, hints: &mut Option<HintListener>) -> Result<()> {
        while !self.kernel.exited() {
            let ready = self.wait(signals, hints.as_ref())?;
            if ready.contains(&Source::Signals) {
                break;
            }
            if ready.contains(&Source::Events) || self.learn_in() == Some(Duration::ZERO) {
                self.take_events()?;
            }
            if ready.contains(&Source::Sandboxes) {
                self.take_sandboxes()?;
            }
            if let Some(hints) = hints.as_mut().filter(|_| ready.contains(&Source::Hints)) {
                self.take_hints(hints);
            }
            if ready.contains(&Source::Stats) {
                self.stats.answer(|what| self.answer(what, hints.as_ref()));
            }
            if let Some(quotas) = self.quotas.as_mut() {
                quotas.look_if_due()?;
            }
            self.keep_alive();
        }
        Ok(())
    }

    /// Tells the service manager's watchdog, when it is time, that this loop turns and the
    /// kernel half schedules.
    fn keep_alive(&mut self) {
        let is_due = |watchdog: &Watchdog| watchdog.left().is_zero();
        if !self.watchdog.as_ref().is_some_and(is_due) {
            return;
        }
        let alive =
            preflight::check_enabled().and_then(|()| self.wakeups.check(|| self.kernel.stats()));
        let told = self.watchdog.as_mut().map(|dog| dog.keep_alive(alive));
        if let Some(why) = told.flatten() {
            warn!("no sign of life for the service manager: {why}");
        }
    }

    /// Returns how long to wait at most, if there is something to do by then.
    fn longest_wait(&self) -> Option<Duration> {
        let watchdog = self.watchdog.as_ref().map(Watchdog::left);
        let quotas = self.quotas.as_ref().map(QuotaWatch::left);
        let due = self.learn_in().into_iter().chain(watchdog);
        due.chain(quotas).min()
    }

    /// Returns how long completions that are too few to wake up for may wait still, if
    /// there is learning.
    fn learn_in(&self) -> Option<Duration> {
        let learning = self.learning.as_ref()?;
        Some(if learning.has_more() {
            Duration::ZERO
        } else {
            LEARN_AFTER.saturating_sub(self.taken_at.elapsed())
        })
    }

    /// Waits until something has something to say, or it is time to learn or to give a sign
    /// of life. Returns what has something to say.
    fn wait(&self, signals: &Signals, hints: Option<&HintListener>) -> Result<Vec<Source>> {
        // SAFETY: the descriptor belongs to the ring buffer, which outlives this.
        let ring = unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) };
        let mut sources = vec![
            (Source::Events, ring),
            (Source::Signals, signals.as_fd()),
            (Source::Stats, self.stats.as_fd()),
        ];
        let sandboxes = self.sandboxes.as_ref().map(AsFd::as_fd);
        sources.extend(sandboxes.map(|fd| (Source::Sandboxes, fd)));
        let hints = hints.and_then(HintListener::poll_fd);
        sources.extend(hints.map(|fd| (Source::Hints, fd)));

        let mut fds: Vec<PollFd<'_>> = sources
            .iter()
            .map(|(_, fd)| PollFd::new(*fd, PollFlags::POLLIN))
            .collect();
        let timeout = match self.longest_wait() {
            // Rounded up: a poll of 0 ms just before the time would spin.
            Some(left) => PollTimeout::try_from(left + Duration::from_micros(999))
                .context("cannot wait for so long")?,
            None => PollTimeout::NONE,
        };
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for events"),
        }
        let ready = sources.iter().zip(&fds);
        Ok(ready
            .filter(|(_, fd)| fd.any().unwrap_or(false))
            .map(|((source, _), _)| *source)
            .collect())
    }

    /// Hands what the platform says to the kernel half.
    fn take_hints(&mut self, hints: &mut HintListener) {
        let mut apply = |batch: &[KernelHint]| self.kernel.apply_hints(batch);
        let taken = Clock::read().and_then(|clock| hints.drain(clock, &mut apply));
        if let Err(error) = taken {
            warn!("{error:#}; no more hints are taken until the next start");
        }
    }

    fn take_events(&mut self) -> Result<()> {
        self.taken_at = Instant::now();
        self.ring.consume().context("cannot read events")?;
        self.learn()?;
        let events = std::mem::take(&mut *self.events.borrow_mut());
        for event in events {
            match event.kind {
                ARRIVALS => self.on_arrivals(event.value),
                OVERLOAD_BEGUN | OVERLOAD_OVER => self.on_delay(event)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Learns from what has ended since the last time, and has what is known saved.
    fn learn_rest(&mut self) -> Result<()> {
        let consumed = self.ring.consume().context("cannot read events");
        let learned = consumed.and_then(|()| self.learn());
        if let Some(learning) = self.learning.as_mut() {
            learning.save();
        }
        learned
    }

    /// Learns from the invocations that have ended. With the first ranks, the mode
    /// goes back to normal: overload is a matter of FILTER and FAIR.
    fn learn(&mut self) -> Result<()> {
        let completions = std::mem::take(&mut *self.completions.borrow_mut());
        let Some(learning) = self.learning.as_mut() else {
            return Ok(());
        };
        learning.take(&completions, &mut self.kernel);
        if learning.is_in_force() && self.controller.mode() == Mode::FairOnly {
            self.kernel.switch_mode(Mode::Filter)?;
            self.controller.on_delay(0);
        }
        Ok(())
    }

    fn take_sandboxes(&mut self) -> Result<()> {
        let Some(sandboxes) = self.sandboxes.as_mut() else {
            return Ok(());
        };
        let changes = sandboxes.changes()?;
        tell_of_sandboxes(&mut self.kernel, &mut self.names, changes);
        debug!("{} sandboxes", sandboxes.len());
        Ok(())
    }

    /// N more arrivals are in the IAT map, `total` since load.
    fn on_arrivals(&mut self, total: u64) {
        let mut arrivals = Vec::new();
        self.iat.read_to(total, &mut arrivals);
        if let Some(slice_ns) = self.controller.on_arrivals(&arrivals) {
            debug!("S = {} us after {total} arrivals", slice_ns / 1000);
            self.kernel.set_slice(slice_of(&self.settings, slice_ns));
            self.log_slice();
        }
    }

    /// The kernel half reports a delay that begins or ends overload.
    fn on_delay(&mut self, event: sfs_event) -> Result<()> {
        if self.learning.as_ref().is_some_and(Learning::is_in_force) {
            self.kernel.dismiss_overload();
            return Ok(());
        }
        let delay_ms = event.value / 1_000_000;
        match self.controller.on_delay(event.value) {
            Some(Transition::EnterFairOnly) => {
                let moved = self.kernel.switch_mode(Mode::FairOnly)?;
                self.log_slice();
                self.overload_log.tell_begun(delay_ms, moved);
            }
            Some(Transition::LeaveFairOnly) => {
                let moved = self.kernel.switch_mode(Mode::Filter)?;
                self.log_slice();
                self.overload_log.tell_over(delay_ms, moved);
            }
            // S has grown since the report: it was no overload after all. But a wait
            // that comes near the kernel's watchdog is the kernel half's to end.
            None if event.kind == OVERLOAD_BEGUN && event.value < SFS_WATCHDOG_GUARD_NS => {
                self.kernel.dismiss_overload();
            }
            None => {}
        }
        Ok(())
    }

    /// Logs S and the mode in the form that `faasbench run` reads, if asked to.
    fn log_slice(&self) {
        if !self.log_slice {
            return;
        }
        let mode = match self.controller.mode() {
            Mode::Filter => "filter",
            Mode::FairOnly => "fair-only",
        };
        let s_us = self.controller.slice_ns() / 1000;
        let arrivals = self.controller.counters().arrivals;
        info!(
            "slice: monotonic_us={} s_us={s_us} mode={mode} arrivals={arrivals}",
            monotonic_us()
        );
    }

    fn answer(&self, what: Request, hints: Option<&HintListener>) -> Answer {
        match what {
            Request::Metrics => {
                let counters = hints.map(HintListener::counters);
                let metrics = self.metrics().with_hints(counters.unwrap_or_default());
                Answer::Metrics(Box::new(metrics))
            }
            Request::Functions { most } => {
                let hinted = |key| hints.and_then(|hints| hints.function_name(key));
                let name = |key| {
                    self.names
                        .name(key)
                        .or_else(|| hinted(key))
                        .map(str::to_owned)
                };
                let learning = self.learning.as_ref();
                Answer::Functions(learning.map_or_else(Vec::new, |all| all.functions(most, name)))
            }
        }
    }

    /// Returns the policy in force: that of the options, or what has come in its place.
    fn policy(&self) -> Policy {
        match &self.learning {
            Some(learning) if learning.has_given_up() => Policy::Sfs,
            _ => self.policy,
        }
    }

    fn metrics(&self) -> Metrics {
        let mut counters = self.counters.borrow_mut();
        let per_cpu = counters.keep(self.kernel.stats());
        let sandboxes = self.sandboxes.as_ref().map_or(0, Sandboxes::len);
        Metrics::new(
            per_cpu,
            &self.controller.counters(),
            self.controller.mode(),
            sandboxes as u64,
        )
        .with_run(&self.run)
        .with_policy(self.policy())
        .with_left_out(self.kernel.sandboxes_left_out())
        .with_learned(self.learning.as_ref().map_or((0, 0), Learning::size))
    }
}

/// What may have something to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Events,
    Signals,
    Stats,
    Sandboxes,
    Hints,
}

/// Starts to watch for sandboxes, if there are patterns for them. Returns those
/// that are there.
fn watch_sandboxes(options: &Options) -> Result<(Option<Sandboxes>, Vec<Change>)> {
    if options.cgroup.is_empty() {
        return Ok((None, Vec::new()));
    }
    let by_parent = options.identity() == Identity::Parent;
    let (watch, present) =
        Sandboxes::watch(Path::new(CGROUP_ROOT), options.cgroup.clone(), by_parent)?;
    Ok((Some(watch), present))
}

/// Tells the kernel half which sandboxes have come and gone.
fn tell_of_sandboxes(kernel: &mut KernelHalf<'_>, names: &mut Names, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::Appeared(id, function) => kernel.add_sandbox(id, names.number(&function)),
            Change::Vanished(id) => kernel.remove_sandbox(id),
        }
    }
}

/// The time of the clock that benchmarks go by; it cannot fail on Linux.
/// Overload in the log: each kind of line at most once a second, since whoever keeps a machine
/// at the edge of overload would have some twenty a second.
#[derive(Default)]
struct OverloadLog {
    begun: Complaint,
    over: Complaint,
}

impl OverloadLog {
    fn tell_begun(&mut self, delay_ms: u64, moved: u64) {
        if let Some(times) = self.begun.due(1, monotonic_ns()) {
            let times = times_since_the_last_line(times);
            info!("overload: an invocation has waited {delay_ms} ms; fair-only, {moved} tasks moved{times}");
        }
    }

    fn tell_over(&mut self, delay_ms: u64, moved: u64) {
        if let Some(times) = self.over.due(1, monotonic_ns()) {
            let times = times_since_the_last_line(times);
            info!("overload is over: a new invocation would wait {delay_ms} ms; {moved} tasks moved back{times}");
        }
    }
}

/// What a line says of those before it that were left out.
fn times_since_the_last_line(times: u64) -> String {
    if times < 2 {
        return String::new();
    }
    format!(", the last of {times} times since the line before")
}

fn monotonic_ns() -> u64 {
    monotonic_us().unsigned_abs() * 1000
}

fn monotonic_us() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |now| now.tv_sec() * 1_000_000 + now.tv_nsec() / 1000)
}

/// Returns S and what follows from it.
fn slice_of(settings: &Settings, slice_ns: u64) -> Slice {
    Slice {
        slice_ns,
        overload_wait_ns: settings.overload.map_or(u64::MAX, |o| o.enter_ns(slice_ns)),
        recover_wait_ns: settings.overload.map_or(0, |o| o.exit_ns(slice_ns)),
    }
}
