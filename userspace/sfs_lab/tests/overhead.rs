//! What `overhead` makes of what guests leave: with a stand-in for vm/run.

#[path = "common/stand_in.rs"]
mod stand_in;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn tree() -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    stand_in::put(tree.path());
    for name in ["scx_sfs", "sfs_crowd", "faasbench", "sfs_guest"] {
        program(
            &tree.path().join("userspace/target/release").join(name),
            "#!/bin/sh\necho \"$*\" >>gen\n",
        );
    }
    program(&tree.path().join("bin/bpftool"), "");
    tree
}

fn run(tree: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", tree.join("bin").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_lab"));
    command
        .arg("overhead")
        .args(arguments)
        .current_dir(tree)
        .env_clear()
        .env("PATH", path)
        .envs(variables.iter().copied());
    command.output().unwrap()
}

/// The tables, and what the guests were called with.
fn tables(arguments: &[&str], variables: &[(&str, &str)]) -> (String, String) {
    let tree = tree();
    let output = run(tree.path(), arguments, variables);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let calls = fs::read_to_string(tree.path().join("calls")).unwrap();
    (String::from_utf8(output.stdout).unwrap(), calls)
}

#[test]
fn programs_by_the_number_of_cpus() {
    let (tables, calls) = tables(&["cpus", "1 4 16"], &[("ARGS", "-v"), ("TIMEOUT", "99")]);
    let heads: Vec<&str> = tables
        .lines()
        .filter(|line| line.starts_with("| us each"))
        .collect();
    assert_eq!(
        heads,
        [
            "| us each, two invocations | 1 CPUs | 4 CPUs | 16 CPUs |",
            "| us each, all CPUs busy | 1 CPUs | 4 CPUs |"
        ]
    );
    assert!(
        tables.contains("| `sfs_dispatch` | 1.01 | 1.04 | 1.16 |\n"),
        "{tables}"
    );
    assert!(
        tables.contains("| all, for each `sfs_init_task` | 3.50 |"),
        "{tables}"
    );
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls[0], "--timeout 99 --cpus 2: --one-cpu cpus -v");
    assert_eq!(calls[1], "--timeout 99 --cpus 4: cpus -v");
    assert_eq!(calls.len(), 3);
}

#[test]
fn programs_by_the_tasks_that_wait() {
    let (tables, calls) = tables(&["queue", "1 20000"], &[]);
    let heads: Vec<&str> = tables
        .lines()
        .filter(|line| line.contains("us each"))
        .collect();
    assert_eq!(heads[0], "| FILTER, us each | 1 waiting | 20000 waiting |");
    assert_eq!(heads.len(), 3);
    assert_eq!(calls, "--cpus 2 --mem 3G: --one-cpu queue  1 20000\n");
}

#[test]
fn memory_of_tasks() {
    let (table, calls) = tables(&["tasks", "80000"], &[]);
    assert_eq!(
        table,
        "|  | none | 80000 tasks |\n|---|---|---|\n| s to load | 2.5 | 3.5 |\n| s to unload | 0.5 | 0.5 |\n\
         | kernel objects, kB | 1 | 78126 |\n| maps, kB | 12 | |\n\nEach takes 1000 bytes.\n"
    );
    assert_eq!(calls, "--mem 4G: tasks  80000\n");
}

#[test]
fn the_loader_and_a_replay() {
    let (table, _) = tables(&["loader", "5000"], &[]);
    assert!(
        table.contains("| `learned`, 100 functions | 5000 | 10.0 | 30 | 0.30 % | 0.60 |\n"),
        "{table}"
    );
    let (table, calls) = tables(
        &["trace", "100"],
        &[("CPUS", "2"), ("ARGS", "-v"), ("SANDBOX", "warm")],
    );
    assert_eq!(
        table,
        "| program | calls | us each | ms in all |\n|---|---|---|---|\n\
         | `sfs_dispatch` | 2000 | 2.00 | 4.0 |\n| `sfs_tick` | 100 | 10.00 | 1.0 |\n| all | | | 5.0 |\n\n\
         In 2.0 s on 2 CPUs: 0.15 % of the machine in BPF programs; the loader 20.0 ms of CPU time, 1.00 % of one CPU.\n"
    );
    assert_eq!(
        calls,
        "--cpus 2 --in out/overhead/trace.csv:/trace.csv: trace warm --scheduler-args -v\n"
    );
}

#[test]
fn what_cannot_be_measured_is_said() {
    let tree = tree();
    let fails = |arguments: &[&str], status, text: &str| {
        let output = run(tree.path(), arguments, &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(text), "{said}");
    };
    fails(&["cpus", "0"], 2, "0");
    fails(&["queue", "many"], 2, "many");
    fails(
        &["tasks", "666"],
        7,
        "overhead: the guest tasks ended with exit status 7",
    );
    fs::remove_file(tree.path().join("userspace/target/release/sfs_crowd")).unwrap();
    fails(&["cpus"], 2, "sfs_crowd is not built; run make first");
}
