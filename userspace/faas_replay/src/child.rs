//! The process of one invocation, forked without exec.

use super::board::Slot;
use crate::clock::{monotonic_ns, thread_cpu_ns};
use crate::work::Worker;
use faas_data::trace::Phase;

/// Ends the process when dropped, which must happen in a panic only: otherwise
/// the panic would unwind into the frames of the parent process and run its
/// destructors.
#[derive(Debug)]
pub struct EndOnPanic;

/// The exit code of an invocation, or a sandbox, that panicked.
pub const PANICKED: i32 = 101;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        exit(PANICKED);
    }
}

/// Ends the process without running the parent's exit handlers.
pub fn exit(code: i32) -> ! {
    // SAFETY: ends the process; nothing of it is used any more.
    unsafe { libc::_exit(code) }
}

/// Serves one invocation and exits with 0, or with the errno of a failed call.
///
/// The demand of the `cpu` phases is measured on the thread's CPU clock, which
/// began at 0 with the fork: the start of the process counts as part of the
/// demand, its exit (some tens of microseconds) is added.
///
/// Its run-queue wait is the rest of its time. The kernel's own counter has the
/// same value, but the first look-up in a process costs half a millisecond of
/// CPU time on emulated CPUs, where the shortest functions take three.
pub fn serve(slot: Slot<'_>, phases: &[Phase], worker: &mut Worker) -> ! {
    let _guard = EndOnPanic;
    slot.set_start_ns(monotonic_ns());
    let outcome = worker.serve(phases, 0);
    slot.set_refills(worker.refills());
    slot.set_end_ns(monotonic_ns());
    let blocked_ns = worker.blocked_ns();
    slot.set_accounted_ns(blocked_ns.map(|ns| ns + thread_cpu_ns()));
    exit(outcome.map_or_else(|errno| errno as i32, |()| 0))
}

/// Serves one invocation in a process that has served others, and returns 0 or
/// the errno of a failed call. `begun_ns` is the thread's CPU time when its
/// request came: reading the request counts as part of the demand.
pub fn serve_warm(slot: Slot<'_>, phases: &[Phase], worker: &mut Worker, begun_ns: u64) -> i32 {
    let outcome = worker.serve(phases, begun_ns);
    slot.set_refills(worker.refills());
    slot.set_end_ns(monotonic_ns());
    outcome.map_or_else(|errno| errno as i32, |()| 0)
}
