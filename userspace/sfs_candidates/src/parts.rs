//! The policies that each table compares.

use super::traces::azure_minute;
use super::Tables;
use anyhow::Result;
use sfs_sim::policy::Kind::{self, Gittins, Known, Learned, Mean, Mlfq, Sfs, Srtf};
use std::path::PathBuf;

/// The candidates, and the best that there can be.
const CANDIDATES: [Kind; 7] = [Sfs, Mlfq, Mean, Gittins, Learned, Known, Srtf];

/// The CPUs of most workloads.
const CPUS: u32 = 4;

/// Options of small traces of 20 functions, whose times have sigma 0.5.
const SMALL: &str = "--invocations 2000 --cpus 4 --functions 20 --within-cv 0.533";

/// Workloads whose traces are on [`CPUS`] CPUs.
const WORKLOADS: [(&str, &str); 9] = [
    ("Table I, 20 functions, sigma 0", "table1x20-0"),
    ("Table I, 20 functions, sigma 0.5", "table1x20"),
    ("Table I, 20 functions, sigma 1", "table1x20-1"),
    ("log-normal, 200 functions", "lognormalx200"),
    ("the same, bursty", "burstyx200"),
    ("bimodal without gap, one function", "bimodal"),
    ("exponential, one function", "exponential1"),
    ("exponential, 50 functions", "exponentialx50"),
    ("functions that change half-way", "changing"),
];

/// Options of `learned`, each of which changes one rule.
const RULES: [&str; 22] = [
    "--aim turnaround",
    "--aim slowdown",
    "--ageing 0",
    "--ageing 1",
    "--ageing 2",
    "--ageing 8",
    "--margin 4",
    "--level 2",
    "--level 4",
    "--tick-us 0",
    "--tick-us 10000",
    "--refresh 1",
    "--refresh 100",
    "--refresh 1000",
    "--prior 0",
    "--prior 4",
    "--window 16",
    "--window 512",
    "--tables 16",
    "--tables 64",
    "--tolerance 0",
    "--tolerance 4",
];

impl Tables<'_> {
    /// `learned`, which has learned from another trace before.
    fn learned_before(&self, label: &str, traces: &[PathBuf], before: &str) -> Result<()> {
        let before = self.traces.files(before);
        let before = before.first().map(|file| file.display().to_string());
        let options = before.iter().flat_map(|file| ["--learn-from", file]);
        self.compare(
            label,
            CPUS,
            &[Learned],
            traces,
            &options.collect::<Vec<_>>(),
        )
    }
}

/// Every workload at load 1.0.
pub fn workloads(tables: &Tables) -> Result<()> {
    let traces = tables.traces;
    let all = |label, cpus, files: &[PathBuf]| tables.compare(label, cpus, &CANDIDATES, files, &[]);
    tables.head("Workloads at load 1.0");
    all(
        "Table I, a function a class, 12 CPUs",
        12,
        &traces.files("table1"),
    )?;
    for (label, name) in WORKLOADS {
        all(label, CPUS, &traces.files(name))?;
    }
    // Each seed has functions of its own under the same names.
    let label = "Table I, 20 functions, wrong history";
    tables.learned_before(label, &traces.files("table1x20"), "swapped")?;
    if let Some(list) = traces.sfs_list()? {
        let list = [list];
        all("SFS's list, 12 CPUs (load 1.16)", 12, &list)?;
        all("SFS's list, 16 CPUs (load 0.87)", 16, &list)?;
    }
    if traces.has_azure() {
        traces.make_azure()?;
        all(
            "Azure 2019, learning as it goes",
            CPUS,
            &traces.files("azure"),
        )?;
        let label = "Azure 2019, learned before";
        tables.learned_before(label, &traces.files("azure"), "azure-before")?;
    }
    Ok(())
}

/// Two workloads at other loads.
pub fn loads(tables: &Tables) -> Result<()> {
    let traces = tables.traces;
    tables.head("Loads");
    for load in ["0.5", "0.7", "0.9", "1.1"] {
        for (label, name, options) in [
            (
                "Table I, 20 functions",
                "table1x20",
                "table1-artefact --invocations 10000 --cpus 4 --functions 20 --within-cv 0.533",
            ),
            (
                "log-normal, 200 functions",
                "lognormalx200",
                "lognormal --invocations 10000 --cpus 4 --scale 0.0183 --functions 200 --popularity zipf:1.1",
            ),
        ] {
            let name = format!("{name}-at-{load}");
            for seed in &traces.seeds {
                traces.generate(&name, *seed, &format!("{options} --load {load}"))?;
            }
            let label = format!("{label}, load {load}");
            tables.compare(&label, CPUS, &[Sfs, Learned, Srtf], &traces.files(&name), &[])?;
        }
    }
    Ok(())
}

/// The traces that `make bench` is judged by, seed by seed.
pub fn goals(tables: &Tables) -> Result<()> {
    let traces = tables.traces;
    tables.head("Small traces, seed by seed");
    for (label, name, options) in [
        ("Table I", "goal-table1", "table1-artefact --scale 0.5"),
        ("log-normal", "goal-lognormal", "lognormal --scale 0.0183"),
    ] {
        for seed in &traces.seeds {
            traces.generate(name, *seed, &format!("{options} {SMALL}"))?;
            let label = format!("{label}, 20 functions, N=2000, seed {seed}");
            tables.compare(
                &label,
                CPUS,
                &[Learned, Known],
                &[traces.file(name, *seed)],
                &[],
            )?;
        }
    }
    if traces.has_azure() {
        traces.make_azure()?;
        for seed in &traces.seeds {
            let minute = azure_minute(*seed);
            traces.azure("goal-azure", *seed, (minute, minute))?;
            let file = [traces.file("goal-azure", *seed)];
            let label = format!("Azure 2019, minute {minute}");
            let first = format!("{label}, as it goes");
            tables.compare(&first, CPUS, &[Learned, Srtf], &file, &[])?;
            tables.learned_before(&format!("{label}, learned before"), &file, "azure-before")?;
        }
    }
    Ok(())
}

/// The effect of each rule, over all workloads on [`CPUS`] CPUs.
pub fn rules(tables: &Tables) -> Result<()> {
    let traces = tables.traces;
    tables.head("Rules, over all workloads on 4 CPUs");
    let mut files: Vec<PathBuf> = WORKLOADS
        .iter()
        .flat_map(|(_, name)| traces.files(name))
        .collect();
    if traces.has_azure() {
        traces.make_azure()?;
        files.extend(traces.files("azure"));
    }
    tables.compare("all together", CPUS, &CANDIDATES, &files, &[])?;
    for option in RULES {
        let words: Vec<&str> = option.split(' ').collect();
        tables.compare(&format!("`{option}`"), CPUS, &[Learned], &files, &words)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use sfs_sim::cli::Cli;

    #[test]
    fn rules_are_options_of_the_simulation() {
        let parse = |option: &str| {
            let words = [
                "sfs_sim", "compare", "--cpus", "4", "--policy", "learned", "t.csv",
            ];
            Cli::try_parse_from(words.into_iter().chain(option.split(' ')))
        };
        for option in RULES {
            assert!(parse(option).is_ok(), "{option}");
        }
        assert!(parse("--no-such-rule 1").is_err());
    }
}
