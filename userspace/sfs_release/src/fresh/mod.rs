//! `sfs_release fresh`: the README's commands on bare machines.

mod archive;
#[cfg(test)]
mod boot_tests;
mod machine;
mod plan;
mod steps;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::Args;
use sfs_jobs::progress::Progress;
use sfs_jobs::refuse;
use sfs_jobs::signals::Interrupt;

use self::archive::{Archives, Release};
use self::machine::said;
use self::plan::Plan;
use self::steps::Steps;
use crate::checks::Checks;
use crate::programs;
use crate::repository::Repository;

/// The name of this test in the list of skips.
const TEST: &str = "sfs_release::fresh";

/// The command line of `sfs_release fresh`.
#[derive(Args, Debug)]
pub struct FreshArgs {
    /// The commit to try; uncommitted changes are left out
    #[arg(long, value_name = "COMMIT", default_value = "HEAD")]
    commit: String,
    /// What root makes, one after the other
    #[arg(
        long,
        value_name = "TARGETS",
        default_value = "demo test-unit",
        value_parser = Targets::parse
    )]
    targets: Targets,
    /// Keep the file systems, below .cache/fresh
    #[arg(long)]
    keep: bool,
    /// The releases of Debian (default: both)
    #[arg(value_name = "RELEASE")]
    releases: Vec<Release>,
}

/// Targets of the Makefile, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Targets {
    first: String,
    others: Vec<String>,
}

impl Targets {
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace().map(str::to_owned);
        Ok(Self {
            first: words.next().ok_or("it names no target")?,
            others: words.collect(),
        })
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the programs to compare after them: `make demo` builds only its own.
    fn programs(&self) -> &'static [&'static str] {
        match self
            .all()
            .any(|target| target == "build" || target == "test")
        {
            true => &programs::OF_BUILD,
            false => &programs::OF_DEMO,
        }
    }
}

/// Tries the commit on bare machines. Returns the exit status. `built` is the folder of this
/// machine's programs.
///
/// # Errors
///
/// Bad usage, a file system that cannot be made, or a signal asks to end.
pub fn run(
    workspace: &Path,
    built: impl FnOnce(&Path) -> PathBuf,
    args: &FreshArgs,
    mut checks: Checks,
    interrupt: &Interrupt,
) -> Result<u8> {
    let repository = Repository::around(workspace)?;
    let commit = repository.commit(&args.commit)?;
    if let Some(why) = obstacle() {
        checks.skip(TEST, "bare machines", why)?;
        return checks.conclude();
    }
    let top = repository.top();
    let cache = std::env::var_os("SCX_SFS_CACHE").filter(|cache| !cache.is_empty());
    let folder = top.join(cache.unwrap_or(".cache".into())).join("fresh");
    let _lock = lock(&folder)?;
    let progress = Progress::new("fresh");
    if !repository.is_clean()? {
        let short = &commit[..10];
        progress.say(&format!(
            "uncommitted changes are not tried; this is commit {short}"
        ));
    }
    let sysroot = said(
        Command::new("rustc")
            .args(["--print", "sysroot"])
            .current_dir(top),
    )?;
    let archives = Archives {
        top,
        folder: &folder,
        progress: &progress,
        interrupt,
    };
    let plan = Plan {
        repository: &repository,
        commit: &commit,
        args,
        archives: &archives,
        rust: Path::new(sysroot.trim_end()),
        built: built(&top.join("userspace")),
    };
    let mut steps = Steps::new(top.into(), checks, &progress, interrupt)?;
    let releases = match &args.releases[..] {
        [] => &Release::ALL[..],
        some => some,
    };
    for release in releases {
        plan.try_as_user(&mut steps, *release)?;
        plan.try_as_root(&mut steps, *release)?;
    }
    steps.checks.conclude()
}

/// Returns why this process cannot make or enter bare machines; `None` if it can.
fn obstacle() -> Option<&'static str> {
    if !nix::unistd::geteuid().is_root() {
        return Some("only root can make and enter their file systems");
    }
    let mut mount = Command::new("unshare");
    mount.args(["--mount", "--pid", "--fork"]);
    mount.args(["mount", "-t", "tmpfs", "none", "/mnt"]);
    let status = mount.stderr(Stdio::null()).status();
    let may_mount = status.is_ok_and(|status| status.success());
    (!may_mount).then_some("nobody may mount anything here, not even in a namespace")
}

/// Keeps other processes out of `folder`, whose file systems have fixed names, until the returned
/// file is dropped.
fn lock(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join("lock");
    let cannot = || format!("cannot lock {}", path.display());
    let file = File::create(&path).with_context(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => refuse!(
            "another sfs_release fresh is at work in {}; wait for it",
            folder.display()
        ),
        Err(TryLockError::Error(error)) => Err(error).with_context(cannot),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sfs_jobs::failure::{status, USAGE};

    #[test]
    fn targets_are_words() {
        let targets = Targets::parse(" demo  test-unit ").unwrap();
        let all: Vec<_> = targets.all().collect();
        assert_eq!(all, ["demo", "test-unit"]);
        assert_eq!(targets.first, "demo");
        assert_eq!(targets.programs(), programs::OF_DEMO);
        let whole = Targets::parse("demo test").unwrap();
        assert_eq!(whole.programs(), programs::OF_BUILD);
        Targets::parse("  ").unwrap_err();
    }

    #[test]
    fn only_one_run_has_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("cache/fresh");
        let first = lock(&folder).unwrap();
        let error = lock(&folder).unwrap_err();
        assert_eq!(status(&error), USAGE);
        assert!(error.to_string().contains("is at work in"), "{error}");
        // A process that another test starts at this moment has the file open as well, until it
        // becomes its program.
        first.unlock().unwrap();
        lock(&folder).unwrap();
    }
}
