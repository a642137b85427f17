//! Runs mutants of the kernel half in the model, and keeps each result in a file, so that an
//! interrupted campaign goes on with the same command.
//!
//! A mutant is killed if a run that is clean with the unchanged kernel half has a finding, crashes,
//! or takes ten times as long. It survives if no run does.

use crate::coverage::{self, Files, Tools};
use crate::model::Model;
use crate::mutate::{mutants, Mutant};
use crate::report::{progress, say};
use crate::runs::{self, Ending, Run, Setting};
use crate::{llvm, rules};
use anyhow::{bail, ensure, Context, Result};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::TempDir;

/// Mutants whose library is the same as the unchanged one are no mutants: clang has to see that.
const FLAGS: [&str; 2] = ["-O2", "-g0"];
/// The length of the runs at the beginning, which most mutants do not survive, ms.
const FIRST_MS: u64 = 50;
/// A seed with so many events in one of them does not run for longer.
const HEAVY_EVENTS: u64 = 1_500;
/// Runs at the end that are long enough for the longest permitted wait (11 s).
const LAST: usize = 2;
/// Only seeds with fewer events in 500 ms run so long.
const LAST_EVENTS: u64 = 4_000;
/// CPU time that any run has, s.
const LEAST_S: u64 = 3;

/// The result of a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum Verdict {
    /// It does not compile.
    Uncompilable,
    /// It compiles to the same code.
    Same,
    /// No run reaches its place, so none could differ.
    Unreached,
    /// A run found it out.
    Killed {
        /// The run.
        by: String,
        /// What happened.
        how: String,
    },
    /// No run did.
    Survived {
        /// Runs that took another course.
        changed: usize,
        /// Runs in all.
        runs: usize,
    },
}

impl Verdict {
    /// Returns whether it is a mutant that counts.
    #[must_use]
    pub fn counts(&self) -> bool {
        !matches!(self, Self::Uncompilable | Self::Same)
    }
}

/// A mutant with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// The mutant.
    pub mutant: Mutant,
    /// What has changed, on one line.
    pub text: String,
    /// The result.
    pub result: Verdict,
}

/// What a campaign is to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Mutants that count.
    pub mutants: usize,
    /// The only file with mutants; `None`: all files.
    pub file: Option<String>,
    /// The seed of the sample.
    pub sample: u64,
    /// Seeds that each mutant runs.
    pub seeds: u64,
}

/// A run that is clean with the unchanged kernel half.
#[derive(Debug, Clone)]
struct Clean {
    run: Run,
    digest: String,
    cpu_s: u64,
}

/// Mutants in the order of the sample.
#[must_use]
pub fn sample(mut all: Vec<Mutant>, seed: u64) -> Vec<Mutant> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for n in (1..all.len()).rev() {
        all.swap(n, (random.next_u64() % (n as u64 + 1)) as usize);
    }
    all
}

/// All mutants of these files.
#[must_use]
pub fn all_mutants(files: &[(String, String)]) -> Vec<Mutant> {
    let taken = files.iter().filter(|(name, _)| rules::takes_file(name));
    taken.flat_map(|(name, text)| mutants(name, text)).collect()
}

/// A campaign.
#[derive(Debug)]
pub struct Campaign<'a> {
    model: &'a Model,
    files: Vec<(String, String)>,
    seeds: u64,
    results: PathBuf,
    /// Made for the first mutant without a result.
    trial: Option<Trial<'a>>,
}

impl<'a> Campaign<'a> {
    /// Results are kept in a folder in `cache`, whose name is that of the sources, the compiler
    /// and the seeds.
    ///
    /// # Errors
    /// If files cannot be read or written.
    pub fn new(model: &'a Model, plan: &Plan, cache: &Path) -> Result<Self> {
        let files = model.files()?;
        let results = cache.join(key(model, &files, plan.seeds)?);
        fs::create_dir_all(&results)
            .with_context(|| format!("cannot make {}", results.display()))?;
        Ok(Self {
            model,
            files,
            seeds: plan.seeds,
            results,
            trial: None,
        })
    }

    /// The folder with the results.
    #[must_use]
    pub fn results(&self) -> &Path {
        &self.results
    }

    /// The results of the plan: those that are kept, and new ones.
    ///
    /// # Errors
    /// If the kernel half does not compile without a mutation, a program cannot be run, or a file
    /// cannot be written.
    pub fn run(&mut self, plan: &Plan) -> Result<Vec<Tried>> {
        let is_in_plan = |name: &str| plan.file.as_deref().is_none_or(|file| file == name);
        let files: Vec<_> = self
            .files
            .iter()
            .filter(|(name, _)| is_in_plan(name))
            .cloned()
            .collect();
        if let Some(file) = plan.file.as_deref().filter(|_| files.is_empty()) {
            bail!("the kernel half has no file {file}");
        }
        let (mut tried, mut count) = (Vec::new(), 0);
        for mutant in sample(all_mutants(&files), plan.sample) {
            if count == plan.mutants {
                break;
            }
            let one = self.result_of(mutant)?;
            count += usize::from(one.result.counts());
            progress(&format!("{count} of {} mutants", plan.mutants));
            tried.push(one);
        }
        self.tell_unreached(&mut tried)?;
        Ok(tried)
    }

    /// Survivors at a line that no run reaches are told apart. What is reached takes long to
    /// measure, so it is kept as well.
    fn tell_unreached(&mut self, tried: &mut [Tried]) -> Result<()> {
        let survives =
            |one: &&mut Tried| matches!(one.result, Verdict::Survived { changed: 0, .. });
        if !tried.iter_mut().any(|one| survives(&&mut *one)) {
            return Ok(());
        }
        let Some(reached) = self.reached()? else {
            return Ok(());
        };
        for one in tried.iter_mut().filter(survives) {
            // Constants are in lines without code.
            let lines = reached.get(&one.mutant.file);
            if lines.is_some_and(|lines| lines.contains(&one.mutant.line)) {
                one.result = Verdict::Unreached;
            }
        }
        Ok(())
    }

    /// For each file the lines that no clean run reaches; `None` without LLVM's tools.
    fn reached(&mut self) -> Result<Option<BTreeMap<String, BTreeSet<usize>>>> {
        let path = self.results.join("unreached.json");
        if let Ok(text) = fs::read_to_string(&path) {
            return Ok(Some(serde_json::from_str(&text)?));
        }
        if self.trial.is_none() {
            self.trial = Some(Trial::new(self.model, &self.files, self.seeds)?);
        }
        let trial = self.trial.as_ref().expect("it was made");
        let Some(files) = trial.measure()? else {
            return Ok(None);
        };
        let unreached = |lines: &BTreeMap<usize, u64>| {
            let never = lines.iter().filter(|(_, times)| **times == 0);
            never.map(|(line, _)| *line).collect()
        };
        let found = files
            .iter()
            .map(|(name, file)| (name.clone(), unreached(&file.lines)));
        let found: BTreeMap<String, BTreeSet<usize>> = found.collect();
        fs::write(&path, serde_json::to_string(&found)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Some(found))
    }

    fn result_of(&mut self, mutant: Mutant) -> Result<Tried> {
        let path = self.results.join(format!("{}.json", mutant.id()));
        let kept = fs::read_to_string(&path).ok();
        let kept = kept.and_then(|text| serde_json::from_str::<Tried>(&text).ok());
        if let Some(kept) = kept.filter(|kept| kept.mutant == mutant) {
            return Ok(kept);
        }
        if self.trial.is_none() {
            self.trial = Some(Trial::new(self.model, &self.files, self.seeds)?);
        }
        let trial = self.trial.as_ref().expect("it was made");
        let tried = Tried {
            text: mutant.describe(&trial.files[&mutant.file]),
            result: trial.try_out(&mutant)?,
            mutant,
        };
        let text = serde_json::to_string_pretty(&tried)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(tried)
    }
}

/// Tries mutants out: has a copy of the sources, and runs of the unchanged kernel half to compare
/// with.
#[derive(Debug)]
struct Trial<'a> {
    model: &'a Model,
    files: BTreeMap<String, String>,
    scratch: TempDir,
    clean: Vec<Clean>,
}

impl<'a> Trial<'a> {
    /// Runs the unchanged kernel half.
    fn new(model: &'a Model, files: &[(String, String)], seeds: u64) -> Result<Self> {
        let mut trial = Self {
            model,
            files: files.iter().cloned().collect(),
            scratch: model.scratch()?,
            clean: Vec::new(),
        };
        trial.copy()?;
        trial.run_clean(seeds)?;
        Ok(trial)
    }

    fn half(&self) -> PathBuf {
        self.scratch.path().join("half")
    }

    fn copy(&self) -> Result<()> {
        fs::create_dir_all(self.half())?;
        for (name, text) in &self.files {
            fs::write(self.half().join(name), text)?;
        }
        Ok(())
    }

    /// Compiles the copy. Returns whether it compiles.
    fn compile(&self, to: &str) -> Result<bool> {
        let to = self.scratch.path().join(to);
        let said = self.model.compile(&self.half(), &FLAGS, &to)?;
        Ok(said.is_none())
    }

    fn run_clean(&mut self, seeds: u64) -> Result<()> {
        self.model
            .compile_all(&FLAGS, &self.scratch.path().join("clean"))?;
        ensure!(self.compile("clean")?, "the copy does not compile");
        let mut light = Vec::new();
        for run in (1..=seeds).map(|seed| Run::new(seed, FIRST_MS).plain()) {
            if self.add_clean(run)? < HEAVY_EVENTS {
                light.push(run.seed);
            }
        }
        let mut last = Vec::new();
        for run in light.iter().map(|&seed| Run::new(seed, 500)) {
            let events = self.add_clean(run.plain())?;
            if events < LAST_EVENTS && last.len() < LAST {
                last.push(Run::new(run.seed, runs::LONG_MS).plain());
            }
        }
        let as_drawn = light.iter().map(|&seed| Run::new(seed, 500));
        for run in as_drawn.chain(last) {
            self.add_clean(run)?;
        }
        Ok(())
    }

    /// Returns the number of events.
    fn add_clean(&mut self, run: Run) -> Result<u64> {
        let began = Instant::now();
        let library = self.scratch.path().join("clean");
        let done = runs::run(&self.model.program, &library, run, &Setting::default())?;
        if run.ms == 500 && !run.plain && !done.has_races {
            return Ok(done.events); // it has been run already
        }
        progress(&format!("unchanged: {run}"));
        if done.ending == Ending::Clean {
            self.clean.push(Clean {
                run,
                digest: done.digest,
                cpu_s: LEAST_S + 10 * began.elapsed().as_secs_f64().ceil() as u64,
            });
        } else {
            progress(&format!("left out, not clean without a mutation: {run}"));
        }
        Ok(done.events)
    }

    fn measure(&self) -> Result<Option<Files>> {
        let tools = match Tools::find(self.model.clang()) {
            Ok(tools) => tools,
            Err(why) => {
                say(&format!(
                    "mutants that no run reaches are run as well: {why}"
                ));
                return Ok(None);
            }
        };
        let variant = coverage::compile(self.model)?;
        let runs: Vec<Run> = self.clean.iter().map(|clean| clean.run).collect();
        coverage::reached(self.model, &tools, variant.path(), &runs, true).map(Some)
    }

    fn try_out(&self, mutant: &Mutant) -> Result<Verdict> {
        let original = &self.files[&mutant.file];
        let file = self.half().join(&mutant.file);
        fs::write(&file, mutant.apply(original))?;
        let compiles = self.compile("mutant");
        fs::write(&file, original)?;
        if !compiles? {
            return Ok(Verdict::Uncompilable);
        }
        let library = |name| self.scratch.path().join(name).join(crate::model::LIBRARY);
        if fs::read(library("mutant"))? == fs::read(library("clean"))? {
            return Ok(Verdict::Same);
        }
        self.runs_of(&self.scratch.path().join("mutant"))
    }

    /// Runs as many at the same time as there are CPUs. The first in order that finds something
    /// counts.
    fn runs_of(&self, library: &Path) -> Result<Verdict> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut changed = 0;
        for some in self.clean.chunks(jobs) {
            let results: Vec<_> = std::thread::scope(|scope| {
                let run = |clean| scope.spawn(move || self.run_again(clean, library));
                let running: Vec<_> = some.iter().map(run).collect();
                let ended = running.into_iter().map(|one| one.join());
                ended.map(|one| one.expect("it does not panic")).collect()
            });
            for (clean, done) in some.iter().zip(results) {
                let done = done?;
                let how = match done.ending {
                    Ending::Clean => {
                        changed += usize::from(done.digest != clean.digest);
                        continue;
                    }
                    Ending::Finding(text) => format!("finding: {text}"),
                    Ending::Crash(text) => format!("crash: {text}"),
                    Ending::TimeOut => format!("time-out: more than {} s", clean.cpu_s),
                };
                let by = clean.run.to_string();
                return Ok(Verdict::Killed { by, how });
            }
        }
        let runs = self.clean.len();
        Ok(Verdict::Survived { changed, runs })
    }

    fn run_again(&self, clean: &Clean, library: &Path) -> Result<runs::Done> {
        let setting = Setting {
            cpu_s: Some(clean.cpu_s),
            // The first finding is enough.
            arguments: vec!["--findings", "0"],
            ..Setting::default()
        };
        runs::run(&self.model.program, library, clean.run, &setting)
    }
}

/// The name of the results of these sources: of the kernel half and of the model.
fn key(model: &Model, files: &[(String, String)], seeds: u64) -> Result<String> {
    let mut hash = Sha256::new();
    for (name, text) in files {
        hash.update(format!("{name} {}\n{text}", text.len()));
    }
    let mut paths = Vec::new();
    for source in model.sources() {
        collect(&source, &mut paths)?;
    }
    paths.sort();
    for path in paths {
        hash.update(path.to_string_lossy().as_bytes());
        hash.update(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    hash.update(format!("clang {} {FLAGS:?}", llvm::major(model.clang())));
    let digest = hash.finalize();
    let hex: String = digest[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(format!("{hex}-{seeds}"))
}

/// Adds the file `path`, or all files below the folder `path`.
fn collect(path: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        paths.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    for entry in entries {
        collect(&entry?.path(), paths)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Mutant> {
        let text = "static void f(void) { a = b < 1; c = d + 3; e(5); }";
        let of = |name: &str| (name.to_owned(), text.to_owned());
        all_mutants(&[of("a.h"), of("counters.h"), of("readme")])
    }

    #[test]
    fn only_files_with_policy_have_mutants() {
        let all = some();
        assert_eq!(all.len(), 8);
        assert!(all.iter().all(|mutant| mutant.file == "a.h"));
    }

    #[test]
    fn a_sample_is_a_permutation_that_repeats() {
        let names = |seed| -> Vec<String> { sample(some(), seed).iter().map(Mutant::id).collect() };
        assert_eq!(names(1), names(1));
        assert_ne!(names(1), names(2));
        let (mut one, mut other) = (names(1), names(2));
        one.sort();
        other.sort();
        assert_eq!(one, other);
    }

    #[test]
    fn results_are_kept_as_text() {
        let tried = Tried {
            mutant: some().remove(0),
            text: "a → b".to_owned(),
            result: Verdict::Survived {
                changed: 1,
                runs: 2,
            },
        };
        let text = serde_json::to_string(&tried).expect("it is plain");
        assert!(text.contains("\"result\":\"survived\""), "{text}");
        assert_eq!(
            serde_json::from_str::<Tried>(&text).expect("it is plain"),
            tried
        );
    }
}
