//! CPU hotplug, on two CPUs.

use std::fs;

use anyhow::{Context, Result};
use sfs_testbed::scheduler::enable_seq;

use super::checks::Check;
use super::quick;
use super::service::{await_active, expect, expect_active, property};
use super::wait::{pause, within};

/// The checks.
pub const CHECKS: &[Check] = &[
    quick::ACTIVE,
    Check {
        name: "CPU hotplug is no restart of the service",
        run: survives_hotplug,
    },
];

const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

/// The same process loads the scheduler again, without a restart of the service.
fn survives_hotplug() -> Result<()> {
    let pid = property("MainPID");
    let loads = enable_seq() + 1..;
    for (online, load) in ["0", "1"].into_iter().zip(loads) {
        fs::write(ONLINE, online).with_context(|| format!("cannot write {online} to {ONLINE}"))?;
        within(20, "it is loaded again", || enable_seq() == load)?;
        await_active(10)?;
    }
    pause(35);
    expect("MainPID", &pid)?;
    expect_active()
}
