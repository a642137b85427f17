//! Arrival processes.
//!
//! Every invocation draws one exponential number with mean 1 from the stream of
//! its duration, whether the process needs it or not. The same seed therefore
//! gives the same durations with any arrivals, and differences between results
//! are due to the arrivals alone.

use super::random::Random;
use faas_data::input::MAX_US;

/// How invocations arrive.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Independent, at a constant rate.
    Poisson,
    /// Constant gaps.
    Uniform,
    /// Poisson at a rate that alternates between two values.
    Bursty(Bursts),
    /// These gaps in microseconds, repeated in this order; not all zero. The
    /// first invocation arrives at 0.
    Replay(Vec<u64>),
}

/// A Markov-modulated Poisson process of two states.
///
/// It stays in each for an exponential time. Times are in mean gaps: a burst of
/// 20 is as long as 20 invocations take to arrive on average, at any load.
/// (During the burst more than 20 arrive.)
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// Rate in a burst / rate outside, 1 or more.
    pub factor: f64,
    /// Mean duration of a burst in mean gaps, more than 0.
    pub burst_gaps: f64,
    /// Mean time between bursts in mean gaps, more than 0.
    pub quiet_gaps: f64,
}

impl Default for Bursts {
    /// Ten times the rate for a tenth of the time: about half of all
    /// invocations arrive in bursts, on average 105 in each.
    fn default() -> Self {
        Self {
            factor: 10.0,
            burst_gaps: 20.0,
            quiet_gaps: 180.0,
        }
    }
}

impl Bursts {
    /// Invocations per mean gap outside bursts, such that one arrives per mean
    /// gap overall.
    pub fn quiet_rate(&self) -> f64 {
        let all = self.burst_gaps + self.quiet_gaps;
        all / (self.quiet_gaps + self.factor * self.burst_gaps)
    }

    /// Share of the time in bursts.
    fn share(&self) -> f64 {
        self.burst_gaps / (self.burst_gaps + self.quiet_gaps)
    }

    /// Mean duration of a state in mean gaps.
    fn length(&self, burst: bool) -> f64 {
        if burst {
            self.burst_gaps
        } else {
            self.quiet_gaps
        }
    }
}

/// Groups of invocations that arrive in the same microsecond, evenly spread
/// over the workload: the transient overload of the SFS paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spikes {
    /// Number of spikes, 1 or more.
    pub count: u32,
    /// Invocations in each.
    pub invocations: u32,
}

impl Spikes {
    /// Whether the spikes fit into a workload of `total` invocations, with at
    /// least one left between two of them.
    pub fn fit(&self, total: u32) -> bool {
        self.count > 0 && self.invocations < total / self.count
    }

    /// Whether the invocation at `index` (from 0) arrives together with the
    /// previous one. The spikes must [fit](Self::fit).
    fn joins(&self, index: u32, total: u32) -> bool {
        let part = total / self.count;
        let (spike, place) = (index / part, index % part);
        let start = (part - self.invocations) / 2;
        spike < self.count && place > start && place < start + self.invocations
    }
}

/// The arrivals of one workload, in order.
#[derive(Debug)]
pub struct Process<'a> {
    arrivals: &'a Arrivals,
    spikes: Option<Spikes>,
    total: u32,
    index: u32,
    mean_gap_us: f64,
    /// Mean of the replayed gaps.
    replayed_us: f64,
    now_us: f64,
    state: State,
}

/// The state of a bursty process.
#[derive(Debug)]
struct State {
    random: Random,
    burst: bool,
    /// Its remaining time, in mean gaps.
    left: f64,
}

impl<'a> Process<'a> {
    /// `total` arrivals, `mean_gap_us` microseconds apart on average; spikes
    /// shorten that. A bursty process takes further random numbers from
    /// `random`, in addition to those passed to [`Process::next`].
    pub fn new(
        arrivals: &'a Arrivals,
        spikes: Option<Spikes>,
        total: u32,
        mean_gap_us: f64,
        mut random: Random,
    ) -> Self {
        let mut burst = false;
        let mut left = f64::INFINITY;
        if let Arrivals::Bursty(bursts) = arrivals {
            burst = random.unit() < bursts.share();
            left = random.exponential(bursts.length(burst));
        }
        Self {
            arrivals,
            spikes,
            total,
            index: 0,
            mean_gap_us,
            replayed_us: match arrivals {
                Arrivals::Replay(gaps) => mean(gaps),
                _ => 0.0,
            },
            now_us: 0.0,
            state: State {
                random,
                burst,
                left,
            },
        }
    }

    /// The next arrival in microseconds since the start, at most [`MAX_US`];
    /// `unit` is exponential with mean 1.
    pub fn next(&mut self, unit: f64) -> u64 {
        let index = self.index;
        self.index += 1;
        let joins = |spikes: Spikes| spikes.joins(index, self.total);
        if !self.spikes.is_some_and(joins) {
            self.now_us += self.mean_gap_us * self.gap(unit, index);
        }
        (self.now_us.round() as u64).min(MAX_US)
    }

    /// The gap before the invocation at `index`, in mean gaps.
    fn gap(&mut self, unit: f64, index: u32) -> f64 {
        match self.arrivals {
            Arrivals::Poisson => unit,
            Arrivals::Uniform => 1.0,
            Arrivals::Bursty(bursts) => self.state.gap(bursts, unit),
            Arrivals::Replay(gaps) => match (index as usize).checked_sub(1) {
                Some(before) => gaps[before % gaps.len()] as f64 / self.replayed_us,
                None => 0.0,
            },
        }
    }
}

impl State {
    /// The time in which `unit` invocations are expected, across as many bursts
    /// as needed; with an exponential `unit` this is the gap.
    fn gap(&mut self, bursts: &Bursts, mut unit: f64) -> f64 {
        let mut gap = 0.0;
        loop {
            let factor = if self.burst { bursts.factor } else { 1.0 };
            let rate = bursts.quiet_rate() * factor;
            if unit <= self.left * rate {
                self.left -= unit / rate;
                return gap + unit / rate;
            }
            unit -= self.left * rate;
            gap += self.left;
            self.burst = !self.burst;
            self.left = self.random.exponential(bursts.length(self.burst));
        }
    }
}

fn mean(gaps: &[u64]) -> f64 {
    gaps.iter().sum::<u64>() as f64 / gaps.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: &Arrivals, spikes: Option<Spikes>, total: u32) -> Vec<u64> {
        let mut random = Random::new(3);
        let own = Random::stream(3, 3);
        let mut process = Process::new(arrivals, spikes, total, 1000.0, own);
        (0..total)
            .map(|_| process.next(random.exponential(1.0)))
            .collect()
    }

    /// Mean and coefficient of variation of the gaps.
    fn moments(times: &[u64]) -> (f64, f64) {
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|two| (two[1] - two[0]) as f64)
            .collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let (mean, cv) = moments(&times(&Arrivals::Poisson, None, 50_000));
        assert!((mean / 1000.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((cv - 1.0).abs() < 0.03, "{cv}");
    }

    #[test]
    fn uniform_gaps_are_all_the_same() {
        assert_eq!(times(&Arrivals::Uniform, None, 3), [1000, 2000, 3000]);
    }

    #[test]
    fn bursts_keep_the_rate_and_disperse_the_counts() {
        let bursts = Bursts {
            factor: 10.0,
            burst_gaps: 2.0,
            quiet_gaps: 18.0,
        };
        // 20 / (18 + 20) in a mean gap
        assert!((bursts.quiet_rate() - 10.0 / 19.0).abs() < 1e-12);
        let total = 1_000_000;
        let times = times(&Arrivals::Bursty(bursts), None, total);
        let (mean, _) = moments(&times);
        // The index of dispersion below makes three standard errors of the
        // rate 3 x sqrt(8.27 / 1,000,000) = 0.9 %.
        assert!((mean / 1000.0 - 1.0).abs() < 0.009, "{mean}");
        // Index of dispersion of counts in long windows (Fischer and
        // Meier-Hellstern 1993): 1 + 2 (l1 - l2)^2 r1 r2 / ((r1 + r2)^2 (l1 r2 + l2 r1))
        // with l1 = 5.263, l2 = 0.5263, r1 = 1/2, r2 = 1/18:
        // 1 + 2 x 22.438 x 0.027778 / (0.308642 x 0.555556) = 8.270
        let window = 500_000; // 500 mean gaps
        let mut counts = vec![0.0; (times[times.len() - 1] / window) as usize];
        for time in &times {
            if let Some(count) = counts.get_mut((time / window) as usize) {
                *count += 1.0;
            }
        }
        let windows = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / windows;
        let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / windows;
        // 2000 windows: a standard error of 3 %; the window's ends take 1.4 %.
        assert!((variance / mean / 8.270 - 1.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn bursts_of_factor_one_are_poisson() {
        let bursts = Bursts {
            factor: 1.0,
            ..Bursts::default()
        };
        let (mean, cv) = moments(&times(&Arrivals::Bursty(bursts), None, 50_000));
        assert!((mean / 1000.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((cv - 1.0).abs() < 0.03, "{cv}");
    }

    #[test]
    fn replayed_gaps_keep_their_proportions_and_start_again() {
        let gaps = Arrivals::Replay(vec![0, 30, 60]);
        // Mean gap 30, to be 1000.
        assert_eq!(times(&gaps, None, 6), [0, 0, 1000, 3000, 3000, 4000]);
    }

    #[test]
    fn spikes_arrive_together_in_the_middle_of_their_part() {
        let spikes = Spikes {
            count: 2,
            invocations: 3,
        };
        assert!(spikes.fit(10) && spikes.fit(8) && !spikes.fit(7) && !spikes.fit(0));
        let want = [1, 2, 2, 2, 3, 4, 5, 5, 5, 6, 7].map(|n| n * 1000);
        assert_eq!(times(&Arrivals::Uniform, Some(spikes), 11), want);
    }
}
