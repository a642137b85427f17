//! Bare file systems: an archive for each release, and the files that are copied from this machine.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use clap::ValueEnum;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;

use super::machine::{chown, finish, said, Machine, ROOT_HOME, RUST, USER_HOME, USER_ID};

/// The packages that the README takes for granted.
const PACKAGES: &str = "git,make,ca-certificates";
/// An archive is made anew when it is older.
const ARCHIVE_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The certificates that this machine trusts in addition.
const CERTIFICATES: &str = "usr/local/share/ca-certificates";

/// Finds a mirror of this machine's apt configuration that has a suite. Prints the file with
/// Debian's keys, then apt's list of sources with the mirror.
const FIND_MIRROR: &str = r#"
set -euo pipefail
. vm/lib.sh
. vm/apt.sh
lock_cache
use_suites "$1" || die "$EXIT_VM" "this machine's mirror has no Debian suite $1"
keyring
cat "$cache/apt/$1/sources.list"
"#;

/// A release of Debian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Release {
    /// Debian 12.
    #[value(name = "12")]
    Bookworm,
    /// Debian 13.
    #[value(name = "13")]
    Trixie,
}

impl Release {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Bookworm, Self::Trixie];

    /// Returns its number.
    pub fn number(self) -> u32 {
        match self {
            Self::Bookworm => 12,
            Self::Trixie => 13,
        }
    }

    /// Returns the name of its suite.
    pub fn suite(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
        }
    }
}

/// The folder of the archives.
pub struct Archives<'a> {
    /// The repository.
    pub top: &'a Path,
    /// The folder.
    pub folder: &'a Path,
    /// Reports slow work.
    pub progress: &'a Progress,
    /// Signals to end.
    pub interrupt: &'a Interrupt,
}

impl Archives<'_> {
    /// Makes `machine` a bare machine of this release, with this machine's names, certificates and
    /// settings of cargo. The archive is made first unless
    /// there is a recent one.
    ///
    /// # Errors
    ///
    /// A file cannot be written, the file system cannot be made, or a signal asks to end.
    pub fn unpack(&self, release: Release, machine: &Machine) -> Result<()> {
        let archive = self.folder.join(format!("{}.tar", release.suite()));
        if !is_recent(&archive) {
            self.make(release, &archive)?;
        }
        machine.remove(self.interrupt)?;
        let root = machine.root();
        create(root)?;
        let mut tar = Command::new("tar");
        tar.arg("-x").arg("-f").arg(&archive).arg("-C").arg(root);
        finish(&mut tar, self.interrupt)?;
        furnish(root, self.interrupt)?;
        self.trust(root)
    }

    /// Makes the smallest file system that has apt and [`PACKAGES`].
    fn make(&self, release: Release, archive: &Path) -> Result<()> {
        let suite = release.suite();
        let mut bash = Command::new("bash");
        bash.args(["-c", FIND_MIRROR, "fresh", suite]);
        let found = said(bash.current_dir(self.top))?;
        let Some((keys, mirror)) = mirror_of(&found) else {
            bail!("vm/apt.sh found no mirror of {suite}");
        };
        let settings = self.folder.join("apt.conf");
        let dump = said(Command::new("apt-config").args(["dump", "Acquire"]))?;
        write(&settings, &settings_of(&dump))?;
        self.progress
            .say(&format!("making a bare file system of {suite}"));
        let part = archive.with_extension("tar.part");
        let mut mmdebstrap = Command::new("mmdebstrap");
        mmdebstrap.args(["--quiet", "--format=tar", "--variant=apt"]);
        mmdebstrap.arg(format!("--include={PACKAGES}"));
        mmdebstrap.arg(format!("--aptopt={}", settings.display()));
        mmdebstrap.arg(format!("--keyring={keys}")).arg(suite);
        mmdebstrap.arg(&part);
        mmdebstrap.arg(format!("deb {mirror} {suite} main"));
        finish(&mut mmdebstrap, self.interrupt)
            .with_context(|| format!("cannot make a file system of {suite}"))?;
        fs::rename(&part, archive).with_context(|| cannot_write(archive))
    }

    /// Copies the certificates that this machine trusts in addition.
    fn trust(&self, root: &Path) -> Result<()> {
        let folder = Path::new("/").join(CERTIFICATES);
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut any = false;
        for file in files.map(|file| file.path()) {
            if file.extension().is_some_and(|extension| extension == "crt") {
                copy_into(&file, &root.join(CERTIFICATES))?;
                any = true;
            }
        }
        if any {
            let mut update = Command::new("chroot");
            update.arg(root).arg("update-ca-certificates");
            update.stdout(std::process::Stdio::null());
            update.stderr(std::process::Stdio::null());
            finish(&mut update, self.interrupt)
                .context("cannot update the certificates of a bare machine")?;
        }
        Ok(())
    }
}

/// Gives a file system an ordinary user, a place for Rust, and this machine's names and settings
/// of cargo.
fn furnish(root: &Path, interrupt: &Interrupt) -> Result<()> {
    let homes = [ROOT_HOME, USER_HOME].map(|home| root.join(home).join(".cargo"));
    create(&root.join(RUST))?;
    homes.iter().try_for_each(|home| create(home))?;
    for file in ["/etc/resolv.conf", "/etc/hosts"] {
        copy_into(Path::new(file), &root.join("etc"))?;
    }
    let passwd = root.join("etc/passwd");
    let user = format!("user:x:{USER_ID}:{USER_ID}::/{USER_HOME}:/bin/bash\n");
    let opened = OpenOptions::new().append(true).create(true).open(&passwd);
    let written = opened.and_then(|mut file| file.write_all(user.as_bytes()));
    written.with_context(|| cannot_write(&passwd))?;
    if let Some(settings) = settings_of_cargo() {
        for home in &homes {
            copy_into(&settings, home)?;
        }
    }
    finish(&mut chown(&root.join(USER_HOME), USER_ID), interrupt)
}

/// Returns this machine's settings of cargo, if it has any.
fn settings_of_cargo() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")))?;
    Some(home.join("config.toml")).filter(|file| file.is_file())
}

/// Returns true if the archive exists and is not too old.
fn is_recent(archive: &Path) -> bool {
    let modified = fs::metadata(archive).and_then(|found| found.modified());
    // A file from the future is recent.
    modified.is_ok_and(|time| time.elapsed().unwrap_or_default() < ARCHIVE_AGE)
}

/// Returns the file with Debian's keys and the address of the mirror, from what [`FIND_MIRROR`]
/// prints. The first source has the mirror as its third word from the end.
fn mirror_of(found: &str) -> Option<(&str, &str)> {
    let mut lines = found.lines();
    let keys = lines.next()?;
    let mirror = lines.next()?.split_whitespace().rev().nth(2)?;
    Some((keys, mirror))
}

/// Returns those of apt's settings that say how it reaches its archives: proxies and checks.
fn settings_of(dump: &str) -> String {
    let ours = ["http", "https", "Check-"].map(|what| format!("Acquire::{what}"));
    let lines = dump.lines();
    let lines = lines.filter(|line| ours.iter().any(|begin| line.starts_with(begin)));
    lines.map(|line| format!("{line}\n")).collect()
}

fn copy_into(file: &Path, folder: &Path) -> Result<()> {
    let to = folder.join(file.file_name().unwrap_or_default());
    let copied = fs::copy(file, &to);
    copied.with_context(|| format!("cannot copy {} to {}", file.display(), to.display()))?;
    Ok(())
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| cannot_write(file))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::SystemTime;

    #[test]
    fn the_mirror_is_that_of_the_first_source() {
        let found = "/keys.gpg\n\
                     deb [target=Packages signed-by=/keys.gpg] http://a.example/debian bookworm main\n\
                     deb [target=Packages signed-by=/keys.gpg] http://b.example/debian other main\n";
        let want = Some(("/keys.gpg", "http://a.example/debian"));
        assert_eq!(mirror_of(found), want);
        assert_eq!(mirror_of("/keys.gpg\n"), None);
        assert_eq!(mirror_of(""), None);
    }

    #[test]
    fn only_proxies_and_checks_are_taken_over() {
        let dump = "Acquire \"\";\n\
                    Acquire::cdrom \"\";\n\
                    Acquire::http::Proxy \"http://proxy.example\";\n\
                    Acquire::https::Verify-Peer \"false\";\n\
                    Acquire::Check-Valid-Until \"false\";\n\
                    Acquire::Languages \"none\";\n";
        let want: Vec<_> = dump.lines().skip(2).take(3).collect();
        assert_eq!(settings_of(dump), want.join("\n") + "\n");
    }

    #[test]
    fn archives_are_made_anew_after_a_week() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("x.tar");
        assert!(!is_recent(&archive));
        let file = File::create(&archive).unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        for (age, recent) in [(0, true), (6, true), (8, false)] {
            file.set_modified(SystemTime::now() - age * day).unwrap();
            assert_eq!(is_recent(&archive), recent, "{age} days");
        }
    }

    #[test]
    fn releases_are_known_by_their_numbers() {
        for release in Release::ALL {
            let value = release.to_possible_value().unwrap();
            assert_eq!(value.get_name(), release.number().to_string());
        }
        assert_eq!(Release::from_str("12", false).unwrap().suite(), "bookworm");
        assert_eq!(Release::from_str("13", false).unwrap().suite(), "trixie");
        Release::from_str("11", false).unwrap_err();
    }

    #[test]
    fn a_file_system_gets_a_user_and_this_machines_names() {
        if !nix::unistd::geteuid().is_root() {
            sfs_skip::skip!("only root can try");
        }
        use std::os::unix::fs::MetadataExt;
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        create(&root.join("etc")).unwrap();
        write(&root.join("etc/passwd"), "root:x:0:0::/root:/bin/bash\n").unwrap();
        create(&root.join("home/user/clone")).unwrap();
        furnish(root, &Interrupt::default()).unwrap();
        let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
        let passwd = "root:x:0:0::/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n";
        assert_eq!(read("etc/passwd"), passwd);
        assert_eq!(read("etc/hosts"), fs::read_to_string("/etc/hosts").unwrap());
        for (path, owner) in [
            ("home/user/clone", USER_ID),
            ("home/user/.cargo", USER_ID),
            ("root/.cargo", 0),
            ("opt/rust", 0),
        ] {
            let found = fs::metadata(root.join(path)).unwrap();
            assert_eq!((found.uid(), found.gid()), (owner, owner), "{path}");
        }
    }
}
