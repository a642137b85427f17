//! The folder with the results of guests.
//!
//! Of guest N of perturbation K it has what the guest printed (`K.N`, `K.N.part` until the
//! guest has ended), what vm/run said (`K.N.log`), the console (`K.N.console`) and the
//! verdicts (`K.N.verdicts`). `made-of` names the programs, the machine and the cases.

use super::verdict::{Outcome, Verdict};
use super::{Perturbations, Sample};
use crate::blocks;
use crate::cases::PROGRAM;
use crate::guest;
use anyhow::{Context, Result};
use sfs_jobs::failure::Failure;
use sfs_jobs::job::Job;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// From this exit status on a guest was never begun, or was ended from outside.
const NOT_BY_ITSELF: i32 = 126;

/// Begins the sentence about a guest that ended too early.
const ENDED: &str = "the guest ended";

/// The folder.
#[derive(Debug)]
pub struct Samples<'a> {
    perturbations: &'a Perturbations<'a>,
    folder: PathBuf,
    /// How many guests there are to be.
    pub planned: usize,
}

impl<'a> Samples<'a> {
    /// Opens the user's folder, or a temporary one.
    ///
    /// # Errors
    /// If the folder has results of other programs, another machine or other cases, or cannot
    /// be written.
    pub fn open(
        perturbations: &'a Perturbations,
        out: Option<&Path>,
        planned: usize,
    ) -> Result<Self> {
        let folder = out.map_or_else(|| perturbations.guests.work.join("samples"), Path::to_owned);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let samples = Self {
            perturbations,
            folder,
            planned,
        };
        let (path, made_of) = (samples.folder.join("made-of"), samples.made_of()?);
        let other = std::fs::read(&path).is_ok_and(|kept| kept != made_of);
        if other {
            let folder = samples.folder.display();
            let why = format!("what is in {folder} is of other programs, another machine or other cases; take another folder");
            return Err(Failure::Usage(why).into());
        }
        write(&path, &made_of)?;
        Ok(samples)
    }

    fn made_of(&self) -> Result<Vec<u8>> {
        let tree = self.perturbations.guests.tree;
        let mut lines = Vec::new();
        for name in ["scx_sfs", PROGRAM] {
            let path = tree.at(tree.program(name));
            let bytes =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let sum: String = Sha256::digest(bytes)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            lines.push(format!("{sum}  {name}"));
        }
        let words = self.perturbations.words.iter();
        lines.extend(words.flat_map(|(name, value)| [name.to_string(), value.to_string()]));
        lines.push("--".into());
        lines.extend_from_slice(self.perturbations.patterns);
        Ok((lines.join("\n") + "\n").into_bytes())
    }

    /// A file of a guest.
    fn file(&self, sample: &Sample, end: &str) -> PathBuf {
        let name = format!("{}.{}{end}", sample.perturbation, sample.number);
        self.folder.join(name)
    }

    /// Whether a guest has ended before.
    pub fn has(&self, sample: &Sample) -> bool {
        self.file(sample, "").exists()
    }

    /// Runs a guest, keeps its results and prints what has become of it. Returns whether it
    /// has a result.
    ///
    /// # Errors
    /// If a file cannot be written or the guest cannot be started, and
    /// [`sfs_jobs::failure::Failure::Interrupted`].
    pub fn draw(&self, sample: &Sample) -> Result<bool> {
        let status = self.run(sample)?;
        // That says nothing about the cases.
        if status >= NOT_BY_ITSELF {
            return Ok(false);
        }
        let part = self.file(sample, ".part");
        let bytes =
            std::fs::read(&part).with_context(|| format!("cannot read {}", part.display()))?;
        let said = String::from_utf8_lossy(&bytes);
        let verdicts = Verdict::all(&said, &sample.cases, sample.perturbation);
        let lines: String = verdicts
            .iter()
            .map(|verdict| format!("{verdict}\n"))
            .collect();
        let early =
            (status > 1).then(|| format!("{ENDED} with exit status {status} before its cases had"));
        if let Some(early) = &early {
            self.note(sample, early)?;
        }
        write(&self.file(sample, ".verdicts"), lines.as_bytes())?;
        let file = self.file(sample, "");
        std::fs::rename(&part, &file)
            .with_context(|| format!("cannot write {}", file.display()))?;
        self.tell(sample, &verdicts, &said, early)?;
        Ok(true)
    }

    /// Runs a guest to its end; returns its exit status.
    fn run(&self, sample: &Sample) -> Result<i32> {
        let guests = self.perturbations.guests;
        let create = |end: &str| {
            let path = self.file(sample, end);
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))
        };
        let mut machine: Vec<OsString> = vec!["--quiet".into(), "--perturb".into()];
        machine.push(sample.perturbation.to_string().into());
        machine.extend(sample.kind.map(|kind| kind.machine()).into_iter().flatten());
        let apart = sample
            .kind
            .map(|kind| ["--apart".to_string(), kind.name().to_string()]);
        let words: Vec<String> = apart
            .into_iter()
            .flatten()
            .chain(sample.cases.iter().cloned())
            .collect();
        let mut command = guests.command(&self.file(sample, ".console"), &machine);
        guests.bring_in(&mut command, &words);
        command.stdout(create(".part")?).stderr(create(".log")?);
        Job::start(&mut command)?.wait(guests.interrupt)
    }

    /// Adds a line to the log of a guest.
    fn note(&self, sample: &Sample, line: &str) -> Result<()> {
        let path = self.file(sample, ".log");
        let log = File::options().append(true).open(&path);
        log.and_then(|mut log| writeln!(log, "{line}"))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Prints what a guest has come to, its failures in full.
    fn tell(
        &self,
        sample: &Sample,
        verdicts: &[Verdict],
        said: &str,
        early: Option<String>,
    ) -> Result<()> {
        let failed = verdicts
            .iter()
            .filter(|verdict| verdict.outcome == Outcome::Failed)
            .count();
        let mut lines = vec![format!(
            "perturbation {}: {failed} of {} cases failed ({} of {} guests have ended)",
            sample.perturbation,
            verdicts.len(),
            self.files()?.len(),
            self.planned
        )];
        if failed > 0 {
            let indented = failures(said).into_iter().map(str::to_string).chain(early);
            lines.extend(indented.map(|line| format!("    {line}")));
        }
        guest::print(&lines, "");
        Ok(())
    }

    /// The files with verdicts.
    fn files(&self) -> Result<Vec<PathBuf>> {
        let unreadable = || format!("cannot read the folder {}", self.folder.display());
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.folder).with_context(unreadable)? {
            let path = entry.with_context(unreadable)?.path();
            if path.extension().is_some_and(|end| end == "verdicts") {
                files.push(path);
            }
        }
        Ok(files)
    }

    /// All verdicts in the folder.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn verdicts(&self) -> Result<Vec<Verdict>> {
        let mut verdicts = Vec::new();
        for path in self.files()? {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            verdicts.extend(text.lines().filter_map(Verdict::parse));
        }
        Ok(verdicts)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The cases that failed, with their notes.
fn failures(said: &str) -> Vec<&str> {
    let mut shown = false;
    let lines = said.lines().filter(|line| {
        if let Some((_, passed)) = blocks::case(line) {
            shown = !passed;
        }
        shown && crate::count::Count::parse(line).is_none()
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_shown_with_their_notes() {
        let said = "1..2\nok 1 - a # about\n#   fine\nnot ok 2 - b # about\n#   bad\n#   1 s\n1 passed, 1 failed, 0 skipped\n";
        assert_eq!(
            failures(said),
            ["not ok 2 - b # about", "#   bad", "#   1 s"]
        );
    }
}
