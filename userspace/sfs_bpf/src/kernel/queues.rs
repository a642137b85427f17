//! Lengths of the queues.

use anyhow::{Context, Result};
use tracing::warn;
use zerocopy::FromZeros;

use super::shared::run_program;
use super::KernelHalf;
use crate::bpf_intf::sfs_queue_lengths;

/// Numbers of tasks at one moment, in all queues of a kind: those of shards and of single CPUs too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queues {
    /// Tasks that wait in FILTER.
    pub filter: u64,
    /// Ranked tasks that wait.
    pub ranked: u64,
    /// Function tasks that wait in FAIR.
    pub fair: u64,
    /// Tasks outside of functions that wait.
    pub outside: u64,
    /// Runnable function tasks, waiting or running; 0 without `--policy learned`.
    pub runnable: u64,
}

impl KernelHalf<'_> {
    /// Returns the present lengths. They are 0 if the kernel does not run the program that measures
    /// them, which is logged once.
    pub fn queues(&mut self) -> Queues {
        self.measure_queues().unwrap_or_else(|error| {
            if !self.queues_failed {
                self.queues_failed = true;
                warn!("{error:#}; the lengths of the queues are shown as 0");
            }
            Queues::default()
        })
    }

    fn measure_queues(&mut self) -> Result<Queues> {
        let mut lengths = sfs_queue_lengths::new_zeroed();
        run_program(&mut self.skel.progs.measure_queues, &mut lengths)
            .context("cannot measure the queues")?;
        Ok(Queues {
            filter: lengths.filter,
            ranked: lengths.ranked,
            fair: lengths.fair,
            outside: lengths.outside,
            runnable: lengths.present,
        })
    }
}
