//! Sandboxes: control groups as functions and as units.

use std::sync::atomic::Ordering::Relaxed;

use anyhow::{ensure, Result};
use nix::unistd::Pid;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::Cgroup;
use sfs_testbed::clock::{burn, ms, wait_until, PATIENCE};
use sfs_testbed::process::{set_policy, wait_for_all, Process};
use sfs_testbed::scheduler::Scheduler;
use sfs_testbed::server::{Server, Worker};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "only_sandboxes_are_functions",
        about:
            "--cgroup: a process outside of sandboxes has no credit; one that is moved in gets it",
        run: only_sandboxes_are_functions,
    },
    Case {
        name: "sandbox_subtree_belongs_to_it",
        about: "a cgroup below a sandbox is part of it",
        run: sandbox_subtree_belongs_to_it,
    },
    Case {
        name: "children_share_a_sandboxs_credit",
        about: "a fork gives no new credit with --unit cgroup, and does with --unit process",
        run: children_share_a_sandboxs_credit,
    },
    Case {
        name: "children_serve_the_requests_of_a_sandbox",
        about: "--unit cgroup: a child forked for a request uses the credit of the accept",
        run: children_serve_the_requests_of_a_sandbox,
    },
    Case {
        name: "sandboxes_are_apart",
        about: "--unit cgroup: CPU time of one sandbox is not charged to another",
        run: sandboxes_are_apart,
    },
    Case {
        name: "empty_sandbox_starts_anew",
        about: "--unit cgroup: after all processes have left, the next one is a new invocation",
        run: empty_sandbox_starts_anew,
    },
    Case {
        name: "real_time_exit_empties_its_sandbox",
        about: "--unit cgroup: the same if the last process ends as a SCHED_FIFO task",
        run: real_time_exit_empties_its_sandbox,
    },
    Case {
        name: "moved_out_is_no_function",
        about: "the invocation of a running process ends when it is moved out of its sandbox",
        run: moved_out_is_no_function,
    },
    Case {
        name: "moved_out_threads_are_no_functions",
        about: "--unit thread: so do the invocations of all threads of a process",
        run: moved_out_threads_are_no_functions,
    },
    Case {
        name: "a_thousand_sandboxes",
        about: "the loader follows 1,000 sandboxes that are made, used (one in ten) and removed",
        run: a_thousand_sandboxes,
    },
];

const SLICE: &str = "--slice-us 40000 --no-overload";

fn load(bench: &Bench, options: &str) -> Result<Scheduler> {
    bench.load_sfs(&format!("{SLICE} --cgroup functions/* {options}"))
}

/// Starts a process, moves it into `sandbox`, and lets it do `work` there.
fn in_sandbox(sandbox: &Cgroup, work: impl FnOnce()) -> Result<Process> {
    let process = Process::spawn(|report| {
        wait_until(PATIENCE, || report.value.load(Relaxed) == 1);
        work();
    })?;
    sandbox.take(process.pid())?;
    process.value.store(1, Relaxed);
    Ok(process)
}

fn only_sandboxes_are_functions(bench: &Bench) -> Result<()> {
    let early = Cgroup::new("functions/early")?;
    let scheduler = load(bench, "")?;
    let late = Cgroup::new("functions/late")?;
    scheduler.wait_for("two sandboxes", |stats| stats.sandboxes == 2)?;

    Process::burner(ms(60))?.wait()?;
    let stats = scheduler.stats()?;
    ensure!((stats.arrivals, stats.demotions) == (0, 0), "{stats:?}");
    for (sandbox, number) in [(&early, 1), (&late, 2)] {
        in_sandbox(sandbox, || burn(ms(60)))?.wait()?;
        let stats = scheduler.stats()?;
        ensure!(stats.arrivals == number, "{stats:?}");
        ensure!(stats.demotions == number, "{stats:?}");
        ensure!(stats.completions == number, "{stats:?}");
    }
    scheduler.finish()
}

fn sandbox_subtree_belongs_to_it(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--unit cgroup")?;
    let sandbox = Cgroup::new("functions/f")?;
    let inner = Cgroup::new(&format!("functions/f/system/app{}", "/n".repeat(20)))?;
    scheduler.wait_for("the sandbox", |stats| stats.sandboxes == 1)?;
    let mut one = in_sandbox(&sandbox, || burn(ms(30)))?;
    let mut two = in_sandbox(&inner, || burn(ms(30)))?;
    one.wait()?;
    two.wait()?;
    let stats = scheduler.stats()?;
    ensure!((stats.arrivals, stats.demotions) == (1, 1), "{stats:?}");
    scheduler.finish()
}

/// Runs three children that burn 20 ms each, one after another.
fn family() -> Result<()> {
    for _ in 0..3 {
        Process::burner(ms(20))?.wait()?;
    }
    Ok(())
}

fn children_share_a_sandboxs_credit(bench: &Bench) -> Result<()> {
    for (unit, arrivals, demotions) in [("cgroup", 1, 1), ("process", 4, 0)] {
        let scheduler = load(bench, &format!("--unit {unit}"))?;
        let sandbox = Cgroup::new("functions/f")?;
        scheduler.wait_for("the sandbox", |stats| stats.sandboxes == 1)?;
        let mut parent = in_sandbox(&sandbox, || {
            family().unwrap_or_else(|error| panic!("{error:#}"));
        })?;
        parent.wait()?;
        let stats = scheduler.stats()?;
        ensure!(stats.arrivals == arrivals, "--unit {unit}: {stats:?}");
        ensure!(stats.demotions == demotions, "--unit {unit}: {stats:?}");
        ensure!(stats.completions == arrivals, "--unit {unit}: {stats:?}");
        scheduler.finish()?;
    }
    Ok(())
}

fn children_serve_the_requests_of_a_sandbox(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--unit cgroup")?;
    let sandbox = Cgroup::new("functions/f")?;
    scheduler.wait_for("the sandbox", |stats| stats.sandboxes == 1)?;
    let server = Server::start(ms(30), Worker::Child)?;
    sandbox.take(server.pid())?;
    server.call()?; // the server is in the sandbox from its next wake-up on
    let before = scheduler.stats()?;
    for _ in 0..5 {
        server.call()?;
    }
    let after = scheduler.stats()?;
    let arrivals = after.arrivals - before.arrivals;
    ensure!(arrivals == 5, "{arrivals} arrivals, not 5");
    ensure!(after.demotions == before.demotions, "one was demoted");
    drop(server);
    scheduler.finish()
}

fn sandboxes_are_apart(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--unit cgroup")?;
    let sandboxes = ["a", "b", "c"].map(|name| Cgroup::new(&format!("functions/{name}")));
    let sandboxes = sandboxes.into_iter().collect::<Result<Vec<_>>>()?;
    scheduler.wait_for("the sandboxes", |stats| stats.sandboxes == 3)?;
    let processes = sandboxes
        .iter()
        .map(|sandbox| in_sandbox(sandbox, || burn(ms(30))));
    let mut processes = processes.collect::<Result<Vec<_>>>()?;
    wait_for_all(&mut processes)?;
    let stats = scheduler.stats()?;
    ensure!((stats.arrivals, stats.demotions) == (3, 0), "{stats:?}");
    ensure!(stats.completions_in_credit == 3, "{stats:?}");
    scheduler.finish()
}

fn empty_sandbox_starts_anew(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--unit cgroup")?;
    let sandbox = Cgroup::new("functions/f")?;
    scheduler.wait_for("the sandbox", |stats| stats.sandboxes == 1)?;
    for count in 1..=3 {
        in_sandbox(&sandbox, || burn(ms(30)))?.wait()?;
        let stats = scheduler.stats()?;
        ensure!((stats.arrivals, stats.demotions) == (count, 0), "{stats:?}");
    }
    scheduler.finish()
}

fn real_time_exit_empties_its_sandbox(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--unit cgroup")?;
    let sandbox = Cgroup::new("functions/f")?;
    scheduler.wait_for("the sandbox", |stats| stats.sandboxes == 1)?;
    for count in 1..=3 {
        in_sandbox(&sandbox, || {
            burn(ms(30));
            set_policy(Pid::from_raw(0), libc::SCHED_FIFO)
                .expect("cannot become a real-time process");
        })?
        .wait()?;
        let stats = scheduler.stats()?;
        ensure!((stats.arrivals, stats.demotions) == (count, 0), "{stats:?}");
        scheduler.wait_for("its end", |stats| stats.completions == count)?;
    }
    scheduler.finish()
}

fn moved_out_is_no_function(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "")?;
    let sandbox = Cgroup::new("functions/f")?;
    let outside = Cgroup::new("outside")?;
    scheduler.wait_for("the sandbox", |stats| stats.sandboxes == 1)?;
    let process = in_sandbox(&sandbox, || loop {
        burn(ms(5));
        sfs_testbed::clock::sleep(ms(1));
    })?;
    scheduler.wait_for("its demotion", |stats| stats.demotions == 1)?;
    outside.take(process.pid())?;
    let stats = scheduler.wait_for("its end", |stats| stats.completions == 1)?;
    ensure!(stats.arrivals == 1, "{stats:?}");
    // Moved in again, it begins another invocation.
    sandbox.take(process.pid())?;
    scheduler.wait_for("another invocation", |stats| stats.arrivals == 2)?;
    // The sandbox is removed after that.
    outside.take(process.pid())?;
    sandbox.remove()?;
    scheduler.wait_for("no sandbox", |stats| stats.sandboxes == 0)?;
    drop(process);
    scheduler.finish()
}

fn moved_out_threads_are_no_functions(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--unit thread")?;
    let sandbox = Cgroup::new("functions/f")?;
    let outside = Cgroup::new("outside")?;
    scheduler.wait_for("the sandbox", |stats| stats.sandboxes == 1)?;
    let process = in_sandbox(&sandbox, || {
        let work = || loop {
            burn(ms(1));
            sfs_testbed::clock::sleep(ms(1));
        };
        std::thread::spawn(work);
        std::thread::spawn(work);
        work();
    })?;
    scheduler.wait_for("three invocations", |stats| stats.arrivals == 3)?;
    outside.take(process.pid())?;
    scheduler.wait_for("their ends", |stats| stats.completions == 3)?;
    drop(process);
    scheduler.finish()
}

fn a_thousand_sandboxes(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--unit cgroup")?;
    let mut sandboxes = Vec::new();
    for number in 0..1000 {
        sandboxes.push(Cgroup::new(&format!("functions/{number}"))?);
    }
    scheduler.wait_for("1,000 sandboxes", |stats| stats.sandboxes == 1000)?;
    let mut processes = Vec::new();
    for sandbox in sandboxes.iter().step_by(10) {
        processes.push(in_sandbox(sandbox, || burn(ms(1)))?);
    }
    wait_for_all(&mut processes)?;
    let stats = scheduler.stats()?;
    ensure!((stats.arrivals, stats.demotions) == (100, 0), "{stats:?}");
    for sandbox in &sandboxes {
        sandbox.remove()?;
    }
    scheduler.wait_for("no sandbox", |stats| stats.sandboxes == 0)?;
    scheduler.finish()
}
