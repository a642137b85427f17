//! Machines that are lost, schedulers that do not load, a disk that is full.

use crate::tree::tree;
use nix::mount::{mount, umount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use sfs_skip::skip;
use std::fs::{self, File};
use std::io;
use std::path::Path;

#[test]
fn lost_machines_are_rows_and_are_tried_again() {
    let tree = tree!();
    let said = tree.bench("scx_lost scx_half eevdf", &[]).ended(3);
    assert_eq!(tree.booted(), "scx_lost scx_half eevdf");
    let table = said.stdout.clone();
    assert!(table.contains("scx_lost !"), "{table}");
    said.says("2 of 3 rows are no clean measurement:")
        .says("scx_lost (lost): no result came back, exit status 125: run: the guest panicked")
        .says("scx_half (lost): no result came back, exit status 1\n")
        .says("scx_lost (1 of 3): no result came back after");
    assert!(tree
        .read("out/scx_lost.json")
        .contains("\"status\": \"lost\""));
    assert_eq!(tree.read("out/scx_lost.log"), "run: the guest panicked\n");
    assert!(!tree.has("out/scx_half.csv") && !tree.has("out/.bench/scx_half.run"));
    tree.bench("scx_lost scx_half eevdf", &[]).ended(3);
    assert_eq!(tree.booted(), "scx_lost scx_half");
}

#[test]
fn schedulers_that_do_not_load_are_rows_and_are_kept() {
    let tree = tree!();
    let said = tree.bench("scx_broken eevdf", &[]).ended(3);
    assert_eq!(tree.booted(), "scx_broken eevdf");
    said.says("1 of 2 rows are no clean measurement:")
        .says("scx_broken (not-loaded): it ended");
    // They have told what there is to tell.
    let said = tree.bench("scx_broken eevdf", &[]).ended(3);
    said.says("scx_broken (not-loaded): it ended");
    assert_eq!(tree.booted(), "");
}

#[test]
fn a_simulation_that_refuses_its_options_is_a_lost_row() {
    let tree = tree!();
    let said = tree
        .bench("sfs srtf", &[("ARGS_sfs", "--nonsense")])
        .ended(3);
    said.says("sfs (lost): no result came back, exit status 2");
    assert!(tree.read("out/sfs.log").contains("--nonsense"));
    assert!(tree.has("out/srtf.csv") && tree.has("out/report.html"));
}

/// Mounts a small disk that only this thread and its children see.
fn mount_disk(path: &Path) -> bool {
    const NONE: Option<&str> = None;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    let (kind, size) = (Some("tmpfs"), Some("size=2m"));
    unshare(CloneFlags::CLONE_NEWNS)
        .and_then(|()| mount(NONE, "/", NONE, private, NONE))
        .and_then(|()| mount(Some("disk"), path, kind, MsFlags::empty(), size))
        .is_ok()
}

/// Fills the disk but for `spare` bytes.
fn fill(path: &Path, spare: u64) {
    let mut file = File::create(path).unwrap();
    io::copy(&mut io::repeat(0), &mut file).unwrap_err();
    let length = file.metadata().unwrap().len();
    file.set_len(length - spare).unwrap();
}

#[test]
fn a_full_disk_is_said_and_finished_rows_are_kept() {
    let tree = tree!();
    fs::create_dir(tree.at("out")).unwrap();
    tree.bench("ps", &[("OUT", "other")]).ended(0);
    let trace = [("TRACE", "other/table1-artefact.trace.csv")];
    let test = || {
        if !mount_disk(&tree.at("out")) {
            return false;
        }
        tree.bench("eevdf", &trace).ended(0);
        let result = tree.read("out/eevdf.csv");
        // The first file cannot be written, or what the row measures.
        for spare in [0, 4096] {
            fs::remove_file(tree.at("out/report.html")).unwrap();
            fs::remove_file(tree.at("out/summary.json")).unwrap();
            fill(&tree.at("out/full"), spare);
            let said = tree.bench("eevdf fifo", &trace).ended(1);
            said.says("No space left on device");
            fs::remove_file(tree.at("out/full")).unwrap();
            tree.bench("eevdf", &trace).ended(0);
        }
        tree.booted();
        tree.bench("eevdf fifo", &trace).ended(0);
        assert_eq!(tree.booted(), "fifo");
        assert_eq!(tree.read("out/eevdf.csv"), result);
        umount(&tree.at("out")).is_ok()
    };
    if !std::thread::scope(|scope| scope.spawn(test).join()).unwrap() {
        skip!("only root can mount a small disk");
    }
}
