//! Turnaround and queueing delay of each function, as histograms for the metrics.
//!
//! The number of functions is bounded: each of the functions with the most work has times of its
//! own, the others share one. A function's counts never become smaller, and those of the others
//! neither: a function that gets times of its own begins at 0, and one that loses them counts
//! among the others from then on.

use std::collections::HashMap;

use sfs_bpf::bpf_intf::sfs_completion;

use super::FunctionReport;

/// Buckets of a histogram for each doubling. The ends are those of Prometheus's native histograms
/// of schema 3.
pub const PER_DOUBLING: i32 = 8;

/// The exponent of 2 in seconds at which the first bucket begins: 0.95 us. Shorter times count as
/// 0.
pub const FIRST_EXPONENT: i32 = -20;

/// The exponent of 2 in seconds at which the last bucket ends: 36 hours. It has all longer times.
pub const LAST_EXPONENT: i32 = 17;

/// Number of buckets.
const BUCKETS: usize = ((LAST_EXPONENT - FIRST_EXPONENT) * PER_DOUBLING) as usize;

/// Name of the functions without times of their own.
pub const OTHER: &str = "other";

/// A histogram of times.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    buckets: Box<[u64; BUCKETS]>,
    zero: u64,
    count: u64,
    sum_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: Box::new([0; BUCKETS]),
            zero: 0,
            count: 0,
            sum_ns: 0,
        }
    }
}

impl Histogram {
    /// Adds a time in ns.
    pub fn add(&mut self, ns: u64) {
        let exponent = (ns as f64 / 1e9).log2() - f64::from(FIRST_EXPONENT);
        // The end of a bucket belongs to it.
        let number = (exponent * f64::from(PER_DOUBLING)).ceil() - 1.0;
        if number < 0.0 {
            self.zero += 1;
        } else {
            self.buckets[(number as usize).min(BUCKETS - 1)] += 1;
        }
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns their sum, in seconds.
    pub fn sum(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// Returns the number of times that are too short for a bucket.
    pub fn zero(&self) -> u64 {
        self.zero
    }

    /// Returns the buckets that are not empty, in ascending order: a bucket of number `i` ends at
    /// 2^(i / [`PER_DOUBLING`]) seconds.
    pub fn native(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        let first = FIRST_EXPONENT * PER_DOUBLING + 1;
        let numbered = (first..).zip(self.buckets.iter());
        numbered
            .filter(|(_, count)| **count > 0)
            .map(|(number, count)| (number, *count))
    }

    /// Returns how many times are at most 2^`exponent` seconds.
    pub fn at_most(&self, exponent: i32) -> u64 {
        let buckets = (exponent.clamp(FIRST_EXPONENT, LAST_EXPONENT) - FIRST_EXPONENT) as usize;
        let below = &self.buckets[..buckets * PER_DOUBLING as usize];
        self.zero + below.iter().sum::<u64>()
    }
}

/// The times of one function's invocations, or of several functions' ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    /// From arrival to the end, of the invocations whose end is known and that no signal ended.
    pub turnaround: Histogram,
    /// The part of it that their task has waited in queues.
    pub queue_delay: Histogram,
    /// CPU time of all invocations, in ns.
    pub cpu_ns: u64,
    /// Invocations that a signal ended.
    pub killed: u64,
}

impl Times {
    fn note(&mut self, ended: &Ended) {
        self.cpu_ns = self.cpu_ns.saturating_add(ended.service_ns);
        if ended.killed {
            self.killed += 1;
        } else if ended.turnaround_ns > 0 {
            self.turnaround.add(ended.turnaround_ns);
            self.queue_delay.add(ended.queued_ns);
        }
    }
}

/// An invocation that has ended. All times are in ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ended {
    /// Identity of its function.
    pub function: u64,
    /// CPU time.
    pub service_ns: u64,
    /// From arrival to its end; 0: not known.
    pub turnaround_ns: u64,
    /// The part of it that its task has waited in queues.
    pub queued_ns: u64,
    /// A signal ended it.
    pub killed: bool,
}

impl From<&sfs_completion> for Ended {
    fn from(one: &sfs_completion) -> Self {
        Self {
            function: one.function,
            service_ns: one.service_ns,
            turnaround_ns: one.turnaround_ns,
            queued_ns: one.queued_ns,
            killed: one.killed != 0,
        }
    }
}

/// The times of a function with times of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionTimes {
    /// Its name, printable, and no other function's here.
    pub function: String,
    /// The times.
    pub times: Times,
    /// What was learned about it.
    pub learned: Option<FunctionReport>,
}

/// The times of all functions.
#[derive(Debug, Default)]
pub struct TimesByFunction {
    most: usize,
    own: HashMap<u64, FunctionTimes>,
    other: Times,
}

impl TimesByFunction {
    /// Starts with nothing. At most `most` functions get times of their own.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Returns how many functions with the most work [`choose`](Self::choose) wants to know: twice
    /// those with times of their own, so that functions with about equal work do not take turns.
    pub fn wanted(&self) -> usize {
        2 * self.most
    }

    /// Adds an invocation that has ended.
    pub fn note(&mut self, ended: &Ended) {
        match self.own.get_mut(&ended.function) {
            Some(one) => one.times.note(ended),
            None => self.other.note(ended),
        }
    }

    /// Gives times of their own to the functions with the most work. `by_work` are the
    /// [`wanted`](Self::wanted) ones, those with the most work first.
    pub fn choose(&mut self, by_work: &[FunctionReport]) {
        let is_wanted = |key: &u64| by_work.iter().any(|one| one.key == *key);
        for report in by_work.iter().take(self.most) {
            if self.own.contains_key(&report.key) {
                continue;
            }
            if self.own.len() >= self.most {
                let Some(gone) = self.own.keys().find(|key| !is_wanted(key)).copied() else {
                    break;
                };
                self.own.remove(&gone);
            }
            let times = FunctionTimes {
                function: self.free_name(report),
                times: Times::default(),
                learned: None,
            };
            self.own.insert(report.key, times);
        }
        for (key, one) in &mut self.own {
            one.learned = by_work.iter().find(|report| report.key == *key).cloned();
        }
    }

    /// Returns a name for a function that no other one has. Tenants choose names: two series of one
    /// name would make Prometheus refuse all metrics.
    fn free_name(&self, report: &FunctionReport) -> String {
        let name = sfs_text::word(&report.function);
        let is_taken =
            |name: &str| name == OTHER || self.own.values().any(|one| one.function == name);
        if !is_taken(&name) {
            return name;
        }
        let mut longer = format!("{name}~{:x}", report.key);
        while is_taken(&longer) {
            longer.push('~');
        }
        longer
    }

    /// Returns the functions with times of their own, by name, and the times of all others.
    pub fn report(&self) -> (Vec<FunctionTimes>, Times) {
        let mut functions: Vec<_> = self.own.values().cloned().collect();
        functions.sort_by(|a, b| a.function.cmp(&b.function));
        (functions, self.other.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_their_buckets() {
        let mut all = Histogram::default();
        let second = 1_000_000_000;
        for ns in [0, 900, 1000, second / 2, second / 2 + 1, second, u64::MAX] {
            all.add(ns);
        }
        assert_eq!((all.count(), all.zero()), (7, 2));
        assert_eq!((all.at_most(-2), all.at_most(-1)), (3, 4));
        assert_eq!((all.at_most(0), all.at_most(1), all.at_most(17)), (6, 6, 7));
        let native: Vec<_> = all.native().collect();
        // 1 us is in the first one, and half a second and a second end theirs.
        assert_eq!(native, [(-159, 1), (-8, 1), (-7, 1), (0, 1), (136, 1)]);
    }

    fn report(key: u64, name: &str) -> FunctionReport {
        FunctionReport {
            key,
            function: name.to_owned(),
            completions: 1,
            p50_ms: None,
            p90_ms: None,
            p99_ms: None,
            rank: None,
            work_share: 0.0,
        }
    }

    fn ended(function: u64, turnaround_ns: u64) -> Ended {
        Ended {
            function,
            service_ns: 10,
            turnaround_ns,
            queued_ns: turnaround_ns / 2,
            killed: false,
        }
    }

    fn names(all: &TimesByFunction) -> Vec<String> {
        let (functions, _) = all.report();
        functions.into_iter().map(|one| one.function).collect()
    }

    #[test]
    fn the_number_of_series_is_bounded_and_no_count_goes_back() {
        let mut all = TimesByFunction::new(2);
        all.note(&ended(1, 5));
        let work = [1, 2, 3, 4, 5, 6].map(|key| report(key, &format!("f{key}")));
        all.choose(&work[..4]);
        assert_eq!(names(&all), ["f1", "f2"]);
        for key in 1..1000 {
            all.note(&ended(key, 7));
        }
        let (functions, other) = all.report();
        // The first one was noted before its function was chosen.
        assert_eq!(functions[0].times.turnaround.count(), 1);
        assert_eq!((other.turnaround.count(), other.cpu_ns), (998, 9980));
        // About equal work changes nothing.
        all.choose(&[3, 4, 1, 2].map(|key: usize| work[key - 1].clone()));
        assert_eq!(names(&all), ["f1", "f2"]);
        all.choose(&[3, 4, 2, 6].map(|key: usize| work[key - 1].clone()));
        assert_eq!(names(&all), ["f2", "f3"]);
        all.note(&ended(1, 5));
        assert_eq!(all.report().1.turnaround.count(), 999);
    }

    #[test]
    fn only_ends_that_are_known_have_a_turnaround() {
        let mut all = TimesByFunction::new(0);
        all.choose(&[report(1, "one")]);
        all.note(&ended(1, 0));
        all.note(&Ended {
            killed: true,
            ..ended(1, 5)
        });
        let (functions, other) = all.report();
        assert!(functions.is_empty());
        assert_eq!((other.turnaround.count(), other.killed), (0, 1));
        assert_eq!(other.cpu_ns, 20);
    }

    #[test]
    fn no_two_functions_share_a_name() {
        let mut all = TimesByFunction::new(5);
        let work = [
            (1, "a b"),
            (2, "a\\u{20}b"),
            (3, OTHER),
            (4, "x\ny"),
            (0xb, "a b"),
        ];
        all.choose(&work.map(|(key, name)| report(key, name)));
        let mut found = names(&all);
        assert!(found.iter().all(|name| !name.contains(char::is_whitespace)));
        assert!(found.contains(&"other~3".to_owned()), "{found:?}");
        found.dedup();
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(!found.contains(&OTHER.to_owned()));
    }
}
