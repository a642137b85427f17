//! Known means of queueing theory, within their confidence intervals. Seeds are
//! fixed: a test that passes once always passes.

mod common;

use common::{assert_mean, mean, poisson, run, turnarounds, Random};
use faas_data::trace::Invocation;
use sfs_policy::SlicePolicy;
use sfs_sim::policy::{Kind, Settings};
use sfs_sim::simulate;

/// Mean service time in all of them, in microseconds.
const SERVICE_US: f64 = 10_000.0;

fn exponential(count: usize, load: f64, cpus: u32, seed: u64) -> Vec<Invocation> {
    let gap_us = SERVICE_US / (load * f64::from(cpus));
    poisson(count, gap_us, seed, |random| random.exponential(SERVICE_US))
}

/// One in ten needs 91 ms, the others 1 ms: a mean of 10 ms, and a squared
/// coefficient of variation of 7.29.
fn bimodal(random: &mut Random) -> f64 {
    if random.unit() < 0.1 {
        91_000.0
    } else {
        1_000.0
    }
}

/// Balanced hyperexponential: one in ten with a mean of 50 ms, the others with
/// one of 50/9 ms. Its hazard rate falls.
fn hyperexponential(random: &mut Random) -> f64 {
    if random.unit() < 0.1 {
        random.exponential(50_000.0)
    } else {
        random.exponential(50_000.0 / 9.0)
    }
}

/// Probability of waiting in M/M/c (Erlang 1917; Harchol-Balter 2013, ch. 14),
/// by the recursion of Erlang B.
fn erlang_c(load: f64, cpus: u32) -> f64 {
    let offered = load * f64::from(cpus);
    let blocking = (1..=cpus).fold(1.0, |b, c| offered * b / (f64::from(c) + offered * b));
    blocking / (1.0 - load * (1.0 - blocking))
}

#[test]
fn mm1_fifo() {
    // E[T] = E[X] / (1 - load): Kleinrock 1975, sec. 3.2.
    let trace = exponential(400_000, 0.7, 1, 1);
    let found = turnarounds(&trace, &run(&trace, Kind::Fifo, 1));
    assert_mean(&found, SERVICE_US / 0.3, 0.05);
}

#[test]
fn mmc_fifo() {
    // E[T] = E[X] + C(c, load) E[X] / (c (1 - load)): Erlang 1917.
    for (cpus, load) in [(2, 0.7), (4, 0.8), (12, 0.9)] {
        let trace = exponential(400_000, load, cpus, 2);
        let found = turnarounds(&trace, &run(&trace, Kind::Fifo, cpus));
        let wait = erlang_c(load, cpus) * SERVICE_US / (f64::from(cpus) * (1.0 - load));
        assert_mean(&found, SERVICE_US + wait, 0.07);
    }
}

#[test]
fn md1_fifo() {
    // E[T] = x + load x / (2 (1 - load)): Pollaczek 1930, Khinchine 1932.
    let trace = poisson(400_000, SERVICE_US / 0.8, 3, |_| SERVICE_US);
    let found = turnarounds(&trace, &run(&trace, Kind::Fifo, 1));
    assert_mean(&found, SERVICE_US * (1.0 + 0.8 / (2.0 * 0.2)), 0.05);
}

#[test]
fn mg1_fifo() {
    // E[T] = E[X] + load E[X] (1 + C^2) / (2 (1 - load)), with C^2 = 7.29.
    let trace = poisson(400_000, SERVICE_US / 0.5, 4, bimodal);
    let found = turnarounds(&trace, &run(&trace, Kind::Fifo, 1));
    assert_mean(&found, SERVICE_US * (1.0 + 0.5 * 8.29 / (2.0 * 0.5)), 0.05);
}

#[test]
fn mg1_ps_depends_on_the_mean_only() {
    // E[T] = E[X] / (1 - load) for any distribution: Kleinrock 1976, sec. 4.4.
    let distributions: [fn(&mut Random) -> f64; 4] = [
        |random| random.exponential(SERVICE_US),
        bimodal,
        hyperexponential,
        |_| SERVICE_US,
    ];
    for draw in distributions {
        let trace = poisson(400_000, SERVICE_US / 0.7, 5, draw);
        let found = turnarounds(&trace, &run(&trace, Kind::Ps, 1));
        assert_mean(&found, SERVICE_US / 0.3, 0.1);
    }
}

#[test]
fn mg1_ps_slows_all_down_alike() {
    // E[T | X = x] = x / (1 - load): Kleinrock 1976, sec. 4.4.
    let trace = poisson(400_000, SERVICE_US / 0.7, 6, bimodal);
    for service_us in [1_000, 91_000] {
        let found = turnarounds_of(&trace, Kind::Ps, service_us);
        assert_mean(&found, service_us as f64 / 0.3, 0.1);
    }
}

#[test]
fn mmc_ps_has_the_mean_of_fifo() {
    // Exponential times are memoryless: the number present does not depend on
    // the order of service (Kleinrock 1976, sec. 3.2), so E[T] is Erlang's.
    let trace = exponential(400_000, 0.8, 4, 7);
    let found = turnarounds(&trace, &run(&trace, Kind::Ps, 4));
    let wait = erlang_c(0.8, 4) * SERVICE_US / (4.0 * 0.2);
    assert_mean(&found, SERVICE_US + wait, 0.05);
}

#[test]
fn mm1_is_the_same_in_every_order_that_does_not_know_durations() {
    let trace = exponential(400_000, 0.7, 1, 8);
    for kind in [Kind::Ps, Kind::Fifo, Kind::Sfs, Kind::Las, Kind::Gittins] {
        let found = turnarounds(&trace, &run(&trace, kind, 1));
        assert_mean(&found, SERVICE_US / 0.3, 0.05);
    }
}

/// The turnarounds of those of `trace` that need `service_us`, on one CPU.
fn turnarounds_of(trace: &[Invocation], kind: Kind, service_us: u64) -> Vec<f64> {
    let settings = Settings {
        durations_us: [vec![1_000; 9], vec![91_000]].concat(),
        ..Settings::new(1)
    };
    let all = turnarounds(trace, &simulate(trace, kind, &settings).unwrap());
    let these = trace.iter().zip(all);
    let these = these.filter(|(one, _)| one.service_us() == service_us);
    these.map(|(_, turnaround)| turnaround).collect()
}

#[test]
fn mg1_las_by_its_formula() {
    // With m = E[min(X, x)], s = E[min(X, x)^2] and arrivals at rate L
    // (Kleinrock 1976, sec. 4.6; Harchol-Balter 2013, ch. 30):
    //   E[T | X = x] = x / (1 - L m) + L s / (2 (1 - L m)^2).
    // It holds where many need exactly x, as equals share until they end
    // together.
    let rate = 0.5 / SERVICE_US;
    let trace = poisson(400_000, 1.0 / rate, 9, bimodal);
    for x in [1_000.0, 91_000.0f64] {
        let moment = |power| 0.9 * x.min(1_000.0).powi(power) + 0.1 * x.min(91_000.0).powi(power);
        let rest = 1.0 - rate * moment(1);
        let want = x / rest + rate * moment(2) / (2.0 * rest * rest);
        let found = turnarounds_of(&trace, Kind::Las, x as u64);
        assert_mean(&found, want, 0.1);
    }
}

#[test]
fn mg1_srtf_by_its_formula() {
    // Schrage & Miller 1966, for two values x1 < x2 with shares 0.9 and 0.1, r1
    // the load of the short ones, r of all, arrivals at rate L:
    //   E[T1] = x1 + L x1^2 / (2 (1 - r1)): a long one counts once it has only
    // x1 left,
    //   E[T2] = x1 + (x2 - x1) / (1 - r1) + L E[X^2] / (2 (1 - r1) (1 - r)):
    // no short one preempts it for its last x1.
    let (load, short, long) = (0.5, 1_000.0, 91_000.0);
    let rate = load / SERVICE_US;
    let trace = poisson(400_000, 1.0 / rate, 10, bimodal);
    let rest = 1.0 - rate * 0.9 * short;
    let want = short + rate * short * short / (2.0 * rest);
    assert_mean(&turnarounds_of(&trace, Kind::Srtf, 1_000), want, 0.05);
    let square = 0.9 * short * short + 0.1 * long * long;
    let wait = rate * square / (2.0 * rest * (1.0 - load));
    let want = short + (long - short) / rest + wait;
    assert_mean(&turnarounds_of(&trace, Kind::Srtf, 91_000), want, 0.05);
}

#[test]
fn mg1_gittins_by_its_formula() {
    // The same two values. G(0) = 0.9 / x1, as long as 1 / (x2 - x1) at age x1
    // is less. Then G(a) = 1 / (x2 - a), above G(0) again for the last d =
    // x1 / 0.9 of a long one. By the SOAP formula (Scully, Harchol-Balter &
    // Scheller-Wolf 2018), r1 = L x1 being the load of all first x1:
    //   E[T1] = x1 + L (x1^2 + 0.1 d^2) / (2 (1 - r1)),
    //   E[T2] = (x2 - d) / (1 - r1) + d + L E[X^2] / (2 (1 - r1) (1 - r)).
    let (load, short, long) = (0.5, 1_000.0, 91_000.0);
    let rate = load / SERVICE_US;
    let trace = poisson(400_000, 1.0 / rate, 14, bimodal);
    let (last, rest) = (short / 0.9, 1.0 - rate * short);
    let want = short + rate * (short * short + 0.1 * last * last) / (2.0 * rest);
    assert_mean(&turnarounds_of(&trace, Kind::Gittins, 1_000), want, 0.05);
    let square = 0.9 * short * short + 0.1 * long * long;
    let wait = rate * square / (2.0 * rest * (1.0 - load));
    let want = (long - last) / rest + last + wait;
    assert_mean(&turnarounds_of(&trace, Kind::Gittins, 91_000), want, 0.05);
}

#[test]
fn gittins_is_las_where_the_hazard_rate_falls() {
    // Gittins 1979; Aalto, Ayesta & Righter 2009, sec. 4. The policy knows the
    // distribution by 512 quantiles of the trace, hence the tolerance of 1 %.
    for cpus in [1, 4] {
        let gap_us = SERVICE_US / (0.8 * f64::from(cpus));
        let trace = poisson(100_000, gap_us, 11, hyperexponential);
        let of = |kind| mean(&turnarounds(&trace, &run(&trace, kind, cpus)));
        let (gittins, las, fifo) = (of(Kind::Gittins), of(Kind::Las), of(Kind::Fifo));
        assert!((gittins / las - 1.0).abs() < 0.01, "{gittins} {las} {fifo}");
        assert!(las < 0.9 * fifo, "{las} {fifo}");
    }
}

#[test]
fn gittins_of_equal_durations_is_fifo() {
    for cpus in [1, 3] {
        let gap_us = SERVICE_US / (0.9 * f64::from(cpus));
        let trace = poisson(10_000, gap_us, 12, |_| SERVICE_US);
        assert_eq!(
            run(&trace, Kind::Gittins, cpus),
            run(&trace, Kind::Fifo, cpus)
        );
    }
}

#[test]
fn sfs_is_fifo_with_a_long_slice_and_ps_with_a_short_one() {
    let trace = poisson(10_000, SERVICE_US / (0.9 * 4.0), 13, hyperexponential);
    let sfs = |slice_us: u64| {
        let slice = SlicePolicy::fixed(slice_us * 1000).unwrap();
        let settings = Settings {
            slice,
            ..Settings::new(4)
        };
        simulate(&trace, Kind::SfsNoHybrid, &settings).unwrap()
    };
    let times = |outcomes: &[sfs_sim::Outcome]| -> Vec<(u64, u64)> {
        outcomes.iter().map(|one| (one.start, one.end)).collect()
    };
    assert_eq!(
        times(&sfs(1_000_000_000)),
        times(&run(&trace, Kind::Fifo, 4))
    );
    let (short, ps) = (sfs(1), run(&trace, Kind::Ps, 4));
    let (short, ps) = (turnarounds(&trace, &short), turnarounds(&trace, &ps));
    assert!((mean(&short) / mean(&ps) - 1.0).abs() < 1e-3);
}
