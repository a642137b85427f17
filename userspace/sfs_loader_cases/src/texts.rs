//! Task names that try to forge lines of the loader's output.

use std::ffi::CStr;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::prctl::set_name;
use nix::unistd::Pid;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{ms, now, wait_until, PATIENCE};
use sfs_testbed::process::{pin_self, set_policy, Process};
use sfs_testbed::scheduler::Scheduler;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[Case {
    name: "names_forge_no_line",
    about: "a stalled task with control characters and invalid UTF-8 in its name: the exit reason \
            is one line, the dump is complete, the exit status is a failure",
    run: names_forge_no_line,
}];

/// The name in the kernel, and its expected form in the output.
const NAME: &CStr = c"\nEXIT: f\xff\x1b[2J";
const SHOWN: &str = r"\nEXIT: f\xff\u{1b}[2J[";

fn names_forge_no_line(bench: &Bench) -> Result<()> {
    // On a single CPU the kernel's watchdog also stalls, and is then the exit
    // reason.
    bench.needs_two_cpus()?;
    // The kernel's watchdog looks twice in this time.
    let scheduler = Scheduler::start_prepared(bench.program(), &[], |command| {
        command.env("SCX_TIMEOUT_MS", "400");
    })?;
    let cpu = bench.cpus() - 1;
    let named = |real_time: bool| {
        Process::spawn(move |report| {
            pin_self(cpu);
            set_name(NAME).expect("cannot have this name");
            if real_time {
                set_policy(Pid::from_raw(0), libc::SCHED_FIFO).expect("cannot be real-time");
            }
            // Just long enough for a stall: no other task of this CPU runs meanwhile.
            let end = now() + ms(1500);
            while now() < end {
                report.burn(ms(1));
            }
        })
    };
    let stalled = named(false)?;
    let has_its_name = wait_until(PATIENCE, || stalled.cpu() > Duration::ZERO);
    ensure!(has_its_name, "the task that should stall has not started");
    let _in_its_way = named(true)?;
    let (status, log) = scheduler.wait_for_end()?;

    let (dump, said): (Vec<&str>, Vec<&str>) =
        log.lines().partition(|line| line.starts_with("dump:"));
    bench.say(format_args!("{status}; {} lines of a dump", dump.len()));
    let reason = said.last().context("the log is empty or not UTF-8")?;
    bench.say(reason);
    let is_failure = status.code().is_some_and(|code| code != 0 && code != 101);
    ensure!(is_failure, "it ends with {status}: {log}");
    let beginning = format!("scx_sfs: EXIT: runnable task stall ({SHOWN}");
    ensure!(
        reason.starts_with(&beginning),
        "the last line is not the reason"
    );
    let is_forged = |line: &&str| line.starts_with("EXIT") || line.contains(char::is_control);
    ensure!(
        !log.lines().any(|line| is_forged(&line)),
        "a line is forged: {log:?}"
    );
    ensure!(
        log.matches(r"\xff").count() >= 3,
        "the dump lacks the tasks' names: {log}"
    );
    let is_whole = dump.iter().any(|line| line.contains("sfs: mode="))
        && dump.iter().any(|line| line.contains("sfs: turn="));
    ensure!(is_whole, "the dump is incomplete: {log}");
    Ok(())
}
