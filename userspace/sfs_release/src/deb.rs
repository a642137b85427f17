//! `sfs_release deb`: a Debian package of the programs that `make` has built.
//!
//! `packaging/install.sh` says what is installed; this adds what dpkg wants beside it. The same
//! commit and programs give the same package, to the byte: times are those of the commit.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{ensure, Context, Result};
use clap::Args;
use sfs_jobs::refuse;
use tempfile::TempDir;

use crate::repository::Repository;
use crate::INSTALLED;

/// The package's name. Names of Debian's packages have no underscore.
const NAME: &str = "scx-sfs";

/// What an upgrade keeps if it was edited.
const CONFFILES: &str = "/etc/default/scx_sfs\n/etc/scx_sfs/config.toml\n";

/// What dpkg runs, in `packaging/debian`.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

const DESCRIPTION: &str = "\
CPU scheduler for machines that run serverless functions
 scx_sfs lets a short function run to completion almost as if the machine were
 idle, and gives long functions a fair share of the rest. It needs a kernel with
 sched_ext (6.16 or later; Debian's backports have one).
 .
 The package also has faasbench, which measures schedulers with workloads of
 functions, sfs_waste, which watches for CPUs that idle while a task waits, and
 sfs_advise, which says what scx_sfs would change on a machine.
";

/// The command line of `sfs_release deb`.
#[derive(Args, Debug)]
pub struct DebArgs {
    /// The package's version (default: that of the workspace, with the commit if it has no tag)
    #[arg(long, value_name = "TEXT", value_parser = version)]
    version: Option<String>,
    /// The folder for the package
    #[arg(long, value_name = "FOLDER", default_value = "out")]
    to: PathBuf,
}

/// Accepts what deb-version(7) does, without epoch.
fn version(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".+~-".contains(c);
    match text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("want a digit, then letters, digits and . + ~ -".to_owned()),
    }
}

/// Makes the package from the programs in `built`, and returns its path.
///
/// # Errors
///
/// Programs are not built (bad usage), or a tool fails; it has said why.
pub fn run(workspace: &Path, built: &Path, args: &DebArgs) -> Result<PathBuf> {
    let repository = Repository::around(workspace)?;
    if !built.join("scx_sfs").is_file() {
        refuse!(
            "{} is not built; run make first",
            built.join("scx_sfs").display()
        );
    }
    let commit = Commit::of(&repository)?;
    let version = match &args.version {
        Some(version) => version.clone(),
        None => commit.version(&repository)?,
    };
    let package = Package {
        stage: tempfile::tempdir().context("cannot make a temporary folder")?,
        version,
        commit,
    };
    package.install(repository.top(), built)?;
    package.describe(&repository.top().join("packaging/debian"))?;
    fs::create_dir_all(&args.to).with_context(|| format!("cannot make {}", args.to.display()))?;
    package.build(&args.to)
}

/// What a package needs to know of its commit.
struct Commit {
    /// When it was made, in seconds since 1970.
    seconds: String,
    /// The same as a date of RFC 2822.
    date: String,
    /// Who has made it: name and address.
    author: String,
    short: String,
}

impl Commit {
    fn of(repository: &Repository) -> Result<Self> {
        let said = repository.show("HEAD", "%ct%n%cD%n%an <%ae>%n%h")?;
        let lines: Vec<&str> = said.lines().collect();
        let [seconds, date, author, short] = lines[..] else {
            anyhow::bail!("git log prints {said:?}");
        };
        Ok(Self {
            seconds: seconds.to_owned(),
            date: date.to_owned(),
            author: author.to_owned(),
            short: short.to_owned(),
        })
    }

    /// The workspace's version. A commit without its tag is before it in Debian's order.
    fn version(&self, repository: &Repository) -> Result<String> {
        let version = env!("CARGO_PKG_VERSION");
        if repository.has_tag_at_head(&format!("v{version}"))? {
            return Ok(format!("{version}-1"));
        }
        Ok(format!("{version}~git{}.{}-1", self.seconds, self.short))
    }
}

struct Package {
    /// The files as they will be installed, and DEBIAN/.
    stage: TempDir,
    version: String,
    commit: Commit,
}

impl Package {
    fn at(&self, path: &str) -> PathBuf {
        self.stage.path().join(path)
    }

    /// Installs the programs into the stage, as `make install` would.
    fn install(&self, top: &Path, built: &Path) -> Result<()> {
        let built = fs::canonicalize(built).context("cannot find the build")?;
        let mut install = Command::new(top.join("packaging/install.sh"));
        install
            .arg("install")
            .env("DESTDIR", self.stage.path())
            .env("PREFIX", "/usr")
            .env("SYSCONFDIR", "/etc")
            .env("SYSTEMD_DIR", "/usr/lib/systemd/system")
            .env("BUILD_DIR", built);
        output_of(&mut install)?;
        for program in INSTALLED {
            let path = self.at(&format!("usr/bin/{program}"));
            output_of(Command::new("strip").args(["--strip-debug"]).arg(path))?;
        }
        let pages = self.at("usr/share/man/man8");
        for page in fs::read_dir(&pages).with_context(|| format!("no {}", pages.display()))? {
            output_of(Command::new("gzip").args(["-9", "-n"]).arg(page?.path()))?;
        }
        self.documents()
    }

    /// Writes the documents that each package has.
    fn documents(&self) -> Result<()> {
        let author = &self.commit.author;
        let copyright = format!(
            "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
             Upstream-Name: scx_sfs\n\nFiles: *\nCopyright: {author} and contributors\n\
             License: GPL-2\n On Debian systems, the text is in /usr/share/common-licenses/GPL-2.\n \
             The programs are linked with libraries under their own licences, which are in\n \
             /usr/share/doc/scx_sfs/licences.txt.\n"
        );
        let (version, date) = (&self.version, &self.commit.date);
        let changelog = format!(
            "{NAME} ({version}) unstable; urgency=medium\n\n  * Built from commit {}.\n\n \
             -- {author}  {date}\n",
            self.commit.short
        );
        let folder = format!("usr/share/doc/{NAME}");
        self.write(&format!("{folder}/copyright"), &copyright, 0o644)?;
        let name = format!("{folder}/changelog.Debian");
        self.write(&name, &changelog, 0o644)?;
        output_of(Command::new("gzip").args(["-9", "-n"]).arg(self.at(&name)))?;
        Ok(())
    }

    /// Writes what dpkg reads: DEBIAN/. The scripts are in the folder `scripts`.
    fn describe(&self, scripts: &Path) -> Result<()> {
        let architecture = output_of(Command::new("dpkg").arg("--print-architecture"))?;
        let control = format!(
            "Package: {NAME}\nVersion: {}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {}\n\
             Depends: {}\nSection: admin\nPriority: optional\nDescription: {DESCRIPTION}",
            self.version,
            architecture.trim(),
            self.commit.author,
            size_of(self.stage.path())?.div_ceil(1024),
            self.dependencies()?,
        );
        let sums = self.checksums()?;
        self.write("DEBIAN/control", &control, 0o644)?;
        self.write("DEBIAN/conffiles", CONFFILES, 0o644)?;
        self.write("DEBIAN/md5sums", &sums, 0o644)?;
        for name in SCRIPTS {
            let script = scripts.join(name);
            let text = fs::read_to_string(&script);
            let text = text.with_context(|| format!("cannot read {}", script.display()))?;
            self.write(&format!("DEBIAN/{name}"), &text, 0o755)?;
        }
        Ok(())
    }

    /// Returns the checksums of the files as dpkg --verify reads them: not of those below /etc,
    /// which people edit.
    fn checksums(&self) -> Result<String> {
        let mut files = Vec::new();
        list(self.stage.path(), &self.at("usr"), &mut files)?;
        files.sort();
        let mut sums = Command::new("md5sum");
        output_of(sums.current_dir(self.stage.path()).arg("--").args(files))
    }

    /// Returns the packages whose libraries the programs need, as dpkg-shlibdeps finds them.
    fn dependencies(&self) -> Result<String> {
        let work = tempfile::tempdir().context("cannot make a temporary folder")?;
        let debian = work.path().join("debian");
        fs::create_dir(&debian).context("cannot make a folder")?;
        let control = format!("Source: {NAME}\n\nPackage: {NAME}\nArchitecture: any\n");
        fs::write(debian.join("control"), control).context("cannot write a file")?;
        let programs = INSTALLED.map(|program| self.at(&format!("usr/bin/{program}")));
        let mut shlibdeps = Command::new("dpkg-shlibdeps");
        shlibdeps.current_dir(work.path()).arg("-O").args(programs);
        let said = output_of(&mut shlibdeps)?;
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix("shlibs:Depends="));
        Ok(line.context("dpkg-shlibdeps names no packages")?.to_owned())
    }

    fn build(&self, to: &Path) -> Result<PathBuf> {
        let architecture = output_of(Command::new("dpkg").arg("--print-architecture"))?;
        let name = format!("{NAME}_{}_{}.deb", self.version, architecture.trim());
        let path = to.join(name);
        let mut build = Command::new("dpkg-deb");
        build
            .env("SOURCE_DATE_EPOCH", &self.commit.seconds)
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(self.stage.path())
            .arg(&path);
        // dpkg-deb takes no root folder that others may not read, as temporary ones are.
        fs::set_permissions(self.stage.path(), Permissions::from_mode(0o755))?;
        output_of(&mut build)?;
        Ok(path)
    }

    fn write(&self, path: &str, text: &str, mode: u32) -> Result<()> {
        let path = self.at(path);
        let parent = path.parent().unwrap_or(Path::new("/"));
        let write = || {
            fs::create_dir_all(parent)?;
            fs::write(&path, text)?;
            fs::set_permissions(&path, Permissions::from_mode(mode))
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Returns the sum of the lengths of all files in a folder, in bytes.
fn size_of(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder).context("cannot list the files")? {
        let entry = entry?;
        sum += match entry.file_type()?.is_dir() {
            true => size_of(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(sum)
}

/// Adds the files below `folder`, seen from `top`.
fn list(top: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).context("cannot list the files")? {
        let path = entry?.path();
        match path.is_dir() {
            true => list(top, &path, files)?,
            false => files.extend(path.strip_prefix(top).map(Path::to_owned)),
        }
    }
    Ok(())
}

/// Runs a tool and returns its output; what it says on standard error is in the error.
fn output_of(command: &mut Command) -> Result<String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {name} (Debian: dpkg-dev)"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} fails: {}", said.trim_end());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_debian() {
        for text in ["0.1.0-1", "0.1.0~git1764270000.ab12cd3-1", "2+b1"] {
            assert_eq!(version(text), Ok(text.to_owned()));
        }
        for text in ["", "v1", "1 2", "1:2", "1/2", "1_2"] {
            assert!(version(text).is_err(), "{text}");
        }
    }
}
