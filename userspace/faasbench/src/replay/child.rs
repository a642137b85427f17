//! What the process of one invocation does. No allocation, no locks: it was
//! forked without exec.

use super::board::Slot;
use super::clock::{monotonic_ns, sleep_until, thread_cpu_ns};
use crate::trace::Phase;
use std::hint::black_box;

/// Serves one invocation and exits with 0.
///
/// The demand of the `cpu` phases is reckoned on the thread's CPU clock, which
/// began at 0 with the fork: what the process needs to get going counts as a
/// part of the demand, its exit (some tens of microseconds) comes on top.
pub fn serve(slot: Slot<'_>, phases: &[Phase]) -> ! {
    slot.set_start_ns(monotonic_ns());
    let mut demand_ns = 0;
    for phase in phases {
        match phase {
            Phase::Cpu(us) => {
                demand_ns += us * 1000;
                spin_until(demand_ns);
            }
            Phase::Io(us) => sleep_until(monotonic_ns() + us * 1000),
        }
    }
    slot.set_end_ns(monotonic_ns());
    // SAFETY: ends the process without running the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

/// Shortest stretch of computing between two looks at the clock, in rounds of
/// [`compute`]: some 0.5 us, well below what a look costs.
const SHORTEST: u64 = 200;

/// Longest stretch in nanoseconds. A look at the clock takes the run queue's
/// lock and has the kernel bring its accounts up to date; real functions do
/// not do that all the time.
const LONGEST_NS: u64 = 500_000;

/// Computes until the thread's CPU clock shows `target_ns`.
///
/// It looks at the clock after a quarter of what is left, at the pace of the
/// stretch before, and so gets there in ever smaller steps: the overshoot is
/// one look and one shortest stretch, unless a round becomes four times slower
/// within a stretch.
fn spin_until(target_ns: u64) {
    let mut before = thread_cpu_ns();
    let mut rounds = SHORTEST;
    while before < target_ns {
        compute(rounds);
        let now = thread_cpu_ns();
        // What the look cost counts as computing: the pace is overestimated
        // for short stretches, which makes the next one shorter, not longer.
        let pace_ns = (now - before).max(1);
        let stretch_ns = (target_ns.saturating_sub(now) / 4).min(LONGEST_NS);
        let most = rounds.saturating_mul(4);
        rounds = (stretch_ns.saturating_mul(rounds) / pace_ns).clamp(SHORTEST, most);
        before = now;
    }
}

/// Computes for `rounds` rounds, each a few nanoseconds.
fn compute(rounds: u64) {
    let mut value = black_box(1u64);
    for _ in 0..rounds {
        value = value
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
    }
    black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_uses_the_cpu_time_asked_for() {
        let target = thread_cpu_ns() + 3_000_000;
        spin_until(target);
        assert!(thread_cpu_ns() >= target);
        let done = thread_cpu_ns();
        spin_until(target);
        // Nothing left to do: it returns without computing.
        assert!(thread_cpu_ns() - done < 3_000_000);
    }
}
