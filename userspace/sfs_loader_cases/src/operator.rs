//! The operator's view: bad input, statistics, the debug dump.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{ensure, Context, Result};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::Cgroup;
use sfs_testbed::clock::{ms, sleep, wait_until, PATIENCE};
use sfs_testbed::process::Process;
use sfs_testbed::scheduler::{output_of, state, Scheduler};
use sfs_testbed::trace::{self, Trace};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "refuses_bad_options",
        about: "unknown, contradictory and absurd options fail with one sentence",
        run: refuses_bad_options,
    },
    Case {
        name: "informs_without_loading",
        about: "--help, --version, --help-stats and --completions exit with 0",
        run: informs_without_loading,
    },
    Case {
        name: "needs_root",
        about: "another user is told that root is needed",
        run: needs_root,
    },
    Case {
        name: "two_capabilities_are_enough",
        about: "CAP_BPF and CAP_PERFMON, the service's capabilities, are enough to load",
        run: two_capabilities_are_enough,
    },
    Case {
        name: "monitor_prints_statistics",
        about: "--monitor prints lines about the running scheduler and loads nothing",
        run: monitor_prints_statistics,
    },
    Case {
        name: "monitor_says_that_nothing_runs",
        about: "--monitor without a scheduler reports this in one line and waits for one",
        run: monitor_says_that_nothing_runs,
    },
    Case {
        name: "top_shows_the_backlog_and_the_sandboxes",
        about: "top --once shows S, the backlog, CPU time by cgroup and waste; without a \
            scheduler it fails",
        run: top_shows_the_backlog_and_the_sandboxes,
    },
    Case {
        name: "top_counts_filter_in_shards",
        about:
            "top counts what waits in FILTER, also in queues that the kernel half does not count",
        run: top_counts_filter_in_shards,
    },
    Case {
        name: "deaf_statistics_client_holds_up_nobody",
        about: "a client that keeps asking and never reads does not delay others' answers",
        run: deaf_statistics_client_holds_up_nobody,
    },
    Case {
        name: "dump_shows_state",
        about: "SysRq-D shows mode, S and the state of a task",
        run: dump_shows_state,
    },
];

/// Runs the loader to its end; returns its exit code and its output.
fn run(bench: &Bench, options: &str) -> Result<(Option<i32>, String)> {
    let mut command = Command::new(bench.program());
    let output = output_of(command.args(options.split_whitespace()))?;
    let said = [output.stdout, output.stderr].concat();
    Ok((
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

fn refuses_bad_options(bench: &Bench) -> Result<()> {
    for (options, code, word) in [
        ("--no-such-option", 2, "--no-such-option"),
        ("stray", 2, "stray"),
        ("--slice-us 0", 2, "--slice-us"),
        ("--slice-us many", 2, "--slice-us"),
        (
            "--slice-us 1000 --slice-min-us 10",
            2,
            "cannot be used with",
        ),
        ("--slice-us 1000 --iat-window 10", 2, "cannot be used with"),
        (
            "--no-overload --overload-factor 2",
            2,
            "cannot be used with",
        ),
        ("--overload-factor NaN", 2, "--overload-factor"),
        ("--iat-window 1", 2, "--iat-window"),
        ("--fair-max-wait-ms 30000", 2, "--fair-max-wait-ms"),
        ("--policy sfs --ageing 2", 2, "without --policy learned"),
        ("--receive-port 80", 2, "without --boundary receive"),
        ("--idle-boundary-ms 5", 2, "without --boundary idle"),
        ("--boundary fork,hint", 2, "--hint-listen"),
        ("--hint-listen udp:127.0.0.1:4040", 1, "--hint-allow-udp"),
        ("--monitor 1 --partial", 2, "--monitor"),
        (
            "--slice-min-us 2000 --slice-max-us 1000",
            2,
            "--slice-min-us",
        ),
    ] {
        let (status, said) = run(bench, options)?;
        ensure!(status == Some(code), "{options}: {status:?}, {said}");
        ensure!(
            said.contains(word),
            "{options}: the reason is missing: {said}"
        );
        ensure!(state() == "disabled", "{options}: {}", state());
    }
    Ok(())
}

fn informs_without_loading(bench: &Bench) -> Result<()> {
    for (options, word) in [
        ("--help", "--slice-us"),
        ("--version", "scx_sfs"),
        ("-V", "scx_sfs"),
        ("--help-stats", "demotions"),
        ("--completions bash", "complete"),
    ] {
        let (status, said) = run(bench, options)?;
        ensure!(status == Some(0), "{options}: {status:?}, {said}");
        ensure!(said.contains(word), "{options} says {said}");
    }
    Ok(())
}

fn needs_root(bench: &Bench) -> Result<()> {
    let output = output_of(Command::new(bench.program()).uid(65534))?;
    let said = String::from_utf8_lossy(&output.stderr);
    bench.say(said.trim());
    ensure!(output.status.code() == Some(1), "{}", output.status);
    ensure!(
        said.contains("needs root"),
        "the error does not say that root is needed"
    );
    Ok(())
}

fn two_capabilities_are_enough(bench: &Bench) -> Result<()> {
    let options =
        "--policy learned --boundary fork,exec,accept,receive,idle --hint-listen /run/hint.sock";
    let options: Vec<&str> = options.split(' ').collect();
    let scheduler = Scheduler::start_prepared(bench.program(), &options, |command| {
        // SAFETY: system calls only, between fork and exec.
        unsafe { command.pre_exec(drop_capabilities) };
    })?;
    let status = fs::read_to_string(format!("/proc/{}/status", scheduler.pid()))?;
    let line = status.lines().find(|line| line.starts_with("CapEff:"));
    let mask = line.and_then(|line| line.split_whitespace().nth(1));
    bench.say(format_args!("effective capabilities {mask:?}"));
    ensure!(mask == Some("000000c000000000"), "not these two");
    Process::burner(ms(5))?.wait()?;
    let stats = scheduler.wait_for("its end", |stats| stats.completions > 0)?;
    ensure!(stats.arrivals > 0, "{stats:?}");
    scheduler.finish()
}

/// Drops all capabilities except CAP_PERFMON and CAP_BPF for the next exec.
fn drop_capabilities() -> std::io::Result<()> {
    const KEPT: [libc::c_ulong; 2] = [38, 39]; // linux/capability.h
    for capability in (0..64).filter(|number| !KEPT.contains(number)) {
        // SAFETY: takes plain numbers.
        let done = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        let error = std::io::Error::last_os_error();
        // EINVAL: the kernel does not know this capability.
        if done != 0 && error.raw_os_error() != Some(libc::EINVAL) {
            return Err(error);
        }
    }
    Ok(())
}

fn monitor_prints_statistics(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 7000")?;
    let path = std::env::temp_dir().join("monitor");
    let mut monitor = Command::new(bench.program())
        .args(["--monitor", "0.1"])
        .stdout(fs::File::create(&path)?)
        .spawn()
        .context("cannot start the monitor")?;
    let lines = || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let two = wait_until(PATIENCE, || lines().len() >= 2);
    kill(Pid::from_raw(monitor.id().cast_signed()), Signal::SIGINT)?;
    let status = monitor.wait()?;
    ensure!(two, "it prints {:?}", lines());
    bench.say(&lines()[0]);
    ensure!(
        lines()[0].contains("S    7000 us | arrivals"),
        "this line is not about the running scheduler"
    );
    ensure!(status.success(), "the monitor ends with {status}");
    scheduler.finish()
}

fn monitor_says_that_nothing_runs(bench: &Bench) -> Result<()> {
    let (out, err) = (
        std::env::temp_dir().join("monitor.out"),
        std::env::temp_dir().join("monitor.err"),
    );
    let mut monitor = Command::new(bench.program())
        .args(["--monitor", "0.1"])
        .stdout(fs::File::create(&out)?)
        .stderr(fs::File::create(&err)?)
        .spawn()
        .context("cannot start the monitor")?;
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let said = wait_until(PATIENCE, || read(&err).ends_with('\n'));
    // It tries again meanwhile.
    sleep(ms(2500));
    let complaint = read(&err);
    bench.say(complaint.trim());
    let scheduler = bench.load_sfs("--slice-us 7000")?;
    let served = wait_until(PATIENCE, || read(&out).lines().count() >= 2);
    scheduler.finish()?;
    let told_again = wait_until(PATIENCE, || read(&err).lines().count() == 2);
    kill(Pid::from_raw(monitor.id().cast_signed()), Signal::SIGINT)?;
    let status = monitor.wait()?;
    ensure!(said, "it printed nothing");
    let is_clear = complaint == "scx_sfs: no scx_sfs is running, waiting for one\n";
    ensure!(is_clear, "it printed {complaint}");
    ensure!(served, "it does not find the scheduler");
    ensure!(
        told_again,
        "after the end of the scheduler it printed: {}",
        read(&err)
    );
    ensure!(status.success(), "the monitor ends with {status}");
    Ok(())
}

fn top_shows_the_backlog_and_the_sandboxes(bench: &Bench) -> Result<()> {
    let (status, said) = run(bench, "top --once")?;
    let is_clear = (status, said.as_str()) == (Some(1), "scx_sfs: no scx_sfs is running\n");
    ensure!(is_clear, "without a scheduler: {status:?}, {said}");
    let sandbox = Cgroup::new("functions/f-1")?;
    let scheduler = bench.load_sfs("--slice-us 7000 --cgroup functions/*")?;
    // Each CPU has three of them.
    let hogs = 3 * bench.cpus();
    let mut crowd = Vec::new();
    for _ in 0..hogs {
        let hog = Process::hog()?;
        sandbox.take(hog.pid())?;
        crowd.push(hog);
    }
    let (status, said) = run(bench, "top --once --json --waste")?;
    ensure!(status == Some(0), "{said}");
    bench.say(&said);
    let data: Value = serde_json::from_str(&said).context("this is not JSON")?;
    let metrics = &data["scheduler"]["metrics"];
    ensure!(metrics["slice_us"] == 7000, "S is another one");
    let queues = ["queued_filter", "queued_ranked", "queued_fair"];
    let queued: u64 = queues
        .iter()
        .filter_map(|name| metrics[*name].as_u64())
        .sum();
    // One CPU or two may be taken by top itself.
    let (least, most) = (hogs - bench.cpus(), hogs);
    let is_backlog = (least as u64..=most as u64).contains(&queued);
    ensure!(is_backlog, "{queued} of {hogs} tasks wait");
    let one = &data["sandboxes"]["list"][0];
    let is_it = one["cgroup"] == "functions/f-1" && one["function"] == "functions/f";
    ensure!(is_it, "these are not the sandboxes");
    let used = one["cpus_used"].as_f64().context("no CPU time")?;
    let expected = 0.8 * bench.cpus() as f64..=1.05 * bench.cpus() as f64;
    ensure!(expected.contains(&used), "it used {used} CPUs");
    let watched = data["waste"]["watched_ms"].as_f64();
    ensure!(
        watched.is_some_and(|ms| ms > 900.0),
        "waste: {watched:?} ms watched"
    );
    let (status, said) = run(bench, "top --once")?;
    ensure!(
        status == Some(0) && said.contains("functions/f-1 "),
        "{said}"
    );
    let fits = said.lines().all(|line| line.chars().count() <= 80);
    ensure!(fits, "wider than 80 columns: {said}");
    scheduler.finish()
}

fn top_counts_filter_in_shards(bench: &Bench) -> Result<()> {
    let sandbox = Cgroup::new("functions/f-1")?;
    // At most one shard for each CPU; a credit that lasts longer than the case.
    let shards = bench.cpus().min(2);
    let options = format!("--slice-us 3000000 --filter-shards {shards} --cgroup functions/*");
    let scheduler = bench.load_sfs(&options)?;
    let hogs = 3 * bench.cpus();
    let mut crowd = Vec::new();
    for _ in 0..hogs {
        let hog = Process::hog()?;
        sandbox.take(hog.pid())?;
        crowd.push(hog);
    }
    let (status, said) = run(bench, "top --once --json")?;
    ensure!(status == Some(0), "{said}");
    let data: Value = serde_json::from_str(&said).context("this is not JSON")?;
    let queued = data["scheduler"]["metrics"]["queued_filter"].as_u64();
    // Each CPU runs one; some may have been in FAIR when they came into the sandbox.
    let (least, most) = (hogs - 2 * bench.cpus(), hogs);
    let is_counted = queued.is_some_and(|queued| (least as u64..=most as u64).contains(&queued));
    ensure!(is_counted, "FILTER has {queued:?} of {hogs} tasks");
    scheduler.finish()
}

fn deaf_statistics_client_holds_up_nobody(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 20000")?;
    let mut deaf = UnixStream::connect("/var/run/scx/root/stats").context("no statistics")?;
    deaf.set_nonblocking(true)?;
    let request = b"{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}\n";
    let mut asked = 0;
    // Until the answers fill the socket and the server reads no more requests.
    let full = wait_until(PATIENCE, || {
        while deaf.write_all(request).is_ok() {
            asked += 1;
        }
        sleep(ms(100));
        deaf.write(request).is_err()
    });
    bench.say(format_args!(
        "{asked} requests until the socket was full: {full}"
    ));
    ensure!(asked > 100, "the server did not read its requests");
    Process::burner(ms(5))?.wait()?;
    let stats = scheduler.wait_for("another client's answer", |stats| stats.completions > 0)?;
    ensure!(stats.arrivals > 0, "{stats:?}");
    scheduler.finish()
}

fn dump_shows_state(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 7000")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let _trace = Trace::start(&["sched_ext/sched_ext_dump"])?;
    fs::write("/proc/sysrq-trigger", "D").context("there is no SysRq")?;
    sleep(ms(50));
    let text = trace::text()?;
    let lines = text.lines().filter(|line| line.contains("sfs: "));
    for line in lines.take(6) {
        bench.say(line.trim());
    }
    for word in [
        "sfs: mode=filter S=7000us",
        "sfs: queued: FILTER=0",
        "sfs: turn=FAIR",
    ] {
        ensure!(text.contains(word), "\"{word}\" is missing in the dump");
    }
    ensure!(
        text.contains("sfs: invocation 1 demoted credit=7000us"),
        "no hog is shown as demoted"
    );
    drop(hogs);
    // A dump does not end the scheduler.
    Process::burner(ms(5))?.wait()?;
    scheduler.finish()
}
