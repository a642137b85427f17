//! What is delivered with the installed programs: the licences of the crates that they are linked
//! with, and a bill of materials of each. `make build` writes both beside the programs that cargo
//! has built, without a network; `make install` installs them. What is newer than
//! `userspace/Cargo.lock` is not written anew.

mod bill;
mod crates;
mod licences;

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use tempfile::NamedTempFile;

/// The programs that `make install` installs.
const INSTALLED: [&str; 3] = ["scx_sfs", "faasbench", "sfs_waste"];

#[derive(Parser)]
#[command(
    about = "Writes what is delivered with scx_sfs, faasbench and sfs_waste",
    version
)]
struct Options {
    /// The folder of the workspace, with Cargo.lock
    #[arg(long, value_name = "FOLDER", default_value = ".", global = true)]
    workspace: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The licence texts of all crates that the programs are linked with, each text once
    ///
    /// They are found where cargo has unpacked the crates.
    Licences {
        /// Write them to licences.txt beside the programs, unless that is up to date
        #[arg(long)]
        write: bool,
        /// The folder with the crates' folders, each NAME-VERSION, if it is not cargo's own
        /// (cargo vendor --versioned-dirs)
        #[arg(long, value_name = "FOLDER", env = "CRATES")]
        crates: Option<PathBuf>,
    },
    /// Writes a bill of materials of each program beside it, as NAME.cdx.json (CycloneDX 1.5)
    ///
    /// It lists the crates that the program is linked with, their versions, licences and
    /// checksums. No time, random number or path is in it: the same sources have the same bill.
    Bom,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let workspace = &options.workspace;
    let out = output_folder(workspace);
    match options.command {
        Command::Licences {
            write: false,
            crates,
        } => {
            let text = licences::collect(workspace, crates.as_deref())?;
            std::io::stdout().write_all(text.as_bytes())?;
        }
        Command::Licences { crates, .. } => {
            let file = out.join("licences.txt");
            if !is_current(workspace, &file) {
                write_whole(&file, &licences::collect(workspace, crates.as_deref())?)?;
            }
        }
        Command::Bom => {
            for program in INSTALLED {
                let file = out.join(format!("{program}.cdx.json"));
                if !is_current(workspace, &file) {
                    write_whole(&file, &bill::of(workspace, program)?)?;
                }
            }
        }
    }
    Ok(())
}

/// Returns the folder into which cargo puts the release build.
fn output_folder(workspace: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target
        .unwrap_or_else(|| workspace.join("target"))
        .join("release")
}

/// Returns true if `file` is newer than what it is made of: the lock file and this program.
fn is_current(workspace: &Path, file: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let sources = [
        modified(&workspace.join("Cargo.lock")),
        std::env::current_exe()
            .ok()
            .and_then(|path| modified(&path)),
    ];
    let made = modified(file);
    made.is_some()
        && sources
            .iter()
            .all(|source| source.is_some() && *source < made)
}

/// Writes `file` whole, or leaves it as it was.
fn write_whole(file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let write = || -> std::io::Result<()> {
        let mut temporary = NamedTempFile::new_in(folder)?;
        temporary.write_all(text.as_bytes())?;
        temporary
            .as_file()
            .set_permissions(Permissions::from_mode(0o644))?;
        temporary.persist(file)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}
