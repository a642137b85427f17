//! The memory that supervisor, dispatcher, helpers and children share.
//!
//! It is an array of 64-bit words in an anonymous file, mapped by all of them:
//! a head, one slot per invocation, then the phases of all. As a shared mapping
//! of a file it is not copied when the dispatcher forks. Every word is atomic,
//! so no access is a data race; each has one writer, except those that several
//! processes add to.

mod slot;

pub use slot::{Slot, State};

use super::realtime::ChildPolicy;
use crate::refill::Amounts;
use anyhow::{Context, Result};
use faas_data::fixed::Kernel;
use faas_data::kind::{Defaults, Work};
use faas_data::trace::{Invocation, Phase};
use faas_fixed::rates::Rates;
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};
use slot::{pack, ARRIVAL, FUNCTION, PHASES, SLOT};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const WORD: usize = size_of::<AtomicU64>();

// Words of the head.
const SLOTS: usize = 0;
const POLICY: usize = 1;
const PIN: usize = 2;
const ORIGIN: usize = 3;
const COMPLETED: usize = 4;
const ERROR: usize = 5;
const PEER: usize = 6;
const PRESTART: usize = 7;
const READY: usize = 8;
const PRESTARTED: usize = 9;
const COLD_STARTS: usize = 10;
const DIED: usize = 11;
const REFILL: usize = 12;
const RATES: usize = 16;
const HEAD: usize = RATES + Rates::WORDS;

/// The parameters of a replay on the board.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The policy of the children.
    pub policy: ChildPolicy,
    /// Number of CPUs that the children are restricted to, 0 for no restriction.
    pub pin: u32,
    /// The kinds of phases for which the trace has none.
    pub defaults: Defaults,
    /// The socket of the [`super::peer`], if there is one.
    pub peer: Option<RawFd>,
    /// Number of sandboxes of each function started before the replay; `None`:
    /// each invocation is a process.
    pub prestart: Option<u32>,
    /// What fixed work takes alone; all 0 without any.
    pub rates: Rates,
    /// How demands grow at switches, if they do.
    pub refill: Option<Amounts>,
}

/// The shared memory, seen by one process.
#[derive(Debug)]
pub struct Board {
    words: &'static [AtomicU64],
}

impl Board {
    /// Creates the board of a replay of `invocations`, each of which belongs to
    /// the function with the number in `functions`. The other processes open it
    /// through the returned file, which stays open across exec.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn create(
        invocations: &[Invocation],
        functions: &[u32],
        plan: &Plan,
    ) -> Result<(Self, OwnedFd)> {
        let phases: usize = invocations.iter().map(|one| one.phases.len()).sum();
        let words = HEAD + invocations.len() * SLOT + phases;
        let file = memfd_create(c"faasbench", MFdFlags::empty())
            .context("cannot make shared memory for the replay")?;
        nix::unistd::ftruncate(&file, (words * WORD) as i64)
            .context("cannot make shared memory for the replay")?;
        let board = Self::map(file.as_fd(), words)?;
        board.words[SLOTS].store(invocations.len() as u64, Relaxed);
        board.set(POLICY, plan.policy.to_word());
        board.set(PIN, u64::from(plan.pin));
        board.set(PEER, plan.peer.unwrap_or(0) as u64);
        board.set(
            PRESTART,
            plan.prestart.map_or(0, |count| u64::from(count) + 1),
        );
        board.set(REFILL, plan.refill.map_or(0, Amounts::to_word));
        for (place, word) in plan.rates.to_words().into_iter().enumerate() {
            board.set(RATES + place, word);
        }
        board.fill(invocations, functions, plan.defaults);
        Ok((board, file))
    }

    fn fill(&self, invocations: &[Invocation], functions: &[u32], defaults: Defaults) {
        let mut next = HEAD + invocations.len() * SLOT;
        for (id, (one, function)) in invocations.iter().zip(functions).enumerate() {
            let slot = &self.words[HEAD + id * SLOT..][..SLOT];
            slot[ARRIVAL].store(one.arrival_us * 1000, Relaxed);
            slot[PHASES].store((next as u64) << 32 | one.phases.len() as u64, Relaxed);
            slot[FUNCTION].store(u64::from(*function), Relaxed);
            for phase in &one.phases {
                self.words[next].store(pack(phase, defaults), Relaxed);
                next += 1;
            }
        }
    }

    fn get(&self, word: usize) -> u64 {
        self.words[word].load(Relaxed)
    }

    fn set(&self, word: usize, value: u64) {
        self.words[word].store(value, Relaxed);
    }

    /// Opens the board in the inherited open file with the number `board`;
    /// `None` if there is no such board.
    pub fn inherited(board: &str) -> Option<Self> {
        let fd = board.parse::<RawFd>().ok().filter(|fd| *fd > 2)?;
        // SAFETY: the supervisor left this file open for us; otherwise the
        // calls on it fail. Nothing in this process closes it.
        Self::open(unsafe { BorrowedFd::borrow_raw(fd) }).ok()
    }

    /// Maps the board in a file that [`Board::create`] made.
    ///
    /// # Errors
    /// If the file is not a board.
    pub fn open(file: BorrowedFd<'_>) -> Result<Self> {
        let size = nix::sys::stat::fstat(file).context("cannot see the board")?;
        let board = Self::map(file, size.st_size as usize / WORD)?;
        let room = board.words.len().saturating_sub(HEAD) / SLOT;
        let slots = board.words.get(SLOTS).map(|word| word.load(Relaxed));
        anyhow::ensure!(
            slots.is_some_and(|slots| slots as usize <= room),
            "not a board"
        );
        Ok(board)
    }

    fn map(file: BorrowedFd<'_>, words: usize) -> Result<Self> {
        let length = NonZeroUsize::new(words * WORD).context("the board is empty")?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice affects no
        // memory known to Rust.
        let start = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, file, 0) }
            .context("cannot map the board")?;
        // SAFETY: the mapping is page-aligned, zeroed or filled by us, `words`
        // atomics long, and lives until the drop of the only Board that has it.
        let words = unsafe { std::slice::from_raw_parts(start.cast().as_ptr(), words) };
        Ok(Self { words })
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.words[SLOTS].load(Relaxed) as usize
    }

    /// Whether there are no slots.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The policy of the children.
    pub fn policy(&self) -> Option<ChildPolicy> {
        ChildPolicy::from_word(self.words[POLICY].load(Relaxed))
    }

    /// Number of CPUs that the children are restricted to, 0 for no restriction.
    pub fn pin(&self) -> u32 {
        self.words[PIN].load(Relaxed) as u32
    }

    /// When the replay began, in nanoseconds on the monotonic clock.
    pub fn origin_ns(&self) -> u64 {
        self.words[ORIGIN].load(Relaxed)
    }

    /// Sets when the replay begins.
    pub fn set_origin_ns(&self, ns: u64) {
        self.words[ORIGIN].store(ns, Relaxed);
    }

    /// Number of completed invocations.
    pub fn completed(&self) -> u64 {
        self.words[COMPLETED].load(Relaxed)
    }

    /// Why the dispatcher failed: a step << 32 | errno, 0 if it did not.
    pub fn error(&self) -> u64 {
        self.words[ERROR].load(Relaxed)
    }

    /// Records why the dispatcher or its helper fails. The first reason is
    /// kept, because later ones follow from it.
    pub fn set_error(&self, error: u64) {
        let _ = self.words[ERROR].compare_exchange(0, error, Relaxed, Relaxed);
    }

    /// The socket of the [`super::peer`], if there is one.
    pub fn peer(&self) -> Option<RawFd> {
        nonzero(self.get(PEER)).map(|fd| fd as RawFd)
    }

    /// Number of sandboxes of each function started before the replay; `None`
    /// if each invocation is a process.
    pub fn prestart(&self) -> Option<u32> {
        nonzero(self.get(PRESTART)).map(|count| (count - 1) as u32)
    }

    /// What fixed work takes alone; `None` if no invocation does any.
    pub fn rates(&self) -> Option<Rates> {
        let words = std::array::from_fn(|place| self.get(RATES + place));
        let rates = Rates::from_words(words);
        (rates != Rates::default()).then_some(rates)
    }

    /// How demands grow at switches, if they do.
    pub fn refill(&self) -> Option<Amounts> {
        Amounts::from_word(self.get(REFILL))
    }

    /// Number of sandboxes that have begun to accept requests.
    pub fn ready(&self) -> u64 {
        self.get(READY)
    }

    /// Counts a sandbox that is about to accept its first request; called by
    /// each sandbox.
    pub fn add_ready(&self) {
        self.words[READY].fetch_add(1, Relaxed);
    }

    /// The counters of the sandboxes.
    pub fn pool(&self) -> PoolCounts {
        PoolCounts {
            prestarted: self.get(PRESTARTED),
            cold_starts: self.get(COLD_STARTS),
            died: self.get(DIED),
        }
    }

    /// Written by the dispatcher.
    pub fn set_pool(&self, counts: PoolCounts) {
        self.set(PRESTARTED, counts.prestarted);
        self.set(COLD_STARTS, counts.cold_starts);
        self.set(DIED, counts.died);
    }

    /// The kinds of work of the invocations, without duplicates.
    pub fn works(&self) -> Vec<Work> {
        let mut phases = Vec::new();
        let mut found = Vec::new();
        for id in 0..self.len() {
            phases.clear();
            self.slot(id).phases(&mut phases);
            for phase in &phases {
                match phase {
                    Phase::Cpu {
                        work: Some(work), ..
                    } if !found.contains(work) => {
                        found.push(*work);
                    }
                    _ => {}
                }
            }
        }
        found
    }

    /// The kinds of fixed work of each function, by its number, without
    /// duplicates.
    pub fn kernels(&self) -> BTreeMap<u32, Vec<Kernel>> {
        let mut found: BTreeMap<u32, Vec<Kernel>> = BTreeMap::new();
        let mut phases = Vec::new();
        for id in 0..self.len() {
            let slot = self.slot(id);
            phases.clear();
            slot.phases(&mut phases);
            let kernels = found.entry(slot.function()).or_default();
            for kernel in phases.iter().filter_map(Phase::fixed) {
                if !kernels.contains(&kernel) {
                    kernels.push(kernel);
                }
            }
        }
        found
    }

    /// The slot of invocation `id`, which must be less than [`Board::len`].
    pub fn slot(&self, id: usize) -> Slot<'_> {
        Slot {
            board: self,
            words: &self.words[HEAD + id * SLOT..][..SLOT],
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let start = std::ptr::NonNull::from(self.words).cast();
        // SAFETY: this is the mapping of `map`; borrows of it end with `self`.
        let _ = unsafe { munmap(start, size_of_val(self.words)) };
    }
}

fn nonzero(ns: u64) -> Option<u64> {
    (ns != 0).then_some(ns)
}

/// The counters of the sandboxes of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Number started before the replay.
    pub prestarted: u64,
    /// Number started for a request because all others were busy.
    pub cold_starts: u64,
    /// Number that ended on their own.
    pub died: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Usage;
    use crate::refill::Counts;
    use faas_data::kind::Blocking;

    #[test]
    fn another_mapping_sees_the_plan_and_returns_results() {
        let mut invocations = vec![Invocation::cpu(7, "f", 9)];
        invocations.push(Invocation {
            phases: vec![Phase::io(3), Phase::cpu(4)],
            ..Invocation::cpu(8, "g", 1)
        });
        let plan = Plan {
            policy: ChildPolicy::Batch,
            pin: 3,
            defaults: Defaults {
                work: Work::Sentiment,
                blocking: Blocking::File,
            },
            peer: None,
            prestart: Some(0),
            rates: Rates::default(),
            refill: Some(Amounts([1, 2, 3, 4])),
        };
        let (mine, file) = Board::create(&invocations, &[0, 4], &plan).unwrap();
        let theirs = Board::open(file.as_fd()).unwrap();
        assert_eq!((theirs.len(), theirs.pin()), (2, 3));
        assert_eq!(theirs.policy(), Some(ChildPolicy::Batch));
        assert_eq!(theirs.slot(1).arrival_ns(), 8000);
        let mut phases = Vec::new();
        theirs.slot(1).phases(&mut phases);
        let want = [
            Phase::Io {
                us: 3,
                blocking: Some(Blocking::File),
            },
            Phase::Cpu {
                us: 4,
                work: Some(Work::Sentiment),
            },
        ];
        assert_eq!(phases, want);
        assert_eq!(theirs.works(), [Work::Sentiment]);
        assert_eq!((theirs.prestart(), theirs.peer()), (Some(0), None));
        assert_eq!(theirs.rates(), None);
        assert_eq!(theirs.refill(), plan.refill);
        theirs.slot(1).set_refills(Counts([5, 0, 7, 1 << 40]));
        let most = u64::from(u32::MAX);
        assert_eq!(mine.slot(1).refills(), Counts([5, 0, 7, most]));
        assert_eq!(
            (theirs.slot(1).function(), theirs.slot(1).wait_ns()),
            (4, None)
        );
        theirs.slot(1).set_wait_ns(Some(0));
        assert_eq!(mine.slot(1).wait_ns(), Some(0));
        let alone = theirs.slot(0);
        alone.set_runnable_ns(100);
        alone.set_end_ns(150);
        assert_eq!(mine.slot(0).wait_ns(), None);
        alone.set_accounted_ns(Some(30));
        assert_eq!(mine.slot(0).wait_ns(), Some(20));
        alone.set_accounted_ns(Some(60));
        assert_eq!(mine.slot(0).wait_ns(), Some(0));
        alone.set_end_ns(0);
        let usage = Usage {
            cpu_us: 5,
            voluntary: 6,
            involuntary: 7,
        };
        theirs.slot(0).set_start_ns(11);
        theirs.slot(0).set_usage(&usage);
        theirs.slot(0).finish(State::Killed(9));
        theirs.set_error(5);
        theirs.set_error(6);
        assert_eq!(mine.error(), 5);
        let slot = mine.slot(0);
        assert_eq!(slot.state(), State::Killed(9));
        assert_eq!((slot.start_ns(), slot.end_ns()), (Some(11), None));
        assert_eq!(
            (slot.cpu_us(), slot.voluntary(), slot.involuntary()),
            (5, 6, 7)
        );
        assert_eq!(
            (mine.completed(), mine.slot(1).state()),
            (1, State::NotForked(0))
        );
    }

    #[test]
    fn rates_and_the_kernels_of_each_function_are_seen() {
        let fixed = |function: &str, number: usize| {
            let work = Some(Work::Fixed(Kernel::ALL[number]));
            Invocation {
                phases: vec![Phase::Cpu { us: 5, work }],
                ..Invocation::cpu(0, function, 5)
            }
        };
        let calls = [
            fixed("f", 3),
            Invocation::cpu(0, "g", 1),
            fixed("f", 3),
            fixed("f", 0),
        ];
        let rates = Rates::from_words(std::array::from_fn(|place| place as u64));
        let plan = Plan {
            policy: ChildPolicy::Normal,
            pin: 0,
            defaults: Defaults::default(),
            peer: None,
            prestart: None,
            rates,
            refill: None,
        };
        let (_mine, file) = Board::create(&calls, &[0, 1, 0, 0], &plan).unwrap();
        let theirs = Board::open(file.as_fd()).unwrap();
        assert_eq!((theirs.rates(), theirs.refill()), (Some(rates), None));
        let kernels = theirs.kernels();
        assert_eq!(kernels[&0], [Kernel::ALL[3], Kernel::ALL[0]]);
        assert_eq!((kernels[&1].len(), theirs.slot(3).function()), (0, 0));
    }

    #[test]
    fn another_file_is_not_a_board() {
        let file = memfd_create(c"other", MFdFlags::empty()).unwrap();
        assert!(Board::open(file.as_fd()).is_err());
        nix::unistd::ftruncate(&file, 64).unwrap();
        let small = Board::open(file.as_fd()).unwrap();
        small.words[SLOTS].store(1, Relaxed);
        assert!(Board::open(file.as_fd()).is_err());
    }
}
