//! The platforms' rows, with stand-ins for the VM and for all that it needs.

mod common;

use common::Tree;

const FRAMEWORK: [&str; 1] = ["functions-framework"];

#[test]
fn each_scheduler_gets_a_vm_and_the_report_compares_them() {
    let tree = Tree::new();
    let said = tree.run(&FRAMEWORK, &[("JOBS", "1")]);
    assert_eq!(
        said.succeeded(),
        "eevdf has run\nscx_sfs has run\nthe table\n"
    );
    for text in [
        "functions-framework: eevdf: booting a VM (4 CPUs, icount), starting the platform, sending the requests; takes a few minutes\n",
        "functions-framework: scx_sfs took 0 s, status 0\n",
        "/out/platforms/functions-framework: summary.json, report.html, a .csv for each row, and its logs in a folder\n",
    ] {
        assert!(said.err.contains(text), "{text} is not in {}", said.err);
    }
    let calls = tree.calls();
    let out = "TOP/out/platforms/functions-framework";
    let release = "TOP/userspace/target/release";
    let vm = |row: &str, own: &str, args: &str| {
        format!(
            "vm/run --accel icount --cpus 4 --mem 3G --quiet --console {out}/{row}.console {own}\
             --env FAASBENCH_ACCEL=icount --env FUNCTIONS=fib24 fib30  --env WORKERS=4 --env CPUS=4 \
             --env SCHEDULER={row} --env SCHEDULER_ARGS={args} --in {release}/faasbench \
             --in {release}/sfs_waste --in PYTHON:/platform.tar --in {out}/trace.csv:/trace.csv \
             --in TOP/vm/platforms/functions:/platform/functions \
             --in TOP/vm/platforms/guest:/platform/guest --out /out:{out}/{row} \
             -- sh /platform/guest/functions-framework"
        )
    };
    let options = "--cgroup functions/* --unit process --boundary accept";
    assert_eq!(calls[0], "fetch");
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let ours = [
        "faasbench gen table1-artefact --invocations 150 --load 0.9 --scale 0.25 --seed 5 --cpus 4",
        &vm("eevdf", "", ""),
        &vm("scx_sfs", &format!("--in {release}/scx_sfs "), options),
        &format!("faasbench report --out {out} {out}/eevdf.json {out}/scx_sfs.json"),
    ];
    assert_eq!(calls[calls.len() - 4..], ours);
    let trace = tree
        .place
        .read("out/platforms/functions-framework/trace.csv");
    assert_eq!(
        trace,
        "arrival_us,function,service_us\n0,fib30,7\n5,fib24,8\n9,fib30,7\n"
    );
    for (kind, text) in [("csv", "csv of eevdf\n"), ("json", "json of eevdf\n")] {
        let file = format!("out/platforms/functions-framework/eevdf.{kind}");
        assert_eq!(tree.place.read(&file), text);
    }
}

#[test]
fn settings_reach_the_vm() {
    let tree = Tree::new();
    tree.place.write("kernel", "image");
    tree.place
        .write("mine.csv", "arrival_us,function\n1,b\n2,a\n");
    let settings = [
        ("SCHEDULERS", "scx_sfs"),
        ("ARGS_scx_sfs", "--slice-us 9"),
        ("TRACE", "mine.csv"),
        ("WORKERS", "2"),
        ("CPUS", "8"),
        ("MEM", "5G"),
        ("ACCEL", "tcg"),
        ("KERNEL", "kernel"),
        ("OUT", "results"),
        ("HINTS", "/run/hints"),
        ("N", ""),
        ("JOBS", ""),
        ("QUIET", "1"),
    ];
    let said = tree.run(&["lambda"], &settings);
    assert_eq!(said.succeeded(), "scx_sfs has run\nthe table\n");
    assert_eq!(said.err, "");
    let calls = tree.calls();
    let vm = calls
        .iter()
        .find(|call| call.starts_with("vm/run"))
        .unwrap();
    for words in [
        "--accel tcg --cpus 8 --mem 5G --quiet --console results/scx_sfs.console --kernel kernel --in TOP/userspace/target/release/scx_sfs --in ",
        "/chrt --in TOP/userspace/target/release/lambda_runtime_api --env HINTS=/run/hints --env FAASBENCH_ACCEL=tcg --env FUNCTIONS=a b  --env WORKERS=2 --env CPUS=8 --env SCHEDULER=scx_sfs --env SCHEDULER_ARGS=--slice-us 9 ",
        " --in results/trace.csv:/trace.csv ",
        " --out /out:results/scx_sfs -- sh /platform/guest/lambda",
    ] {
        assert!(vm.contains(words), "{words} is not in {vm}");
    }
    let others = calls
        .iter()
        .any(|call| call == "fetch" || call.starts_with("faasbench gen"));
    assert!(!others, "{calls:?}");
    assert_eq!(
        tree.place.read("results/trace.csv"),
        "arrival_us,function\n1,b\n2,a\n"
    );
}

#[test]
fn rows_that_fail_are_counted_and_the_others_reported() {
    let tree = Tree::new();
    let schedulers = |names| [("SCHEDULERS", names), ("OUT", "out"), ("JOBS", "1")];
    let said = tree.run(&FRAMEWORK, &schedulers("eevdf scx_lost scx_sick"));
    said.ended(
        125,
        "functions-framework: 2 of the schedulers gave no clean run; see above\n",
    );
    said.ended(125, "scx_lost took 0 s, status 124\n");
    said.ended(125, "scx_sick took 0 s, status 1\n");
    let report = tree.calls().pop().unwrap();
    assert_eq!(
        report,
        "faasbench report --out out out/eevdf.json out/scx_sick.json"
    );
    let said = tree.run(&FRAMEWORK, &schedulers("scx_lost"));
    said.ended(
        125,
        "functions-framework: no scheduler gave a result; out has the consoles and what the platforms said\n",
    );
}

#[test]
fn old_results_of_these_rows_are_removed() {
    let tree = Tree::new();
    for name in [
        "eevdf/old",
        "eevdf.console",
        "report.html",
        "scx_sfs.csv",
        "notes",
    ] {
        tree.place.write(&format!("out/{name}"), "old");
    }
    let settings = [("SCHEDULERS", "eevdf"), ("OUT", "out")];
    tree.run(&FRAMEWORK, &settings).succeeded();
    let is_there = |name: &str| tree.place.path(&format!("out/{name}")).exists();
    assert!(!is_there("eevdf/old") && !is_there("eevdf.console") && !is_there("report.html"));
    assert!(is_there("scx_sfs.csv") && is_there("notes") && is_there("eevdf.csv"));
}

#[test]
fn bad_settings_are_refused_before_a_vm_boots() {
    let tree = Tree::new();
    tree.place.write("file", "");
    for (name, value, text) in [
        (
            "SCHEDULERS",
            "scx_nowhere",
            "functions-framework: found no scheduler scx_nowhere",
        ),
        ("SCHEDULERS", "eevdf eevdf", "eevdf is in SCHEDULERS twice"),
        ("OUT", "file/out", "cannot make the folder OUT=file/out"),
        ("TRACE", "none.csv", "cannot use TRACE=none.csv"),
        (
            "PYTHON",
            "none",
            "there is no 'none'; install Python 3.9 or later",
        ),
        ("LOAD", "x", "no load"),
        ("ACCEL", "fast", "ACCEL"),
        ("JOBS", "0", "JOBS"),
        ("CPUS", "256", "CPUS"),
    ] {
        tree.run(&FRAMEWORK, &[(name, value)]).ended(2, text);
    }
    tree.run(&["functions-framework", "now"], &[])
        .ended(2, "now");
    tree.place
        .remove("userspace/target/release/lambda_runtime_api");
    tree.run(&["lambda"], &[])
        .ended(2, "lambda: lambda_runtime_api is not built; run make first");
    tree.run(&["lambda", "--help"], &[]).ended(0, "HINTS");
    tree.place
        .script("vm/fetch", "echo 'fetch: no kernel' >&2; exit 125");
    tree.run(&FRAMEWORK, &[]).ended(125, "fetch: no kernel");
    assert_eq!(tree.booted(), [""; 0]);
}

#[test]
fn jobs_limits_the_vms_at_the_same_time() {
    for (jobs, patience, together) in [("2", "6000", true), ("1", "50", false)] {
        let tree = Tree::new();
        tree.place.write("patience", patience);
        let rows = ("SCHEDULERS", "eevdf scx_slow scx_sfs");
        tree.run(&FRAMEWORK, &[rows, ("JOBS", jobs)]).succeeded();
        let were = tree.place.path("together").exists();
        assert_eq!(were, together, "JOBS={jobs}");
        // Those that begin at the same time note it in any order.
        let mut booted = tree.booted();
        booted.sort();
        assert_eq!(booted, ["eevdf", "scx_sfs", "scx_slow"]);
    }
}
