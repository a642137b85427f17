//! The service as systemd and the kernel have it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{bail, ensure, Context, Result};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use sfs_testbed::scheduler::{ops, state, stats, Stats};

use super::checks::indented;
use super::wait::{pause, within};

const UNIT: &str = "scx_sfs";

/// The options of the service.
const OPTIONS: &str = "/etc/default/scx_sfs";

/// What a failure shows of the service.
const PROPERTIES: &str = "ActiveState,SubState,Result,ExecMainStatus,NRestarts,StatusText";

/// How many lines of the journal a failure shows.
const LINES: &str = "25";

/// The version of systemd.
///
/// # Errors
///
/// systemctl cannot be run.
pub fn version() -> Result<String> {
    let said = output(Command::new("systemctl").arg("--version"))?;
    let word = said.split_whitespace().nth(1);
    Ok(word.context("systemctl tells no version")?.to_owned())
}

/// What a failure shows: properties, and the end of the journal.
pub fn account() -> String {
    let mut show = Command::new("systemctl");
    show.args(["show", UNIT, &format!("--property={PROPERTIES}")]);
    let mut journal = Command::new("journalctl");
    journal.args(["--no-pager", "-n", LINES, "-u", UNIT]);
    let [shown, written] = [show, journal].map(|mut command| {
        let said = output(&mut command);
        said.unwrap_or_else(|error| format!("{error:#}\n"))
    });
    shown + &indented(&written)
}

/// A property of the unit; empty if systemd does not tell.
pub fn property(name: &str) -> String {
    let mut command = Command::new("systemctl");
    command.args(["show", UNIT, "--value", &format!("--property={name}")]);
    let said = output(&mut command).unwrap_or_default();
    said.trim_end().to_owned()
}

/// A property that is a number.
///
/// # Errors
///
/// It is none.
pub fn number(name: &str) -> Result<u64> {
    let value = property(name);
    let number = value.parse();
    number.with_context(|| format!("{name} is {value:?}, which is no number"))
}

/// Checks that a property has this value.
///
/// # Errors
///
/// It has another one.
pub fn expect(name: &str, value: &str) -> Result<()> {
    let is = property(name);
    ensure!(is == value, "{name} is {is:?} and not {value:?}");
    Ok(())
}

/// Calls `systemctl VERB` for the unit.
///
/// # Errors
///
/// It fails; what it says is in the error.
pub fn systemctl(verb: &str) -> Result<()> {
    succeed(Command::new("systemctl").args([verb, UNIT]))
}

/// Starts the service, also if it has failed before.
///
/// # Errors
///
/// It does not become active.
pub fn start() -> Result<()> {
    // This fails if the service has never run.
    let _ = systemctl("reset-failed");
    systemctl("start")
}

/// Tries to start the service, which must fail.
///
/// # Errors
///
/// It becomes active.
pub fn start_in_vain() -> Result<()> {
    ensure!(systemctl("start").is_err(), "the service has started");
    Ok(())
}

/// Gives the service options.
///
/// # Errors
///
/// The file cannot be written.
pub fn set_options(options: &str) -> Result<()> {
    let text = format!("SCX_SFS_FLAGS=\"{options}\"\n");
    fs::write(OPTIONS, text).with_context(|| format!("cannot write {OPTIONS}"))
}

/// Sends a signal to the loader, and returns its process id.
///
/// # Errors
///
/// There is no loader.
pub fn signal(signal: Signal) -> Result<u64> {
    let pid = number("MainPID")?;
    ensure!(pid > 0, "the service has no process");
    let target = Pid::from_raw(pid.try_into()?);
    kill(target, signal).context("cannot send a signal to the loader")?;
    Ok(pid)
}

/// Whether the kernel has scx_sfs enabled.
pub fn is_enabled() -> bool {
    state() == "enabled" && ops().starts_with("sfs_")
}

/// Whether the service is active, and the kernel has the scheduler enabled.
pub fn is_active() -> bool {
    property("ActiveState") == "active" && is_enabled()
}

/// Checks [`is_active`].
///
/// # Errors
///
/// It is not.
pub fn expect_active() -> Result<()> {
    expect("ActiveState", "active")?;
    ensure!(is_enabled(), "the scheduler is {} ({})", state(), ops());
    Ok(())
}

/// Waits until the service is active.
///
/// # Errors
///
/// It is not within `seconds`.
pub fn await_active(seconds: u64) -> Result<()> {
    within(seconds, "the service is active", is_active)
}

/// Waits until the service has failed with this exit status of the loader, and checks that it
/// stays so for 5 s.
///
/// # Errors
///
/// It does not fail within `seconds`, or starts again.
pub fn await_failure(seconds: u64, status: &str) -> Result<()> {
    let has_failed = || {
        property("ActiveState") == "failed"
            && property("ExecMainStatus") == status
            && state() == "disabled"
    };
    let what = format!("the service has failed with status {status}");
    within(seconds, &what, has_failed)?;
    pause(5);
    ensure!(has_failed(), "the service does not stay down");
    Ok(())
}

/// The statistics of the running loader, as in [`stats`].
///
/// # Errors
///
/// `wanted` is not true of them; `what` describes it. Or no loader answers.
pub fn expect_statistics(what: &str, wanted: impl Fn(&Stats) -> bool) -> Result<Stats> {
    let stats = stats()?;
    ensure!(wanted(&stats), "the statistics do not say that {what}");
    Ok(stats)
}

/// What the unit has written since boot.
///
/// # Errors
///
/// journalctl cannot be run.
pub fn journal() -> Result<String> {
    output(Command::new("journalctl").args(["-b", "--no-pager", "-u", UNIT]))
}

/// Checks that a line of the unit's journal has these words.
///
/// # Errors
///
/// None has.
pub fn expect_journal(words: &str) -> Result<()> {
    let said = journal()?;
    ensure!(said.contains(words), "the journal does not say {words:?}");
    Ok(())
}

/// Runs a program to its end and returns what it prints; what it says on standard error is not
/// kept.
///
/// # Errors
///
/// It cannot be run.
pub fn output(command: &mut Command) -> Result<String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {name}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program to its end.
///
/// # Errors
///
/// It fails; what it says is in the error.
pub fn succeed(command: &mut Command) -> Result<()> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name} ended with {}: {}", output.status, said.trim_end());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_program_says_is_in_the_error() {
        succeed(&mut sh("echo output; exit 0")).unwrap();
        let said = succeed(&mut sh("echo no such unit >&2; exit 5")).unwrap_err();
        let want = "sh ended with exit status: 5: no such unit";
        assert_eq!(said.to_string(), want);
    }

    #[test]
    fn output_is_kept_whatever_the_exit_status() {
        assert_eq!(
            output(&mut sh("echo one; echo two >&2; exit 3")).unwrap(),
            "one\n"
        );
        let said = output(&mut Command::new("/none")).unwrap_err();
        assert!(said.to_string().starts_with("cannot run /none"), "{said:#}");
    }
}
