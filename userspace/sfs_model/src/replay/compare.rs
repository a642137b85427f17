//! Two results of one trace, invocation by invocation: `sfs_model compare`.

use faas_data::measure::Measure;
use faas_data::result::Record;
use faas_data::stats::{mean, nearest_rank, sorted};
use faas_data::trace::Invocation;
use std::fmt::Write;

/// A turnaround agrees if it differs by at most `ms`, or by `per_cent` of that in the live kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// In milliseconds.
    pub ms: f64,
    /// In per cent.
    pub per_cent: f64,
}

/// An invocation in both results.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    service_us: u64,
    live: Measure,
    model: Measure,
}

impl Pair {
    /// How much later it ends in the model, ms.
    fn difference_ms(&self) -> f64 {
        self.model.turnaround_ms() - self.live.turnaround_ms()
    }

    fn ratio(&self) -> f64 {
        self.model.turnaround_ms() / self.live.turnaround_ms().max(1e-3)
    }

    fn agrees(&self, bounds: Bounds) -> bool {
        let allowed = self.live.turnaround_ms() * bounds.per_cent / 100.0;
        self.difference_ms().abs() <= allowed.max(bounds.ms)
    }
}

/// The comparison of two results.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pairs: Vec<Pair>,
    bounds: Bounds,
    short_us: u64,
}

impl Comparison {
    /// Compares a result of a live kernel with one of the model, both of `trace`. Invocations with
    /// a service time below `short_us` are short. Those that failed in either are left out.
    pub fn new(
        trace: &[Invocation],
        live: &[Record],
        model: &[Record],
        short_us: u64,
        bounds: Bounds,
    ) -> Self {
        let both = trace.iter().zip(live.iter().zip(model));
        let pair = |(one, (live, model)): (&Invocation, (&Record, &Record))| {
            Some(Pair {
                service_us: one.service_us(),
                live: Measure::of(live, one)?,
                model: Measure::of(model, one)?,
            })
        };
        Self {
            pairs: both.filter_map(pair).collect(),
            bounds,
            short_us,
        }
    }

    /// The share of invocations that agree, 0 to 1.
    pub fn agreement(&self) -> f64 {
        let agree = self.pairs.iter().filter(|pair| pair.agrees(self.bounds));
        agree.count() as f64 / self.pairs.len().max(1) as f64
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut text = format!(
            "| {:<16} | {:>10} | {:>10} | {:>10} |\n|---|---|---|---|\n",
            "", "all", "short", "long"
        );
        let (short, long) = self.classes();
        let columns = [self.pairs.clone(), short, long];
        let count = |pairs: &[Pair]| pairs.len() as f64;
        self.row(&mut text, "invocations", 0, &columns, count);
        for (name, of) in MEASURES {
            for (what, side) in [("live", LIVE), ("model", MODEL)] {
                let label = format!("{name}, {what}");
                self.row(&mut text, &label, 3, &columns, |pairs| of(&side(pairs)));
            }
        }
        for (name, part) in [
            ("min", 0),
            ("5 %", 50),
            ("50 %", 500),
            ("95 %", 950),
            ("max", 1000),
        ] {
            let of = |pairs: &[Pair]| quantile(pairs.iter().map(Pair::difference_ms), part);
            self.row(
                &mut text,
                &format!("difference, {name}, ms"),
                2,
                &columns,
                of,
            );
        }
        for (name, part) in [("5 %", 50), ("50 %", 500), ("95 %", 950)] {
            let of = |pairs: &[Pair]| quantile(pairs.iter().map(Pair::ratio), part);
            self.row(&mut text, &format!("ratio, {name}"), 3, &columns, of);
        }
        self.row(&mut text, "distance of slowdowns", 3, &columns, distance);
        let label = format!("within {} ms or {} %", self.bounds.ms, self.bounds.per_cent);
        let agree = |pairs: &[Pair]| {
            let agree = pairs.iter().filter(|pair| pair.agrees(self.bounds)).count();
            100.0 * agree as f64 / pairs.len() as f64
        };
        self.row(&mut text, &format!("{label}, %"), 1, &columns, agree);
        text
    }

    fn classes(&self) -> (Vec<Pair>, Vec<Pair>) {
        let is_short = |pair: &Pair| pair.service_us < self.short_us;
        self.pairs.iter().copied().partition(is_short)
    }

    fn row(
        &self,
        text: &mut String,
        label: &str,
        decimals: usize,
        columns: &[Vec<Pair>; 3],
        of: impl Fn(&[Pair]) -> f64,
    ) {
        let cell = |pairs: &Vec<Pair>| match pairs.is_empty() {
            true => "none".to_string(),
            false => format!("{:.decimals$}", of(pairs)),
        };
        let [all, short, long] = columns.each_ref().map(cell);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {label} | {all} | {short} | {long} |");
    }
}

type Side = fn(&[Pair]) -> Vec<Measure>;
const LIVE: Side = |pairs| pairs.iter().map(|pair| pair.live).collect();
const MODEL: Side = |pairs| pairs.iter().map(|pair| pair.model).collect();

type Of = fn(&[Measure]) -> f64;
const MEASURES: [(&str, Of); 5] = [
    ("mean turnaround, ms", |all| {
        mean(&turnarounds(all)).unwrap_or_default()
    }),
    ("50 % of turnarounds, ms", |all| {
        quantile(turnarounds(all).into_iter(), 500)
    }),
    ("mean slowdown", |all| {
        mean(&slowdowns(all)).unwrap_or_default()
    }),
    ("50 % of slowdowns", |all| {
        quantile(slowdowns(all).into_iter(), 500)
    }),
    ("99 % of slowdowns", |all| {
        quantile(slowdowns(all).into_iter(), 990)
    }),
];

fn turnarounds(all: &[Measure]) -> Vec<f64> {
    all.iter().map(Measure::turnaround_ms).collect()
}

fn slowdowns(all: &[Measure]) -> Vec<f64> {
    all.iter().map(|one| one.slowdown).collect()
}

/// By nearest rank; of at least one value.
fn quantile(values: impl Iterator<Item = f64>, per_mille: usize) -> f64 {
    nearest_rank(&sorted(values.collect()), per_mille, 1000)
}

/// The largest difference between the distributions of slowdowns, 0 to 1 (Kolmogorov, Smirnov).
fn distance(pairs: &[Pair]) -> f64 {
    let live = sorted(pairs.iter().map(|pair| pair.live.slowdown).collect());
    let model = sorted(pairs.iter().map(|pair| pair.model.slowdown).collect());
    let below = |all: &[f64], at: f64| all.partition_point(|value| *value <= at) as f64;
    let at = |at: &f64| (below(&live, *at) - below(&model, *at)).abs() / pairs.len() as f64;
    live.iter().chain(&model).map(at).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faas_data::result::Exit;

    fn record(id: usize, end_us: u64) -> Record {
        Record {
            id,
            function: "f".into(),
            arrival_us: 0,
            start_us: Some(0),
            end_us: Some(end_us),
            cpu_us: 0,
            service_us: 1_000,
            voluntary_switches: 0,
            involuntary_switches: 0,
            exit: Exit::Code(0),
            runqueue_wait_us: None,
            alone_us: None,
        }
    }

    #[test]
    fn differences_are_those_of_each_invocation() {
        let trace = [
            Invocation::cpu(0, "f", 1_000),
            Invocation::cpu(0, "g", 100_000),
        ];
        let live = [record(0, 1_000), record(1, 100_000)];
        let model = [record(0, 3_500), record(1, 110_000)];
        let bounds = |ms, per_cent| Bounds { ms, per_cent };
        let of = |bounds| Comparison::new(&trace, &live, &model, 50_000, bounds);
        assert_eq!(of(bounds(2.0, 5.0)).agreement(), 0.0);
        assert_eq!(of(bounds(2.0, 10.0)).agreement(), 0.5);
        assert_eq!(of(bounds(2.5, 10.0)).agreement(), 1.0);
        let table = of(bounds(2.0, 10.0)).table();
        assert!(
            table.contains("| difference, max, ms | 10.00 | 2.50 | 10.00 |"),
            "{table}"
        );
        // Slowdowns are 1 and 1 in one, 3.5 and 1.1 in the other.
        assert!(
            table.contains("| distance of slowdowns | 1.000 | 1.000 | 1.000 |"),
            "{table}"
        );
    }
}
