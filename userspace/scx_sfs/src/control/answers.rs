//! Answers to readers of statistics.

use super::Control;
use crate::learn::Learning;
use sfs_bpf::kernel::Policy;
use sfs_cgroups::Sandboxes;
use sfs_listener::HintListener;
use sfs_statistics::{Answer, Metrics, Request};

impl Control<'_> {
    pub(super) fn answer(&self, what: Request, hints: Option<&HintListener>) -> Answer {
        match what {
            Request::Metrics => {
                let counters = hints.map(HintListener::counters);
                let metrics = self.metrics().with_hints(counters.unwrap_or_default());
                Answer::Metrics(Box::new(metrics))
            }
            Request::Functions { most } => {
                let hinted = |key| hints.and_then(|hints| hints.function_name(key));
                let name = |key| {
                    self.names
                        .name(key)
                        .or_else(|| hinted(key))
                        .map(str::to_owned)
                };
                let learning = self.learning.as_ref();
                Answer::Functions(learning.map_or_else(Vec::new, |all| all.functions(most, name)))
            }
        }
    }

    /// Returns the policy in force: that of the options, or the one that has replaced it.
    fn policy(&self) -> Policy {
        match &self.learning {
            Some(learning) if learning.has_given_up() => Policy::Sfs,
            _ => self.settings.tunables.policy,
        }
    }

    fn metrics(&self) -> Metrics {
        let mut counters = self.counters.borrow_mut();
        let per_cpu = counters.keep(self.kernel.stats());
        let sandboxes = self.sandboxes.as_ref().map_or(0, Sandboxes::len);
        Metrics::new(
            per_cpu,
            &self.controller.counters(),
            self.controller.mode(),
            sandboxes as u64,
        )
        .with_run(&self.run)
        .with_policy(self.policy())
        .with_left_out(self.kernel.sandboxes_left_out())
        .with_learned(self.learning.as_ref().map_or((0, 0), Learning::size))
    }
}
