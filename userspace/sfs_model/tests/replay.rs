//! A small trace in the model: what must hold of each policy. Each replay runs in a process of its
//! own.

use faas_data::measure::Measure;
use faas_data::result::{self, Record};
use faas_data::trace::{self, Invocation, Phase};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CPUS: &str = "2";
/// Service times of short and long invocations, below and above each S of this trace, us.
const SHORT_US: [u64; 4] = [3_000, 12_000, 6_000, 20_000];
const LONG_US: u64 = 450_000;
/// After an arrival, the next one comes so much later, us.
const GAP_US: u64 = 30_000;

/// 120 invocations at a load of 0.8; one of ten is long, one of eight sleeps first.
fn invocations() -> Vec<Invocation> {
    let one = |id: u64| {
        let service_us = match id % 10 {
            4 => LONG_US,
            _ => SHORT_US[id as usize % 4],
        };
        // Gaps of half and of one and a half times the mean.
        let arrival_us = id * GAP_US + id % 2 * GAP_US / 2;
        let mut one = Invocation::cpu(arrival_us, "f", service_us);
        if id % 8 == 7 {
            one.phases.insert(0, Phase::io(25_000));
        }
        one
    };
    (0..120).map(one).collect()
}

/// A folder for the files of a test, with the trace.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("trace.csv"), trace::to_csv(&invocations())).unwrap();
    folder
}

fn model(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_model"));
    command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

/// Replays the trace, which must violate no invariant. Returns what it said and the result.
fn replay(folder: &Path, policy: &str, costs: &str) -> (String, Vec<Record>) {
    let file = format!("{policy}.csv");
    let arguments = [
        "replay",
        "trace.csv",
        "--cpus",
        CPUS,
        "--policy",
        policy,
        "--costs",
        costs,
        "--out",
        &file,
    ];
    let output = model(folder, &arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{policy}, {costs}: {said}");
    let records = result::read(&folder.join(file), &invocations()).unwrap();
    (said, records)
}

/// The mean turnaround of short or of long invocations, ms.
fn mean_ms(records: &[Record], is_long: bool) -> f64 {
    let all = Measure::all(records, &invocations());
    let is_one = |one: &&Measure| (records[one.id].service_us == LONG_US) == is_long;
    let all: Vec<f64> = all
        .iter()
        .filter(is_one)
        .map(Measure::turnaround_ms)
        .collect();
    all.iter().sum::<f64>() / all.len() as f64
}

#[test]
fn a_replay_repeats() {
    let folder = folder("repeats");
    let [one, other] = [0, 1].map(|_| replay(&folder, "sfs", "guest"));
    assert_eq!(one, other);
}

#[test]
fn all_invocations_end_with_the_cpu_time_of_the_trace() {
    let folder = folder("ends");
    for policy in ["sfs", "learned", "fair"] {
        for (costs, most_us) in [("none", 10), ("guest", 2_000)] {
            let (said, records) = replay(&folder, policy, costs);
            assert!(said.contains("120 of 120 invocations ended"), "{said}");
            for one in &records {
                let (start, end) = one.completed().unwrap();
                let more = one.cpu_us - one.service_us;
                assert!(
                    more <= most_us,
                    "{policy}, {costs}: {more} us more in {one:?}"
                );
                let phases = invocations()[one.id].uncontended_us();
                assert!(end - one.arrival_us >= phases, "{one:?}");
                assert!(start >= one.arrival_us, "{one:?}");
            }
        }
    }
}

/// FILTER is a queue: whoever comes first starts first, but for the time that a kick takes.
#[test]
fn invocations_start_in_the_order_of_arrival() {
    let (said, records) = replay(&folder("order"), "sfs", "none");
    assert!(said.contains("fair-only mode entered 0 times"), "{said}");
    let starts: Vec<u64> = records.iter().map(|one| one.start_us.unwrap()).collect();
    for (id, pair) in starts.windows(2).enumerate() {
        assert!(
            pair[0] <= pair[1] + 30,
            "{id} starts at {}, the next at {}",
            pair[0],
            pair[1]
        );
    }
}

#[test]
fn short_invocations_gain_and_long_ones_pay() {
    let folder = folder("gain");
    for costs in ["none", "guest"] {
        let [sfs, fair] = ["sfs", "fair"].map(|policy| replay(&folder, policy, costs).1);
        let [short, short_fair] = [&sfs, &fair].map(|records| mean_ms(records, false));
        let [long, long_fair] = [&sfs, &fair].map(|records| mean_ms(records, true));
        assert!(
            1.05 * short < short_fair,
            "{costs}: short {short} and {short_fair} ms"
        );
        assert!(long > long_fair, "{costs}: long {long} and {long_fair} ms");
    }
}

#[test]
fn comparisons_notice_what_differs() {
    let folder = folder("compare");
    for policy in ["sfs", "fair"] {
        replay(&folder, policy, "none");
    }
    let compare = |other: &str| {
        let exact = ["--ms", "0.001", "--per-cent", "0", "--agree", "100"];
        let output = model(
            &folder,
            &[&["compare", "trace.csv", "sfs.csv", other], &exact[..]].concat(),
        );
        output.status.code()
    };
    assert_eq!(compare("sfs.csv"), Some(0));
    assert_eq!(compare("fair.csv"), Some(1));
}

#[test]
fn phases_that_the_model_does_not_know_are_refused() {
    let folder = folder("unknown");
    let text = "arrival_us,function,phases\n0,f,io:2000@pipe;cpu:1000\n";
    std::fs::write(folder.join("pipe.csv"), text).unwrap();
    let output = model(&folder, &["replay", "pipe.csv"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("the model knows no pipes and files"),
        "{said}"
    );
}
