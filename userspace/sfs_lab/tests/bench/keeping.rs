//! Only rows without a result are run, and a result is what its settings make of it.

use crate::tree::tree;
use std::fs;

#[test]
fn finished_rows_are_kept() {
    let tree = tree!();
    let first = tree.bench("eevdf scx_sfs srtf", &[]).ended(0);
    assert_eq!(tree.booted(), "eevdf scx_sfs");
    let result = tree.read("out/eevdf.csv");
    let second = tree.bench("eevdf scx_sfs srtf", &[]).ended(0);
    assert_eq!(tree.booted(), "");
    second.says("eevdf (1 of 3) is finished from an earlier run");
    assert!(first.stdout.contains("srtf (sim)"), "{first:?}");
    // One row more is one run more.
    tree.bench("eevdf scx_sfs fifo", &[])
        .ended(0)
        .says("all 3 rows are clean");
    assert_eq!(tree.booted(), "fifo");
    tree.bench("eevdf scx_sfs", &[("FRESH", "1")]).ended(0);
    assert_eq!(tree.booted(), "eevdf scx_sfs");
    assert_eq!(tree.read("out/eevdf.csv"), result);
}

#[test]
fn what_has_changed_is_run_again() {
    let tree = tree!();
    let bench = |kernel| {
        let variables = [("ARGS_scx_sfs", "-v"), ("KERNEL", kernel)];
        let said = tree.bench("eevdf scx_sfs srtf", &variables).ended(0);
        (tree.booted(), said)
    };
    tree.bench("eevdf scx_sfs srtf", &[]).ended(0);
    assert_eq!(tree.booted(), "eevdf scx_sfs");
    let (booted, said) = bench("");
    assert_eq!(booted, "scx_sfs");
    said.says("scx_sfs is run again: its options changed");
    tree.program("userspace/target/release/scx_sfs", "another");
    assert_eq!(bench("").0, "scx_sfs");
    // What stands behind a program's end changes nothing but its checksum.
    let faasbench = tree.at("userspace/target/release/faasbench");
    let mut program = fs::read(&faasbench).unwrap();
    program.push(0);
    fs::remove_file(&faasbench).unwrap();
    tree.program("userspace/target/release/faasbench", "");
    fs::write(&faasbench, program).unwrap();
    let (booted, said) = bench("");
    assert_eq!(booted, "eevdf scx_sfs");
    said.says("eevdf is run again: its benchmark changed")
        .says("srtf is run again: its benchmark changed");
    tree.write("kernel/vmlinuz", "another");
    assert_eq!(bench("").0, "eevdf scx_sfs");
    tree.write("image", "a third");
    assert_eq!(bench("image").0, "eevdf scx_sfs");
    assert_eq!(bench("image").0, "");
}

#[test]
fn another_trace_starts_afresh() {
    let tree = tree!();
    tree.bench("eevdf scx_sfs", &[]).ended(0);
    assert_eq!(tree.booted(), "eevdf scx_sfs");
    tree.write("out/note", "mine");
    let said = tree.bench("eevdf", &[("SEED", "6")]).ended(0);
    said.says("out has results of other settings (trace): starting afresh");
    assert_eq!(tree.booted(), "eevdf");
    assert!(!tree.has("out/scx_sfs.json") && tree.has("out/note"));
    let said = tree
        .bench("eevdf", &[("SEED", "6"), ("CPUS", "2")])
        .ended(0);
    said.says("settings (cpus, trace)");
    assert_eq!(tree.booted(), "eevdf");
    tree.bench(
        "eevdf",
        &[("TRACE", "out/table1-artefact.trace.csv"), ("CPUS", "2")],
    )
    .ended(0);
    assert_eq!(tree.booted(), "");
}

#[test]
fn a_peer_is_found_where_make_peers_puts_it() {
    let tree = tree!();
    tree.program(".cache/peers/bin/scx_rusty", "");
    tree.bench("eevdf scx_rusty", &[]).ended(0);
    assert_eq!(tree.booted(), "eevdf scx_rusty");
    let program = ".cache/peers/bin/scx_rusty:/bin/scx_rusty";
    assert!(tree.read("brought").lines().any(|line| line == program));
}

#[test]
fn labels_have_options_and_programs_of_their_own() {
    let tree = tree!();
    tree.program("old", "another");
    let variables = [
        ("ARGS_scx_sfs", "-v"),
        ("ARGS_scx_sfs_short", "--slice-us 5"),
        ("PROGRAM_scx_sfs_old", "old"),
        ("ARGS_sfs_c", "--slice-us 9000"),
        ("SANDBOX", "warm"),
        ("SANDBOX_ARGS", "--prestart 2"),
    ];
    tree.bench("scx_sfs scx_sfs+short scx_sfs+old sfs+c sfs", &variables)
        .ended(0);
    let calls = tree.read("calls");
    let ends = |row: &str, end: &str| {
        let start = format!("--scheduler scx_sfs --name {row} ");
        assert!(
            calls
                .lines()
                .any(|line| line.contains(&start) && line.ends_with(end)),
            "{calls}"
        );
    };
    ends(
        "scx_sfs",
        "--out /out --sandbox warm --prestart 2 --scheduler-args -v",
    );
    ends(
        "scx_sfs+short",
        "--prestart 2 --scheduler-args --slice-us 5",
    );
    ends("scx_sfs+old", "--out /out --sandbox warm --prestart 2");
    assert!(tree
        .read("brought")
        .lines()
        .any(|line| line == "old:/bin/scx_sfs"));
    assert!(tree
        .read("out/sfs+c.json")
        .contains("\"args\": \"--slice-us 9000\""));
    assert_ne!(tree.read("out/sfs+c.csv"), tree.read("out/sfs.csv"));
}

#[test]
fn files_are_brought_and_what_is_learned_is_kept() {
    let tree = tree!();
    let own = ("ARGS_scx_sfs_learned", "-v");
    tree.bench("scx_sfs scx_sfs+learned", &[own]).ended(0);
    assert_eq!(tree.booted(), "scx_sfs scx_sfs+learned");
    assert_eq!(tree.read("out/scx_sfs+learned.state"), "learned\n");
    tree.write("functions", "old");
    let files = ("FILES_scx_sfs_learned", "functions:/functions");
    let bench = || {
        tree.bench("scx_sfs scx_sfs+learned", &[own, files])
            .ended(0)
    };
    bench();
    assert_eq!(tree.booted(), "scx_sfs+learned");
    assert!(tree
        .read("brought")
        .lines()
        .any(|line| line == "functions:/functions"));
    bench();
    assert_eq!(tree.booted(), "");
    tree.write("functions", "new");
    bench().says("its files changed");
    assert_eq!(tree.booted(), "scx_sfs+learned");
}

#[test]
fn a_row_can_have_a_kernel_of_its_own() {
    let tree = tree!();
    let rows = "eevdf eevdf(slice=3ms) cfs fifo(kernel=7.2+deb14)";
    tree.bench(rows, &[]).ended(0);
    let want =
        "eevdf default\neevdf(slice=3ms) default\ncfs 6.1\nfifo(kernel=7.2+deb14) 7.2+deb14\n";
    assert_eq!(tree.read("kernels"), want);
    std::fs::remove_file(tree.at("kernels")).unwrap();
    // That of all others does not change these.
    tree.write("image", "another");
    tree.bench(rows, &[("KERNEL", "image")]).ended(0);
    assert_eq!(
        tree.read("kernels"),
        "eevdf image\neevdf(slice=3ms) image\n"
    );
}
