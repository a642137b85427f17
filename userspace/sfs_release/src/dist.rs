//! `sfs_release dist`: the sources of a commit as one archive, with what belongs to a release: bills
//! of materials, licences, checksums.
//!
//! The same commit gives the same files, to the byte: git writes the archive, with the time of the
//! commit, and no other time is in any file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use clap::Args;
use sfs_jobs::progress::Progress;
use sha2::{Digest, Sha256};

use crate::repository::Repository;
use crate::{bill, licences, write_whole, INSTALLED};

/// The file with the checksums, as sha256sum reads it.
const SUMS: &str = "SHA256SUMS";

/// The command line of `sfs_release dist`.
#[derive(Args, Debug)]
pub struct DistArgs {
    /// The folder for the release, below which each version has its own
    #[arg(long, value_name = "FOLDER", default_value = "out")]
    to: PathBuf,
}

/// Makes the release of the commit that is checked out, and returns its folder.
///
/// # Errors
///
/// There is no repository, or a file cannot be made.
pub fn run(workspace: &Path, args: &DistArgs) -> Result<PathBuf> {
    let repository = Repository::around(workspace)?;
    let commit = repository.commit("HEAD")?;
    if !repository.is_clean()? {
        Progress::new("dist").say(&format!(
            "uncommitted changes are left out; this is commit {}",
            &commit[..7]
        ));
    }
    let name = format!("scx_sfs-{}", env!("CARGO_PKG_VERSION"));
    let folder = args.to.join(&name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let archive = format!("{name}.tar.gz");
    repository.archive(&commit, &format!("{name}/"), &folder.join(&archive))?;
    let mut files = vec![archive];
    for program in INSTALLED {
        let file = format!("{program}.cdx.json");
        write_whole(&folder.join(&file), &bill::of(workspace, program)?)?;
        files.push(file);
    }
    let file = "licences.txt".to_owned();
    write_whole(&folder.join(&file), &licences::collect(workspace, None)?)?;
    files.push(file);
    write_whole(&folder.join(SUMS), &sums(&folder, &files)?)?;
    Ok(folder)
}

/// Returns a line for each file: its checksum and its name.
fn sums(folder: &Path, files: &[String]) -> Result<String> {
    let mut text = String::new();
    for file in files {
        let path = folder.join(file);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if bytes.is_empty() {
            bail!("{} is empty", path.display());
        }
        let sum: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        text += &format!("{sum}  {file}\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_sha256sum_and_files_are_not_empty() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "abc").unwrap();
        let text = sums(folder.path(), &["a".to_owned()]).unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(text, format!("{sum}  a\n"));
        fs::write(folder.path().join("b"), "").unwrap();
        sums(folder.path(), &["b".to_owned()]).unwrap_err();
        sums(folder.path(), &["c".to_owned()]).unwrap_err();
    }
}
