//! Names that tasks choose to deceive whoever reads what the loader says.

use std::ffi::CStr;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::prctl::set_name;
use nix::unistd::Pid;

use crate::case::{Bench, Case};
use crate::clock::{ms, now, wait_until};
use crate::process::{pin_self, set_policy, Process, PATIENCE};
use crate::scheduler::Scheduler;

pub const CASES: &[Case] = &[Case {
    name: "names_forge_no_line",
    about: "a task whose name breaks the line, is no UTF-8 and clears the screen stalls: the \
            reason is one line, the dump whole, the exit status that of a failure",
    run: names_forge_no_line,
}];

/// As the kernel has it, and as it is to be shown.
const NAME: &CStr = c"\nEXIT: f\xff\x1b[2J";
const SHOWN: &str = r"\nEXIT: f\xff\u{1b}[2J[";

fn names_forge_no_line(bench: &Bench) -> Result<()> {
    // On a single one the kernel's watchdog stalls as well, and that is the reason given.
    bench.needs_two_cpus()?;
    // The kernel's watchdog looks twice in that time.
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
            // Long enough for a stall, and no longer: no other task of this CPU runs.
            let end = now() + ms(1500);
            while now() < end {
                report.burn(ms(1));
            }
        })
    };
    let stalled = named(false)?;
    let has_its_name = wait_until(PATIENCE, || stalled.cpu() > Duration::ZERO);
    ensure!(has_its_name, "the task that is to stall has not begun");
    let _in_its_way = named(true)?;
    let (status, log) = scheduler.wait_for_end()?;

    let (dump, said): (Vec<&str>, Vec<&str>) =
        log.lines().partition(|line| line.starts_with("dump:"));
    bench.say(format_args!("{status}; {} lines of a dump", dump.len()));
    let reason = said.last().context("the log is empty, or no UTF-8")?;
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
        "the dump does not name the tasks: {log}"
    );
    let is_whole = dump.iter().any(|line| line.contains("sfs: mode="))
        && dump.iter().any(|line| line.contains("sfs: turn="));
    ensure!(is_whole, "the dump is not whole: {log}");
    Ok(())
}
