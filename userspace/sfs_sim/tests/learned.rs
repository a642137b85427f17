//! Ranks and deadlines: cases computed by hand, and properties of every trace.
//! Times are in microseconds.

use faas_data::trace::{Invocation, Phase};
use proptest::collection::vec;
use proptest::prelude::*;
use sfs_sim::policy::{Kind, Settings};
use sfs_sim::simulate;
use sfs_sim::time::PER_US;

const MS: u64 = 1000;

fn ends(trace: &[Invocation], kind: Kind, settings: &Settings) -> Vec<u64> {
    let outcomes = simulate(trace, kind, settings).unwrap();
    outcomes.iter().map(|one| one.end_us()).collect()
}

fn ageing(ageing: f64) -> Settings {
    let mut settings = Settings::new(1);
    settings.mechanics.ageing = ageing;
    settings
}

/// `short` has always needed 1 ms, `long` 10 ms.
fn informed() -> Settings {
    let mut settings = Settings::new(1);
    for _ in 0..100 {
        settings.history.push(("short".into(), MS));
        settings.history.push(("long".into(), 10 * MS));
    }
    settings
}

fn long_then_shorts(shorts: u64) -> Vec<Invocation> {
    let short = |nth| Invocation::cpu(nth * MS, "short", MS);
    let mut trace = vec![Invocation::cpu(0, "long", 10 * MS)];
    trace.extend((1..=shorts).map(short));
    trace
}

#[test]
fn the_better_rank_preempts() {
    let trace = long_then_shorts(1);
    let settings = informed();
    assert_eq!(ends(&trace, Kind::Learned, &settings), [11 * MS, 2 * MS]);
    assert_eq!(ends(&trace, Kind::Known, &settings), [11 * MS, 2 * MS]);
    let outcomes = simulate(&trace, Kind::Learned, &settings).unwrap();
    assert_eq!(outcomes[0].preempted, 1);
}

#[test]
fn equals_and_the_margin_keep_the_cpu() {
    let equals = [
        Invocation::cpu(0, "short", MS),
        Invocation::cpu(10, "short", MS),
    ];
    let settings = informed();
    assert_eq!(
        ends(&equals, Kind::Learned, &settings),
        [MS, 2 * MS],
        "equals"
    );
    let mut wide = informed();
    wide.mechanics.margin = 90;
    let trace = long_then_shorts(1);
    assert_eq!(ends(&trace, Kind::Learned, &wide), [10 * MS, 11 * MS]);
}

#[test]
fn the_earliest_deadline_has_a_free_cpu() {
    // Both wait behind a short one; the later but shorter one goes first, with
    // a tiny `ageing` the order is that of arrival.
    let trace = [
        Invocation::cpu(0, "short", MS),
        Invocation::cpu(10, "long", 10 * MS),
        Invocation::cpu(20, "short", MS),
    ];
    let known = |factor| ends(&trace, Kind::Known, &ageing(factor));
    assert_eq!(known(2.0), [MS, 12 * MS, 2 * MS]);
    assert_eq!(known(0.0), [MS, 12 * MS, 2 * MS]);
    assert_eq!(known(1e-6), [MS, 11 * MS, 12 * MS]);
}

#[test]
fn ageing_ends_the_preemption() {
    // Short ones arrive throughout 200 ms.
    let trace = long_then_shorts(200);
    assert_eq!(ends(&trace, Kind::Known, &ageing(0.0))[0], 210 * MS);
    // The long one shares with one short one at a time. It costs 10 ms, rounded
    // down to its bucket, about 9.2 ms, and less while it is young. Processor
    // sharing would have given it twice that after about 37 ms. Then short ones
    // still take 25 ms in advance, and an eighth of the CPU, from it.
    let end = ends(&trace, Kind::Known, &ageing(2.0))[0];
    assert!((58 * MS..68 * MS).contains(&end), "{end}");
    let sooner = ends(&trace, Kind::Known, &ageing(1.0))[0];
    assert!(sooner + 10 * MS < end, "{sooner}");
}

#[test]
fn few_short_ones_do_not_wait_for_an_overdue_one() {
    // The long one is overdue from the start, nearly. The short ones need an eighth
    // of the CPU, and are half as long as the turns that they get.
    let short = |nth: u64| Invocation::cpu(nth * 32 * MS + MS, "short", 4 * MS);
    let mut trace = vec![Invocation::cpu(0, "long", 400 * MS)];
    trace.extend((0..10).map(short));
    let ends = ends(&trace, Kind::Known, &ageing(1e-6));
    for (one, end) in trace.iter().zip(&ends).skip(1) {
        assert_eq!(*end, one.arrival_us + 4 * MS);
    }
    assert_eq!(ends[0], 440 * MS);
}

#[test]
fn one_that_overtakes_and_is_preempted_goes_on_before_the_overdue() {
    let trace = [
        Invocation::cpu(0, "long", 400 * MS),
        Invocation::cpu(10 * MS, "middle", 7 * MS),
        Invocation::cpu(12 * MS, "short", MS),
    ];
    let ends = ends(&trace, Kind::Known, &ageing(1e-6));
    assert_eq!(ends, [408 * MS, 18 * MS, 13 * MS]);
}

#[test]
fn who_preempts_one_that_overtakes_pays_as_well() {
    // The long one has 50 ms left, and is overdue. The one in the middle takes a turn from it, and
    // each of the short ones could take that turn over from the one before it.
    let mut trace = vec![
        Invocation::cpu(0, "long", 500 * MS),
        Invocation::cpu(450 * MS, "middle", 16 * MS),
    ];
    trace.extend((1..200).map(|nth| Invocation::cpu((450 + nth) * MS, "short", MS)));
    let end = ends(&trace, Kind::Known, &ageing(0.9))[0];
    // An eighth, and 25 ms in advance.
    assert!(end < (450 + 50 * 8 / 7 + 25) * MS, "{end}");
}

#[test]
fn the_first_completion_counts() {
    // `short` is known after its first completion, `long` after its first one:
    // the second `short` preempts the second `long`. Before that, each has the
    // rank of an unknown function that has had nothing.
    let trace = [
        Invocation::cpu(0, "short", MS),
        Invocation::cpu(2 * MS, "long", 40 * MS),
        Invocation::cpu(50 * MS, "long", 40 * MS),
        Invocation::cpu(50 * MS + 10, "short", MS),
    ];
    let mut settings = Settings::new(1);
    assert_eq!(ends(&trace, Kind::Learned, &settings)[3], 51 * MS + 10);
    settings.mechanics.refresh = Some(3);
    assert!(ends(&trace, Kind::Learned, &settings)[3] > 51 * MS + 10);
}

#[test]
fn slices_end_at_ticks() {
    // On one CPU, two invocations of unknown functions, with one level per
    // power of two.
    let trace = [
        Invocation::cpu(0, "f", 20 * MS),
        Invocation::cpu(1, "f", MS),
    ];
    let mut settings = Settings::new(1);
    let end = |settings: &Settings| ends(&trace, Kind::Mlfq, settings)[1];
    // The newcomer does not preempt an equal, but the first slice ends when its
    // level does: at the first tick, or at once, level by level. The newcomer's
    // last level is from 0.92 to 1.84 ms, where it comes second.
    assert_eq!(end(&settings), 5 * MS);
    settings.mechanics.tick_us = 0;
    assert_eq!(end(&settings), 1835 + MS);
}

#[test]
fn a_short_function_that_turns_long_does_not_delay_others() {
    // `short` suddenly needs 50 ms. The other waits, to the next tick, until
    // `short` has had its usual service: most unknown functions that have had
    // this much turn out to be huge.
    let mut settings = informed();
    for _ in 0..300 {
        settings.history.push(("huge".into(), 1000 * MS));
    }
    let trace = [
        Invocation::cpu(0, "short", 50 * MS),
        Invocation::cpu(10, "long", 10 * MS),
    ];
    assert_eq!(ends(&trace, Kind::Learned, &settings)[1], (4 + 10) * MS);
}

#[test]
fn means_are_misled_and_distributions_are_not() {
    // f needs 1 ms nine times in ten and otherwise 200 ms, g always 20 ms.
    let mut settings = Settings::new(1);
    for nth in 0..200 {
        let us = if nth % 10 == 9 { 200 * MS } else { MS };
        settings.history.push(("f".into(), us));
        settings.history.push(("g".into(), 20 * MS));
    }
    let trace = [
        Invocation::cpu(0, "g", 20 * MS),
        Invocation::cpu(MS, "f", MS),
    ];
    assert_eq!(ends(&trace, Kind::Learned, &settings)[1], 2 * MS);
}

fn phase() -> impl Strategy<Value = Phase> {
    let us = prop_oneof![1u64..300, 1u64..30_000];
    prop_oneof![us.clone().prop_map(Phase::cpu), us.prop_map(Phase::io)]
}

/// Traces with I/O, of a few functions.
fn blocking() -> impl Strategy<Value = Vec<Invocation>> {
    vec((0u64..5000, 0u8..4, vec(phase(), 1..5)), 1..60).prop_map(|rows| {
        let mut arrival_us = 0;
        let invocation = |(gap, function, phases)| {
            arrival_us += gap;
            Invocation {
                arrival_us,
                function: format!("f{function}"),
                phases,
                class: None,
            }
        };
        rows.into_iter().map(invocation).collect()
    })
}

fn learning_early(cpus: u32, tick_us: u64) -> Settings {
    let mut settings = Settings::new(cpus);
    settings.mechanics.refresh = Some(2);
    settings.mechanics.tick_us = tick_us;
    settings
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn without_completions_attained_service_decides(trace in blocking(), cpus in 1u32..5) {
        let mut settings = Settings::new(cpus);
        settings.mechanics.refresh = Some(u32::MAX);
        let learned = simulate(&trace, Kind::Learned, &settings).unwrap();
        prop_assert_eq!(learned, simulate(&trace, Kind::Mlfq, &settings).unwrap());
    }

    #[test]
    fn a_change_of_ranks_loses_nothing(
        trace in blocking(),
        cpus in 1u32..5,
        tick_us in prop_oneof![Just(0), Just(1000)],
    ) {
        let settings = learning_early(cpus, tick_us);
        let outcomes = simulate(&trace, Kind::Learned, &settings).unwrap();
        for (one, outcome) in trace.iter().zip(&outcomes) {
            let ideal = (one.arrival_us + one.uncontended_us()) * PER_US;
            prop_assert!(outcome.end >= ideal);
            prop_assert!(outcome.start >= one.arrival_us * PER_US);
        }
    }

    #[test]
    fn no_cpu_idles_while_there_is_work(
        rows in vec((0u64..3000, 0u8..4, 1u64..9000), 1..60),
        tick_us in prop_oneof![Just(0), Just(1000)],
    ) {
        let mut now = 0;
        let invocation = |(gap, function, us)| {
            now += gap;
            Invocation::cpu(now, format!("f{function}"), us)
        };
        let trace: Vec<Invocation> = rows.into_iter().map(invocation).collect();
        let settings = learning_early(1, tick_us);
        let last = |kind| {
            let outcomes = simulate(&trace, kind, &settings).unwrap();
            outcomes.iter().map(|one| one.end).max().unwrap()
        };
        let late = last(Kind::Learned).abs_diff(last(Kind::Fifo));
        prop_assert!(late <= 2 * trace.len() as u64, "{late}");
    }
}
