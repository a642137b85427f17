//! Behaviour of scx_sfs in a live kernel: one small case for one behaviour, run
//! one after another, reported as TAP. It loads schedulers and keeps all CPUs
//! busy: run it in a virtual machine (tests/run).

mod breed;
mod case;
mod cases;
mod cgroup;
mod clock;
mod kinds;
mod matches;
mod perturbation;
mod process;
mod report;
mod runner;
mod scheduler;
mod search;
mod section;
mod server;
mod surroundings;
mod tenant;
mod trace;
mod waste;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};
use nix::sys::prctl::set_child_subreaper;
use nix::unistd::geteuid;

use case::{Case, APART};
use runner::Verdict;
use search::Search;
use sfs_text::LINE_CHARS;

const USAGE: &str =
    "usage: sfs_behaviour [--list] [--apart KIND] [--part I/N] [--scx-sfs PATH] [CASE...]
  --list          prints the cases and exits
  --apart KIND    runs those cases only that need a machine of their own; without this
                  option they are not run. disk: with a disk, /dev/nvme0n1, that loses
                  what is on it; suspend: that may be suspended, in real time; isolcpus: with
                  CPUs that the kernel's command line isolates
  --part I/N      runs every Nth of the cases only, from the Ith on (1 to N)
  --scx-sfs PATH  the loader to test (default: scx_sfs in PATH)
  CASE            runs these cases only; a trailing * stands for anything
or: sfs_behaviour --search GENERATIONS [--seed N] [--harm] [--options WORDS]
    sfs_behaviour --replay PLAN [--harm] [--options WORDS]
  --search G      plays an attacker against an honest tenant, breeds G generations of plans,
                  and prints the best of them; 0: plays the first plans alone
  --replay PLAN   plays this one, as --search has printed it
  --seed N        for other plans (default 1)
  --harm          what counts is what the neighbour loses, not what the attacker gains
  --options WORDS options of scx_sfs, or eevdf (default: --cgroup fn/*)
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == tenant::PLAY) {
        // What goes on here is part of a match; it has nobody to complain to.
        let _ = tenant::play_words(&words[1..]);
        return ExitCode::FAILURE;
    }
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("Bail out! {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs what the command line asks for; returns whether all is well.
fn run() -> Result<bool> {
    let options = Options::parse(std::env::args().skip(1))?;
    if options.help {
        print!("{USAGE}");
        return Ok(true);
    }
    if let Some(search) = &options.search {
        prepare()?;
        let cpus = std::thread::available_parallelism()?.get();
        return search.run(&options.program()?, cpus);
    }
    let cases = options.cases()?;
    if options.list {
        for case in cases
            .iter()
            .filter(|case| options.apart.is_none() || case.apart() == options.apart())
        {
            println!("{:36} {}", case.name, case.about);
        }
        return Ok(true);
    }
    prepare()?;
    run_all(&cases, &options, &options.program()?)
}

/// Checks that the machine is fit for the suite.
fn prepare() -> Result<()> {
    ensure!(geteuid().is_root(), "only root can load a scheduler");
    ensure!(
        scheduler::state() == "disabled",
        "sched_ext is not free: its state is \"{}\"",
        scheduler::state()
    );
    set_child_subreaper(true).context("cannot adopt orphans")
}

/// Runs those of `cases` that the options ask for. Their numbers are those in the whole,
/// and the first part announces it, so that the parts together are one TAP stream.
fn run_all(cases: &[&Case], options: &Options, program: &Path) -> Result<bool> {
    let cpus = std::thread::available_parallelism()?.get();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let numbered: Vec<(usize, &&Case)> = (1..)
        .zip(cases)
        .filter(|(_, case)| case.apart() == options.apart())
        .collect();
    let mut watch = waste::watch()?;
    let part = options.part;
    if part.first == 1 && (options.apart.is_none() || numbered.len() == cases.len()) {
        println!("TAP version 14\n1..{}", cases.len());
    }
    for (number, case) in numbered.into_iter().skip(part.first - 1).step_by(part.of) {
        let start = clock::now();
        watch.start()?;
        let (verdict, notes) = runner::run(case, program, cpus)?;
        let waste = waste::notes(&watch.stop()?, &scheduler::take_spans(), cpus);
        let took = clock::now() - start;
        let Case { name, about, .. } = case;
        match verdict {
            Verdict::Passed => {
                passed += 1;
                println!("ok {number} - {name} # {about}");
            }
            Verdict::Failed => {
                failed += 1;
                println!("not ok {number} - {name} # {about}");
            }
            Verdict::Skipped => {
                skipped += 1;
                let why = notes.last().map_or("", String::as_str);
                println!("ok {number} - {name} # SKIP {why}");
            }
        }
        for note in notes.into_iter().chain(waste) {
            println!("#   {}", sfs_text::line(note, LINE_CHARS));
        }
        println!("#   {:.1} s", took.as_secs_f64());
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(failed == 0)
}

/// Every `of`th case from number `first` on.
#[derive(Clone, Copy)]
struct Part {
    first: usize,
    of: usize,
}

impl Default for Part {
    fn default() -> Self {
        Self { first: 1, of: 1 }
    }
}

impl Part {
    fn parse(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').and_then(|(first, of)| {
            let (first, of) = (first.parse().ok()?, of.parse().ok()?);
            (1..=of).contains(&first).then_some(Self { first, of })
        });
        numbers.with_context(|| format!("--part needs I/N with I from 1 to N, not '{text}'"))
    }
}

#[derive(Default)]
struct Options {
    help: bool,
    list: bool,
    apart: Option<String>,
    part: Part,
    scx_sfs: Option<PathBuf>,
    search: Option<Search>,
    patterns: Vec<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--help" | "-h" => options.help = true,
                "--list" => options.list = true,
                "--apart" => {
                    let kind = arguments
                        .next()
                        .filter(|kind| APART.contains(&kind.as_str()));
                    options.apart = Some(kind.context("--apart needs disk, suspend or isolcpus")?);
                }
                "--part" => {
                    let part = arguments.next().context("--part needs I/N")?;
                    options.part = Part::parse(&part)?;
                }
                "--scx-sfs" => {
                    let path = arguments.next().context("--scx-sfs needs a path")?;
                    options.scx_sfs = Some(path.into());
                }
                "--search" | "--replay" | "--seed" | "--options" => {
                    let value = arguments
                        .next()
                        .with_context(|| format!("{argument} needs a value"))?;
                    let search = options.search.get_or_insert_with(Search::default);
                    search.set(&argument, value)?;
                }
                "--harm" => {
                    let search = options.search.get_or_insert_with(Search::default);
                    search.harms = true;
                }
                option if option.starts_with('-') => bail!("unknown option {option}\n{USAGE}"),
                _ => options.patterns.push(argument),
            }
        }
        Ok(options)
    }

    fn apart(&self) -> Option<&str> {
        self.apart.as_deref()
    }

    /// Returns the cases asked for, in the suite's order.
    fn cases(&self) -> Result<Vec<&'static Case>> {
        let all = || cases::all();
        for pattern in &self.patterns {
            ensure!(
                all().any(|case| matches(pattern, case.name)),
                "there is no case \"{pattern}\"; --list shows them"
            );
        }
        let wanted = |case: &&Case| {
            self.patterns.is_empty() || self.patterns.iter().any(|one| matches(one, case.name))
        };
        Ok(all().filter(wanted).collect())
    }

    /// Returns the loader to test.
    fn program(&self) -> Result<PathBuf> {
        if let Some(path) = &self.scx_sfs {
            return Ok(path.clone());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|directory| directory.join("scx_sfs"))
            .find(|path| path.exists())
            .context("there is no scx_sfs in PATH; --scx-sfs tells where it is")
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}
