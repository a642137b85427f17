//! The tables of `policies`, by the programs themselves.

mod common;

use sfs_skip::skip;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A repository with the programs, or none if they are not built.
fn tree() -> Option<TempDir> {
    let tree = tempfile::tempdir().unwrap();
    let release = tree.path().join("userspace/target/release");
    fs::create_dir_all(&release).unwrap();
    for name in ["faasbench", "sfs_sim"] {
        symlink(common::built(name)?, release.join(name)).unwrap();
    }
    fs::create_dir(tree.path().join("vm")).unwrap();
    fs::write(tree.path().join("vm/run"), "").unwrap();
    Some(tree)
}

fn policies(tree: &Path, part: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_lab"));
    command
        .args(["policies", part])
        .current_dir(tree)
        .env_clear()
        .envs([("SEEDS", "3"), ("TRACES", "none"), ("OUT", "out")]);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn small_traces_are_compared_seed_by_seed_and_kept() {
    let Some(tree) = tree() else {
        skip!(common::NOT_BUILT);
    };
    let first = policies(tree.path(), "goals");
    let (out, errors) = (text(&first.stdout), text(&first.stderr));
    assert_eq!(first.status.code(), Some(0), "{errors}");
    assert!(
        out.starts_with("## Small traces, seed by seed\n| "),
        "{out}"
    );
    // Below the head, a row of each policy for each of two workloads.
    let rows: Vec<&str> = out
        .lines()
        .skip(3)
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(rows.len(), 4, "{out}");
    assert!(
        rows[0].contains("Table I, 20 functions, N=2000, seed 3"),
        "{out}"
    );
    assert!(
        errors.contains("no none/azure2019/500: Azure 2019 is skipped"),
        "{errors}"
    );
    let trace = tree.path().join("out/goal-table1-3.csv");
    let made = fs::metadata(&trace).unwrap().modified().unwrap();
    let second = policies(tree.path(), "goals");
    assert_eq!(text(&second.stdout), out);
    assert_eq!(fs::metadata(&trace).unwrap().modified().unwrap(), made);
}

#[test]
fn what_cannot_be_is_said() {
    let Some(tree) = tree() else {
        skip!(common::NOT_BUILT);
    };
    let unknown = policies(tree.path(), "everything");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("everything"));
    // A trace that is a folder can neither be read nor made.
    fs::create_dir_all(tree.path().join("out/table1-3.csv.new")).unwrap();
    let failed = policies(tree.path(), "goals");
    assert_eq!(failed.status.code(), Some(2));
    let said = text(&failed.stderr);
    assert!(
        said.starts_with("policies: cannot make out/table1-3.csv: "),
        "{said}"
    );
    fs::remove_file(tree.path().join("userspace/target/release/sfs_sim")).unwrap();
    let missing = policies(tree.path(), "goals");
    assert!(text(&missing.stderr).contains("sfs_sim is not built; run make first"));
}
