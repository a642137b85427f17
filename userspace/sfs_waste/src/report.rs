//! Reports of wasted time and of waits.

use crate::account::ON_THE_WAY_NS;
use crate::waits::{Kind, Wait};

/// A period for which one CPU idled while one task waited that may run there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The start, on the events' clock.
    pub from_ns: u64,
    /// The length.
    pub length_ns: u64,
    /// The waiting thread.
    pub thread: i32,
    /// The thread's name.
    pub name: String,
    /// The idle CPU.
    pub cpu: usize,
}

/// A period from start to end, in ns of the events' clock.
pub type Span = (u64, u64);

/// The waste during a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The watched periods, in order and without overlap.
    pub watched: Vec<Span>,
    /// The stretches, each at least [`ON_THE_WAY_NS`] long.
    pub stretches: Vec<Stretch>,
    /// The long waits.
    pub waits: Vec<Wait>,
    /// Events lost for lack of memory; if any, the report may be wrong.
    pub lost: u64,
}

impl Report {
    /// The watched time, in ns.
    pub fn watched_ns(&self) -> u64 {
        self.watched.iter().map(|(from, to)| to - from).sum()
    }

    /// CPU time that idle CPUs could have given to waiting tasks, in ns. Where several
    /// tasks waited or several CPUs idled, no task and no CPU counts twice.
    pub fn wasted_ns(&self) -> u64 {
        let by_cpu = covered(&self.stretches, |stretch| stretch.cpu as u64);
        let by_thread = covered(&self.stretches, |stretch| stretch.thread as u64);
        by_cpu.min(by_thread)
    }

    /// The `count` longest stretches, the longest first.
    pub fn longest(&self, count: usize) -> Vec<&Stretch> {
        let mut longest: Vec<_> = self.stretches.iter().collect();
        longest.sort_by_key(|one| (std::cmp::Reverse(one.length_ns), one.from_ns, one.cpu));
        longest.truncate(count);
        longest
    }

    /// The longest stretch, in ns.
    pub fn longest_ns(&self) -> u64 {
        let lengths = self.stretches.iter().map(|one| one.length_ns);
        lengths.max().unwrap_or(0)
    }

    /// A copy without the first `late_ns` of each stretch.
    #[must_use]
    pub fn beyond(&self, late_ns: u64) -> Self {
        let rest = |one: &Stretch| {
            let length_ns = one.length_ns.checked_sub(late_ns)?;
            let from_ns = one.from_ns + late_ns;
            Some(Stretch {
                from_ns,
                length_ns,
                ..one.clone()
            })
        };
        Self {
            stretches: self.stretches.iter().filter_map(rest).collect(),
            ..self.clone()
        }
    }

    /// The longest wait of this kind, if any.
    pub fn longest_wait(&self, kind: Kind) -> Option<&Wait> {
        let waits = self.waits.iter().filter(|one| one.kind == kind);
        waits.max_by_key(|one| (one.length_ns, std::cmp::Reverse(one.from_ns)))
    }

    /// The part of it within `spans`, which must not overlap.
    #[must_use]
    pub fn during(&self, spans: &[Span]) -> Self {
        let mut spans = spans.to_vec();
        spans.sort_unstable();
        let cut = |from: u64, to: u64| {
            let cut = spans
                .iter()
                .map(move |span| (from.max(span.0), to.min(span.1)));
            cut.filter(|(from, to)| from < to)
        };
        let watched = self.watched.iter();
        let stretches = self.stretches.iter().flat_map(|one| {
            let parts = cut(one.from_ns, one.from_ns + one.length_ns);
            parts.map(|(from, to)| Stretch {
                from_ns: from,
                length_ns: to - from,
                ..one.clone()
            })
        });
        let waits = self.waits.iter().flat_map(|one| {
            let parts = cut(one.from_ns, one.from_ns + one.length_ns);
            parts.map(|(from, to)| Wait {
                from_ns: from,
                length_ns: to - from,
                ..one.clone()
            })
        });
        Self {
            watched: watched.flat_map(|&(from, to)| cut(from, to)).collect(),
            stretches: stretches
                .filter(|one| one.length_ns >= ON_THE_WAY_NS)
                .collect(),
            waits: waits.collect(),
            lost: self.lost,
        }
    }
}

/// Returns the time that the stretches of each group cover, summed over the
/// groups.
fn covered(stretches: &[Stretch], group: impl Fn(&Stretch) -> u64) -> u64 {
    let mut parts: Vec<_> = stretches
        .iter()
        .map(|one| (group(one), one.from_ns, one.from_ns + one.length_ns))
        .collect();
    parts.sort_unstable();
    let mut sum = 0;
    let mut reached = (u64::MAX, 0);
    for (group, from, to) in parts {
        if group != reached.0 {
            reached = (group, 0);
        }
        let from = from.max(reached.1);
        sum += to.saturating_sub(from);
        reached.1 = reached.1.max(to);
    }
    sum
}
