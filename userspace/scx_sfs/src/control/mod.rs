//! The control loop: waits for the kernel half, an operator, or a reader of statistics, and
//! answers. It polls only for completions to learn from: the kernel half wakes it up once
//! enough of them have accumulated, and the loop takes the remaining ones once a second.

mod answers;
mod log;

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
use scx_utils::{ScxExitKind, UserExitInfo};
use sfs_policy::defaults::LEARN_AFTER;
use sfs_policy::{Controller, Mode, Transition};
use tracing::{debug, warn};

use crate::config::Configuration;
use crate::learn::Learning;
use crate::service::{self, Watchdog};
use crate::settings::Settings;
use crate::signals::Signals;
use log::OverloadLog;
use sfs_bpf::bpf_intf::{
    sfs_completion, sfs_event, sfs_event_kind_SFS_EVENT_ARRIVALS as ARRIVALS,
    sfs_event_kind_SFS_EVENT_OVERLOAD_BEGUN as OVERLOAD_BEGUN,
    sfs_event_kind_SFS_EVENT_OVERLOAD_OVER as OVERLOAD_OVER, SFS_WATCHDOG_GUARD_NS,
};
use sfs_bpf::counters::{LastRead, Wakeups};
use sfs_bpf::cpus::function_cpus;
use sfs_bpf::exit::End;
use sfs_bpf::iat::IatMap;
use sfs_bpf::kernel::{KernelHalf, KernelHint, Policy, Span};
use sfs_bpf::names::Names;
use sfs_bpf::preflight;
use sfs_cgroups::quota::{self, QuotaWatch};
use sfs_cgroups::{Change, Sandboxes, CGROUP_ROOT};
use sfs_listener::{Clock, HintListener};
use sfs_metrics::Exporter;
use sfs_state::history;
use sfs_statistics::times::TimesByFunction;
use sfs_statistics::{RunInfo, StatsBridge};

/// The loader while its scheduler is loaded.
pub struct Control<'object, 'config> {
    // The ring buffer goes before the kernel half that it reads from.
    ring: RingBuffer<'static>,
    events: Rc<RefCell<Vec<sfs_event>>>,
    completions: Rc<RefCell<Vec<sfs_completion>>>,
    learning: Option<Learning>,
    /// When events were last read from the kernel half.
    taken_at: Instant,
    iat: IatMap,
    stats: StatsBridge,
    // It goes after the bridge, which it may wait for.
    exporter: Option<Exporter>,
    /// What the exporter tells about functions.
    times: TimesByFunction,
    counters: RefCell<LastRead>,
    sandboxes: Option<Sandboxes>,
    names: Names,
    controller: Controller,
    /// Changes by `scx_sfs set` outlive this, for the next load.
    configuration: &'config mut Configuration,
    settings: Settings,
    overload_log: OverloadLog,
    watchdog: Option<Watchdog>,
    /// Set if the kernel does not report quotas.
    quotas: Option<QuotaWatch>,
    wakeups: Wakeups,
    run: RunInfo,
    kernel: KernelHalf<'object>,
}

impl<'object, 'config> Control<'object, 'config> {
    /// Loads the scheduler. Tasks started within one of the spans `past` were functions before.
    ///
    /// # Errors
    ///
    /// The kernel rejects it; nothing stays loaded.
    pub fn start(
        configuration: &'config mut Configuration,
        past: &[Span],
        object: &'object mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        let settings = configuration.settings().clone();
        let cpus = function_cpus()?;
        let controller = Controller::new(settings.config(cpus));
        let stats = StatsBridge::launch()?;
        let metrics = &configuration.options().metrics;
        let exporter = Exporter::launch(metrics, stats.asker())?;
        let times = TimesByFunction::new(metrics.metrics_functions.into());
        let slice = settings.slice_of(controller.slice_ns());
        let tunables = &settings.tunables;
        let (mut sandboxes, present) = watch_sandboxes(&settings)?;
        quota::check_room(tunables.max_cgroups)?;
        let is_watched = !tunables.ignore_quotas && !preflight::reports_quotas()?;
        let quotas = is_watched.then(|| QuotaWatch::start(preflight::kernel_release()));
        let quotas = quotas.transpose()?;
        let mut kernel = KernelHalf::load(tunables, cpus, slice, past, object)?;

        let events = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&events);
        let completions = Rc::new(RefCell::new(Vec::new()));
        let learned = Rc::clone(&completions);
        let ring = kernel.events(
            move |event| sink.borrow_mut().push(event),
            move |completion| learned.borrow_mut().push(completion),
        )?;
        let learns = tunables.policy == Policy::Learned;
        let mut learning = learns.then(|| Learning::new(settings.learn_state.clone()));
        if let Some(learning) = learning.as_mut() {
            learning.take(&[], &mut kernel);
        }
        let iat = IatMap::new(kernel.iat_map())?;
        let mut names = Names::default();
        tell_of_sandboxes(&mut kernel, &mut names, present);
        // Then add those that have appeared since. Loading takes seconds on a busy machine, and
        // until the kernel half knows a sandbox, its tasks are treated as daemons.
        if let Some(sandboxes) = sandboxes.as_mut() {
            tell_of_sandboxes(&mut kernel, &mut names, sandboxes.changes()?);
        }
        kernel.attach()?;
        let wakeups = Wakeups::new(!tunables.partial);
        debug!("loaded for {cpus} CPUs, S = {} us", slice.slice_ns / 1000);
        let control = Self {
            ring,
            events,
            completions,
            learning,
            taken_at: Instant::now(),
            iat,
            stats,
            exporter,
            times,
            counters: RefCell::default(),
            sandboxes,
            names,
            controller,
            configuration,
            settings,
            overload_log: OverloadLog::default(),
            watchdog: Watchdog::of_environment(),
            quotas,
            wakeups,
            run: RunInfo::now(),
            kernel,
        };
        control.log_slice();
        Ok(control)
    }

    /// Records for the statistics how the previous scheduler ended, and how many times the
    /// kernel has ejected one within the last hour.
    pub fn remember(&mut self, last_end: Option<End>, ejections: usize) {
        self.run.last_end = last_end;
        self.run.ejections = ejections as u64;
    }

    /// Serves until a signal arrives or the kernel ends the scheduler, then unloads it. Returns
    /// how it ended, when it began to leave (see `history::now()`), and an error if the kernel
    /// ejected the scheduler or it could not be served any longer. The error includes the
    /// kernel's message. What was learned is saved in any case.
    pub fn run(
        &mut self,
        signals: &Signals,
        hints: &mut Option<HintListener>,
    ) -> (End, Option<u64>, Result<()>) {
        let served = self.serve(signals, hints);
        let by_us = !self.kernel.exited();
        if by_us {
            service::stopping();
        }
        if let Err(error) = self.learn_rest() {
            warn!("cannot learn from the last invocations: {error:#}");
        }
        let left = Some(history::now());
        let exit = self.kernel.unload();
        // Only after unloading, since a disk may hang.
        if let Some(learning) = self.learning.as_mut() {
            learning.finish_saving();
        }
        let restart = exit.as_ref().is_ok_and(UserExitInfo::should_restart);
        match (self.kernel.exit_kind(), served, exit) {
            (kind, Err(error), Ok(_)) if kind < ScxExitKind::Error as i32 => {
                (End::Failed, left, Err(error))
            }
            (kind, Ok(()) | Err(_), exit) => (End::of(kind, restart, by_us), left, exit.map(drop)),
        }
    }

    /// Serves until a signal arrives or the kernel ends the scheduler.
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
                self.answer_all(hints);
            }
            if let Some(quotas) = self.quotas.as_mut() {
                quotas.look_if_due()?;
            }
            self.keep_alive();
        }
        Ok(())
    }

    /// When it is due, tells the service manager's watchdog that this loop runs and the kernel
    /// half schedules.
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

    /// Returns the longest time to wait, or None if nothing is scheduled.
    fn longest_wait(&self) -> Option<Duration> {
        let watchdog = self.watchdog.as_ref().map(Watchdog::left);
        let quotas = self.quotas.as_ref().map(QuotaWatch::left);
        let due = self.learn_in().into_iter().chain(watchdog);
        due.chain(quotas).min()
    }

    /// Returns how much longer updates of the ranks, or a batch of completions too small for a
    /// wake-up, may wait; None without learning.
    fn learn_in(&self) -> Option<Duration> {
        let learning = self.learning.as_ref()?;
        let batch = LEARN_AFTER.saturating_sub(self.taken_at.elapsed());
        let update = learning.due_in(Instant::now());
        Some(update.map_or(batch, |due| due.min(batch)))
    }

    /// Waits until a source is ready, or learning or a sign of life is due. Returns the ready
    /// sources.
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
                .context("the wait is too long")?,
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

    /// Hands the platform's hints to the kernel half.
    fn take_hints(&mut self, hints: &mut HintListener) {
        let mut apply = |batch: &[KernelHint]| self.kernel.apply_hints(batch);
        let taken = Clock::read().and_then(|clock| hints.drain(clock, &mut apply));
        if let Err(error) = taken {
            warn!("{error:#}; no more hints are accepted until the next start");
        }
    }

    fn take_events(&mut self) -> Result<()> {
        self.taken_at = Instant::now();
        self.ring.consume().context("cannot read events")?;
        self.learn();
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

    /// Learns from the completions since the last time, and has the result saved.
    fn learn_rest(&mut self) -> Result<()> {
        let consumed = self.ring.consume().context("cannot read events");
        self.learn();
        if let Some(learning) = self.learning.as_mut() {
            learning.save();
        }
        consumed
    }

    /// Learns from completed invocations.
    fn learn(&mut self) {
        let mut completions = self.completions.borrow_mut();
        if self.exporter.is_some() {
            completions
                .iter()
                .for_each(|one| self.times.note(&one.into()));
        }
        if let Some(learning) = self.learning.as_mut() {
            learning.take(&completions, &mut self.kernel);
        }
        completions.clear(); // its memory is for the next ones
    }

    /// Returns whether functions are ranked.
    fn ranks(&self) -> bool {
        let learning = self.learning.as_ref();
        learning.is_some_and(|learning| !learning.has_given_up())
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

    /// N more arrivals are in the IAT map, `total` since loading.
    fn on_arrivals(&mut self, total: u64) {
        let mut arrivals = Vec::new();
        self.iat.read_to(total, &mut arrivals);
        if let Some(slice_ns) = self.controller.on_arrivals(&arrivals) {
            debug!("S = {} us after {total} arrivals", slice_ns / 1000);
            self.kernel.set_slice(self.settings.slice_of(slice_ns));
            self.log_slice();
        }
    }

    /// The kernel half reports a delay that begins or ends overload. Ranked work does not wait in
    /// FILTER, and needs no other mode.
    fn on_delay(&mut self, event: sfs_event) -> Result<()> {
        if self.ranks() {
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
            // S has grown since the report, so it was no overload after all. But a wait close
            // to the kernel's watchdog is left to the kernel half.
            None if event.kind == OVERLOAD_BEGUN && event.value < SFS_WATCHDOG_GUARD_NS => {
                self.kernel.dismiss_overload();
            }
            None => {}
        }
        Ok(())
    }
}

/// Sources of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Events,
    Signals,
    Stats,
    Sandboxes,
    Hints,
}

/// Starts to watch for sandboxes, if patterns are given. Returns those already present.
fn watch_sandboxes(settings: &Settings) -> Result<(Option<Sandboxes>, Vec<Change>)> {
    if settings.sandboxes.is_empty() {
        return Ok((None, Vec::new()));
    }
    let (watch, present) = Sandboxes::watch(
        Path::new(CGROUP_ROOT),
        settings.sandboxes.clone(),
        settings.names_by_parent(),
    )?;
    Ok((Some(watch), present))
}

/// Tells the kernel half which sandboxes have appeared and vanished.
fn tell_of_sandboxes(kernel: &mut KernelHalf<'_>, names: &mut Names, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::Appeared(id, function) => kernel.add_sandbox(id, names.number(&function)),
            Change::Vanished(id) => kernel.remove_sandbox(id),
        }
    }
}
