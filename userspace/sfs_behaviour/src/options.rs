//! The options of the program.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{ensure, Context, Error, Result};
use clap::Parser;
use sfs_tenants::search::Search;
use sfs_testbed::case::{Case, APART};

use crate::cases;

/// Runs behaviour cases against scx_sfs as root and prints TAP, or searches for a tenant that
/// gets more than its due. It takes the machine over: use a virtual machine.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
pub struct Options {
    /// Prints the cases and exits.
    #[arg(long)]
    pub list: bool,
    /// Runs only the cases that need this kind of machine; without this option they are not
    /// run. disk: with a disk, /dev/nvme0n1, which is overwritten; suspend: in real time, and
    /// it can be suspended; isolcpus: with CPUs that the kernel's command line isolates.
    #[arg(long, value_name = "KIND", value_parser = APART)]
    apart: Option<String>,
    /// Runs every Nth case only, beginning with the Ith (1 to N).
    #[arg(
        long,
        value_name = "I/N",
        default_value = "1/1",
        hide_default_value = true
    )]
    pub part: Part,
    /// The loader to test (default: scx_sfs in PATH).
    #[arg(long, value_name = "PATH")]
    scx_sfs: Option<PathBuf>,
    /// Plays an attacker against an honest tenant, breeds G generations of plans, and prints
    /// the best ones; 0: plays the first plans only.
    #[arg(long, value_name = "G", conflicts_with = "cases")]
    search: Option<u32>,
    /// Plays this plan, as printed by --search.
    #[arg(long, value_name = "PLAN", conflicts_with = "cases")]
    replay: Option<String>,
    /// Seed of the search (default 1).
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Judges plans by the neighbour's loss instead of the attacker's gain.
    #[arg(long)]
    harm: bool,
    /// Options of scx_sfs in a search, or eevdf (default: --cgroup fn/*).
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    options: Option<String>,
    /// Runs only these cases; a trailing * stands for anything.
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
}

impl Options {
    /// Returns the kind of machine that the cases to run need; `None`: no special one.
    pub fn apart(&self) -> Option<&str> {
        self.apart.as_deref()
    }

    /// Returns the search or the match to play, if the options ask for one.
    pub fn search(&self) -> Option<Search> {
        let asked = self.search.is_some()
            || self.replay.is_some()
            || self.seed.is_some()
            || self.options.is_some()
            || self.harm;
        let usual = Search::default();
        asked.then(|| Search {
            generations: self.search.unwrap_or(usual.generations),
            seed: self.seed.map_or(usual.seed, u64::from),
            options: self.options.clone().unwrap_or(usual.options),
            harms: self.harm,
            replay: self.replay.clone(),
        })
    }

    /// Returns the cases asked for, in the suite's order.
    ///
    /// # Errors
    ///
    /// A pattern matches no case.
    pub fn cases(&self) -> Result<Vec<&'static Case>> {
        for pattern in &self.cases {
            ensure!(
                cases::all().any(|case| matches(pattern, case.name)),
                "there is no case \"{pattern}\"; --list shows them"
            );
        }
        let wanted = |case: &&Case| {
            self.cases.is_empty() || self.cases.iter().any(|one| matches(one, case.name))
        };
        Ok(cases::all().filter(wanted).collect())
    }

    /// Returns the loader to test.
    ///
    /// # Errors
    ///
    /// No path is given, and `PATH` has no `scx_sfs`.
    pub fn program(&self) -> Result<PathBuf> {
        if let Some(path) = &self.scx_sfs {
            return Ok(path.clone());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|directory| directory.join("scx_sfs"))
            .find(|path| path.exists())
            .context("there is no scx_sfs in PATH; use --scx-sfs PATH")
    }
}

/// Every `of`th case from number `first` on; 1 <= `first` <= `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of the first case, from 1 on.
    pub first: usize,
    /// Number of parts.
    pub of: usize,
}

impl FromStr for Part {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').and_then(|(first, of)| {
            let (first, of) = (first.parse().ok()?, of.parse().ok()?);
            (1..=of).contains(&first).then_some(Self { first, of })
        });
        numbers.context("want I/N with I from 1 to N")
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(words: &[&str]) -> Result<Options, clap::Error> {
        Options::try_parse_from([&["sfs_behaviour"], words].concat())
    }

    #[test]
    fn the_options_contradict_nothing() {
        Options::command().debug_assert();
    }

    #[test]
    fn parts_are_from_1_to_n() {
        assert_eq!(parse(&[]).unwrap().part, Part { first: 1, of: 1 });
        let part = parse(&["--part", "2/3"]).unwrap().part;
        assert_eq!(part, Part { first: 2, of: 3 });
        for bad in ["0/3", "4/3", "1", "a/b", ""] {
            assert!(parse(&["--part", bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_of_the_scheduler_may_begin_with_hyphens() {
        let words = ["--search", "5", "--options", "--cgroup a/*", "--harm"];
        let search = parse(&words).unwrap().search().unwrap();
        assert_eq!((search.generations, search.seed), (5, 1));
        assert_eq!(search.options, "--cgroup a/*");
        assert!(search.harms && search.replay.is_none());
        assert!(parse(&["--part", "1/2"]).unwrap().search().is_none());
    }

    #[test]
    fn cases_are_chosen_by_name_and_beginning() {
        let one = cases::all().next().unwrap().name;
        let chosen = parse(&[one]).unwrap().cases().unwrap();
        assert_eq!(chosen.len(), 1);
        let some = parse(&["quota*"]).unwrap().cases().unwrap();
        assert!(some.len() > 1 && some.iter().all(|case| case.name.starts_with("quota")));
        assert!(parse(&["nonexistent"]).unwrap().cases().is_err());
    }

    #[test]
    fn kinds_of_machines_are_known() {
        assert_eq!(parse(&["--apart", "disk"]).unwrap().apart(), Some("disk"));
        assert!(parse(&["--apart", "moon"]).is_err());
    }
}
