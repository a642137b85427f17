//! The Git repository around the workspace.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{bail, Context, Result};
use sfs_jobs::refuse;

/// A working tree of Git.
pub struct Repository {
    top: PathBuf,
}

impl Repository {
    /// The one that `folder` is in.
    ///
    /// # Errors
    ///
    /// It is in none, or there is no git.
    pub fn around(folder: &Path) -> Result<Self> {
        let top = said(git(folder, ["rev-parse", "--show-toplevel"]))?;
        let top = top.with_context(|| {
            format!(
                "{} is in no Git repository; clone it, only commits can be built elsewhere",
                folder.display()
            )
        })?;
        Ok(Self { top: top.into() })
    }

    /// Returns its top folder.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Returns the full name of a commit.
    ///
    /// # Errors
    ///
    /// There is no such commit, which is bad usage.
    pub fn commit(&self, name: &str) -> Result<String> {
        let name = format!("{name}^{{commit}}");
        let arguments = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &name,
        ];
        match said(git(&self.top, arguments))? {
            Some(commit) => Ok(commit),
            None => refuse!("there is no such commit"),
        }
    }

    /// Writes the files of a commit as a compressed archive, each name after `prefix`. Its times are
    /// that of the commit.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn archive(&self, commit: &str, prefix: &str, to: &Path) -> Result<()> {
        let to = std::path::absolute(to).context("cannot tell the path of the archive")?;
        let prefix = format!("--prefix={prefix}");
        let mut archive = git(
            &self.top,
            ["archive", "--format=tar.gz", &prefix, "--output"],
        );
        archive.arg(&to).arg(commit);
        let written = said(archive)?;
        written
            .map(drop)
            .with_context(|| format!("cannot write {}", to.display()))
    }

    /// Returns what `git log` prints of a commit in this format.
    ///
    /// # Errors
    ///
    /// There is no such commit.
    pub fn show(&self, commit: &str, format: &str) -> Result<String> {
        let format = format!("--format={format}");
        let said = said(git(&self.top, ["log", "-1", &format, commit]))?;
        said.with_context(|| format!("there is no commit {commit}"))
    }

    /// Returns whether a tag names the commit that is checked out.
    ///
    /// # Errors
    ///
    /// Git cannot tell.
    pub fn has_tag_at_head(&self, tag: &str) -> Result<bool> {
        let tags = said(git(&self.top, ["tag", "--points-at", "HEAD"]))?;
        Ok(tags.is_some_and(|tags| tags.lines().any(|one| one == tag)))
    }

    /// Returns true if everything is committed.
    ///
    /// # Errors
    ///
    /// Git cannot tell.
    pub fn is_clean(&self) -> Result<bool> {
        match said(git(&self.top, ["status", "--porcelain"]))? {
            Some(changes) => Ok(changes.is_empty()),
            None => bail!("git status failed in {}", self.top.display()),
        }
    }

    /// Returns the commands that clone the repository into the folder `to`, at `commit`.
    pub fn clone_commands(&self, commit: &str, to: &Path) -> [Command; 2] {
        let mut clone = git(&self.top, ["clone", "--quiet", "--no-local"]);
        clone.args(["--no-checkout", "."]).arg(to);
        let mut checkout = git(&self.top, [OsStr::new("-C"), to.as_os_str()]);
        checkout.args(["checkout", "--quiet", "--detach", commit]);
        [clone, checkout]
    }
}

fn git<S: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).args(arguments);
    command
}

/// Returns git's output if it succeeded; its errors are shown.
fn said(mut git: Command) -> Result<Option<String>> {
    let output = git
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run git")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.trim_end().to_owned();
    Ok(output.status.success().then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sfs_jobs::failure::{status, USAGE};
    use std::fs;
    use tempfile::{tempdir, TempDir};

    const NAME: [&str; 4] = ["-c", "user.name=n", "-c", "user.email=e"];

    fn run(mut command: Command) {
        assert!(command.status().unwrap().success(), "{command:?}");
    }

    /// A repository with these texts of `file`, each committed.
    fn repository(texts: &[&str]) -> TempDir {
        let folder = tempdir().unwrap();
        let here = folder.path();
        run(git(here, ["init", "--quiet"]));
        for text in texts {
            fs::write(here.join("file"), text).unwrap();
            run(git(here, ["add", "file"]));
            let mut commit = git(here, NAME);
            commit.args(["commit", "--quiet", "--message", text]);
            run(commit);
        }
        folder
    }

    #[test]
    fn an_archive_is_the_same_each_time_and_has_the_files() {
        let folder = repository(&["first"]);
        let repository = Repository::around(folder.path()).unwrap();
        let commit = repository.commit("HEAD").unwrap();
        let written = ["a.tar.gz", "b.tar.gz"].map(|name| {
            let to = folder.path().join(name);
            repository.archive(&commit, "x-1/", &to).unwrap();
            fs::read(to).unwrap()
        });
        assert!(written[0] == written[1], "they differ");
        let mut list = Command::new("tar");
        list.arg("-tzf").arg(folder.path().join("a.tar.gz"));
        let listed = list.output().unwrap().stdout;
        assert_eq!(String::from_utf8_lossy(&listed), "x-1/\nx-1/file\n");
        assert_eq!(repository.show("HEAD", "%s").unwrap(), "first");
        assert!(!repository.has_tag_at_head("v1").unwrap());
        run(git(folder.path(), ["tag", "v1"]));
        assert!(repository.has_tag_at_head("v1").unwrap());
    }

    #[test]
    fn a_clone_has_the_commit_and_no_more() {
        let folder = repository(&["one", "two"]);
        fs::create_dir(folder.path().join("below")).unwrap();
        let repository = Repository::around(&folder.path().join("below")).unwrap();
        assert_eq!(repository.top(), folder.path().canonicalize().unwrap());
        assert!(repository.is_clean().unwrap());
        fs::write(folder.path().join("file"), "three").unwrap();
        assert!(!repository.is_clean().unwrap());

        let first = repository.commit("HEAD~1").unwrap();
        assert_ne!(first, repository.commit("HEAD").unwrap());
        let to = tempdir().unwrap();
        let to = to.path().join("a/b");
        repository
            .clone_commands(&first, &to)
            .into_iter()
            .for_each(run);
        assert_eq!(fs::read_to_string(to.join("file")).unwrap(), "one");
        let clone = Repository::around(&to).unwrap();
        assert_eq!(clone.commit("HEAD").unwrap(), first);
    }

    #[test]
    fn an_unknown_commit_is_bad_usage() {
        let folder = repository(&["one"]);
        let repository = Repository::around(folder.path()).unwrap();
        for name in ["gone", "HEAD~1", "--all", ""] {
            let error = repository.commit(name).unwrap_err();
            assert_eq!(status(&error), USAGE, "{name}");
        }
    }

    #[test]
    fn a_folder_of_no_repository_is_named() {
        let folder = tempdir().unwrap();
        let error = Repository::around(folder.path()).err().unwrap().to_string();
        assert!(error.contains("is in no Git repository"), "{error}");
    }
}
