//! Metrics for Prometheus, from a live scheduler.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};
use nix::sys::signal::Signal;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{ms, sleep, wait_until, PATIENCE};
use sfs_testbed::process::{pin_self, wait_for_all, Process};
use sfs_testbed::scheduler::Scheduler;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "metrics_agree_with_statistics",
        about: "metrics served at a loopback port are those of the statistics, and the turnaround \
                and the queueing delay of two processes on one CPU are what these measured",
        run: metrics_agree_with_statistics,
    },
    Case {
        name: "metrics_cost_nothing_unasked",
        about:
            "while nobody asks for metrics, their thread uses no CPU time; it is an ordinary task",
        run: metrics_cost_nothing_unasked,
    },
    Case {
        name: "metrics_in_a_file",
        about: "metrics at a Unix socket and in a textfile, which is gone at the end",
        run: metrics_in_a_file,
    },
];

/// Returns the text that a server answers to a request for metrics.
fn ask(mut server: impl Read + Write) -> Result<String> {
    server.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut said = String::new();
    server.read_to_string(&mut said)?;
    let (head, body) = said.split_once("\r\n\r\n").context("this is no answer")?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{said}");
    Ok(body.to_owned())
}

/// Returns the sum of a metric's values over all its labels.
fn sum(metrics: &str, name: &str) -> Result<f64> {
    let of_name = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let is_it = rest.starts_with([' ', '{']);
        is_it.then(|| rest.rsplit(' ').next().unwrap_or_default())
    });
    let values: Vec<f64> = of_name
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("{name} has no number"))?;
    ensure!(!values.is_empty(), "there is no {name} in {metrics}");
    Ok(values.iter().sum())
}

fn metrics_agree_with_statistics(bench: &Bench) -> Result<()> {
    const WORK: u64 = 50;
    let scheduler = bench.load("--policy learned --metrics-listen 127.0.0.1:9900")?;
    let cpu = bench.cpus() - 1;
    let burner = || {
        Process::spawn(move |report| {
            pin_self(cpu);
            report.burn(ms(WORK));
        })
    };
    let mut both = [burner()?, burner()?];
    wait_for_all(&mut both)?;
    // The loader takes the last completions once a second.
    sleep(ms(1500));
    let metrics = ask(TcpStream::connect("127.0.0.1:9900")?)?;
    let stats = scheduler.stats()?;
    for (name, expected) in [
        ("arrivals_total", stats.arrivals as f64),
        ("completions_total", stats.completions as f64),
        ("preemptions_total", stats.preemptions as f64),
        ("filter_starts_total", stats.filter_starts as f64),
        ("queue_delay_seconds_count", stats.filter_starts as f64),
        ("slice_seconds", stats.slice_us as f64 / 1e6),
        ("cpus", stats.cpus as f64),
        ("policy_info{policy=\"learned\"}", 1.0),
    ] {
        let found = sum(&metrics, &format!("scx_sfs_{name}"))?;
        ensure!(
            (found - expected).abs() < 1e-9,
            "{name}: {found}, not {expected}"
        );
    }
    let of_functions = |name: &str| sum(&metrics, &format!("scx_sfs_function_{name}"));
    let measured: f64 = both.iter().map(|one| one.turnaround().as_secs_f64()).sum();
    let turnaround = of_functions("turnaround_seconds_sum")?;
    let (count, delay) = (
        of_functions("turnaround_seconds_count")?,
        of_functions("queue_delay_seconds_sum")?,
    );
    let cpu_time = of_functions("cpu_seconds_total")?;
    bench.say(format_args!(
        "{count} ended: turnaround {turnaround:.4} s (they measured {measured:.4}), CPU time \
         {cpu_time:.4} s, queueing delay {delay:.4} s"
    ));
    ensure!((count - 2.0).abs() < 0.5, "{count} have ended");
    // They are measured from a moment before the fork to one before the exit.
    let off = turnaround - measured;
    ensure!(off.abs() < 0.01, "the turnaround is wrong by {off} s");
    ensure!(
        cpu_time >= 2.0 * ms(WORK).as_secs_f64(),
        "the CPU time is wrong"
    );
    // One of them waits for all of the other's work, or both for a part of it.
    ensure!(
        delay >= 0.8 * ms(WORK).as_secs_f64(),
        "the delay is too short"
    );
    ensure!(
        delay + cpu_time < turnaround + 0.005,
        "the delay is too long"
    );
    scheduler.finish()
}

/// Returns the folder of the thread that serves the metrics.
fn thread(scheduler: &Scheduler) -> Result<PathBuf> {
    let tasks = format!("/proc/{}/task", scheduler.pid());
    for task in fs::read_dir(tasks)? {
        let path = task?.path();
        if fs::read_to_string(path.join("comm"))?.trim() == "sfs_metrics" {
            return Ok(path);
        }
    }
    anyhow::bail!("there is no thread for metrics")
}

fn metrics_cost_nothing_unasked(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--metrics-listen 127.0.0.1:9900")?;
    sleep(ms(500));
    let thread = thread(&scheduler)?;
    // Time on a CPU, time in queues, turns.
    let used = || fs::read_to_string(thread.join("schedstat"));
    let before = used()?;
    fork_some()?;
    sleep(ms(3000));
    let after = used()?;
    bench.say(format_args!(
        "schedstat {} and {}",
        before.trim(),
        after.trim()
    ));
    ensure!(before == after, "it has run while nobody asked");
    ask(TcpStream::connect("127.0.0.1:9900")?)?;
    ensure!(used()? != after, "somebody else has answered");
    let stat = fs::read_to_string(thread.join("stat"))?;
    let fields = stat.rsplit_once(')').context("this is no stat")?.1;
    // Fields 40 and 41 of proc(5): real-time priority and policy.
    let policy: Vec<&str> = fields.split_whitespace().skip(37).take(2).collect();
    ensure!(
        policy == ["0", "0"],
        "its priority and policy are {policy:?}"
    );
    scheduler.finish()
}

fn fork_some() -> Result<()> {
    for _ in 0..20 {
        Process::burner(ms(2))?.wait()?;
    }
    Ok(())
}

fn metrics_in_a_file(bench: &Bench) -> Result<()> {
    const FILE: &str = "/tmp/scx_sfs.prom";
    const SOCKET: &str = "/tmp/metrics.sock";
    let scheduler = bench
        .load("--metrics-listen unix:/tmp/metrics.sock --metrics-textfile /tmp/scx_sfs.prom")?;
    let is_there = wait_until(PATIENCE, || Path::new(FILE).exists());
    ensure!(is_there, "there is no file");
    let (file, served) = (
        fs::read_to_string(FILE)?,
        ask(UnixStream::connect(SOCKET)?)?,
    );
    for name in [
        "scx_sfs_cpus",
        "scx_sfs_arrivals_total",
        "scx_sfs_build_info",
    ] {
        ensure!(
            sum(&file, name).is_ok() && sum(&served, name).is_ok(),
            "{name}"
        );
    }
    let (status, log) = scheduler.stop(Signal::SIGINT)?;
    ensure!(status.success(), "{status}: {log}");
    ensure!(!Path::new(FILE).exists(), "the file has stayed");
    Ok(())
}
