//! The steps of one release.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::archive::{Archives, Release};
use super::machine::{chown, said, Machine, Who};
use super::steps::Steps;
use super::FreshArgs;
use crate::log::Log;
use crate::programs;
use crate::repository::Repository;

/// Prints the versions of the compilers, apart from Rust, which is the same on both machines.
const COMPILERS: &str = "$(scripts/find-clang) --version | head -n 1; cc --version | head -n 1";

/// The commit that is tried, and everything that its steps need.
pub struct Plan<'a> {
    /// The repository that the commit is in.
    pub repository: &'a Repository,
    /// The commit's full name.
    pub commit: &'a str,
    /// The command line.
    pub args: &'a FreshArgs,
    /// Where the file systems come from.
    pub archives: &'a Archives<'a>,
    /// The folder of this machine's Rust.
    pub rust: &'a Path,
    /// The folder of this machine's programs.
    pub built: PathBuf,
}

impl Plan<'_> {
    /// An ordinary user makes the first target: they are told one command, nothing is installed,
    /// and nothing is left in the clone. Root gives that command, and the user is not asked again.
    ///
    /// # Errors
    ///
    /// A file system cannot be made, or a signal asks to end.
    pub fn try_as_user(&self, steps: &mut Steps, release: Release) -> Result<()> {
        let machine = self.machine(release, "user")?;
        let name = format!("an ordinary user: make {}", self.args.targets.first);
        let log = steps.step(release, &name, |log| self.user_is_told(&machine, log))?;
        if let Some(command) = log.as_deref().and_then(told) {
            steps.checks.remark(&format!("told: {command}"))?;
            let name = "the command that the user was told";
            steps.step(release, name, |log| {
                self.user_goes_on(&machine, command, log)
            })?;
        }
        self.leave(&machine)
    }

    /// Root makes each target, then the first one again without a network. The programs are
    /// compared with those of this machine.
    ///
    /// # Errors
    ///
    /// A file system cannot be made, or a signal asks to end.
    pub fn try_as_root(&self, steps: &mut Steps, release: Release) -> Result<()> {
        let machine = self.machine(release, "root")?;
        let before: HashSet<_> = machine.packages()?.into_iter().collect();
        for target in self.args.targets.all() {
            let name = format!("root: make {target}");
            steps.step(release, &name, |log| self.root_makes(&machine, target, log))?;
            let mut installed = machine.packages()?;
            installed.retain(|package| !before.contains(package));
            let installed = installed.join(" ");
            steps
                .checks
                .remark(&format!("installed so far: {installed}"))?;
            let fetched = machine.fetched();
            steps.checks.remark(&format!("fetched so far: {fetched}"))?;
        }
        let first = &self.args.targets.first;
        let name = format!("root, without a network: make {first}");
        // A VM has to boot again: results that are there do not count.
        let text = format!("cd scx_sfs && make {first} FRESH=1");
        steps.step(release, &name, |log| {
            log.run(machine.command(Who::Offline, &text))
        })?;
        self.compare_programs(steps, release, &machine)?;
        self.leave(&machine)
    }

    /// Compares the programs, unless they cannot be the same.
    fn compare_programs(
        &self,
        steps: &mut Steps,
        release: Release,
        machine: &Machine,
    ) -> Result<()> {
        if let Some(why) = self.difference(release, machine)? {
            steps
                .progress
                .say(&format!("the programs are not compared: {why}"));
            return Ok(());
        }
        let name = "the same programs as here, to the byte";
        steps.step(release, name, |log| self.programs_as_here(machine, log))?;
        Ok(())
    }

    fn leave(&self, machine: &Machine) -> Result<()> {
        match self.args.keep {
            true => Ok(()),
            false => machine.remove(self.archives.interrupt),
        }
    }

    /// Makes a bare machine.
    fn machine(&self, release: Release, name: &str) -> Result<Machine<'_>> {
        let root = format!("{}.{name}", release.number());
        let machine = Machine::new(self.archives.folder.join(root), self.rust);
        self.archives.unpack(release, &machine)?;
        Ok(machine)
    }

    /// Clones the commit into the home of `who`.
    fn clone_for(&self, who: Who, machine: &Machine, log: &mut Log) -> Result<i32> {
        let to = machine.clone_of(who);
        let clone = self.repository.clone_commands(self.commit, &to);
        log.run_all(clone.into_iter().chain([chown(&to, who.id())]))
    }

    fn user_is_told(&self, machine: &Machine, log: &mut Log) -> Result<i32> {
        let before = machine.packages()?;
        let status = self.clone_for(Who::User, machine, log)?;
        if status != 0 {
            return Ok(status);
        }
        let first = &self.args.targets.first;
        let make = format!("cd scx_sfs && make {first}");
        let status = log.run(machine.command(Who::User, &make))?;
        let has_left = "cd scx_sfs && git status --porcelain --ignored";
        let left = machine.said(Who::User, has_left)?;
        let complaint = if status == 0 {
            format!("make {first} has succeeded where the packages that it needs are missing")
        } else if told(&log.text()?).is_none() {
            "it does not say one command".into()
        } else if machine.packages()? != before {
            "something has been installed".into()
        } else if !left.is_empty() {
            format!("{left}this was left in the clone")
        } else {
            return Ok(0);
        };
        log.note(&complaint)?;
        Ok(1)
    }

    /// Root gives the command that the user was told, which must be enough.
    fn user_goes_on(&self, machine: &Machine, command: &str, log: &mut Log) -> Result<i32> {
        let first = &self.args.targets.first;
        let again = format!("cd scx_sfs && make setup MAKECMDGOALS={first}");
        log.run_all([
            machine.command(Who::Root, &as_root(command)),
            machine.command(Who::User, &again),
        ])
    }

    fn root_makes(&self, machine: &Machine, target: &str, log: &mut Log) -> Result<i32> {
        if !machine.clone_of(Who::Root).exists() {
            let status = self.clone_for(Who::Root, machine, log)?;
            if status != 0 {
                return Ok(status);
            }
        }
        let make = format!("cd scx_sfs && make {target}");
        log.run(machine.command(Who::Root, &make))
    }

    /// Returns why the programs of `machine` and of this machine may differ; `None` if they must be
    /// equal.
    fn difference(&self, release: Release, machine: &Machine) -> Result<Option<String>> {
        let is_this = self.repository.commit("HEAD")? == self.commit;
        if !is_this || !self.repository.is_clean()? {
            return Ok(Some("this is not the commit that was tried".into()));
        }
        let there = machine.said(Who::Root, &format!("cd scx_sfs && {COMPILERS}"));
        let mut bash = Command::new("bash");
        bash.args(["-c", COMPILERS]);
        let here = said(bash.current_dir(self.repository.top()))?;
        let are_equal = there.is_ok_and(|there| there == here);
        let release = release.number();
        Ok((!are_equal).then(|| format!("Debian {release} has other compilers than this machine")))
    }

    /// Builds here, and compares with the programs that root has built there.
    fn programs_as_here(&self, machine: &Machine, log: &mut Log) -> Result<i32> {
        let mut make = Command::new("make");
        make.arg("build").current_dir(self.repository.top());
        let status = log.run(make)?;
        if status != 0 {
            return Ok(status);
        }
        let clone = machine.clone_of(Who::Root);
        let there = clone.join("userspace/target/release");
        let programs = self.args.targets.programs();
        let differences = programs::differences(programs, &self.built, &there);
        for difference in &differences {
            log.note(difference)?;
        }
        Ok(i32::from(!differences.is_empty()))
    }
}

/// Returns the command that a user is told, if it is exactly one.
fn told(log: &str) -> Option<&str> {
    let mut commands = log.lines().filter(|line| line.starts_with("sudo "));
    let command = commands.next()?;
    commands.next().is_none().then_some(command)
}

/// Returns the command for root, without questions.
fn as_root(command: &str) -> String {
    let command = command.replace("sudo ", "");
    format!("export DEBIAN_FRONTEND=noninteractive; {command} -y")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_told_exactly_one_command() {
        let install = "sudo apt-get update && sudo apt-get install --no-install-recommends git";
        let log = format!("setup-host: packages are missing\n{install}\nmake: *** Error 1\n");
        assert_eq!(told(&log), Some(install));
        assert_eq!(told(&log.repeat(2)), None);
        assert_eq!(told("run sudo make\nsudoers\n"), None);
        assert_eq!(
            as_root(install),
            "export DEBIAN_FRONTEND=noninteractive; \
             apt-get update && apt-get install --no-install-recommends git -y"
        );
    }
}
