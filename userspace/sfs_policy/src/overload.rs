//! Overload: when FILTER delays new invocations too much, and when this is over.
//!
//! Source: SFS (SC'22), transient overload: an invocation that has waited O x S or longer in
//! FILTER (O = 3) makes new ones bypass it until the delay is back to normal. The paper does
//! not define "back to normal". Here it is a second, lower threshold, so that a delay near one
//! threshold does not make the mode flap.

use crate::defaults::OVERLOAD_FACTOR;
use crate::PolicyError;

/// Overload ends at the delay at which it begins, divided by this.
const EXIT_PART: f64 = 3.0;

/// The delays at which fair-only mode is entered and left, in units of S.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverloadPolicy {
    factor: f64,
    exit_factor: f64,
}

impl Default for OverloadPolicy {
    /// Enter at 3 x S, as in the paper; leave at 1 x S.
    fn default() -> Self {
        Self {
            factor: OVERLOAD_FACTOR,
            exit_factor: OVERLOAD_FACTOR / EXIT_PART,
        }
    }
}

impl OverloadPolicy {
    /// Enters fair-only mode at `factor` x S (the paper's O), leaves it at `exit_factor` x S.
    ///
    /// # Errors
    ///
    /// [`Factor`](PolicyError::Factor) if one of them is not a finite number above 0,
    /// [`Hysteresis`](PolicyError::Hysteresis) if `exit_factor` is not below `factor`.
    pub fn new(factor: f64, exit_factor: f64) -> Result<Self, PolicyError> {
        for value in [factor, exit_factor] {
            if !value.is_finite() || value <= 0.0 {
                return Err(PolicyError::Factor(value));
            }
        }
        if exit_factor >= factor {
            return Err(PolicyError::Hysteresis {
                factor,
                exit_factor,
            });
        }
        Ok(Self {
            factor,
            exit_factor,
        })
    }

    /// Enters fair-only mode at `factor` x S, leaves it at a third of that: the ratio of the
    /// default, for another O.
    ///
    /// # Errors
    ///
    /// [`Factor`](PolicyError::Factor) if `factor` is not a finite number above 0.
    pub fn with_factor(factor: f64) -> Result<Self, PolicyError> {
        Self::new(factor, factor / EXIT_PART)
    }

    /// The shortest delay, in ns, that counts as overload with a slice of `slice_ns`: `factor`
    /// x S, rounded up; at least 1, at most `u64::MAX`.
    pub fn enter_ns(&self, slice_ns: u64) -> u64 {
        let threshold = self.factor * slice_ns as f64;
        // Casts from float to integer truncate and saturate.
        let truncated = threshold as u64;
        let rounded_up = truncated.saturating_add(u64::from((truncated as f64) < threshold));
        rounded_up.max(1)
    }

    /// The longest delay, in ns, that counts as normal with a slice of `slice_ns`:
    /// `exit_factor` x S, rounded down; always below [`enter_ns`](Self::enter_ns).
    pub fn exit_ns(&self, slice_ns: u64) -> u64 {
        let threshold = (self.exit_factor * slice_ns as f64) as u64;
        // Beyond 2^53 ns, rounding of floats could close the gap.
        threshold.min(self.enter_ns(slice_ns) - 1)
    }
}

/// Where new invocations are queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// In FILTER, with credit S.
    #[default]
    Filter,
    /// In FAIR at once: overload.
    FairOnly,
}

/// A change of [`Mode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transition {
    /// Overload began: from [`Mode::Filter`] to [`Mode::FairOnly`].
    EnterFairOnly,
    /// Overload is over: from [`Mode::FairOnly`] to [`Mode::Filter`].
    LeaveFairOnly,
}

impl Transition {
    /// The mode after the transition.
    pub fn mode(self) -> Mode {
        match self {
            Self::EnterFairOnly => Mode::FairOnly,
            Self::LeaveFairOnly => Mode::Filter,
        }
    }
}

/// Follows the queueing delay and selects the mode.
///
/// Starts in [`Mode::Filter`]. A delay strictly between [`exit_ns`](OverloadPolicy::exit_ns)
/// and [`enter_ns`](OverloadPolicy::enter_ns) never changes the mode.
///
/// # Example
///
/// ```
/// use sfs_policy::{OverloadDetector, OverloadPolicy, Transition};
///
/// let slice_ns = 10_000_000;
/// let mut detector = OverloadDetector::new(Some(OverloadPolicy::default()));
/// assert_eq!(detector.observe(30_000_000, slice_ns), Some(Transition::EnterFairOnly));
/// assert_eq!(detector.observe(20_000_000, slice_ns), None);
/// assert_eq!(detector.observe(10_000_000, slice_ns), Some(Transition::LeaveFairOnly));
/// ```
#[derive(Debug, Clone)]
pub struct OverloadDetector {
    policy: Option<OverloadPolicy>,
    mode: Mode,
}

impl OverloadDetector {
    /// Creates a detector in [`Mode::Filter`]; with `None` it stays there.
    pub fn new(policy: Option<OverloadPolicy>) -> Self {
        Self {
            policy,
            mode: Mode::Filter,
        }
    }

    /// Takes over the thresholds. The mode stays until the next delay.
    pub fn set_policy(&mut self, policy: Option<OverloadPolicy>) {
        self.policy = policy;
    }

    /// Takes a queueing delay and the slice in force, both in ns, and returns the resulting
    /// transition, if any.
    ///
    /// The delay to pass is the wait of a new invocation in FILTER now. In fair-only mode this
    /// is the wait of FILTER's head, or 0 once FILTER is empty. The slice may differ from call
    /// to call.
    pub fn observe(&mut self, delay_ns: u64, slice_ns: u64) -> Option<Transition> {
        let policy = self.policy?;
        let transition = match self.mode {
            Mode::Filter if delay_ns >= policy.enter_ns(slice_ns) => Transition::EnterFairOnly,
            Mode::FairOnly if delay_ns <= policy.exit_ns(slice_ns) => Transition::LeaveFairOnly,
            _ => return None,
        };
        self.mode = transition.mode();
        Some(transition)
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The thresholds in use; `None` without overload detection.
    pub fn policy(&self) -> Option<OverloadPolicy> {
        self.policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Transition::{EnterFairOnly, LeaveFairOnly};

    #[test]
    fn thresholds_are_multiples_of_the_slice() {
        let policy = OverloadPolicy::default();
        assert_eq!(policy.enter_ns(10_000_000), 30_000_000);
        assert_eq!(policy.exit_ns(10_000_000), 10_000_000);
    }

    #[test]
    fn another_factor_keeps_the_shape_of_the_band() {
        assert_eq!(
            OverloadPolicy::with_factor(3.0),
            Ok(OverloadPolicy::default())
        );
        let policy = OverloadPolicy::with_factor(6.0).unwrap();
        assert_eq!((policy.enter_ns(10), policy.exit_ns(10)), (60, 20));
        assert_eq!(
            OverloadPolicy::with_factor(-1.0),
            Err(PolicyError::Factor(-1.0))
        );
    }

    #[test]
    fn thresholds_round_away_from_the_band() {
        let policy = OverloadPolicy::new(2.5, 1.5).unwrap();
        // 7 x 2.5 = 17.5, 7 x 1.5 = 10.5.
        assert_eq!(policy.enter_ns(7), 18);
        assert_eq!(policy.exit_ns(7), 10);
    }

    #[test]
    fn thresholds_never_meet() {
        let narrow = OverloadPolicy::new(1.0 + f64::EPSILON, 1.0).unwrap();
        for slice_ns in [0, 1, 2, 1 << 53, u64::MAX / 2, u64::MAX] {
            assert!(
                narrow.exit_ns(slice_ns) < narrow.enter_ns(slice_ns),
                "S = {slice_ns}"
            );
        }
        let wide = OverloadPolicy::new(f64::MAX, 1e-300).unwrap();
        assert_eq!((wide.exit_ns(1), wide.enter_ns(1)), (0, u64::MAX));
    }

    #[test]
    fn enters_and_leaves_at_the_thresholds() {
        let mut detector = OverloadDetector::new(Some(OverloadPolicy::default()));
        assert_eq!(detector.observe(299, 100), None);
        assert_eq!(detector.observe(300, 100), Some(EnterFairOnly));
        assert_eq!(detector.observe(300, 100), None);
        assert_eq!(detector.mode(), Mode::FairOnly);
        assert_eq!(detector.observe(101, 100), None);
        assert_eq!(detector.observe(100, 100), Some(LeaveFairOnly));
        assert_eq!(detector.observe(0, 100), None);
        assert_eq!(detector.mode(), Mode::Filter);
    }

    #[test]
    fn judges_by_the_slice_in_force() {
        let mut detector = OverloadDetector::new(Some(OverloadPolicy::default()));
        assert_eq!(detector.observe(200, 100), None);
        assert_eq!(detector.observe(200, 50), Some(EnterFairOnly));
        assert_eq!(detector.observe(200, 200), Some(LeaveFairOnly));
    }

    #[test]
    fn disabled_stays_in_filter() {
        let mut detector = OverloadDetector::new(None);
        assert_eq!(detector.observe(u64::MAX, 1), None);
        assert_eq!(detector.mode(), Mode::Filter);
    }

    #[test]
    fn refuses_invalid_factors() {
        for factor in [0.0, -1.0, f64::INFINITY] {
            assert_eq!(
                OverloadPolicy::new(factor, 1.0),
                Err(PolicyError::Factor(factor))
            );
            assert_eq!(
                OverloadPolicy::new(3.0, factor),
                Err(PolicyError::Factor(factor))
            );
        }
        assert!(matches!(
            OverloadPolicy::new(f64::NAN, 1.0),
            Err(PolicyError::Factor(_))
        ));
        assert_eq!(
            OverloadPolicy::new(1.0, 1.0),
            Err(PolicyError::Hysteresis {
                factor: 1.0,
                exit_factor: 1.0
            })
        );
    }
}
