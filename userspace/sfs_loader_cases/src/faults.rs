//! Exhausted resources: ring buffers, maps, memory. The scheduler counts the loss and
//! continues, or the machine returns to its default scheduler.

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::{enable_cpu_controller, enable_memory_controller, Cgroup};
use sfs_testbed::clock::{burn, ms, sleep, wait_until, PATIENCE};
use sfs_testbed::process::{fork_every, wait_for_all, Process};
use sfs_testbed::scheduler::{state, Scheduler, Stats, NOT_TOLD};
use sfs_testbed::surroundings::{protect_from_oom_killer, put_into};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "full_ring_buffers_lose_events_only",
        about: "12,000 invocations while the loader is stopped: lost events are counted",
        run: full_ring_buffers_lose_events_only,
    },
    Case {
        name: "more_functions_than_are_remembered",
        about: "more function names than the map of functions and the loader can hold",
        run: more_functions_than_are_remembered,
    },
    Case {
        name: "sandboxes_beyond_the_limit_wait",
        about: "--max-sandboxes: tasks of further sandboxes are not functions until one is removed",
        run: sandboxes_beyond_the_limit_wait,
    },
    Case {
        name: "folders_that_cannot_be_watched",
        about: "inotify's limit is reached: one warning, and watched folders still work",
        run: folders_that_cannot_be_watched,
    },
    Case {
        name: "no_memory_for_contexts",
        about: "tasks without a context, for lack of memory, run in FAIR and are counted; later tasks have one",
        run: no_memory_for_contexts,
    },
    Case {
        name: "forks_fail_without_memory",
        about: "a sandbox at its memory limit repeatedly fails to fork: others are not delayed",
        run: forks_fail_without_memory,
    },
    Case {
        name: "oom_killer_ends_the_loader",
        about: "the machine returns to EEVDF at once, and the loader can load again",
        run: oom_killer_ends_the_loader,
    },
    Case {
        name: "too_little_memory_to_load",
        about: "nothing stays loaded, and tasks still run",
        run: too_little_memory_to_load,
    },
];

/// Starts a process that begins and ends `count` invocations by accept, one after another,
/// and calls `before` ahead of each. An invocation takes microseconds.
fn invocations(count: u64, before: impl Fn(u64)) -> Result<Process> {
    const SOCKET: &str = "/tmp/invocations.sock";
    Process::spawn(move |_| {
        let _ = fs::remove_file(SOCKET);
        let serve = || -> std::io::Result<()> {
            let listener = UnixListener::bind(SOCKET)?;
            for number in 0..count {
                before(number);
                let _client = UnixStream::connect(SOCKET)?;
                listener.accept()?;
            }
            Ok(())
        };
        serve().unwrap_or_else(|error| panic!("cannot serve: {error}"));
    })
}

fn full_ring_buffers_lose_events_only(bench: &Bench) -> Result<()> {
    const COUNT: u64 = 12_000;
    // Capacity of the ring buffers: 56 bytes each in 512 KiB, and 32 in 64 KiB.
    const COMPLETIONS: u64 = 9362;
    const EVENTS: u64 = 2047;
    let scheduler = bench.load("--policy learned --no-overload --iat-window 2")?;
    scheduler.signal(Signal::SIGSTOP)?;
    invocations(COUNT, |_| {})?.wait()?;
    let mut short = Process::burner(ms(5))?;
    short.wait()?;
    bench.at_most("a short process meanwhile", short.turnaround(), ms(60))?;

    scheduler.signal(Signal::SIGCONT)?;
    let stats = scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
    let lost = COUNT - COMPLETIONS + COUNT / 2 - EVENTS;
    bench.say(format_args!(
        "{} completions, {} events lost",
        stats.completions, stats.lost_events
    ));
    ensure!(stats.completions >= COUNT, "{stats:?}");
    ensure!(
        (lost..lost + 20).contains(&stats.lost_events),
        "about {lost} should be lost"
    );

    let functions = stats.functions;
    invocations(1000, |number| name_self(&format!("new-{number}")))?.wait()?;
    let stats = scheduler.wait_for("the new functions", |stats| {
        stats.functions >= functions + 1000
    })?;
    ensure!((lost..lost + 20).contains(&stats.lost_events), "{stats:?}");
    scheduler.finish()
}

/// Changes the name of the calling process, which identifies its function.
fn name_self(name: &str) {
    let mut bytes = [0u8; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: the name has 16 bytes and ends with 0.
    unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
}

fn more_functions_than_are_remembered(bench: &Bench) -> Result<()> {
    // The map holds 16,384, the loader 100,000.
    const COUNT: u64 = 102_000;
    const REMEMBERED: u64 = 100_000;
    bench.needs_two_cpus()?;
    let scheduler = bench.load("--policy learned --no-overload")?;
    let mut many = invocations(COUNT, |number| name_self(&format!("fn-{number}")))?;
    let done = wait_until(4 * PATIENCE, || many.has_ended());
    ensure!(done, "the invocations take too long");
    many.wait()?;
    // For each lost event, one more function.
    let told = |stats: &Stats| stats.functions + stats.lost_events >= REMEMBERED;
    let lost = scheduler.wait_for("all functions", told)?.lost_events;
    invocations(lost, |number| name_self(&format!("late-{number}")))?.wait()?;
    let stats = scheduler.wait_for("all functions", |stats| stats.functions >= REMEMBERED)?;
    bench.say(format_args!(
        "{} functions, {} rank tables, {} events lost, CPU time of the loader {:?}",
        stats.functions,
        stats.rank_tables,
        stats.lost_events,
        scheduler.cpu_time()?
    ));
    ensure!(stats.functions == REMEMBERED, "{stats:?}");
    ensure!(stats.completions >= COUNT, "{stats:?}");
    // An early one, forgotten by now, is a function like any other.
    invocations(200, |_| name_self("fn-7"))?.wait()?;
    let mut short = Process::burner(ms(5))?;
    short.wait()?;
    bench.at_most("a short process", short.turnaround(), ms(40))?;
    let stats = scheduler.stats()?;
    ensure!(stats.functions == REMEMBERED, "{stats:?}");
    ensure!(stats.completions >= COUNT + 200, "{stats:?}");
    scheduler.finish()
}

fn sandboxes_beyond_the_limit_wait(bench: &Bench) -> Result<()> {
    let make = |number| Cgroup::new(&format!("functions/{number}"));
    let options = "--slice-us 40000 --no-overload --cgroup functions/* --max-sandboxes 2";
    let scheduler = bench.load_sfs(options)?;
    // The first two fit. Of several made together, any may be first.
    let mut sandboxes: Vec<Cgroup> = (0..2).map(make).collect::<Result<_>>()?;
    scheduler.wait_for("the first two sandboxes", |stats| stats.sandboxes == 2)?;
    for number in 2..6 {
        sandboxes.push(make(number)?);
    }
    let stats = scheduler.wait_for("all sandboxes", |stats| stats.sandboxes == 6)?;
    ensure!(stats.sandboxes_left_out == 4, "{stats:?}");
    let log = scheduler.log();
    bench.say(log.lines().find(|line| line.contains("room")).unwrap_or(""));
    let told = log.matches("--max-sandboxes makes more room").count();
    ensure!(told == 1, "{told} warnings, not 1: {log}");

    let run_in = |sandbox: &Cgroup| Process::spawn_in(sandbox, |_| burn(ms(10)))?.wait();
    run_in(&sandboxes[0])?;
    run_in(&sandboxes[5])?;
    let stats = scheduler.stats()?;
    ensure!(
        stats.arrivals == 1,
        "only the first is a function: {stats:?}"
    );
    // One that was left out is removed, then the first two; the others take their places
    // one by one.
    for gone in [2, 0, 0] {
        sandboxes.remove(gone).remove()?;
    }
    let stats = scheduler.wait_for("three sandboxes", |stats| stats.sandboxes == 3)?;
    ensure!(stats.sandboxes_left_out == 1, "{stats:?}");
    run_in(&sandboxes[0])?;
    run_in(&sandboxes[1])?;
    run_in(&sandboxes[2])?;
    let stats = scheduler.stats()?;
    ensure!(stats.arrivals == 3, "two more are functions: {stats:?}");
    sandboxes.remove(0).remove()?;
    scheduler.wait_for("a free place", |stats| stats.sandboxes_left_out == 0)?;
    run_in(&sandboxes[1])?;
    let stats = scheduler.stats()?;
    ensure!(
        stats.arrivals == 4,
        "now the last one is a function: {stats:?}"
    );
    scheduler.finish()?;

    // More than fit exist before the load.
    sandboxes.push(make(7)?);
    let scheduler = bench.load_sfs(options)?;
    let stats = scheduler.stats()?;
    ensure!(
        (stats.sandboxes, stats.sandboxes_left_out) == (3, 1),
        "{stats:?}"
    );
    scheduler.finish()
}

fn folders_that_cannot_be_watched(bench: &Bench) -> Result<()> {
    const LIMIT: &str = "/proc/sys/fs/inotify/max_user_watches";
    let first = Cgroup::new("tenants/first")?;
    let scheduler = bench.load_sfs("--no-overload --cgroup tenants/*/*")?;
    let before = fs::read_to_string(LIMIT).context("there is no limit")?;
    // The root, tenants and tenants/first are watched.
    fs::write(LIMIT, "3")?;
    let come = || -> Result<[Cgroup; 3]> {
        let second = Cgroup::new("tenants/second/unseen")?;
        let warned = wait_until(PATIENCE, || scheduler.log().contains("max_user_watches"));
        ensure!(warned, "the warning is missing: {}", scheduler.log());
        let third = Cgroup::new("tenants/third/unseen")?;
        // When the loader has seen this one, it has seen the earlier ones too.
        let sandbox = Cgroup::new("tenants/first/f")?;
        scheduler.wait_for("the sandbox", |stats| stats.sandboxes == 1)?;
        Ok([second, third, sandbox])
    };
    let come = come();
    fs::write(LIMIT, before.trim())?;
    let [second, third, sandbox] = come?;
    let log = scheduler.log();
    bench.say(
        log.lines()
            .find(|line| line.contains("watch"))
            .unwrap_or(""),
    );
    Process::spawn_in(&sandbox, |_| burn(ms(5)))?.wait()?;
    let stats = scheduler.stats()?;
    ensure!(stats.arrivals == 1, "{stats:?}");
    let told = scheduler.log().matches("max_user_watches").count();
    ensure!(told == 1, "{told} warnings, not 1");
    drop((sandbox, second, third, first));
    scheduler.finish()
}

fn forks_fail_without_memory(bench: &Bench) -> Result<()> {
    const TRIES: u64 = 500;
    enable_memory_controller()?;
    let group = Cgroup::new("forking")?;
    let scheduler = bench.load_sfs("--slice-us 20000 --no-overload")?;
    let before = scheduler.stats()?;
    let mut forking = Process::spawn_in(&group, |report| {
        // Otherwise one process is killed, and the others get its memory.
        let spared = fs::write("/proc/self/oom_score_adj", "-1000");
        spared.unwrap_or_else(|error| panic!("{error}"));
        let mut stack = vec![1; 64 * 1024];
        while report.value.load(Relaxed) == 0 {
            sleep(ms(1));
        }
        let failed = (0..TRIES).filter(|_| !clone_sleeper(&mut stack)).count();
        report.value.store(failed as u64, Relaxed);
    })?;
    let room = group.number("memory.current")? + (1 << 20);
    group.set("memory.max", &room.to_string())?;
    forking.value.store(1, Relaxed);
    let mut others = Vec::new();
    while !forking.has_ended() {
        ensure!(others.len() < 2000, "the forking process does not end");
        others.push(Process::burner(ms(5))?);
        sleep(ms(10));
    }
    forking.wait()?;
    wait_for_all(&mut others)?;
    group.set("cgroup.kill", "1")?;
    group.set("memory.max", "max")?;
    let failed = forking.value.load(Relaxed);
    let longest = others.iter().map(Process::turnaround).max();
    bench.say(format_args!("{failed} of {TRIES} forks have failed"));
    // On a single CPU they also wait for its credit and its turns in FAIR.
    let limit = if bench.cpus() == 1 { ms(80) } else { ms(40) };
    let longest = longest.context("there were no others")?;
    bench.at_most("others meanwhile", longest, limit)?;
    ensure!(
        failed > TRIES / 2 && failed < TRIES,
        "most forks should fail, not all"
    );
    let stats = scheduler.stats()?;
    let began = stats.arrivals - before.arrivals;
    ensure!(
        began >= TRIES - failed + others.len() as u64 && began < TRIES + others.len() as u64,
        "{stats:?}"
    );
    scheduler.finish()
}

/// Forks a process that sleeps until it is killed. It shares this process's memory, so only
/// the kernel needs memory for it. Returns whether there was enough.
fn clone_sleeper(stack: &mut [u8]) -> bool {
    extern "C" fn sleep_on(_: *mut libc::c_void) -> libc::c_int {
        loop {
            // SAFETY: takes no arguments; returns after a signal.
            unsafe { libc::pause() };
        }
    }
    let flags = libc::CLONE_VM | libc::SIGCHLD;
    let top = stack.as_mut_ptr_range().end.cast();
    // SAFETY: the stack is large enough for one call. All forked processes use the same
    // stack, and each writes the same bytes there.
    unsafe { libc::clone(sleep_on, top, flags, std::ptr::null_mut()) >= 0 }
}

/// Starts the loader in `group`, which accounts for its memory and the kernel half's.
fn start_in(bench: &Bench, group: &Cgroup, options: &[&str], protected: bool) -> Result<Scheduler> {
    let mut entered = Ok(());
    let started = Scheduler::start_prepared(bench.program(), options, |command| {
        entered = put_into(command, group);
        if protected {
            protect_from_oom_killer(command);
        }
    });
    entered.and(started)
}

/// Checks, while there is no memory for contexts, that `limited` keeps a quota: tasks
/// without a context enter it neither by fork nor by a move.
fn keeps_its_quota(bench: &Bench, limited: &Cgroup, sleepers: &[Process]) -> Result<()> {
    const TRIES: usize = 50;
    limited.set("cpu.max", "50000 100000")?;
    let born = || Process::spawn_in(limited, |report| report.burn(Duration::MAX));
    let hogs: Vec<_> = (0..TRIES)
        .map(|_| unless_refused(born()))
        .collect::<Result<_>>()?;
    let hogs: Vec<_> = hogs.into_iter().flatten().collect();
    let last = sleepers.iter().rev().take(TRIES);
    let moved = last.map(|one| unless_refused(limited.take(one.pid())));
    let moved = moved.collect::<Result<Vec<_>>>()?.iter().flatten().count();
    // Short of memory, forks and moves take long inside the kernel, where no quota holds a task.
    sleep(ms(600));
    let before = limited.cpu_time()?;
    sleep(ms(1000));
    let used = limited.cpu_time()? - before;
    bench.say(format_args!(
        "of {TRIES} each, {} were forked into a group with half a CPU, {moved} moved: {used:?} of CPU time in 1 s",
        hogs.len()
    ));
    ensure!(hogs.len() < TRIES && moved < TRIES, "no task was refused");
    // A second can hold the ends of eleven periods, and what the last one is overrun by, up to
    // two ticks on each CPU, is paid later.
    let most = ms(550) + ms(8) * u32::try_from(bench.cpus())?;
    ensure!(used < most, "the quota is not kept");
    Ok(())
}

/// Moves `pid` into a new group, unless there is no memory for the group's context.
fn made_or_refused(group: &str, pid: Pid) -> Result<()> {
    let made = unless_refused(Cgroup::new(group))?;
    made.map_or(Ok(()), |group| group.take(pid))
}

/// Returns the value of `result`, or `None` if there was no memory for it.
fn unless_refused<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if format!("{error:#}").contains("Cannot allocate memory") => Ok(None),
        result => result.map(Some),
    }
}

fn no_memory_for_contexts(bench: &Bench) -> Result<()> {
    // The kernel keeps some free contexts for each CPU.
    let count = 1500 * bench.cpus().max(4) / 4;
    enable_memory_controller()?;
    enable_cpu_controller()?;
    let group = Cgroup::new("loader")?;
    let limited = Cgroup::new("limited")?;
    let options = ["--policy", "learned", "--no-overload", "--ignore-quotas"];
    let scheduler = start_in(bench, &group, &options, true)?;
    fork_every(ms(2), 150)?;
    scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
    let before = scheduler.stats()?;

    let used = group.number("memory.current")?;
    group.set("memory.max", &used.to_string())?;
    // All exist at the same time, so each needs its own context.
    let starve = || -> Result<()> {
        let sleepers = (0..count).map(|number| {
            Process::spawn(move |_| {
                name_self(&format!("sleeper-{number}"));
                sleep(ms(3500));
                burn(ms(1));
            })
        });
        let mut sleepers = sleepers.collect::<Result<Vec<_>>>()?;
        if !scheduler.log().contains(NOT_TOLD) {
            keeps_its_quota(bench, &limited, &sleepers)?;
        }
        made_or_refused("made/meanwhile", sleepers[0].pid())?;
        wait_for_all(&mut sleepers)
    };
    let starved = starve();
    group.set("memory.max", "max")?;
    starved?;
    let stats = scheduler.wait_for("a context missing", |stats| stats.no_context > 0)?;
    bench.say(format_args!(
        "limit {used} bytes: {} of {count} were invocations, {} turns without a context",
        stats.arrivals - before.arrivals,
        stats.no_context
    ));
    let log = scheduler.log();
    for line in log.lines().filter(|line| line.contains("WARN")) {
        bench.say(line.trim());
    }
    ensure!(state() == "enabled", "sched_ext is {}", state());
    ensure!(
        stats.arrivals < before.arrivals + count as u64,
        "all of them had a context"
    );

    sleep(ms(100));
    let before = scheduler.stats()?;
    let again = (0..100).map(|_| Process::burner(ms(1)));
    wait_for_all(&mut again.collect::<Result<Vec<_>>>()?)?;
    let after = scheduler.stats()?;
    ensure!(after.arrivals == before.arrivals + 100, "{after:?}");
    ensure!(after.no_context == before.no_context, "{after:?}");
    scheduler.finish()
}

fn oom_killer_ends_the_loader(bench: &Bench) -> Result<()> {
    enable_memory_controller()?;
    let group = Cgroup::new("loader")?;
    let scheduler = start_in(bench, &group, &["--slice-us", "5000"], false)?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    group.set("memory.max", "1M")?;
    let (status, _) = scheduler.wait_for_end()?;
    bench.say(format_args!("the loader: {status}"));
    ensure!(
        status.code().is_none(),
        "the loader was not killed: {status}"
    );
    let before: Vec<_> = hogs.iter().map(|one| one.cpu()).collect();
    let mut all = hogs.iter().zip(before);
    let go_on = all.all(|(one, cpu)| wait_until(PATIENCE, || one.cpu() > cpu));
    ensure!(go_on, "a task no longer runs");
    drop(hogs);

    group.set("memory.max", "max")?;
    let scheduler = start_in(bench, &group, &[], false)?;
    Process::burner(ms(5))?.wait()?;
    scheduler.wait_for("an invocation", |stats| stats.completions > 0)?;
    scheduler.finish()
}

fn too_little_memory_to_load(bench: &Bench) -> Result<()> {
    enable_memory_controller()?;
    let group = Cgroup::new("loader")?;
    let mut loaded = 0;
    for mebibytes in [2, 4, 8, 12, 16, 20, 24, 32, 48, 64] {
        group.set("memory.max", &format!("{mebibytes}M"))?;
        match start_in(bench, &group, &[], false) {
            Ok(scheduler) => {
                bench.say(format_args!("{mebibytes} MiB: loaded"));
                loaded += 1;
                scheduler.finish()?;
            }
            Err(error) => {
                let said = format!("{error:#}");
                let last = said.lines().last().unwrap_or_default();
                bench.say(format_args!("{mebibytes} MiB: {last}"));
                ensure!(!said.contains("panicked"), "the loader panics: {said}");
            }
        }
        let free = wait_until(PATIENCE, || state() == "disabled");
        ensure!(free, "sched_ext is {}", state());
        Process::burner(ms(5))?.wait()?;
    }
    ensure!(loaded > 0, "it does not even load with 64 MiB");
    Ok(())
}
