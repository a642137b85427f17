//! When invocations first block.
//!
//! An invocation that blocks early, to ask a database or another function, gives up its CPU after
//! a short burst. While it waits behind long bursts it delays its own I/O, and a crowd of such
//! invocations leaves the CPUs idle later: all of them wait for I/O at the same time. So until its
//! first sleep, an invocation competes with the burst, and not with the CPU time that it needs in
//! all: the shortest burst first, as schedulers of interactive systems have it.

use super::buckets::bucket;

/// Number of completions that tell enough.
const ENOUGH: u8 = 4;

/// Number of completions over which the share is averaged.
const WINDOW: u8 = 16;

/// Steps of a bucket in which the usual burst is kept.
const STEPS: u16 = 8;

/// How many of the recent completions slept, and after how much CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Burst {
    /// Completions noted, [`WINDOW`] at most.
    seen: u8,
    /// The share of those that slept, of 255.
    share: u8,
    /// The end of the usual burst, in [`STEPS`] of a bucket.
    end: u16,
}

impl Burst {
    /// Notes a completion that first slept after `burst_ns` of CPU time; None: it never did.
    pub fn note(&mut self, burst_ns: Option<u64>) {
        self.seen = (self.seen + 1).min(WINDOW);
        let target = if burst_ns.is_some() { 255 } else { 0 };
        let step = (target - i16::from(self.share)) / i16::from(self.seen);
        self.share = (i16::from(self.share) + step) as u8;
        let Some(ns) = burst_ns else {
            return;
        };
        // A longer burst counts more than a shorter one: an invocation that has a CPU for too
        // short a time has to queue for the rest.
        let end = (bucket(ns) as u16 + 1) * STEPS;
        self.end = match end.checked_sub(self.end) {
            Some(more) => self.end + more.div_ceil(2),
            None => self.end - (self.end - end) / 8,
        };
    }

    /// The bucket at whose start most first bursts are over; None if less than half of the
    /// invocations sleep.
    pub fn usual(self) -> Option<u8> {
        let sleeps = self.is_known() && self.share >= 128;
        sleeps.then(|| self.end.div_ceil(STEPS) as u8)
    }

    /// Whether there were enough completions to tell.
    pub fn is_known(self) -> bool {
        self.seen >= ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::super::buckets::{start_ns, BUCKETS};
    use super::*;

    const MS: u64 = 1_000_000;

    fn burst(noted: &[Option<u64>]) -> Burst {
        let mut burst = Burst::default();
        noted.iter().for_each(|one| burst.note(*one));
        burst
    }

    #[test]
    fn four_completions_tell_when_a_function_sleeps() {
        assert_eq!(burst(&[Some(MS); 3]).usual(), None);
        let usual = burst(&[Some(MS); 8]).usual().unwrap();
        assert!(start_ns(usual.into()) > MS);
        assert!(start_ns(usual.into()) < 2 * MS, "{usual}");
    }

    #[test]
    fn most_must_sleep() {
        assert_eq!(burst(&[None; 20]).usual(), None);
        let every = |n: usize| -> Vec<_> { (0..60).map(|i| (i % n == 0).then_some(MS)).collect() };
        assert_eq!(burst(&every(3)).usual(), None);
        let all_but =
            |n: usize| -> Vec<_> { (0..60).map(|i| (i % n != 0).then_some(MS)).collect() };
        assert!(burst(&all_but(4)).usual().is_some());
    }

    #[test]
    fn follows_a_change() {
        let mut burst = burst(&[Some(MS); 20]);
        (0..10).for_each(|_| burst.note(Some(20 * MS)));
        assert!(start_ns(burst.usual().unwrap().into()) > 20 * MS);
        (0..60).for_each(|_| burst.note(Some(MS)));
        assert!(start_ns(burst.usual().unwrap().into()) < 3 * MS);
        (0..20).for_each(|_| burst.note(None));
        assert_eq!(burst.usual(), None);
    }

    #[test]
    fn the_longest_burst_is_a_rank() {
        let usual = burst(&[Some(u64::MAX); 40]).usual().unwrap();
        assert!(usize::from(usual) <= BUCKETS);
    }
}
