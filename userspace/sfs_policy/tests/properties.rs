//! Properties of every input: the decisions compared with naive
//! reimplementations.

use std::num::NonZeroUsize;

use proptest::collection::vec;
use proptest::prelude::*;
use sfs_policy::{
    Config, Controller, IatWindow, Mode, OverloadDetector, OverloadPolicy, SlicePolicy, Transition,
};

const CPUS: std::ops::RangeInclusive<u32> = 1..=4096;

fn any_window() -> impl Strategy<Value = NonZeroUsize> {
    (1_usize..150).prop_map(|n| NonZeroUsize::new(n).expect("starts at 1"))
}

/// The step from one arrival to the next: mostly forward, sometimes disorder,
/// sometimes an arbitrary jump of the clock.
#[derive(Debug, Clone, Copy)]
enum Step {
    Forward(u64),
    Back(u64),
    Jump(u64),
}

fn any_arrivals() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![
        2 => Just(Step::Forward(0)),
        8 => (0_u64..20_000_000).prop_map(Step::Forward),
        2 => (0_u64..5_000_000).prop_map(Step::Back),
        1 => any::<u64>().prop_map(Step::Jump),
        1 => prop_oneof![Just(0), Just(u64::MAX)].prop_map(Step::Jump),
    ];
    (any::<u64>(), vec(step, 0..400)).prop_map(|(start_ns, steps)| {
        let arrivals = steps.into_iter().scan(start_ns, |now_ns, step| {
            *now_ns = match step {
                Step::Forward(ns) => now_ns.saturating_add(ns),
                Step::Back(ns) => now_ns.saturating_sub(ns),
                Step::Jump(ns) => ns,
            };
            Some(*now_ns)
        });
        arrivals.collect()
    })
}

/// Arrivals in order, without jumps; `count` of them.
fn orderly(count: usize) -> impl Strategy<Value = Vec<u64>> {
    (0_u64..1 << 60, vec(0_u64..1 << 40, count)).prop_map(|(start_ns, iats_ns)| {
        let arrivals = iats_ns.into_iter().scan(start_ns, |now_ns, iat_ns| {
            *now_ns += iat_ns;
            Some(*now_ns)
        });
        arrivals.collect()
    })
}

fn window_of(n: NonZeroUsize, arrivals_ns: &[u64]) -> IatWindow {
    let mut window = IatWindow::new(n);
    window.extend(arrivals_ns.iter().copied());
    window
}

/// Every IAT since the first arrival, by the documented rules and without
/// state: the reference of each is looked up in the arrivals before it.
fn naive_iats(n: NonZeroUsize, arrivals_ns: &[u64]) -> Vec<u64> {
    let mut iats_ns = Vec::new();
    // Start of the search for the newest arrival so far: the last clock step.
    let mut since = 0;
    for now in 1..arrivals_ns.len() {
        let newest_ns = arrivals_ns[since..now].iter().copied().max().unwrap_or(0);
        iats_ns.push(arrivals_ns[now].saturating_sub(newest_ns));
        let late = arrivals_ns[since..=now]
            .iter()
            .rev()
            .take_while(|&&at| at < newest_ns)
            .count();
        if late >= n.get() {
            since = now;
        }
    }
    iats_ns
}

/// The mean after each arrival.
fn naive_means(n: NonZeroUsize, arrivals_ns: &[u64]) -> Vec<Option<u64>> {
    let iats_ns = naive_iats(n, arrivals_ns);
    let mean = |len: usize| {
        let last = &iats_ns[len.saturating_sub(n.get())..len];
        let sum: u128 = last.iter().copied().map(u128::from).sum();
        let mean = sum.checked_div(last.len() as u128)?;
        Some(u64::try_from(mean).expect("a mean of u64s"))
    };
    (0..arrivals_ns.len()).map(mean).collect()
}

proptest! {
    #[test]
    fn window_equals_naive_reimplementation(n in any_window(), arrivals in any_arrivals()) {
        let means = naive_means(n, &arrivals);
        let mut window = IatWindow::new(n);
        for (before, &arrival) in arrivals.iter().enumerate() {
            window.push(arrival);
            prop_assert_eq!(window.mean_iat_ns(), means[before]);
            prop_assert_eq!(window.len(), before.min(n.get()));
            prop_assert_eq!(window.is_full(), before >= n.get());
        }
    }

    /// In order, the IATs add up to the time from the first to the last.
    #[test]
    fn orderly_mean_is_span_over_count(n in any_window(), arrivals in orderly(200)) {
        let last = arrivals.len() - 1;
        let span_ns = arrivals[last] - arrivals[last - n.get()];
        prop_assert_eq!(window_of(n, &arrivals).mean_iat_ns(), Some(span_ns / n.get() as u64));
    }

    /// With fewer arrivals than N the mean is over those present.
    #[test]
    fn few_arrivals_in_a_large_window(n in 200_usize..usize::MAX, arrivals in orderly(200)) {
        let window = window_of(NonZeroUsize::new(n).expect("not 0"), &arrivals);
        prop_assert_eq!(window.mean_iat_ns(), Some((arrivals[199] - arrivals[0]) / 199));
        prop_assert!(!window.is_full());
    }

    /// Concurrent writers swap neighbours; the mean stays the same.
    #[test]
    fn disorder_does_not_move_the_mean(arrivals in orderly(200), swaps in vec(1_usize..198, 0..300)) {
        let n = NonZeroUsize::new(250).expect("not 0");
        let mut disorderly = arrivals.clone();
        for at in swaps {
            disorderly.swap(at, at + 1);
        }
        // The first stays the first: an earlier arrival would extend the span.
        prop_assert_eq!(
            window_of(n, &disorderly).mean_iat_ns(),
            window_of(n, &arrivals).mean_iat_ns()
        );
    }

    /// 2 N orderly arrivals erase any earlier behaviour of the clock.
    #[test]
    fn window_recovers_from_any_past(
        n in any_window(),
        past in vec(any::<u64>(), 0..400),
        arrivals in orderly(300),
    ) {
        let n_arrivals = n.get();
        let recent = &arrivals[..2 * n_arrivals];
        let span_ns = recent[2 * n_arrivals - 1] - recent[n_arrivals - 1];
        let mut window = window_of(n, &past);
        window.extend(recent.iter().copied());
        prop_assert_eq!(window.mean_iat_ns(), Some(span_ns / n_arrivals as u64));
    }

    #[test]
    fn slice_is_within_bounds_and_monotone(
        (min_ns, max_ns) in (1_u64..u64::MAX, 1_u64..u64::MAX),
        (mean_a, mean_b) in any::<(u64, u64)>(),
        (cpus_a, cpus_b) in (CPUS, CPUS),
    ) {
        let policy = SlicePolicy::new(min_ns.min(max_ns), min_ns.max(max_ns)).expect("in order");
        let slice = policy.slice_ns(mean_a, cpus_a);
        prop_assert!((policy.min_ns()..=policy.max_ns()).contains(&slice));
        prop_assert!(policy.slice_ns(mean_a.min(mean_b), cpus_a) <= policy.slice_ns(mean_a.max(mean_b), cpus_a));
        prop_assert!(policy.slice_ns(mean_a, cpus_a.min(cpus_b)) <= policy.slice_ns(mean_a, cpus_a.max(cpus_b)));
    }

    #[test]
    fn slice_is_the_product_where_bounds_allow(mean in 1_u64..1 << 40, cpus in CPUS) {
        let policy = SlicePolicy::new(1, u64::MAX - 1).expect("valid bounds");
        prop_assert_eq!(policy.slice_ns(mean, cpus), mean * u64::from(cpus));
    }
}

fn any_overload() -> impl Strategy<Value = OverloadPolicy> {
    (0.001_f64..1e6, 0.001_f64..0.999).prop_map(|(factor, share)| {
        OverloadPolicy::new(factor, factor * share).expect("positive and in order")
    })
}

/// A detector in either mode.
fn detector(policy: OverloadPolicy, mode: Mode) -> OverloadDetector {
    let mut detector = OverloadDetector::new(Some(policy));
    if mode == Mode::FairOnly {
        detector.observe(u64::MAX, 1);
    }
    assert_eq!(detector.mode(), mode);
    detector
}

proptest! {
    #[test]
    fn thresholds_leave_a_band(policy in any_overload(), slice in any::<u64>()) {
        prop_assert!(policy.exit_ns(slice) < policy.enter_ns(slice));
    }

    /// Delays strictly between the thresholds, while S changes.
    #[test]
    fn no_flapping_inside_the_band(
        policy in any_overload(),
        mode in prop_oneof![Just(Mode::Filter), Just(Mode::FairOnly)],
        observations in vec((any::<u64>(), any::<u64>()), 1..200),
    ) {
        let mut detector = detector(policy, mode);
        for (slice, seed) in observations {
            let (exit, enter) = (policy.exit_ns(slice), policy.enter_ns(slice));
            let room = enter - exit - 1;
            if room > 0 {
                prop_assert_eq!(detector.observe(exit + 1 + seed % room, slice), None);
            }
        }
        prop_assert_eq!(detector.mode(), mode);
    }

    /// Any delays: the modes alternate, and each change has its cause.
    #[test]
    fn transitions_alternate_and_have_a_cause(
        policy in any_overload(),
        observations in vec((0_u64..100_000_000, 1_u64..50_000_000), 1..200),
    ) {
        let mut detector = OverloadDetector::new(Some(policy));
        for (delay, slice) in observations {
            let before = detector.mode();
            match detector.observe(delay, slice) {
                Some(Transition::EnterFairOnly) => {
                    prop_assert_eq!(before, Mode::Filter);
                    prop_assert!(delay >= policy.enter_ns(slice));
                }
                Some(Transition::LeaveFairOnly) => {
                    prop_assert_eq!(before, Mode::FairOnly);
                    prop_assert!(delay <= policy.exit_ns(slice));
                }
                None => prop_assert_eq!(detector.mode(), before),
            }
            prop_assert!(detector.mode() == Mode::FairOnly || delay < policy.enter_ns(slice));
            prop_assert!(detector.mode() == Mode::Filter || delay > policy.exit_ns(slice));
        }
    }

    #[test]
    fn disabled_never_changes(observations in vec(any::<(u64, u64)>(), 0..100)) {
        let mut detector = OverloadDetector::new(None);
        for (delay, slice) in observations {
            prop_assert_eq!(detector.observe(delay, slice), None);
        }
    }
}

fn any_config() -> impl Strategy<Value = Config> {
    (
        any_window(),
        CPUS,
        1_u64..10_000_000,
        10_000_000_u64..10_000_000_000,
    )
        .prop_map(|(window, cpus, min_ns, max_ns)| Config {
            window,
            slice: SlicePolicy::new(min_ns, max_ns).expect("in order"),
            initial_slice_ns: 50_000_000,
            overload: Some(OverloadPolicy::default()),
            cpus,
        })
}

proptest! {
    /// Any split into batches gives the same slices as one arrival at a time.
    #[test]
    fn controller_is_independent_of_batching(
        config in any_config(),
        arrivals in any_arrivals(),
        sizes in vec(0_usize..250, 1..50),
    ) {
        let mut single = Controller::new(config);
        let mut batched = Controller::new(config);
        let mut rest = arrivals.as_slice();
        for size in sizes.into_iter().chain([usize::MAX]) {
            let (batch, later) = rest.split_at(size.min(rest.len()));
            rest = later;
            let before = batched.slice_ns();
            for &arrival in batch {
                single.on_arrivals(&[arrival]);
            }
            let told = batched.on_arrivals(batch);
            prop_assert_eq!(batched.counters(), single.counters());
            prop_assert_eq!(told, (batched.slice_ns() != before).then_some(batched.slice_ns()));
        }
        prop_assert!(rest.is_empty());
    }

    /// S is that of the naive mean after each N arrivals, and constant in
    /// between.
    #[test]
    fn controller_recomputes_every_n_arrivals(config in any_config(), arrivals in any_arrivals()) {
        let means = naive_means(config.window, &arrivals);
        let mut controller = Controller::new(config);
        let mut slice = controller.slice_ns();
        for (before, &arrival) in arrivals.iter().enumerate() {
            controller.on_arrivals(&[arrival]);
            if (before + 1) % config.window.get() == 0 {
                if let Some(mean) = means[before] {
                    slice = config.slice.slice_ns(mean, config.cpus);
                }
            }
            prop_assert_eq!(controller.slice_ns(), slice);
        }
    }

    /// Hotplug between arrivals has the same effect as a start with that many
    /// CPUs.
    #[test]
    fn hotplug_equals_a_start_with_that_many_cpus(
        config in any_config(),
        arrivals in any_arrivals(),
        cpus in CPUS,
    ) {
        let mut plugged = Controller::new(config);
        let mut started = Controller::new(Config { cpus, ..config });
        plugged.on_arrivals(&arrivals);
        started.on_arrivals(&arrivals);
        plugged.set_cpus(cpus);
        prop_assert_eq!(plugged.counters(), started.counters());
    }
}
