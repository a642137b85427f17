//! What an operator does, and what happens to a loader.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{ensure, Context, Result};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use sfs_testbed::clock::{now, since, PATIENCE};
use sfs_testbed::scheduler::{state, stats};

use super::checks::Check;
use super::install::TOLD;
use super::service::{
    await_active, await_failure, expect, expect_active, expect_statistics, is_enabled, journal,
    number, output, set_options, signal, start, start_in_vain, succeed, systemctl,
};
use super::wait::{pause, within};

/// The first check: that what systemd calls active is enabled.
pub const ACTIVE: Check = Check {
    name: "active means loaded and enabled",
    run: active_means_enabled,
};

/// The checks.
pub const CHECKS: &[Check] = &[
    ACTIVE,
    Check {
        name: "gives signs of life for two periods of the watchdog",
        run: gives_signs_of_life,
    },
    Check {
        name: "systemctl stop",
        run: stops,
    },
    Check {
        name: "a loader that was killed is started again, and knows",
        run: restarts_after_kill,
    },
    Check {
        name: "a loader that hangs is started again",
        run: restarts_what_hangs,
    },
    Check {
        name: "SysRq-S is respected, OnFailure= is told",
        run: respects_sysrq,
    },
    Check {
        name: "another scheduler is respected",
        run: respects_another,
    },
    Check {
        name: "wrong options are not tried again",
        run: refuses_bad_options,
    },
    Check {
        name: "what was learned is kept below /var/lib",
        run: keeps_what_it_learns,
    },
    Check {
        name: "the journal has fields, and a socket the metrics",
        run: is_observable,
    },
];

/// The installed loader.
const LOADER: &str = "/usr/local/bin/scx_sfs";

/// Where the service may keep what it learns.
const LEARNED_FOLDER: &str = "/var/lib/scx_sfs";
const LEARN: &str = "--policy learned --learn-state /var/lib/scx_sfs/learned";

/// Number of invocations, of which something is learned.
const INVOCATIONS: u32 = 150;

fn active_means_enabled() -> Result<()> {
    start()?;
    expect_active()?;
    expect("StatusText", "scheduling")
}

fn gives_signs_of_life() -> Result<()> {
    let before = number("WatchdogTimestampMonotonic")?;
    pause(130);
    let after = number("WatchdogTimestampMonotonic")?;
    ensure!(after > before, "the watchdog has heard nothing for 130 s");
    expect("NRestarts", "0")?;
    expect_active()
}

fn stops() -> Result<()> {
    systemctl("stop")?;
    expect("ActiveState", "inactive")?;
    expect("Result", "success")?;
    expect("ExecMainStatus", "0")?;
    let state = state();
    ensure!(state == "disabled", "the scheduler is {state}");
    Ok(())
}

/// Waits until the service is active after so many restarts.
fn await_restart(seconds: u64, restarts: u64) -> Result<()> {
    let what = format!("restart {restarts}");
    within(seconds, &what, || {
        number("NRestarts").is_ok_and(|n| n == restarts)
    })
}

fn restarts_after_kill() -> Result<()> {
    start()?;
    signal(Signal::SIGKILL)?;
    await_restart(10, 1)?;
    await_active(10)?;
    expect("NRestarts", "1")?;
    expect_statistics("the last one was killed", |stats| {
        stats.last_exit == "killed"
    })?;
    Ok(())
}

fn restarts_what_hangs() -> Result<()> {
    let pid = signal(Signal::SIGSTOP)?;
    await_restart(150, 2)?;
    await_active(20)?;
    ensure!(number("MainPID")? != pid, "it is still the same process");
    let is_told = journal()?.to_lowercase().contains("watchdog timeout");
    ensure!(is_told, "the journal has nothing about the watchdog");
    Ok(())
}

fn respects_sysrq() -> Result<()> {
    // It is not there, unless something has failed before.
    let _ = fs::remove_file(TOLD);
    fs::write("/proc/sysrq-trigger", "S").context("cannot press SysRq-S")?;
    await_failure(10, "5")?;
    ensure!(Path::new(TOLD).exists(), "OnFailure= has not run");
    Ok(())
}

/// A scheduler that was started by hand. Dropped, it is killed.
struct Another(Child);

impl Another {
    fn start() -> Result<Self> {
        let mut command = Command::new(LOADER);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn();
        Ok(Self(child.with_context(|| format!("cannot run {LOADER}"))?))
    }

    /// Asks it to end.
    fn interrupt(&self) -> Result<()> {
        let pid = Pid::from_raw(self.0.id().try_into()?);
        kill(pid, Signal::SIGINT).context("cannot end the other scheduler")
    }
}

impl Drop for Another {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn respects_another() -> Result<()> {
    start()?;
    systemctl("stop")?;
    let mut another = Another::start()?;
    within(20, "the other scheduler is enabled", is_enabled)?;
    start_in_vain()?;
    pause(3);
    expect("ExecMainStatus", "8")?;
    expect("NRestarts", "0")?;
    ensure!(is_enabled(), "the other scheduler is gone");
    another.interrupt()?;
    // It is on its way out, "disabling": the service waits for that.
    let begin = now();
    while state() == "enabled" {
        ensure!(since(begin) < PATIENCE, "the other scheduler does not end");
    }
    println!("        started while the state was {}", state());
    start()?;
    expect_active()?;
    another
        .0
        .wait()
        .context("cannot wait for the other scheduler")?;
    systemctl("stop")
}

/// Runs `check` while the service has these options, and none afterwards.
fn with_options(options: &str, check: fn() -> Result<()>) -> Result<()> {
    set_options(options)?;
    let result = check();
    set_options("")?;
    result
}

fn refuses_bad_options() -> Result<()> {
    with_options("--no-such-option", || {
        // What failed before is forgotten, and so are its restarts.
        let _ = systemctl("reset-failed");
        start_in_vain()?;
        pause(3);
        expect("ExecMainStatus", "2")?;
        expect("NRestarts", "0")
    })
}

fn keeps_what_it_learns() -> Result<()> {
    with_options(LEARN, || {
        learns()?;
        is_learned_still()
    })
}

fn learns() -> Result<()> {
    start()?;
    for _ in 0..INVOCATIONS {
        succeed(&mut Command::new("/bin/true"))?;
    }
    within(10, "a known function", || {
        stats().is_ok_and(|stats| stats.functions > 0)
    })
}

/// With the next loader, before anything else can be learned.
fn is_learned_still() -> Result<()> {
    let before = stats()?.functions;
    systemctl("stop")?;
    let learned = fs::metadata(Path::new(LEARNED_FOLDER).join("learned"));
    let learned = learned.context("nothing is kept")?;
    ensure!(learned.len() > 0, "what is kept is empty");
    let folder = fs::metadata(LEARNED_FOLDER).context("there is no folder")?;
    let mode = folder.permissions().mode() & 0o7777;
    ensure!(mode == 0o700, "{LEARNED_FOLDER} has the mode {mode:o}");
    start()?;
    let now = expect_statistics("there are ranks", |stats| stats.rank_tables > 0)?.functions;
    ensure!(
        now >= before,
        "{before} functions were learned, {now} are known"
    );
    Ok(())
}

/// Where the service may make a socket.
const SOCKET: &str = "/run/scx_sfs/metrics.sock";

fn is_observable() -> Result<()> {
    systemctl("stop")?;
    with_options(&format!("--metrics-listen unix:{SOCKET}"), || {
        start()?;
        serves_metrics()?;
        systemctl("stop")?;
        succeed(Command::new("journalctl").arg("--sync"))?;
        let mut asked = Command::new("journalctl");
        // Without the loader's fields the lines come from standard error, each with priority 6.
        asked.args(["-b", "--no-pager", "-u", "scx_sfs", "-o", "cat"]);
        asked.args([
            "_TRANSPORT=journal",
            "SYSLOG_IDENTIFIER=scx_sfs",
            "PRIORITY=6",
        ]);
        let found = output(&mut asked)?;
        let is_there = found.lines().any(|line| line.starts_with("scx_sfs 0."));
        ensure!(is_there, "the journal has no such record: {found}");
        Ok(())
    })
}

fn serves_metrics() -> Result<()> {
    let mut server = UnixStream::connect(SOCKET).context("nobody serves metrics")?;
    server.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut said = String::new();
    server.read_to_string(&mut said)?;
    let is_there = said
        .lines()
        .any(|line| line.starts_with("scx_sfs_uptime_seconds "));
    ensure!(is_there, "these are no metrics: {said}");
    Ok(())
}
