//! `sfs_release crates`: the crates that `cargo install scx_sfs` needs, as they would be published,
//! and built from the packaged files alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use clap::Args;
use sfs_jobs::job;
use sfs_jobs::progress::Progress;

use crate::programs::bpf_object;
use crate::repository::Repository;
use crate::{crates, output_folder};

/// The crate that is installed.
const INSTALLED: &str = "scx_sfs";
/// The crate with the kernel half.
const WITH_BPF: &str = "sfs_bpf";

/// The command line of `sfs_release crates`.
#[derive(Args, Debug)]
pub struct CratesArgs {
    /// The folder for the crates
    #[arg(long, value_name = "FOLDER", default_value = "out/crates")]
    to: PathBuf,
    /// Only package them, without building from them
    #[arg(long)]
    no_build: bool,
}

/// Packages the crates, builds them from that alone, and returns their paths, in the order of
/// their names.
///
/// # Errors
///
/// A crate cannot be packaged or built; cargo has said why. Or the kernel half comes to other bytes
/// than in the repository.
pub fn run(workspace: &Path, args: &CratesArgs) -> Result<Vec<PathBuf>> {
    let own = crates::of(workspace, &[INSTALLED])?;
    let own: Vec<_> = own.into_iter().filter(|one| one.is_own).collect();
    // Apart from the other builds, and kept: the second time only what has changed is built.
    let target = std::path::absolute(output_folder(workspace))?.with_file_name("crates");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo
        .current_dir(workspace)
        .args(["package", "--quiet", "--locked"]);
    cargo.arg("--target-dir").arg(&target);
    if !Repository::around(workspace)?.is_clean()? {
        Progress::new("crates").say("uncommitted changes are packaged as well");
        cargo.arg("--allow-dirty");
    }
    if args.no_build {
        cargo.arg("--no-verify");
    }
    for one in &own {
        cargo.args(["--package", &one.name]);
    }
    ensure!(
        job::run(&mut cargo)? == 0,
        "cargo package fails; its messages are above"
    );
    if !args.no_build {
        compare(&output_folder(workspace), &target.join("debug"))?;
    }
    fs::create_dir_all(&args.to).with_context(|| format!("cannot make {}", args.to.display()))?;
    let packed = own.iter().map(|one| {
        let name = format!("{}-{}.crate", one.name, one.version);
        let (from, to) = (target.join("package").join(&name), args.to.join(&name));
        fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        Ok(to)
    });
    packed.collect()
}

/// Checks that the BPF objects of two builds are the same.
fn compare(one: &Path, other: &Path) -> Result<()> {
    let [one, other] = [one, other].map(|build| {
        let path = bpf_object(build, WITH_BPF);
        fs::read(&path).with_context(|| format!("cannot read {}; run make first", path.display()))
    });
    ensure!(
        one? == other?,
        "the kernel half that is built from the packaged files is another one"
    );
    Ok(())
}
