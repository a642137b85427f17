//! Boundaries: which events begin an invocation, and that each is counted once.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use anyhow::{ensure, Result};

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{burn, ms, sleep};
use sfs_testbed::process::Process;
use sfs_testbed::scheduler::{Scheduler, Stats};
use sfs_testbed::server::{wait_for_answer, Server, Worker};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "warm_sandbox_gets_credit_for_each_request",
        about:
            "a sandbox that accepts 8 requests of 0.75 S begins 8 invocations, and none is demoted",
        run: warm_sandbox_gets_credit_for_each_request,
    },
    Case {
        name: "warm_sandbox_on_tcp",
        about: "the same on a TCP socket",
        run: warm_sandbox_on_tcp,
    },
    Case {
        name: "without_accept_a_sandbox_is_demoted",
        about: "--boundary fork: the requests of a sandbox share one credit",
        run: without_accept_a_sandbox_is_demoted,
    },
    Case {
        name: "back_to_back_requests",
        about: "each request that waits in the backlog is its own invocation",
        run: back_to_back_requests,
    },
    Case {
        name: "accept_by_one_thread_work_by_another",
        about: "an invocation that one thread accepts belongs to its process",
        run: accept_by_one_thread_work_by_another,
    },
    Case {
        name: "demoted_sandbox_serves_the_next_at_once",
        about: "a request to a demoted sandbox does not wait behind FAIR",
        run: demoted_sandbox_serves_the_next_at_once,
    },
    Case {
        name: "exec_is_part_of_its_fork",
        about: "fork and exec are one invocation; a later exec is another",
        run: exec_is_part_of_its_fork,
    },
    Case {
        name: "receive_begins_an_invocation",
        about: "--boundary receive: each message that a process waited for begins an invocation",
        run: receive_begins_an_invocation,
    },
    Case {
        name: "long_sleep_begins_an_invocation",
        about: "--boundary idle: a process has credit again after a long sleep",
        run: long_sleep_begins_an_invocation,
    },
    Case {
        name: "threads_may_be_units",
        about: "--unit thread: threads do not share credit",
        run: threads_may_be_units,
    },
];

/// S of these cases, and the CPU time of a request: one fits in S, two do not.
const LOAD: &str = "--slice-us 40000 --no-overload";
const DEMAND: Duration = ms(30);

fn load(bench: &Bench, options: &str) -> Result<Scheduler> {
    bench.load_sfs(&format!("{LOAD} {options}"))
}

/// Expects that `count` invocations have begun by accept since `before`, and no others, and
/// that none was demoted.
fn expect_accepted(scheduler: &Scheduler, before: &Stats, count: u64) -> Result<()> {
    let after = scheduler.stats()?;
    let accepted = after.begun_by_accept - before.begun_by_accept;
    ensure!(accepted == count, "{accepted} begun by accept, not {count}");
    let arrivals = after.arrivals - before.arrivals;
    ensure!(arrivals == count, "{arrivals} arrivals, not {count}");
    ensure!(after.demotions == before.demotions, "one was demoted");
    Ok(())
}

fn serve_requests(server: &Server, scheduler: &Scheduler) -> Result<()> {
    let before = scheduler.stats()?;
    for _ in 0..8 {
        server.call()?;
        sleep(ms(5));
    }
    expect_accepted(scheduler, &before, 8)?;
    let after = scheduler.stats()?;
    // The last one ends at the accept that follows it.
    let ended = after.completions_in_credit - before.completions_in_credit;
    ensure!(ended == 8, "{ended} ended within their credit, not 8");
    Ok(())
}

fn warm_sandbox_gets_credit_for_each_request(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "")?;
    let server = Server::start(DEMAND, Worker::Acceptor)?;
    serve_requests(&server, &scheduler)?;
    drop(server);
    scheduler.finish()
}

fn warm_sandbox_on_tcp(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--boundary accept")?;
    let server = Server::start_tcp(DEMAND)?;
    serve_requests(&server, &scheduler)?;
    drop(server);
    scheduler.finish()
}

fn without_accept_a_sandbox_is_demoted(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--boundary fork")?;
    let server = Server::start(DEMAND, Worker::Acceptor)?;
    let before = scheduler.stats()?;
    for _ in 0..4 {
        server.call()?;
    }
    let after = scheduler.stats()?;
    ensure!(
        after.arrivals == before.arrivals,
        "another invocation began"
    );
    let demotions = after.demotions - before.demotions;
    ensure!(demotions == 1, "{demotions} demotions, not 1");
    drop(server);
    scheduler.finish()
}

fn back_to_back_requests(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "")?;
    let server = Server::start(DEMAND, Worker::Acceptor)?;
    let before = scheduler.stats()?;
    let requests = (0..6).map(|_| server.request());
    let requests = requests.collect::<Result<Vec<_>>>()?;
    for request in requests {
        wait_for_answer(request)?;
    }
    sleep(ms(20));
    expect_accepted(&scheduler, &before, 6)?;
    drop(server);
    scheduler.finish()
}

fn accept_by_one_thread_work_by_another(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "")?;
    let server = Server::start(DEMAND, Worker::Thread)?;
    let before = scheduler.stats()?;
    for _ in 0..6 {
        server.call()?;
    }
    expect_accepted(&scheduler, &before, 6)?;
    drop(server);
    scheduler.finish()
}

fn demoted_sandbox_serves_the_next_at_once(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "")?;
    let server = Server::start(ms(120), Worker::Acceptor)?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let before = scheduler.stats()?;
    for _ in 0..3 {
        server.call()?;
    }
    let after = scheduler.stats()?;
    let demotions = after.demotions - before.demotions;
    ensure!(demotions == 3, "{demotions} of 3 requests were demoted");
    let arrivals = after.arrivals - before.arrivals;
    ensure!(arrivals == 3, "{arrivals} arrivals, not 3");
    let longest = Duration::from_micros(after.queue_delay_max_us);
    bench.at_most("longest wait in FILTER", longest, ms(30))?;
    drop((server, hogs));
    scheduler.finish()
}

fn exec_is_part_of_its_fork(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--boundary fork,exec")?;
    let run = |first: Duration| {
        Process::spawn(move |_| {
            burn(first);
            let error = Command::new("/bin/sh").args(["-c", ":"]).exec();
            panic!("cannot exec: {error}");
        })
    };
    run(Duration::ZERO)?.wait()?;
    let early = scheduler.stats()?;
    ensure!((early.arrivals, early.merged) == (1, 1), "{early:?}");
    run(ms(20))?.wait()?;
    let late = scheduler.stats()?;
    ensure!(late.arrivals == 3, "{} arrivals, not 3", late.arrivals);
    ensure!(late.begun_by_exec == 1, "{late:?}");
    ensure!(late.completions == 3, "{} completions", late.completions);
    scheduler.finish()
}

/// Starts a process that answers messages on a connection and burns `demand` for each.
fn puller(mut connection: UnixStream, demand: Duration) -> Result<Process> {
    Process::spawn(move |_| {
        while connection.read_exact(&mut [0]).is_ok() {
            burn(demand);
            if connection.write_all(b"!").is_err() {
                return;
            }
        }
    })
}

fn receive_begins_an_invocation(bench: &Bench) -> Result<()> {
    for (boundary, begun, demoted) in [("fork,receive", 5, 0), ("fork", 0, 1)] {
        let scheduler = load(bench, &format!("--boundary {boundary}"))?;
        let (mut here, there) = UnixStream::pair()?;
        let process = puller(there, DEMAND)?;
        sleep(ms(20));
        for _ in 0..6 {
            here.write_all(b"?")?;
            here.read_exact(&mut [0])?;
            sleep(ms(5));
        }
        let stats = scheduler.stats()?;
        // The first belongs to the fork just before.
        ensure!(stats.begun_by_receive == begun, "{stats:?}");
        ensure!(stats.demotions == demoted, "{stats:?}");
        drop(process);
        scheduler.finish()?;
    }
    Ok(())
}

fn long_sleep_begins_an_invocation(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--boundary fork,idle --idle-boundary-ms 50")?;
    let mut process = Process::spawn(|_| {
        for _ in 0..4 {
            burn(DEMAND);
            sleep(ms(100));
        }
        // Short sleeps begin no invocation.
        for _ in 0..4 {
            burn(DEMAND);
            sleep(ms(5));
        }
    })?;
    process.wait()?;
    let stats = scheduler.stats()?;
    ensure!(stats.begun_by_idle == 4, "{stats:?}");
    ensure!(stats.arrivals == 5, "{} arrivals, not 5", stats.arrivals);
    ensure!(stats.demotions == 1, "{} demotions, not 1", stats.demotions);
    scheduler.finish()
}

fn threads_may_be_units(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "--unit thread --boundary fork")?;
    let mut process = Process::spawn(|_| {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| burn(DEMAND)))
            .collect();
        for thread in threads {
            thread.join().unwrap_or_default();
        }
    })?;
    process.wait()?;
    let stats = scheduler.stats()?;
    ensure!(stats.arrivals == 5, "{} arrivals, not 5", stats.arrivals);
    ensure!(stats.demotions == 0, "{} demotions", stats.demotions);
    ensure!(stats.completions == 5, "{} ended", stats.completions);
    scheduler.finish()
}
