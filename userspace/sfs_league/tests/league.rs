//! What the league measures, keeps and publishes, with the simulated optimum, which needs no VM.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Why a test is skipped.
const NOT_BUILT: &str = "the programs are not built; run make";
const PAGE: &str = "# Page\n\n<!-- What follows is written by sfs_league --publish. -->\n";
const RESULTS: &str = "docs/results/league.csv";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where a program of this workspace is: where cargo has put ours, or where make puts them.
fn built(name: &str) -> Option<PathBuf> {
    let ours = Path::new(env!("CARGO_BIN_EXE_sfs_league")).parent()?;
    let release = ours.parent()?.join("release");
    let mut paths = [ours.join(name), release.join(name)].into_iter();
    paths.find(|path| path.exists())
}

/// A repository with the page, and with those programs that are built.
fn tree() -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    let release = tree.path().join("userspace/target/release");
    for folder in ["vm", "docs/results", "userspace/target/release"] {
        fs::create_dir_all(tree.path().join(folder)).unwrap();
    }
    fs::write(tree.path().join("vm/run"), "").unwrap();
    fs::write(tree.path().join("docs/league.md"), PAGE).unwrap();
    for name in ["faasbench", "sfs_waste", "sfs_sim"] {
        if let Some(path) = built(name) {
            symlink(path, release.join(name)).unwrap();
        }
    }
    tree
}

fn league(tree: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sfs_league"))
        .args(arguments)
        .current_dir(tree)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .unwrap()
}

#[test]
fn results_are_kept_and_not_measured_again() {
    if ["faasbench", "sfs_waste", "sfs_sim"]
        .iter()
        .any(|name| built(name).is_none())
    {
        sfs_skip::skip!(NOT_BUILT);
    }
    let tree = tree();
    let tree = tree.path();
    let line = ["--schedulers", "srtf", "--seeds", "2", "bimodal", "w1"];
    let output = league(tree, &line);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let kept = fs::read_to_string(tree.join(RESULTS)).unwrap();
    let mut runs: Vec<String> = kept
        .lines()
        .skip(1)
        .map(|line| line.split(',').take(3).collect::<Vec<_>>().join(" "))
        .collect();
    runs.sort();
    assert_eq!(
        runs,
        ["bimodal 1 srtf", "bimodal 2 srtf", "w1 1 srtf", "w1 2 srtf"]
    );
    let trace = fs::read_to_string(tree.join("out/league/bimodal/seed-1/bimodal.trace.csv"));
    assert!(trace
        .unwrap()
        .lines()
        .skip(1)
        .all(|line| line.contains(",one,")));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains("\n### Mean turnaround\n\n| workload | srtf |\n"),
        "{table}"
    );

    fs::remove_dir_all(tree.join("out")).unwrap();
    let output = league(tree, &line);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!tree.join("out").exists(), "nothing was measured again");
    assert_eq!(fs::read_to_string(tree.join(RESULTS)).unwrap(), kept);
}

#[test]
fn workloads_of_published_traces_are_skipped_without_them() {
    if built("faasbench").is_none() || built("sfs_sim").is_none() {
        sfs_skip::skip!(NOT_BUILT);
    }
    let tree = tree();
    let output = league(
        tree.path(),
        &["--schedulers", "srtf", "--seeds", "1", "azure-1"],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("azure-1 is skipped: it needs the published traces"),
        "{said}"
    );
    assert!(!tree.path().join(RESULTS).exists());
}

#[test]
fn bad_usage_is_refused_in_one_sentence() {
    let tree = tree();
    for (line, says) in [
        (
            &["nothing"][..],
            "there is no workload nothing; --list prints all",
        ),
        (
            &["--schedulers", "cfs"],
            "there is no scheduler cfs in the league",
        ),
        (
            &["--schedulers", "scx_lavd"],
            "scx_lavd is not built; run make peers NAME=scx_lavd",
        ),
    ] {
        let output = league(tree.path(), line);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said, format!("league: {says}\n"));
    }
}

#[test]
fn the_page_has_the_tables_of_the_results() {
    let page = fs::read_to_string(repository().join("docs/league.md")).unwrap();
    let tree = tree();
    let results = repository().join(RESULTS);
    if results.exists() {
        fs::copy(results, tree.path().join(RESULTS)).unwrap();
    }
    let output = league(tree.path(), &["--publish"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let published = fs::read_to_string(tree.path().join("docs/league.md")).unwrap();
    let mark = PAGE.lines().last().unwrap();
    let table = |page: &str| page.split_once(mark).unwrap().1.to_string();
    assert_eq!(
        table(&page),
        table(&published),
        "make league WORKLOADS=--publish puts it there"
    );
}
