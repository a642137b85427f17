//! What is full: ring buffers, maps, memory. The scheduler counts it and goes on, or
//! the machine is back on its default scheduler.

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::case::{Bench, Case};
use crate::cases::groups::NOT_TOLD;
use crate::cgroup::{enable_cpu_controller, enable_memory_controller, Cgroup};
use crate::clock::{burn, ms, sleep, wait_until};
use crate::process::{fork_every, wait_for_all, Process, PATIENCE};
use crate::scheduler::{state, Scheduler, Stats};
use crate::surroundings::{protect_from_oom_killer, put_into};

pub const CASES: &[Case] = &[
    Case {
        name: "full_ring_buffers_lose_events_only",
        about: "12,000 invocations while the loader is stopped: what is lost is counted",
        run: full_ring_buffers_lose_events_only,
    },
    Case {
        name: "more_functions_than_are_remembered",
        about: "more names than the map of functions and the loader have room for",
        run: more_functions_than_are_remembered,
    },
    Case {
        name: "sandboxes_beyond_the_limit_wait",
        about: "--max-sandboxes: what does not fit is no function until another goes",
        run: sandboxes_beyond_the_limit_wait,
    },
    Case {
        name: "folders_that_cannot_be_watched",
        about: "inotify's limit is reached: a warning, and the others are served",
        run: folders_that_cannot_be_watched,
    },
    Case {
        name: "no_memory_for_contexts",
        about: "tasks that there is no memory for run in FAIR, counted; later ones are fine",
        run: no_memory_for_contexts,
    },
    Case {
        name: "forks_fail_without_memory",
        about: "a sandbox at its limit cannot fork, again and again: nobody else notices",
        run: forks_fail_without_memory,
    },
    Case {
        name: "oom_killer_ends_the_loader",
        about: "the machine is back on EEVDF at once, and loading again works",
        run: oom_killer_ends_the_loader,
    },
    Case {
        name: "too_little_memory_to_load",
        about: "nothing stays loaded, and the machine goes on",
        run: too_little_memory_to_load,
    },
];

/// Has a process of its own begin and end `count` invocations by accept, one after
/// another; `before` each. They take microseconds.
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
    // Of 32 bytes each, in 256 and 64 KiB.
    const COMPLETIONS: u64 = 8191;
    const EVENTS: u64 = 2047;
    let scheduler = bench.load("--policy learned --no-overload --iat-window 2")?;
    scheduler.signal(Signal::SIGSTOP)?;
    invocations(COUNT, |_| {})?.wait()?;
    let mut short = Process::burner(ms(5))?;
    short.wait()?;
    bench.at_most("a short process meanwhile", short.turnaround(), ms(60))?;

    scheduler.signal(Signal::SIGCONT)?;
    let stats = scheduler.wait_for("the learned", |stats| stats.rank_tables > 0)?;
    let lost = COUNT - COMPLETIONS + COUNT / 2 - EVENTS;
    bench.say(format_args!(
        "{} completions, {} events lost",
        stats.completions, stats.lost_events
    ));
    ensure!(stats.completions >= COUNT, "{stats:?}");
    ensure!(
        (lost..lost + 20).contains(&stats.lost_events),
        "not about {lost} are lost"
    );

    let functions = stats.functions;
    invocations(1000, |number| name_self(&format!("new-{number}")))?.wait()?;
    let stats = scheduler.wait_for("what is new", |stats| stats.functions >= functions + 1000)?;
    ensure!((lost..lost + 20).contains(&stats.lost_events), "{stats:?}");
    scheduler.finish()
}

/// Changes the name of the calling process, by which its function is known.
fn name_self(name: &str) {
    let mut bytes = [0u8; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: the name is 16 bytes long and ends with 0.
    unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
}

fn more_functions_than_are_remembered(bench: &Bench) -> Result<()> {
    // The map has 16,384, the loader 100,000.
    const COUNT: u64 = 102_000;
    const REMEMBERED: u64 = 100_000;
    bench.needs_two_cpus()?;
    let scheduler = bench.load("--policy learned --no-overload")?;
    let mut many = invocations(COUNT, |number| name_self(&format!("fn-{number}")))?;
    let done = wait_until(4 * PATIENCE, || many.has_ended());
    ensure!(done, "they take too long");
    many.wait()?;
    // Those whose event was lost are made up for by as many others.
    let told = |stats: &Stats| stats.functions + stats.lost_events >= REMEMBERED;
    let lost = scheduler.wait_for("all", told)?.lost_events;
    invocations(lost, |number| name_self(&format!("late-{number}")))?.wait()?;
    let stats = scheduler.wait_for("all", |stats| stats.functions >= REMEMBERED)?;
    bench.say(format_args!(
        "{} functions, {} rank tables, {} events lost, the loader has used {:?}",
        stats.functions,
        stats.rank_tables,
        stats.lost_events,
        scheduler.cpu_time()?
    ));
    ensure!(stats.functions == REMEMBERED, "{stats:?}");
    ensure!(stats.completions >= COUNT, "{stats:?}");
    // One of the first, long forgotten, is a function like any other.
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
    let scheduler = bench.load(options)?;
    // The first two of them are in. Of several that come together any may be first.
    let mut sandboxes: Vec<Cgroup> = (0..2).map(make).collect::<Result<_>>()?;
    scheduler.wait_for("the first two", |stats| stats.sandboxes == 2)?;
    for number in 2..6 {
        sandboxes.push(make(number)?);
    }
    let stats = scheduler.wait_for("all", |stats| stats.sandboxes == 6)?;
    ensure!(stats.sandboxes_left_out == 4, "{stats:?}");
    let log = scheduler.log();
    bench.say(log.lines().find(|line| line.contains("room")).unwrap_or(""));
    let told = log.matches("--max-sandboxes makes more room").count();
    ensure!(told == 1, "that is told {told} times: {log}");

    let run_in = |sandbox: &Cgroup| Process::spawn_in(sandbox, |_| burn(ms(10)))?.wait();
    run_in(&sandboxes[0])?;
    run_in(&sandboxes[5])?;
    let stats = scheduler.stats()?;
    ensure!(
        stats.arrivals == 1,
        "only the first is a function: {stats:?}"
    );
    // One that was left out goes, then the two that are in, and one by one the
    // others get in.
    for gone in [2, 0, 0] {
        sandboxes.remove(gone).remove()?;
    }
    let stats = scheduler.wait_for("three", |stats| stats.sandboxes == 3)?;
    ensure!(stats.sandboxes_left_out == 1, "{stats:?}");
    run_in(&sandboxes[0])?;
    run_in(&sandboxes[1])?;
    run_in(&sandboxes[2])?;
    let stats = scheduler.stats()?;
    ensure!(stats.arrivals == 3, "two more are functions: {stats:?}");
    sandboxes.remove(0).remove()?;
    scheduler.wait_for("room", |stats| stats.sandboxes_left_out == 0)?;
    run_in(&sandboxes[1])?;
    let stats = scheduler.stats()?;
    ensure!(stats.arrivals == 4, "now the last one is: {stats:?}");
    scheduler.finish()?;

    // There are more than fit from the start.
    sandboxes.push(make(7)?);
    let scheduler = bench.load(options)?;
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
    let scheduler = bench.load("--no-overload --cgroup tenants/*/*")?;
    let before = fs::read_to_string(LIMIT).context("there is no limit")?;
    // The root, tenants and tenants/first are watched.
    fs::write(LIMIT, "3")?;
    let come = || -> Result<[Cgroup; 3]> {
        let second = Cgroup::new("tenants/second/unseen")?;
        let warned = wait_until(PATIENCE, || scheduler.log().contains("max_user_watches"));
        ensure!(warned, "it does not say so: {}", scheduler.log());
        let third = Cgroup::new("tenants/third/unseen")?;
        // The loader has seen what has come before as well when it has seen this one.
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
    ensure!(told == 1, "that is told {told} times");
    drop((sandbox, second, third, first));
    scheduler.finish()
}

fn forks_fail_without_memory(bench: &Bench) -> Result<()> {
    const TRIES: u64 = 500;
    enable_memory_controller()?;
    let group = Cgroup::new("forking")?;
    let scheduler = bench.load("--slice-us 20000 --no-overload")?;
    let before = scheduler.stats()?;
    let mut forking = Process::spawn_in(&group, |report| {
        // Else one of them goes, and the others have its memory.
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
        ensure!(others.len() < 2000, "it does not end");
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
    // On a single CPU they wait for its credit, and for its turns in FAIR, as well.
    let limit = if bench.cpus() == 1 { ms(80) } else { ms(40) };
    let longest = longest.context("there are none")?;
    bench.at_most("others meanwhile", longest, limit)?;
    ensure!(failed > TRIES / 2 && failed < TRIES, "most should, not all");
    let stats = scheduler.stats()?;
    let began = stats.arrivals - before.arrivals;
    ensure!(
        began >= TRIES - failed + others.len() as u64 && began < TRIES + others.len() as u64,
        "{stats:?}"
    );
    scheduler.finish()
}

/// Forks a process that sleeps until it is killed. It shares the memory of this one, so
/// that only the kernel needs some for it. Returns whether there was enough.
fn clone_sleeper(stack: &mut [u8]) -> bool {
    extern "C" fn sleep_on(_: *mut libc::c_void) -> libc::c_int {
        loop {
            // SAFETY: returns when a signal has come, and takes nothing.
            unsafe { libc::pause() };
        }
    }
    let flags = libc::CLONE_VM | libc::SIGCHLD;
    let top = stack.as_mut_ptr_range().end.cast();
    // SAFETY: the stack is large enough for one call. All that are forked use the same:
    // each writes there what the one before has written.
    unsafe { libc::clone(sleep_on, top, flags, std::ptr::null_mut()) >= 0 }
}

/// Starts the loader in a group of its own, which keeps account of its memory and of
/// the kernel half's.
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

/// Gives `limited` a quota, while there is no memory for contexts: who has none gets in there
/// neither by birth nor by a move.
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
    sleep(ms(200));
    let before = limited.cpu_time()?;
    sleep(ms(1000));
    let used = limited.cpu_time()? - before;
    bench.say(format_args!(
        "of {TRIES} each, {} were born into a group with half a CPU, {moved} moved: {used:?} of CPU in 1 s",
        hogs.len()
    ));
    ensure!(hogs.len() < TRIES && moved < TRIES, "none was refused");
    ensure!(used < ms(550), "the quota is not kept");
    Ok(())
}

/// Moves `pid` into a new group; where there is no memory for what is known of the group,
/// there is none.
fn made_or_refused(group: &str, pid: Pid) -> Result<()> {
    let made = unless_refused(Cgroup::new(group))?;
    made.map_or(Ok(()), |group| group.take(pid))
}

/// Returns what has come of it; `None` if there was no memory for it.
fn unless_refused<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if format!("{error:#}").contains("Cannot allocate memory") => Ok(None),
        result => result.map(Some),
    }
}

fn no_memory_for_contexts(bench: &Bench) -> Result<()> {
    // The kernel keeps some for each CPU.
    let count = 1500 * bench.cpus().max(4) / 4;
    enable_memory_controller()?;
    enable_cpu_controller()?;
    let group = Cgroup::new("loader")?;
    let limited = Cgroup::new("limited")?;
    let options = ["--policy", "learned", "--no-overload", "--ignore-quotas"];
    let scheduler = start_in(bench, &group, &options, true)?;
    fork_every(ms(2), 150)?;
    scheduler.wait_for("ranks", |stats| stats.rank_tables > 0)?;
    let before = scheduler.stats()?;

    let used = group.number("memory.current")?;
    group.set("memory.max", &used.to_string())?;
    // All of them there at the same time, so that each needs a context of its own.
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
        "{used} bytes were all: {} of {count} were invocations, {} turns without a context",
        stats.arrivals - before.arrivals,
        stats.no_context
    ));
    let log = scheduler.log();
    for line in log.lines().filter(|line| line.contains("WARN")) {
        bench.say(line.trim());
    }
    ensure!(state() == "enabled", "it is {}", state());
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
    ensure!(status.code().is_none(), "it was not killed: {status}");
    let before: Vec<_> = hogs.iter().map(|one| one.cpu()).collect();
    let mut all = hogs.iter().zip(before);
    let go_on = all.all(|(one, cpu)| wait_until(PATIENCE, || one.cpu() > cpu));
    ensure!(go_on, "a task does not run any more");
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
                ensure!(!said.contains("panicked"), "it panics: {said}");
            }
        }
        let free = wait_until(PATIENCE, || state() == "disabled");
        ensure!(free, "it is {}", state());
        Process::burner(ms(5))?.wait()?;
    }
    ensure!(loaded > 0, "it does not load with 64 MiB either");
    Ok(())
}
