//! Somebody changes nice values and affinities.

use super::Machine;
use sfs_kernel_model::change::{change, set_cpus, set_weight};
use sfs_kernel_model::race;
use sfs_kernel_model::state::{with, Event, Place, TaskId};
use sfs_kernel_model::workload::{between, exponential};

impl Machine {
    /// Somebody changes a task, wherever it is.
    pub(super) fn change(&mut self, event: Event) {
        let chosen = with(|s| {
            let delay = exponential(&mut self.changes, self.workload.changes_ns);
            s.after(delay, Event::Change);
            s.here = between(&mut self.changes, 0, s.cpus.len() as u64 - 1) as usize;
            let last = (s.live.len() as u64).checked_sub(1)?;
            let task = between(&mut self.changes, 0, last) as usize;
            let task = *s.live.iter().nth(task)?;
            let value = between(&mut self.changes, 0, u64::MAX - 1);
            Some((s.here, task, value))
        });
        let Some((cpu, task, value)) = chosen else {
            return;
        };
        self.changed += 1;
        if !self.limits.has_change(self.changed - 1) {
            return;
        }
        race::happens(event, Some(cpu), move || {
            let before = with(|s| s.tasks[task].place);
            if before == Place::Dead {
                return;
            }
            change(cpu, task, |s| match value % 2 {
                0 => set_weight(s, task, value / 2),
                _ => set_cpus(s, task, value / 2),
            });
            if value % 2 == 0 {
                check_place(task, before);
            }
        });
    }
}

/// A task that waits in FILTER or in the ranked queue, `before`, stays there if its weight changes,
/// unless a CPU idles.
fn check_place(task: TaskId, before: Place) {
    let is_ordered = |queue: u64| matches!((queue >> 32, queue >> 16), (0, 1 | 3) | (1 | 3, _));
    let waits = matches!(before, Place::Queue(queue) if is_ordered(queue));
    if race::is_on() || !waits {
        return;
    }
    with(|s| {
        let cpu = s.tasks[task].cpu;
        let is_busy = s.cpus[cpu].current.is_some();
        if s.tasks[task].place == Place::Local && is_busy {
            s.finding(format!(
                "task {task} has waited in {before:x?}, and a change of its weight puts it into the \
                 local queue of CPU {cpu}"
            ));
        }
    });
}
