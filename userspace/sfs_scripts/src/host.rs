//! A machine on which nothing may be installed: its PATH is a folder with a few real tools
//! and stand-ins for the rest.

use crate::place::{find, Place};
use crate::said::{run, Said};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A user that is not root.
pub const NOBODY: u32 = 65534;

/// Real tools that the scripts call.
const TOOLS: [&str; 5] = ["bash", "cat", "grep", "sed", "sort"];
/// What the sets `build`, `test`, `variants` and `vm` of `scripts/setup-host` need, apart from clang and
/// libraries. Nothing calls them.
const NEEDS: [&str; 13] = [
    "make",
    "gcc",
    "shellcheck",
    "shfmt",
    "tmux",
    "clang-format",
    "cpio",
    "gzip",
    "xz",
    "dpkg-deb",
    "mkfs.ext4",
    "llvm-cov-19",
    "llvm-profdata-19",
];

/// The machine: scripts are in `scripts/`, programs in `bin/`. Package managers write their
/// calls to the file `log`.
#[derive(Debug)]
pub struct Host {
    /// Its folder.
    pub place: Place,
}

impl Host {
    /// Has everything but clang and libraries, and no package manager.
    ///
    /// # Panics
    ///
    /// As all functions here: if a file cannot be written, or a program not run.
    #[must_use]
    pub fn bare() -> Self {
        let host = Self {
            place: Place::with(&["scripts/find-clang", "scripts/setup-host"]),
        };
        host.place
            .write("userspace/Cargo.toml", "rust-version = \"1.91\"\n");
        host.place.write("log", "");
        host.open_log();
        std::fs::create_dir(host.place.path("bin")).unwrap();
        TOOLS.iter().for_each(|tool| host.link(tool));
        NEEDS.iter().for_each(|need| host.stub(need, ""));
        host.stub("cargo", "echo 'cargo 1.95.0 (f2d3ce0bd 2026-03-21)'");
        host.stub(
            "pkg-config",
            &format!("[[ -e {} ]]", host.place.text("libraries")),
        );
        host
    }

    /// Has everything.
    #[must_use]
    pub fn complete() -> Self {
        let host = Self::bare();
        host.stub_clang("clang-19", 19);
        host.place.write("libraries", "");
        host
    }

    fn open_log(&self) {
        use std::os::unix::fs::PermissionsExt;
        let everybody = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(self.place.path("log"), everybody).unwrap();
    }

    /// Puts a stand-in of these lines into PATH.
    pub fn stub(&self, name: &str, lines: &str) {
        self.place.script(&format!("bin/{name}"), lines);
    }

    /// Puts the real tool into PATH.
    pub fn link(&self, tool: &str) {
        let real = find(tool).unwrap_or_else(|| panic!("no {tool} in PATH"));
        let path = self.place.path(&format!("bin/{tool}"));
        let _ = std::fs::remove_file(&path);
        symlink(real, path).unwrap();
    }

    /// Takes a program out of PATH.
    pub fn without(&self, name: &str) {
        self.place.remove(&format!("bin/{name}"));
    }

    /// A clang that compiles for BPF.
    pub fn stub_clang(&self, name: &str, version: u32) {
        self.stub_clang_for(name, version, "bpf x86");
    }

    /// A clang of this version that compiles for these targets.
    pub fn stub_clang_for(&self, name: &str, version: u32, targets: &str) {
        self.stub(name, &clang(version, targets));
    }

    /// An apt whose index has these packages of clang, and whose installations work.
    pub fn stub_apt(&self, clangs: &str) {
        self.stub(
            "apt-cache",
            &format!(
                "if [[ $1 == search ]]; then for clang in {clangs}; do echo \"$clang - compiler\"; done
                 else [[ $2 != clang-* || ' {clangs} ' == *\" $2 \"* ]]; fi"
            ),
        );
        self.place.script("clang", &clang(19, "bpf x86"));
        self.stub(
            "apt-get",
            &format!(
                "echo \"apt-get $*\" >>{0}/log
                 case \"$*\" in *' install '*) /bin/cp {0}/clang {0}/bin/clang-19; >{0}/libraries;; esac",
                self.place.text("")
            ),
        );
    }

    /// The calls of package managers.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.place.read("log").lines().map(str::to_owned).collect()
    }

    /// A script of `scripts/`, or a program of `bin/`, to be run on this machine.
    #[must_use]
    pub fn command(&self, path: &str) -> Command {
        let mut command = Command::new(self.place.path(path));
        command
            .env_clear()
            .env("PATH", self.place.path("bin"))
            .current_dir(self.place.path(""));
        command
    }

    /// Runs a script of `scripts/` as the user that runs the test.
    pub fn run(&self, script: &str, arguments: &[&str]) -> Said {
        let path = format!("scripts/{script}");
        run(self.command(&path).args(arguments))
    }

    /// Runs a script of `scripts/` as [`NOBODY`], which only root can.
    pub fn run_as_user(&self, script: &str, arguments: &[&str]) -> Said {
        let path = format!("scripts/{script}");
        run(self.command(&path).args(arguments).uid(NOBODY).gid(NOBODY))
    }
}

/// The lines of a clang.
fn clang(version: u32, targets: &str) -> String {
    format!(
        "if [[ $1 == --version ]]; then echo 'Debian clang version {version}.1.7 (3)'
         elif [[ $1 == -print-file-name=* ]]; then echo \"$0\"
         else [[ '{targets}' == *$2* ]]; fi"
    )
}
