//! What `matrix` makes of kernels that are there or not, and of suites that fail: with
//! stand-ins for vm/fetch-kernel and tests/run.

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const FETCH: &str =
    "#!/bin/bash\n[[ $1 != 5.4 ]] || { echo one >&2; echo 'fetch-kernel: no 5.4' >&2; exit 1; }\n";

/// Says what it was called with; fails on 7.0, and hangs on 9.9.
const RUN: &str = "#!/bin/bash
echo \"$*\" >>calls
echo 'run: kernel 6.18.5, some CPUs' >&2
[[ $* != *9.9* ]] || { echo $$ >pid.new; mv pid.new pid; sleep 60; }
[[ $* != *7.0* ]] || { echo 'not ok 1 - bad # about'; echo '0 passed, 1 failed, 0 skipped'; exit 1; }
echo '1 passed, 0 failed, 0 skipped'
";

fn tree() -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("vm/run", ""),
        ("vm/fetch-kernel", FETCH),
        ("tests/run", RUN),
    ] {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    tree
}

fn matrix(tree: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_lab"));
    command
        .arg("matrix")
        .args(arguments)
        .current_dir(tree)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(variables.iter().copied());
    command
}

#[test]
fn each_machine_is_a_row_and_what_cannot_be_had_is_skipped() {
    let tree = tree();
    let machines = ["6.18", "5.4", "7.0:2x2x2", "6.18:4:tcg"];
    let output = matrix(tree.path(), &machines, &[("WITH", "--filter-shards 2")])
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{out}{errors}");
    let rows: Vec<&str> = out.lines().skip(2).collect();
    assert_eq!(
        rows,
        [
            "| 6.18.5 | 4 | icount | 1 passed, 0 failed, 0 skipped | - | - |",
            "| 6.18.5 | 2x2x2 | icount | 0 passed, 1 failed, 0 skipped | - | bad |",
            "| 6.18.5 | 4 | tcg | 1 passed, 0 failed, 0 skipped | - | - |",
        ]
    );
    assert!(
        errors.contains("matrix: 5.4 is skipped: fetch-kernel: no 5.4\n"),
        "{errors}"
    );
    let calls = fs::read_to_string(tree.path().join("calls")).unwrap();
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(
        calls[0],
        "--kernel 6.18 --cpus 4 --with --filter-shards 2 --accel icount"
    );
    assert!(
        calls[1].starts_with("--kernel 7.0 --topology 2x2x2 "),
        "{calls:?}"
    );
    assert!(
        calls[2].contains(" --accel tcg loads_and_stops_on_sigint "),
        "{calls:?}"
    );
    let kept = fs::read_to_string(tree.path().join("out/matrix/7.0-2x2x2-icount")).unwrap();
    assert!(kept.starts_with("not ok 1 - bad"), "{kept}");
}

#[test]
fn cases_are_those_that_are_asked_for() {
    let tree = tree();
    let variables = [("CASE", "one two"), ("OUT", "kept")];
    let output = matrix(tree.path(), &["6.18:64"], &variables)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let calls = fs::read_to_string(tree.path().join("calls")).unwrap();
    assert_eq!(calls, "--kernel 6.18 --cpus 64 --accel icount one two\n");
    assert!(tree.path().join("kept/6.18-64-icount.err").exists());
    let output = matrix(tree.path(), &["6.18:many"], &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn the_suite_ends_with_the_matrix() {
    let tree = tree();
    let mut command = matrix(tree.path(), &["9.9"], &[]);
    let matrix = command.stdout(Stdio::piped()).spawn().unwrap();
    let path = tree.path().join("pid");
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(Pid::from_raw(matrix.id() as i32), Signal::SIGINT).unwrap();
    let output = matrix.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let suite = fs::read_to_string(path).unwrap();
    assert!(!Path::new("/proc").join(suite.trim()).exists());
}
