//! `sfs_release crates`: the crates that `cargo install scx_sfs` needs, as they would be published,
//! and built from the packaged files alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use clap::Args;
use sfs_jobs::job;
use sfs_jobs::progress::Progress;

use crate::crates::Crate;
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
    // Apart from the other builds.
    let target = std::path::absolute(output_folder(workspace))?.with_file_name("crates");
    forget(&own, &target, &unpacked()?)?;
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

/// The folder into which cargo unpacks crates.
fn unpacked() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let home = home.context("there is no home folder; set CARGO_HOME")?;
    Ok(home.join("registry/src"))
}

/// Removes what earlier runs have built in `target` and unpacked in `unpacked`. cargo takes a
/// version of a crate for unchangeable, also in the registry that it makes for the time of
/// packaging, so it would build from the files of the first run for ever.
fn forget(own: &[Crate], target: &Path, unpacked: &Path) -> Result<()> {
    let mut stale = vec![target.to_owned()];
    for registry in fs::read_dir(unpacked).into_iter().flatten().flatten() {
        // Names of registries begin with their host, which one in a folder does not have.
        if registry.file_name().as_encoded_bytes().starts_with(b"-") {
            let folder = |one: &Crate| {
                registry
                    .path()
                    .join(format!("{}-{}", one.name, one.version))
            };
            stale.extend(own.iter().map(folder));
        }
    }
    for folder in stale.iter().filter(|folder| folder.exists()) {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_packaged_here_is_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        let [target, unpacked] = ["crates", "src"].map(at);
        let folders = [
            "crates/debug",
            "src/-0123/sfs_policy-0.1.0",
            "src/-0123/sfs_policy-0.2.0",
            "src/-0123/other-0.1.0",
            "src/registry.example-0123/sfs_policy-0.1.0",
        ];
        for folder in folders {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let own = [Crate {
            name: "sfs_policy".into(),
            version: "0.1.0".into(),
            licence: String::new(),
            is_own: true,
        }];
        forget(&own, &target, &unpacked).unwrap();
        let left = folders.map(|folder| at(folder).exists());
        assert_eq!(left, [false, false, true, true, true]);
        forget(&own, &target, &at("nothing")).unwrap();
    }
}
