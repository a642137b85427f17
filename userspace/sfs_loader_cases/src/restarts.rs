//! State that outlives a scheduler: which processes are functions, and how it ended.

use std::fs;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::signal::Signal;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{ms, sleep};
use sfs_testbed::process::Process;
use sfs_testbed::scheduler::{forget_history, state, Scheduler, Stats};
use sfs_testbed::server::{Server, Worker};
use sfs_testbed::surroundings::cover;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "restart_finds_warm_servers_again",
        about: "a server started under the previous scheduler has credit for its next request beside hogs, without --cgroup",
        run: |bench| finds_warm_servers_again(bench, Signal::SIGINT),
    },
    Case {
        name: "restart_after_a_kill_finds_warm_servers_again",
        about: "the same after the loader was killed",
        run: |bench| finds_warm_servers_again(bench, Signal::SIGKILL),
    },
    Case {
        name: "restart_makes_no_functions_of_others",
        about: "processes started while nothing was loaded, or no longer known, are not functions",
        run: restart_makes_no_functions_of_others,
    },
    Case {
        name: "sysrq_has_an_exit_status_of_its_own",
        about: "SysRq-S gives exit status 5, after which the service does not restart",
        run: sysrq_has_an_exit_status_of_its_own,
    },
    Case {
        name: "waits_for_the_scheduler_before",
        about: "the loader waits while another scheduler is being unloaded, and then loads",
        run: waits_for_the_scheduler_before,
    },
    Case {
        name: "missing_kernel_function_costs_one_boundary",
        about: "a kernel without inet6_recvmsg(): one warning, and accept() boundaries still work",
        run: missing_kernel_function_costs_one_boundary,
    },
];

/// S of these cases, and the CPU time of a request: one fits in S, two do not.
const LOAD: &str = "--policy sfs --slice-us 40000 --no-overload";
const DEMAND: Duration = ms(30);

/// Calls `server` four times; returns how many invocations began by accept() and how many
/// were demoted.
fn call(scheduler: &Scheduler, server: &Server) -> Result<(u64, u64)> {
    let before = scheduler.stats()?;
    for _ in 0..4 {
        server.call()?;
        sleep(ms(5));
    }
    let after = scheduler.stats()?;
    let grown = |of: fn(&Stats) -> u64| of(&after) - of(&before);
    Ok((grown(|s| s.begun_by_accept), grown(|s| s.demotions)))
}

fn finds_warm_servers_again(bench: &Bench, end: Signal) -> Result<()> {
    let scheduler = bench.load(LOAD)?;
    let server = Server::start(DEMAND, Worker::Acceptor)?;
    let (accepted, _) = call(&scheduler, &server)?;
    ensure!(accepted == 4, "{accepted} begun by accept, not 4");
    scheduler.stop(end)?;

    let scheduler = bench.load(LOAD)?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    // It was in accept() all the time, so the beginning of this request is not seen.
    let begin = sfs_testbed::clock::now();
    server.call()?;
    let took = sfs_testbed::clock::now() - begin;
    bench.at_most("first request", took, DEMAND + ms(15))?;
    let (accepted, demoted) = call(&scheduler, &server)?;
    bench.say(format_args!("{accepted} accepted, {demoted} demoted"));
    ensure!((accepted, demoted) == (4, 0), "it is not a function");
    let stats = scheduler.stats()?;
    let expected = if end == Signal::SIGKILL {
        "killed"
    } else {
        "stopped"
    };
    ensure!(stats.last_exit == expected, "{}", stats.last_exit);
    drop((server, hogs));
    scheduler.finish()
}

fn restart_makes_no_functions_of_others(bench: &Bench) -> Result<()> {
    bench.load(LOAD)?.finish()?;
    let between = Server::start(DEMAND, Worker::Acceptor)?;
    let scheduler = bench.load(LOAD)?;
    let (accepted, _) = call(&scheduler, &between)?;
    ensure!(accepted == 0, "{accepted} of a server started in between");
    drop(between);

    let server = Server::start(DEMAND, Worker::Acceptor)?;
    scheduler.finish()?;
    forget_history()?;
    let scheduler = bench.load(LOAD)?;
    ensure!(
        scheduler.stats()?.last_exit == "none",
        "the last exit is still known"
    );
    let (accepted, _) = call(&scheduler, &server)?;
    ensure!(accepted == 0, "{accepted} of a forgotten server");
    drop(server);
    scheduler.finish()
}

fn sysrq_has_an_exit_status_of_its_own(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("")?;
    fs::write("/proc/sysrq-trigger", "S").context("there is no SysRq")?;
    let (status, log) = scheduler.wait_for_end()?;
    bench.say(format_args!(
        "{status}: {}",
        log.lines().last().unwrap_or("")
    ));
    ensure!(status.code() == Some(5), "{status}: {log}");
    let scheduler = bench.load("")?;
    let stats = scheduler.stats()?;
    ensure!(stats.last_exit == "sysrq", "{}", stats.last_exit);
    ensure!(stats.ejections == 0, "{} ejections", stats.ejections);
    scheduler.finish()
}

fn waits_for_the_scheduler_before(bench: &Bench) -> Result<()> {
    const WAIT: Duration = ms(700);
    const STATE: &std::ffi::CStr = c"/sys/kernel/sched_ext/state";
    let file = "/tmp/state";
    fs::write(file, "disabling\n")?;
    let mut kernel = Process::spawn(move |_| {
        sleep(WAIT);
        fs::write(file, "disabled\n").expect("cannot write the state");
    })?;
    let begin = sfs_testbed::clock::now();
    let scheduler = Scheduler::start_prepared(bench.program(), &[], |command| {
        cover(command, STATE, Some(c"/tmp/state"));
    })?;
    let took = sfs_testbed::clock::now() - begin;
    kernel.wait()?;
    bench.say(scheduler.log().lines().last().unwrap_or(""));
    ensure!(took >= WAIT, "it did not wait: {took:?}");
    let lines = scheduler.log();
    let said = lines.matches("waiting for the previous scheduler").count();
    ensure!(said == 1, "it was logged {said} times");
    scheduler.finish()?;

    // An operator may lose patience.
    fs::write(file, "disabling\n")?;
    let mut command = std::process::Command::new(bench.program());
    cover(&mut command, STATE, Some(c"/tmp/state"));
    let mut waiting = command.spawn().context("cannot start it")?;
    sleep(ms(500));
    let pid = nix::unistd::Pid::from_raw(waiting.id().cast_signed());
    nix::sys::signal::kill(pid, Signal::SIGTERM)?;
    let status = waiting.wait()?;
    ensure!(status.success(), "{status}");
    ensure!(state() == "disabled", "it is {}", state());
    Ok(())
}

fn missing_kernel_function_costs_one_boundary(bench: &Bench) -> Result<()> {
    const NAME: &[u8] = b"\0inet6_recvmsg\0";
    let mut types = fs::read("/sys/kernel/btf/vmlinux").context("the kernel has no BTF")?;
    let at = types.windows(NAME.len()).position(|bytes| bytes == NAME);
    let at = at.context("this kernel has no inet6_recvmsg to remove")?;
    types[at + NAME.len() - 2] = b'X';
    fs::write("/tmp/types", types)?;
    let options = [LOAD, "--boundary fork,accept,receive"].join(" ");
    let options: Vec<&str> = options.split(' ').collect();
    let scheduler = Scheduler::start_prepared(bench.program(), &options, |command| {
        cover(command, c"/sys/kernel/btf/vmlinux", Some(c"/tmp/types"));
    })?;
    let log = scheduler.log();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("WARN")).collect();
    bench.say(warnings.join("\n"));
    ensure!(
        warnings.len() == 1
            && warnings[0].contains("--boundary receive does not see data received over IPv6"),
        "{log}"
    );
    let server = Server::start_tcp(DEMAND)?;
    let (accepted, _) = call(&scheduler, &server)?;
    ensure!(accepted == 4, "{accepted} begun by accept, not 4");
    drop(server);
    fs::remove_file("/tmp/types")?;
    scheduler.finish()
}
