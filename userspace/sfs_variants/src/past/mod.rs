//! A kernel half of the past in the model of today: which of the defects that were found by reading
//! do random seeds show? `make past`.

pub mod items;

use crate::model::Model;
use crate::report;
use crate::runs::{self, Done, Ending, Run, Setting, LONG_MS};
use anyhow::{bail, ensure, Context, Result};
use items::{Other, Shows, ITEMS};
use sfs_jobs::tree::Tree;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A kernel half of the past for which there is a header.
#[derive(Debug, Clone, Copy)]
pub struct Half {
    /// Its commit.
    pub commit: &'static str,
    /// The folder with its `half.h`, from the root of the repository.
    headers: &'static str,
    /// What makes it count weights in thousandths of its units: file, old text, new text.
    fine_weights: [(&'static str, &'static str, &'static str); 3],
}

/// All of them.
const HALVES: [Half; 1] = [Half {
    commit: "989571b",
    headers: "userspace/sfs_variants/c",
    fine_weights: [
        ("group.bpf.h", "?: 1) * 1024 / 100", "?: 1) * 1024000 / 100"),
        (
            "fair.bpf.h",
            "fair_weight ?: 1024;",
            "fair_weight ?: 1024000;",
        ),
        (
            "fair.bpf.h",
            "delta * 1024 / weight",
            "delta * 1024000 / weight",
        ),
    ],
}];
/// The kernel half, from the root of the repository, as then.
const FOLDER: &str = "scheds/sfs_bpf";
/// Each such seed also runs for [`LONG_MS`].
const LONG_OF: u64 = 50;
/// Machines without what the model has learned since the halves of the past were searched: the
/// seeds of the table in docs/model.md show what they showed then.
const PLAIN: &str = "without=shards.nomemory.hints";
/// The same with one clock.
const ONE_CLOCK: &str = "without=shards.nomemory.hints.drift";
/// CPU time of a run, s.
const RUN_S: u64 = 300;
/// Kinds of findings that no item explains: so many are listed.
const LISTED: usize = 30;

impl Half {
    /// The kernel half of a commit.
    ///
    /// # Errors
    /// If there is no header for it.
    pub fn of(commit: &str) -> Result<Self> {
        let is_it =
            |half: &&Self| half.commit.starts_with(commit) || commit.starts_with(half.commit);
        let found = HALVES.iter().find(|half| commit.len() >= 7 && is_it(half));
        let known = HALVES.map(|half| half.commit).join(", ");
        found.copied().with_context(|| {
            format!("there is no header for the kernel half of {commit}, only for that of {known}")
        })
    }

    /// Takes its sources out of git, into a new folder.
    ///
    /// # Errors
    /// If the clone lacks the commit.
    pub fn take_out(&self, tree: &Tree) -> Result<TempDir> {
        let names = git(tree, &["ls-tree", "-r", "--name-only", self.commit, FOLDER]);
        let names = names.with_context(|| {
            format!(
                "this clone has no commit {}; if it is shallow, `git fetch --unshallow` gets it",
                self.commit
            )
        })?;
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        for path in names.lines() {
            let name = Path::new(path)
                .file_name()
                .context("a file without a name")?;
            let text = git(tree, &["show", &format!("{}:{path}", self.commit)])?;
            fs::write(folder.path().join(name), text).context("cannot write a source file")?;
        }
        Ok(folder)
    }

    /// Compiles it in `model`, into a new folder; with finer weights, or as it was.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn compile(&self, tree: &Tree, model: &mut Model, is_fine: bool) -> Result<TempDir> {
        let sources = self.take_out(tree)?;
        for (name, old, new) in self.fine_weights.iter().filter(|_| is_fine) {
            let path = sources.path().join(name);
            let text = fs::read_to_string(&path).context("cannot read a source file")?;
            ensure!(text.contains(old), "{name} has no {old}");
            fs::write(&path, text.replace(old, new)).context("cannot write a source file")?;
        }
        model.headers = vec![tree.at(self.headers)];
        let library = model.scratch()?;
        if let Some(said) = model.compile(sources.path(), &[], library.path())? {
            bail!(
                "the kernel half of {} does not compile:\n{said}",
                self.commit
            );
        }
        Ok(library)
    }
}

fn git(tree: &Tree, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    let output = command.current_dir(tree.root()).args(arguments).output();
    let output = output.context("cannot run git")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git: {}", said.trim());
    String::from_utf8(output.stdout).context("git does not print text")
}

/// When an item was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct First {
    run: Run,
    /// Events of all runs up to it.
    events: u64,
}

/// What seeds have shown.
#[derive(Debug, Default)]
pub struct Seen {
    seeds: u64,
    events: u64,
    /// By item: the first run that shows it, and the number of seeds that do.
    items: BTreeMap<usize, (First, u64)>,
    /// Findings that no item explains, by kind: an example, its seed, and the number of seeds.
    others: BTreeMap<String, (String, u64, u64)>,
}

/// Runs seeds 1 to `seeds` with the library in the folder `library`, some of them also for longer.
/// `fine` is the folder of the one with finer weights.
///
/// # Errors
/// If the program cannot be run.
pub fn search(model: &Model, library: &Path, fine: &Path, seeds: u64) -> Result<Seen> {
    let setting = |arguments: &[&'static str]| Setting {
        cpu_s: Some(RUN_S),
        arguments: [&["--findings", "1000"], arguments].concat(),
        ..Setting::default()
    };
    let with = |library, run, arguments: &[&'static str]| {
        runs::run(&model.program, library, run, &setting(arguments))
    };
    let other = |run, other| match other {
        Other::AlikeClocks => with(library, run, &["--only", ONE_CLOCK]),
        Other::FineWeights => with(fine, run, &["--only", PLAIN]),
    };
    let mut seen = Seen::default();
    for seed in 1..=seeds {
        let long = (seed % LONG_OF == 1).then_some(Run::new(seed, LONG_MS));
        let runs = [Some(Run::new(seed, 500)), long];
        let mut of_seed = Vec::new();
        for run in runs.into_iter().flatten() {
            let done = with(library, run, &["--only", PLAIN])?;
            seen.events += done.events;
            let found = items::shown(&done, |kind| other(run, kind))?;
            let first = First {
                run,
                events: seen.events,
            };
            of_seed.extend(found.into_iter().map(|item| (item, first)));
            seen.note_others(seed, &done);
        }
        seen.note(&of_seed);
        seen.seeds += 1;
        report::progress(&format!("seed {seed}, {} items seen", seen.items.len()));
    }
    Ok(seen)
}

impl Seen {
    /// Counts the items of a seed, each once.
    fn note(&mut self, of_seed: &[(usize, First)]) {
        for (at, &(item, first)) in of_seed.iter().enumerate() {
            if of_seed[..at].iter().all(|&(other, _)| other != item) {
                self.items.entry(item).or_insert((first, 0)).1 += 1;
            }
        }
    }

    fn note_others(&mut self, seed: u64, done: &Done) {
        let mut texts: Vec<String> = Vec::new();
        match &done.ending {
            Ending::Crash(why) => texts.push(format!("a crash: {why}")),
            Ending::TimeOut => texts.push("a run without an end".to_owned()),
            Ending::Clean | Ending::Finding(_) => {}
        }
        let others = done
            .findings
            .iter()
            .filter(|(_, f)| !items::is_explained(f));
        texts.extend(others.map(|(_, text)| text.clone()));
        let mut kinds: BTreeMap<String, String> = BTreeMap::new();
        for text in texts {
            kinds.entry(kind(&text)).or_insert(text);
        }
        for (kind, text) in kinds {
            self.others.entry(kind).or_insert((text, seed, 0)).2 += 1;
        }
    }

    /// The numbers of the items that were seen, in [`ITEMS`].
    #[must_use]
    pub fn items(&self) -> Vec<usize> {
        self.items.keys().copied().collect()
    }

    /// The table: a row for each item.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| defect | how a run shows it | first seed | events up to it | seeds with it |\n\
             |---|---|---|---|---|\n",
        );
        for (number, item) in ITEMS.iter().enumerate() {
            let (Shows::By(how, _) | Shows::Alone(how, _) | Shows::Unless(_, how, _)) = item.shows
            else {
                if let Shows::Never(why) = item.shows {
                    let _ = writeln!(text, "| {} | **cannot**: {why} | | | |", item.defect);
                }
                continue;
            };
            let _ = match self.items.get(&number) {
                None => writeln!(text, "| {} | {how} | **not found** | | 0 |", item.defect),
                Some((first, seeds)) => writeln!(
                    text,
                    "| {} | {how} | {} | {} | {seeds} |",
                    item.defect,
                    seed_of(first.run),
                    first.events
                ),
            };
        }
        text
    }

    /// The findings that no item explains, a line for each kind; the most frequent first.
    #[must_use]
    pub fn others(&self) -> String {
        let mut others: Vec<_> = self.others.values().collect();
        others.sort_by_key(|(text, seed, seeds)| (std::cmp::Reverse(*seeds), *seed, text));
        let mut lines = String::new();
        for (text, seed, seeds) in others.iter().take(LISTED) {
            let _ = writeln!(lines, "{seeds} seeds, first {seed}: {text}");
        }
        lines
    }

    /// Seeds and events in all.
    #[must_use]
    pub fn sums(&self) -> (u64, u64) {
        (self.seeds, self.events)
    }
}

fn seed_of(run: Run) -> String {
    match run.ms {
        LONG_MS => format!("{} (13 s)", run.seed),
        _ => run.seed.to_string(),
    }
}

/// A finding without its numbers, and without what stands in brackets.
fn kind(finding: &str) -> String {
    let (mut kind, mut depth) = (String::new(), 0_u32);
    for c in finding.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '-' | '0'..='9' => {}
            _ if depth == 0 => kind.push(c),
            _ => {}
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_commits_have_no_header() {
        assert!(Half::of("989571b").is_ok() && Half::of("989571b0123").is_ok());
        for commit in ["9", "", "7511c911d"] {
            assert!(Half::of(commit).is_err(), "{commit}");
        }
    }

    #[test]
    fn a_table_has_a_row_for_each_item() {
        let mut seen = Seen::default();
        let run = Run::new(51, LONG_MS);
        let first = First { run, events: 700 };
        seen.note(&[(1, first), (1, First { run, events: 900 })]);
        let table = seen.table();
        assert_eq!(table.lines().count(), ITEMS.len() + 2);
        assert!(table.contains("| 51 (13 s) | 700 | 1 |"), "{table}");
        assert!(table.contains("**not found**") && table.contains("**cannot**"));
        assert_eq!(seen.items(), [1]);
    }

    #[test]
    fn kinds_have_no_numbers() {
        assert_eq!(
            kind("group 3 counts -7 ns (x)"),
            kind("group 12 counts 8 ns (y)")
        );
    }
}
