//! The root file system of the guests: a small Debian with systemd, made once.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;
use sfs_jobs::failure::Failure;
use sfs_jobs::job::{call_tied, Job};
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;

use crate::part::Machine;

/// Exit status: there is no root file system. That of `vm/lib.sh`.
const EXIT_VM: u8 = 125;

/// The variant of a machine for mmdebstrap, the packages beyond it, and what only makes the
/// guest's boot longer.
fn content(machine: Machine) -> [&'static str; 3] {
    match machine {
        Machine::Small => [
            "essential",
            "systemd,systemd-sysv,procps,libelf1,zlib1g",
            "usr/share/perl usr/share/doc usr/share/man usr/share/locale usr/share/zoneinfo \
             usr/share/i18n usr/lib/x86_64-linux-gnu/perl usr/lib/x86_64-linux-gnu/gconv \
             var/lib/dpkg/info var/cache/apt var/lib/apt/lists",
        ],
        // An installation has iproute2, and with it libelf.
        Machine::Fresh => [
            "apt",
            "systemd,systemd-sysv,dbus,procps,iproute2",
            "usr/share/doc/* usr/share/man/* usr/share/locale/* usr/lib/x86_64-linux-gnu/gconv \
             var/cache/apt/archives/* var/lib/apt/lists/*",
        ],
    }
}

/// The beginning of the archive's name.
fn prefix(machine: Machine) -> &'static str {
    match machine {
        Machine::Small => "service",
        Machine::Fresh => "package",
    }
}

/// Makes the archive, unless somebody else has made it while this waited for the lock on the
/// cache. Arguments: suite, archive, options of mmdebstrap. The functions of vm/ find the
/// mirror of this machine, and Debian's keys.
const SCRIPT: &str = r#"
set -euo pipefail
exec >&2
. vm/lib.sh
. vm/apt.sh
suite=$1 archive=$2
shift 2
lock_cache
[[ ! -e $archive ]] || exit 0
use_suites "$suite" || die "$EXIT_VM" "this machine's mirror has no Debian suite $suite"
uri=$(awk 'NR == 1 { print $(NF - 2) }' "$cache/apt/$suite/sources.list")
keys=$(keyring)
say "making a root file system of $suite with systemd"
mmdebstrap "$@" --keyring="$keys" "$suite" "$archive.part" "deb $uri $suite main" ||
	die "$EXIT_VM" "cannot make a root file system of $suite; look at the messages above"
mv "$archive.part" "$archive"
"#;

/// A release of Debian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Release {
    /// bookworm
    #[value(name = "12")]
    Bookworm,
    /// trixie
    #[value(name = "13")]
    Trixie,
}

impl Release {
    /// The name of its suite.
    fn suite(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
        }
    }
}

/// Returns the path of the archive of the root file system, and makes it if there is none.
/// `work` is a folder for temporary files.
///
/// # Errors
///
/// It cannot be made: exit status 125.
pub fn archive(
    tree: &Tree,
    release: Release,
    machine: Machine,
    work: &Path,
    interrupt: &Interrupt,
) -> Result<PathBuf> {
    let suite = release.suite();
    let roots = cache(tree).join("roots");
    let archive = roots.join(format!("{}-{suite}.tar", prefix(machine)));
    if !archive.exists() {
        fs::create_dir_all(&roots).with_context(|| format!("cannot make {}", roots.display()))?;
        make(tree, suite, machine, &archive, work, interrupt)?;
    }
    Ok(archive)
}

/// The folder for what is downloaded and built once, as in `vm/lib.sh`.
fn cache(tree: &Tree) -> PathBuf {
    let cache = env::var_os("SCX_SFS_CACHE").filter(|cache| !cache.is_empty());
    tree.at(cache.unwrap_or_else(|| ".cache".into()))
}

fn make(
    tree: &Tree,
    suite: &str,
    machine: Machine,
    archive: &Path,
    work: &Path,
    interrupt: &Interrupt,
) -> Result<()> {
    let settings = work.join("apt.conf");
    fs::write(&settings, settings_of_apt()).context("cannot write apt's settings")?;
    let mut command = call_tied(tree, "bash");
    command
        .args(["-c", SCRIPT, "sfs_service", suite])
        .arg(archive);
    let [variant, packages, dispensable] = content(machine);
    command.args(["--quiet", "--format=tar"]);
    command.arg(format!("--variant={variant}"));
    command.arg(format!("--include={packages}"));
    command.arg(format!("--aptopt={}", settings.display()));
    command.arg(format!(
        "--customize-hook=cd \"$1\" && rm -rf {dispensable}"
    ));
    match Job::start(&mut command)?.wait(interrupt)? {
        0 => Ok(()),
        _ => Err(Failure::Program(format!("making a root file system of {suite}"), EXIT_VM).into()),
    }
}

/// How this machine's apt gets at its archives; empty where there is no apt.
fn settings_of_apt() -> String {
    let output = Command::new("apt-config")
        .args(["dump", "Acquire"])
        .output();
    let dump = output.map(|output| output.stdout).unwrap_or_default();
    of_archives(&String::from_utf8_lossy(&dump))
}

/// The lines about proxies, certificates and the age of indexes.
fn of_archives(dump: &str) -> String {
    let kinds = ["Acquire::http", "Acquire::Check-"];
    let lines = dump.lines();
    let kept = lines.filter(|line| kinds.iter().any(|kind| line.starts_with(kind)));
    kept.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_about_archives_reach_the_new_root() {
        let dump = "Acquire \"\";\nAcquire::cdrom \"\";\nAcquire::http \"\";\n\
            Acquire::https::CaInfo \"/ca\";\nAcquire::Check-Valid-Until \"false\";\n";
        let kept = "Acquire::http \"\";\nAcquire::https::CaInfo \"/ca\";\n\
            Acquire::Check-Valid-Until \"false\";\n";
        assert_eq!(of_archives(dump), kept);
        assert_eq!(of_archives(""), "");
    }
}
