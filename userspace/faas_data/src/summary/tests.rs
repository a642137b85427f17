use super::*;
use crate::result::Exit;
use crate::trace::{Class, Phase};

fn setting() -> Setting {
    Setting {
        cpus: 2,
        scheduler: SchedulerInfo {
            name: "eevdf".into(),
            version: "6.18.0".into(),
            args: String::new(),
            status: Status::Ok,
            detail: String::new(),
        },
        kernel: "6.18.0".into(),
        accel: "native".into(),
        sandbox: None,
    }
}

fn trace(invocations: Vec<Invocation>) -> Trace {
    Trace {
        name: "t".into(),
        sha256: "00".into(),
        invocations,
    }
}

/// A record of invocation `id` that started and ended at these times.
fn record(trace: &Trace, id: usize, start_us: u64, end_us: u64, cpu_us: u64) -> Record {
    let invocation = &trace.invocations[id];
    Record {
        id,
        function: invocation.function.clone(),
        arrival_us: invocation.arrival_us,
        start_us: Some(start_us),
        end_us: Some(end_us),
        cpu_us,
        service_us: invocation.service_us(),
        voluntary_switches: 1,
        involuntary_switches: id as u64,
        exit: Exit::Code(0),
        runqueue_wait_us: None,
        alone_us: None,
    }
}

/// Six invocations, five of which complete.
///
/// | id | arrival | service | start | end    | turnaround | slowdown | RTE   |
/// |----|---------|---------|-------|--------|------------|----------|-------|
/// | 0  | 10,000  | 10,000  | 10,000| 20,000 | 10,000     | 1        | 1     |
/// | 1  | 10,000  | 20,000  | 20,000| 50,000 | 40,000     | 2        | 0.5   |
/// | 2  | 20,000  | 10,000  | 60,000| 80,000 | 60,000     | 6        | 0.167 |
/// | 3  | 30,000  | 100,000 | 31,000|180,000 | 150,000    | 1.5      | 0.667 |
/// | 4  | 40,000  | 20,000  | killed by a signal                           |
/// | 5  | 60,000  | 40,000  | 60,500|101,000 | 41,000     | 1.025    | 0.976 |
fn six() -> (Trace, Vec<Record>) {
    let rows = [
        (10_000, 10_000),
        (10_000, 20_000),
        (20_000, 10_000),
        (30_000, 100_000),
        (40_000, 20_000),
        (60_000, 40_000),
    ];
    let invocation = |(arrival, service)| Invocation::cpu(arrival, "f", service);
    let trace = trace(rows.into_iter().map(invocation).collect());
    let mut records = vec![
        record(&trace, 0, 10_000, 20_000, 10_000),
        record(&trace, 1, 20_000, 50_000, 22_000),
        record(&trace, 2, 60_000, 80_000, 11_000),
        record(&trace, 3, 31_000, 180_000, 101_000),
        record(&trace, 4, 50_000, 0, 7),
        record(&trace, 5, 60_500, 101_000, 40_000),
    ];
    records[4].exit = Exit::Signal(9);
    records[4].end_us = None;
    (trace, records)
}

#[test]
fn numbers_agree_with_those_computed_by_hand() {
    let (trace, records) = six();
    let found = summarise(&trace, &records, &setting(), &[1_000_000, 3_000_000]);
    assert_eq!((found.trace.invocations, found.failed), (6, 1));
    // 200 ms of service on 2 CPUs in 50 ms: 2.0
    assert_eq!(found.trace.offered_load, Some(2.0));
    // 180 - 10 ms
    assert_eq!(found.makespan_ms, Some(170.0));
    // (10 + 40 + 60 + 150 + 41) / 5 = 60.2; sorted 10 40 41 60 150
    let turnaround = found.turnaround_ms.unwrap();
    assert_eq!((turnaround.mean, turnaround.p50), (60.2, 41.0));
    assert_eq!((turnaround.p90, turnaround.max), (150.0, 150.0));
    // (1 + 2 + 6 + 1.5 + 1.025) / 5 = 2.305; sorted 1 1.025 1.5 2 6
    let slowdown = found.slowdown.unwrap();
    assert_eq!(
        (slowdown.mean, slowdown.p50, slowdown.p99),
        (2.305, 1.5, 6.0)
    );
    // 0, 10, 40, 1, 0.5 ms: mean 10.3
    let delay = found.queue_delay_ms.unwrap();
    assert_eq!((delay.mean, delay.p50, delay.max), (10.3, 1.0, 40.0));
    // (1 + 1/2 + 1/6 + 2/3 + 40/41) / 5 = 3.308943 / 5 = 0.66179
    let rte = found.rte.unwrap();
    assert_eq!(
        (rte.mean, rte.at_least_095, rte.below_02),
        (0.6618, 0.4, 0.2)
    );
    // Involuntary switches are the ids: (0 + 1 + 2 + 3 + 5) / 5
    let switches = found.switches.unwrap();
    assert_eq!((switches.voluntary, switches.involuntary), (1.0, 2.2));
    // (1 + 1.1 + 1.1 + 1.01 + 1) / 5
    assert_eq!(found.cpu_over_service, Some(1.042));
    let lag = found.arrival_lag_ms.unwrap();
    assert_eq!((lag.mean, lag.p99, lag.max), (2.0, 3.0, 3.0));
}

#[test]
fn a_run_is_late_above_one_per_cent_of_the_short_turnaround() {
    let (trace, records) = six();
    // Mean turnaround of the short ones is 37.75 ms: 1 % is 377,500 ns.
    let late = |lag_ns: u64| {
        let found = summarise(&trace, &records, &setting(), &[0, 2 * lag_ns]);
        let lateness = found.arrival_lag.unwrap();
        (lateness.of_short_turnaround, lateness.late)
    };
    assert_eq!(late(377_000), (0.01, false));
    assert_eq!(late(378_000), (0.01, true));
    assert_eq!(late(37_750_000), (1.0, true));
    let unknown = summarise(&trace, &records, &setting(), &[]);
    assert_eq!((unknown.arrival_lag, unknown.is_late()), (None, false));
}

#[test]
fn an_older_summary_is_late_by_the_same_rule() {
    let (trace, records) = six();
    // 1 % of the short turnaround is 0.3775 ms, of that of all 0.602 ms.
    for lag_ns in [377_000, 378_000, 601_000, 603_000] {
        let new = summarise(&trace, &records, &setting(), &[lag_ns]);
        let mut old = new.clone();
        old.arrival_lag = None;
        assert_eq!(
            (old.is_late(), new.is_late()),
            (lag_ns > 377_500, lag_ns > 377_500)
        );
    }
    // If no short one completed, all count.
    let only_long = |lag_ns| {
        let records: Vec<Record> = records.iter().cloned().map(fail_all_but(3)).collect();
        let mut old = summarise(&trace, &records, &setting(), &[lag_ns]);
        old.arrival_lag = None;
        old.is_late()
    };
    assert_eq!([1_499_000, 1_501_000].map(only_long), [false, true]);
}

fn fail_all_but(id: usize) -> impl Fn(Record) -> Record {
    move |record| Record {
        exit: if record.id == id {
            record.exit
        } else {
            Exit::Code(1)
        },
        ..record
    }
}

#[test]
fn only_known_run_queue_waits_count() {
    let (trace, mut records) = six();
    let none = summarise(&trace, &records, &setting(), &[]);
    assert_eq!(none.runqueue_wait_ms, None);
    records[0].runqueue_wait_us = Some(1000);
    records[1].runqueue_wait_us = Some(4000);
    // It failed, so it counts only as failed.
    records[4].runqueue_wait_us = Some(9000);
    let wait = summarise(&trace, &records, &setting(), &[]).runqueue_wait_ms;
    let wait = wait.unwrap();
    assert_eq!((wait.mean, wait.max), (2.5, 4.0));
}

#[test]
fn short_are_the_shortest_83_per_cent_of_the_whole_trace() {
    let (trace, records) = six();
    let found = summarise(&trace, &records, &setting(), &[]);
    // ceil(6 x 0.83 = 4.98) = 5 of 6 are short: all but id 3; id 4 failed.
    assert_eq!((found.short.invocations, found.long.invocations), (4, 1));
    // (10 + 40 + 60 + 41) / 4
    assert_eq!(found.short.turnaround_ms.unwrap().mean, 37.75);
    assert_eq!(found.long.turnaround_ms.unwrap().mean, 150.0);
    assert_eq!(found.long.slowdown.unwrap().max, 1.5);
    assert_eq!(found.arrival_lag_ms, None);
}

#[test]
fn groups_agree_with_numbers_computed_by_hand() {
    let (mut trace, mut records) = six();
    for (id, function, class) in [
        (0, "a", Some(Class::Ls)),
        (1, "a", None),
        (2, "b", Some(Class::Ls)),
        (3, "b", Some(Class::Ld)),
        (4, "a", Some(Class::Ls)),
        (5, "b", Some(Class::Ld)),
    ] {
        trace.invocations[id].function = function.into();
        trace.invocations[id].class = class;
        records[id].function = function.into();
    }
    let found = summarise(&trace, &records, &setting(), &[]);
    let jitter = found.jitter.unwrap();
    // 10 40 41 60 150: ranks ceil(3.75) = 4 and ceil(1.25) = 2: 60 - 40; mean
    // 60.2, (2520.04 + 408.04 + 368.64 + 0.04 + 8064.04) / 5
    let turnaround = jitter.turnaround_ms;
    assert_eq!((turnaround.iqr, turnaround.variance), (20.0, 2272.16));
    // 1 1.025 1.5 2 6: 2 - 1.025; mean 2.305,
    // (1.703025 + 1.6384 + 0.648025 + 0.093025 + 13.653025) / 5 = 3.5471
    assert_eq!(jitter.slowdown.iqr, 0.975);
    assert_eq!(jitter.slowdown.variance, 3.5471);
    assert_eq!((found.short.failed, found.long.failed), (1, 0));
    // Short: delays 0, 10, 40, 0.5 ms; long: 1 ms, RTE 100 / 150.
    assert_eq!(found.short.queue_delay_ms.unwrap().mean, 12.625);
    assert_eq!(found.long.rte.unwrap().mean, 0.6667);
    assert_eq!(found.long.jitter.unwrap().turnaround_ms.variance, 0.0);

    let names: Vec<&String> = found.classes.keys().collect();
    assert_eq!(names, ["LD", "LS"]);
    let ls = found.classes["LS"];
    // 10 and 60 ms, slowed down by 1 and 6; id 4 failed.
    assert_eq!((ls.invocations, ls.failed), (2, 1));
    assert_eq!(ls.turnaround_ms.unwrap().mean, 35.0);
    let jitter = ls.jitter.unwrap();
    assert_eq!((jitter.slowdown.iqr, jitter.slowdown.variance), (5.0, 6.25));
    assert_eq!(jitter.turnaround_ms.variance, 625.0);
    // (1 + 1/6) / 2
    assert_eq!(ls.rte.unwrap().mean, 0.5833);
    assert_eq!(found.classes["LD"].turnaround_ms.unwrap().mean, 95.5);

    let names: Vec<&String> = found.functions.keys().collect();
    assert_eq!(names, ["a", "b"]);
    let a = found.functions["a"];
    // Service times 10, 20, 20 ms, the last failed; turnaround 10, 40 ms.
    assert_eq!((a.invocations, a.failed, a.service_ms), (2, 1, 16.667));
    let turnaround = a.turnaround_ms.unwrap();
    assert_eq!((turnaround.mean, turnaround.p50), (25.0, 10.0));
    assert_eq!((turnaround.p99, turnaround.iqr), (40.0, 30.0));
    assert_eq!(turnaround.variance, 225.0);
    assert_eq!(a.slowdown.unwrap().variance, 0.25);
    assert_eq!(a.queue_delay_ms.unwrap().mean, 5.0);
    assert_eq!(a.rte, Some(0.75));
    // 41 60 150: mean 83.6667, (1820.444 + 560.111 + 4400.111) / 3
    let b = found.functions["b"].turnaround_ms.unwrap();
    assert_eq!((b.mean, b.p50, b.iqr), (83.667, 60.0, 109.0));
    assert_eq!(b.variance, 2260.222);
}

#[test]
fn series_for_plots_agree_with_those_computed_by_hand() {
    let (trace, records) = six();
    let found = summarise(&trace, &records, &setting(), &[]);
    // 10 ms: 10 and 60; 20 ms: 40; 40 ms: 41; 100 ms: 150.
    let points = found.by_service.unwrap();
    assert_eq!(points.service_ms, [10.0, 20.0, 40.0, 100.0]);
    assert_eq!(points.invocations, [2, 1, 1, 1]);
    assert_eq!(points.turnaround_p50_ms, [10.0, 40.0, 41.0, 150.0]);
    assert_eq!(points.turnaround_p99_ms, [60.0, 40.0, 41.0, 150.0]);
    let time = found.over_time.unwrap();
    assert_eq!((time.from_ms, time.bin_ms), (10.0, 50.001));
    assert_eq!(time.arrivals, [6]);
    assert_eq!(time.mean_queue_delay_ms, [Some(10.3)]);
    assert_eq!(time.max_queue_delay_ms, [Some(40.0)]);
}

#[test]
fn bins_of_time_are_of_equal_length_and_may_be_empty() {
    // 32 invocations, one each millisecond: 4 bins of 31,001 / 4 us.
    let one = |id: u64| Invocation::cpu(id * 1000, "f", 10);
    let trace = trace((0..32).map(one).collect());
    let mut records: Vec<Record> = (0..32)
        .map(|id| record(&trace, id, id as u64 * 1000 + 500, 99_000, 10))
        .collect();
    for record in &mut records[24..] {
        record.exit = Exit::Code(1);
    }
    let time = summarise(&trace, &records, &setting(), &[])
        .over_time
        .unwrap();
    assert_eq!(time.bin_ms, 7.751);
    assert_eq!(time.arrivals, [8, 8, 8, 8]);
    let half = Some(0.5);
    assert_eq!(time.mean_queue_delay_ms, [half, half, half, None]);
    let at_once = super::OverTime::of(&trace.invocations[..1], &[]);
    assert_eq!(at_once, None);
}

#[test]
fn a_summary_without_the_later_fields_can_be_read() {
    let (trace, records) = six();
    let summary = summarise(&trace, &records, &setting(), &[]);
    let mut value = serde_json::to_value(&summary).unwrap();
    let fields = value.as_object_mut().unwrap();
    for later in ["jitter", "functions", "by_service", "over_time"] {
        assert!(fields.remove(later).is_some(), "{later}");
    }
    for group in ["short", "long"] {
        let group = fields[group].as_object_mut().unwrap();
        for later in ["failed", "queue_delay_ms", "rte", "jitter"] {
            assert!(group.remove(later).is_some(), "{later}");
        }
    }
    let cdf = fields["cdf"].as_object_mut().unwrap();
    assert!(cdf.remove("rte").is_some());
    let old: Summary = serde_json::from_value(value).unwrap();
    assert_eq!(old.turnaround_ms, summary.turnaround_ms);
    assert!(old.functions.is_empty() && old.jitter.is_none());
}

#[test]
fn with_io_slowdown_is_relative_to_cpu_and_io_time() {
    let mut one = Invocation::cpu(0, "f", 0);
    one.phases = vec![Phase::io(30_000), Phase::cpu(10_000)];
    let trace = trace(vec![one]);
    let records = [record(&trace, 0, 0, 60_000, 10_500)];
    let found = summarise(&trace, &records, &setting(), &[]);
    // 60 / (30 + 10), and CPU time 10.5 / 10
    assert_eq!(found.slowdown.unwrap().mean, 1.5);
    assert_eq!(found.cpu_over_service, Some(1.05));
    assert_eq!(found.trace.offered_load, None);
}

#[test]
fn nothing_measured_is_null_not_zero() {
    let (trace, _) = six();
    let mut setting = setting();
    setting.scheduler.status = Status::NotLoaded;
    let found = summarise(&trace, &[], &setting, &[]);
    assert_eq!((found.failed, found.makespan_ms), (6, None));
    assert_eq!(
        (found.turnaround_ms, found.rte, found.cdf.clone()),
        (None, None, None)
    );
    let text = json::to_text(&found).unwrap();
    assert!(text.contains("\"turnaround_ms\": null"));
    assert!(text.contains("\"status\": \"not-loaded\""));
}

#[test]
fn a_status_is_shown_as_in_the_file() {
    let all = [
        Status::Ok,
        Status::NotLoaded,
        Status::Ejected,
        Status::Reloaded,
        Status::BadExit,
        Status::Lost,
    ];
    for status in all {
        assert_eq!(serde_json::to_value(status).unwrap(), status.to_string());
    }
}

#[test]
fn the_cdf_goes_from_the_smallest_to_the_largest() {
    let (trace, records) = six();
    let cdf = summarise(&trace, &records, &setting(), &[]).cdf.unwrap();
    assert_eq!(cdf.turnaround_ms.len(), 201);
    assert_eq!(
        (cdf.turnaround_ms[0], cdf.turnaround_ms[200]),
        (10.0, 150.0)
    );
    assert_eq!(cdf.slowdown[100], 1.5);
    // 1/6, 1/2, 2/3, 40/41, 1
    assert_eq!(
        (cdf.rte[0], cdf.rte[100], cdf.rte[200]),
        (0.1667, 0.6667, 1.0)
    );
}

#[test]
fn a_summary_reads_back_from_its_text() {
    let (trace, records) = six();
    let summary = summarise(&trace, &records, &setting(), &[5]);
    let text = json::to_text(&summary).unwrap();
    assert!(text.starts_with("{\n  \"schema\": \"faasbench.summary/1\",\n  \"trace\": {"));
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    assert_eq!(json::to_text(&summary).unwrap(), text);
}
