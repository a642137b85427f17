//! Whole workloads: the bytes are reproducible, and any options give a valid
//! trace.

use super::arrivals::Bursts;
use super::distribution::{ByDuration, Distribution, Lognormal};
use super::functions::{Functions, Popularity};
use super::io::Place;
use super::table1::Version;
use super::*;
use faas_data::trace::{self, hex_sha256, to_csv};
use proptest::prelude::*;

const AMOUNT: Amount = Amount {
    invocations: 1000,
    load: 0.8,
    cpus: 4,
    seed: 42,
};

fn by_duration(distribution: Distribution) -> ByDuration {
    ByDuration {
        distribution,
        scale: 0.25,
    }
}

fn lognormal() -> Distribution {
    Distribution::Lognormal(Lognormal::new(-0.38, 2.36, 1e3, 60e6).unwrap())
}

fn bimodal() -> Distribution {
    Distribution::Bimodal {
        short_us: 50e3,
        long_us: 2e6,
        long_share: 0.17,
        spread: 0.1,
    }
}

/// SHA-256 of the trace, its first 16 digits.
fn hash(workload: &Workload) -> String {
    let invocations = workload.make(AMOUNT).unwrap();
    hex_sha256(to_csv(&invocations).as_bytes())[..16].to_string()
}

/// Golden: a change here changes published workloads.
#[test]
fn every_preset_keeps_its_bytes() {
    let uniform = Distribution::Uniform {
        low_us: 1e3,
        high_us: 771e3,
    };
    let exponential = Distribution::Exponential { mean_us: 386e3 };
    let empirical = Distribution::Empirical(vec![1e3, 2e3, 6e3]);
    let presets = [lognormal(), exponential, uniform, bimodal(), empirical];
    let found = presets.map(|preset| hash(&Workload::new(&by_duration(preset))));
    let want = [
        "ffcbd898fff9b656",
        "5d15d3d12da5fe3a",
        "c4769b21fd5c70e6",
        "a7f3dc33cbb50051",
        "26657323d2f05eba",
    ];
    assert_eq!(found, want);
}

/// Golden, as above.
#[test]
fn every_kind_of_arrivals_functions_and_io_keeps_its_bytes() {
    let durations = by_duration(Distribution::Table1(Version::Artefact));
    let plain = Workload::new(&durations);
    let skewed = Functions::new(
        50,
        Popularity::Skewed,
        &lognormal(),
        0.25,
        1.0,
        Random::stream(42, stream::FUNCTIONS),
    );
    let uniform = Workload {
        arrivals: Arrivals::Uniform,
        ..plain.clone()
    };
    let bursty = Workload {
        arrivals: Arrivals::Bursty(Bursts::default()),
        spikes: Some(Spikes {
            count: 2,
            invocations: 50,
        }),
        ..plain.clone()
    };
    let replayed = Workload {
        arrivals: Arrivals::Replay(vec![1, 2, 30]),
        ..plain.clone()
    };
    let blocking = Workload {
        durations: &skewed,
        io: Some(Io {
            share: 0.75,
            low_us: 10e3,
            high_us: 100e3,
            place: Place::Start,
        }),
        class_split_us: Some(100_000),
        ..plain
    };
    let found = [uniform, bursty, replayed, blocking].map(|workload| hash(&workload));
    let want = [
        "008ea29befda969b",
        "07ae30ef9eb8c9f2",
        "22a200c6c737f058",
        "b06684f64ed80dd5",
    ];
    assert_eq!(found, want);
}

#[test]
fn one_option_changes_only_its_own_part() {
    let durations = by_duration(Distribution::Table1(Version::Artefact));
    let plain = Workload::new(&durations);
    let services = |workload: &Workload| -> Vec<u64> {
        let made = workload.make(AMOUNT).unwrap();
        made.iter().map(Invocation::service_us).collect()
    };
    let bursty = Workload {
        arrivals: Arrivals::Bursty(Bursts::default()),
        ..plain.clone()
    };
    assert_eq!(services(&plain), services(&bursty));
    let blocking = Workload {
        io: Some(Io {
            share: 0.5,
            low_us: 1e3,
            high_us: 1e3,
            place: Place::Middle,
        }),
        ..plain.clone()
    };
    let arrivals = |workload: &Workload| -> Vec<u64> {
        let made = workload.make(AMOUNT).unwrap();
        made.iter().map(|one| one.arrival_us).collect()
    };
    assert_eq!(arrivals(&plain), arrivals(&blocking));
}

#[test]
fn a_class_belongs_to_a_function() {
    let make = |function: &str, us| Invocation::cpu(0, function, us);
    let mut all = [make("a", 10), make("b", 30), make("a", 20), make("b", 1)];
    classify(&mut all, 15);
    let classes: Vec<Class> = all.iter().filter_map(|one| one.class).collect();
    // Means 15 and 15.5
    assert_eq!(classes, [Class::Ls, Class::Ld, Class::Ls, Class::Ld]);
}

#[test]
fn impossible_workloads_are_refused() {
    let durations = by_duration(Distribution::Exponential { mean_us: 1e12 });
    let amount = Amount {
        load: 0.001,
        ..AMOUNT
    };
    let error = Workload::new(&durations).make(amount).unwrap_err();
    assert!(error.to_string().contains("longer than 115 days"));
    let spiky = Workload {
        spikes: Some(Spikes {
            count: 4,
            invocations: 250,
        }),
        ..Workload::new(&durations)
    };
    let error = spiky.make(AMOUNT).unwrap_err().to_string();
    assert!(
        error.starts_with("4 spikes of 250 invocations do not fit into 1000"),
        "{error}"
    );
}

fn any_distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        Just(Distribution::Table1(Version::Text)),
        Just(Distribution::Table1(Version::Artefact)),
        Just(lognormal()),
        Just(bimodal()),
        (1.0..1e7f64).prop_map(|mean_us| Distribution::Exponential { mean_us }),
        (1.0..1e6f64, 0.0..1e7f64).prop_map(|(low_us, width)| Distribution::Uniform {
            low_us,
            high_us: low_us + width,
        }),
        prop::collection::vec(0.0..1e7f64, 1..9).prop_map(Distribution::Empirical),
    ]
}

fn any_arrivals() -> impl Strategy<Value = Arrivals> {
    let bursts = (1.0..1e3f64, 0.01..1e3f64, 0.01..1e3f64);
    prop_oneof![
        Just(Arrivals::Poisson),
        Just(Arrivals::Uniform),
        bursts.prop_map(|(factor, burst_gaps, quiet_gaps)| Arrivals::Bursty(Bursts {
            factor,
            burst_gaps,
            quiet_gaps,
        })),
        prop::collection::vec(0..1_000_000u64, 1..9)
            .prop_filter("some time", |gaps| gaps.iter().sum::<u64>() > 0)
            .prop_map(Arrivals::Replay),
    ]
}

fn any_io() -> impl Strategy<Value = Io> {
    let place = prop_oneof![
        Just(Place::Start),
        Just(Place::Middle),
        Just(Place::Several)
    ];
    (0.0..=1.0f64, 0.0..1e5f64, 0.0..1e5f64, place).prop_map(|(share, low_us, width, place)| Io {
        share,
        low_us,
        high_us: low_us + width,
        place,
    })
}

fn any_functions() -> impl Strategy<Value = (u32, Popularity, f64)> {
    let popularity = prop_oneof![
        (0.0..4.0f64).prop_map(Popularity::Zipf),
        Just(Popularity::Skewed),
        Just(Popularity::Uniform),
    ];
    (2..200u32, popularity, 0.0..3.0f64)
}

fn any_amount() -> impl Strategy<Value = Amount> {
    (1..300u32, 0.001..100.0f64, 1..100u32, any::<u64>()).prop_map(
        |(invocations, load, cpus, seed)| Amount {
            invocations,
            load,
            cpus,
            seed,
        },
    )
}

#[test]
fn a_sample_is_scaled_to_a_mean() {
    let durations = by_duration(lognormal());
    let workload = Workload {
        mean_us: Some(200e3),
        ..Workload::new(&durations)
    };
    let made = workload.make(AMOUNT).unwrap();
    let sum: u64 = made.iter().map(Invocation::service_us).sum();
    let mean_us = sum as f64 / made.len() as f64;
    // Rounding is off by at most half a microsecond.
    assert!((mean_us - 200e3).abs() < 0.5, "{mean_us}");
    assert!(load_is_met(&made, AMOUNT));
}

/// Whether the span of `made` gives the requested load, to the microsecond.
fn load_is_met(made: &[Invocation], amount: Amount) -> bool {
    let span = made[made.len() - 1].arrival_us - made[0].arrival_us;
    let service: u64 = made.iter().map(Invocation::service_us).sum();
    let want = service as f64 / (amount.load * f64::from(amount.cpus));
    // A sample may arrive all at once, and then has no load to stretch.
    span == 0 || (span as f64 - want).abs() <= 1.0 + want * 1e-9
}

proptest! {
    #[test]
    fn any_valid_options_make_a_valid_trace(
        distribution in any_distribution(),
        arrivals in any_arrivals(),
        io in prop::option::of(any_io()),
        functions in prop::option::of(any_functions()),
        class_split_us in prop::option::of(0..1_000_000u64),
        mean_us in prop::option::of(1e3..1e6f64),
        spikes in prop::option::of((1..5u32, 1..50u32)),
        scale in 0.001..10.0f64,
        amount in any_amount(),
    ) {
        let spikes = spikes.map(|(count, invocations)| Spikes { count, invocations });
        let durations: Box<dyn Durations> = match functions {
            Some((count, popularity, cv)) => {
                let random = Random::stream(amount.seed, stream::FUNCTIONS);
                Box::new(Functions::new(count, popularity, &distribution, scale, cv, random))
            }
            None => Box::new(ByDuration { distribution, scale }),
        };
        let fit = spikes.is_none_or(|spikes| spikes.fit(amount.invocations));
        let workload = Workload { durations: &*durations, arrivals, spikes, io, class_split_us, mean_us };
        let made = workload.make(amount);
        prop_assert_eq!(made.is_ok(), fit);
        let Ok(made) = made else { return Ok(()) };
        prop_assert_eq!(made.len(), amount.invocations as usize);
        prop_assert!(made.iter().all(|one| one.phases.iter().any(|phase| phase.cpu_us() > 0)));
        prop_assert!(load_is_met(&made, amount));
        // The reader checks order, names, phases and classes.
        let text = to_csv(&made);
        prop_assert_eq!(&trace::parse("made", text.as_bytes()).unwrap(), &made);
        prop_assert_eq!(to_csv(&workload.make(amount).unwrap()), text);
    }
}
