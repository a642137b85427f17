//! The model, built with the kernel half as a shared library, and variants of this library.

use anyhow::{bail, ensure, Context, Result};
use sfs_jobs::tree::Tree;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use tempfile::TempDir;

/// The library that the program loads.
pub const LIBRARY: &str = "libkernel_half.so";
/// The folder of the kernel half, from the root of the repository.
const KERNEL_HALF: &str = "scheds/sfs_bpf";
/// The crate that compiles the kernel half.
const KERNEL_MODEL: &str = "userspace/sfs_kernel_model";
/// The crates of the model. The last one has the program.
const CRATES: [&str; 5] = [
    "userspace/sfs_fibers",
    "userspace/sfs_kernel_objects",
    KERNEL_MODEL,
    "userspace/sfs_kernel_rules",
    "userspace/sfs_model",
];

/// The model.
#[derive(Debug)]
pub struct Model {
    /// The program `sfs_model`. It runs with any library of a variant.
    pub program: PathBuf,
    /// The folder for variants.
    pub folder: PathBuf,
    /// The folder with the sources of the kernel half.
    pub half: PathBuf,
    /// Folders with headers that come before those of the model.
    pub headers: Vec<PathBuf>,
    /// The command that compiles the kernel half, without the output.
    command: Vec<String>,
    /// The folder in which it runs.
    crate_folder: PathBuf,
    sources: [PathBuf; CRATES.len()],
}

impl Model {
    /// Builds the program. `half` is another folder with sources of the kernel half than that of
    /// the repository.
    ///
    /// # Errors
    /// If cargo fails.
    pub fn build(tree: &Tree, half: Option<&Path>) -> Result<Self> {
        let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
        let folder = tree.at("userspace").join(target).join("variants");
        let clean = folder.join("clean");
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(tree.at("userspace"))
            .args([
                "build",
                "--quiet",
                "--release",
                "--locked",
                "-p",
                "sfs_model",
            ])
            .arg("--target-dir")
            .arg(folder.join("build"))
            .env("SFS_MODEL_SHARED", &clean);
        let status = cargo.status().context("cannot run cargo")?;
        ensure!(status.success(), "cargo cannot build the model: {status}");
        let command = fs::read_to_string(clean.join("command"))
            .context("sfs_kernel_model's build has not written the command that compiles it")?;
        let half = match half {
            Some(half) => fs::canonicalize(half)
                .with_context(|| format!("there is no folder {}", half.display()))?,
            None => tree.at(KERNEL_HALF),
        };
        Ok(Self {
            program: folder.join("build/release/sfs_model"),
            folder,
            half,
            headers: Vec::new(),
            command: command.lines().map(str::to_owned).collect(),
            crate_folder: tree.at(KERNEL_MODEL),
            sources: CRATES.map(|path| tree.at(path).join("src")),
        })
    }

    /// The compiler.
    #[must_use]
    pub fn clang(&self) -> &str {
        &self.command[0]
    }

    /// The files and folders of the model's sources.
    #[must_use]
    pub fn sources(&self) -> Vec<PathBuf> {
        let parts = ["build.rs", "c"].map(|part| self.crate_folder.join(part));
        parts.into_iter().chain(self.sources.clone()).collect()
    }

    /// A folder for a variant, which goes with the returned value.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn scratch(&self) -> Result<TempDir> {
        tempfile::tempdir_in(&self.folder)
            .with_context(|| format!("cannot make a folder in {}", self.folder.display()))
    }

    /// Compiles the kernel half in the folder `half` into a library in the folder `to`, with more
    /// flags. Returns what clang says if it does not compile.
    ///
    /// # Errors
    /// If clang does not run.
    pub fn compile(&self, half: &Path, flags: &[&str], to: &Path) -> Result<Option<String>> {
        fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
        let output = Command::new(self.clang())
            .current_dir(&self.crate_folder)
            // The first folder that has a header counts.
            .args(
                self.headers
                    .iter()
                    .chain([&half.to_path_buf()])
                    .flat_map(|folder| [OsString::from("-I"), folder.as_os_str().to_owned()]),
            )
            .args(&self.command[1..])
            .args(["-shared", "-fPIC", "-o"])
            .arg(to.join(LIBRARY))
            .args(flags)
            .output()
            .with_context(|| format!("cannot run {}", self.clang()))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((!output.status.success()).then_some(said))
    }

    /// The same for sources that have to compile.
    ///
    /// # Errors
    /// If they do not.
    pub fn compile_all(&self, flags: &[&str], to: &Path) -> Result<()> {
        if let Some(said) = self.compile(&self.half, flags, to)? {
            bail!("the kernel half does not compile with {flags:?}:\n{said}");
        }
        Ok(())
    }

    /// The source files of the kernel half, by name, in order.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn files(&self) -> Result<Vec<(String, String)>> {
        let entries = fs::read_dir(&self.half)
            .with_context(|| format!("cannot read {}", self.half.display()))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with(".h") || name.ends_with(".c") {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                files.push((name.into_owned(), text));
            }
        }
        files.sort();
        Ok(files)
    }
}

/// The commit of the repository, with a `+` if the sources have changes, for reports.
#[must_use]
pub fn commit(tree: &Tree) -> String {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let output = command.current_dir(tree.root()).args(arguments).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changes = [&["status", "--porcelain", "--", KERNEL_HALF][..], &CRATES].concat();
    let Some(commit) = git(&["rev-parse", "--short=9", "HEAD"]) else {
        return "an unknown commit".to_owned();
    };
    match git(&changes) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit}+"),
    }
}
