//! The files that a guest is given: what `packaging/install.sh` installs, and this program.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use sfs_jobs::failure::refuse;
use sfs_jobs::job;
use sfs_jobs::tree::Tree;

use crate::part::{PACKAGES, PROGRAM, VERSIONS};

/// The programs that are installed, each with its bill of materials.
const INSTALLED: [&str; 4] = ["scx_sfs", "sfs_advise", "faasbench", "sfs_waste"];

/// What else is installed, from the root of the repository and in the stage.
const DOCUMENTS: [&str; 3] = ["LICENSE", "docs/runbook.md", "docs/monitoring.md"];

/// Fills the folder `stage`, which does not exist yet.
///
/// # Errors
///
/// A program is not built (bad usage), or a file cannot be copied.
pub fn fill(tree: &Tree, stage: &Path) -> Result<()> {
    let built = stage.join("built");
    for folder in ["built", "docs", "packaging"] {
        fs::create_dir_all(stage.join(folder)).context("cannot make a folder for the guest")?;
    }
    for document in DOCUMENTS {
        copy(&tree.at(document), &stage.join(document))?;
    }
    copy_tree(&tree.at("packaging"), &stage.join("packaging"))?;
    for name in INSTALLED {
        copy_built(tree, name, &built)?;
        strip(&built.join(name))?;
        copy_built(tree, &format!("{name}.cdx.json"), &built)?;
    }
    copy_built(tree, "licences.txt", &built)?;
    copy_tree(&tree.at(tree.release()).join("share"), &built.join("share"))?;
    let this = env::current_exe().context("cannot tell where this program is")?;
    let program = stage.join(PROGRAM);
    copy(&this, &program)?;
    strip(&program)
}

/// Makes the packages of the part `package`: the same programs in two versions.
///
/// # Errors
///
/// A package cannot be made; the program has said why.
pub fn packages(tree: &Tree, stage: &Path) -> Result<()> {
    let to = stage.join(PACKAGES);
    for version in VERSIONS {
        let mut make = Command::new(tree.at(tree.program("sfs_release")));
        make.arg("--workspace").arg(tree.at("userspace"));
        make.args(["deb", "--version", version, "--to"]).arg(&to);
        let status = job::run(make.stdout(std::process::Stdio::null()))?;
        ensure!(status == 0, "cannot make a package of version {version}");
    }
    Ok(())
}

/// Copies a file that make builds.
fn copy_built(tree: &Tree, name: &str, into: &Path) -> Result<()> {
    let path = tree.at(tree.release()).join(name);
    if !path.is_file() {
        refuse!("{} is not built; run make first", path.display());
    }
    copy(&path, &into.join(name))
}

/// Copies a folder with everything in it, if it exists; without it, the installation says so.
fn copy_tree(from: &Path, into: &Path) -> Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(into).context("cannot make a folder for the guest")?;
    copy_files(from, into)?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &into.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Copies all files of a folder.
fn copy_files(from: &Path, into: &Path) -> Result<()> {
    for path in files(from).with_context(|| format!("cannot list {}", from.display()))? {
        if let Some(name) = path.file_name() {
            copy(&path, &into.join(name))?;
        }
    }
    Ok(())
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let paths = paths.collect::<std::io::Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.is_file()).collect())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = fs::copy(from, to);
    copied.with_context(|| format!("cannot copy {} for the guest", from.display()))?;
    Ok(())
}

/// Removes symbols: the guest's memory holds the program twice.
fn strip(program: &Path) -> Result<()> {
    let status = job::run(Command::new("strip").arg(program))?;
    ensure!(status == 0, "cannot strip {}", program.display());
    Ok(())
}
