//! Several comparisons with the same rows: one for each load and seed.
//!
//! Each has a folder of its own in OUT, which resumes by itself. `OUT/series.json` names
//! them for `faasbench seeds`, which computes the ratios.

use super::settings::{Settings, Source};
use super::{conclude, measure, report, succeed, Outcome, Table};
use crate::lock;
use anyhow::{Context, Result};
use faas_seeds::list::{Repetition, Series as List};
use sfs_jobs::failure::refuse;
use sfs_jobs::job;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::fs::{self, File};
use std::path::PathBuf;
use std::str::FromStr;

/// Seeds of a series at most: more would be a mistake of typing.
const MOST: u64 = 1000;

/// A series of comparisons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// What all have in common. Its folder has a folder for each.
    pub settings: Settings,
    /// The seeds: of a generated workload, or of the moves of `jitter`.
    pub seeds: Seeds,
    /// The loads of a generated workload, instead of its own; none are no others.
    pub loads: Loads,
    /// By how much arrivals are moved at most, as `50us`.
    pub jitter: Option<String>,
    /// The share in per cent that the table leaves out at each end, 1 to 49.
    pub trim: Option<u8>,
}

/// Seeds, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

impl FromStr for Seeds {
    type Err = String;

    /// A number for the seeds 1 to that number, or the first and the last as `21-40`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("want a number of seeds, 1 to {MOST}, or the first and the last as 21-40");
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (1, number(text)?),
        };
        if last < first || last - first >= MOST {
            return Err(wrong());
        }
        Ok(Self((first..=last).collect()))
    }
}

impl Seeds {
    /// One seed.
    pub fn one(seed: u64) -> Self {
        Self(vec![seed])
    }
}

/// Offered loads, as they were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loads(Vec<String>);

impl FromStr for Loads {
    type Err = String;

    /// Numbers, separated by spaces; `faasbench gen` has their range.
    fn from_str(text: &str) -> Result<Self, String> {
        let loads: Vec<String> = text.split_whitespace().map(str::to_string).collect();
        // They become names of folders.
        let plain = |load: &String| load.parse::<f64>().is_ok() && !load.contains(['+', '-']);
        if loads.is_empty() || !loads.iter().all(plain) {
            return Err("want loads, as \"0.5 0.8 1.0\"".to_string());
        }
        let mut different = loads.clone();
        different.sort();
        different.dedup();
        match different.len() == loads.len() {
            true => Ok(Self(loads)),
            false => Err("has a load twice".to_string()),
        }
    }
}

/// One comparison of a series.
struct Part {
    settings: Settings,
    repetition: Repetition,
}

impl Series {
    /// Its comparisons.
    fn parts(&self) -> Vec<Part> {
        let given = self.loads.0.iter().map(Some);
        let loads: Vec<Option<&String>> = match self.loads.0.is_empty() {
            true => vec![None],
            false => given.collect(),
        };
        let mut parts = Vec::new();
        for load in loads {
            parts.extend(self.seeds.0.iter().map(|seed| self.part(load, *seed)));
        }
        parts
    }

    fn part(&self, other_load: Option<&String>, seed: u64) -> Part {
        let mut settings = self.settings.clone();
        let mut load = None;
        if let Source::Generated(workload) = &mut settings.source {
            if let Some(other) = other_load {
                workload.load.clone_from(other);
            }
            if self.jitter.is_none() {
                workload.seed = seed.to_string();
            }
            load = Some(workload.load.clone());
        }
        if let Some(by) = &self.jitter {
            settings.source = Source::Moved {
                of: Box::new(settings.source),
                by: by.clone(),
                seed,
            };
        }
        let kind = if self.jitter.is_some() {
            "copy"
        } else {
            "seed"
        };
        let of_load = other_load.map(|load| PathBuf::from(format!("load-{load}")));
        let folder = of_load.unwrap_or_default().join(format!("{kind}-{seed}"));
        settings.out = self.settings.out.join(&folder);
        Part {
            settings,
            repetition: Repetition { seed, load, folder },
        }
    }
}

/// Measures what is missing of the series, and prints the table of all ratios.
///
/// # Errors
/// As of [`super::run`].
pub fn run(tree: &Tree, series: &Series, interrupt: &Interrupt) -> Result<Outcome> {
    let _lock = lock_folder(tree, series)?;
    let progress = Progress::new("bench");
    let parts = series.parts();
    write_list(tree, series, &parts)?;
    let mut troubles = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let name = part.repetition.folder.display();
        progress.say(&format!("{name} ({} of {})", index + 1, parts.len()));
        let (folder, found) = measure(tree, &part.settings, interrupt, &progress)?;
        let reported = report(tree, &part.settings, &folder, Table::Hidden);
        interrupt.check()?;
        reported?;
        troubles.extend(found.iter().map(|trouble| format!("{name}: {trouble}")));
    }
    let list = series.settings.out.join("series.json");
    let mut command = job::call(tree, tree.program("faasbench"));
    command.arg("seeds").arg(list);
    if let Some(percent) = series.trim {
        command.args(["--trim", &percent.to_string()]);
    }
    let reported = succeed("faasbench seeds", &mut command);
    interrupt.check()?;
    reported?;
    let out = series.settings.out.display();
    progress.say(&format!(
        "results are in {out}: seeds.md, seeds.csv, runs.csv, and a folder for each seed"
    ));
    let rows = parts.len() * series.settings.rows.len();
    Ok(conclude(rows, troubles, &progress))
}

/// The lock of the folder of the series, made if missing.
fn lock_folder(tree: &Tree, series: &Series) -> Result<File> {
    let out = series.settings.out.display();
    let state = tree.at(&series.settings.out).join(".bench");
    if let Err(error) = fs::create_dir_all(&state) {
        refuse!("cannot make the folder OUT={out}: {error}");
    }
    match lock::take(&state.join("lock"))? {
        Some(lock) => Ok(lock),
        None => refuse!("another bench is at work in {out}; wait for it, or set another OUT"),
    }
}

/// Writes the list before anything is measured: so an unfinished series has one, too.
fn write_list(tree: &Tree, series: &Series, parts: &[Part]) -> Result<()> {
    let rows = series.settings.rows.iter().map(|row| row.name.clone());
    let repetitions = parts.iter().map(|part| part.repetition.clone());
    let mut list = List::new(rows.collect(), repetitions.collect());
    list.jitter.clone_from(&series.jitter);
    let path = tree.at(&series.settings.out).join("series.json");
    let text = serde_json::to_string_pretty(&list)?;
    fs::write(&path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_the_first_and_the_last() {
        let seeds = |text: &str| text.parse::<Seeds>();
        assert_eq!(seeds("3"), Ok(Seeds(vec![1, 2, 3])));
        assert_eq!(seeds("21-22"), Ok(Seeds(vec![21, 22])));
        for bad in ["", "0", "x", "-3", "3-", "5-4", "1001", "1 2", "1.5"] {
            let said = seeds(bad).unwrap_err();
            assert!(said.starts_with("want a number of seeds"), "{bad}: {said}");
        }
    }

    #[test]
    fn loads_are_numbers_that_can_be_folders() {
        let loads = |text: &str| text.parse::<Loads>();
        let want = ["1.2", "0.5"].map(str::to_string).to_vec();
        assert_eq!(loads(" 1.2 0.5 "), Ok(Loads(want)));
        for bad in ["", " ", "x", "../1", "-1", "1e-3", "0.5 0.5"] {
            assert!(loads(bad).is_err(), "{bad}");
        }
    }
}
