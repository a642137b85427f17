//! Files that the loader cannot find, read or write.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use anyhow::{ensure, Context, Result};
use nix::sys::signal::Signal;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{ms, PATIENCE};
use sfs_testbed::process::{fork_every, Process};
use sfs_testbed::scheduler::{output_of, state, Scheduler};
use sfs_testbed::surroundings::{cover, Disk};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "needs_a_kernel_with_sched_ext",
        about: "without sched_ext's files it fails with one sentence; --help and the like work",
        run: needs_a_kernel_with_sched_ext,
    },
    Case {
        name: "needs_types_of_the_kernel",
        about: "with empty, invalid or missing BTF it fails with one sentence",
        run: needs_types_of_the_kernel,
    },
    Case {
        name: "needs_no_kernel_config",
        about: "it works without a file of the kernel's configuration",
        run: needs_no_kernel_config,
    },
    Case {
        name: "full_disk_keeps_what_was_learned_before",
        about: "--learn-state cannot be written: a warning, and the old file is unchanged",
        run: full_disk_keeps_what_was_learned_before,
    },
    Case {
        name: "log_on_a_full_disk_stops_nothing",
        about: "it loads, runs and ends normally when standard error cannot be written",
        run: log_on_a_full_disk_stops_nothing,
    },
    Case {
        name: "nonsense_for_statistics_harms_nobody",
        about: "malformed requests for statistics are refused, and valid ones are still answered",
        run: nonsense_for_statistics_harms_nobody,
    },
];

/// Runs the loader to its end after `prepare`, and expects failure with one sentence on
/// standard error; returns that.
fn fails(bench: &Bench, prepare: impl FnOnce(&mut Command)) -> Result<String> {
    let mut command = Command::new(bench.program());
    prepare(&mut command);
    let output = output_of(&mut command)?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    bench.say(&said);
    ensure!(output.status.code() == Some(1), "{}: {said}", output.status);
    ensure!(said.lines().count() == 1, "not one sentence");
    ensure!(state() == "disabled", "something is loaded: {}", state());
    Ok(said)
}

fn needs_a_kernel_with_sched_ext(bench: &Bench) -> Result<()> {
    for place in [c"/sys/kernel", c"/sys/kernel/sched_ext"] {
        let said = fails(bench, |command| cover(command, place, None))?;
        ensure!(said.contains("has no sched_ext"), "the reason is missing");
    }
    for option in ["--version", "--help", "--help-stats"] {
        let mut command = Command::new(bench.program());
        cover(&mut command, c"/sys/kernel", None);
        let output = output_of(command.arg(option))?;
        ensure!(output.status.success(), "{option}: {}", output.status);
    }
    Ok(())
}

fn needs_types_of_the_kernel(bench: &Bench) -> Result<()> {
    const TYPES: &std::ffi::CStr = c"/sys/kernel/btf/vmlinux";
    // The second has the right magic number.
    for content in [b"".as_slice(), b"\x9f\xeb\x01", b"no types at all\n"] {
        fs::write("/tmp/types", content)?;
        let said = fails(bench, |command| cover(command, TYPES, Some(c"/tmp/types")))?;
        ensure!(said.contains("cannot be read"), "the reason is missing");
    }
    let said = fails(bench, |command| cover(command, c"/sys/kernel/btf", None))?;
    ensure!(
        said.contains("has no type information"),
        "without BTF the reason is missing"
    );
    Ok(())
}

fn needs_no_kernel_config(bench: &Bench) -> Result<()> {
    let scheduler = Scheduler::start_prepared(bench.program(), &[], |command| {
        cover(command, c"/boot", None);
    })?;
    Process::burner(ms(5))?.wait()?;
    scheduler.wait_for("an invocation", |stats| stats.completions > 0)?;
    scheduler.finish()
}

fn full_disk_keeps_what_was_learned_before(bench: &Bench) -> Result<()> {
    let disk = Disk::mount("/tmp/disk")?;
    let file = disk.path().join("state");
    let load = || bench.load("--policy learned --learn-state /tmp/disk/state");

    let scheduler = load()?;
    fork_every(ms(2), 150)?;
    scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
    scheduler.finish()?;
    let saved = fs::read(&file).context("nothing was saved")?;

    disk.fill()?;
    let scheduler = load()?;
    let before = scheduler.stats()?;
    ensure!(before.functions > 0, "the saved state is not read");
    fork_every(ms(2), 150)?;
    let (status, log) = scheduler.stop(Signal::SIGINT)?;
    bench.say(log.lines().find(|line| line.contains("save")).unwrap_or(""));
    ensure!(status.success(), "{status}: {log}");
    ensure!(
        log.contains("cannot save what was learned to /tmp/disk/state: No space left"),
        "the warning is missing: {log}"
    );
    ensure!(fs::read(&file)? == saved, "the file has changed");
    let left = fs::read_dir(disk.path())?.count();
    ensure!(
        left == 2,
        "{left} files, not only the state and the ballast"
    );

    disk.relieve()?;
    let scheduler = load()?;
    let after = scheduler.stats()?;
    ensure!(after.functions == before.functions, "{after:?}");
    scheduler.finish()
}

fn log_on_a_full_disk_stops_nothing(bench: &Bench) -> Result<()> {
    let full = || fs::File::options().write(true).open("/dev/full");
    let options = "--verbose --log-slice --slice-us 20000 --stats 0.1";
    let options: Vec<&str> = options.split(' ').collect();
    let (errors, output) = (full().context("there is no /dev/full")?, full()?);
    let scheduler = Scheduler::start_prepared(bench.program(), &options, |command| {
        command.stderr(errors).stdout(output);
    })?;
    Process::burner(ms(30))?.wait()?;
    scheduler.wait_for("a demotion", |stats| stats.demotions == 1)?;
    let (status, _) = scheduler.stop(Signal::SIGINT)?;
    ensure!(status.code() == Some(0), "it ended with {status}");

    // Bad options with output that cannot be written: a failure, no panic.
    let status = Command::new(bench.program())
        .args(["--slice-min-us", "2000", "--slice-max-us", "1000"])
        .stderr(full()?)
        .status()?;
    ensure!(status.code() == Some(2), "{status}");
    let status = Command::new(bench.program())
        .arg("--version")
        .stdout(full()?)
        .status()?;
    ensure!(status.code() == Some(1), "{status}");
    Ok(())
}

fn nonsense_for_statistics_harms_nobody(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy learned")?;
    Process::burner(ms(5))?.wait()?;
    scheduler.wait_for("a learned function", |stats| stats.functions > 0)?;
    let deep = [vec![b'['; 2000], vec![b']'; 2000]].concat();
    let long = [
        b"{\"req\":\"".to_vec(),
        vec![b'x'; 1 << 20],
        b"\"}".to_vec(),
    ]
    .concat();
    let requests: [&[u8]; 14] = [
        b"",
        b"stats",
        b"{}",
        b"[]",
        b"null",
        b"{\"req\":7}",
        b"{\"req\":\"\"}",
        b"{\"req\":\"stats\",\"args\":[]}",
        b"{\"req\":\"stats\",\"args\":{\"target\":null}}",
        b"{\"req\":\"stats\",\"args\":{\"target\":\"nothing\"}}",
        b"{\"req\":\"stats\"} {\"req\":\"stats\"}",
        b"{\"req\":\"\\ud800\"}",
        &deep,
        b"\xff\xfe\x00",
    ];
    let mut refused = 0;
    // Each on a connection shared by all, and on its own.
    let mut one = connect()?;
    for request in requests {
        for stream in [&mut one, &mut connect()?] {
            let answer = ask(stream, request)?;
            ensure!(answer.contains("\"errno\":22"), "{answer}");
            refused += 1;
        }
        // Sends half of it and closes the connection.
        connect()?.write_all(&request[..request.len() / 2])?;
    }
    // A request that is too long ends the connection while it is sent, or is refused.
    let told = ask(&mut connect()?, &long);
    ensure!(
        told.as_ref()
            .map_or(true, |told| !told.contains("\"errno\":0")),
        "{told:?}"
    );
    // More connections than the server keeps open.
    let idle = (0..100).map(|_| connect()).collect::<Result<Vec<_>>>()?;
    ensure!(scheduler.stats()?.functions > 0, "no answer beside them");
    drop(idle);
    refused += random_requests()?;
    bench.say(format_args!("{refused} requests refused"));

    let answer = ask(&mut one, b"{\"req\":\"stats\",\"more\":1}")?;
    ensure!(answer.contains("\"errno\":0"), "{answer}");
    let answer = ask(
        &mut one,
        b"{\"req\":\"stats\",\"args\":{\"target\":\"functions\"}}",
    )?;
    ensure!(answer.contains("\"completions\":"), "{answer}");
    let stats = scheduler.stats()?;
    ensure!(stats.completions > 0, "{stats:?}");
    scheduler.finish()
}

/// Sends 2,000 requests with random bytes changed; returns how many were refused.
fn random_requests() -> Result<u32> {
    const REQUEST: &[u8] = b"{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}";
    let mut random = 1u64;
    let mut next = |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % below
    };
    let (mut refused, mut stream) = (0, connect()?);
    for _ in 0..2000 {
        let mut request = REQUEST.to_vec();
        for _ in 0..=next(3) {
            request[next(REQUEST.len())] = b" \"{}[]:,\\/u0a9\x01~"[next(16)];
        }
        let answer = ask(&mut stream, &request)?;
        refused += u32::from(!answer.contains("\"errno\":0"));
    }
    Ok(refused)
}

fn connect() -> Result<UnixStream> {
    let stream = UnixStream::connect("/var/run/scx/root/stats").context("no statistics")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends a line and returns the line of the answer, empty if the connection is closed.
fn ask(stream: &mut UnixStream, line: &[u8]) -> Result<String> {
    stream.write_all(line)?;
    stream.write_all(b"\n")?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .with_context(|| format!("no answer to {}", String::from_utf8_lossy(line)))?;
    Ok(answer)
}
