//! `scx_sfs explain` and `scx_sfs trace`: each case makes a request slow by a known cause, and
//! expects that they name it, with its time.

use std::ffi::CString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::prctl::set_name;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::{enable_cpu_controller, Cgroup};
use sfs_testbed::clock::{burn, ms, sleep};
use sfs_testbed::process::{pin_self, set_policy, Process};
use sfs_testbed::report::Report;
use sfs_testbed::scheduler::{output_of, NOT_TOLD};
use sfs_testbed::skip::Skip;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "explain_names_rivals",
        about:
            "a request that waits in FAIR: explain names the queue, its time, and who ran instead",
        run: explain_names_rivals,
    },
    Case {
        name: "explain_names_rank",
        about: "a request that waits for earlier ranks: explain names the ranked queue",
        run: explain_names_rank,
    },
    Case {
        name: "explain_names_the_quota",
        about: "a request whose cgroup is out of quota: explain names the cgroup and the time",
        run: explain_names_the_quota,
    },
    Case {
        name: "explain_names_real_time_work",
        about: "a request that a real-time task displaces: explain names the task and the time",
        run: explain_names_real_time_work,
    },
    Case {
        name: "explain_tells_blocked_from_waiting",
        about: "a request that sleeps between two stretches of work: explain gives both times",
        run: explain_tells_blocked_from_waiting,
    },
    Case {
        name: "explain_sees_requests_of_a_server",
        about: "explain tells the requests of one server apart, each from its arrival to its end",
        run: explain_sees_requests_of_a_server,
    },
    Case {
        name: "explain_without_scx_sfs",
        about:
            "under the kernel's own scheduler explain sees waits and runs, and says what it lacks",
        run: explain_without_scx_sfs,
    },
    Case {
        name: "explain_ends_with_the_scheduler",
        about: "explain ends with a sentence when the scheduler is unloaded",
        run: explain_ends_with_the_scheduler,
    },
    Case {
        name: "tracing_needs_root",
        about: "trace and explain tell another user that root is needed, and refuse wrong options",
        run: tracing_needs_root,
    },
    Case {
        name: "trace_has_invocations",
        about: "a trace has the tracks of CPUs and invocations, and is as long as was asked for",
        run: trace_has_invocations,
    },
];

/// A running `scx_sfs explain`. Dropping it ends it.
struct Explain {
    child: Child,
    said: String,
}

impl Explain {
    /// Starts it, and returns when it watches.
    fn start(bench: &Bench, options: &str) -> Result<Self> {
        let mut child = Command::new(bench.program())
            .args(["explain", "--json"])
            .args(options.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start scx_sfs explain")?;
        let errors = child.stderr.take().context("no standard error")?;
        let mut said = String::new();
        for line in BufReader::new(errors).lines() {
            let line = line?;
            said += &line;
            if line.contains("watching") {
                return Ok(Self { child, said });
            }
        }
        child.wait()?;
        anyhow::bail!("explain ended: {said}")
    }

    /// Ends it by `signal`, if any, and returns its report.
    fn report(mut self, signal: Option<Signal>) -> Result<Value> {
        if let Some(signal) = signal {
            kill(Pid::from_raw(self.child.id().cast_signed()), signal)?;
        }
        let out = self.child.stdout.take().context("no standard output")?;
        let report = serde_json::from_reader(out).context("its report is no JSON")?;
        let status = self.child.wait()?;
        ensure!(status.success(), "explain ended with {status}");
        Ok(report)
    }
}

impl Drop for Explain {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[allow(clippy::expect_used, reason = "for children, which fail by a panic")]
fn call_self(name: &str) {
    let name = CString::new(name).expect("a name without NUL");
    set_name(&name).expect("cannot be named");
}

/// Starts a process with a name that does `work` on CPU 0 only.
fn on_first_cpu(name: &str, work: impl FnOnce(&Report)) -> Result<Process> {
    Process::spawn(|report| {
        call_self(name);
        pin_self(0);
        work(report);
    })
}

/// Returns the slow invocations of the function `name`, slowest first.
fn of<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    let slowest = report["slowest"].as_array().into_iter().flatten();
    slowest.filter(|slow| slow["function"] == name).collect()
}

/// The start and the end of a process are parts of its invocation, in ms, and not of its report.
const START_AND_END_MS: f64 = 5.0;

/// A process that is done waits for a turn to exit, for as long as three rivals take theirs, in ms.
const LAST_TURN_MS: f64 = 160.0;

/// Checks what the report says about the slowest invocation of "victim" against what that process
/// measured itself, and returns it.
fn victim<'a>(bench: &Bench, report: &'a Value, process: &Process) -> Result<&'a Value> {
    victim_that_waits(bench, report, process, 0.0)
}

/// The same if it waits up to `exit_ms` before it can exit.
fn victim_that_waits<'a>(
    bench: &Bench,
    report: &'a Value,
    process: &Process,
    exit_ms: f64,
) -> Result<&'a Value> {
    let lost = &report["lost_events"];
    ensure!(lost == 0, "{lost} events lost");
    let victims = of(report, "victim");
    let slow = *victims
        .first()
        .with_context(|| format!("no victim in {report:#}"))?;
    for sentence in slow["sentences"].as_array().into_iter().flatten() {
        bench.say(format_args!("{}", sentence.as_str().unwrap_or_default()));
    }
    let sum_of = |prefix: &str| -> f64 {
        let parts = slow["parts"].as_object().into_iter().flatten();
        let wanted = parts.filter(|(name, _)| name.starts_with(prefix));
        wanted.filter_map(|(_, ms)| ms.as_f64()).sum()
    };
    let (sum, ran) = (sum_of(""), sum_of("running"));
    let took = slow["took_ms"].as_f64().unwrap_or_default();
    ensure!(
        (sum - took).abs() < 0.01,
        "parts of {sum} ms, {took} ms in all"
    );
    let in_ms = |time: Duration| time.as_secs_f64() * 1e3;
    for (what, ours, its, more) in [
        ("time", took, in_ms(process.turnaround()), exit_ms),
        ("CPU time", ran, in_ms(process.cpu()), 0.0),
    ] {
        bench.say(format_args!(
            "{what} {ours:.1} ms, by its own measurement {its:.1} ms"
        ));
        let bounds = its - START_AND_END_MS..its + START_AND_END_MS + more;
        ensure!(bounds.contains(&ours), "{what} differs");
    }
    Ok(slow)
}

/// Expects that the invocation did this for about so many ms.
fn expect_part(slow: &Value, part: &str, least: f64, most: f64) -> Result<()> {
    let ms = slow["parts"][part].as_f64().unwrap_or_default();
    ensure!(
        (least..=most).contains(&ms),
        "{part}: {ms} ms, not {least} to {most}"
    );
    Ok(())
}

/// Expects that `name` used most of the CPU time in this list.
fn expect_first(list: &Value, name: &str, class: &str, invocations: u64) -> Result<()> {
    let first = &list[0];
    ensure!(
        first["name"] == name && first["class"] == class && first["invocations"] == invocations,
        "{first}, not {invocations} of the {class} {name}"
    );
    let share = first["share"].as_f64().unwrap_or_default();
    ensure!(share > 0.85, "{name} has {share} of the CPU only");
    Ok(())
}

/// Three rivals on one CPU, then a request of 100 ms: it gets a quarter of the CPU.
fn explain_names_rivals(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy sfs --slice-us 1000 --no-overload")?;
    let rival = || on_first_cpu("rival", |report| report.burn(Duration::MAX));
    let rivals = (0..3).map(|_| rival()).collect::<Result<Vec<_>>>()?;
    scheduler.wait_for("the rivals' demotion", |stats| stats.demotions >= 3)?;
    let explain = Explain::start(bench, "--slower-than 100ms")?;
    let mut process = on_first_cpu("victim", |report| report.burn(ms(100)))?;
    process.wait()?;
    let report = explain.report(Some(Signal::SIGINT))?;
    drop(rivals);
    let slow = victim_that_waits(bench, &report, &process, LAST_TURN_MS)?;
    // A quarter of the CPU, give or take a turn of each rival and the last turn.
    expect_part(slow, "queued_fair", 200.0, 360.0 + LAST_TURN_MS)?;
    expect_part(slow, "running_fair", 90.0, 110.0)?;
    ensure!(slow["cpus"] == 1, "{} CPUs", slow["cpus"]);
    ensure!(slow["finished"] == true, "it has ended");
    expect_first(&slow["ran_instead"], "rival", "function", 3)?;
    scheduler.finish()
}

/// The victim has had more CPU time than requests that come every 20 ms.
fn explain_names_rank(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy learned")?;
    let explain = Explain::start(bench, "--slower-than 50ms --top 5")?;
    let mut process = on_first_cpu("victim", |report| report.burn(ms(150)))?;
    sleep(ms(40));
    let mut short = Vec::new();
    for _ in 0..10 {
        short.push(on_first_cpu("short", |report| report.burn(ms(10)))?);
        sleep(ms(20));
    }
    process.wait()?;
    drop(short);
    let report = explain.report(Some(Signal::SIGTERM))?;
    let slow = victim(bench, &report, &process)?;
    expect_part(slow, "queued_ranked", 60.0, 160.0)?;
    expect_part(slow, "running_ranked", 140.0, 160.0)?;
    ensure!(slow["ran_instead"][0]["name"] == "short", "{slow:#}");
    scheduler.finish()
}

/// 20 ms in each 100 ms: a request of 100 ms is parked for four times 80 ms, or for less in the
/// first period, of which a part is over when the request arrives.
fn explain_names_the_quota(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = bench.load("--policy sfs --slice-us 1000 --no-overload")?;
    if scheduler.log().contains(NOT_TOLD) {
        scheduler.finish()?;
        return Err(Skip("this kernel does not tell a scheduler of cpu.max").into());
    }
    let above = Cgroup::new("limited")?;
    above.set("cgroup.subtree_control", "+cpu")?;
    let group = Cgroup::new("limited/victims")?;
    group.set("cpu.max", "20000 100000")?;
    let explain = Explain::start(bench, "--slower-than 100ms --cgroup limited/*")?;
    let mut process = Process::spawn_in(&group, |report| {
        call_self("victim");
        report.burn(ms(100));
    })?;
    process.wait()?;
    let report = explain.report(Some(Signal::SIGINT))?;
    ensure!(report["ended"] == 1, "other cgroups count: {report:#}");
    let slow = victim(bench, &report, &process)?;
    expect_part(slow, "parked", 230.0, 340.0)?;
    ensure!(
        slow["parked_by"] == "limited/victims",
        "{}",
        slow["parked_by"]
    );
    ensure!(slow["cgroup"] == "limited/victims", "{}", slow["cgroup"]);
    scheduler.finish()
}

/// A real-time task takes the only CPU of a request for 150 ms.
fn explain_names_real_time_work(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("")?;
    let explain = Explain::start(bench, "--slower-than 50ms")?;
    let mut process = on_first_cpu("victim", |report| report.burn(ms(100)))?;
    sleep(ms(30));
    let mut pump = on_first_cpu("pump", |_| {
        // The case fails if it does not become one.
        if set_policy(Pid::from_raw(0), libc::SCHED_FIFO).is_ok() {
            sleep(ms(1)); // it comes back as a real-time task
            burn(ms(150));
        }
    })?;
    process.wait()?;
    pump.wait()?;
    let report = explain.report(Some(Signal::SIGINT))?;
    let slow = victim(bench, &report, &process)?;
    expect_part(slow, "displaced", 140.0, 170.0)?;
    expect_first(&slow["displaced_by"], "pump", "real_time", 0)?;
    scheduler.finish()
}

fn explain_tells_blocked_from_waiting(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("")?;
    let explain = Explain::start(bench, "--slower-than 100ms --top 1")?;
    let mut process = on_first_cpu("victim", |report| {
        report.burn(ms(30));
        sleep(ms(200));
        report.burn(ms(30));
    })?;
    process.wait()?;
    let report = explain.report(Some(Signal::SIGINT))?;
    let slow = victim(bench, &report, &process)?;
    expect_part(slow, "blocked", 198.0, 206.0)?;
    expect_part(slow, "running_ranked", 55.0, 70.0)?;
    scheduler.finish()
}

/// Two requests to one process, which sleeps in between.
fn explain_sees_requests_of_a_server(bench: &Bench) -> Result<()> {
    use sfs_testbed::server::{Server, Worker};
    let scheduler = bench.load("")?;
    let explain = Explain::start(bench, "--slower-than 25ms --top 5")?;
    let server = Server::start(ms(30), Worker::Acceptor)?;
    for _ in 0..2 {
        sleep(ms(100));
        server.call()?;
    }
    sleep(ms(20)); // the request ends when the server asks for the next one
    let report = explain.report(Some(Signal::SIGINT))?;
    let pid = server.pid().as_raw();
    let slowest = report["slowest"].as_array().into_iter().flatten();
    let requests: Vec<&Value> = slowest
        .filter(|slow| slow["pid"] == pid && slow["finished"] == true)
        .collect();
    for request in &requests {
        bench.say(format_args!("{request}"));
    }
    ensure!(requests.len() == 2, "{} requests: {report}", requests.len());
    for request in requests {
        let took = request["took_ms"].as_f64().unwrap_or_default();
        ensure!((30.0..40.0).contains(&took), "a request took {took} ms");
    }
    scheduler.finish()
}

fn explain_without_scx_sfs(bench: &Bench) -> Result<()> {
    let rivals = (0..3)
        .map(|_| on_first_cpu("rival", |report| report.burn(Duration::MAX)))
        .collect::<Result<Vec<_>>>()?;
    let explain = Explain::start(bench, "--slower-than 100ms")?;
    bench.say(&explain.said);
    ensure!(explain.said.contains("no scx_sfs is loaded"), "not said");
    let mut process = on_first_cpu("victim", |report| report.burn(ms(100)))?;
    process.wait()?;
    let report = explain.report(Some(Signal::SIGINT))?;
    drop(rivals);
    let missing = report["missing"].as_array().map_or(0, Vec::len);
    ensure!(missing > 0, "nothing is missing");
    let slow = victim_that_waits(bench, &report, &process, LAST_TURN_MS)?;
    expect_part(slow, "queued", 200.0, 380.0)?;
    expect_part(slow, "running", 90.0, 115.0)?;
    // The rivals are older than the watch, and so no invocations.
    expect_first(&slow["ran_instead"], "rival", "outside", 0)
}

fn explain_ends_with_the_scheduler(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("")?;
    let explain = Explain::start(bench, "--slower-than 10ms")?;
    let mut process = on_first_cpu("victim", |report| report.burn(ms(30)))?;
    process.wait()?;
    scheduler.finish()?;
    let report = explain.report(None)?;
    victim(bench, &report, &process)?;
    Ok(())
}

fn tracing_needs_root(bench: &Bench) -> Result<()> {
    for (user, options, code, word) in [
        (65534, "explain --slower-than 1ms", 1, "needs root"),
        (65534, "trace -o /dev/null", 1, "needs root"),
        (0, "explain", 2, "--slower-than"),
        (0, "explain --slower-than 5", 2, "such as 500ms"),
        (0, "explain --slower-than 1s --buffer 3", 2, "power of two"),
        (0, "trace", 2, "--output"),
        (0, "trace --seconds 0 -o /tmp/t", 2, "0.001 to 86400"),
        (0, "trace --seconds 1 -o /no/such/file", 1, "cannot write"),
    ] {
        let mut command = Command::new(bench.program());
        let output = output_of(command.uid(user).args(options.split_whitespace()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(code) && said.contains(word),
            "{options}: {}, {said}",
            output.status
        );
    }
    Ok(())
}

fn trace_has_invocations(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy sfs --slice-us 20000 --no-overload")?;
    let file = std::env::temp_dir().join("trace.pftrace");
    let mut trace = Command::new(bench.program())
        .args(["trace", "--seconds", "1", "-o"])
        .arg(&file)
        .spawn()?;
    // It takes a while to load. Each process needs more than the slice.
    while trace.try_wait()?.is_none() {
        on_first_cpu("victim", |report| report.burn(ms(40)))?.wait()?;
    }
    ensure!(trace.wait()?.success(), "trace has failed");
    let bytes = fs::read(&file)?;
    bench.say(format_args!("{} bytes", bytes.len()));
    let has = |word: &str| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    for word in [
        "CPU 0",
        "victim",
        "running_filter",
        "running_fair",
        "process ",
    ] {
        ensure!(has(word), "{word} is missing");
    }
    scheduler.finish()
}
