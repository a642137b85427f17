//! Rate limit of hints for each sender.

use std::num::NonZeroUsize;

use lru::LruCache;

use super::sender::SenderKey;

/// Number of senders remembered. A forgotten sender starts again with a full burst.
const SENDERS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Size of a burst: the hints of one second.
const BURST_NS: u64 = 1_000_000_000;

/// A token bucket for each sender.
#[derive(Debug)]
pub(super) struct Rates {
    /// Cost of a hint, in ns of refill time.
    cost_ns: u64,
    /// When the bucket of each sender will be full, in ns of `CLOCK_MONOTONIC`.
    full_at: LruCache<SenderKey, u64>,
}

impl Rates {
    /// At most `rate` hints a second, 1 to 1,000,000,000.
    pub(super) fn new(rate: u32) -> Self {
        Self {
            cost_ns: BURST_NS / u64::from(rate.max(1)),
            full_at: LruCache::new(SENDERS),
        }
    }

    /// Changes the rate to at most `rate` hints a second. Buckets stay as full as they are.
    pub(super) fn set(&mut self, rate: u32) {
        self.cost_ns = BURST_NS / u64::from(rate.max(1));
    }

    /// Returns how many hints `sender` may send at `now_ns`.
    pub(super) fn granted(&mut self, sender: SenderKey, now_ns: u64) -> u64 {
        let full_at = self.full_at.get(&sender).copied().unwrap_or(0);
        let missing = full_at.saturating_sub(now_ns);
        BURST_NS.saturating_sub(missing) / self.cost_ns.max(1)
    }

    /// Charges `sender` for `hints` hints.
    pub(super) fn charge(&mut self, sender: SenderKey, hints: u64, now_ns: u64) {
        let full_at = self.full_at.get_or_insert_mut(sender, || 0);
        *full_at = now_ns.max(*full_at) + hints * self.cost_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::super::sender::ProcessSender;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn sender(pid: i32) -> SenderKey {
        SenderKey::Process(ProcessSender { pid, uid: 0 })
    }

    #[test]
    fn a_new_rate_counts_at_once_and_buckets_stay_as_full_as_they_are() {
        let mut rates = Rates::new(10);
        rates.charge(sender(1), 5, SECOND);
        rates.set(100);
        assert_eq!(rates.granted(sender(1), SECOND), 50);
        assert_eq!(rates.granted(sender(2), SECOND), 100);
        rates.charge(sender(1), 50, SECOND);
        assert_eq!(rates.granted(sender(1), SECOND), 0);
    }

    #[test]
    fn a_burst_is_one_second_s_worth_and_comes_back_with_time() {
        let mut rates = Rates::new(10);
        let now = 1_000 * SECOND;
        assert_eq!(rates.granted(sender(1), now), 10);
        rates.charge(sender(1), 10, now);
        assert_eq!(rates.granted(sender(1), now), 0);
        assert_eq!(rates.granted(sender(2), now), 10);
        assert_eq!(rates.granted(sender(1), now + SECOND / 10), 1);
        assert_eq!(rates.granted(sender(1), now + 9 * SECOND), 10);
    }

    #[test]
    fn over_a_long_time_the_rate_is_kept() {
        let mut rates = Rates::new(1000);
        let mut taken = 0;
        for ms in 0..10_000_u64 {
            let now = ms * 1_000_000;
            let granted = rates.granted(sender(1), now).min(50);
            rates.charge(sender(1), granted, now);
            taken += granted;
        }
        // Ten seconds' worth plus the burst.
        assert!((10_000..=11_000).contains(&taken), "{taken}");
    }

    #[test]
    fn senders_without_number_take_bounded_memory() {
        let mut rates = Rates::new(10);
        for pid in 1..100_000 {
            rates.charge(sender(pid), 10, SECOND);
        }
        assert_eq!(rates.full_at.len(), SENDERS.get());
        assert_eq!(rates.granted(sender(99_999), SECOND), 0);
    }
}
