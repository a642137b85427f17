//! Tasks that wait: each in the queue of its kind of turn, counted there, with a turn of its kind.

use crate::look::{agrees, look, Look};
use crate::policy::*;
use crate::queues::{self, own};
use sfs_kernel_model::race;
use sfs_kernel_model::state::{with, CpuId, Place, TaskId};
use sfs_kernel_model::timeline;

/// The longest turn in FAIR or by rank, ns.
const LONGEST: i64 = 1_000 * MS;

/// Checks all of them. Not while the state is held.
pub fn check() {
    if !agrees() {
        return;
    }
    let waiting: Vec<(TaskId, u64, CpuId, _)> = with(|s| {
        let queue = |&task: &TaskId| match s.tasks[task].place {
            Place::Queue(queue) if queue >> 60 == 0 => {
                Some((task, queue, s.tasks[task].cpu, s.tasks[task].fields.task))
            }
            _ => None,
        };
        s.live.iter().filter_map(queue).collect()
    });
    for (task, queue, cpu, pointer) in waiting {
        let l = look(pointer, cpu);
        if l.has_context == 0 {
            continue;
        }
        if let Some(wrong) = wrong(task, queue, &l) {
            with(|s| {
                let whom = timeline::name(s, task);
                s.finding(format!("{whom} waits in {queue:#x}: {wrong}"));
            });
        }
    }
}

/// A hint looks at the task's cgroup. A task that is or was in a sandbox since waits on as what it was.
fn is_told_meanwhile(l: &Look) -> bool {
    l.only_sandboxes != 0 && l.kinds & HINT != 0 && (l.fresh != 0 || l.sandbox == 0)
}

fn wrong(task: TaskId, queue: u64, l: &Look) -> Option<String> {
    let kind = if queue >> 32 == 0 {
        queue >> 16
    } else {
        queue >> 32
    } as i64;
    let turn = match kind {
        1 => FILTER,
        2 | 6 => FAIR,
        3 => RANKED,
        4 => SYSTEM,
        _ => PROMPT,
    };
    if l.turn != turn {
        return Some(format!("its turn is {}, and should be {turn}", l.turn));
    }
    let counted = queues::number(l, queue);
    if l.queue != counted {
        return Some(format!(
            "it counts in queue {}, and should in {counted}",
            l.queue
        ));
    }
    let is_right = is_function(l) == (kind == 2) || is_told_meanwhile(l);
    if matches!(kind, 2 | 6) && !is_right && !race::is_on() {
        return Some("functions and others have queues of their own".to_owned());
    }
    let may_all = with(|s| (0..s.cpus.len()).all(|cpu| s.may_run(task, cpu)));
    let is_own = queue >> 32 != 0;
    if is_own && may_all && l.cpus > 1 && !race::is_on() {
        return Some("it may run anywhere".to_owned());
    }
    if is_own && queue != own((kind as u64) << 16, l.cpu) && !race::is_on() {
        return Some(format!("its CPU is {}", l.cpu));
    }
    let longest = match turn {
        SYSTEM | PROMPT => 4 * MS,
        // Another thread, or a hint, may have begun an invocation with less credit meanwhile.
        FILTER => i64::MAX,
        FAIR => FAIR_TURN,
        _ => LONGEST,
    };
    // Another thread may use up the credit while this task is moved to FILTER.
    let least = i64::from(!race::is_on() || turn != FILTER);
    if !(least..=longest).contains(&l.granted) {
        return Some(format!(
            "its turn is {} ns long, and should be {least} to {longest}",
            l.granted
        ));
    }
    let is_counted = l.active != 0 && (l.is_present != 0 || l.policy != POLICY_LEARNED);
    // A group may become a sandbox meanwhile.
    let is_known = is_function(l) && l.has_inv != 0 && l.only_sandboxes == 0;
    if is_known && !is_counted && !race::is_on() {
        return Some("it does not count as runnable".to_owned());
    }
    let is_short = matches!(turn, SYSTEM | PROMPT);
    if is_short != (l.queued_at == 0) || l.queued_at > l.now {
        return Some(format!("it was queued at {}", l.queued_at));
    }
    (l.waits_since == 0 && !is_short).then(|| "it is not known to wait".to_owned())
}
