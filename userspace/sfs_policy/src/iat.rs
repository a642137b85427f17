//! The mean inter-arrival time (IAT) of the last N arrivals.
//!
//! Source: SFS (SC'22), adaptive slice. The paper's artefact collects N arrivals, averages them
//! and starts over, and so counts one interval in two windows. This window slides and counts
//! each interval exactly once.

use alloc::collections::VecDeque;
use core::num::NonZeroUsize;

/// The paper's N: the number of inter-arrival times in a full window, and the number of
/// arrivals between two recomputations of S.
pub const DEFAULT_WINDOW: NonZeroUsize = NonZeroUsize::new(100).unwrap();

/// A sliding window over the last N inter-arrival times.
///
/// N inter-arrival times lie between N + 1 arrivals, so the window is full from the (N + 1)th
/// arrival on.
///
/// # Arrivals out of order
///
/// CPUs record arrivals concurrently, and the platform's hints carry its own timestamps, so an
/// arrival may be older than its predecessor. It counts as an IAT of 0, and the next IAT is
/// measured from the newest arrival so far. Slight disorder thus leaves the sum of the IATs
/// unchanged.
///
/// N late arrivals in a row are not disorder: the clock went back, or one timestamp was far in
/// the future. The window then measures from the last of them, so a wrong timestamp distorts
/// the mean for a bounded number of arrivals and not until the clock has caught up with it.
///
/// # Example
///
/// ```
/// use sfs_policy::{IatWindow, DEFAULT_WINDOW};
///
/// let mut window = IatWindow::new(DEFAULT_WINDOW);
/// window.extend([1_000, 1_400, 1_600]);
/// assert_eq!(window.mean_iat_ns(), Some(300));
/// assert!(!window.is_full());
/// ```
#[derive(Debug, Clone)]
pub struct IatWindow {
    /// N: maximum number of IATs in the window.
    n: NonZeroUsize,
    /// The last N IATs, oldest first.
    iats_ns: VecDeque<u64>,
    /// Sum of `iats_ns`. N x `u64::MAX` fits for every N that fits into memory.
    sum_ns: u128,
    /// The arrival from which the next IAT is measured.
    newest_ns: Option<u64>,
    /// Number of consecutive arrivals older than `newest_ns`; always below N.
    late: usize,
}

impl IatWindow {
    /// Creates an empty window over the last `n` inter-arrival times.
    ///
    /// Memory grows with the arrivals, up to 8 bytes for each of `n`.
    pub fn new(n: NonZeroUsize) -> Self {
        Self {
            n,
            iats_ns: VecDeque::new(),
            sum_ns: 0,
            newest_ns: None,
            late: 0,
        }
    }

    /// Adds an arrival (a timestamp in ns), and forgets the oldest
    /// inter-arrival time if the window is full. Takes amortised constant time.
    pub fn push(&mut self, arrival_ns: u64) {
        if let Some(newest_ns) = self.newest_ns {
            self.slide(arrival_ns.saturating_sub(newest_ns));
        }
        self.advance(arrival_ns);
    }

    /// The mean of the inter-arrival times in the window, in ns, rounded down.
    ///
    /// `None` before the second arrival. A window that is not yet full returns the mean of its
    /// content; use [`is_full`](Self::is_full) where that matters. Takes constant time.
    pub fn mean_iat_ns(&self) -> Option<u64> {
        let mean = self.sum_ns.checked_div(self.iats_ns.len() as u128)?;
        // A mean is never above the largest of its terms, which is a u64.
        Some(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The number of inter-arrival times in the window, from 0 to N.
    pub fn len(&self) -> usize {
        self.iats_ns.len()
    }

    /// Whether the window holds no inter-arrival time, as before the second arrival.
    pub fn is_empty(&self) -> bool {
        self.iats_ns.is_empty()
    }

    /// Whether the window holds all of its N inter-arrival times.
    pub fn is_full(&self) -> bool {
        self.iats_ns.len() == self.n.get()
    }

    /// N: the number of inter-arrival times in a full window.
    pub fn capacity(&self) -> NonZeroUsize {
        self.n
    }

    /// Adds `iat_ns` and forgets the oldest if there is no room.
    fn slide(&mut self, iat_ns: u64) {
        if self.is_full() {
            let oldest_ns = self.iats_ns.pop_front().unwrap_or(0);
            self.sum_ns -= u128::from(oldest_ns);
        }
        self.iats_ns.push_back(iat_ns);
        self.sum_ns += u128::from(iat_ns);
    }

    /// Decides from which arrival the next IAT is measured.
    fn advance(&mut self, arrival_ns: u64) {
        if self
            .newest_ns
            .is_some_and(|newest_ns| arrival_ns < newest_ns)
        {
            self.late += 1;
            if self.late < self.n.get() {
                return;
            }
        }
        self.late = 0;
        self.newest_ns = Some(arrival_ns);
    }
}

impl Extend<u64> for IatWindow {
    /// Adds arrivals (timestamps in ns), as if each were pushed in turn.
    fn extend<I: IntoIterator<Item = u64>>(&mut self, arrivals_ns: I) {
        for arrival_ns in arrivals_ns {
            self.push(arrival_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(n: usize, arrivals_ns: &[u64]) -> IatWindow {
        let mut window = IatWindow::new(NonZeroUsize::new(n).unwrap());
        window.extend(arrivals_ns.iter().copied());
        window
    }

    #[test]
    fn no_mean_before_the_second_arrival() {
        assert_eq!(window(3, &[]).mean_iat_ns(), None);
        assert_eq!(window(3, &[7]).mean_iat_ns(), None);
        assert!(window(3, &[7]).is_empty());
        assert_eq!(window(3, &[7, 9]).mean_iat_ns(), Some(2));
    }

    #[test]
    fn fills_with_one_arrival_more_than_intervals() {
        assert!(!window(3, &[0, 10, 20]).is_full());
        assert!(window(3, &[0, 10, 20, 30]).is_full());
        assert_eq!(window(3, &[0, 10, 20, 30, 40]).len(), 3);
    }

    #[test]
    fn slides_by_one_interval_for_one_arrival() {
        // IATs 10, 20, 30, then 100: (10 + 20 + 30) / 3, (20 + 30 + 100) / 3.
        assert_eq!(window(3, &[0, 10, 30, 60]).mean_iat_ns(), Some(20));
        assert_eq!(window(3, &[0, 10, 30, 60, 160]).mean_iat_ns(), Some(50));
    }

    #[test]
    fn rounds_the_mean_down() {
        assert_eq!(window(2, &[0, 1, 3]).mean_iat_ns(), Some(1));
    }

    #[test]
    fn disorder_keeps_the_sum() {
        // In order: IATs 10, 10, 10. As recorded: 20, 0, 10.
        assert_eq!(window(9, &[0, 10, 20, 30]).mean_iat_ns(), Some(10));
        assert_eq!(window(9, &[0, 20, 10, 30]).mean_iat_ns(), Some(10));
    }

    #[test]
    fn recovers_from_a_timestamp_in_the_future() {
        let mut window = window(2, &[0, 10, u64::MAX]);
        assert_eq!(window.mean_iat_ns(), Some(u64::MAX / 2));
        // Two late arrivals in a row: from the second on, IATs are measured from there.
        window.extend([30, 40, 50, 60]);
        assert_eq!(window.mean_iat_ns(), Some(10));
    }

    #[test]
    fn sums_the_longest_intervals_without_overflow() {
        let window = window(4, &[0, u64::MAX, 0, 0, 0, 0, u64::MAX]);
        assert_eq!(window.len(), 4);
        assert_eq!(window.mean_iat_ns(), Some(u64::MAX / 4));
    }
}
