//! A bare machine: a root file system, and commands inside it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{ensure, Context, Result};
use sfs_jobs::job::Job;
use sfs_jobs::signals::Interrupt;

/// The machine's first process.
const BOOT: &str = include_str!("boot.sh");

/// The ordinary user, and their group.
pub const USER_ID: u32 = 1000;
/// The ordinary user's home.
pub const USER_HOME: &str = "home/user";
/// Root's home.
pub const ROOT_HOME: &str = "root";
/// Where the machine has Rust. `boot.sh` mounts it there.
pub const RUST: &str = "opt/rust";

/// Who gives a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Root.
    Root,
    /// Root, without a network.
    Offline,
    /// An ordinary user.
    User,
}

impl Who {
    /// Returns their home, from the root of the file system.
    pub fn home(self) -> &'static str {
        match self {
            Self::Root | Self::Offline => ROOT_HOME,
            Self::User => USER_HOME,
        }
    }

    /// Returns their user and group.
    pub fn id(self) -> u32 {
        match self {
            Self::Root | Self::Offline => 0,
            Self::User => USER_ID,
        }
    }
}

/// A root file system, with the clone in the home of its only user.
pub struct Machine<'a> {
    root: PathBuf,
    rust: &'a Path,
}

impl<'a> Machine<'a> {
    /// The file system in the folder `root`, with the Rust in the folder `rust` of this machine.
    pub fn new(root: PathBuf, rust: &'a Path) -> Self {
        Self { root, rust }
    }

    /// Returns where the file system is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns where the clone of `who` is.
    pub fn clone_of(&self, who: Who) -> PathBuf {
        self.root.join(who.home()).join("scx_sfs")
    }

    /// Returns the command that runs the shell command `text` inside, in the home of `who`.
    pub fn command(&self, who: Who, text: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child"]);
        command.args(["--propagation", "private"]);
        if who == Who::Offline {
            command.arg("--net");
        }
        command.args(["bash", "-c", BOOT, "boot"]);
        command.args([&self.root, self.rust]);
        command.args([&who.id().to_string(), &format!("/{}", who.home()), text]);
        command.stdin(Stdio::null());
        command
    }

    /// Runs the shell command `text` inside. Returns its output.
    ///
    /// # Errors
    ///
    /// It cannot be started, or fails.
    pub fn said(&self, who: Who, text: &str) -> Result<String> {
        said(&mut self.command(who, text))
    }

    /// Returns the names of the installed packages, in dpkg's order.
    ///
    /// # Errors
    ///
    /// dpkg's list cannot be read.
    pub fn packages(&self) -> Result<Vec<String>> {
        let list = self.root.join("var/lib/dpkg");
        let mut dpkg = Command::new("dpkg-query");
        dpkg.arg("--admindir").arg(list);
        let names = said(dpkg.args(["-W", "-f", "${Package}\n"]))?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Returns how much root's commands have fetched by themselves, in MiB.
    pub fn fetched(&self) -> String {
        let home = self.root.join(ROOT_HOME);
        format!(
            "Rust crates {} MiB, kernel and QEMU {} MiB",
            size_of(&home.join(".cargo/registry/cache")),
            size_of(&self.clone_of(Who::Root).join(".cache"))
        )
    }

    /// Removes the file system.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub fn remove(&self, interrupt: &Interrupt) -> Result<()> {
        let mut rm = Command::new("rm");
        rm.args(["-rf", "--one-file-system", "--"]).arg(&self.root);
        finish(&mut rm, interrupt)
    }
}

/// Returns the size of a folder in MiB, rounded up; 0 if it does not exist.
fn size_of(folder: &Path) -> u64 {
    let output = Command::new("du").arg("-sm").arg(folder).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let size = text.split_whitespace().next();
    size.and_then(|size| size.parse().ok()).unwrap_or(0)
}

/// Returns the command that gives a folder, and all that is in it, to a user and their group.
pub fn chown(folder: &Path, id: u32) -> Command {
    let mut command = Command::new("chown");
    command
        .args(["-R", &format!("{id}:{id}"), "--"])
        .arg(folder);
    command
}

/// Runs a command to its end; its errors are shown. Returns its output.
///
/// # Errors
///
/// It cannot be started, or fails.
pub fn said(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_owned();
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", name.display()))?;
    ensure!(
        output.status.success(),
        "{} failed ({}); see above",
        name.display(),
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command to its end; its output is shown.
///
/// # Errors
///
/// It cannot be started, or fails, or a signal asks this program to end.
pub fn finish(command: &mut Command, interrupt: &Interrupt) -> Result<()> {
    let name = command.get_program().to_owned();
    let status = Job::start(command)?.wait(interrupt)?;
    ensure!(
        status == 0,
        "{} failed with exit status {status}; see above",
        name.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn commands_are_those_of_who_gives_them() {
        let machine = Machine::new("/r".into(), Path::new("/rust"));
        for (who, id, home, offline) in [
            (Who::Root, "0", "/root", false),
            (Who::Offline, "0", "/root", true),
            (Who::User, "1000", "/home/user", false),
        ] {
            let command = machine.command(who, "make demo");
            let arguments: Vec<_> = command
                .get_args()
                .map(|one| one.to_str().unwrap())
                .collect();
            assert!(arguments.ends_with(&["boot", "/r", "/rust", id, home, "make demo"]));
            assert_eq!(arguments.contains(&"--net"), offline);
        }
    }

    #[test]
    fn packages_are_those_of_the_file_system() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::new(root.path().into(), Path::new("/"));
        let list = root.path().join("var/lib/dpkg");
        if sfs_jobs::tree::in_path("dpkg-query").is_none() {
            sfs_skip::skip!("no dpkg-query here");
        }
        fs::create_dir_all(&list).unwrap();
        let entry = |name| {
            format!("Package: {name}\nStatus: install ok installed\nVersion: 1\nArchitecture: all\nMaintainer: n\nDescription: d\n\n")
        };
        fs::write(list.join("status"), entry("make") + &entry("git")).unwrap();
        assert_eq!(machine.packages().unwrap(), ["git", "make"]);
    }

    #[test]
    fn what_was_fetched_is_counted() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::new(root.path().into(), Path::new("/"));
        let nothing = "Rust crates 0 MiB, kernel and QEMU 0 MiB";
        assert_eq!(machine.fetched(), nothing);
        let cache = root.path().join("root/scx_sfs/.cache");
        fs::create_dir_all(&cache).unwrap();
        fs::write(cache.join("kernel"), vec![1; 3 << 20]).unwrap();
        let fetched = machine.fetched();
        let size = fetched.rsplit(' ').nth(1).unwrap();
        assert!(["3", "4"].contains(&size), "{fetched}");
        assert!(fetched.starts_with("Rust crates 0 MiB, "), "{fetched}");
        machine.remove(&Interrupt::default()).unwrap();
        assert!(!root.path().exists());
    }

    #[test]
    fn failures_have_the_name_of_the_program() {
        let sh = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        assert_eq!(said(&mut sh("echo a; echo b")).unwrap(), "a\nb\n");
        let error = said(&mut sh("exit 3")).unwrap_err().to_string();
        assert!(error.starts_with("sh failed"), "{error}");
        let interrupt = Interrupt::default();
        let error = finish(&mut sh("exit 3"), &interrupt)
            .unwrap_err()
            .to_string();
        assert!(error.contains("exit status 3"), "{error}");
        finish(&mut sh("true"), &interrupt).unwrap();
    }
}
