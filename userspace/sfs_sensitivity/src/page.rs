//! The tables of docs/sensitivity.md.

use crate::calibrate::{Cost, HOST};
use crate::curve::{at_zero, flips, Flip};
use crate::points::{Machine, Point, MACHINES, MOST_SHIFT, REFILLS};
use crate::results::{Line, Results};
use std::fmt::Write;

/// The row that all are compared with.
const BASE: &str = "eevdf";

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    All,
    Slowdown,
    Short,
    Long,
}

impl Figure {
    const ALL: [Self; 4] = [Self::All, Self::Slowdown, Self::Short, Self::Long];

    fn name(self) -> &'static str {
        match self {
            Self::All => "mean turnaround",
            Self::Slowdown => "mean slowdown",
            Self::Short => "short, mean",
            Self::Long => "long, mean",
        }
    }

    fn of(self, line: &Line) -> Option<f64> {
        match self {
            Self::All => line.mean_ms,
            Self::Slowdown => line.mean_slowdown,
            Self::Short => line.short_ms,
            Self::Long => line.long_ms,
        }
    }
}

/// All tables.
pub fn text(results: &Results, costs: &[Cost], commit: &str) -> String {
    let mut text = format!("Written at commit {commit}. {}\n", kernels(results));
    for machine in &MACHINES {
        text += &refill_tables(results, machine);
    }
    for machine in MACHINES.iter().filter(|one| one.name == one.base) {
        text += &cost_table(results, machine);
    }
    text + &calibration(costs)
}

/// The kernels and commits of the results.
fn kernels(results: &Results) -> String {
    let mut found: Vec<String> = results
        .lines()
        .iter()
        .map(|line| {
            format!(
                "Linux {} with the programs of commit {}",
                line.kernel, line.commit
            )
        })
        .collect();
    found.sort();
    found.dedup();
    match found.is_empty() {
        true => "Nothing is measured yet.".to_string(),
        false => format!("Measured: {}.", found.join("; ")),
    }
}

/// Three digits.
fn digits(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_string(), digits)
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A table with these heads, the first `left` of them aligned to the left.
fn head(heads: impl IntoIterator<Item = String>, left: usize) -> String {
    let heads: Vec<String> = heads.into_iter().collect();
    let rule = (0..heads.len()).map(|place| if place < left { "---|" } else { "---:|" });
    let rule: String = rule.collect();
    format!("{}|{rule}\n", row(heads))
}

/// The tables of a machine at the usual cost of the kernel.
fn refill_tables(results: &Results, machine: &'static Machine) -> String {
    let point = |refill_us| Point {
        machine,
        shift: 0,
        refill_us,
    };
    let refills: Vec<u32> = REFILLS
        .into_iter()
        .filter(|us| results.line(&point(*us), BASE).is_some())
        .collect();
    // Without refills it is the table of another machine.
    if refills.iter().all(|us| *us == 0) {
        return String::new();
    }
    let schedulers: Vec<String> = results
        .schedulers()
        .into_iter()
        .filter(|name| {
            refills
                .iter()
                .any(|us| results.line(&point(*us), name).is_some())
        })
        .collect();
    let mut text = format!("\n### Refill: {}\n\n", machine.about);
    text += "Ratios to EEVDF with the same R; less is better.\n\n";
    let columns = refills.iter().map(|us| format!("R = {us} us"));
    text += &head(
        ["figure".to_string(), "row".to_string()]
            .into_iter()
            .chain(columns),
        2,
    );
    for figure in Figure::ALL {
        for name in schedulers.iter().filter(|name| *name != BASE) {
            let ratio = |us: &u32| {
                let at = |name| {
                    results
                        .line(&point(*us), name)
                        .and_then(|line| figure.of(line))
                };
                shown(at(name).zip(at(BASE)).map(|(ours, theirs)| ours / theirs))
            };
            let cells = [figure.name().to_string(), format!("`{name}`")];
            text += &row(cells.into_iter().chain(refills.iter().map(ratio)));
        }
    }
    text += &growth(results, &schedulers, &refills, point);
    text + &flip_table(results, &schedulers, point)
}

/// What EEVDF has, and what was added.
fn growth(
    results: &Results,
    schedulers: &[String],
    refills: &[u32],
    point: impl Fn(u32) -> Point,
) -> String {
    let mut text =
        "\nWhat R adds: EEVDF's mean turnaround, CPU time over the CPU time of the trace, and the \
         switches for which CPU time was added (of these, to another CPU).\n\n"
            .to_string();
    let columns = refills.iter().map(|us| format!("R = {us} us"));
    text += &head(
        ["figure".to_string(), "row".to_string()]
            .into_iter()
            .chain(columns),
        2,
    );
    let mut add = |what: &str, name: &str, cell: &dyn Fn(&Line) -> String| {
        let cells = refills.iter().map(|us| {
            let line = results.line(&point(*us), name);
            line.map_or_else(|| "-".to_string(), cell)
        });
        let first = [what.to_string(), format!("`{name}`")];
        text += &row(first.into_iter().chain(cells));
    };
    add("mean turnaround, ms", BASE, &|line| shown(line.mean_ms));
    for name in schedulers {
        add("CPU time over demand", name, &|line| {
            shown(line.cpu_over_service)
        });
    }
    for name in schedulers {
        add(
            "switches",
            name,
            &|line| match line.refills.zip(line.moves) {
                Some((refills, moves)) => format!("{refills} ({moves})"),
                None => "-".to_string(),
            },
        );
    }
    text
}

/// The R at which each ranking changes.
fn flip_table(results: &Results, schedulers: &[String], point: impl Fn(u32) -> Point) -> String {
    let most = REFILLS[REFILLS.len() - 1];
    let mut text =
        "\nWhere rankings flip, by linear interpolation between the points above:\n\n".to_string();
    text += &head(
        ["pair", "mean turnaround", "mean slowdown"].map(str::to_string),
        3,
    );
    for (index, first) in schedulers.iter().enumerate() {
        for second in &schedulers[index + 1..] {
            let found = [Figure::All, Figure::Slowdown].map(|figure| {
                let value = |us: u32, name: &str| figure.of(results.line(&point(us), name)?);
                let both = REFILLS.iter().filter_map(|us| {
                    Some((f64::from(*us), value(*us, first)?, value(*us, second)?))
                });
                let both: Vec<(f64, f64, f64)> = both.collect();
                ranking(&both, first, second, most)
            });
            let pair = format!("`{first}`, `{second}`");
            text += &row([pair].into_iter().chain(found));
        }
    }
    text
}

/// The ranking of two schedulers over R: each of `points` is R and their figures.
fn ranking(points: &[(f64, f64, f64)], first: &str, second: &str, most: u32) -> String {
    let Some((_, one, other)) = points.first() else {
        return "-".to_string();
    };
    let column = |of: fn(&(f64, f64, f64)) -> f64| points.iter().map(of).collect::<Vec<f64>>();
    let found = flips(
        &column(|one| one.0),
        &column(|one| one.1),
        &column(|one| one.2),
    );
    let measured = match points.last() {
        Some((last, ..)) => *last,
        None => 0.0,
    };
    let mut text = String::new();
    for flip in found {
        match flip {
            Flip::None if one == other => text += "equal throughout",
            Flip::None => {
                let better = if one < other { first } else { second };
                let _ = write!(text, "none up to {measured:.0} us: `{better}` is better");
            }
            Flip::At { at, first_before } => {
                let (before, after) = match first_before {
                    true => (first, second),
                    false => (second, first),
                };
                let comma = if text.is_empty() { "" } else { "; " };
                let _ = write!(
                    text,
                    "{comma}{at:.0} us: `{before}` before, `{after}` after"
                );
            }
        }
    }
    if measured < f64::from(most) {
        let _ = write!(text, " (not measured beyond)");
    }
    text
}

/// The table of a machine without refill at each cost of the kernel.
fn cost_table(results: &Results, machine: &'static Machine) -> String {
    let point = |shift| Point {
        machine,
        shift,
        refill_us: 0,
    };
    let schedulers: Vec<String> = results
        .schedulers()
        .into_iter()
        .filter(|name| (1..=MOST_SHIFT).any(|shift| results.line(&point(shift), name).is_some()))
        .collect();
    if schedulers.is_empty() {
        return String::new();
    }
    // Without what costs how much after a switch.
    let cpus = machine.about.split(';').next().unwrap_or_default();
    let mut text = format!("\n### Costs of the kernel: {cpus}\n\n");
    text += "Means at R = 0; the column without cost is extrapolated by the straight line closest to the \
             others. In parentheses the ratio to EEVDF.\n\n";
    let costs = (0..=MOST_SHIFT).map(|shift| format!("{} ns an instruction", 1 << shift));
    let heads = ["figure", "row", "without (extrapolated)"].map(str::to_string);
    text += &head(heads.into_iter().chain(costs), 2);
    for figure in Figure::ALL {
        for name in &schedulers {
            let value = |shift, name: &str| figure.of(results.line(&point(shift), name)?);
            let none = |name: &str| {
                let known = (0..=MOST_SHIFT)
                    .filter_map(|shift| Some((f64::from(1 << shift), value(shift, name)?)));
                at_zero(&known.collect::<Vec<_>>())
            };
            let mut cells = vec![beside(none(name), none(BASE))];
            cells.extend(
                (0..=MOST_SHIFT).map(|shift| beside(value(shift, name), value(shift, BASE))),
            );
            let first = [figure.name().to_string(), format!("`{name}`")];
            text += &row(first.into_iter().chain(cells));
        }
    }
    text
}

/// A figure, and its ratio to EEVDF's.
fn beside(value: Option<f64>, base: Option<f64>) -> String {
    match (value, base) {
        (Some(value), Some(base)) => format!("{} ({})", digits(value), digits(value / base)),
        (Some(value), None) => digits(value),
        _ => "-".to_string(),
    }
}

/// The table of small costs.
fn calibration(costs: &[Cost]) -> String {
    if costs.is_empty() {
        return String::new();
    }
    let mut columns: Vec<(&str, &str)> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for one in costs {
        let column = (one.machine.as_str(), one.scheduler.as_str());
        if !columns.contains(&column) {
            columns.push(column);
        }
        if !names.contains(&one.cost.as_str()) {
            names.push(&one.cost);
        }
    }
    let mut text = "\n### Calibration side by side\n\n".to_string();
    text += "Medians in ns, and the interquartile range in parentheses.\n\n";
    let heads = columns.iter().map(|(machine, scheduler)| match *machine {
        HOST => format!("this host, {scheduler}"),
        _ => format!("{machine} an instruction, `{scheduler}`"),
    });
    text += &head(["cost".to_string()].into_iter().chain(heads), 1);
    for name in names {
        let cells = columns.iter().map(|(machine, scheduler)| {
            let of = |one: &&Cost| {
                one.cost == name && one.machine == *machine && one.scheduler == *scheduler
            };
            let found = costs.iter().find(of);
            let parts = found.and_then(|one| Some((one.median_ns?, one.q1_ns?, one.q3_ns?)));
            parts.map_or("-".to_string(), |(median, q1, q3)| {
                format!("{median:.0} ({:.0})", q3 - q1)
            })
        });
        text += &row([name.to_string()].into_iter().chain(cells));
    }
    let mut machines: Vec<String> = costs
        .iter()
        .map(|one| {
            format!(
                "{}: Linux {}, commit {}",
                one.machine, one.kernel, one.commit
            )
        })
        .collect();
    machines.dedup();
    machines.sort();
    machines.dedup();
    text + &format!("\n{}.\n", machines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{line, point};

    fn results(lines: Vec<Line>) -> Results {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::read(&folder.path().join("s.csv")).unwrap();
        lines
            .into_iter()
            .for_each(|line| results.put(line).unwrap());
        results
    }

    #[test]
    fn ratios_flips_and_extrapolations_are_in_the_tables() {
        let mut lines = Vec::new();
        for (us, ours) in [(0, 50.0), (100, 90.0), (200, 150.0)] {
            lines.push(line(&point(us, 0), "eevdf", 100.0, 4.0));
            lines.push(line(&point(us, 0), "scx_sfs", ours, 1.0));
        }
        for (shift, ours) in [(1, 52.0), (2, 56.0)] {
            lines.push(line(&point(0, shift), "eevdf", 100.0, 4.0));
            lines.push(line(&point(0, shift), "scx_sfs", ours, 1.0));
        }
        let cost = Cost {
            machine: HOST.into(),
            scheduler: "eevdf".into(),
            cost: "pipe".into(),
            median_ns: Some(900.0),
            q1_ns: Some(850.0),
            q3_ns: Some(1000.0),
            kernel: "6.12".into(),
            commit: "abc".into(),
        };
        let text = text(&results(lines), &[cost], "abc");
        for want in [
            "| mean turnaround | `scx_sfs` | 0.50 | 0.90 | 1.50 |",
            "| `eevdf`, `scx_sfs` | 117 us: `scx_sfs` before, `eevdf` after (not measured beyond) |",
            "none up to 200 us: `scx_sfs` is better (not measured beyond) |",
            "| mean turnaround | `scx_sfs` | 48.0 (0.48) | 50.0 (0.50) | 52.0 (0.52) | 56.0 (0.56) |",
            "| switches | `scx_sfs` | 3 (1) | 3 (1) | 3 (1) |",
            "| pipe | 900 (150) |",
            "host: Linux 6.12, commit abc.",
        ] {
            assert!(text.contains(want), "{want}\n{text}");
        }
    }

    #[test]
    fn without_results_there_is_no_table() {
        let text = text(&results(Vec::new()), &[], "abc");
        assert_eq!(text, "Written at commit abc. Nothing is measured yet.\n");
    }
}
