//! A release's files beside the programs, and checks of its commit. The files are the licences of
//! the crates that the programs are linked with, and a bill of materials of each program: `make
//! build` writes both beside the programs that cargo has built, without a network, and `make
//! install` installs them. Files that are newer than `userspace/Cargo.lock` are not written anew.
//! The checks are the README's commands on bare machines (`make test-fresh`), and two builds of the
//! same commit that are compared to the byte (`make reproducible`).

#![forbid(unsafe_code)]

mod bill;
mod checks;
mod crates;
mod deb;
mod dist;
mod fresh;
mod licences;
mod log;
mod packed;
mod programs;
mod repository;
mod reproducible;

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use sfs_jobs::failure::{self, Failure};
use sfs_jobs::signals::Interrupt;
use tempfile::NamedTempFile;

use checks::Checks;
use deb::DebArgs;
use dist::DistArgs;
use fresh::FreshArgs;
use packed::CratesArgs;

/// The programs that `make install` installs.
const INSTALLED: [&str; 4] = ["scx_sfs", "sfs_advise", "faasbench", "sfs_waste"];

#[derive(Parser)]
#[command(
    about = "Writes what is delivered with the installed programs, and checks commits",
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
    /// Runs the README's commands on bare Debian machines: `make test-fresh`
    ///
    /// A bare machine is a root file system with apt, git, make, certificates and this machine's
    /// Rust, made from this machine's own apt configuration. In each release, an ordinary user
    /// makes the first target, on a separate machine: they are told one command, nothing is
    /// installed and nothing is left in the clone; root gives that command, and the user is not
    /// asked again. Root makes each target, then the first one again without a network. If the
    /// compilers are the same, root has built the same programs as this machine, to the byte.
    ///
    /// Prints the duration of each step, and what it installed and fetched; the output of the steps
    /// is in out/fresh. The last line reads "N passed, N failed, N skipped". The exit status is 1
    /// if a step failed, and 2 if the command line is wrong.
    Fresh(FreshArgs),
    /// Packages the crates that `cargo install scx_sfs` needs, as they would be published, and builds
    /// them from the packaged files alone: `make package-crates`
    ///
    /// Prints their paths. The build is a debug build, in target/crates. Its kernel half must be the
    /// same as that of `make`, to the byte.
    Crates(CratesArgs),
    /// Makes a Debian package of the programs that are built: `make deb`
    ///
    /// It has the programs, the service, configuration, man pages, completions, examples, licences
    /// and bills of materials. Prints its path. The same commit and programs give the same package.
    Deb(DebArgs),
    /// Makes a release of the commit: sources, bills of materials, licences, checksums: `make dist`
    ///
    /// Prints its folder. The same commit gives the same files, to the byte.
    Dist(DistArgs),
    /// Builds the commit in two folders, and compares programs and BPF objects to the byte: `make
    /// reproducible`
    ///
    /// The folders are temporary, with names of different lengths, and each build starts from
    /// nothing: minutes each. Prints checksums, the duration of the builds, and a last line "N
    /// passed, N failed, N skipped". The exit status is 1 if something differs.
    Reproducible,
}

impl Command {
    fn name(&self) -> &'static str {
        match self {
            Self::Licences { .. } => "licences",
            Self::Bom => "bom",
            Self::Crates(_) => "crates",
            Self::Deb(_) => "deb",
            Self::Dist(_) => "dist",
            Self::Fresh(_) => "fresh",
            Self::Reproducible => "reproducible",
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let name = options.command.name();
    let status = execute(options).unwrap_or_else(|error| {
        // Who interrupted it knows.
        if !matches!(error.downcast_ref(), Some(Failure::Interrupted(_))) {
            let _ = writeln!(std::io::stderr(), "{name}: {error:#}");
        }
        failure::status(&error)
    });
    ExitCode::from(status)
}

/// Returns the exit status.
fn execute(options: Options) -> Result<u8> {
    let workspace = &options.workspace;
    let mut out = std::io::stdout();
    match options.command {
        Command::Licences { write, crates } => {
            let text = || licences::collect(workspace, crates.as_deref());
            if write {
                update(workspace, "licences.txt", text)?;
            } else {
                out.write_all(text()?.as_bytes())?;
            }
        }
        Command::Bom => {
            for program in INSTALLED {
                let file = format!("{program}.cdx.json");
                update(workspace, &file, || bill::of(workspace, program))?;
            }
        }
        Command::Crates(args) => {
            for path in packed::run(workspace, &args)? {
                writeln!(out, "{}", path.display())?;
            }
        }
        Command::Deb(args) => {
            let package = deb::run(workspace, &output_folder(workspace), &args)?;
            writeln!(out, "{}", package.display())?;
        }
        Command::Dist(args) => {
            writeln!(out, "{}", dist::run(workspace, &args)?.display())?;
        }
        Command::Fresh(args) => {
            let interrupt = Interrupt::catch()?;
            let checks = Checks::new(out);
            return fresh::run(workspace, output_folder, &args, checks, &interrupt);
        }
        Command::Reproducible => {
            let interrupt = Interrupt::catch()?;
            return reproducible::run(workspace, Checks::new(out), &interrupt);
        }
    }
    Ok(0)
}

/// Writes `name` beside the programs, unless that is up to date.
fn update(workspace: &Path, name: &str, text: impl FnOnce() -> Result<String>) -> Result<()> {
    let file = output_folder(workspace).join(name);
    if is_current(workspace, &file) {
        return Ok(());
    }
    write_whole(&file, &text()?)
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Options::command().debug_assert();
    }

    /// Returns the command line as it was understood, or what was said about it.
    fn parse(line: &str) -> Result<String, String> {
        let options = Options::try_parse_from(line.split(' '));
        match options.map_err(|error| error.to_string())?.command {
            Command::Fresh(args) => Ok(format!("{args:?}")),
            other => Err(other.name().into()),
        }
    }

    #[test]
    fn fresh_has_defaults_and_takes_releases_in_any_place() {
        let parsed = parse("x fresh").unwrap();
        for part in [
            "commit: \"HEAD\"",
            "first: \"demo\", others: [\"test-unit\"]",
            "keep: false",
            "releases: []",
        ] {
            assert!(parsed.contains(part), "{parsed}");
        }
        let parsed = parse("x fresh 13 --targets setup --keep 12 --commit c").unwrap();
        for part in [
            "commit: \"c\"",
            "first: \"setup\", others: []",
            "keep: true",
            "releases: [Trixie, Bookworm]",
        ] {
            assert!(parsed.contains(part), "{parsed}");
        }
    }

    #[test]
    fn what_fresh_does_not_know_is_refused() {
        for (line, what) in [
            ("x fresh 11", "[possible values: 12, 13]"),
            ("x fresh --targets ", "it names no target"),
            ("x fresh --commit", "a value is required"),
            ("x fresh --all", "unexpected argument '--all'"),
            ("x reproducible 12", "unexpected argument '12'"),
        ] {
            let said = parse(line).unwrap_err();
            assert!(said.contains(what), "{line}: {said}");
        }
    }
}
