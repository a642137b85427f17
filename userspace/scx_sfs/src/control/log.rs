//! Log lines of the control loop about S and overload.

use nix::time::{clock_gettime, ClockId};
use sfs_policy::Mode;
use tracing::info;

use super::Control;
use sfs_listener::complaints::Complaint;

impl Control<'_, '_> {
    /// Logs S and the mode in the form that `faasbench run` reads, if asked to.
    pub(super) fn log_slice(&self) {
        if !self.settings.log_slice {
            return;
        }
        let mode = match self.controller.mode() {
            Mode::Filter => "filter",
            Mode::FairOnly => "fair-only",
        };
        let s_us = self.controller.slice_ns() / 1000;
        let arrivals = self.controller.counters().arrivals;
        info!(
            "slice: monotonic_us={} s_us={s_us} mode={mode} arrivals={arrivals}",
            monotonic_us()
        );
    }
}

/// Overload messages in the log. Each kind is logged at most once a second, since a machine at
/// the edge of overload would log some twenty lines a second.
#[derive(Default)]
pub(super) struct OverloadLog {
    begun: Complaint,
    over: Complaint,
}

impl OverloadLog {
    pub(super) fn tell_begun(&mut self, delay_ms: u64, moved: u64) {
        if let Some(times) = self.begun.due(1, monotonic_ns()) {
            let times = times_since_the_last_line(times);
            info!(mode = "fair-only", delay_ms, tasks = moved, "overload: an invocation has waited {delay_ms} ms; fair-only, {moved} tasks moved{times}");
        }
    }

    pub(super) fn tell_over(&mut self, delay_ms: u64, moved: u64) {
        if let Some(times) = self.over.due(1, monotonic_ns()) {
            let times = times_since_the_last_line(times);
            info!(mode = "filter", delay_ms, tasks = moved, "overload is over: a new invocation would wait {delay_ms} ms; {moved} tasks moved back{times}");
        }
    }
}

/// Returns the part of a log line that counts the omitted lines before it.
fn times_since_the_last_line(times: u64) -> String {
    if times < 2 {
        return String::new();
    }
    format!(", the last of {times} times since the previous line")
}

fn monotonic_ns() -> u64 {
    monotonic_us().unsigned_abs() * 1000
}

/// CLOCK_MONOTONIC, which benchmarks use, in us. Reading it cannot fail on Linux.
fn monotonic_us() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |now| now.tv_sec() * 1_000_000 + now.tv_nsec() / 1000)
}
