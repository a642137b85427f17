//! The program as its users run it: files in, files out, and what it says
//! about bad input.

mod common;

use common::{can_measure, CANNOT_MEASURE};
use sfs_skip::skip;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder of one test, in which the program runs.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn faasbench(&self, arguments: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_faasbench"))
            .args(arguments.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("FAASBENCH_ACCEL")
            .output()
            .unwrap()
    }

    /// Runs it, which must succeed; returns what it prints.
    fn succeed(&self, arguments: &str) -> String {
        let output = self.faasbench(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs it, which must fail without a panic; returns what it says.
    fn fail(&self, arguments: &str) -> String {
        let output = self.faasbench(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{arguments}: {error}"
        );
        assert!(!error.contains("panicked"), "{error}");
        error
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path().join(folder)).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

const TINY: &str = "arrival_us,function,phases\n\
                    0,f,cpu:2000\n\
                    1000,g,io:3000;cpu:1000\n\
                    1000,h,cpu:500\n\
                    9000,f,cpu:2000;io:1000;cpu:2000\n";

#[test]
fn a_generated_trace_is_the_same_each_time() {
    let place = Place::new();
    let options = "--invocations 50 --load 0.9 --scale 0.5 --seed 7 --cpus 3";
    place.succeed(&format!("gen table1 {options} -o a.csv"));
    let printed = place.succeed(&format!("gen table1 {options}"));
    assert_eq!(place.read("a.csv"), printed);
    assert_eq!(printed.lines().count(), 51);
}

#[test]
fn every_workload_can_be_generated_with_every_option() {
    let place = Place::new();
    place.write("durations.txt", "250\n1.5ms\n2s\n");
    place.write("gaps.csv", TINY);
    let workloads = [
        "table1",
        "lognormal --mu -1 --sigma 2 --min-us 1000 --max-us 60000000",
        "exponential --mean-ms 20",
        "uniform --range-ms 5..50",
        "bimodal --short-ms 10 --long-ms 400 --long-share 0.2 --spread 0",
        "empirical --durations durations.txt",
    ];
    let options = [
        "",
        "--arrivals uniform --io-share 0.75 --io-ms 1..5 --io-at several",
        "--arrivals bursty --burst-factor 5 --burst-gaps 3 --quiet-gaps 9 --spikes 2 --spike-invocations 9",
        "--arrivals replay:gaps.csv --class-split-us 20000",
        "--functions 9 --popularity zipf:1.1 --within-cv 0.3 --io-share 1 --io-at middle",
        "--popularity skewed --class-split-us 50000",
        "--work fib,json,stream --io-kind pipe --io-share 0.5",
    ];
    for workload in workloads {
        for option in options {
            let common = "--invocations 60 --cpus 3 --load 0.7 --scale 0.1 --seed 5";
            let text = place.succeed(&format!("gen {workload} {common} {option}"));
            let made = faas_data::trace::parse("t", text.as_bytes()).unwrap();
            let load = faas_data::trace::offered_load(&made, 3).unwrap();
            assert_eq!(made.len(), 60);
            assert!((load - 0.7).abs() < 1e-3, "{workload} {option}: {load}");
        }
    }
}

#[test]
fn the_commands_in_the_documentation_work() {
    let place = Place::new();
    place.write("durations.txt", "3ms\n250us\n2s\n");
    let text = include_str!("../../../docs/workloads.md");
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("faasbench "))
        .filter(|command| command.starts_with("gen "))
        .collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        place.succeed(command);
    }
}

#[test]
fn applications_bring_their_classes_along() {
    let place = Place::new();
    let gen = "gen classes --cpus 2 --invocations 200";
    let made = place.succeed(gen);
    let made = faas_data::trace::parse("t", made.as_bytes()).unwrap();
    assert!(made.iter().all(|one| one.class.is_some()));
    place.write(
        "own.csv",
        "application,class,service_ms,cv,rate\na,LD,7,0,1\n",
    );
    let own = place.succeed(&format!("{gen} --file own.csv --scale 2"));
    assert!(
        own.lines()
            .skip(1)
            .all(|line| line.ends_with(",a,cpu:14000,LD")),
        "{own}"
    );
    place.write(
        "bad.csv",
        "application,class,service_ms,cv,rate\na,XX,7,0,1\n",
    );
    let said = place.fail(&format!("{gen} --file bad.csv"));
    assert!(
        said.contains("bad.csv:2: class `XX`: want LS or LD"),
        "{said}"
    );
    let said = place.fail(&format!("{gen} --class-split-us 5"));
    assert!(said.contains("takes no --class-split-us"), "{said}");
    let said = place.fail(&format!("{gen} --functions 5"));
    assert!(said.contains("takes no --functions"), "{said}");
}

#[test]
fn a_lost_machine_is_a_row_that_says_so() {
    let place = Place::new();
    place.write("t.csv", TINY);
    let common = "--trace t.csv --cpus 1 --kernel k --accel icount";
    place.succeed(&format!(
        "summarize --lost panic {common} --scheduler scx_x -o scx_x.json"
    ));
    let said = place.succeed("report scx_x.json");
    assert!(said.contains("scx_x !"), "{said}");
    assert!(
        said.contains("scx_x: lost with its machine, nothing was measured (panic)."),
        "{said}"
    );
    let said = place.fail(&format!("summarize {common}"));
    assert!(said.contains("<RESULT>"), "{said}");
}

#[test]
fn a_million_invocations_are_no_trouble() {
    let place = Place::new();
    place.succeed("gen exponential --invocations 1000000 --cpus 72 --functions 1000 --popularity zipf:1 --io-share 0.5 -o t.csv");
    assert_eq!(place.read("t.csv").lines().count(), 1_000_001);
}

#[test]
fn a_request_list_is_converted_and_its_bad_lines_are_shown() {
    let place = Place::new();
    place.write(
        "list.txt",
        "fib1 fib.py 27 5 1\nbroken\nfib2 fib.py 20 6 2\n",
    );
    let output = place.faasbench("convert sfs list.txt --multiplier 2 -o t.csv");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success());
    assert!(
        said.contains("list.txt:2: want 5 fields, found 1, skipped"),
        "{said}"
    );
    assert!(
        said.contains("2 requests converted, 1 lines skipped"),
        "{said}"
    );
    let want = "arrival_us,function,phases\n10000,fib27,cpu:60000\n12000,fib20,cpu:13000\n";
    assert_eq!(place.read("t.csv"), want);
}

const DURATIONS: &str =
    "HashOwner,HashApp,HashFunction,Average,percentile_Average_0,percentile_Average_100\n\
     o,a,often,2,1,3\no,a,seldom,50,50,50\no,a,broken,x,x,x\n";

const COUNTS: &str = "HashOwner,HashApp,HashFunction,Trigger,1,2,3\n\
                      o,a,often,http,40,40,40\no,a,seldom,timer,0,1,9\no,a,none,http,1,1,1\n";

#[test]
fn azures_files_are_joined_and_stretched_to_a_load() {
    let place = Place::new();
    place.write("i.csv", COUNTS);
    place.write("d.csv", DURATIONS);
    let files = "convert azure --invocations i.csv --durations d.csv";
    let output = place.faasbench(&format!("{files} --load 0.9 --cpus 2 -o t.csv"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    for part in [
        "d.csv:4: `x` is no number of milliseconds, skipped",
        "i.csv:4: there are no durations of this function, skipped",
        "130 of 130 invocations converted, of 2 functions; rows skipped: 1 of invocations, 1 of durations; \
         without durations: 3 invocations; without invocations: 0 functions",
        "offered load 0.900 on 2 CPUs",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let text = place.read("t.csv");
    assert_eq!(text.lines().count(), 131);
    // By default it is the files' own time.
    let own = place.succeed(&format!("{files} --minutes 2..3 --cap-top 0.5 --scale 2"));
    assert_eq!(own.lines().count(), 21);
    assert!(own.contains(",seldom,cpu:100000\n"), "{own}");
    let again = place.succeed(&format!("{files} --load 0.9 --cpus 2"));
    assert_eq!(again, text);
    let picked = place.succeed(&format!("{files} --functions 1 --pick sample --drop-top 1"));
    assert_eq!(picked.lines().count(), 11);
}

#[test]
fn what_is_converted_is_cut_and_scaled() {
    let place = Place::new();
    let list: String = (0..9)
        .map(|n| format!("f f.py 20 {} {n}\n", 5 * n))
        .collect();
    place.write("list.txt", &list);
    let command = "convert sfs list.txt --multiplier 1 --skip 2 --first 3";
    let text = place.succeed(&format!("{command} --scale 2"));
    let header = "arrival_us,function,phases";
    let want =
        format!("{header}\n0,fib20,cpu:26000\n5000,fib20,cpu:26000\n10000,fib20,cpu:26000\n");
    assert_eq!(text, want);
    let text = place.succeed(&format!("{command} --load 0.5 --cpus 3"));
    // Two gaps for three invocations of 13 ms on half of three CPUs.
    let want =
        format!("{header}\n0,fib20,cpu:13000\n13000,fib20,cpu:13000\n26000,fib20,cpu:13000\n");
    assert_eq!(text, want);
}

#[test]
fn an_fc_list_is_converted_by_its_baselines() {
    let place = Place::new();
    place.write("list.txt", "0, 1000000, 0.5 \n9, 1, 1\n0, 7, 0.25 \n");
    place.write(
        "baselines.txt",
        "workloadID, workload argument, run, tFC, tVM\n0,7,0,30,20\n0,7,1,32,20\n",
    );
    let output = place.faasbench("convert fc list.txt --figure tvm");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("list.txt:2: program `9` is more than 2, skipped"));
    assert!(said.contains("list.txt:3: no baseline is known for primes-7, skipped"));
    assert!(
        said.contains("1 requests converted, 2 lines skipped"),
        "{said}"
    );
    let header = "arrival_us,function,phases\n";
    let want = format!("{header}500000,primes-1000000,cpu:188000\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), want);
    let own = place.succeed("convert fc list.txt --baselines baselines.txt --first 1");
    assert_eq!(own, format!("{header}1750000,primes-7,cpu:31000\n"));
}

#[test]
fn a_tiny_trace_is_replayed_measured_and_reported() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let place = Place::new();
    place.write("t.csv", TINY);
    for (scheduler, name) in [("eevdf", "eevdf"), ("fifo", "first"), ("batch", "batch")] {
        place.succeed(&format!(
            "run --trace t.csv --scheduler {scheduler} --cpus 1 --out out --name {name}"
        ));
    }
    let want = [
        "batch.csv",
        "batch.json",
        "eevdf.csv",
        "eevdf.json",
        "first.csv",
        "first.json",
    ];
    assert_eq!(place.names(Path::new("out")), want);
    check_result(&place, "eevdf", true);
    let again = "summarize out/eevdf.csv --trace t.csv --cpus 1 -o again.json";
    place.succeed(again);
    let summary = |name| {
        let mut value: serde_json::Value = serde_json::from_str(&place.read(name)).unwrap();
        // Only a run knows how late its dispatcher was, and what served it.
        for known in ["arrival_lag_ms", "arrival_lag", "sandbox"] {
            value.as_object_mut().unwrap().remove(known);
        }
        value
    };
    assert_eq!(summary("again.json"), summary("out/eevdf.json"));
    let said = place.succeed("report out/eevdf.json out/first.json out/batch.json");
    assert!(said.contains("first against eevdf: "), "{said}");
    assert!(place.read("out/report.html").contains("</html>"));
}

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
    // Killed in its midst.
    place.write("t.csv", "arrival_us,function,phases\n0,f,io:600000000\n");
    let mut killed = Command::new(env!("CARGO_BIN_EXE_faasbench"))
        .args(run.split_whitespace())
        .current_dir(place.path(""))
        .spawn()
        .unwrap();
    assert!(within_seconds(20, || base.join("f-0").exists()));
    let said = place.fail(&run.replace("--out out", "--out other"));
    assert!(said.contains("is another replay under way?"), "{said}");
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

/// Checks what is sure on any machine, however busy.
fn check_result(place: &Place, name: &str, forked: bool) {
    let trace = faas_data::trace::Trace::read(&place.path("t.csv")).unwrap();
    let file = format!("out/{name}.csv");
    let text = place.read(&file);
    let records = faas_data::result::parse(&file, text.as_bytes(), &trace.invocations).unwrap();
    assert_eq!(records.len(), 4);
    for (record, invocation) in records.iter().zip(&trace.invocations) {
        let (start, end) = record.completed().unwrap();
        // Times are rounded down to microseconds, cpu_us in its two parts.
        assert!(record.cpu_us + 2 >= invocation.service_us(), "{record:?}");
        assert!(
            end + 1 >= start && end - start + 1 >= io_us(invocation),
            "{record:?}"
        );
        assert!(
            end - record.arrival_us + 1 >= invocation.uncontended_us(),
            "{record:?}"
        );
        assert_eq!(record.exit.to_string(), "0", "{record:?}");
        // Only the kernel knows how long files made it wait.
        let files = invocation
            .phases
            .iter()
            .any(|one| one.to_string().ends_with("@file"));
        let counted = Path::new("/proc/self/schedstat").exists();
        let known = if forked { !files } else { counted };
        assert_eq!(record.runqueue_wait_us.is_some(), known, "{record:?}");
        let most = end - record.arrival_us - invocation.uncontended_us() + 2;
        let bounded = record.runqueue_wait_us.is_none_or(|us| us <= most);
        // A sandbox may have waited just before its request came.
        assert!(bounded || !forked, "{record:?}");
    }
}

fn io_us(invocation: &faas_data::trace::Invocation) -> u64 {
    invocation.uncontended_us() - invocation.service_us()
}

#[test]
fn a_scheduler_that_does_not_load_is_a_result_too() {
    if !Path::new("/sys/kernel/sched_ext").exists() {
        skip!("this kernel has no sched_ext");
    }
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let place = Place::new();
    place.write("t.csv", TINY);
    let output = place.faasbench("run --trace t.csv --scheduler false --cpus 1 --out out");
    assert_eq!(output.status.code(), Some(3));
    assert!(place
        .read("out/false.json")
        .contains("\"status\": \"not-loaded\""));
    assert_eq!(place.read("out/false.csv").lines().count(), 1);
}

#[test]
fn bad_input_is_named_and_nothing_is_written() {
    let place = Place::new();
    place.write(
        "bad.csv",
        "arrival_us,function,phases\n5,f,cpu:1\n4,f,cpu:1\n",
    );
    place.write(
        "cut.csv",
        "arrival_us,function,phases\n5,f,cpu:1\n6,f,cpu:1",
    );
    place.write("empty.csv", "");
    place.write("list.txt", "nothing of use\n");
    place.write("one.txt", "f f.py 20 1 1\n");
    place.write("times.txt", "5\n1h\n");
    place.write("zero.txt", "0\n");
    place.write("file", "");
    let run = "run --scheduler eevdf --cpus 1 --out out --trace";
    let gen = "gen table1 --cpus 2 --invocations";
    let cases = [
        (
            format!("{run} bad.csv"),
            "bad.csv:3: arrival 4 is before the previous one",
        ),
        (
            format!("{run} cut.csv"),
            "cut.csv:3: the last line has no newline",
        ),
        (format!("{run} empty.csv"), "empty.csv:1: the file is empty"),
        (format!("{run} none.csv"), "cannot read none.csv"),
        (
            format!("{gen} 0"),
            "invalid value '0' for '--invocations <N>'",
        ),
        (format!("{gen} -4"), "--invocations"),
        (format!("{gen} 99999999999999999999"), "--invocations"),
        (
            format!("{gen} 4 --load nan"),
            "want a number from 0.001 to 100",
        ),
        (
            format!("{gen} 4 --scale 0"),
            "want a number from 0.001 to 1000",
        ),
        (
            format!("{gen} 4 --frobnicate"),
            "unexpected argument '--frobnicate'",
        ),
        (
            format!("{gen} 4 -o no/such/t.csv"),
            "cannot write no/such/t.csv",
        ),
        (
            format!("{gen} 4 --arrivals often"),
            "want poisson, uniform, bursty or replay:FILE",
        ),
        (
            format!("{gen} 4 --arrivals replay:times.txt"),
            "times.txt:2: `1h` is not a time",
        ),
        (
            format!("{gen} 4 --arrivals replay:zero.txt"),
            "zero.txt: there is no time between its arrivals",
        ),
        (
            format!("{gen} 4 --popularity zipf:1"),
            "--popularity needs --functions",
        ),
        (
            format!("{gen} 4 --functions 1 --popularity skewed"),
            "needs 2 functions",
        ),
        (
            format!("{gen} 4 --within-cv 1"),
            "--within-cv needs --functions",
        ),
        (format!("{gen} 4 --io-ms 5..2"), "want LOW..HIGH"),
        (
            format!("{gen} 4 --io-share 1.1"),
            "want a number from 0 to 1",
        ),
        (
            format!("{gen} 9 --spikes 2 --spike-invocations 4"),
            "2 spikes of 4 invocations do not fit into 9",
        ),
        (format!("{gen} 9 --spikes 2"), "--spike-invocations"),
        (
            "gen empirical --cpus 1 --invocations 2 --durations times.txt".into(),
            "times.txt:2: `1h` is not a time",
        ),
        (
            "gen lognormal --cpus 1 --invocations 2 --min-us 9 --max-us 8".into(),
            "less than a thousandth",
        ),
        (
            "gen lognormal --cpus 1 --invocations 1000000 --load 0.001".into(),
            "longer than 115 days",
        ),
        (
            "convert azure --invocations none.csv --durations bad.csv".into(),
            "cannot read none.csv",
        ),
        (
            "convert azure --invocations bad.csv --durations bad.csv -o t.csv".into(),
            "bad.csv:1: there is no column HashOwner",
        ),
        (
            "convert azure --invocations bad.csv --durations bad.csv --minutes 9..8".into(),
            "want A..B as 480..539",
        ),
        (
            "convert azure --invocations bad.csv --durations bad.csv --cap-top 0.1 --drop-top 1"
                .into(),
            "cannot be used with",
        ),
        (
            "convert azure --invocations bad.csv --durations bad.csv --load 1".into(),
            "--cpus <C>",
        ),
        (
            "convert fc list.txt -o t.csv".into(),
            "list.txt: none of its lines is a request",
        ),
        (
            "convert fc list.txt --baselines list.txt".into(),
            "list.txt: none of its lines is a baseline",
        ),
        ("convert fc none.txt".into(), "cannot read none.txt"),
        (
            "convert sfs one.txt --skip 1".into(),
            "--skip 1 leaves nothing of 1 invocations",
        ),
        (
            "gen table1 --invocations 2 --cpus 1 --mean-ms 5 --scale 2".into(),
            "cannot be used with",
        ),
        ("convert sfs none.txt".into(), "cannot read none.txt"),
        (
            "convert sfs list.txt -o t.csv".into(),
            "list.txt: none of its lines",
        ),
        (
            "summarize bad.csv --trace bad.csv --cpus 1".into(),
            "bad.csv:3:",
        ),
        ("report none.json".into(), "cannot read none.json"),
        ("report bad.csv".into(), "bad.csv is not JSON"),
        (
            "report bad.csv --out file/x".into(),
            "cannot make the folder file/x",
        ),
        ("".into(), "Usage: faasbench <COMMAND>"),
    ];
    let before = place.names(Path::new(""));
    for (arguments, message) in cases {
        let said = place.fail(&arguments);
        assert!(said.contains(message), "{arguments}: {said}");
    }
    assert_eq!(place.names(Path::new("")), before);
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_measured() {
    let place = Place::new();
    place.write("t.csv", TINY);
    place.write("file", "");
    let run = "run --trace t.csv --out out";
    let cases = [
        (
            format!("{run} --cpus 1 --scheduler scx_none"),
            "there is no scheduler `scx_none`",
        ),
        (
            format!("{run} --cpus 1 --scheduler fifo --scheduler-args --x"),
            "fifo is part of the kernel and takes no",
        ),
        (
            format!("{run} --cpus 1 --scheduler eevdf --prestart 3"),
            "--prestart and --handler need --sandbox warm or cgroup",
        ),
        (
            format!("{run} --cpus 1 --scheduler eevdf --sandbox warm --cgroup-weight 3"),
            "need --sandbox cgroup",
        ),
        (
            format!("{run} --cpus 1 --scheduler eevdf --sandbox bare-metal"),
            "[possible values: process, warm, cgroup]",
        ),
        (
            format!("{run} --cpus 1 --scheduler eevdf --work dream"),
            "[possible values: spin, fib, primes,",
        ),
        (
            format!("{run} --cpus 1 --scheduler eevdf --name a/b"),
            "want a name such as",
        ),
    ];
    for (arguments, message) in cases {
        let said = place.fail(&arguments);
        assert!(said.contains(message), "{arguments}: {said}");
    }
    assert_eq!(place.names(Path::new("")), ["file", "t.csv"]);
}

#[test]
fn what_cannot_be_measured_here_is_refused() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let place = Place::new();
    place.write("t.csv", TINY);
    place.write("file", "");
    let said = place.fail("run --trace t.csv --out out --cpus 4096 --scheduler eevdf");
    assert!(said.contains("--cpus is 4096, but only"), "{said}");
    let said = place.fail("run --trace t.csv --out file --cpus 1 --scheduler eevdf");
    assert!(said.contains("cannot make the folder file"), "{said}");
    assert_eq!(place.names(Path::new("")), ["file", "t.csv"]);
}
