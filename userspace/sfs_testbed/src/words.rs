//! Words of memory and semaphores that processes share and can wait for.

use std::ptr::{null, NonNull};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use anyhow::{ensure, Context, Result};
use nix::sys::mman::{mmap_anonymous, MapFlags, ProtFlags};

/// Returns zeroed memory for a `T` that children share with their parent. It stays mapped until
/// the process ends.
fn shared<T>() -> Result<NonNull<T>> {
    let length = size_of::<T>().try_into()?;
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let memory = unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_SHARED) };
    Ok(memory.context("cannot share memory")?.cast())
}

/// A word for futex(2), initially 0.
#[derive(Clone, Copy)]
pub struct Word(&'static AtomicU32);

impl Word {
    /// Makes a word.
    ///
    /// # Errors
    ///
    /// Out of memory.
    pub fn new() -> Result<Self> {
        // SAFETY: mapped until the process ends, page-aligned, and zeroes are valid.
        Ok(Self(unsafe { shared()?.as_ref() }))
    }

    /// Returns its value.
    pub fn get(self) -> u32 {
        self.0.load(SeqCst)
    }

    /// Sets it without a wake-up.
    pub fn set(self, value: u32) {
        self.0.store(value, SeqCst);
    }

    /// Sets it and wakes up all waiters.
    pub fn set_and_wake(self, value: u32) {
        self.set(value);
        self.wake();
    }

    /// Decrements it, and wakes up all waiters if it becomes 0.
    pub fn count_down(self) {
        if self.0.fetch_sub(1, SeqCst) == 1 {
            self.wake();
        }
    }

    /// Waits until it differs from `value`.
    pub fn wait_while(self, value: u32) {
        while self.get() == value {
            self.sleep_while(value);
        }
    }

    /// Waits until it is 0.
    pub fn wait_for_zero(self) {
        loop {
            match self.get() {
                0 => return,
                value => self.sleep_while(value),
            }
        }
    }

    fn wake(self) {
        // SAFETY: the word lives as long as the process.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    fn sleep_while(self, value: u32) {
        let forever = null::<libc::timespec>();
        // SAFETY: the word lives as long as the process. After any return the caller checks the
        // word again.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                libc::FUTEX_WAIT,
                value,
                forever,
            )
        };
    }
}

/// A POSIX semaphore that processes share.
#[derive(Clone, Copy)]
pub struct Semaphore(NonNull<libc::sem_t>);

impl Semaphore {
    /// Makes a semaphore that `value` tasks may hold at the same time.
    ///
    /// # Errors
    ///
    /// Out of memory.
    pub fn new(value: u32) -> Result<Self> {
        let semaphore = shared::<libc::sem_t>()?;
        // SAFETY: memory for a semaphore that nothing else uses yet.
        let made = unsafe { libc::sem_init(semaphore.as_ptr(), 1, value) };
        ensure!(made == 0, "cannot make a semaphore");
        Ok(Self(semaphore))
    }

    /// Takes the semaphore, and waits until that is possible.
    pub fn wait(self) {
        // SAFETY: the semaphore lives as long as the process.
        while unsafe { libc::sem_wait(self.0.as_ptr()) } != 0 {}
    }

    /// Releases the semaphore.
    pub fn post(self) {
        // SAFETY: the same.
        unsafe { libc::sem_post(self.0.as_ptr()) };
    }
}
