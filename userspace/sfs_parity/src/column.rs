//! A column: a scheduler, and how it is started in a guest.

use super::archives::Archives;
use anyhow::{Context, Result};
use sfs_jobs::failure::refuse;
use sfs_jobs::tree::Tree;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Where functions are, for scx_sfs.
const FUNCTIONS: &str = "--cgroup functions/*";

/// The column of the kernel's own scheduler.
pub const EEVDF: &str = "eevdf";

/// Policies of scx_sfs.
const POLICIES: [&str; 3] = ["sfs", "learned", "fair"];

/// How many characters of a digest are kept.
const DIGITS: usize = 12;

/// Whether a column's scheduler is one of those that `make peers` builds.
pub fn is_peer(name: &str) -> bool {
    name != EEVDF && !POLICIES.contains(&name)
}

/// A scheduler.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name in the table.
    pub name: String,
    /// Its program, from the repository's root; none for EEVDF.
    pub program: Option<PathBuf>,
}

impl Column {
    /// The column of this name.
    ///
    /// # Errors
    /// If its program has not been built.
    pub fn find(tree: &Tree, release: &Path, name: &str) -> Result<Self> {
        let program = match name {
            EEVDF => None,
            _ if is_peer(name) => Some(tree.peers().join(name)),
            _ => Some(release.join("scx_sfs")),
        };
        if is_peer(name) && (name.contains('/') || !tree.is_program(tree.peers().join(name))) {
            let folder = tree.peers().display();
            refuse!("there is no scheduler '{name}' in {folder}; make peers NAME={name} builds it if it is one");
        }
        Ok(Self {
            name: name.to_string(),
            program,
        })
    }

    /// The program that the guest runs, or `eevdf`.
    pub fn scheduler(&self) -> String {
        let name = self.program.as_deref().and_then(Path::file_name);
        name.map_or_else(|| EEVDF.into(), |name| name.to_string_lossy().into_owned())
    }

    /// The options of the program. Only scx_sfs can be told where functions are.
    pub fn options(&self, with_load: bool) -> String {
        if !POLICIES.contains(&self.name.as_str()) {
            return String::new();
        }
        let functions = if with_load { FUNCTIONS } else { "" };
        format!("--policy {} {functions}", self.name)
            .trim()
            .to_string()
    }

    /// A digest of what the column's results depend on.
    ///
    /// # Errors
    /// If a program cannot be read.
    pub fn made_of(&self, tree: &Tree, release: &Path, archives: &Archives) -> Result<String> {
        let files = self.program.iter().cloned();
        let mut sum = Sha256::new();
        for path in files.chain(["sfs_guest", "sfs_crowd"].map(|name| release.join(name))) {
            let bytes = std::fs::read(tree.at(&path));
            sum.update(bytes.with_context(|| format!("cannot read {}", path.display()))?);
        }
        let name = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        // The name of an archive stands for what is in it.
        let names = format!("{} {}\n", name(&archives.stress), name(&archives.servers));
        sum.update(names);
        let digest = sum.finalize();
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(digits[..DIGITS].to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str) -> Column {
        let tree = Tree::new(env!("CARGO_MANIFEST_DIR"), None);
        Column::find(&tree, Path::new("bin"), name).unwrap()
    }

    #[test]
    fn policies_are_options() {
        assert_eq!(column("eevdf").options(true), "");
        assert_eq!(
            column("sfs").options(true),
            "--policy sfs --cgroup functions/*"
        );
        assert_eq!(column("fair").options(false), "--policy fair");
        let learned = column("learned");
        assert_eq!(
            learned.options(true),
            "--policy learned --cgroup functions/*"
        );
        assert_eq!(learned.scheduler(), "scx_sfs");
    }

    #[test]
    fn a_digest_tells_programs_apart() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("bin/sfs_guest", "guest\n");
        write("bin/sfs_crowd", "crowd\n");
        write("bin/scx_sfs", "one\n");
        let tree = Tree::new(root.path(), None);
        let archives = Archives {
            stress: "/cache/a.tar".into(),
            servers: "b.tar".into(),
        };
        let digest = |name: &str| {
            let bin = Path::new("bin");
            let column = Column::find(&tree, bin, name).unwrap();
            column.made_of(&tree, bin, &archives).unwrap()
        };
        // printf 'one\nguest\ncrowd\na.tar b.tar\n' | sha256sum | cut -c 1-12
        assert_eq!(digest("sfs"), "e795ede228e4");
        assert_eq!(digest("fair"), digest("sfs"));
        let eevdf = digest("eevdf");
        write("bin/scx_sfs", "another\n");
        assert_ne!(digest("sfs"), "e795ede228e4");
        assert_eq!(digest("eevdf"), eevdf);
    }
}
