//! The commit that results are of.

use crate::tree::Tree;
use std::process::{Command, Stdio};

/// The abbreviated commit of the repository, with a + if something in `paths` differs from it; `unknown` outside of a repository.
pub fn of(tree: &Tree, paths: &[&str]) -> String {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(tree.root());
        let output = command.stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
        output.status.success().then_some(text)
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else {
        return "unknown".into();
    };
    let status = [&["status", "--porcelain", "--"], paths].concat();
    let is_changed = git(&status).is_some_and(|changes| !changes.is_empty());
    commit + if is_changed { "+" } else { "" }
}
