//! `faasbench run`, and the results that `summarize` and `report` read.

use crate::common::{can_measure, CANNOT_MEASURE};
use crate::place::{Place, TINY};
use sfs_skip::skip;
use std::path::Path;

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
        // Only a run knows how late its dispatcher was, what served it, and the kernel's settings.
        for known in [
            "arrival_lag_ms",
            "arrival_lag",
            "sandbox",
            "kernel_settings",
        ] {
            value.as_object_mut().unwrap().remove(known);
        }
        value
    };
    assert_eq!(summary("again.json"), summary("out/eevdf.json"));
    let reported = "report out/eevdf.json out/first.json out/batch.json";
    let said = place.succeed(reported);
    assert!(said.contains("first against eevdf: "), "{said}");
    assert!(place.read("out/report.html").contains("</html>"));
    let said = place.succeed(&format!("{reported} --json"));
    assert_eq!(said, place.read("out/summary.json"));
    let said = place.succeed("run --trace t.csv --scheduler eevdf --cpus 1 --out out --json");
    assert_eq!(said, place.read("out/eevdf.json"));
}

#[test]
fn demand_grows_at_switches_and_the_summary_says_by_how_much() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let place = Place::new();
    // Each sleeps before its last phase: one switch at least.
    place.write(
        "t.csv",
        "arrival_us,function,phases\n0,f,io:2000;cpu:1000\n0,g,cpu:1000;io:2000;cpu:1000\n",
    );
    let run = "run --trace t.csv --scheduler eevdf --cpus 1 --out out --json --refill";
    for sandbox in ["process", "warm"] {
        let said = place.succeed(&format!("{run} 500 --sandbox {sandbox}"));
        let summary: serde_json::Value = serde_json::from_str(&said).unwrap();
        let refill = &summary["refill"];
        let refills = refill["refills"].as_u64().unwrap();
        assert!(refills >= 2, "{sandbox}: {refill}");
        assert_eq!(refill["refill_ms"], 0.5 * refills as f64, "{sandbox}");
        let ratio = summary["cpu_over_service"].as_f64().unwrap();
        // 0.5 ms more for 1 ms and for 2 ms at least.
        assert!(ratio >= 1.375, "{sandbox}: {ratio}");
    }
    let said = place.succeed(&format!("{run} 0"));
    let summary: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(summary["refill"]["refill_ms"], 0.0);
}

#[test]
fn small_costs_are_measured_and_printed() {
    let place = Place::new();
    let said = place.succeed("calibrate --repetitions 2 --json");
    let found: serde_json::Value = serde_json::from_str(&said).unwrap();
    for cost in ["pipe_ns", "fork_exit_ns", "wakeup_ns"] {
        let quartile = |name: &str| found[cost][name].as_f64().unwrap();
        assert!(quartile("q1") > 0.0, "{cost}: {said}");
        assert!(quartile("q1") <= quartile("q3"), "{cost}: {said}");
    }
    let said = place.succeed("calibrate --repetitions 1");
    assert!(said.contains("switch by sched_yield"), "{said}");
}

/// 30 ms of CPU time, which is more than any start takes.
const FIXED: &str = "arrival_us,function,phases\n\
                     0,f,cpu:30000@chase-32k\n500,g,io:1000;cpu:30000@branch-1m\n\
                     900,h,cpu:30000\n1000,f,cpu:15000@chase-32k;cpu:15000@chase-32k\n";

#[test]
fn fixed_work_is_calibrated_and_compared_with_what_it_takes_alone() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let place = Place::new();
    place.write("t.csv", FIXED);
    place.write("plain.csv", TINY);
    for sandbox in ["process", "warm --prestart 1", "warm --handler fork"] {
        place.succeed(&format!(
            "run --trace t.csv --scheduler eevdf --cpus 1 --out out --sandbox {sandbox} \
             --max-spread 1000"
        ));
        let trace = faas_data::trace::Trace::read(&place.path("t.csv")).unwrap();
        let text = place.read("out/eevdf.csv");
        let records = faas_data::result::parse("r", text.as_bytes(), &trace.invocations).unwrap();
        let alone: Vec<_> = records.iter().map(|one| one.alone_us).collect();
        // Rounded to the next iteration, so the same or a microsecond less.
        let close = |us: &Option<u64>| us.is_some_and(|us| us.abs_diff(30_000) <= 1);
        assert!([0, 1, 3].iter().all(|id| close(&alone[*id])), "{alone:?}");
        assert_eq!(alone[2], None);
        let summary: serde_json::Value =
            serde_json::from_str(&place.read("out/eevdf.json")).unwrap();
        let work = &summary["fixed_work"];
        assert_eq!(
            (&work["invocations"], summary["failed"].as_u64()),
            (&3.into(), Some(0))
        );
        // What is done does not depend on the time: a wrong unit would be a factor of 1000.
        let over = work["cpu_over_alone"].as_f64().unwrap();
        assert!((0.1..10.0).contains(&over), "{work}");
        assert!(work["calibration"]["kernels"]["branch-1m"]["iterations_per_us"].is_number());
        assert_eq!(work["kinds"]["chase-32k"]["invocations"], 2);
    }
    let again = "summarize out/eevdf.csv --trace t.csv --cpus 1 -o again.json";
    place.succeed(again);
    let again: serde_json::Value = serde_json::from_str(&place.read("again.json")).unwrap();
    assert_eq!(again["fixed_work"]["invocations"], 3);
    // By an option, where the trace has no kind.
    place.succeed(
        "run --trace plain.csv --scheduler eevdf --cpus 1 --out out --work sum-32k --name sum --max-spread 1000",
    );
    let sum: serde_json::Value = serde_json::from_str(&place.read("out/sum.json")).unwrap();
    assert!(
        sum["fixed_work"]["calibration"]["kernels"]["sum-32k"].is_object(),
        "{sum}"
    );
}

/// Checks properties that hold on any machine, however busy.
pub fn check_result(place: &Place, name: &str, forked: bool) {
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
fn a_lost_machine_is_reported_as_such() {
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
