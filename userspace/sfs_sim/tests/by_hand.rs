//! Small cases, computed by hand. Times are in microseconds.

use faas_data::trace::{Invocation, Phase};
use sfs_policy::{OverloadPolicy, SlicePolicy};
use sfs_sim::policy::{Kind, Settings};
use sfs_sim::simulate;

/// The ends, rounded down.
fn ends(trace: &[Invocation], kind: Kind, settings: &Settings) -> Vec<u64> {
    let outcomes = simulate(trace, kind, settings).unwrap();
    outcomes.iter().map(|one| one.end_us()).collect()
}

fn preempted(trace: &[Invocation], kind: Kind, settings: &Settings) -> Vec<u64> {
    let outcomes = simulate(trace, kind, settings).unwrap();
    outcomes.iter().map(|one| one.preempted).collect()
}

fn starts(trace: &[Invocation], kind: Kind, settings: &Settings) -> Vec<u64> {
    let outcomes = simulate(trace, kind, settings).unwrap();
    outcomes.iter().map(|one| one.start_us()).collect()
}

fn slice(cpus: u32, us: u64) -> Settings {
    Settings {
        slice: SlicePolicy::fixed(us * 1000).unwrap(),
        ..Settings::new(cpus)
    }
}

fn cpu(arrival_us: u64, service_us: u64) -> Invocation {
    Invocation::cpu(arrival_us, "f", service_us)
}

fn phases(arrival_us: u64, phases: &[Phase]) -> Invocation {
    Invocation {
        arrival_us,
        function: "f".into(),
        phases: phases.to_vec(),
        class: None,
    }
}

/// a arrives at 0 and needs 60, b at 10 and needs 20, c at 20 and needs 10.
fn three() -> [Invocation; 3] {
    [cpu(0, 60), cpu(10, 20), cpu(20, 10)]
}

#[test]
fn three_ideal() {
    assert_eq!(ends(&three(), Kind::Ideal, &Settings::new(1)), [60, 30, 30]);
}

#[test]
fn three_fifo() {
    let one = Settings::new(1);
    assert_eq!(ends(&three(), Kind::Fifo, &one), [60, 80, 90]);
    assert_eq!(starts(&three(), Kind::Fifo, &one), [0, 60, 80]);
}

#[test]
fn three_srtf() {
    // 10: b (20) preempts a (50 left). 20: b has 10 left, as much as c needs,
    // and stays. 30: c. 40: a.
    let one = Settings::new(1);
    assert_eq!(ends(&three(), Kind::Srtf, &one), [90, 30, 40]);
    assert_eq!(starts(&three(), Kind::Srtf, &one), [0, 10, 30]);
    assert_eq!(preempted(&three(), Kind::Srtf, &one), [1, 0, 0]);
}

#[test]
fn three_ps() {
    // 10: a has 50 left. Two share until 20: a 45, b 15, c 10 left. Three share
    // until c completes at 50: a 35, b 5. Two share until b completes at 60: a
    // 30.
    let one = Settings::new(1);
    assert_eq!(ends(&three(), Kind::Ps, &one), [90, 60, 50]);
    assert_eq!(starts(&three(), Kind::Ps, &one), [0, 10, 20]);
    // On two CPUs a and b have one each until 20: a 40, b 10, c 10 left. Three
    // get 2/3 each, 10 in 15: b and c complete at 35, a has 30 left.
    assert_eq!(ends(&three(), Kind::Ps, &Settings::new(2)), [65, 35, 35]);
}

#[test]
fn three_las() {
    // a runs alone until 10, then b, which has had as much as a at 20. Then c,
    // with the least, runs until it completes at 30. a and b share: b needs 10
    // more and completes at 50, a has 40 left.
    let one = Settings::new(1);
    assert_eq!(ends(&three(), Kind::Las, &one), [90, 50, 30]);
    assert_eq!(preempted(&three(), Kind::Las, &one), [1, 1, 0]);
    // On two CPUs a has had most when c arrives, and waits until 30, when both
    // others complete; a has 40 left.
    let two = Settings::new(2);
    assert_eq!(ends(&three(), Kind::Las, &two), [70, 30, 30]);
    assert_eq!(preempted(&three(), Kind::Las, &two), [1, 0, 0]);
}

#[test]
fn three_gittins() {
    // Values 10, 20, 60 with H = 10, 16 2/3, 30: G(0) = (2/3) / (16 2/3) = 0.04
    // (to 20), G(10) = (1/3) / (6 2/3) = 0.05 (to 20), G(20) = (1/3) / (13 1/3)
    // = 0.025. So a keeps the CPU at 10 and loses it at 20, where it falls
    // below b and c. b, the first of the two, is also above c at 10: b
    // completes at 40, c at 50, a at 90.
    let one = Settings::new(1);
    assert_eq!(ends(&three(), Kind::Gittins, &one), [90, 40, 50]);
    assert_eq!(preempted(&three(), Kind::Gittins, &one), [1, 0, 0]);
    // With a file that contains only 60, G rises all the time: FIFO.
    let known = Settings {
        durations_us: vec![60],
        ..one
    };
    assert_eq!(ends(&three(), Kind::Gittins, &known), [60, 80, 90]);
}

#[test]
fn three_sfs() {
    // S = 15. a runs until 15 and is demoted with 45 left, b until 30 with 5
    // left; c completes at 40. FAIR: b completes at 50, a has 40 left.
    let settings = slice(1, 15);
    assert_eq!(ends(&three(), Kind::Sfs, &settings), [90, 50, 40]);
    assert_eq!(starts(&three(), Kind::Sfs, &settings), [0, 15, 30]);
    assert_eq!(preempted(&three(), Kind::Sfs, &settings), [1, 1, 0]);
}

#[test]
fn las_equals_share_and_newcomers_catch_up() {
    // 10 to 20: the second one catches up. Then both share, each with 20 left.
    let two = [cpu(0, 30), cpu(10, 30)];
    assert_eq!(ends(&two, Kind::Las, &Settings::new(1)), [60, 60]);
    // Two CPUs: three share, 20 of 40 attained at 30. The newcomer has a CPU
    // until 35; three share the other and attain 5/3. The remaining 18 1/3 take
    // 27.5.
    let four = [cpu(0, 40), cpu(0, 40), cpu(0, 40), cpu(30, 5)];
    let settings = Settings::new(2);
    assert_eq!(ends(&four, Kind::Las, &settings), [62, 62, 62, 35]);
    assert_eq!(preempted(&four, Kind::Las, &settings), [0, 0, 0, 0]);
}

#[test]
fn las_sharers_catch_up_with_a_waiting_one() {
    // x has 30 of 60 when four of 40 arrive at 30, on two CPUs. The four
    // advance at 1/2 and reach x's 30 at 90; x waits until then. Five share 2
    // CPUs: the four need 10 more, which takes 25, until 115; x has 20 left
    // then: 135.
    let five = [
        cpu(0, 60),
        cpu(30, 40),
        cpu(30, 40),
        cpu(30, 40),
        cpu(30, 40),
    ];
    let settings = Settings::new(2);
    assert_eq!(ends(&five, Kind::Las, &settings), [135, 115, 115, 115, 115]);
    assert_eq!(preempted(&five, Kind::Las, &settings), [1, 0, 0, 0, 0]);
}

/// a computes 10, blocks for 20, computes 10; b computes 25.
fn blocking() -> [Invocation; 2] {
    [
        phases(0, &[Phase::cpu(10), Phase::io(20), Phase::cpu(10)]),
        cpu(0, 25),
    ]
}

#[test]
fn blocking_releases_the_cpu() {
    let one = Settings::new(1);
    assert_eq!(ends(&blocking(), Kind::Ideal, &one), [40, 25]);
    // a until 10, b until 35, a, back since 30, until 45.
    assert_eq!(ends(&blocking(), Kind::Fifo, &one), [45, 35]);
    // At 0 a needs 20, at 30 b has 5 left, a 10.
    assert_eq!(ends(&blocking(), Kind::Srtf, &one), [45, 35]);
    // Both share until a blocks at 20; b completes at 35; a is back at 40.
    assert_eq!(ends(&blocking(), Kind::Ps, &one), [50, 35]);
    assert_eq!(ends(&blocking(), Kind::Las, &one), [50, 35]);
    // Values 20 and 25: G(10) = 1 / 12.5 for a at 30, G(20) = 0.5 / 2.5 for b.
    assert_eq!(ends(&blocking(), Kind::Gittins, &one), [45, 35]);
    for kind in Kind::ALL {
        let outcomes = simulate(&blocking(), kind, &one).unwrap();
        assert_eq!((outcomes[0].blocked, outcomes[1].blocked), (1, 0));
    }
}

#[test]
fn credit_is_kept_across_io() {
    // S = 15. a uses 10 of it and blocks until 30. b is demoted at 25 with 10
    // left, and has had 5 of them by 30. a has 5 of its credit left, until 35.
    // Both need 5 more in FAIR: 45.
    let settings = slice(1, 15);
    assert_eq!(ends(&blocking(), Kind::Sfs, &settings), [45, 45]);
    assert_eq!(preempted(&blocking(), Kind::Sfs, &settings), [1, 1]);
}

#[test]
fn with_charge_io_blocking_uses_up_credit() {
    // As above, but a returns at 30 without credit and shares with b, which
    // then has 5 left: both get 5 until 40, and a the last 5 alone.
    let settings = Settings {
        charge_io: true,
        ..slice(1, 15)
    };
    assert_eq!(ends(&blocking(), Kind::Sfs, &settings), [45, 40]);
    assert_eq!(preempted(&blocking(), Kind::Sfs, &settings), [0, 1]);
    // Blocked for 10 of 15 before it computes: 5 are left, 3 are enough.
    let two = [phases(0, &[Phase::io(10), Phase::cpu(3)]), cpu(10, 15)];
    assert_eq!(ends(&two, Kind::Sfs, &settings), [13, 28]);
    // For 20: none is left, and FILTER goes first.
    let two = [phases(0, &[Phase::io(20), Phase::cpu(3)]), cpu(20, 15)];
    assert_eq!(ends(&two, Kind::Sfs, &settings), [38, 35]);
}

#[test]
fn an_invocation_that_begins_with_io_starts_at_once() {
    // It is ready at 15, when the other has run for 5; under FIFO it waits
    // until 40.
    let two = [
        phases(5, &[Phase::io(4), Phase::io(6), Phase::cpu(3)]),
        cpu(10, 30),
    ];
    let outcomes = simulate(&two, Kind::Fifo, &Settings::new(1)).unwrap();
    let first = outcomes[0];
    assert_eq!(
        (first.start_us(), first.end_us(), first.blocked),
        (5, 43, 1)
    );
    let only = [phases(5, &[Phase::io(10)])];
    for kind in Kind::ALL {
        let outcomes = simulate(&only, kind, &Settings::new(1)).unwrap();
        assert_eq!((outcomes[0].start_us(), outcomes[0].end_us()), (5, 15));
    }
}

#[test]
fn new_invocations_bypass_filter_under_overload() {
    // S = 10, overload from 30 on. Five of 10 arrive at 0. At 30 the fourth
    // starts, and the fifth has waited for 30: f, at 35, goes to FAIR. At 40
    // the fifth starts, FILTER is empty, overload is over: g, at 45, queues in
    // FILTER and runs from 50 on; f has the CPU from 60 on.
    let mut trace = vec![cpu(0, 10); 5];
    trace.extend([cpu(35, 10), cpu(45, 10)]);
    let settings = slice(1, 10);
    assert_eq!(settings.overload, Some(OverloadPolicy::default()));
    let hybrid = ends(&trace, Kind::Sfs, &settings);
    assert_eq!(hybrid, [10, 20, 30, 40, 50, 70, 60]);
    assert_eq!(starts(&trace, Kind::Sfs, &settings)[5..], [60, 50]);
    let without = ends(&trace, Kind::SfsNoHybrid, &settings);
    assert_eq!(without, [10, 20, 30, 40, 50, 60, 70]);
}

#[test]
fn the_slice_follows_the_arrivals() {
    // N = 2, no bounds, 2 CPUs. S is 100 at first; after two arrivals, 10
    // apart, 20; after four, 10 and 30 apart (each IAT counts once), 40. The
    // fourth gets 40, the third still 20. Each runs alone both in FILTER and in
    // FAIR, so only the number of demotions shows the difference.
    let settings = Settings {
        slice: SlicePolicy::new(1, 1_000_000_000).unwrap(),
        initial_slice_ns: 100_000,
        window: 2.try_into().unwrap(),
        ..Settings::new(2)
    };
    let trace = [cpu(0, 100), cpu(10, 21), cpu(20, 20), cpu(50, 41)];
    assert_eq!(preempted(&trace, Kind::Sfs, &settings), [0, 1, 0, 1]);
}

#[test]
fn traces_that_cannot_be_served_are_refused() {
    let settings = Settings::new(1);
    let message = |trace: &[Invocation], settings: &Settings| {
        simulate(trace, Kind::Ps, settings).unwrap_err().to_string()
    };
    assert_eq!(
        message(&[cpu(5, 1), cpu(4, 1)], &settings),
        "invocation 1 arrives before its predecessor"
    );
    let long = [cpu(0, 9_000_000_000_000), cpu(0, 9_000_000_000_000)];
    assert_eq!(
        message(&long, &settings),
        "the trace may take 27000000000000 us to serve, more than 10000000000000"
    );
    assert_eq!(message(&three(), &Settings::new(0)), "want 1 CPU or more");
    for kind in Kind::ALL {
        assert_eq!(simulate(&[], kind, &settings), Ok(vec![]));
        let far = [
            cpu(4_999_999_999_998, 1),
            cpu(4_999_999_999_999, 2_500_000_000_000),
        ];
        assert_eq!(ends(&far, kind, &settings)[1], 7_499_999_999_999);
    }
}
