//! Impossible requests are refused with one sentence, before a VM is booted.

use crate::tree::tree;

#[test]
fn what_is_no_row() {
    let tree = tree!();
    for (rows, text) in [
        ("eevdf cfq", "unknown scheduler 'cfq'"),
        (
            "eevdf(slice=3)",
            "slice is '3'; want a time from 100us to 1000ms",
        ),
        ("eevdf(slice=3ms", "'eevdf(slice=3ms' is no row"),
        ("scx_sfs(after=3ms)", "after is no setting of scx_sfs"),
        (
            "ideal(preempt=none)",
            "ideal is simulated and has no settings",
        ),
        ("eevdf(slice=3ms)+x", "takes no options"),
        ("eevdf eevdf", "eevdf stands in SCHEDULERS twice"),
        ("scx_nowhere", "found no program scx_nowhere"),
        (
            "scx_rusty",
            "scx_rusty is not built; run make peers, or make peers NAME=scx_rusty for it alone",
        ),
        ("eevdf+x", "takes no options"),
        (
            "scx_sfs+x",
            "row scx_sfs+x has nothing of its own; set its options with ARGS_scx_sfs_x",
        ),
        ("../x", "is no row"),
        (" ", "SCHEDULERS names no scheduler"),
    ] {
        let said = tree.bench(rows, &[]).ended(2).says(text);
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    }
    tree.bench("fifo", &[("ARGS_fifo", "-x")])
        .ended(2)
        .says("takes no options");
    tree.bench("scx_sfs+a-b scx_sfs+a.b", &[("ARGS_scx_sfs_a_b", "-x")])
        .ended(2)
        .says("would share ARGS_scx_sfs_a_b");
    let program = ("PROGRAM_scx_sfs", "vm/init");
    tree.bench("scx_sfs", &[program])
        .ended(2)
        .says("PROGRAM_scx_sfs=vm/init is no program");
    assert_eq!(tree.booted(), "");
}

#[test]
fn settings_that_make_no_sense() {
    let tree = tree!();
    for (name, value) in [
        ("ACCEL", "x"),
        ("CPUS", "0"),
        ("CPUS", "256"),
        ("CPUS", "x"),
        ("JOBS", "0"),
        ("TIMEOUT", "x"),
        ("FRESH", "yes"),
        ("SANDBOX", "x"),
        ("TRACE", "/none"),
        ("WORKLOAD", "../x"),
    ] {
        tree.bench("eevdf", &[(name, value)]).ended(2).says(name);
    }
    // faasbench itself says why it refuses.
    tree.bench("eevdf", &[("LOAD", "much")])
        .ended(2)
        .says("--load");
    assert_eq!(tree.booted(), "");
}

#[test]
fn empty_variables_are_as_if_not_set() {
    let tree = tree!();
    let empty = [
        "TRACE", "WORKLOAD", "LOAD", "MEAN_MS", "CPUS", "ACCEL", "KERNEL", "FRESH", "SANDBOX",
    ];
    let empty = empty.map(|name| (name, ""));
    tree.bench("eevdf", &empty).ended(0);
    assert_eq!(tree.booted(), "eevdf");
}

#[test]
fn a_kernel_that_cannot_be_had() {
    let tree = tree!();
    tree.program("vm/fetch-kernel", "#!/bin/sh\necho none >&2\nexit 1\n");
    tree.bench("eevdf", &[("KERNEL", "5.4")])
        .ended(2)
        .says("none");
    assert_eq!(tree.booted(), "");
}

#[test]
fn files_that_are_not_there() {
    let tree = tree!();
    let bench = |files| tree.bench("scx_sfs", &[("FILES_scx_sfs", files)]);
    bench("none:/none")
        .ended(2)
        .says("cannot read none, from FILES_scx_sfs");
    bench("none")
        .ended(2)
        .says("FILES_scx_sfs has 'none'; want HOST:/GUEST");
    assert_eq!(tree.booted(), "");
}

#[test]
fn programs_that_are_not_built() {
    let tree = tree!();
    std::fs::remove_file(tree.at("userspace/target/release/sfs_sim")).unwrap();
    tree.bench("ideal", &[])
        .ended(2)
        .says("sfs_sim is not built; run make first");
}
