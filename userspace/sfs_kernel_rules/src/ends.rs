//! The ends of invocations that the loader is to be told of, in order.

use crate::look::Look;
use crate::policy::{since, MS, POLICY_LEARNED};
use sfs_kernel_model::loader_ffi::Completion;
use std::cell::RefCell;
use std::collections::VecDeque;

thread_local! {
    /// Those that it has not read yet; `None`: ends are not followed.
    static EXPECTED: RefCell<Option<VecDeque<Completion>>> = const { RefCell::new(None) };
}

/// From now on ends are followed, or not.
pub fn follow(may: bool) {
    EXPECTED.with(|all| *all.borrow_mut() = may.then(VecDeque::new));
}

/// The record of an invocation that ends now.
pub fn record(l: &Look) -> Completion {
    Completion {
        function: l.i_function as u64,
        service_ns: l.i_used as u64,
        burst_ns: l.i_burst as u64,
        turnaround_ns: match l.i_quiet {
            0 => 0,
            quiet => since(quiet, l.i_arrived) as u64,
        },
        queued_ns: l.queued as u64,
        killed: u32::from(l.exit_code & 0x7f != 0),
        counted: l.i_counted as u32,
    }
}

/// The tenant of an invocation that ends has ended so many in this second: the loader learns from a
/// part of them only.
pub fn count(l: &mut Look) {
    if l.policy != POLICY_LEARNED || l.has_share == 0 {
        return;
    }
    let second = l.now / (1_000 * MS);
    if l.s_second != second {
        (l.s_second, l.s_reports) = (second, 0);
    }
    l.s_reports += 1;
}

/// An invocation has ended.
pub fn note(record: Completion) {
    EXPECTED.with(|all| {
        if let Some(all) = all.borrow_mut().as_mut() {
            all.push_back(record);
        }
    });
}

/// The loader has read these records. Returns what is wrong with them.
pub fn check(read: &[Completion]) -> Option<String> {
    EXPECTED.with(|all| {
        let mut all = all.borrow_mut();
        let all = all.as_mut()?;
        for record in read {
            let expected = all.pop_front();
            if expected != Some(*record) {
                return Some(format!(
                    "the loader reads {record:?}, and should {expected:?}"
                ));
            }
        }
        None
    })
}
