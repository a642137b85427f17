//! Answers to readers of statistics, and changes of the configuration.

use std::path::Path;

use super::Control;
use crate::config::file;
use crate::learn::Learning;
use sfs_bpf::kernel::Policy;
use sfs_cgroups::Sandboxes;
use sfs_listener::HintListener;
use sfs_policy::defaults;
use sfs_statistics::{Answer, Delays, Export, FunctionReport, Metrics, Request};
use tracing::info;

impl Control<'_, '_> {
    pub(super) fn answer_all(&mut self, hints: &mut Option<HintListener>) {
        for asked in self.stats.take() {
            let answer = match &asked.what {
                Request::Set { key, value } => {
                    let changed = self.set(key, value.as_deref(), hints);
                    Answer::Configuration(changed.and_then(|()| self.report()))
                }
                Request::Export => self.export(hints.as_ref()),
                Request::Reload => Answer::Configuration(self.reload(hints)),
                what => self.answer(what, hints.as_ref()),
            };
            asked.reply(answer);
        }
    }

    /// Changes a key, and everything that follows from it, before the answer.
    fn set(
        &mut self,
        key: &str,
        value: Option<&str>,
        hints: &mut Option<HintListener>,
    ) -> Result<(), String> {
        self.configuration.set(key, value)?;
        info!("set: {}", self.configuration.sentence(key));
        self.follow(hints);
        Ok(())
    }

    /// Reads the files again, and applies what can change.
    fn reload(&mut self, hints: &mut Option<HintListener>) -> Result<serde_json::Value, String> {
        let reloaded = self
            .configuration
            .reload(std::env::args_os(), Path::new(file::USUAL))?;
        for sentence in &reloaded.changed {
            info!("reloaded: {sentence}");
        }
        self.follow(hints);
        serde_json::to_value(reloaded).map_err(|error| error.to_string())
    }

    /// Lets everything follow the configuration, which has changed.
    fn follow(&mut self, hints: &mut Option<HintListener>) {
        self.settings = self.configuration.settings().clone();
        let (slice, overload) = (self.settings.slice, self.settings.overload);
        let initial_ns = defaults::INITIAL_SLICE_NS;
        self.controller.set_policies(slice, initial_ns, overload);
        // The thresholds may have changed where S has not.
        let slice_ns = self.controller.slice_ns();
        self.kernel.set_slice(self.settings.slice_of(slice_ns));
        self.log_slice();
        if let Some(hints) = hints {
            hints.reconfigure(&self.configuration.options().hints);
        }
    }

    fn report(&self) -> Result<serde_json::Value, String> {
        let report = self.configuration.report(Some(std::process::id()));
        serde_json::to_value(report).map_err(|error| error.to_string())
    }

    fn answer(&mut self, what: &Request, hints: Option<&HintListener>) -> Answer {
        match what {
            Request::Configuration | Request::Set { .. } | Request::Reload => {
                Answer::Configuration(self.report())
            }
            Request::Metrics | Request::Export => Answer::Metrics(Box::new(self.metrics(hints))),
            Request::Functions { most } => Answer::Functions(self.functions(*most, hints)),
        }
    }

    /// Returns everything for the exporter, which asks at most once a second.
    fn export(&mut self, hints: Option<&HintListener>) -> Answer {
        let by_work = self.functions(self.times.wanted(), hints);
        self.times.choose(&by_work);
        let (functions, other) = self.times.report();
        let metrics = self.metrics(hints);
        Answer::Export(Box::new(Export {
            metrics,
            delays: Delays::new(self.counters.borrow().last()),
            functions,
            other,
        }))
    }

    fn functions(&self, most: usize, hints: Option<&HintListener>) -> Vec<FunctionReport> {
        let hinted = |key| hints.and_then(|hints| hints.function_name(key));
        let name = |key| {
            let known = self.names.name(key).or_else(|| hinted(key));
            known.map(str::to_owned)
        };
        let learning = self.learning.as_ref();
        learning.map_or_else(Vec::new, |all| all.functions(most, name))
    }

    /// Returns the policy in force: that of the options, or the one that has replaced it.
    fn policy(&self) -> Policy {
        match &self.learning {
            Some(learning) if learning.has_given_up() => Policy::Sfs,
            _ => self.settings.tunables.policy,
        }
    }

    fn metrics(&mut self, hints: Option<&HintListener>) -> Metrics {
        let queues = self.kernel.queues();
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
        .with_queues(queues)
        .with_left_out(self.kernel.sandboxes_left_out())
        .with_learned(self.learning.as_ref().map_or((0, 0), Learning::size))
        .with_hints(hints.map(HintListener::counters).unwrap_or_default())
    }
}
