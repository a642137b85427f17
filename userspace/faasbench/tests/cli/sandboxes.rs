//! `faasbench run --sandbox`.

use crate::common::{can_measure, CANNOT_MEASURE};
use crate::place::Place;
use crate::replay::check_result;
use sfs_skip::skip;
use std::path::PathBuf;
use std::process::Command;

/// Every kind of work and of blocking, and two requests at once.
const KINDS: &str = "arrival_us,function,phases\n\
                     0,f,cpu:2000@fib;io:1000@pipe;cpu:1000@primes\n\
                     0,f,cpu:2000@stream;io:1000@file;cpu:1000@file\n\
                     1000,g,cpu:2000@json;io:1000@sleep;cpu:1000@markdown\n\
                     2000,g,cpu:2000@sentiment;io:1000;cpu:1000\n";

#[test]
fn warm_sandboxes_serve_every_kind_of_work() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let place = Place::new();
    place.write("t.csv", KINDS);
    let run = "run --trace t.csv --scheduler eevdf --cpus 1 --out out";
    let cases = [
        ("process", "--sandbox process"),
        ("warm", "--sandbox warm --prestart 1"),
        (
            "cold",
            "--sandbox warm --prestart 0 --io-kind pipe --work fib",
        ),
        ("forks", "--sandbox warm --handler fork"),
        ("rr", "--scheduler rr --sandbox warm"),
    ];
    for (name, options) in cases {
        let run = run.replace(
            "--scheduler eevdf",
            if name == "rr" {
                ""
            } else {
                "--scheduler eevdf"
            },
        );
        place.succeed(&format!("{run} --name {name} {options}"));
        check_result(&place, name, matches!(name, "process" | "forks"));
    }
    let sandbox = |name: &str| -> serde_json::Value {
        let text = place.read(&format!("out/{name}.json"));
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["sandbox"].take()
    };
    assert_eq!(sandbox("process"), serde_json::json!({"kind": "process"}));
    // Two requests for f at once, and one sandbox: the second is a cold start.
    let warm = sandbox("warm");
    assert_eq!(
        (&warm["kind"], &warm["prestarted"]),
        (&"warm".into(), &2.into())
    );
    assert!(warm["cold_starts"].as_u64() >= Some(1), "{warm}");
    let cold = sandbox("cold");
    assert_eq!(cold["prestarted"], 0);
    assert!(cold["cold_starts"].as_u64() >= Some(3), "{cold}");
    assert_eq!(sandbox("forks")["handler"], "fork");
    assert_eq!(sandbox("forks")["died"], 0);
}

#[test]
fn a_sandbox_that_dies_fails_its_request_and_is_replaced() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let place = Place::new();
    // The first would take longer than anybody waits.
    place.write(
        "t.csv",
        "arrival_us,function,phases\n0,victim,io:600000000\n500000,victim,cpu:1000\n",
    );
    let arguments =
        "run --trace t.csv --scheduler eevdf --cpus 1 --out out --sandbox warm --prestart 1";
    let mut run = Command::new(env!("CARGO_BIN_EXE_faasbench"))
        .args(arguments.split_whitespace())
        .current_dir(place.path(""))
        .spawn()
        .unwrap();
    let victim = std::iter::repeat_with(|| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        busy_sandbox(run.id())
    })
    .take(2000)
    .flatten()
    .next();
    let victim = nix::unistd::Pid::from_raw(victim.expect("no sandbox is serving"));
    nix::sys::signal::kill(victim, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(run.wait().unwrap().success());
    let rows = place.read("out/eevdf.csv");
    let exits: Vec<&str> = rows
        .lines()
        .skip(1)
        .map(|row| row.split(',').nth(9).unwrap())
        .collect();
    assert_eq!(exits, ["signal:9", "0"], "{rows}");
    let summary = place.read("out/eevdf.json");
    assert!(summary.contains("\"died\": 1"), "{summary}");
    assert!(summary.contains("\"failed\": 1"), "{summary}");
}

/// The process called `victim` two generations below `run`, once it sleeps in
/// its work: it has read its request by then.
fn busy_sandbox(run: u32) -> Option<i32> {
    let children = |pid: &str| -> Vec<String> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let text = text.unwrap_or_default();
        text.split_whitespace().map(str::to_string).collect()
    };
    let grandchildren = children(&run.to_string())
        .into_iter()
        .flat_map(|pid| children(&pid));
    grandchildren.into_iter().find_map(|pid| {
        let read =
            |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let called = read("comm").trim() == "victim";
        let sleeps = read("syscall").starts_with(&format!("{} ", libc::SYS_clock_nanosleep));
        (called && sleeps).then(|| pid.parse().ok()).flatten()
    })
}

/// The folder of a replay's cgroups, if there can be one here.
fn cgroups() -> Option<PathBuf> {
    let root = faas_replay::cgroup::root();
    root.ok().map(|root| root.join("faasbench"))
}

#[test]
fn cgroups_limit_their_sandboxes_and_are_gone_afterwards() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let Some(base) = cgroups() else {
        skip!("there are no cgroups to write to, or no controller for CPU time");
    };
    let place = Place::new();
    place.write(
        "t.csv",
        "arrival_us,function,phases\n0,a/b,cpu:200000\n0,c.d,cpu:1000\n",
    );
    let run = "run --trace t.csv --scheduler eevdf --cpus 1 --out out --sandbox cgroup";
    for layout in ["flat", "nested"] {
        place.succeed(&format!(
            "{run} --name {layout} --cgroup-layout {layout} --cgroup-quota 50 --cgroup-weight 300"
        ));
        let rows = place.read(&format!("out/{layout}.csv"));
        let row = rows.lines().nth(1).unwrap();
        let fields: Vec<u64> = row
            .split(',')
            .take(5)
            .filter_map(|one| one.parse().ok())
            .collect();
        // 200 ms in periods of 100 ms with 50 ms each, of which the first two
        // and the last may be short.
        assert!(fields[3] - fields[2] >= 250_000, "{row}");
        let summary = place.read(&format!("out/{layout}.json"));
        assert!(summary.contains("\"cpu_quota_percent\": 50"), "{summary}");
        assert!(summary.contains("\"cpu_weight\": 300"), "{summary}");
        assert!(!base.exists());
    }
    // Killed in the middle of the run.
    place.write("t.csv", "arrival_us,function,phases\n0,f,io:600000000\n");
    let mut killed = Command::new(env!("CARGO_BIN_EXE_faasbench"))
        .args(run.split_whitespace())
        .current_dir(place.path(""))
        .spawn()
        .unwrap();
    assert!(within_seconds(20, || base.join("f-0").exists()));
    let said = place.fail(&run.replace("--out out", "--out other"));
    assert!(said.contains("is another replay running?"), "{said}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(within_seconds(20, || !base.exists()));
}

fn within_seconds(seconds: u64, condition: impl Fn() -> bool) -> bool {
    let pause = std::time::Duration::from_millis(10);
    (0..seconds * 100).any(|_| {
        std::thread::sleep(pause);
        condition()
    })
}
