//! How the process of an invocation is made.
//!
//! It is a process of its own for the kernel: its own id, accounts and
//! scheduling, and a parent that waits for it. But it shares the dispatcher's
//! memory (`clone` with `CLONE_VM`) and runs on a stack that the dispatcher
//! gives it. Copying the dispatcher's memory would cost more than anything
//! else about a short invocation, before and after what is to be measured: on
//! emulated CPUs a forked child starts after 380 us and has used 480 us of CPU
//! time by its exit, one made like this starts after 60 us and has used 20.

use super::board::Board;
use super::child;
use nix::errno::Errno;
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;

/// Far more than [`child::serve`] needs, which calls nothing deep.
const STACK: usize = 16 * 1024;

#[repr(C, align(16))]
struct Stack(UnsafeCell<MaybeUninit<[u8; STACK]>>);

/// What one process needs while it lives: a stack and its invocation.
pub struct Seat<'a> {
    stack: Stack,
    board: &'a Board,
    id: Cell<usize>,
}

impl<'a> Seat<'a> {
    /// A seat that is never freed: the dispatcher uses it again, and ends soon
    /// after the last one.
    pub fn leak(board: &'a Board) -> &'a Self {
        Box::leak(Box::new(Self {
            stack: Stack(UnsafeCell::new(MaybeUninit::uninit())),
            board,
            id: Cell::new(0),
        }))
    }

    /// Starts the process of invocation `id` on this seat. Until that process
    /// has been waited for, the seat must not be used again.
    ///
    /// # Errors
    /// The errno of `clone`: EAGAIN if there are too many processes.
    pub fn start(&self, id: usize) -> Result<libc::pid_t, Errno> {
        self.id.set(id);
        let top = self.stack.0.get().wrapping_add(1);
        let seat = std::ptr::from_ref(self).cast_mut();
        // SAFETY: the stack is this seat's own, aligned, grows down from its
        // end, and has no other user. The seat lives as long as the process.
        // The child shares our memory and thread-local storage while we run
        // on, so `serve` writes to its stack and to atomics only, allocates
        // nothing, and makes no system call that sets errno.
        Errno::result(unsafe {
            libc::clone(
                enter,
                top.cast(),
                libc::CLONE_VM | libc::SIGCHLD,
                seat.cast(),
            )
        })
    }
}

/// The first thing that the new process runs.
extern "C" fn enter(seat: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes its own seat, which outlives this process and
    // which nobody changes meanwhile.
    let seat = unsafe { &*seat.cast::<Seat<'_>>() };
    child::serve(seat.board.slot(seat.id.get()))
}
