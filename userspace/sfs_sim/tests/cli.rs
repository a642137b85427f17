//! Tests of the command line.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const TRACE: &str = "arrival_us,function,phases\n0,a,cpu:60\n10,b,cpu:5;io:7;cpu:15\n20,c,cpu:10\n";

fn sfs_sim(dir: &Path, args: &str) -> Output {
    fs::write(dir.join("t.csv"), TRACE).unwrap();
    Command::new(env!("CARGO_BIN_EXE_sfs_sim"))
        .args(args.split(' '))
        .current_dir(dir)
        .output()
        .unwrap()
}

fn fails(dir: &Path, args: &str) -> String {
    let output = sfs_sim(dir, args);
    assert!(!output.status.success(), "{args}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn writes_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let run = "run --trace t.csv --policy fifo --cpus 1 --out new/dir";
    let output = sfs_sim(dir.path(), run);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "fifo: 3 invocations, mean turnaround 0.065 ms\n"
    );
    let text = fs::read_to_string(dir.path().join("new/dir/fifo.csv")).unwrap();
    // a until 60, b until 65, c until 75, b, back since 72, until 90.
    let want = "id,function,arrival_us,start_us,end_us,cpu_us,service_us,\
                voluntary_switches,involuntary_switches,exit\n\
                0,a,0,0,60,60,60,0,0,0\n\
                1,b,10,60,90,20,20,1,0,0\n\
                2,c,20,65,75,10,10,0,0,0\n";
    assert_eq!(text, want);
    assert_eq!(fs::read_dir(dir.path().join("new/dir")).unwrap().count(), 1);
}

#[test]
fn options_reach_the_policies() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("known.txt"), "60\n20\n10\n").unwrap();
    let cases = [
        ("sfs --slice-us 15", "1,b,10,15,"),
        // At 20, b has waited for 5 since 15: c goes to FAIR, where b waits for
        // it again from 72 to 87.
        (
            "sfs --slice-us 1000 --overload-factor 0.005",
            "2,c,20,65,90,",
        ),
        ("sfs-no-hybrid --slice-us 1000", "2,c,20,65,75,"),
        ("gittins --durations known.txt", "1,b,10,20,"),
        ("srtf --name other", "1,b,10,10,"),
    ];
    for (policy, row) in cases {
        let run = format!("run --trace t.csv --cpus 1 --out out --policy {policy}");
        let output = sfs_sim(dir.path(), &run);
        assert!(output.status.success(), "{output:?}");
        let name = policy.split(' ').next().unwrap().replace("srtf", "other");
        let text = fs::read_to_string(dir.path().join(format!("out/{name}.csv"))).unwrap();
        assert!(text.contains(&format!("\n{row}")), "{policy}\n{text}");
    }
}

#[test]
fn errors_are_one_line_and_leave_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let run = |rest: &str| fails(dir.path(), &format!("run --cpus 1 --out out {rest}"));
    fs::write(
        dir.path().join("bad.csv"),
        "arrival_us,function,phases\n1,f\n",
    )
    .unwrap();
    let huge = "arrival_us,function,phases\n9000000000000,f,cpu:9000000000000\n";
    fs::write(dir.path().join("huge.csv"), huge).unwrap();
    fs::write(dir.path().join("known.txt"), "1\n0\n").unwrap();
    let cases = [
        (
            "--policy ps --trace bad.csv",
            "bad.csv:2: want 3 fields, found 2",
        ),
        (
            "--policy ps --trace huge.csv",
            "cannot simulate huge.csv: the trace may take 27000000000000 us to serve, \
             more than 10000000000000",
        ),
        (
            "--policy gittins --trace t.csv --durations known.txt",
            "known.txt:2: the duration is 0, want 1 or more",
        ),
        (
            "--policy learned --trace t.csv --ageing nan",
            "--ageing is NaN, want a number from 0 to 1000000",
        ),
        (
            "--policy learned --trace t.csv --learn-from bad.csv",
            "bad.csv:2: want 3 fields, found 2",
        ),
        (
            "--policy sfs --trace t.csv --overload-factor nan",
            "--overload-factor: an overload factor must be a finite number above 0, not NaN",
        ),
    ];
    for (rest, message) in cases {
        assert_eq!(run(rest), format!("sfs_sim: {message}\n"));
    }
    assert!(run("--policy ps --trace no.csv").starts_with("sfs_sim: cannot read no.csv: "));
    for usage in [
        "--policy x --trace t.csv",
        "--policy ps --trace t.csv --name a/b",
    ] {
        assert!(run(usage).starts_with("error: invalid value"));
    }
    let left = fs::read_dir(dir.path().join("out")).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}

#[test]
fn compares_policies_in_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let compare = "compare --cpus 1 --policy fifo,srtf --label three";
    let output = sfs_sim(dir.path(), &format!("{compare} t.csv"));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("| workload | policy | mean | short | long |"));
    assert!(lines[2].starts_with("| three | `fifo` | "));
    assert!(lines[3].starts_with("| three | `srtf` | "));
    let below = sfs_sim(dir.path(), &format!("{compare} --no-header t.csv t.csv"));
    assert_eq!(
        String::from_utf8(below.stdout).unwrap(),
        text[text.find("| three").unwrap()..]
    );
    assert!(fails(dir.path(), "compare --cpus 1 --policy ps no.csv").contains("cannot read no.csv"));
}

#[test]
fn history_is_read_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..100)
        .map(|nth| format!("{nth},a,cpu:60\n{nth},c,cpu:9\n"))
        .collect();
    let earlier = format!("arrival_us,function,phases\n{rows}");
    fs::write(dir.path().join("earlier.csv"), earlier).unwrap();
    let run = "run --trace t.csv --policy learned --cpus 1 --out out";
    let output = sfs_sim(dir.path(), &format!("{run} --learn-from earlier.csv"));
    assert!(output.status.success(), "{output:?}");
    assert!(dir.path().join("out/learned.csv").exists());
}

#[cfg(unix)]
#[test]
fn output_to_devices_and_links_keeps_them() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    std::os::unix::fs::symlink("/dev/null", out.join("ps.csv")).unwrap();
    fs::write(out.join("real"), "old").unwrap();
    std::os::unix::fs::symlink("real", out.join("las.csv")).unwrap();
    for policy in ["ps", "las"] {
        let run = format!("run --trace t.csv --policy {policy} --cpus 2 --out out");
        assert!(sfs_sim(dir.path(), &run).status.success());
        let link = fs::symlink_metadata(out.join(format!("{policy}.csv"))).unwrap();
        assert!(link.is_symlink());
    }
    assert!(fs::read_to_string(out.join("real"))
        .unwrap()
        .starts_with("id,"));
    assert_eq!(fs::read_dir(&out).unwrap().count(), 3);
}

#[test]
fn shards_are_compared_with_one_queue() {
    let dir = tempfile::tempdir().unwrap();
    let options = "shards --cpus 32 --service-us 1000 --invocations 100";
    let output = sfs_sim(dir.path(), options);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> = text.lines().skip(2).collect();
    assert!(rows[0].starts_with("| 32 | 1 ms | 1 | "), "{text}");
    assert!(rows[0].ends_with("| 0 % | 0.00 ms |"), "{text}");
    assert!(rows[1].starts_with("| 32 | 1 ms | 2 | "), "{text}");
    assert_eq!(rows.len(), 2, "{text}");
    let error = fails(dir.path(), "shards --load 0");
    assert!(error.contains("the load is 0"), "{error}");
}
