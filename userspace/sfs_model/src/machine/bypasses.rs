//! Times in which the kernel serves all tasks itself (`sfs_kernel_model::bypass`).

use super::Machine;
use sfs_kernel_model::bypass;
use sfs_kernel_model::race;
use sfs_kernel_model::sched::GLOBAL;
use sfs_kernel_model::state::{with, CpuId, Event};
use sfs_kernel_model::workload::{between, exponential};

/// From one CPU to the next, ns.
const MOST_BETWEEN_CPUS_NS: u64 = 2_000;
/// The mean length of a bypass, ns.
const LASTS_NS: u64 = 3_000_000;

impl Machine {
    /// The next one begins, on a machine that has some.
    pub(super) fn plan_bypass(&mut self) {
        let mean = with(|s| s.odd.of.bypass_ns);
        if mean == 0 {
            return;
        }
        let delay = exponential(&mut self.bypasses, mean);
        with(|s| {
            s.queues.entry(GLOBAL).or_default();
            s.after(delay, Event::Bypass(0, true));
        });
    }

    /// A CPU is bypassed, or no longer: then the next CPU. A bypass that all have lasts for a while.
    pub(super) fn bypass(&mut self, event: Event, cpu: CpuId, on: bool) {
        race::happens(event, None, move || bypass::set(cpu, on));
        let is_last = cpu + 1 == self.workload.cpus;
        if !is_last {
            let delay = between(&mut self.bypasses, 0, MOST_BETWEEN_CPUS_NS);
            return with(|s| s.after(delay, Event::Bypass(cpu + 1, on)));
        }
        if on {
            let lasts = exponential(&mut self.bypasses, LASTS_NS);
            return with(|s| s.after(lasts, Event::Bypass(0, false)));
        }
        self.plan_bypass();
    }
}

/// Returns true if the kernel serves tasks itself, on some CPU.
pub(super) fn is_on() -> bool {
    with(|s| s.cpus.iter().any(|cpu| cpu.is_bypassed))
}
