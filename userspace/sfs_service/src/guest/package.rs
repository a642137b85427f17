//! The Debian package: installed, upgraded, removed and purged under a live systemd.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context, Result};
use sfs_testbed::scheduler::state;

use super::checks::Check;
use super::service::{
    await_active, expect_active, is_enabled, number, output, property, start, succeed, systemctl,
};
use crate::part::{PACKAGES, PLACE, VERSIONS};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        name: "the package is installed, and starts nothing",
        run: installs,
    },
    Check {
        name: "scx_sfs check finds nothing wrong, and the service starts",
        run: starts,
    },
    Check {
        name: "scx.service starts it by its name",
        run: starts_generically,
    },
    Check {
        name: "an upgrade keeps the configuration and goes on with the new program",
        run: upgrades,
    },
    Check {
        name: "a removal stops the service and keeps the configuration",
        run: removes,
    },
    Check {
        name: "a purge leaves nothing",
        run: purges,
    },
];

const NAME: &str = "scx-sfs";
const CONFIGURATION: &str = "/etc/scx_sfs/config.toml";
const PROGRAM: &str = "/usr/bin/scx_sfs";
const GENERIC: &str = "/etc/systemd/system/scx.service";

/// Files of the package, one of each kind. The root file system leaves out what is below
/// /usr/share/man and /usr/share/doc only when it is made.
const FILES: [&str; 8] = [
    PROGRAM,
    "/usr/bin/faasbench",
    "/usr/lib/systemd/system/scx_sfs.service",
    CONFIGURATION,
    "/etc/default/scx_sfs",
    "/usr/share/man/man8/scx_sfs.8.gz",
    "/usr/share/bash-completion/completions/scx_sfs",
    "/usr/share/doc/scx_sfs/examples/kubernetes-systemd.toml",
];

fn dpkg(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("dpkg");
    succeed(
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(arguments),
    )
}

/// Installs a version of the package.
fn install(version: &str) -> Result<()> {
    let folder = format!("{PLACE}/{PACKAGES}");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {folder}"))?;
    let names = entries.flatten().map(|entry| entry.path());
    let mut packages = names.filter(|path| path.to_string_lossy().contains(version));
    let package = packages.next().context("there is no package")?;
    dpkg(&["--install", &package.display().to_string()])
}

fn installs() -> Result<()> {
    install(VERSIONS[0])?;
    for file in FILES {
        ensure!(Path::new(file).exists(), "{file} is missing");
    }
    ensure!(state() == "disabled", "the scheduler is {}", state());
    ensure!(
        property("LoadState") == "loaded",
        "systemd does not know the unit"
    );
    let version = output(Command::new(PROGRAM).arg("--version"))?;
    ensure!(version.starts_with("scx_sfs "), "{version:?}");
    let verified = output(Command::new("dpkg").args(["--verify", NAME]))?;
    ensure!(verified.is_empty(), "files differ: {verified}");
    Ok(())
}

fn starts() -> Result<()> {
    let checked = output(Command::new(PROGRAM).arg("check"))?;
    ensure!(checked.contains(" 0 fail"), "{checked}");
    fs::write(CONFIGURATION, "slice-us = 7000\n").context("cannot edit the configuration")?;
    succeed(Command::new("systemctl").args(["enable", "scx_sfs"]))?;
    start()?;
    expect_active()?;
    slice_is(7000)?;
    // The service may take a change and apply it.
    succeed(Command::new(PROGRAM).args(["set", "slice-us", "9000"]))?;
    slice_is(9000)
}

fn slice_is(us: u64) -> Result<()> {
    let stats = sfs_testbed::scheduler::stats()?;
    ensure!(
        stats.slice_us == us,
        "S is {} us and not {us}",
        stats.slice_us
    );
    Ok(())
}

/// The unit that distributions have for all sched_ext schedulers, and its file with the name.
fn starts_generically() -> Result<()> {
    systemctl("stop")?;
    let unit = "[Service]\nEnvironmentFile=/etc/default/scx\n\
        ExecStart=/bin/bash -c 'exec ${SCX_SCHEDULER_OVERRIDE:-$SCX_SCHEDULER} ${SCX_FLAGS_OVERRIDE:-$SCX_FLAGS}'\n";
    fs::write(GENERIC, unit).context("cannot write scx.service")?;
    let options = "SCX_SCHEDULER=scx_sfs\nSCX_FLAGS='--slice-us 6000'\n";
    fs::write("/etc/default/scx", options).context("cannot write /etc/default/scx")?;
    succeed(Command::new("systemctl").arg("daemon-reload"))?;
    succeed(Command::new("systemctl").args(["start", "scx"]))?;
    super::wait::within(60, "scx.service has loaded it", is_enabled)?;
    slice_is(6000)?;
    // Its own service takes over.
    start()?;
    expect_active()?;
    let other = output(Command::new("systemctl").args(["is-active", "scx"]))?;
    ensure!(other.trim() != "active", "scx.service is still active");
    slice_is(7000)
}

fn upgrades() -> Result<()> {
    let before = number("MainPID")?;
    install(VERSIONS[1])?;
    await_active(60)?;
    ensure!(number("MainPID")? != before, "the old program still runs");
    let kept = fs::read_to_string(CONFIGURATION).context("the configuration is gone")?;
    ensure!(kept == "slice-us = 7000\n", "it was changed: {kept}");
    slice_is(7000)?;
    let version = output(Command::new("dpkg-query").args(["-W", "-f=${Version}", NAME]))?;
    ensure!(version == VERSIONS[1], "version {version:?} is installed");
    Ok(())
}

fn removes() -> Result<()> {
    dpkg(&["--remove", NAME])?;
    ensure!(state() == "disabled", "the scheduler is {}", state());
    ensure!(!Path::new(PROGRAM).exists(), "the program is still there");
    let kept = fs::read_to_string(CONFIGURATION).context("the configuration is gone")?;
    ensure!(kept == "slice-us = 7000\n", "it was changed: {kept}");
    let link = "/etc/systemd/system/multi-user.target.wants/scx_sfs.service";
    ensure!(
        !Path::new(link).is_symlink(),
        "the service is still enabled"
    );
    Ok(())
}

fn purges() -> Result<()> {
    dpkg(&["--purge", NAME])?;
    for file in FILES
        .iter()
        .chain(&["/etc/scx_sfs", "/var/lib/scx_sfs", "/usr/share/doc/scx_sfs"])
    {
        ensure!(!Path::new(file).exists(), "{file} is still there");
    }
    let listed = output(Command::new("dpkg-query").args(["-W", "-f=${Status}", NAME]))?;
    ensure!(
        listed.is_empty() || listed.contains("not-installed"),
        "{listed:?}"
    );
    Ok(())
}
