//! Work on several CPUs of a model that proceeds in turns: each piece of work has a stack of its
//! own, pauses in its middle, and goes on later. Between two turns other work proceeds, as on
//! other CPUs. Locks exclude it. A random number generator chooses the order, so a run repeats.
//!
//! All of it belongs to the thread that has called [`install`].

mod locks;
mod races;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
pub use locks::Lock;
use locks::Locks;
pub use races::Races;
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The stack of a piece of work, in bytes. The kernel half needs a part of it.
const STACK: usize = 512 << 10;
/// So many callbacks that pause are between a cause and its effect at most; each pauses for
/// [`longest_ns`] at most.
pub const PAUSES: u64 = 20;

/// The number of a piece of work, from 1 on.
pub type FiberId = u64;

/// Why work does not go on at once.
#[derive(Debug, Clone, Copy)]
enum Pause {
    /// It goes on at this time, ns.
    Until(u64),
    /// It waits for a lock.
    For(Lock),
}

type Body = Coroutine<(), Pause, (), DefaultStack>;

/// A piece of work that has begun.
struct Fiber {
    /// `None` while it runs.
    body: Option<Body>,
    yielder: *const Yielder<(), Pause>,
    /// For so long it may pause yet, ns.
    left_ns: u64,
}

/// What has happened so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Pauses in the middle of work.
    pub pauses: u64,
    /// Waits for a lock.
    pub waits: u64,
}

struct Fibers {
    random: ChaCha8Rng,
    races: Races,
    last: FiberId,
    all: BTreeMap<FiberId, Fiber>,
    /// Those that go on, by time, 0: as soon as possible, and a random number.
    ready: BTreeSet<(u64, u32, FiberId)>,
    waiting: BTreeMap<Lock, Vec<FiberId>>,
    locks: Locks,
    stacks: Vec<DefaultStack>,
    /// What the kernel would free at the end of a grace period.
    kept: Vec<Box<dyn Any>>,
    totals: Totals,
}

thread_local! {
    static FIBERS: RefCell<Option<Fibers>> = const { RefCell::new(None) };
    /// The work that runs; 0: none.
    static CURRENT: Cell<FiberId> = const { Cell::new(0) };
    /// Nothing pauses: all work comes to its end.
    static FINISHES: Cell<bool> = const { Cell::new(false) };
}

fn with<T>(work: impl FnOnce(&mut Fibers) -> T) -> Option<T> {
    FIBERS.with(|cell| cell.borrow_mut().as_mut().map(work))
}

/// From now on work may pause.
pub fn install(races: Races, random: ChaCha8Rng) {
    let fibers = Fibers {
        random,
        races,
        last: 0,
        all: BTreeMap::new(),
        ready: BTreeSet::new(),
        waiting: BTreeMap::new(),
        locks: Locks::default(),
        stacks: Vec::new(),
        kept: Vec::new(),
        totals: Totals::default(),
    };
    FIBERS.with(|cell| *cell.borrow_mut() = Some(fibers));
}

/// The end. Returns `None` if nothing was installed. Work that has not come to its end, which
/// happens only behind a deadlock, is left as it is.
pub fn remove() -> Option<Totals> {
    let mut fibers = FIBERS.with(|cell| cell.borrow_mut().take())?;
    for (_, fiber) in std::mem::take(&mut fibers.all) {
        // Its stack cannot be unwound through C.
        std::mem::forget(fiber.body);
    }
    Some(fibers.totals)
}

/// Returns true if work may pause.
pub fn is_on() -> bool {
    with(|_| ()).is_some()
}

/// The work that runs; `None`: none, so nothing can pause here.
pub fn current() -> Option<FiberId> {
    Some(CURRENT.get()).filter(|&id| id > 0)
}

/// A random number from `from` to `to`; `from` if nothing is installed.
pub fn between(from: u64, to: u64) -> u64 {
    with(|f| from + f.random.next_u64() % (to - from + 1)).unwrap_or(from)
}

/// What the kernel half counts until the next pause, and what it counts for an access; `None`:
/// nothing pauses.
pub fn until_pause() -> Option<(i64, u32)> {
    with(|f| (f.races.counts(&mut f.random), f.races.access))
}

/// For so long work may pause, ns.
pub fn longest_ns() -> u64 {
    with(|f| f.races.longest_ns).unwrap_or(0)
}

/// Keeps what work may still point to until all that runs now has come to its end.
pub fn keep<T: 'static>(thing: T) {
    // What is not kept is dropped outside of the borrow.
    let mut thing = Some(thing);
    with(|f| {
        if !f.all.is_empty() {
            f.kept
                .extend(thing.take().map(|thing| Box::new(thing) as Box<dyn Any>));
        }
    });
}

/// The number of pieces of work that have begun and not come to their end.
pub fn in_progress() -> usize {
    with(|f| f.all.len()).unwrap_or(0)
}

/// Begins a piece of work, which proceeds to its first pause, or to its end.
pub fn spawn(work: impl FnOnce() + 'static) {
    let Some((id, stack)) = with(|f| {
        f.last += 1;
        (f.last, f.stacks.pop())
    }) else {
        return work();
    };
    let stack = stack.unwrap_or_else(|| DefaultStack::new(STACK).expect("memory for a stack"));
    let body = Coroutine::with_stack(stack, move |yielder: &Yielder<(), Pause>, ()| {
        with(|f| f.all.get_mut(&id).expect("it has begun").yielder = yielder);
        work();
    });
    with(|f| {
        let fiber = Fiber {
            body: Some(body),
            yielder: std::ptr::null(),
            left_ns: f.races.longest_ns,
        };
        f.all.insert(id, fiber);
    });
    proceed(id);
}

/// A piece of work proceeds to its next pause, or to its end.
fn proceed(id: FiberId) {
    let body = with(|f| f.all.get_mut(&id).and_then(|fiber| fiber.body.take()));
    let mut body = body.flatten().expect("it has begun and does not run");
    CURRENT.set(id);
    let result = body.resume(());
    CURRENT.set(0);
    with(|f| match result {
        CoroutineResult::Yield(pause) => {
            f.all.get_mut(&id).expect("it has begun").body = Some(body);
            match pause {
                Pause::Until(at) => {
                    f.totals.pauses += 1;
                    f.will_proceed(id, at);
                }
                Pause::For(lock) => {
                    f.totals.waits += 1;
                    f.waiting.entry(lock).or_default().push(id);
                }
            }
        }
        CoroutineResult::Return(()) => {
            f.all.remove(&id);
            f.stacks.push(body.into_stack());
        }
    });
}

/// When the next piece of work goes on, ns, 0: as soon as possible; `None`: none does by itself.
pub fn next_at() -> Option<u64> {
    with(|f| f.ready.first().map(|&(at, ..)| at)).flatten()
}

/// That piece of work proceeds. Returns its number.
pub fn proceed_next() -> Option<FiberId> {
    let (_, _, id) = with(|f| f.ready.pop_first()).flatten()?;
    proceed(id);
    Some(id)
}

/// All work comes to its end, without further pauses.
///
/// # Errors
///
/// Work waits for locks that other such work has.
pub fn finish() -> Result<(), String> {
    FINISHES.set(true);
    while proceed_next().is_some() {}
    FINISHES.set(false);
    let stuck = with(|f| {
        let waits = |(lock, ids): (&Lock, &Vec<FiberId>)| {
            let owner = f.locks.owner(*lock);
            format!("{ids:?} for {lock:?} of {owner:?}")
        };
        let waiting: Vec<String> = f.waiting.iter().map(waits).collect();
        waiting.join(", ")
    });
    let kept = with(|f| std::mem::take(&mut f.kept));
    drop(kept);
    stuck.filter(|text| !text.is_empty()).map_or(Ok(()), Err)
}

/// The work that runs pauses, unless all work is to come to its end. It goes on at a random time,
/// or as soon as the event at `next_event` (ns) has begun. `now` is in ns. Returns true if it has
/// paused.
pub fn pause(now: u64, next_event: Option<u64>) -> bool {
    let Some(id) = current().filter(|_| !FINISHES.get()) else {
        return false;
    };
    let until = with(|f| {
        let left = f.all[&id].left_ns;
        let soon = next_event.map(|at| at.saturating_sub(now) + 1);
        let delay = match soon.filter(|&ns| ns <= left) {
            Some(ns) if f.random.next_u32() & 1 == 0 => ns,
            _ => f.random.next_u64() % (left + 1),
        };
        f.all.get_mut(&id).expect("it runs").left_ns -= delay;
        (left > 0).then_some(now + delay)
    });
    match until.flatten() {
        Some(at) => {
            suspend(id, Pause::Until(at));
            true
        }
        None => false,
    }
}

fn suspend(id: FiberId, pause: Pause) {
    let yielder = with(|f| f.all[&id].yielder).expect("it runs");
    // SAFETY: the work that runs is inside the function that has got this reference.
    unsafe { (*yielder).suspend(pause) };
}

/// Takes a lock if nobody else has it; the owner may take it again. Returns true if the work that
/// runs has it now.
pub fn try_lock(lock: Lock) -> bool {
    let taken = current().and_then(|id| with(|f| f.locks.take(lock, id)));
    taken.unwrap_or(true)
}

/// Waits until a lock is given back; it may be taken then, or not.
pub fn wait_for(lock: Lock) {
    if let Some(id) = current() {
        suspend(id, Pause::For(lock));
    }
}

/// Gives a lock back that [`try_lock`] has taken.
pub fn unlock(lock: Lock) {
    if let Some(id) = current() {
        with(|f| {
            if f.locks.give_back(lock, id) {
                for waiter in f.waiting.remove(&lock).unwrap_or_default() {
                    f.will_proceed(waiter, 0);
                }
            }
        });
    }
}

/// Returns true if the work that runs has the lock.
pub fn owns(lock: Lock) -> bool {
    current().is_some_and(|id| with(|f| f.locks.owner(lock) == Some(id)) == Some(true))
}

/// Returns true if any work has the lock.
pub fn is_locked(lock: Lock) -> bool {
    with(|f| f.locks.owner(lock).is_some()).unwrap_or(false)
}

impl Fibers {
    fn will_proceed(&mut self, id: FiberId, at: u64) {
        let order = self.random.next_u32();
        self.ready.insert((at, order, id));
    }
}

#[cfg(test)]
mod tests;
