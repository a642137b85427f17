//! The `drive` command.

use super::{finish, RunArgs};
use crate::drive::target::Target;
use crate::drive::Drive;
use anyhow::Result;
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct DriveArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Address of the requests, for FUNCTION or, without FUNCTION=, for all
    /// functions without their own target, with {function} for the name. May be
    /// repeated
    #[arg(long, required = true, value_name = "[FUNCTION=]URL")]
    target: Vec<Target>,
    /// Concurrent requests to each target before the scheduler is loaded, so
    /// that this many of its workers are ready
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    warm_up: u32,
    /// Maximum time until a target answers them, in seconds
    #[arg(long, default_value_t = 60, value_name = "SEC", value_parser = clap::value_parser!(u64).range(1..=3600))]
    ready_s: u64,
    /// Maximum wait for answers after the last arrival, in seconds
    #[arg(long, default_value_t = 60, value_name = "SEC", value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout_s: u64,
}

impl DriveArgs {
    pub(super) fn execute(self) -> Result<ExitCode> {
        let json = self.run.json;
        let drive = Drive {
            run: self.run.read()?,
            targets: self.target,
            warm_up: self.warm_up,
            ready: Duration::from_secs(self.ready_s),
            patience: Duration::from_secs(self.timeout_s),
        };
        finish(&drive.execute()?, json)
    }
}
