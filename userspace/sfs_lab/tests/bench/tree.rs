//! A repository in which a stand-in takes the place of the VM.

use crate::common::built;
use crate::stand_in;
use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Programs that the tests cannot do without.
const NEEDED: [&str; 3] = ["faasbench", "sfs_sim", "sfs_waste"];

/// Schedulers that the tree has; what becomes of their machines, the stand-in knows.
const SCHEDULERS: [&str; 5] = ["scx_sfs", "scx_lost", "scx_slow", "scx_broken", "scx_half"];

/// Settings of `bench`: rows, and variables with their values.
pub type Variables<'a> = &'a [(&'a str, &'a str)];

pub struct Tree {
    folder: TempDir,
}

impl Tree {
    /// A new one; none if the programs are not built.
    pub fn new() -> Option<Self> {
        let programs: Vec<PathBuf> = NEEDED.iter().filter_map(|name| built(name)).collect();
        if programs.len() < NEEDED.len() {
            return None;
        }
        let tree = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (name, path) in NEEDED.iter().zip(programs) {
            let place = tree.at("userspace/target/release").join(name);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            symlink(path, place).unwrap();
        }
        for name in SCHEDULERS {
            tree.program(&format!("userspace/target/release/{name}"), name);
        }
        stand_in::put(tree.folder.path());
        tree.program("vm/fetch", "#!/bin/sh\n");
        tree.program("vm/fetch-kernel", "#!/bin/sh\necho kernel\n");
        for name in ["vm/init", "vm/build-initrd", "vm/lib.sh", "vm/qemu.sh"] {
            tree.write(name, "");
        }
        tree.write("kernel/vmlinuz", "image");
        Some(tree)
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn program(&self, path: &str, text: &str) {
        self.write(path, text);
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        let path = self.at(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub fn has(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// `bench`, ready to run: with these variables, and none of ours but PATH.
    pub fn command(&self, schedulers: &str, variables: Variables) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_lab"));
        command
            .arg("bench")
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs([
                ("SCHEDULERS", schedulers),
                ("OUT", "out"),
                ("JOBS", "1"),
                ("N", "30"),
            ])
            .envs(variables.iter().copied());
        command
    }

    pub fn bench(&self, schedulers: &str, variables: Variables) -> Said {
        Said::of(&self.command(schedulers, variables).output().unwrap())
    }

    /// Starts `bench` without waiting for it.
    pub fn start(&self, schedulers: &str) -> Child {
        let mut command = self.command(schedulers, &[]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// The rows for which a VM was booted since this was last asked.
    pub fn booted(&self) -> String {
        let calls = fs::read_to_string(self.at("calls")).unwrap_or_default();
        let _ = fs::remove_file(self.at("calls"));
        let names = calls.lines().map(|line| {
            let rest = line.split(" --name ").nth(1).unwrap();
            rest.split(' ').next().unwrap()
        });
        names.collect::<Vec<_>>().join(" ")
    }

    /// Waits until a file is there.
    pub fn await_file(&self, path: &str) -> String {
        assert!(soon(|| self.has(path)), "{path} does not come");
        self.read(path)
    }
}

/// The output of `bench`.
#[derive(Debug)]
pub struct Said {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    pub fn of(output: &Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// It ended with `status`.
    #[track_caller]
    pub fn ended(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Standard error has this text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no '{text}' in {self:?}");
        self
    }
}

/// Whether something comes true within some seconds.
pub fn soon(is_so: impl Fn() -> bool) -> bool {
    (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_so()
    })
}

/// Returns from a test that cannot be tried here; else the tree.
macro_rules! tree {
    () => {
        match crate::tree::Tree::new() {
            Some(tree) => tree,
            None => sfs_skip::skip!(crate::common::NOT_BUILT),
        }
    };
}
pub(crate) use tree;
