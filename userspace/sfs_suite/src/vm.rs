//! `vm/run` in place of this program, for subcommands that start one guest.

use anyhow::{Error, Result};
use sfs_jobs::failure::refuse;
use sfs_jobs::tree::Tree;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A call of `vm/run` that gives the guest up after `timeout` real seconds, with those of
/// `options` that have a value.
pub fn call(tree: &Tree, timeout: &str, options: &[(&str, Option<&OsStr>)]) -> Command {
    let mut command = Command::new(tree.at("vm/run"));
    command.args(["--timeout", timeout]);
    for (name, value) in options {
        if let Some(value) = value {
            command.arg(name).arg(value);
        }
    }
    command
}

/// Brings these programs of the workspace into the guest.
///
/// # Errors
///
/// [`sfs_jobs::failure::Failure::Usage`] if one of them is not built.
pub fn bring_in(tree: &Tree, command: &mut Command, names: &[&str]) -> Result<()> {
    for name in names {
        let program = tree.program(name);
        if !tree.is_program(&program) {
            refuse!("{} is not built; run make first", program.display());
        }
        command.arg("--in").arg(tree.at(program));
    }
    Ok(())
}

/// Replaces this process by `command`. Returns only if that fails.
pub fn become_it(command: &mut Command) -> Error {
    Error::new(command.exec()).context("cannot start vm/run")
}
