//! What a summary says about fixed work.
//!
//! *CPU over CPU alone* = sum of the CPU time of the invocations that do fixed
//! work / sum of what they take alone, by calibration. Above 1 is what the
//! scheduler, and the other invocations, have cost: cold caches, page tables,
//! the kernel's own work in the process.

use crate::result::Record;
use crate::stats::{ratio, Ms};
use crate::trace::{Invocation, Phase};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the completed invocations with fixed work took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FixedWork {
    /// In all.
    #[serde(flatten)]
    pub all: Taken,
    /// By kind of work, where the trace has the kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, Taken>,
    /// How "alone" was measured; only a run knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
}

/// CPU time of some invocations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// Their number.
    pub invocations: usize,
    /// CPU time that they took, in ms.
    pub cpu_ms: f64,
    /// CPU time that they take alone, in ms.
    pub alone_ms: f64,
    /// The former / the latter.
    pub cpu_over_alone: f64,
}

/// How long iterations take alone, pinned to one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The CPU.
    pub cpu: u32,
    /// Number of measurements of each value, of which the median counts.
    pub repetitions: u32,
    /// Number of other CPUs that executed no-operation instructions meanwhile.
    pub beside: u32,
    /// CPU time of a process that does nothing, in us.
    pub start_us: f64,
    /// The kinds of work.
    pub kernels: BTreeMap<String, Calibrated>,
}

/// One kind of fixed work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// CPU time that its working set takes to make, in us.
    pub setup_us: f64,
    /// Iterations in a us of CPU time.
    pub iterations_per_us: f64,
    /// Interquartile range of the measurements / their median.
    pub spread: f64,
}

/// A sum under construction, in us.
#[derive(Default)]
struct Sum {
    invocations: usize,
    cpu_us: u64,
    alone_us: u64,
}

impl Sum {
    fn add(&mut self, record: &Record, alone_us: u64) {
        self.invocations += 1;
        self.cpu_us += record.cpu_us;
        self.alone_us += alone_us;
    }

    fn taken(&self) -> Option<Taken> {
        (self.alone_us > 0).then(|| Taken {
            invocations: self.invocations,
            cpu_ms: self.cpu_us.ms(),
            alone_ms: self.alone_us.ms(),
            cpu_over_alone: ratio(self.cpu_us as f64 / self.alone_us as f64),
        })
    }
}

impl FixedWork {
    /// Of the completed invocations `ok`; `None` if none does fixed work.
    pub(super) fn of(invocations: &[Invocation], ok: &[&Record]) -> Option<Self> {
        let mut all = Sum::default();
        let mut kinds: BTreeMap<&str, Sum> = BTreeMap::new();
        for record in ok {
            let Some(alone_us) = record.alone_us else {
                continue;
            };
            all.add(record, alone_us);
            if let Some(kind) = invocations.get(record.id).and_then(kind) {
                kinds.entry(kind).or_default().add(record, alone_us);
            }
        }
        let kinds = kinds.into_iter();
        let kinds = kinds.filter_map(|(kind, sum)| Some((kind.to_string(), sum.taken()?)));
        Some(Self {
            all: all.taken()?,
            kinds: kinds.collect(),
            calibration: None,
        })
    }
}

/// The kind of its first phase of fixed work.
fn kind(one: &Invocation) -> Option<&'static str> {
    let first = one.phases.iter().find_map(Phase::fixed);
    first.map(|kernel| kernel.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::Kernel;
    use crate::kind::Work;
    use crate::result::Exit;

    fn pair(id: usize, kernel: usize, cpu_us: u64, alone_us: Option<u64>) -> (Invocation, Record) {
        let mut one = Invocation::cpu(0, "f", 9000);
        let work = alone_us.map(|_| Work::Fixed(Kernel::ALL[kernel]));
        one.phases = vec![Phase::Cpu { us: 9000, work }];
        let record = Record {
            id,
            function: "f".to_string(),
            arrival_us: 0,
            start_us: Some(0),
            end_us: Some(1),
            cpu_us,
            service_us: 9000,
            voluntary_switches: 0,
            involuntary_switches: 0,
            exit: Exit::Code(0),
            runqueue_wait_us: None,
            alone_us,
        };
        (one, record)
    }

    #[test]
    fn the_ratio_is_that_of_the_sums_over_fixed_work_only() {
        let pairs = [
            pair(0, 0, 12_000, Some(10_000)),
            pair(1, 2, 3_000, Some(2_000)),
            pair(2, 2, 3_600, Some(4_000)),
            pair(3, 0, 77_000, None),
        ];
        let (invocations, records): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let ok: Vec<&Record> = records.iter().collect();
        let found = FixedWork::of(&invocations, &ok).unwrap();
        // (12 + 3 + 3.6) / (10 + 2 + 4), not the mean of 1.2, 1.5 and 0.9.
        let all = found.all;
        assert_eq!((all.invocations, all.cpu_over_alone), (3, 1.1625));
        assert_eq!((all.cpu_ms, all.alone_ms), (18.6, 16.0));
        let ratios = found.kinds.values().map(|one| one.cpu_over_alone);
        assert_eq!(ratios.collect::<Vec<_>>(), [1.2, 1.1]);
        assert!(found.kinds.contains_key("chase-8m"));
        assert_eq!(FixedWork::of(&invocations, &ok[3..]), None);
        assert_eq!(FixedWork::of(&invocations, &[]), None);
    }

    #[test]
    fn it_survives_a_summary_file() {
        let (one, record) = pair(0, 4, 11_000, Some(10_000));
        let mut work = FixedWork::of(&[one], &[&record]).unwrap();
        let calibrated = Calibrated {
            setup_us: 1.5,
            iterations_per_us: 300.0,
            spread: 0.01,
        };
        work.calibration = Some(Calibration {
            cpu: 0,
            repetitions: 7,
            beside: 3,
            start_us: 200.0,
            kernels: BTreeMap::from([("sum-1m".to_string(), calibrated)]),
        });
        let text = serde_json::to_string(&work).unwrap();
        assert!(text.starts_with("{\"invocations\":1,"), "{text}");
        assert_eq!(serde_json::from_str::<FixedWork>(&text).unwrap(), work);
    }
}
