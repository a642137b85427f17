//! What the guest needs to run the platforms: this machine's Python with its standard library,
//! the packages of `vm/platforms/requirements.txt`, and the shared libraries of both.

mod interpreter;
mod libraries;

use crate::cache::{Cache, Locked};
use crate::{say, succeed};
use anyhow::{Context, Result};
use clap::Args;
use interpreter::Interpreter;
use sfs_jobs::failure::Failure;
use sfs_jobs::job::Job;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sha2::{Digest, Sha256};
use std::fs::{self, Permissions};
use std::io::stderr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name in messages.
pub(crate) const NAME: &str = "python-root";

/// The time of all files: 2026-01-01, as in `vm/build-initrd`.
const FILE_TIME: &str = "@1767225600";

/// The packages, from the root of the repository.
const REQUIREMENTS: &str = "vm/platforms/requirements.txt";

/// Parts of the standard library that no server needs, as patterns of tar.
const UNNEEDED: [&str; 16] = [
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "ensurepip",
    "pydoc_data",
    "config-*",
    "site-packages",
    "dist-packages",
    "__pycache__",
    "_tkinter.*",
    "_test*.so",
    "_ctypes_test.*",
    "xx*.so",
];

/// Which Python.
#[derive(Debug, Args)]
pub struct PythonArgs {
    /// Python 3.9 or later with pip, which the guests get
    #[arg(
        long,
        env = "PYTHON",
        value_name = "PROGRAM",
        default_value = "python3"
    )]
    python: String,
}

/// Makes the archive, or finds it in the cache; returns its path.
///
/// # Errors
/// If there is no such Python or it has no pip, if a package cannot be installed, or if a
/// tool fails; and [`Failure::Interrupted`].
pub fn archive(tree: &Tree, args: &PythonArgs, interrupt: &Interrupt) -> Result<PathBuf> {
    let python = Interpreter::find(&args.python)?;
    let requirements = tree.at(REQUIREMENTS);
    let cache = Cache::find(tree)?;
    let archive = cache.at(format!("platforms/{}.tar", key(&python, &requirements)?));
    if !archive.exists() {
        python.check_pip()?;
        let locked = cache.lock(NAME)?;
        let assembly = Assembly {
            python: &python,
            root: locked.staging()?.join("root"),
            interrupt,
        };
        assembly.make(&requirements, &locked, &archive)?;
    }
    Ok(archive)
}

/// What the archive depends on, as 16 hexadecimal digits: it is made anew when the Python, the
/// requirements or this module change.
fn key(python: &Interpreter, requirements: &Path) -> Result<String> {
    let packages = fs::read(requirements);
    let packages = packages.with_context(|| format!("cannot read {}", requirements.display()))?;
    let sum = Sha256::new()
        .chain_update(python.ask("sys.version, sys.base_prefix")?)
        .chain_update(include_str!("mod.rs"))
        .chain_update(include_str!("libraries.rs"))
        .chain_update(packages)
        .finalize();
    Ok(sum[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// An archive in the making.
struct Assembly<'a> {
    python: &'a Interpreter,
    /// The folder that becomes the guest's root.
    root: PathBuf,
    interrupt: &'a Interrupt,
}

impl Assembly<'_> {
    fn make(&self, requirements: &Path, cache: &Locked, archive: &Path) -> Result<()> {
        let version = "f'{sys.version_info[0]}.{sys.version_info[1]}'";
        let stdlib = format!("platform/lib/python{}", self.python.ask(version)?);
        self.copy_stdlib(&self.root.join(stdlib))?;
        let program = fs::canonicalize(self.python.ask("sys.executable")?);
        let program = program.context("cannot tell where Python's program is")?;
        install(&program, &self.root.join("platform/bin/python3"))?;
        self.install_packages(requirements)?;
        for library in libraries::needed(&self.root)? {
            install(&library, &inside(&self.root, &library))?;
        }
        self.strip()?;
        self.compile()?;
        let packed = self.root.with_extension("tar");
        self.pack(&packed)?;
        cache.publish(&packed, archive)
    }

    /// Runs a program to its end; returns its exit status.
    fn run(&self, command: &mut Command) -> Result<i32> {
        Job::start(command)?.wait(self.interrupt)
    }

    fn copy_stdlib(&self, to: &Path) -> Result<()> {
        let stdlib = self.python.ask("sysconfig.get_path('stdlib')")?;
        fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
        let packed = self.root.with_file_name("stdlib.tar");
        let mut pack = Command::new("tar");
        pack.args(["-c", "-f"]).arg(&packed).args(["-C", &stdlib]);
        for pattern in UNNEEDED {
            pack.arg(format!("--exclude={pattern}"));
        }
        succeed("tar", pack.arg("."), self.interrupt)?;
        let mut unpack = Command::new("tar");
        unpack.args(["-x", "-f"]).arg(&packed).arg("-C").arg(to);
        succeed("tar", &mut unpack, self.interrupt)?;
        fs::remove_file(&packed).with_context(|| format!("cannot remove {}", packed.display()))
    }

    /// Without compiling anything: there are wheels for all of it.
    fn install_packages(&self, requirements: &Path) -> Result<()> {
        say(NAME, "installing the platforms with pip into the cache");
        let mut pip = self.python.command();
        pip.env("PIP_ROOT_USER_ACTION", "ignore")
            .args(["-m", "pip", "install", "--quiet", "--no-deps"])
            .args(["--only-binary", ":all:", "--no-compile", "--requirement"])
            .arg(requirements)
            .arg("--target")
            .arg(self.root.join("platform/packages"))
            .stdout(Stdio::from(stderr()));
        match self.run(&mut pip)? {
            0 => Ok(()),
            _ => Err(Failure::Vm(format!(
                "pip could not install {REQUIREMENTS}; look at its message above and run this again"
            ))
            .into()),
        }
    }

    /// Removes what only debuggers need.
    fn strip(&self) -> Result<()> {
        let files = libraries::files(&self.root, |name, _| libraries::is_library(name))?;
        for some in files.chunks(libraries::FILES_AT_ONCE) {
            let mut strip = Command::new("strip");
            strip.arg("--strip-debug").args(some);
            succeed("strip", &mut strip, self.interrupt)?;
        }
        Ok(())
    }

    /// Writes compiled code that is not checked against the time of its source: the guest need
    /// not compile, and the bytes do not depend on when this ran.
    fn compile(&self) -> Result<()> {
        let mut command = self.python.command();
        command
            .args(["-m", "compileall", "-q", "-j", "0"])
            .args(["--invalidation-mode", "unchecked-hash", "-s"])
            .arg(&self.root)
            .args(["-p", "/"])
            .arg(self.root.join("platform"))
            .stdout(Stdio::null());
        if self.run(&mut command)? != 0 {
            say(
                NAME,
                "some modules could not be compiled; the guest will do it",
            );
        }
        Ok(())
    }

    fn pack(&self, to: &Path) -> Result<()> {
        let mut tar = Command::new("tar");
        tar.args(["-c", "-f"])
            .arg(to)
            .arg("-C")
            .arg(&self.root)
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .args([&format!("--mtime={FILE_TIME}"), "."]);
        succeed("tar", &mut tar, self.interrupt)
    }
}

/// The place of a file of the host in a guest's root.
fn inside(root: &Path, file: &Path) -> PathBuf {
    root.join(file.strip_prefix("/").unwrap_or(file))
}

/// Copies a file, and lets everybody execute it.
fn install(from: &Path, to: &Path) -> Result<()> {
    let make = || {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(from, to)?;
        fs::set_permissions(to, Permissions::from_mode(0o755))
    };
    make().with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_keep_their_place() {
        let place = inside(Path::new("/a/root"), Path::new("/lib/x.so"));
        assert_eq!(place, Path::new("/a/root/lib/x.so"));
    }
}
