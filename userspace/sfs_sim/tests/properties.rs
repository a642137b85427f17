//! Properties that hold for every trace.

use faas_data::trace::{Invocation, Phase};
use proptest::collection::vec;
use proptest::prelude::*;
use sfs_sim::policy::{Kind, Settings};
use sfs_sim::simulate;
use sfs_sim::time::PER_US;

/// Traces without I/O. Few different times, so that ties are common.
fn computing() -> impl Strategy<Value = Vec<Invocation>> {
    let pair = (0u64..30, prop_oneof![1u64..20, 1u64..2000]);
    vec(pair, 1..40).prop_map(|pairs| {
        let mut now_us = 0;
        let invocation = |(gap, service): (u64, u64)| {
            now_us += gap * gap;
            Invocation::cpu(now_us, "f", service)
        };
        pairs.into_iter().map(invocation).collect()
    })
}

fn phase() -> impl Strategy<Value = Phase> {
    let us = 1u64..300;
    prop_oneof![us.clone().prop_map(Phase::cpu), us.prop_map(Phase::io)]
}

/// Traces with I/O.
fn blocking() -> impl Strategy<Value = Vec<Invocation>> {
    vec((0u64..100, vec(phase(), 1..6)), 1..40).prop_map(|rows| {
        let mut arrival_us = 0;
        let invocation = |(gap, phases)| {
            arrival_us += gap;
            Invocation {
                arrival_us,
                function: "f".into(),
                phases,
                class: None,
            }
        };
        rows.into_iter().map(invocation).collect()
    })
}

fn ends(trace: &[Invocation], kind: Kind, cpus: u32) -> Vec<u64> {
    let outcomes = simulate(trace, kind, &Settings::new(cpus)).unwrap();
    outcomes.iter().map(|one| one.end).collect()
}

/// Policies that do not give each invocation a CPU of its own.
fn real() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| *kind != Kind::Ideal)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn srtf_has_the_lowest_mean_on_one_cpu(trace in computing()) {
        let sum = |kind| ends(&trace, kind, 1).iter().sum::<u64>();
        let srtf = sum(Kind::Srtf);
        for kind in real() {
            // Where sharers meet between ticks, one may gain a tick.
            prop_assert!(srtf <= sum(kind) + trace.len() as u64, "{kind:?}");
        }
    }

    #[test]
    fn no_cpu_idles_while_there_is_work(trace in computing()) {
        let makespan = |kind| ends(&trace, kind, 1).into_iter().max().unwrap();
        let fifo = makespan(Kind::Fifo);
        for kind in real() {
            // Each completion between ticks may come a tick late.
            let late = makespan(kind).abs_diff(fifo);
            prop_assert!(late <= 2 * trace.len() as u64, "{kind:?}: {late} ticks");
        }
    }

    #[test]
    fn nothing_is_faster_than_ideal(trace in blocking(), cpus in 1u32..6) {
        let ideal = ends(&trace, Kind::Ideal, cpus);
        for kind in real() {
            let outcomes = simulate(&trace, kind, &Settings::new(cpus)).unwrap();
            for ((one, outcome), ideal) in trace.iter().zip(&outcomes).zip(&ideal) {
                // Sharers that meet between ticks may gain a tick each time.
                prop_assert!(outcome.end + 100 >= *ideal, "{kind:?}");
                prop_assert!(outcome.start >= one.arrival_us * PER_US);
                prop_assert!(outcome.end >= outcome.start);
            }
        }
    }

    #[test]
    fn with_a_cpu_for_each_all_are_ideal(trace in blocking()) {
        let cpus = trace.len() as u32;
        let ideal = ends(&trace, Kind::Ideal, cpus);
        for kind in real() {
            prop_assert_eq!(&ends(&trace, kind, cpus), &ideal, "{:?}", kind);
        }
    }

    #[test]
    fn the_same_trace_gives_the_same_outcome(trace in blocking(), cpus in 1u32..6) {
        for kind in Kind::ALL {
            let again = || simulate(&trace, kind, &Settings::new(cpus));
            prop_assert_eq!(again(), again());
        }
    }
}
