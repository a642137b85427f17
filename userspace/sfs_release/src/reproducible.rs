//! `sfs_release reproducible`: builds a commit in two folders, and compares.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;

use crate::checks::Checks;
use crate::log::Log;
use crate::programs;
use crate::repository::Repository;

/// The folders of the builds. Their names differ in length, and have no blanks, which a makefile
/// of libbpf cannot handle (libbpf-sys builds it).
const FOLDERS: [&str; 2] = ["a", "another-and-a-longer-one/b"];

/// Builds the commit of the repository around `workspace` twice. Returns the exit status.
///
/// # Errors
///
/// There is no repository or no commit, or a signal asks to end.
pub fn run(workspace: &Path, checks: Checks, interrupt: &Interrupt) -> Result<u8> {
    let repository = Repository::around(workspace)?;
    // Both builds are of this one, whatever is committed meanwhile.
    let commit = repository.commit("HEAD")?;
    let work = tempfile::Builder::new()
        .prefix("reproducible.")
        .tempdir()
        .context("cannot make a temporary folder")?;
    if !repository.is_clean()? {
        Progress::new("reproducible").say(&format!(
            "uncommitted changes are not built; this is commit {}",
            &commit[..7]
        ));
    }
    Builds {
        repository: &repository,
        commit: &commit,
        work: work.path(),
        interrupt,
        checks,
    }
    .compare()
}

struct Builds<'a> {
    repository: &'a Repository,
    commit: &'a str,
    work: &'a Path,
    interrupt: &'a Interrupt,
    checks: Checks<'a>,
}

impl Builds<'_> {
    fn compare(mut self) -> Result<u8> {
        for folder in FOLDERS {
            self.build(folder)?;
        }
        let [one, other] = FOLDERS.map(|folder| self.release(folder));
        let name = "the same programs and BPF objects, to the byte";
        let differences = programs::differences(&programs::OF_BUILD, &one, &other);
        if differences.is_empty() {
            self.checks.pass(name)?;
        } else {
            let differences = differences.iter().map(String::as_str);
            self.checks.fail(name, differences)?;
        }
        // A failed build has none; its check has failed.
        for line in programs::checksums(&one).unwrap_or_default() {
            self.checks.line(&line)?;
        }
        self.checks.conclude()
    }

    /// Builds in `folder`, as `make` does.
    fn build(&mut self, folder: &str) -> Result<()> {
        let name = format!("builds in {folder}");
        let mut log = Log::create(self.work.join("log"), self.interrupt, None)?;
        let to = self.work.join(folder);
        let clone = self.repository.clone_commands(self.commit, &to);
        let commands = clone.into_iter().chain([cargo(&to.join("userspace"))]);
        match log.run_all(commands)? {
            0 => self.checks.pass(&name)?,
            _ => self.checks.fail(&name, log.text()?.lines())?,
        }
        self.checks.remark(&format!("{} s", log.seconds()))
    }

    fn release(&self, folder: &str) -> PathBuf {
        self.work.join(folder).join("userspace/target/release")
    }
}

/// The build, into the default folder.
fn cargo(workspace: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command
        .current_dir(workspace)
        .env_remove("CARGO_TARGET_DIR")
        .args(["build", "--quiet", "--release", "--locked", "--workspace"]);
    command
}
