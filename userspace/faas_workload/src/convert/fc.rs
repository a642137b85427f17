//! Lists of fc-microbenchmark: `program, argument, IAT in seconds`, one request
//! per line.
//!
//! Each request starts a Firecracker microVM that runs one of three programs: 0
//! counts the primes up to its argument, 1 writes a file of that many
//! megabytes, 2 runs the STREAM kernel that many times. The list has no
//! durations: they are in the benchmark's baselines, ten runs of each on an
//! idle machine, and their median is used here. With [`Figure::StartWaits`] most
//! of a microVM's start is time blocked; with the others all of it is CPU time,
//! and so is the I/O of program 1.
//!
//! The published results do not show whether a request arrives before or after
//! its IAT. Here it is after, which shifts all arrivals by less than a second.

use super::{Converted, Skipped};
use crate::files::decimal;
use crate::service_us;
use faas_data::input::{number, shorten, MAX_US};
use faas_data::trace::{Invocation, Phase};
use std::collections::{BTreeMap, HashMap};

/// The built-in baselines: program, argument, tFC and tVM in milliseconds.
///
/// Source: medians of `CFS-baselines-poisson-50000-1hr-cpu.txt` of
/// NJLBoonstra/fc-microbenchmark (Apache-2.0), without the files of 2048 and
/// 4096 MB: their tVM is 0, because the disk was full.
const BASELINES: [(u64, u64, f64, f64); 18] = [
    (0, 1_000_000, 3685.5, 188.0),
    (0, 2_500_000, 4172.0, 671.0),
    (0, 4_000_000, 4784.0, 1297.0),
    (0, 5_500_000, 5528.0, 2030.0),
    (0, 7_000_000, 6348.0, 2852.0),
    (0, 8_500_000, 7246.0, 3751.0),
    (1, 1, 3508.0, 9.0),
    (1, 10, 3556.0, 71.0),
    (1, 128, 4434.5, 905.5),
    (1, 256, 5292.0, 1762.0),
    (1, 512, 6939.5, 3430.0),
    (1, 1_024, 10_293.5, 6776.5),
    (2, 10, 3874.0, 351.0),
    (2, 20, 4087.0, 565.5),
    (2, 40, 4539.0, 1022.5),
    (2, 80, 5338.5, 1810.5),
    (2, 160, 7093.0, 3603.0),
    (2, 320, 10_706.0, 7186.5),
];

/// Names of the programs, by number.
pub(crate) const PROGRAMS: [&str; 3] = ["primes", "write", "stream"];

/// CPU time of a microVM's start in milliseconds, of 3.5 s in all.
///
/// Not measured by the benchmark, but implied by the thesis (Section 5.4.2): W1
/// uses "close to 90 %" of the CPUs. Its script turns SMT off, which leaves 36
/// of the machine's 72: 0.9 x 36 CPUs x 3600 s / 50,000 = 2333 ms for each
/// microVM, of which the program has 1798 on average. (With 72 CPUs it would be
/// 2868 ms.)
pub const START_CPU_MS: f64 = 535.0;

/// The duration to use as service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Of the microVM, with 3.5 s for its start
    Tfc,
    /// Of the program in it
    Tvm,
    /// Of the microVM, with a start that blocks except for 535 ms of CPU time
    StartWaits,
}

/// What an invocation needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Time blocked before it computes, in milliseconds.
    pub wait_ms: f64,
    /// CPU time in milliseconds.
    pub cpu_ms: f64,
}

impl Cost {
    /// From the durations of the microVM and of the program in it.
    fn new(tfc: f64, tvm: f64, figure: Figure) -> Self {
        let cpu = |cpu_ms| Self {
            wait_ms: 0.0,
            cpu_ms,
        };
        match figure {
            Figure::Tfc => cpu(tfc),
            Figure::Tvm => cpu(tvm),
            Figure::StartWaits => Self {
                wait_ms: (tfc - tvm - START_CPU_MS).max(0.0),
                cpu_ms: tvm + START_CPU_MS.min(tfc - tvm).max(0.0),
            },
        }
    }

    /// The phases of an invocation, with times multiplied by `scale`.
    pub(crate) fn phases(self, scale: f64) -> Vec<Phase> {
        let cpu = Phase::cpu(service_us(self.cpu_ms * 1e3 * scale));
        match self.wait_ms > 0.0 {
            true => vec![Phase::io(service_us(self.wait_ms * 1e3 * scale)), cpu],
            false => vec![cpu],
        }
    }
}

/// What each program needs with each argument.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs(HashMap<(u64, u64), Cost>);

impl Costs {
    /// The built-in figures.
    pub fn built_in(figure: Figure) -> Self {
        let cost = |(program, argument, tfc, tvm)| {
            let key = (program, argument);
            (key, Cost::new(tfc, tvm, figure))
        };
        Self(BASELINES.map(cost).into_iter().collect())
    }

    /// The arguments of a program, in order, with their costs.
    pub(crate) fn of_program(&self, program: u64) -> Vec<(u64, Cost)> {
        let own = self.0.iter().filter(|((found, _), _)| *found == program);
        let mut own: Vec<(u64, Cost)> = own
            .map(|((_, argument), cost)| (*argument, *cost))
            .collect();
        own.sort_by_key(|(argument, _)| *argument);
        own
    }

    /// Medians of a file of baselines, `workloadID, workload argument, run, tFC,
    /// tVM` with a header; and the unusable lines.
    pub fn parse(text: &str, figure: Figure) -> (Self, Skipped) {
        let mut runs: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
        let mut skipped = Vec::new();
        for (index, line) in text.lines().enumerate().skip(1) {
            match baseline(line) {
                Ok((key, times)) => runs.entry(key).or_default().push(times),
                Err(reason) => skipped.push((index + 1, reason)),
            }
        }
        let medians = runs.into_iter().map(|(key, runs)| {
            let (tfc, tvm) = runs.into_iter().unzip();
            (key, Cost::new(median(tfc), median(tvm), figure))
        });
        (Self(medians.collect()), skipped)
    }

    /// Whether it has no figures.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The program and its argument, tFC and tVM in milliseconds.
type Run = ((u64, u64), (f64, f64));

/// One run.
fn baseline(line: &str) -> Result<Run, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [program, argument, _run, tfc, tvm] = fields[..] else {
        return Err(format!("want 5 fields, found {}", fields.len()));
    };
    let key = (program_number(program)?, argument_number(argument)?);
    let max_ms = MAX_US / 1000;
    let (tfc, tvm) = (number("tFC", tfc, max_ms)?, number("tVM", tvm, max_ms)?);
    if tvm == 0 {
        return Err("its tVM is 0: the program has failed".to_string());
    }
    Ok((key, (tfc as f64, tvm as f64)))
}

/// The median of at least one number.
fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    let half = all.len() / 2;
    if all.len() % 2 == 1 {
        all[half]
    } else {
        (all[half - 1] + all[half]) / 2.0
    }
}

/// Converts the first `first` usable requests of a list, with service times
/// multiplied by `scale`.
pub fn convert(text: &str, costs: &Costs, scale: f64, first: usize) -> Converted {
    let mut converted = Converted::default();
    let mut now_us = 0.0;
    for (index, line) in text.lines().enumerate() {
        if converted.invocations.len() >= first {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        match request(line, costs, scale, &mut now_us) {
            Ok(invocation) => converted.invocations.push(invocation),
            Err(reason) => converted.skipped.push((index + 1, reason)),
        }
    }
    converted
}

/// Advances `now_us` by the line's IAT as soon as it is known, so that requests
/// after an unusable one keep their arrivals.
fn request(line: &str, costs: &Costs, scale: f64, now_us: &mut f64) -> Result<Invocation, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [program, argument, iat] = fields[..] else {
        return Err(format!("want 3 fields, found {}", fields.len()));
    };
    let seconds = decimal(iat).filter(|s| *now_us + s * 1e6 <= MAX_US as f64);
    let seconds = seconds.ok_or_else(|| {
        let iat = shorten(iat, 40);
        format!("IAT `{iat}` is not a number of seconds, or too large")
    })?;
    *now_us += seconds * 1e6;
    let program = program_number(program)?;
    let argument = argument_number(argument)?;
    let name = format!("{}-{argument}", PROGRAMS[program as usize]);
    let cost = costs.0.get(&(program, argument));
    let cost = cost.ok_or_else(|| format!("no baseline is known for {name}"))?;
    Ok(Invocation {
        phases: cost.phases(scale),
        ..Invocation::cpu(now_us.round() as u64, name, 1)
    })
}

fn program_number(text: &str) -> Result<u64, String> {
    number("program", text, PROGRAMS.len() as u64 - 1)
}

fn argument_number(text: &str) -> Result<u64, String> {
    number("argument", text, u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::{shared, NOT_HERE};
    use super::*;
    use faas_data::trace::{self, offered_load, to_csv};
    use proptest::prelude::*;
    use sfs_skip::skip;
    use std::process::Command;

    proptest! {
        /// Nothing panics, and the result is a trace.
        #[test]
        fn any_text_gives_a_trace_or_nothing(
            text in "([0-9x]{1,2}, (1000000|20|[0-9a]{1,9}), [0-9.e-]{1,9} ?\n|.{0,9}\n?){0,20}",
            first in 0..9usize,
            scale in 0.001..1000.0f64,
        ) {
            let _ = Costs::parse(&text, Figure::Tfc);
            let made = convert(&text, &Costs::built_in(Figure::Tvm), scale, first).invocations;
            prop_assert!(made.len() <= first);
            if !made.is_empty() {
                prop_assert_eq!(trace::parse("made", to_csv(&made).as_bytes()).unwrap(), made);
            }
        }
    }

    #[test]
    fn requests_become_invocations() {
        let text = "0, 1000000, 0.080 \n2, 20, 0.051 \n\n1, 10, 1.5\n";
        let converted = convert(text, &Costs::built_in(Figure::Tfc), 1.0, 9);
        let want = [
            Invocation::cpu(80_000, "primes-1000000", 3_685_500),
            Invocation::cpu(131_000, "stream-20", 4_087_000),
            Invocation::cpu(1_631_000, "write-10", 3_556_000),
        ];
        assert_eq!(converted.invocations, want);
        let front = convert(text, &Costs::built_in(Figure::Tvm), 0.5, 1);
        assert_eq!(
            front.invocations,
            [Invocation::cpu(80_000, "primes-1000000", 94_000)]
        );
    }

    #[test]
    fn a_start_waits_and_then_computes() {
        let text = "0, 1000000, 0.080\n";
        let converted = convert(text, &Costs::built_in(Figure::StartWaits), 0.1, 9);
        // 3685.5 ms in all, 188 of them in the program and 535 CPU time of the start
        let want = [Phase::io(296_250), Phase::cpu(72_300)];
        assert_eq!(converted.invocations[0].phases, want);
    }

    #[test]
    fn unusable_lines_are_counted() {
        let text = "0, 1000000, 1\n3, 1, 1\n0, 77, 1\n0, 1000000\n0, x, 1\n0, 1000000, -1\n\
                    0, 1000000, 1e9\n0, 1000000, 20000000\n2, 10, 1\n";
        let converted = convert(text, &Costs::built_in(Figure::Tfc), 1.0, 9);
        let arrivals: Vec<u64> = converted.invocations.iter().map(|i| i.arrival_us).collect();
        // The IATs of lines 2, 3 and 5 count.
        assert_eq!(arrivals, [1_000_000, 5_000_000]);
        let want = [
            (2, "program `3` is more than 2"),
            (3, "no baseline is known for primes-77"),
            (4, "want 3 fields, found 2"),
            (5, "argument `x` is not a whole number"),
            (6, "IAT `-1` is not a number of seconds, or too large"),
            (7, "IAT `1e9` is not a number of seconds, or too large"),
            (8, "IAT `20000000` is not a number of seconds, or too large"),
        ];
        let found: Vec<(usize, &str)> = converted
            .skipped
            .iter()
            .map(|(line, reason)| (*line, &**reason))
            .collect();
        assert_eq!(found, want);
    }

    #[test]
    fn baselines_are_medians_of_their_runs() {
        let text = "workloadID, workload argument, run, tFC, tVM\n\
                    0,5,0,90,10\n0,5,1,50,20\n0,5,2,60,30\n1,9,0,10,7\n1,9,1,20,8\n\
                    1,2048,0,16220,0\nx,1,0,1,1\n1,9,2\n";
        let cost = |wait_ms, cpu_ms| Cost { wait_ms, cpu_ms };
        let of = |figure| Costs::parse(text, figure).0.of_program(0);
        let (costs, skipped) = Costs::parse(text, Figure::Tfc);
        let want = [((0, 5), cost(0.0, 60.0)), ((1, 9), cost(0.0, 15.0))];
        assert_eq!(costs.0, HashMap::from(want));
        assert_eq!(of(Figure::Tvm), [(5, cost(0.0, 20.0))]);
        // The whole rest of 40 ms is less than the start's CPU time.
        assert_eq!(of(Figure::StartWaits), [(5, cost(0.0, 60.0))]);
        let want = [
            (7, "its tVM is 0: the program has failed".to_string()),
            (8, "program `x` is not a whole number".to_string()),
            (9, "want 5 fields, found 3".to_string()),
        ];
        assert_eq!(skipped, want);
        assert!(Costs::parse("", Figure::Tfc).0.is_empty());
    }

    #[test]
    fn the_published_lists_are_all_used() {
        let lists = [
            ("50000-1hr-cpu", 50_000, 1.0205),
            ("25000-1hr-75cpu25mem", 25_000, 0.5338),
            ("12500-1hr-mem", 12_500, 0.2888),
        ];
        for (name, count, load) in lists {
            let path = format!("traces/fc-microbenchmark/workloads/poisson-{name}.txt");
            let Some(path) = shared(&path) else {
                skip!(NOT_HERE);
            };
            let text = std::fs::read_to_string(path).unwrap();
            let converted = convert(&text, &Costs::built_in(Figure::Tfc), 1.0, usize::MAX);
            assert_eq!(
                (converted.invocations.len(), converted.skipped.len()),
                (count, 0)
            );
            let found = offered_load(&converted.invocations, 72).unwrap();
            assert!((found - load).abs() < 1e-4, "{name}: {found}");
        }
    }

    #[test]
    fn the_built_in_baselines_are_the_published_ones() {
        let name = "traces/fc-microbenchmark/results/CFS-baselines-poisson-50000-1hr-cpu.txt.gz";
        let Some(path) = shared(name) else {
            skip!(NOT_HERE);
        };
        let Ok(unpacked) = Command::new("gzip").arg("-dc").arg(path).output() else {
            skip!("gzip is not here");
        };
        let text = String::from_utf8(unpacked.stdout).unwrap();
        for figure in [Figure::Tfc, Figure::Tvm] {
            let (costs, skipped) = Costs::parse(&text, figure);
            assert_eq!(costs, Costs::built_in(figure));
            // Ten runs each of the two files that did not fit.
            assert_eq!(skipped.len(), 20);
        }
    }
}
