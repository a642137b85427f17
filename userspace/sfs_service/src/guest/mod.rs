//! The guest's half: the checks, under systemd.

mod checks;
mod history;
mod hotplug;
mod install;
mod package;
mod quick;
mod seeing;
mod service;
mod session;
mod stall;
mod wait;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use sfs_jobs::failure::refuse;

use crate::part::{Part, PLACE};
use checks::{Check, Checks};

/// Runs the checks of a part, and returns 1 if one has failed.
///
/// # Errors
///
/// This is no guest of `sfs_service test` (bad usage), or nothing can be printed.
pub fn run(part: Part) -> Result<u8> {
    if !Path::new(PLACE).is_dir() {
        refuse!("guest stops services and schedulers, so it runs only in the virtual machine of sfs_service test");
    }
    println!("systemd {}, Linux {}", service::version()?, kernel()?);
    let mut checks = Checks::new(std::io::stdout(), service::account);
    // A package installs everything itself.
    let first = (part != Part::Package).then_some(&install::CHECK);
    for check in first.into_iter().chain(of(part)) {
        checks.run(check)?;
    }
    checks.conclude()
}

/// The checks of a part, in their order.
fn of(part: Part) -> &'static [Check] {
    match part {
        Part::Quick => quick::CHECKS,
        Part::Hotplug => hotplug::CHECKS,
        Part::Stall => stall::CHECKS,
        Part::Package => package::CHECKS,
    }
}

fn kernel() -> Result<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease");
    let release = release.context("cannot tell the kernel's release")?;
    Ok(release.trim_end().to_owned())
}
