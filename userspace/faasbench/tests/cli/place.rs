//! A folder in which the program runs, and a trace that fits on a screen.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder of one test, in which the program runs.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn faasbench(&self, arguments: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_faasbench"))
            .args(arguments.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("FAASBENCH_ACCEL")
            .output()
            .unwrap()
    }

    /// Runs it, which must succeed; returns what it prints.
    pub fn succeed(&self, arguments: &str) -> String {
        let output = self.faasbench(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs it, which must fail without a panic; returns what it says.
    pub fn fail(&self, arguments: &str) -> String {
        let output = self.faasbench(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{arguments}: {error}"
        );
        assert!(!error.contains("panicked"), "{error}");
        error
    }

    pub fn names(&self, folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path().join(folder)).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

/// Four invocations of three functions, 7.5 ms of CPU time.
pub const TINY: &str = "arrival_us,function,phases\n\
                    0,f,cpu:2000\n\
                    1000,g,io:3000;cpu:1000\n\
                    1000,h,cpu:500\n\
                    9000,f,cpu:2000;io:1000;cpu:2000\n";
