//! Invariants of the loader and the kernel half together.

use super::{of, own, Sleep, Step};
use sfs_fibers::{longest_ns, PAUSES};
use sfs_kernel_model::loader_ffi::{self as ffi, ModeSwitch, Words};
use sfs_kernel_model::race;
use sfs_kernel_model::state::{with, Place, State, TaskId};
use sfs_kernel_model::timeline::turn_of;
use sfs_policy::Mode;
use std::ops::Range;

/// DSQ_FILTER, FILTER's first shard, behind which the others follow, and DSQ_FAIR.
const FILTER: u64 = 0x10000;
const FAIR: u64 = 0x20000;
/// TURN_FILTER.
const FILTER_TURN: u32 = 1;
/// Kernel threads, daemons and the loader come before FILTER and FAIR for so long, ns.
const SHORT_TURN_NS: u64 = 4_000_000;

/// What the checks remember.
#[derive(Debug)]
pub struct Watch {
    /// When the mode was switched last, ns since boot.
    pub switched_at: u64,
    /// When S was set last.
    pub slice_set_at: u64,
    checked_at: u64,
    /// For so long fair-only mode has had no reason, ns.
    calm_ns: u64,
    /// For so long the loader has been late in all, ns.
    pub late_ns: u64,
    /// Since when the head of FILTER waits for too long beside a late loader, and how many tasks
    /// were relieved then.
    stays: Option<(u64, u64)>,
    /// For each CPU: its FILTER turn in fair-only mode, and since when.
    turns: Vec<Option<(u64, u64)>>,
    /// Since when a report of overload has had no answer.
    unanswered: Option<u64>,
}

impl Watch {
    /// Of a machine with `cpus` CPUs.
    pub fn new(cpus: usize, now: u64) -> Self {
        Self {
            switched_at: 0,
            slice_set_at: now,
            checked_at: now,
            calm_ns: 0,
            late_ns: 0,
            stays: None,
            turns: vec![None; cpus],
            unanswered: None,
        }
    }
}

/// Checks all of them; a CPU's tick comes every `tick_ns`.
pub fn check(tick_ns: u64) {
    if with(|s| of(s).is_none()) {
        return;
    }
    let words = ffi::words();
    with(|s| {
        words_are_as_told(s, &words);
        let elapsed = s.now - watch(s).checked_at;
        watch(s).checked_at = s.now;
        backlog_is_gone(s, &words);
        overload_ends(s, &words, elapsed, tick_ns);
        late_loader_is_replaced(s, &words, elapsed, tick_ns);
        reports_are_answered(s, &words);
    });
    filter_turns_end(tick_ns);
}

fn watch(s: &mut State) -> &mut Watch {
    &mut own(s).watch
}

/// The mode and S are what the controller has decided and the loader has written.
fn words_are_as_told(s: &mut State, words: &Words) {
    let loader = of(s).expect("there is a loader");
    let told = loader.told;
    let expected = (
        u32::from(told.mode == Mode::FairOnly),
        told.slice_ns,
        told.overload_wait_ns,
        told.recover_wait_ns,
    );
    let is = (
        words.mode,
        words.slice_ns,
        words.overload_wait_ns,
        words.recover_wait_ns,
    );
    let decided = (loader.controller.mode(), loader.controller.slice_ns());
    let pending = loader.steps.iter().any(|s| matches!(s, Step::Switch(_)));
    if is != expected {
        s.finding(format!(
            "the loader has set mode, S and bounds {expected:?}, and the kernel half has {is:?}"
        ));
    }
    if !pending && decided != (told.mode, told.slice_ns) {
        s.finding(format!(
            "the controller has decided {decided:?}, and {told:?} is in force"
        ));
    }
}

/// Tasks in FILTER that should not be there in fair-only mode. Where callbacks interleave, a task
/// whose enqueue() has read the mode before may arrive after the switch (switch_mode()).
fn left_in_filter(s: &State) -> usize {
    let last = of(s).expect("there is a loader").watch.switched_at + PAUSES * longest_ns();
    let is_late = |task: &TaskId| s.tasks[*task].waits_since.is_some_and(|at| at > last);
    let shards = FILTER..FILTER + u64::from(s.odd.of.shards);
    let tasks = shards.filter_map(|shard| s.queues.get(&shard));
    let tasks = tasks.flat_map(|queue| queue.iter());
    tasks.filter(|task| !race::is_on() || is_late(task)).count()
}

/// In fair-only mode nothing waits in FILTER, and no overload is reported.
fn backlog_is_gone(s: &mut State, words: &Words) {
    let loader = of(s).expect("there is a loader");
    let pending = loader.steps.iter().any(|s| matches!(s, Step::Switch(_)));
    if pending || words.mode == 0 {
        return;
    }
    let waiting = left_in_filter(s);
    if waiting > 0 {
        s.finding(format!("{waiting} tasks wait in FILTER in fair-only mode"));
    }
    if words.overload_since > 0 {
        s.finding("overload is reported in fair-only mode".into());
    }
}

/// Fair-only mode ends soon after the delay is back to normal: check_recovery() reports it once
/// in `loader_grace_ns`, by the next task that stops or has a tick.
fn overload_ends(s: &mut State, words: &Words, elapsed: u64, tick_ns: u64) {
    let loader = of(s).expect("there is a loader");
    let sleeps = s.tasks[loader.task].place == Place::Asleep && loader.sleep == Sleep::Poll;
    let is_busy = s.cpus.iter().any(|cpu| cpu.current.is_some());
    let is_calm = words.mode == 1 && words.expected_delay <= words.recover_wait_ns;
    let watch = watch(s);
    watch.calm_ns = match (is_calm, sleeps && is_busy) {
        (true, true) => watch.calm_ns + elapsed,
        (true, false) => watch.calm_ns,
        (false, _) => 0,
    };
    if watch.calm_ns > 3 * words.loader_grace_ns + 2 * tick_ns {
        watch.calm_ns = 0;
        let ms = words.expected_delay as f64 / 1e6;
        s.finding(format!(
            "fair-only mode does not end at an expected delay of {ms:.3} ms"
        ));
    }
}

/// If the loader is late, each dispatch moves work that has waited for too long from the head of
/// FILTER to FAIR (relieve_filter()), and each FILTER turn ends at a tick for that.
fn late_loader_is_replaced(s: &mut State, words: &Words, elapsed: u64, tick_ns: u64) {
    let (now, relieved) = (s.now, relieved(s));
    let turn = 2 * tick_ns + words.fair_slice_ns + SHORT_TURN_NS;
    let since = words.overload_since + words.loader_grace_ns;
    let is_late = words.mode == 0 && words.overload_since > 0 && now > since;
    let stays = is_late && words.head_wait >= words.overload_wait;
    let watch = watch(s);
    watch.late_ns += if is_late { elapsed } else { 0 };
    // The bound has changed with S.
    let same = watch
        .stays
        .filter(|&(since, before)| before == relieved && since >= watch.slice_set_at);
    watch.stays = stays.then(|| same.unwrap_or((now, relieved)));
    if watch.stays.is_some_and(|(since, _)| now - since > turn) {
        watch.stays = None;
        s.finding(format!(
            "the loader is late, and nothing leaves FILTER, where the head has waited for {} ms",
            words.head_wait / 1_000_000
        ));
    }
}

/// Tasks that the kernel half has moved from FILTER to FAIR by itself.
fn relieved(s: &State) -> u64 {
    let map = of(s).expect("there is a loader").maps.stats;
    let (stats, key) = (&s.maps[&(map as usize)], 0_u32);
    let key = (&raw const key).cast();
    // SAFETY: the map has one key, and a value for each CPU.
    let of = |cpu| unsafe { ffi::model_relieved(stats.lookup(key, cpu)) };
    (0..s.cpus.len()).map(of).sum()
}

/// A loader that sleeps until something happens has answered all. A report that found no room in
/// the ring buffer is made again after a second.
fn reports_are_answered(s: &mut State, words: &Words) {
    let now = s.now;
    let loader = of(s).expect("there is a loader");
    let has_answered = loader.sleep == Sleep::Poll
        && s.tasks[loader.task].place == Place::Asleep
        && loader.plan.overload.is_some();
    let limit = if loader.rings[0].lost() > 0 {
        1_100_000_000
    } else {
        10_000_000
    };
    let owed = has_answered && words.overload_since > 0 && words.head_wait < ffi::WATCHDOG_GUARD_NS;
    let in_force = loader.is_in_force() && loader.steps.is_empty() && words.mode == 1;
    let watch = watch(s);
    watch.unanswered = owed.then(|| watch.unanswered.unwrap_or(now));
    if watch.unanswered.is_some_and(|since| now - since > limit) {
        watch.unanswered = None;
        s.finding("a report of overload is never answered".into());
    }
    if in_force {
        s.finding("fair-only mode is in force beside ranks".into());
    }
}

/// In fair-only mode each FILTER turn ends with the next tick, unless the kernel serves the CPU's
/// tasks itself.
fn filter_turns_end(tick_ns: u64) {
    let running: Vec<_> = with(|s| {
        let is_fair_only = of(s).is_some_and(|l| l.told.mode == Mode::FairOnly);
        let cpus = s.cpus.iter().filter(|_| is_fair_only).enumerate();
        let cpus = cpus.filter(|(_, cpu)| !cpu.is_bypassed);
        let tasks = cpus.filter_map(|(n, cpu)| Some((n, cpu.turn, cpu.current?)));
        tasks.collect()
    });
    let filter: Vec<_> = running
        .into_iter()
        .filter(|&(_, _, task)| turn_of(task) == FILTER_TURN)
        .collect();
    with(|s| {
        let now = s.now;
        let before = std::mem::take(&mut watch(s).turns);
        let mut turns = vec![None; s.cpus.len()];
        for (cpu, turn, _) in filter {
            let same = before[cpu].filter(|(other, _)| *other == turn);
            let (_, since) = same.unwrap_or((turn, now));
            turns[cpu] = Some((turn, since));
            // Crowds are checked more rarely, but the turn was there at both checks.
            if now - since > tick_ns + SHORT_TURN_NS {
                s.finding(format!(
                    "CPU {cpu} goes on with a FILTER turn in fair-only mode"
                ));
            }
        }
        watch(s).turns = turns;
    });
}

fn length(s: &State, queue: u64) -> usize {
    s.queues.get(&queue).map_or(0, |dsq| dsq.len())
}

/// Tasks that wait in FILTER and in FAIR.
pub fn waiting(s: &State) -> (usize, usize) {
    let shards = FILTER..FILTER + u64::from(s.odd.of.shards);
    let filter = shards.map(|queue| length(s, queue)).sum();
    (filter, length(s, FAIR))
}

/// The kernel half has switched the mode: as many tasks as it says have changed queues, and none
/// is left that should have.
pub fn switched(mode: Mode, before: (usize, usize), arg: ModeSwitch) {
    if race::is_on() {
        return; // others queue tasks and take them out meanwhile
    }
    let (now, fair) = with(|s| {
        let fair = s
            .queues
            .get(&FAIR)
            .into_iter()
            .flat_map(|queue| queue.iter());
        let fair: Vec<_> = fair.map(|task| s.tasks[task].fields.task).collect();
        (waiting(s), fair)
    });
    let moved = arg.moved as usize;
    let (from, to) = match mode {
        Mode::FairOnly => ((before.0, now.0), (before.1, now.1)),
        Mode::Filter => ((before.1, now.1), (before.0, now.0)),
    };
    // SAFETY: the tasks are the machine's.
    let due = fair
        .into_iter()
        .filter(|&task| unsafe { ffi::model_is_due_to_filter(task) });
    let left = match mode {
        Mode::FairOnly => now.0,
        Mode::Filter => due.count(),
    };
    with(|s| {
        if from.0 != from.1 + moved || to.1 != to.0 + moved {
            s.finding(format!(
                "{moved} tasks are said to have moved at a switch to {mode:?}, but FILTER and \
                 FAIR had {before:?} and have {now:?}"
            ));
        }
        if arg.left == 0 && left > 0 {
            s.finding(format!(
                "{left} tasks are left behind at a switch to {mode:?}"
            ));
        }
    });
}

/// The loader has read arrivals with the numbers `range`: all that are not overwritten, and, unless
/// a boundary takes the time of an earlier wake-up (record_arrival()), in order.
pub fn arrivals(s: &mut State, range: Range<u64>, arrivals: &[u64]) {
    let now = s.now;
    // SAFETY: reads a number of the kernel half.
    let written = unsafe { ffi::model_nr_arrivals() };
    let oldest = written.saturating_sub(ffi::IAT_SLOTS);
    let (read, expected) = (
        arrivals.len() as u64,
        range.end.saturating_sub(range.start.max(oldest)),
    );
    // CPUs that interleave take their time first, their slot later, and fill it last: "may fill
    // them out of order. The reader tolerates times that go back" (record_arrival()).
    let may_lack = race::is_on() && read < expected;
    if read != expected && !may_lack {
        s.finding(format!("the loader finds {read} of {expected} arrivals"));
    }
    let is_ordered = arrivals.is_sorted() || race::is_on();
    // SAFETY: reads a number of the kernel half.
    if !is_ordered && !unsafe { ffi::model_arrivals_lie_back() } {
        s.finding("arrivals are not in order".into());
    }
    if arrivals.iter().any(|&at| at > now) {
        s.finding("an arrival is later than the present".into());
    }
}
