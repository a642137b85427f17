//! This machine's Python.

use anyhow::{Context, Result};
use sfs_jobs::failure::refuse;
use sfs_jobs::tree::{in_path, is_program};
use std::path::Path;
use std::process::{Command, Stdio};

/// A Python that is there.
#[derive(Debug)]
pub struct Interpreter {
    name: String,
}

impl Interpreter {
    /// The program of this name in PATH, or of this path.
    ///
    /// # Errors
    /// If it is not there.
    pub fn find(name: &str) -> Result<Self> {
        let is_there = match name.contains('/') {
            true => is_program(Path::new(name)),
            false => in_path(name).is_some(),
        };
        if !is_there {
            refuse!("there is no '{name}'; install Python 3.9 or later, or set PYTHON to one");
        }
        Ok(Self { name: name.into() })
    }

    /// A call of it.
    pub fn command(&self) -> Command {
        Command::new(&self.name)
    }

    /// The value of an expression of the modules sys and sysconfig, as print writes it.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn ask(&self, expression: &str) -> Result<String> {
        let script = format!("import sys, sysconfig; print({expression})");
        let mut command = self.command();
        let command = command.args(["-c", &script]).stdin(Stdio::null());
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("cannot run {}", self.name))?;
        if !output.status.success() {
            refuse!("cannot run '{}'; look at its message above", self.name);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// Refuses a Python without pip.
    ///
    /// # Errors
    /// If it has none.
    pub fn check_pip(&self) -> Result<()> {
        let mut command = self.command();
        let command = command.args(["-m", "pip", "--version"]);
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null());
        let status = silent.stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            refuse!(
                "'{}' has no pip; install the package python3-pip",
                self.name
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_is_not_there_is_refused() {
        for name in ["python-of-nobody", "./python-of-nobody"] {
            let said = Interpreter::find(name).unwrap_err().to_string();
            let start = format!("there is no '{name}'; ");
            assert!(said.starts_with(&start), "{said}");
        }
        assert!(Interpreter::find("/bin/sh").is_ok());
    }

    #[test]
    fn a_program_that_fails_cannot_be_asked() {
        let said = Interpreter::find("false").unwrap().ask("1").unwrap_err();
        assert_eq!(
            said.to_string(),
            "cannot run 'false'; look at its message above"
        );
        let said = Interpreter::find("false").unwrap().check_pip();
        assert!(said
            .unwrap_err()
            .to_string()
            .starts_with("'false' has no pip"));
    }
}
