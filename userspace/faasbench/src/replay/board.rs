//! The memory that supervisor, dispatcher and children share.
//!
//! It is an array of 64-bit words in an anonymous file, mapped by all of them:
//! a head, one slot for each invocation, then the phases of all. Being a
//! shared mapping of a file, it is not copied when the dispatcher forks. Every
//! word is an atomic, so no access is a data race; each has one writer.

use super::realtime::ChildPolicy;
use crate::trace::{Invocation, Phase};
use anyhow::{Context, Result};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const WORD: usize = size_of::<AtomicU64>();

// Words of the head.
const SLOTS: usize = 0;
const POLICY: usize = 1;
const PIN: usize = 2;
const ORIGIN: usize = 3;
const COMPLETED: usize = 4;
const ERROR: usize = 5;
const HEAD: usize = 8;

// Words of a slot.
const ARRIVAL: usize = 0;
const PHASES: usize = 1;
const FORKED: usize = 2;
const START: usize = 3;
const END: usize = 4;
const CPU: usize = 5;
const SWITCHES: usize = 6;
const STATE: usize = 7;
const SLOT: usize = 8;

// The state of a slot is one of these over a 32-bit value.
const EXITED: u64 = 1 << 32;
const KILLED: u64 = 2 << 32;

// A phase is its time; the top bit says that it blocks.
const BLOCKS: u64 = 1 << 63;

/// What became of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its process exited with this code.
    Exited(u32),
    /// This signal ended its process.
    Killed(u32),
    /// Its process could not be made: errno, or 0 if it was never tried.
    NotForked(u32),
}

/// The shared memory, seen by one process.
#[derive(Debug)]
pub struct Board {
    words: &'static [AtomicU64],
}

impl Board {
    /// Makes the board of a replay. The returned file is how the dispatcher
    /// gets at it; it stays open over an exec.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn create(
        invocations: &[Invocation],
        policy: ChildPolicy,
        pin: u32,
    ) -> Result<(Self, OwnedFd)> {
        let phases: usize = invocations.iter().map(|one| one.phases.len()).sum();
        let words = HEAD + invocations.len() * SLOT + phases;
        let file = memfd_create(c"faasbench", MFdFlags::empty())
            .context("cannot make shared memory for the replay")?;
        nix::unistd::ftruncate(&file, (words * WORD) as i64)
            .context("cannot make shared memory for the replay")?;
        let board = Self::map(file.as_fd(), words)?;
        board.words[SLOTS].store(invocations.len() as u64, Relaxed);
        board.words[POLICY].store(policy.number() as u64, Relaxed);
        board.words[PIN].store(u64::from(pin), Relaxed);
        board.fill(invocations);
        Ok((board, file))
    }

    fn fill(&self, invocations: &[Invocation]) {
        let mut next = HEAD + invocations.len() * SLOT;
        for (id, one) in invocations.iter().enumerate() {
            let slot = &self.words[HEAD + id * SLOT..][..SLOT];
            slot[ARRIVAL].store(one.arrival_us * 1000, Relaxed);
            slot[PHASES].store((next as u64) << 32 | one.phases.len() as u64, Relaxed);
            for phase in &one.phases {
                let word = match phase {
                    Phase::Cpu(us) => *us,
                    Phase::Io(us) => *us | BLOCKS,
                };
                self.words[next].store(word, Relaxed);
                next += 1;
            }
        }
    }

    /// Maps the board in a file that [`Board::create`] made.
    ///
    /// # Errors
    /// If the file is no board.
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
        // memory that Rust knows of.
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

    /// Whether there is no slot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The policy of the children.
    pub fn policy(&self) -> Option<ChildPolicy> {
        ChildPolicy::from_number(self.words[POLICY].load(Relaxed) as i32)
    }

    /// To how many CPUs the children are restricted, 0 for no restriction.
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

    /// Number of invocations that are over.
    pub fn completed(&self) -> u64 {
        self.words[COMPLETED].load(Relaxed)
    }

    /// Why the dispatcher gave up: a step << 32 | errno, 0 if it did not.
    pub fn error(&self) -> u64 {
        self.words[ERROR].load(Relaxed)
    }

    /// Says why the dispatcher gives up.
    pub fn set_error(&self, error: u64) {
        self.words[ERROR].store(error, Relaxed);
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

/// The part of the board that belongs to one invocation.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    board: &'a Board,
    words: &'a [AtomicU64],
}

impl Slot<'_> {
    /// Planned arrival in nanoseconds since the origin.
    pub fn arrival_ns(&self) -> u64 {
        self.words[ARRIVAL].load(Relaxed)
    }

    /// Appends its phases to `phases`.
    pub fn phases(&self, phases: &mut Vec<Phase>) {
        let range = self.words[PHASES].load(Relaxed);
        let (first, count) = ((range >> 32) as usize, range as u32 as usize);
        for word in &self.board.words[first..first + count] {
            let word = word.load(Relaxed);
            phases.push(match word & BLOCKS {
                0 => Phase::Cpu(word),
                _ => Phase::Io(word & !BLOCKS),
            });
        }
    }

    /// When it was forked, on the monotonic clock.
    pub fn forked_ns(&self) -> Option<u64> {
        nonzero(self.words[FORKED].load(Relaxed))
    }

    /// Written by the dispatcher just before it forks.
    pub fn set_forked_ns(&self, ns: u64) {
        self.words[FORKED].store(ns, Relaxed);
    }

    /// When it first ran, on the monotonic clock.
    pub fn start_ns(&self) -> Option<u64> {
        nonzero(self.words[START].load(Relaxed))
    }

    /// Written by the child, first thing.
    pub fn set_start_ns(&self, ns: u64) {
        self.words[START].store(ns, Relaxed);
    }

    /// When it completed, on the monotonic clock.
    pub fn end_ns(&self) -> Option<u64> {
        nonzero(self.words[END].load(Relaxed))
    }

    /// Written by the child, last thing.
    pub fn set_end_ns(&self, ns: u64) {
        self.words[END].store(ns, Relaxed);
    }

    /// CPU time of its process in microseconds.
    pub fn cpu_us(&self) -> u64 {
        self.words[CPU].load(Relaxed)
    }

    /// Its voluntary context switches.
    pub fn voluntary(&self) -> u64 {
        self.words[SWITCHES].load(Relaxed) >> 32
    }

    /// Its involuntary context switches.
    pub fn involuntary(&self) -> u64 {
        self.words[SWITCHES].load(Relaxed) & 0xffff_ffff
    }

    /// What became of it.
    pub fn state(&self) -> State {
        let word = self.words[STATE].load(Relaxed);
        let value = word as u32;
        match word - u64::from(value) {
            EXITED => State::Exited(value),
            KILLED => State::Killed(value),
            _ => State::NotForked(value),
        }
    }

    /// Written by the dispatcher when it is over.
    pub fn finish(&self, state: State, usage: &Usage) {
        let word = match state {
            State::Exited(code) => EXITED | u64::from(code),
            State::Killed(signal) => KILLED | u64::from(signal),
            State::NotForked(errno) => u64::from(errno),
        };
        let voluntary = usage.voluntary.min(0xffff_ffff);
        let involuntary = usage.involuntary.min(0xffff_ffff);
        self.words[CPU].store(usage.cpu_us, Relaxed);
        self.words[SWITCHES].store(voluntary << 32 | involuntary, Relaxed);
        self.words[STATE].store(word, Relaxed);
        self.board.words[COMPLETED].fetch_add(1, Relaxed);
    }
}

fn nonzero(ns: u64) -> Option<u64> {
    (ns != 0).then_some(ns)
}

/// What the kernel counted for a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system time in microseconds.
    pub cpu_us: u64,
    /// Context switches because it blocked or exited.
    pub voluntary: u64,
    /// Context switches because it was preempted.
    pub involuntary: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_mapping_sees_the_plan_and_gives_back_results() {
        let mut invocations = vec![Invocation::cpu(7, "f".into(), 9)];
        invocations.push(Invocation {
            phases: vec![Phase::Io(3), Phase::Cpu(4)],
            ..Invocation::cpu(8, "g".into(), 1)
        });
        let (mine, file) = Board::create(&invocations, ChildPolicy::Batch, 3).unwrap();
        let theirs = Board::open(file.as_fd()).unwrap();
        assert_eq!((theirs.len(), theirs.pin()), (2, 3));
        assert_eq!(theirs.policy(), Some(ChildPolicy::Batch));
        assert_eq!(theirs.slot(1).arrival_ns(), 8000);
        let mut phases = Vec::new();
        theirs.slot(1).phases(&mut phases);
        assert_eq!(phases, [Phase::Io(3), Phase::Cpu(4)]);
        let usage = Usage {
            cpu_us: 5,
            voluntary: 6,
            involuntary: 7,
        };
        theirs.slot(0).set_start_ns(11);
        theirs.slot(0).finish(State::Killed(9), &usage);
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
    fn another_file_is_no_board() {
        let file = memfd_create(c"other", MFdFlags::empty()).unwrap();
        assert!(Board::open(file.as_fd()).is_err());
        nix::unistd::ftruncate(&file, 64).unwrap();
        let small = Board::open(file.as_fd()).unwrap();
        small.words[SLOTS].store(1, Relaxed);
        assert!(Board::open(file.as_fd()).is_err());
    }
}
