//! The table of docs/baselines.md.

use super::{folders, Case, BASE, BASELINES, OURS};
use anyhow::{bail, Context, Result};
use faas_data::summary::machine::KernelSettings;
use faas_data::summary::{json, Status, Summary};
use faas_seeds::estimate::{Estimate, Observation};
use sfs_jobs::tree::Tree;
use sfs_jobs::{commit, page};
use std::collections::BTreeMap;
use std::path::Path;

/// The page.
pub(super) const PAGE: &str = "docs/baselines.md";

/// The table follows this line of it.
const MARK: &str = "<!-- What follows is written by sfs_baselines --publish. -->";

/// The sources of what is measured.
const SOURCES: [&str; 3] = ["userspace", "scheds", "vm"];

/// A figure is as good as ours up to this ratio.
const AS_GOOD: f64 = 1.05;

/// A figure of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    All,
    Short,
    Long,
    Slowdown,
    SlowdownP99,
}

impl Figure {
    const ALL: [Self; 5] = [
        Self::All,
        Self::Short,
        Self::Long,
        Self::Slowdown,
        Self::SlowdownP99,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::All => "mean turnaround",
            Self::Short => "short, mean",
            Self::Long => "long, mean",
            Self::Slowdown => "mean slowdown",
            Self::SlowdownP99 => "p99 slowdown",
        }
    }

    fn of(self, summary: &Summary) -> Option<f64> {
        match self {
            Self::All => summary.turnaround_ms.map(|stats| stats.mean),
            Self::Short => summary.short.turnaround_ms.map(|stats| stats.mean),
            Self::Long => summary.long.turnaround_ms.map(|stats| stats.mean),
            Self::Slowdown => summary.slowdown.map(|stats| stats.mean),
            Self::SlowdownP99 => summary.slowdown.map(|stats| stats.p99),
        }
    }
}

/// The runs of a row, by seed.
type Runs = BTreeMap<u64, Summary>;

/// The results of a case, by row.
struct Results<'a> {
    case: &'a Case,
    rows: Vec<(&'static str, Runs)>,
}

/// Writes the table of the results below `out` into the page.
pub(super) fn publish(tree: &Tree, out: &Path) -> Result<()> {
    let mut all = Vec::new();
    for (case, folder) in folders(out) {
        all.push(Results::read(case, &folder)?);
    }
    all.retain(|results| !results.rows.is_empty());
    if all.is_empty() {
        bail!("there are no results in {}", out.display());
    }
    let commit = commit::of(tree, &SOURCES);
    page::publish(tree, PAGE, MARK, &text(&all, &commit))
}

impl<'a> Results<'a> {
    fn read(case: &'a Case, folder: &Path) -> Result<Self> {
        let mut rows = Vec::new();
        for baseline in &BASELINES {
            let mut runs = Runs::new();
            for entry in std::fs::read_dir(folder).context("cannot read the results")? {
                let path = entry.context("cannot read the results")?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let Some(seed) = name
                    .strip_prefix("seed-")
                    .and_then(|seed| seed.parse().ok())
                else {
                    continue;
                };
                let file = path.join(format!("{}.json", baseline.row));
                if file.is_file() {
                    runs.insert(seed, json::read(&file)?);
                }
            }
            if !runs.is_empty() {
                rows.push((baseline.row, runs));
            }
        }
        Ok(Self { case, rows })
    }

    fn runs(&self, row: &str) -> Option<&Runs> {
        let found = self.rows.iter().find(|(name, _)| *name == row);
        found.map(|(_, runs)| runs)
    }

    /// The ratio of a figure of `row` to that of `base`, over the seeds that both have.
    fn ratio(&self, row: &str, base: &str, figure: Figure) -> Option<Estimate> {
        let (ours, theirs) = (self.runs(row)?, self.runs(base)?);
        let observed: Vec<Observation> = ours
            .iter()
            .filter_map(|(seed, run)| {
                let other = theirs.get(seed)?;
                if other.trace.sha256 != run.trace.sha256 || !is_whole(run) || !is_whole(other) {
                    return None;
                }
                Some(Observation {
                    seed: *seed,
                    ratio: figure.of(run)? / figure.of(other)?,
                })
            })
            .collect();
        Estimate::of(&observed)
    }
}

/// Whether the scheduler was there to the end, and all invocations succeeded.
fn is_whole(run: &Summary) -> bool {
    matches!(run.scheduler.status, Status::Ok | Status::BadExit) && run.failed == 0
}

fn text(all: &[Results], commit: &str) -> String {
    let mut text = format!("Written at commit {commit}.\n\n");
    for ours in OURS {
        text += &as_good(all, ours);
    }
    for results in all {
        text += &table(results);
    }
    text + &machines(all)
}

/// Two decimals, three below 0.1.
fn digits(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 0.1 => format!("{ratio:.3}"),
        ratio => format!("{ratio:.2}"),
    }
}

/// Each figure in which another row is as good as `ours`, or better.
fn as_good(all: &[Results], ours: &str) -> String {
    let mut text = format!("### Where a baseline is as good as `{ours}`, or better\n\n");
    let mut lines: Vec<(f64, String)> = Vec::new();
    for results in all {
        let others = results.rows.iter().map(|(row, _)| *row);
        for row in others.filter(|row| !OURS.contains(row)) {
            let figures = Figure::ALL.into_iter();
            lines.extend(figures.filter_map(|figure| {
                let found = results.ratio(row, ours, figure)?;
                let (about, figure, seeds) = (results.case.about, figure.name(), found.seeds);
                let line = format!(
                    "| {about} | `{row}` | {figure} | {seeds} | {} |\n",
                    found.shown(digits)
                );
                (found.ratio <= AS_GOOD).then_some((found.ratio, line))
            }));
        }
    }
    if lines.is_empty() {
        return text + "In none of these figures.\n\n";
    }
    lines.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    text += &format!(
        "Ratios to `{ours}` up to {AS_GOOD}, the best first; smaller is better for the \
         baseline.\n\n| workload | row | figure | seeds | ratio |\n|---|---|---|---:|---|\n"
    );
    text.extend(lines.into_iter().map(|(_, line)| line));
    text + "\n"
}

/// The table of a case: ratios to the base.
fn table(results: &Results) -> String {
    let mut text = format!("### {}\n\n", results.case.about);
    let first = results
        .rows
        .iter()
        .flat_map(|(_, runs)| runs.values())
        .next();
    if let Some(run) = first {
        text += &format!(
            "{} invocations, {} CPUs, {}. Ratios to `{BASE}`, paired by seed.\n\n",
            run.trace.invocations, run.trace.cpus, run.accel
        );
    }
    let names: Vec<&str> = Figure::ALL.iter().map(|figure| figure.name()).collect();
    let is_fixed = |(_, runs): &(_, Runs)| runs.values().any(|run| run.fixed_work.is_some());
    let is_fixed = results.rows.iter().any(is_fixed);
    let (head, line) = match is_fixed {
        true => (" CPU / CPU alone |", "---:|"),
        false => ("", ""),
    };
    text += &format!(
        "| row | seeds | {} | preempted |{head} daemon, % of the CPUs | remarks |\n|---|---:|{}---:|{line}---:|---|\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for (row, runs) in &results.rows {
        let cells: Vec<String> = Figure::ALL
            .iter()
            .map(|figure| {
                results
                    .ratio(row, BASE, *figure)
                    .map_or("-".into(), |ratio| ratio.shown(digits))
            })
            .collect();
        let seeds = runs.len();
        let preempted = mean(runs, |run| {
            run.switches.map(|switches| switches.involuntary)
        });
        let daemon = mean(runs, daemon_percent);
        text += &format!(
            "| `{row}` | {seeds} | {} | {} |{} {} | {} |\n",
            cells.join(" | "),
            preempted.map_or("-".into(), |mean| format!("{mean:.1}")),
            if is_fixed {
                over_alone(runs)
            } else {
                String::new()
            },
            daemon.map_or("".into(), |mean| format!("{mean:.2}")),
            remarks(runs)
        );
    }
    text + "\n"
}

/// The mean over the seeds that have the figure.
fn mean(runs: &Runs, figure: impl Fn(&Summary) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = runs.values().filter_map(figure).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// CPU time of fixed work over what it takes alone, as a cell.
fn over_alone(runs: &Runs) -> String {
    let ratio = |run: &Summary| Some(run.fixed_work.as_ref()?.all.cpu_over_alone);
    mean(runs, ratio).map_or(" - |".into(), |mean| format!(" {mean:.3} |"))
}

/// The daemon's share of the time of all CPUs, in per cent.
fn daemon_percent(run: &Summary) -> Option<f64> {
    let daemon = run.daemon.as_ref()?;
    Some(100.0 * daemon.cpu_ms / (run.makespan_ms? * f64::from(run.trace.cpus)))
}

/// What speaks against the runs of a row.
fn remarks(runs: &Runs) -> String {
    let count = |what: &dyn Fn(&Summary) -> bool| runs.values().filter(|run| what(run)).count();
    let bad = count(&|run| run.scheduler.status != Status::Ok);
    let failed: usize = runs.values().map(|run| run.failed).sum();
    let late = count(&|run| run.is_late());
    let remarks = [
        (bad, "not there to the end, runs:"),
        (failed, "failed invocations:"),
        (late, "arrivals late, runs:"),
    ];
    let remarks = remarks.iter().filter(|(count, _)| *count > 0);
    let remarks: Vec<String> = remarks
        .map(|(count, what)| format!("{what} {count}"))
        .collect();
    remarks.join("; ")
}

/// Kernel, tick, preemption and slices of each row, as read back during the runs.
fn machines(all: &[Results]) -> String {
    let mut text = "### Kernel, tick, preemption, slices\n\nRead back from the kernel during the \
        runs.\n\n| row | kernel | HZ | preemption | base slice | slice of each task | CFS: latency, \
        minimum, wake-up |\n|---|---|---:|---|---:|---:|---|\n"
        .to_string();
    let runs = BASELINES.iter().filter_map(|one| {
        let runs = all.iter().find_map(|results| results.runs(one.row))?;
        Some((one.row, runs.values().next()?))
    });
    for (row, run) in runs {
        let settings = run.kernel_settings.clone().unwrap_or_default();
        let args = match run.scheduler.args.as_str() {
            "" => String::new(),
            args => format!(" `{args}`"),
        };
        text += &format!(
            "| `{row}`{args} | {} | {} | {} | {} | {} | {} |\n",
            run.kernel,
            settings.hz.map_or("-".into(), |hz| hz.to_string()),
            settings.preemption.as_deref().unwrap_or("-"),
            ms(settings.base_slice_ns),
            ms(settings.task_slice_ns),
            cfs(&settings)
        );
    }
    text
}

fn ms(ns: Option<u64>) -> String {
    ns.map_or("-".into(), |ns| format!("{} ms", ns as f64 / 1e6))
}

fn cfs(settings: &KernelSettings) -> String {
    match settings.latency_ns {
        Some(_) => [
            settings.latency_ns,
            settings.min_granularity_ns,
            settings.wakeup_granularity_ns,
        ]
        .map(ms)
        .join(", "),
        None => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CASES;
    use super::*;
    use faas_data::result::{Exit, Record};
    use faas_data::summary::fixed::{FixedWork, Taken};
    use faas_data::summary::machine::Daemon;
    use faas_data::summary::{summarise, SchedulerInfo, Setting};
    use faas_data::trace::{Invocation, Trace};

    /// A run in which each of two invocations of 10 ms takes `ms`.
    fn run(row: &str, ms: u64) -> Summary {
        let trace = Trace {
            name: "t".into(),
            sha256: "0".into(),
            invocations: vec![Invocation::cpu(0, "f", 10_000); 2],
        };
        let record = |id| Record {
            id,
            function: "f".into(),
            arrival_us: 0,
            start_us: Some(0),
            end_us: Some(ms * 1000),
            cpu_us: 10_000,
            service_us: 10_000,
            voluntary_switches: 0,
            involuntary_switches: 3,
            runqueue_wait_us: None,
            alone_us: None,
            exit: Exit::Code(0),
        };
        let setting = Setting {
            cpus: 4,
            scheduler: SchedulerInfo {
                name: row.into(),
                version: "1".into(),
                args: String::new(),
                status: Status::Ok,
                detail: String::new(),
            },
            kernel: "6.18".into(),
            accel: "icount".into(),
            sandbox: None,
        };
        summarise(&trace, &[record(0), record(1)], &setting, &[])
    }

    fn results() -> Results<'static> {
        let runs =
            |row, ms: &[u64]| -> Runs { (1..).zip(ms.iter().map(|ms| run(row, *ms))).collect() };
        let mut steered = runs("renice", &[30, 40]);
        for run in steered.values_mut() {
            run.daemon = Some(Daemon {
                cpu_ms: 1.2,
                ..Daemon::default()
            });
        }
        Results {
            case: &CASES[0],
            rows: vec![
                (BASE, runs(BASE, &[80, 80])),
                (OURS[0], runs(OURS[0], &[40, 20])),
                ("renice", steered),
            ],
        }
    }

    #[test]
    fn a_rival_that_is_as_good_stands_at_the_top() {
        let text = text(&[results()], "abc");
        assert!(text.starts_with("Written at commit abc.\n\n### Where a baseline is as good"));
        // 30/40 and 40/20: the geometric mean is beyond the bound.
        assert!(text.contains("In none of these figures."), "{text}");
        let mut better = results();
        better.rows[2].1.remove(&2);
        let said = as_good(&[better], OURS[0]);
        assert!(
            said.contains("| `renice` | mean turnaround | 1 | 0.75 |"),
            "{said}"
        );
    }

    #[test]
    fn fixed_work_has_a_column() {
        let mut results = results();
        let taken = Taken {
            invocations: 2,
            cpu_ms: 24.0,
            alone_ms: 20.0,
            cpu_over_alone: 1.2,
        };
        let base = results.rows[0].1.get_mut(&1).unwrap();
        base.fixed_work = Some(FixedWork {
            all: taken,
            kinds: BTreeMap::new(),
            calibration: None,
        });
        let table = table(&results);
        assert!(
            table.contains("| preempted | CPU / CPU alone | daemon"),
            "{table}"
        );
        let line = |start: &str| table.lines().find(|line| line.starts_with(start)).unwrap();
        assert!(line("| `eevdf`").contains("| 3.0 | 1.200 | "), "{table}");
        assert!(line("| `scx_sfs`").contains("| 3.0 | - | "), "{table}");
        let columns = |line: &str| line.matches('|').count();
        let head = table
            .lines()
            .find(|line| line.starts_with("| row"))
            .unwrap();
        assert_eq!(columns(line("|---")), columns(head));
        assert_eq!(columns(line("| `eevdf`")), columns(head));
    }

    #[test]
    fn ratios_are_to_the_base_by_seed() {
        let table = table(&results());
        let ours = table.lines().find(|line| line.starts_with("| `scx_sfs`"));
        // 40/80 and 20/80.
        assert!(
            ours.unwrap().starts_with("| `scx_sfs` | 2 | 0.35 ("),
            "{table}"
        );
        let renice = table.lines().find(|line| line.starts_with("| `renice`"));
        // 1.2 ms of 4 CPUs for 30 and 40 ms.
        assert!(renice.unwrap().ends_with("| 3.0 | 0.88 |  |"), "{table}");
    }

    #[test]
    fn a_run_that_is_not_whole_does_not_count() {
        let mut results = results();
        results.rows[1].1.get_mut(&1).unwrap().scheduler.status = Status::Ejected;
        let found = results.ratio(OURS[0], BASE, Figure::All).unwrap();
        assert_eq!((found.seeds, found.ratio), (1, 0.25));
        assert_eq!(remarks(&results.rows[1].1), "not there to the end, runs: 1");
    }
}
