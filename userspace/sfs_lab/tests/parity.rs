//! What `parity` measures and keeps, with stand-ins for the guests and for the archives, and
//! the tables that it makes.

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Each row has 1; redis ends the guest, nginx ends it before it says anything, and the
/// epoll row hangs.
const VM_RUN: &str = "#!/bin/bash
echo \"$*\" >>calls
while [[ $1 != -- ]]; do [[ $1 != ROWS=* ]] || rows=${1#ROWS=}; shift; done
[[ $rows != *nginx* ]] || { echo 'run: no kernel' >&2; exit 1; }
echo 'kernel 6.18'
for row in $rows; do
    [[ $row != redis* ]] || { echo 'run: given up' >&2; exit 124; }
    [[ $row != perf/epoll* ]] || { echo $$ >pid.new; mv pid.new pid; sleep 60; }
    echo \"row $row 1 ops/s\"
done
";

/// An archive in which the stressors' program is started by the loader.
const DEBIAN_ROOT: &str = "#!/bin/bash
mkdir -p root/lib && printf '#!/bin/sh\\necho cpu sem\\n' >root/lib/ld-linux-x86-64.so.2
chmod 755 root/lib/ld-linux-x86-64.so.2
tar -c -f archive.tar -C root . && echo \"$PWD/archive.tar\"
";

const PAGE: &str = "# Page\n\n<!-- What follows is written by sfs_lab parity --publish. -->\n";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity")
}

fn tree() -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("vm/run", VM_RUN),
        ("vm/debian-root", DEBIAN_ROOT),
        ("bin/sfs_guest", ""),
        ("bin/scx_sfs", ""),
        ("bin/sfs_crowd", ""),
        ("docs/parity.md", PAGE),
    ] {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    tree
}

fn parity(tree: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_lab"));
    command
        .arg("parity")
        .args(arguments)
        .current_dir(tree)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("RELEASE", "bin")
        .envs(variables.iter().copied());
    command
}

/// Measures rows under two schedulers.
fn measured(tree: &Path, rows: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = parity(tree, rows, &[("SCHEDULERS", "eevdf sfs"), ("JOBS", "2")]);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    output
}

/// The results of a column on 4 CPUs: row, value, commit and note.
fn kept(tree: &Path, column: &str) -> Vec<String> {
    let path = tree.join(format!("docs/results/parity/{column}-4.tsv"));
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let kept = [fields[0], fields[1], fields[3], fields[6]].join(" ");
        kept.trim_end().to_string()
    });
    lines.collect()
}

fn tables(tree: &Path, variables: &[(&str, &str)]) -> String {
    let output = parity(tree, &["--table"], variables).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tables_are_those_of_the_results() {
    let tree = tree();
    let results = fixtures().join("results");
    let results = [("OUT", results.to_str().unwrap())];
    let expected = fs::read_to_string(fixtures().join("table.md")).unwrap();
    assert_eq!(tables(tree.path(), &results), expected);
    let some = [results[0], ("CPUS", "1"), ("SCHEDULERS", "eevdf sfs")];
    let table = tables(tree.path(), &some);
    assert!(
        table.contains("### 1 CPU\n\n| row | eevdf | sfs |\n"),
        "{table}"
    );
    assert!(!table.contains("CPUs"), "{table}");
}

#[test]
fn the_page_has_the_tables_of_the_results() {
    let results = repository().join("docs/results/parity");
    let page = fs::read_to_string(repository().join("docs/parity.md")).unwrap();
    let tree = tree();
    let variables = [("OUT", results.to_str().unwrap())];
    let output = parity(tree.path(), &["--publish"], &variables)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let published = fs::read_to_string(tree.path().join("docs/parity.md")).unwrap();
    let mark = PAGE.lines().last().unwrap();
    let table = |page: &str| page.split_once(mark).unwrap().1.to_string();
    assert_eq!(
        table(&page),
        table(&published),
        "make parity ROWS=--publish puts it there"
    );
    assert!(published.starts_with(PAGE) && published.contains("\n### 4 CPUs\n"));
}

#[test]
fn results_are_extended() {
    let tree = tree();
    let tree = tree.path();
    measured(tree, &["keystrokes", "requests/4"], &[("COMMIT", "one")]);
    let both = ["keystrokes", "compile"];
    let output = measured(tree, &both, &[("COMMIT", "two")]);
    let before = ["compile 1 two", "keystrokes 1 one", "requests/4 1 one"];
    assert_eq!(kept(tree, "sfs"), before);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains("| compile | 1 ops/s two | 1.00 two |\n"),
        "{table}"
    );
    // Other programs: their rows are measured again, unless only missing ones are wanted.
    fs::write(tree.join("bin/scx_sfs"), "another").unwrap();
    measured(tree, &both, &[("COMMIT", "three"), ("MISSING", "1")]);
    assert_eq!(kept(tree, "sfs"), before);
    measured(tree, &both, &[("COMMIT", "three")]);
    let after = ["compile 1 three", "keystrokes 1 three", "requests/4 1 one"];
    assert_eq!(kept(tree, "sfs"), after);
    assert_eq!(kept(tree, "eevdf"), before);
    measured(tree, &["compile"], &[("MACHINES", "2")]);
    assert!(tree.join("docs/results/parity/sfs-4@1.tsv").exists());
}

#[test]
fn guests_have_what_their_rows_need() {
    let tree = tree();
    measured(
        tree.path(),
        &["stress/sem/*", "keystrokes*"],
        &[("CPUS", "2"), ("SCHEDULERS", "fair"), ("JOBS", "1")],
    );
    let calls = fs::read_to_string(tree.path().join("calls")).unwrap();
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls.len(), 2, "{calls:?}");
    let has = |call: &str, text: &str| assert!(call.contains(text), "{text}: {call}");
    for call in &calls {
        has(call, "--quiet --timeout 1800 --mem 3G --cpus 2 --console ");
        has(call, " --in bin/sfs_crowd --in bin/sfs_guest ");
        has(call, " --in bin/scx_sfs --env SCHEDULER=scx_sfs ");
        assert!(!call.contains("servers.tar"), "{call}");
    }
    has(calls[0], "/archive.tar:/stress.tar ");
    has(
        calls[0],
        " SCHEDULER_ARGS=--policy fair --env ROWS=stress/sem/1 stress/sem/all keystrokes -- sfs_guest parity",
    );
    assert!(!calls[1].contains("stress.tar"), "{}", calls[1]);
    has(
        calls[1],
        " SCHEDULER_ARGS=--policy fair --cgroup functions/* --env ROWS=keystrokes+load --",
    );
}

#[test]
fn a_guest_that_ends_takes_one_row_with_it() {
    let tree = tree();
    let output = measured(
        tree.path(),
        &["redis/get/*", "keystrokes", "nginx/p99+load"],
        &[("COMMIT", "one")],
    );
    let gone = "one the guest ended with 124: run: given up";
    let rows = [
        "keystrokes 1 one".to_string(),
        format!("redis/get/p99 - {gone}"),
        format!("redis/get/throughput - {gone}"),
    ];
    assert_eq!(kept(tree.path(), "sfs"), rows);
    let said = String::from_utf8(output.stderr).unwrap();
    let lost = "parity: a guest with sfs on 4 CPUs ended with 1: run: no kernel\n";
    assert!(said.contains(lost), "{said}");
    assert!(said.contains("parity: eevdf on 4 CPUs: 3 rows\n"), "{said}");
}

#[test]
fn what_is_measured_is_kept_when_it_is_interrupted() {
    let tree = tree();
    let variables = [("SCHEDULERS", "eevdf"), ("COMMIT", "one")];
    let mut command = parity(tree.path(), &["keystrokes", "perf/epoll/wait"], &variables);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let parity = command.spawn().unwrap();
    let path = tree.path().join("pid");
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(Pid::from_raw(parity.id() as i32), Signal::SIGINT).unwrap();
    let output = parity.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let guest = fs::read_to_string(path).unwrap();
    assert!(!Path::new("/proc").join(guest.trim()).exists());
    assert_eq!(kept(tree.path(), "eevdf"), ["keystrokes 1 one"]);
}

#[test]
fn rows_are_listed() {
    let tree = tree();
    let output = parity(tree.path(), &["--list"], &[]).output().unwrap();
    let rows = String::from_utf8(output.stdout).unwrap();
    assert!(
        rows.starts_with("stress/cpu/1\nstress/cpu/all\nstress/sem/1\n"),
        "{rows}"
    );
    assert!(rows.ends_with("\ncompile\ncompile+load\n"), "{rows}");
}

#[test]
fn what_cannot_be_measured_is_said() {
    let tree = tree();
    let fails = |arguments: &[&str], variables: &[(&str, &str)], text: &str| {
        let output = parity(tree.path(), arguments, variables).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(text), "{said}");
    };
    fails(&["--nonsense"], &[], "--nonsense");
    fails(&["--all", "--list"], &[], "--list");
    fails(&["--table"], &[("CPUS", "many")], "many");
    fails(
        &["--table"],
        &[],
        "there are no results in docs/results/parity",
    );
    fails(
        &["nothing/*"],
        &[],
        "there is no row 'nothing/*'; --list has them all",
    );
    fails(
        &[],
        &[("SCHEDULERS", "eevdf scx_none")],
        "make peers NAME=scx_none",
    );
    fails(
        &[],
        &[("RELEASE", "none")],
        "none/scx_sfs is not built; run make first",
    );
    fs::write(tree.path().join("docs/parity.md"), "").unwrap();
    let results = fixtures().join("results");
    let results = [("OUT", results.to_str().unwrap())];
    fails(
        &["--publish"],
        &results,
        "there is no line '<!-- What follows",
    );
}
