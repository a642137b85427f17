//! Temporary folders with copies of files of the repository.

use crate::said::{run, Said, STARTING};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The top folder of the repository.
#[must_use]
pub fn top() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    path.canonicalize().unwrap_or(path)
}

/// Where PATH has the program `name`, if it does.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// A temporary folder, which every user may read. It ends with this value.
#[derive(Debug)]
pub struct Place(TempDir);

impl Place {
    /// An empty folder.
    ///
    /// # Panics
    ///
    /// As all functions here: if a file cannot be written or read.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    /// A folder with copies of these `files` of the repository, at the same paths.
    #[must_use]
    pub fn with(files: &[&str]) -> Self {
        let place = Self::new();
        place.copy(files);
        place
    }

    /// Copies `files` of the repository to the same paths below the folder.
    pub fn copy(&self, files: &[&str]) {
        for file in files {
            let from = top().join(file);
            let text = fs::read(&from).unwrap_or_else(|error| panic!("{from:?}: {error}"));
            let mode = fs::metadata(&from).unwrap().permissions().mode();
            self.put(file, &text, mode);
        }
    }

    /// The path of `name` in this folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The same as text.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, text: &str) {
        self.put(name, text.as_bytes(), 0o644);
    }

    /// Writes a bash script of these lines, which everybody may run.
    pub fn script(&self, name: &str, lines: &str) {
        self.put(name, format!("#!/bin/bash\n{lines}\n").as_bytes(), 0o755);
    }

    fn put(&self, name: &str, text: &[u8], mode: u32) {
        let path = self.path(name);
        let _starting = STARTING.lock().unwrap_or_else(|held| held.into_inner());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }

    /// The text of a file; empty if it does not exist.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// The permissions of a file, if there is one.
    #[must_use]
    pub fn mode(&self, name: &str) -> Option<u32> {
        let found = fs::metadata(self.path(name)).ok()?;
        found.is_file().then(|| found.permissions().mode() & 0o7777)
    }

    /// The program `name` of this folder, to be run in it. Nothing of the environment
    /// reaches it but PATH, HOME and the toolchain's settings.
    #[must_use]
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.path(name));
        command.current_dir(self.0.path()).env_clear();
        for name in [
            "PATH",
            "HOME",
            "RUSTUP_TOOLCHAIN",
            "RUSTUP_HOME",
            "CARGO_HOME",
        ] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    /// Runs the program `name` of this folder with these arguments.
    pub fn run(&self, name: &str, arguments: &[&str]) -> Said {
        run(self.command(name).args(arguments))
    }
}
