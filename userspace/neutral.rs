//! For build scripts that compile BPF programs: the same sources come to the same bytes,
//! wherever the project lies.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tempfile::TempDir;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The compiler's options before those of scx_cargo, as scx_cargo reads them.
const OPTIONS: &str = "BPF_EXTRA_CFLAGS_PRE_INCL";

/// The build's results, below the package.
const OUT: &str = "out";

/// The workspace's folder in the repository.
const WORKSPACE: &str = "userspace";

/// A folder in which the package and its results seem to lie while they are built.
///
/// To give clang other names for the paths (`-ffile-prefix-map`) is not enough, and neither
/// are relative ones, or links: clang 19 writes some types in the order of their addresses,
/// and these depend on how long the true paths are of what it reads. The kernel loads the
/// types, so that it takes other nanoseconds.
pub struct Neutral {
    folder: TempDir,
    package: PathBuf,
    out: PathBuf,
}

impl Neutral {
    /// Goes to a new folder that has a copy of the files in `sources` in the place `as_seen`,
    /// both from the package's point of view. From then on what is built goes there as well.
    /// The package lies there as in the repository, also if cargo has unpacked it elsewhere.
    pub fn enter(sources: &str, as_seen: &str) -> Result<Self> {
        let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
        let place = Path::new(WORKSPACE).join(env::var("CARGO_PKG_NAME")?);
        let folder = TempDir::new()?;
        let inside = folder.path().canonicalize()?.join(&place);
        fs::create_dir_all(inside.join(OUT))?;
        copy_files(&package.join(sources), &inside.join(as_seen))?;
        env::set_current_dir(&inside)?;
        let out = PathBuf::from(env::var("OUT_DIR")?);
        env::set_var("OUT_DIR", OUT);
        let others = env::var(OPTIONS).unwrap_or_default();
        let here = format!("-fdebug-compilation-dir=/scx_sfs/{}", place.display());
        env::set_var(OPTIONS, format!("{others} {here}"));
        Ok(Self {
            folder,
            package: inside,
            out,
        })
    }

    /// Takes the results to where cargo wants them. `skeleton`, one of them, names others by
    /// their paths: names alone will do, as they are in the same folder.
    pub fn leave(self, skeleton: &str) -> Result<()> {
        let out = self.package.join(OUT);
        copy_files(&out, &self.out)?;
        let skeleton = self.out.join(skeleton);
        let folder = format!("{}/", out.display());
        let text = fs::read_to_string(&skeleton)?;
        fs::write(&skeleton, text.replace(&folder, ""))?;
        Ok(self.folder.close()?)
    }
}

/// Copies the files of a folder, without what is in folders below.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name()) {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}
