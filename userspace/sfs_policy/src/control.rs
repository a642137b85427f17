//! The time of each decision: the crate's interface for the loader.
//!
//! Source: SFS (SC'22), adaptive slice: S is recomputed every N arrivals.

use core::num::NonZeroUsize;

use crate::{IatWindow, Mode, OverloadDetector, OverloadPolicy, SlicePolicy, Transition};

/// The settings of a [`Controller`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// N: number of arrivals that S is computed from, and between two recomputations.
    pub window: NonZeroUsize,
    /// How S is computed from the mean IAT.
    pub slice: SlicePolicy,
    /// S before the first N arrivals, in ns; clamped to the bounds of `slice`.
    pub initial_slice_ns: u64,
    /// When new invocations bypass FILTER; `None`: never.
    pub overload: Option<OverloadPolicy>,
    /// CPUs that run invocations, 1 or more.
    pub cpus: u32,
}

/// The observations and decisions of a [`Controller`] so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Number of arrivals.
    pub arrivals: u64,
    /// The mean IAT behind the slice in force, in ns; `None` before the first
    /// recomputation.
    pub mean_iat_ns: Option<u64>,
    /// The slice in force, in ns.
    pub slice_ns: u64,
    /// Number of CPUs that the slice is computed for.
    pub cpus: u32,
    /// Number of recomputations of S after N arrivals, whether S changed or not.
    pub recomputations: u64,
    /// Number of times that fair-only mode was entered.
    pub fair_only_entered: u64,
    /// Number of times that fair-only mode was left; `fair_only_entered`, or one less.
    pub fair_only_left: u64,
}

/// Takes the reports of the kernel half and returns new settings for it.
///
/// # Example
///
/// ```
/// use std::num::NonZeroUsize;
/// use sfs_policy::{Config, Controller, Mode, OverloadPolicy, SlicePolicy};
///
/// let mut controller = Controller::new(Config {
///     window: NonZeroUsize::new(3).unwrap(),
///     slice: SlicePolicy::new(1_000, 1_000_000)?,
///     initial_slice_ns: 50_000,
///     overload: Some(OverloadPolicy::default()),
///     cpus: 4,
/// });
/// assert_eq!(controller.on_arrivals(&[0, 10_000]), None);
/// assert_eq!(controller.on_arrivals(&[20_000]), Some(40_000));
/// assert!(controller.on_delay(120_000).is_some());
/// assert_eq!(controller.mode(), Mode::FairOnly);
/// # Ok::<(), sfs_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Controller {
    policy: SlicePolicy,
    window: IatWindow,
    detector: OverloadDetector,
    counters: Counters,
    /// Arrivals since the last recomputation, below N.
    pending: usize,
}

impl Controller {
    /// Creates a controller without any observations.
    pub fn new(config: Config) -> Self {
        Self {
            policy: config.slice,
            window: IatWindow::new(config.window),
            detector: OverloadDetector::new(config.overload),
            counters: Counters {
                arrivals: 0,
                mean_iat_ns: None,
                slice_ns: config.slice.clamp(config.initial_slice_ns),
                cpus: config.cpus,
                recomputations: 0,
                fair_only_entered: 0,
                fair_only_left: 0,
            },
            pending: 0,
        }
    }

    /// Takes arrivals (timestamps in ns), and returns S in ns if it changed.
    ///
    /// S is recomputed after exactly N arrivals each time, however they are split into calls.
    /// The first time it uses the N - 1 inter-arrival times between the first N arrivals, then
    /// the N since the last recomputation, so each counts once.
    pub fn on_arrivals(&mut self, arrivals_ns: &[u64]) -> Option<u64> {
        let before_ns = self.counters.slice_ns;
        for &arrival_ns in arrivals_ns {
            self.on_arrival(arrival_ns);
        }
        self.changed_from(before_ns)
    }

    /// Takes a queueing delay in ns, and returns the resulting change of mode, if any. See
    /// [`OverloadDetector::observe`] for the delay to pass.
    pub fn on_delay(&mut self, delay_ns: u64) -> Option<Transition> {
        let transition = self.detector.observe(delay_ns, self.counters.slice_ns)?;
        match transition {
            Transition::EnterFairOnly => self.counters.fair_only_entered += 1,
            Transition::LeaveFairOnly => self.counters.fair_only_left += 1,
        }
        Some(transition)
    }

    /// Takes a new number of CPUs, and returns S in ns if it changed.
    ///
    /// S changes at once, with the same mean IAT. The time of the next recomputation does not
    /// change.
    pub fn set_cpus(&mut self, cpus: u32) -> Option<u64> {
        let before_ns = self.counters.slice_ns;
        self.counters.cpus = cpus;
        self.apply_mean();
        self.changed_from(before_ns)
    }

    /// Takes over how S is computed and when fair-only mode begins and ends, and returns S in ns
    /// if it changed.
    ///
    /// S changes at once, with the same mean IAT; before the first N arrivals it is
    /// `initial_slice_ns`, in ns, within the new bounds. The mode stays until the next delay is
    /// reported.
    pub fn set_policies(
        &mut self,
        slice: SlicePolicy,
        initial_slice_ns: u64,
        overload: Option<OverloadPolicy>,
    ) -> Option<u64> {
        let before_ns = self.counters.slice_ns;
        self.policy = slice;
        self.detector.set_policy(overload);
        self.counters.slice_ns = slice.clamp(initial_slice_ns);
        self.apply_mean();
        self.changed_from(before_ns)
    }

    /// The slice in force, in ns.
    pub fn slice_ns(&self) -> u64 {
        self.counters.slice_ns
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.detector.mode()
    }

    /// The counters for statistics.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn on_arrival(&mut self, arrival_ns: u64) {
        self.window.push(arrival_ns);
        self.counters.arrivals += 1;
        self.pending += 1;
        if self.pending == self.window.capacity().get() {
            self.pending = 0;
            self.recompute();
        }
    }

    fn recompute(&mut self) {
        // With N = 1, the first N arrivals contain no interval.
        let Some(mean_iat_ns) = self.window.mean_iat_ns() else {
            return;
        };
        self.counters.mean_iat_ns = Some(mean_iat_ns);
        self.counters.recomputations += 1;
        self.apply_mean();
    }

    /// Derives the slice from the mean IAT and the CPUs in `counters`.
    fn apply_mean(&mut self) {
        if let Some(mean_iat_ns) = self.counters.mean_iat_ns {
            self.counters.slice_ns = self.policy.slice_ns(mean_iat_ns, self.counters.cpus);
        }
    }

    fn changed_from(&self, before_ns: u64) -> Option<u64> {
        (self.counters.slice_ns != before_ns).then_some(self.counters.slice_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config {
            window: NonZeroUsize::new(3).unwrap(),
            slice: SlicePolicy::new(1, 1_000).unwrap(),
            initial_slice_ns: 500,
            overload: Some(OverloadPolicy::default()),
            cpus: 2,
        }
    }

    #[test]
    fn new_policies_count_at_once_and_the_mode_stays() {
        let mut controller = Controller::new(config());
        let fixed = SlicePolicy::fixed(70).unwrap();
        let twice = Some(OverloadPolicy::with_factor(2.0).unwrap());
        // Before the first N arrivals, the initial slice within the bounds.
        assert_eq!(controller.set_policies(fixed, 500, twice), Some(70));
        assert_eq!(controller.set_policies(fixed, 500, twice), None);
        assert_eq!(controller.on_arrivals(&[0, 10, 40]), None);
        assert_eq!(controller.on_delay(139), None);
        assert!(controller.on_delay(140).is_some());
        // Then the mean IAT of 20 x 2 CPUs.
        let adaptive = config().slice;
        let changed = controller.set_policies(adaptive, 500, config().overload);
        assert_eq!(changed, Some(40));
        assert_eq!(controller.mode(), Mode::FairOnly);
        assert_eq!(controller.on_delay(40), Some(Transition::LeaveFairOnly));
        assert_eq!(controller.on_delay(119), None);
        assert!(controller.on_delay(120).is_some());
    }

    #[test]
    fn recomputes_after_each_n_arrivals() {
        let mut controller = Controller::new(config());
        assert_eq!(controller.slice_ns(), 500);
        assert_eq!(controller.on_arrivals(&[0, 10]), None);
        // IATs 10 and 30 between the first three arrivals: 20 x 2 CPUs.
        assert_eq!(controller.on_arrivals(&[40]), Some(40));
        assert_eq!(controller.on_arrivals(&[100, 200]), None);
        // IATs 60, 100 and 50: 70 x 2 CPUs.
        assert_eq!(controller.on_arrivals(&[250, 999]), Some(140));
        assert_eq!(controller.counters().recomputations, 2);
        assert_eq!(controller.counters().mean_iat_ns, Some(70));
        assert_eq!(controller.counters().arrivals, 7);
    }

    #[test]
    fn reports_only_changes() {
        let mut controller = Controller::new(config());
        assert_eq!(controller.on_arrivals(&[0, 250, 500]), None);
        assert_eq!(controller.counters().recomputations, 1);
    }

    #[test]
    fn initial_slice_is_within_bounds() {
        let controller = Controller::new(Config {
            initial_slice_ns: 9_999,
            ..config()
        });
        assert_eq!(controller.slice_ns(), 1_000);
    }

    #[test]
    fn a_fixed_slice_still_measures() {
        let slice = SlicePolicy::fixed(77).unwrap();
        let mut controller = Controller::new(Config { slice, ..config() });
        assert_eq!(controller.slice_ns(), 77);
        assert_eq!(controller.on_arrivals(&[0, 10, 20]), None);
        assert_eq!(controller.set_cpus(64), None);
        assert_eq!(controller.slice_ns(), 77);
        assert_eq!(controller.counters().mean_iat_ns, Some(10));
    }

    #[test]
    fn hotplug_rescales_the_slice() {
        let mut controller = Controller::new(config());
        assert_eq!(controller.set_cpus(4), None);
        assert_eq!(controller.on_arrivals(&[0, 10, 20]), Some(40));
        assert_eq!(controller.set_cpus(1), Some(10));
        assert_eq!(controller.counters().recomputations, 1);
    }

    #[test]
    fn a_window_of_one_waits_for_the_second_arrival() {
        let window = NonZeroUsize::MIN;
        let mut controller = Controller::new(Config { window, ..config() });
        assert_eq!(controller.on_arrivals(&[100]), None);
        assert_eq!(controller.counters().recomputations, 0);
        assert_eq!(controller.on_arrivals(&[107]), Some(14));
        assert_eq!(controller.on_arrivals(&[110]), Some(6));
    }

    #[test]
    fn counts_transitions() {
        let mut controller = Controller::new(config());
        assert_eq!(controller.on_delay(1_499), None);
        assert_eq!(controller.on_delay(1_500), Some(Transition::EnterFairOnly));
        assert_eq!(controller.mode(), Mode::FairOnly);
        assert_eq!(controller.counters().fair_only_entered, 1);
        assert_eq!(controller.on_delay(500), Some(Transition::LeaveFairOnly));
        assert_eq!(controller.counters().fair_only_left, 1);
    }
}
