//! The program on small samples, with the kernel half of the repository and with copies of it that
//! have a known defect.

use sfs_skip::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const NO_TOOLS: &str = "LLVM's tools for coverage and sanitizers are not here";
const HALF: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scheds/sfs_bpf");

fn variants(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_variants"));
    for variable in ["N", "SEED", "SEEDS", "WRITE", "FILE"] {
        command.env_remove(variable);
    }
    command.args(arguments).output().expect("the program runs")
}

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    format!("{}{errors}", String::from_utf8_lossy(&output.stdout))
}

fn has_tools() -> bool {
    let clang = std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".to_owned());
    sfs_variants::coverage::Tools::find(&clang).is_ok()
        && sfs_variants::llvm::runtime("asan", &clang).is_ok()
}

/// A copy of the kernel half in which `from` in a file has become `to`.
fn changed(file: &str, from: &str, to: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(HALF).expect("the kernel half") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name");
        fs::copy(&path, folder.path().join(name)).expect("a copy");
    }
    let path = folder.path().join(file);
    let old = fs::read_to_string(&path).expect("the file");
    assert!(old.contains(from), "{file} has no {from}");
    fs::write(&path, old.replacen(from, to, 1)).expect("a copy");
    folder
}

fn path(folder: &TempDir) -> &str {
    folder.path().to_str().expect("a plain name")
}

/// The results of a campaign by name, with the times at which they were written.
fn results(folder: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let sub = fs::read_dir(folder).expect("a folder").next();
    let sub = sub.expect("a campaign").expect("a folder").path();
    let files = fs::read_dir(sub).expect("the campaign's folder");
    let mut found: Vec<_> = files
        .map(|entry| entry.expect("a file").path())
        .map(|path| (path.clone(), fs::metadata(path).and_then(|m| m.modified())))
        .map(|(path, time)| (path, time.expect("a time")))
        .collect();
    found.sort();
    found
}

/// Most mutants of the file that counts waiting tasks are found out by the recount. A second
/// campaign goes on where the first has ended.
#[test]
fn mutants_are_killed_and_results_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |n: &str| {
        let arguments = ["mutants", "--file", "queue.bpf.h", "--seeds", "3"];
        let more = ["--mutants", n, "--results", path(&folder)];
        let output = variants(&[&arguments[..], &more].concat());
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    let said = run("6");
    let row = said.lines().find(|line| line.starts_with("| all |"));
    let cells: Vec<&str> = row.expect("a row with sums").split('|').collect();
    let figure = |cell: &str| -> usize {
        let word = cell.split_whitespace().next();
        word.and_then(|word| word.parse().ok()).unwrap_or(0)
    };
    let (killed, others) = (figure(cells[2]), &cells[3..6]);
    let others: usize = others.iter().map(|cell| figure(cell)).sum();
    assert!(killed >= 1 && killed + others == 6, "{said}");
    // Which lines no run reaches is asked anew for the survivors of each campaign.
    let kept = || -> Vec<_> {
        let all = results(folder.path()).into_iter();
        all.filter(|(name, _)| !name.ends_with("unreached.json"))
            .collect()
    };
    let first = kept();
    assert!(first.len() >= 6, "{first:?}");

    run("7");
    let second = kept();
    assert!(first.iter().all(|one| second.contains(one)), "{second:?}");
    assert!(second.len() > first.len(), "{second:?}");
}

/// The working tree is never changed.
#[test]
fn a_file_that_does_not_exist_has_no_mutants() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["mutants", "--file", "no.h", "--seeds", "1"];
    let output = variants(&[&arguments[..], &["--results", path(&folder)]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("the kernel half has no file no.h"));
}

#[test]
fn coverage_has_a_row_for_each_file_and_names_what_is_missing() {
    if !has_tools() {
        skip!(NO_TOOLS);
    }
    let output = variants(&["coverage", "--seeds", "2"]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    let row = said
        .lines()
        .find(|line| line.starts_with("| `sfs.bpf.c` | "));
    let row = row.expect("the callbacks have a row");
    assert!(!row.contains("| 0 of"), "{row}");
    // The model does not unload the scheduler.
    let gap = said
        .lines()
        .find(|line| line.starts_with("sfs.bpf.c: not called: "));
    assert!(gap.is_some_and(|gap| gap.contains("sfs_exit")), "{said}");
}

/// A shift that is too far, and a read behind the context of a task.
#[test]
fn sanitizers_report_undefined_behaviour() {
    if !has_tools() {
        skip!(NO_TOOLS);
    }
    let shift = "volatile int far = 64; if (1ULL << far) barrier(); return bpf_ktime_get_ns();";
    let folder = changed("state.bpf.h", "return bpf_ktime_get_ns();", shift);
    let output = variants(&["sanitize", "--seeds", "1", "--kernel-half", path(&folder)]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("shift exponent 64 is too large"), "{said}");

    let read = "u32 queue = counted_queue(dsq), before, after; (void)*(volatile u8 *)(tctx + 1);";
    let from = "u32 queue = counted_queue(dsq), before, after;";
    let folder = changed("queue.bpf.h", from, read);
    let output = variants(&["sanitize", "--seeds", "2", "--kernel-half", path(&folder)]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("note_waiting"), "{said}");
    assert!(said.contains("heap-buffer-overflow"), "{said}");
}

/// The first seeds of the rows of a table: defect and seed.
fn first_seeds(text: &str) -> Vec<(String, u64)> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let seed = cells.get(3)?.split(' ').next()?.parse().ok()?;
        Some((cells[1].to_owned(), seed))
    };
    text.lines().filter_map(row).collect()
}

/// Few seeds show the defects of an old kernel half that the documents say the first ones show.
#[test]
fn an_old_kernel_half_shows_its_defects() {
    let mut git = Command::new("git");
    let commit = ["cat-file", "-e", "989571b^{commit}"];
    if !git
        .args(commit)
        .output()
        .is_ok_and(|done| done.status.success())
    {
        skip!("this clone has no commit 989571b");
    }
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/model.md");
    let document = fs::read_to_string(document).expect("the document");
    let (_, table) = document
        .split_once("<!-- past: begin -->")
        .expect("a table");
    let (table, _) = table.split_once("<!-- past: end -->").expect("its end");
    let early: Vec<_> = first_seeds(table)
        .into_iter()
        .filter(|&(_, seed)| seed <= 7)
        .collect();
    assert!(early.len() >= 4, "{early:?}");

    let output = variants(&["past", "989571b", "--seeds", "10"]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    let found = first_seeds(&said);
    for (defect, _) in early {
        assert!(
            found.iter().any(|(of, _)| *of == defect),
            "{defect}: {said}"
        );
    }
}

#[test]
fn bad_arguments_are_refused() {
    for arguments in [
        &["mutants", "--mutants", "0"][..],
        &["coverage", "--seeds", "0"],
        &["mutants", "--file", "a", "--write"],
        &["past", "0123456"],
        &["past", "--seeds", "0"],
        &[
            "coverage",
            "--kernel-half",
            "/no/such/folder",
            "--seeds",
            "1",
        ],
    ] {
        let output = variants(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            text(&output)
        );
    }
}
