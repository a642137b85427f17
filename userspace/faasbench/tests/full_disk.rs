//! A full disk: one sentence, no partial file, and no measurement is lost.

mod common;

use common::{can_measure, CANNOT_MEASURE};
use nix::mount::{mount, umount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use sfs_skip::skip;
use std::path::Path;
use std::process::{Command, Output};

const TRACE: &str = "arrival_us,function,phases\n0,f,cpu:2000\n1000,g,cpu:1000\n";

fn faasbench(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_faasbench"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Runs it, which must fail; returns its error.
fn fail(folder: &Path, arguments: &str) -> String {
    let output = faasbench(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr).trim().to_string();
    assert_eq!(output.status.code(), Some(1), "{arguments}: {error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

fn succeed(folder: &Path, arguments: &str) {
    let output = faasbench(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {error}");
}

/// A run of the trace into the folder `out`, on all CPUs.
fn run() -> String {
    let cpus = std::thread::available_parallelism().unwrap();
    format!("run --trace t.csv --scheduler eevdf --cpus {cpus} --out out")
}

/// Runs `test` with a folder on a disk of 1 MiB that only it sees. Returns
/// false if that is impossible: [`NO_DISK`].
#[must_use]
fn with_small_disk(test: impl FnOnce(&Path) + Send) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    // A thread may have mounts of its own, and its children see them.
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let mounted = mount_small_disk(path);
            if mounted {
                test(path);
                let _ = umount(path);
            }
            mounted
        });
        run.join().unwrap()
    })
}

const NO_DISK: &str = "only root can mount a small disk";

/// By system calls: not every machine has the command mount.
fn mount_small_disk(path: &Path) -> bool {
    const NONE: Option<&str> = None;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    unshare(CloneFlags::CLONE_NEWNS).is_ok()
        && mount(NONE, "/", NONE, private, NONE).is_ok()
        && mount(
            Some("none"),
            path,
            Some("tmpfs"),
            MsFlags::empty(),
            Some("size=1m"),
        )
        .is_ok()
}

/// Fills the disk at `path`, except for `spare` bytes.
fn fill(path: &Path, spare: u64) {
    let ballast = path.join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    // It fails once the disk is full.
    let _ = std::io::copy(&mut std::io::repeat(0), &mut file);
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(spare)).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_is_refused_before_it_is_measured() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let tried = with_small_disk(|disk| {
        std::fs::write(disk.join("t.csv"), TRACE).unwrap();
        std::fs::create_dir(disk.join("out")).unwrap();
        fill(disk, 8192);
        let said = fail(disk, &run());
        assert!(said.contains("KiB of space"), "{said}");
        assert!(said.contains("No space left"), "{said}");
        assert!(names(&disk.join("out")).is_empty());
        fill(disk, 256 << 10);
        succeed(disk, &run());
        assert_eq!(names(&disk.join("out")), ["eevdf.csv", "eevdf.json"]);
    });
    if !tried {
        skip!(NO_DISK);
    }
}

#[test]
fn traces_and_reports_are_complete_or_absent() {
    let tried = with_small_disk(|disk| {
        std::fs::write(disk.join("t.csv"), TRACE).unwrap();
        succeed(
            disk,
            "summarize --lost crashed --scheduler x --trace t.csv --cpus 1 -o x.json",
        );
        std::fs::create_dir(disk.join("out")).unwrap();
        std::fs::write(disk.join("out/report.html"), "old").unwrap();
        fill(disk, 4096);
        for arguments in [
            "report x.json --out out",
            "gen table1 --invocations 2000 --load 0.9 --cpus 2 -o out/trace.csv",
        ] {
            let said = fail(disk, arguments);
            assert!(said.contains("No space left"), "{arguments}: {said}");
        }
        let left = names(&disk.join("out"));
        assert!(!left.iter().any(|name| name.ends_with(".tmp")), "{left:?}");
        assert!(!left.iter().any(|name| name == "trace.csv"), "{left:?}");
        let report = std::fs::read(disk.join("out/report.html")).unwrap();
        assert_eq!(report, b"old");
    });
    if !tried {
        skip!(NO_DISK);
    }
}

#[test]
fn measurements_are_printed_if_they_cannot_be_written() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    std::fs::write(folder.join("t.csv"), TRACE).unwrap();
    std::fs::create_dir(folder.join("out")).unwrap();
    // A device is written directly: this one is full, which shows only at the
    // end.
    std::os::unix::fs::symlink("/dev/full", folder.join("out/eevdf.csv")).unwrap();
    let output = faasbench(folder, &run());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("eevdf.csv") && said.contains("No space left"),
        "{said}"
    );
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["trace"]["invocations"], 2);
    assert!(printed["makespan_ms"].as_f64().unwrap() > 0.0);
    // The other file is complete.
    let text = std::fs::read(folder.join("out/eevdf.json")).unwrap();
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&text).unwrap(),
        printed
    );
}
