//! The slice S: CPU time that an invocation may use in FILTER.
//!
//! Source: SFS (SC'22), adaptive slice: S = mean IAT x CPUs. With one arrival every IAT and
//! invocations that use S each, the CPUs are just fully used. FILTER cannot afford invocations
//! that need more than S.

use crate::PolicyError;

/// The length of the slice: S = mean IAT x CPUs, within bounds.
///
/// A fixed slice has equal bounds.
///
/// # Example
///
/// ```
/// use sfs_policy::SlicePolicy;
///
/// let policy = SlicePolicy::new(1_000_000, 500_000_000)?;
/// assert_eq!(policy.slice_ns(2_000_000, 16), 32_000_000);
/// assert_eq!(policy.slice_ns(10, 16), 1_000_000);
/// # Ok::<(), sfs_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlicePolicy {
    min_ns: u64,
    max_ns: u64,
}

impl SlicePolicy {
    /// A slice that follows the arrivals, from `min_ns` to `max_ns` (both included).
    ///
    /// # Errors
    ///
    /// [`ZeroSlice`](PolicyError::ZeroSlice) if `min_ns` is 0,
    /// [`InfiniteSlice`](PolicyError::InfiniteSlice) if `max_ns` is `u64::MAX`: the kernel
    /// gives these two other meanings. [`SliceBounds`](PolicyError::SliceBounds) if `min_ns` is
    /// above `max_ns`.
    pub fn new(min_ns: u64, max_ns: u64) -> Result<Self, PolicyError> {
        if min_ns == 0 {
            return Err(PolicyError::ZeroSlice);
        }
        if max_ns == u64::MAX {
            return Err(PolicyError::InfiniteSlice);
        }
        if min_ns > max_ns {
            return Err(PolicyError::SliceBounds { min_ns, max_ns });
        }
        Ok(Self { min_ns, max_ns })
    }

    /// A slice of `slice_ns`, independent of the arrivals.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new): `slice_ns` must be neither 0 nor `u64::MAX`.
    pub fn fixed(slice_ns: u64) -> Result<Self, PolicyError> {
        Self::new(slice_ns, slice_ns)
    }

    /// S for a mean inter-arrival time in ns and the number of CPUs that run invocations.
    ///
    /// Any values are allowed: a product too large for a `u64` gives the upper bound, and one
    /// of 0 the lower.
    pub fn slice_ns(&self, mean_iat_ns: u64, cpus: u32) -> u64 {
        self.clamp(mean_iat_ns.saturating_mul(u64::from(cpus)))
    }

    /// The slice within the bounds nearest to `slice_ns`.
    pub fn clamp(&self, slice_ns: u64) -> u64 {
        slice_ns.clamp(self.min_ns, self.max_ns)
    }

    /// The shortest slice, in ns.
    pub fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// The longest slice, in ns.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Whether the slice is the same for all arrivals.
    pub fn is_fixed(&self) -> bool {
        self.min_ns == self.max_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_mean_iat_times_cpus() {
        let policy = SlicePolicy::new(1, 1_000_000_000).unwrap();
        assert_eq!(policy.slice_ns(3_000_000, 1), 3_000_000);
        assert_eq!(policy.slice_ns(3_000_000, 72), 216_000_000);
    }

    #[test]
    fn stays_within_bounds() {
        let policy = SlicePolicy::new(100, 200).unwrap();
        assert_eq!(policy.slice_ns(0, 4), 100);
        assert_eq!(policy.slice_ns(30, 4), 120);
        assert_eq!(policy.slice_ns(50, 4), 200);
        assert_eq!(policy.slice_ns(51, 4), 200);
        assert_eq!(policy.slice_ns(u64::MAX, 4096), 200);
    }

    #[test]
    fn fixed_ignores_the_arrivals() {
        let policy = SlicePolicy::fixed(150).unwrap();
        assert!(policy.is_fixed());
        assert_eq!(policy.slice_ns(0, 1), 150);
        assert_eq!(policy.slice_ns(u64::MAX, 4096), 150);
    }

    #[test]
    fn refuses_slices_with_special_meanings() {
        assert_eq!(SlicePolicy::new(0, 9), Err(PolicyError::ZeroSlice));
        assert_eq!(SlicePolicy::fixed(0), Err(PolicyError::ZeroSlice));
        assert_eq!(
            SlicePolicy::fixed(u64::MAX),
            Err(PolicyError::InfiniteSlice)
        );
    }

    #[test]
    fn refuses_bounds_in_the_wrong_order() {
        let error = SlicePolicy::new(5_000_000, 2_500_000).unwrap_err();
        assert_eq!(
            error,
            PolicyError::SliceBounds {
                min_ns: 5_000_000,
                max_ns: 2_500_000
            }
        );
        assert_eq!(
            error.to_string(),
            "the shortest slice (5ms) is longer than the longest (2.5ms)"
        );
    }
}
