//! The traces that policies are compared on.

use anyhow::{Context, Result};
use sfs_jobs::failure::refuse;
use sfs_jobs::job;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// The workloads: names of the traces, and what `faasbench gen` is told. A log-normal
/// factor of sigma 0.5 has the coefficient of variation 0.533, one of sigma 1 has 1.311.
const GENERATED: [(&str, &str); 9] = [
    ("table1", "table1-artefact --invocations 10000 --cpus 12"),
    ("table1x20-0", "table1-artefact --invocations 10000 --cpus 4 --functions 20 --within-cv 0"),
    ("table1x20", "table1-artefact --invocations 10000 --cpus 4 --functions 20 --within-cv 0.533"),
    ("table1x20-1", "table1-artefact --invocations 10000 --cpus 4 --functions 20 --within-cv 1.311"),
    ("lognormalx200", "lognormal --invocations 10000 --cpus 4 --scale 0.0183 --functions 200 --popularity zipf:1.1"),
    ("bimodalx200", "bimodal --invocations 10000 --cpus 4 --functions 200"),
    ("exponential", "exponential --invocations 10000 --cpus 4"),
    ("exponentialx50", "exponential --invocations 10000 --cpus 4 --functions 50"),
    ("burstyx200", "lognormal --invocations 10000 --cpus 4 --scale 0.0183 --functions 200 --popularity zipf:1.1 --arrivals bursty"),
];

/// Another name for the function of an invocation, which is the trace's so many'th.
type Rename = fn(usize, &str) -> String;

/// Traces that are others with other functions: the one, the other, and how.
const RENAMED: [(&str, &str, Rename); 4] = [
    ("bimodalx200", "bimodal", |_, _| "one".into()),
    ("exponential", "exponential1", |_, _| "one".into()),
    ("table1x20", "swapped", |_, name| swapped(name)),
    ("table1x20", "changing", |index, name| {
        match index > HALF_WAY {
            true => swapped(name),
            false => name.into(),
        }
    }),
];

/// Half of the invocations of a trace.
const HALF_WAY: usize = 5000;

/// Of the functions f01 to f20 the one at the other end: the shortest becomes the longest.
fn swapped(name: &str) -> String {
    let number = name.get(1..).and_then(|digits| digits.parse::<u32>().ok());
    format!("f{:02}", 21u32.saturating_sub(number.unwrap_or(0)))
}

/// Makes traces that are not there.
pub struct Traces<'a> {
    pub tree: &'a Tree,
    pub interrupt: &'a Interrupt,
    pub progress: &'a Progress,
    pub seeds: Vec<u32>,
    out: PathBuf,
    /// The traces of others.
    others: PathBuf,
    /// Whether it has been said that Azure's are not there.
    said: Cell<bool>,
}

impl<'a> Traces<'a> {
    pub fn new(
        tree: &'a Tree,
        out: PathBuf,
        others: PathBuf,
        seeds: Vec<u32>,
        interrupt: &'a Interrupt,
        progress: &'a Progress,
    ) -> Self {
        Self {
            tree,
            interrupt,
            progress,
            seeds,
            out,
            others,
            said: Cell::new(false),
        }
    }

    /// The trace `name` of a seed, from the repository's root.
    pub fn file(&self, name: &str, seed: u32) -> PathBuf {
        self.out.join(format!("{name}-{seed}.csv"))
    }

    /// The traces `name` of all seeds.
    pub fn files(&self, name: &str) -> Vec<PathBuf> {
        self.seeds
            .iter()
            .map(|seed| self.file(name, *seed))
            .collect()
    }

    /// Makes those that most tables are about.
    pub fn make_all(&self) -> Result<()> {
        for seed in &self.seeds {
            for (name, options) in GENERATED {
                self.generate(name, *seed, options)?;
            }
            for (from, to, rename) in RENAMED {
                self.rename(from, to, *seed, rename)?;
            }
        }
        Ok(())
    }

    /// Makes the trace `name` by `faasbench gen`.
    pub fn generate(&self, name: &str, seed: u32, options: &str) -> Result<()> {
        let seed_text = seed.to_string();
        let words = ["gen"].into_iter().chain(options.split_whitespace());
        let words = words.chain(["--seed", &seed_text]);
        self.make(&self.file(name, seed), words)
    }

    /// Makes a trace with faasbench, unless it exists.
    fn make<'w>(&self, file: &Path, words: impl Iterator<Item = &'w str>) -> Result<()> {
        if self
            .tree
            .at(file)
            .metadata()
            .is_ok_and(|data| data.len() > 0)
        {
            return Ok(());
        }
        let shown = file.display();
        let new = PathBuf::from(format!("{shown}.new"));
        let mut command = job::call(self.tree, self.tree.program("faasbench"));
        self.progress.show(&format!("making {shown}"));
        let output = command.args(words).arg("-o").arg(&new).output();
        self.progress.clear();
        self.interrupt.check()?;
        let output = output.context("cannot run faasbench")?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().last().unwrap_or_default();
            refuse!("cannot make {shown}: {last}");
        }
        std::fs::rename(self.tree.at(new), self.tree.at(file))
            .with_context(|| format!("cannot write {shown}"))
    }

    /// Makes the trace `to` from `from`.
    fn rename(&self, from: &str, to: &str, seed: u32, rename: Rename) -> Result<()> {
        let (from, to) = (self.file(from, seed), self.file(to, seed));
        let text = std::fs::read_to_string(self.tree.at(&from))
            .with_context(|| format!("cannot read {}", from.display()))?;
        std::fs::write(self.tree.at(&to), renamed(&text, rename))
            .with_context(|| format!("cannot write {}", to.display()))
    }

    /// Whether the traces of Azure 2019 are there; says once if not.
    pub fn has_azure(&self) -> bool {
        let folder = self.others.join("azure2019/500");
        let is_there = self.tree.at(folder.join("invocations.csv")).is_file();
        if !is_there && !self.said.replace(true) {
            self.progress
                .say(&format!("no {}: Azure 2019 is skipped", folder.display()));
        }
        is_there
    }

    /// Minutes of a day of Azure 2019, from one to another.
    pub fn azure(&self, name: &str, seed: u32, (first, last): (u32, u32)) -> Result<()> {
        let folder = self.others.join("azure2019/500");
        let path = |name| folder.join(name).display().to_string();
        let (invocations, durations) = (path("invocations.csv"), path("durations.csv"));
        let (minutes, seed_text) = (format!("{first}..{last}"), seed.to_string());
        let words = [
            "convert",
            "azure",
            "--invocations",
            &invocations,
            "--durations",
            &durations,
        ];
        let more = "--functions 400 --cap-top 0.1 --min-us 500 --scale 0.094 --cpus 4 --load 1.0";
        let own = ["--seed", &seed_text, "--minutes", &minutes];
        let words = words.into_iter().chain(more.split(' ')).chain(own);
        self.make(&self.file(name, seed), words)
    }

    /// Half an hour of Azure to learn from, and five minutes of each half an hour after it.
    pub fn make_azure(&self) -> Result<()> {
        for seed in &self.seeds {
            self.azure("azure-before", *seed, (480, 509))?;
            let first = azure_minute(*seed);
            self.azure("azure", *seed, (first, first + 4))?;
        }
        Ok(())
    }

    /// SFS's own list, if it is there; says if not.
    pub fn sfs_list(&self) -> Result<Option<PathBuf>> {
        let list = self.others.join("sfs/test1.txt");
        if !self.tree.at(&list).is_file() {
            self.progress
                .say(&format!("no {}: SFS's list is skipped", list.display()));
            return Ok(None);
        }
        let file = self.out.join("sfs-list.csv");
        let list = list.display().to_string();
        self.make(&file, ["convert", "sfs", &list].into_iter())?;
        Ok(Some(file))
    }
}

/// The minute at which a seed's part of the day begins.
pub fn azure_minute(seed: u32) -> u32 {
    510 + 30 * seed
}

/// A trace with other functions: the second field of all lines but the first.
fn renamed(trace: &str, rename: Rename) -> String {
    let mut text = String::with_capacity(trace.len());
    for (index, line) in trace.lines().enumerate() {
        let mut fields: Vec<String> = line.split(',').map(str::to_string).collect();
        if let (true, Some(name)) = (index > 0, fields.get_mut(1)) {
            *name = rename(index, name);
        }
        text += &fields.join(",");
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_renamed_and_nothing_else() {
        let trace = "arrival_us,function,phases\n0,f01,cpu:1\n5,f20,cpu:2\n";
        let text = renamed(trace, |_, name| swapped(name));
        assert_eq!(
            text,
            "arrival_us,function,phases\n0,f20,cpu:1\n5,f01,cpu:2\n"
        );
    }

    #[test]
    fn functions_change_half_way() {
        let (_, _, changing) = RENAMED[3];
        assert_eq!(changing(HALF_WAY, "f03"), "f03");
        assert_eq!(changing(HALF_WAY + 1, "f03"), "f18");
    }
}
