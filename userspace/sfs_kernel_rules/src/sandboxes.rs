//! The sandbox of a task: its outermost cgroup that is one.

use crate::look::model_is_sandbox;
use crate::watch::Call;
use sfs_kernel_model::groups::ROOT;
use sfs_kernel_model::state::{with, TaskId};

/// The id of the sandbox that a task is in now; 0: none.
pub fn of(task: TaskId) -> u64 {
    let above: Vec<u64> = with(|s| {
        let groups = s.groups.upwards(s.groups.members[task].css);
        let ids = groups.filter(|&at| at != ROOT).map(|at| at as u64 + 1);
        ids.collect()
    });
    let is_sandbox = |id: &&u64| {
        // SAFETY: looks a number up.
        unsafe { model_is_sandbox(**id) }
    };
    above.iter().rev().find(is_sandbox).copied().unwrap_or(0)
}

/// After a callback that looks at the task's cgroup.
pub fn check(call: &Call) {
    let Some(task) = call.task.filter(|_| call.is.only_sandboxes != 0) else {
        return;
    };
    call.equal("sandbox", call.is.sandbox, of(task) as i64);
}
