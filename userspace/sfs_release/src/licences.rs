//! The licences of the crates that the programs are linked with, and their texts.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use sha2::{Digest, Sha256};

use crate::crates::{self, Crate};
use crate::INSTALLED;

const HEAD: &str = "\
scx_sfs, sfs_advise, faasbench and sfs_waste are licensed by the GNU General Public
License, version 2 (LICENSE beside this file). This is what they are linked with: each crate, its licence by
its manifest, and the texts that come with it. Where there is a choice, it has been made
as userspace/deny.toml says.

";
const RULE: &str =
    "--------------------------------------------------------------------------------";

/// The texts so far. Each is there once, with a number.
#[derive(Default)]
struct Texts {
    numbers: HashMap<Vec<u8>, usize>,
    all: String,
}

impl Texts {
    /// Adds the text in `path`, a file in the `folder` of the crate `name`, if it is new; returns
    /// its number.
    fn add(&mut self, path: &Path, folder: &Path, name: &str) -> Result<usize> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let next = self.numbers.len() + 1;
        let number = *self
            .numbers
            .entry(Sha256::digest(&text).to_vec())
            .or_insert(next);
        if number == next {
            let within = path.strip_prefix(folder).unwrap_or(path).display();
            let text = String::from_utf8_lossy(&text);
            write!(
                self.all,
                "{RULE}\nText {number} ({within} of {name})\n\n{text}\n"
            )?;
        }
        Ok(number)
    }
}

/// Returns the licences of all crates that the programs are linked with, and the texts that come
/// with the crates in the folder `unpacked`, or where cargo has unpacked them.
///
/// # Errors
///
/// A crate is not there, or has neither a text nor a licence by its manifest. All such crates are
/// named.
pub fn collect(workspace: &Path, unpacked: Option<&Path>) -> Result<String> {
    let (mut head, mut texts, mut wrong) = (HEAD.to_owned(), Texts::default(), Vec::new());
    for one in crates::of(workspace, &INSTALLED)?
        .iter()
        .filter(|one| !one.is_own)
    {
        match describe(one, unpacked, &mut texts) {
            Ok(line) => head.push_str(&line),
            Err(error) => wrong.push(format!("{error:#}")),
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(head + &texts.all)
}

/// Returns a line with the licence of a crate and the numbers of its texts.
fn describe(one: &Crate, unpacked: Option<&Path>, texts: &mut Texts) -> Result<String> {
    let (name, version) = (&one.name, &one.version);
    let folder = folder_of(one, unpacked)
        .with_context(|| format!("{name} {version} is not where cargo unpacks crates"))?;
    let mut numbers = String::new();
    for path in texts_in(&folder)? {
        write!(numbers, " {}", texts.add(&path, &folder, name)?)?;
    }
    let licence = match one.licence.as_str() {
        "" if numbers.is_empty() => bail!("{name} {version} says nothing of its licence"),
        "" => "see there",
        licence => licence,
    };
    let words = match numbers.as_str() {
        "" => "no text of its own".to_owned(),
        numbers => format!("text{numbers}"),
    };
    Ok(format!("{name} {version}: {licence}; {words}\n"))
}

/// Returns the folder of a crate.
fn folder_of(one: &Crate, unpacked: Option<&Path>) -> Option<PathBuf> {
    let name = format!("{}-{}", one.name, one.version);
    if let Some(unpacked) = unpacked {
        return Some(unpacked.join(name)).filter(|folder| folder.is_dir());
    }
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    let folders = registries.filter_map(|entry| Some(entry.ok()?.path().join(&name)));
    folders.filter(|folder| folder.is_dir()).min()
}

/// Returns the licence texts in a crate's folder and the folders in that, in order.
fn texts_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = |folder: &Path| {
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))
    };
    for entry in entries(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            for entry in entries(&path)? {
                found.push(entry?.path());
            }
        } else {
            found.push(path);
        }
    }
    found.retain(|path| path.is_file() && is_licence(path));
    found.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    Ok(found)
}

/// Returns true if the name is one of those that licences have.
fn is_licence(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let begins = ["license", "licence", "copying", "unlicense", "notice"];
    let is_code = name.ends_with(".rs") || name.ends_with(".toml");
    begins.iter().any(|begin| name.starts_with(begin)) && !is_code
}
