//! The kernel half's buckets of CPU time (`buckets.h`, in C) agree with those
//! of this crate: the loader makes tables with the latter, and the kernel half
//! looks them up with the former.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sfs_policy::learn::buckets::{bucket, start_ns, BUCKETS};
use sfs_skip::skip;

/// For each number, one per line: its bucket, and the start of the bucket with
/// that number.
const PROGRAM: &str = r#"
#include <stdio.h>
#include "intf.h"
#include "buckets.h"

int main(void)
{
	unsigned long long n;

	while (scanf("%llu", &n) == 1)
		printf("%u %llu\n", bucket_of(n), bucket_start((u32)n));
	return 0;
}
"#;

/// Returns a C compiler of this machine.
fn compiler() -> Option<&'static str> {
    let runs = |name: &&str| {
        let mut asked = Command::new(name);
        asked.arg("--version").stdout(Stdio::null());
        asked.stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    };
    ["cc", "gcc", "clang"].into_iter().find(runs)
}

/// Compiles the program into `folder`.
fn compile(compiler: &str, folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("buckets.c"), folder.join("buckets"));
    std::fs::write(&source, PROGRAM).unwrap();
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scheds/sfs_bpf");
    let done = Command::new(compiler)
        .args(["-O1", "-Wall", "-Werror", "-I"])
        .args([headers.as_path(), &source, Path::new("-o"), &program])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{compiler}: {said}");
    program
}

/// Returns the answers of `program`: two for each number.
fn answers(program: &Path, numbers: &[u64]) -> Vec<(usize, u64)> {
    let mut running = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = numbers.iter().map(|n| format!("{n}\n")).collect();
    let mut input = running.stdin.take().unwrap();
    // Concurrently, since it answers while it reads.
    let asking = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let done = running.wait_with_output().unwrap();
    asking.join().unwrap().unwrap();
    assert!(done.status.success());
    let answer = |line: &str| {
        let (bucket, start) = line.split_once(' ').unwrap();
        (bucket.parse().unwrap(), start.parse().unwrap())
    };
    let said = String::from_utf8(done.stdout).unwrap();
    said.lines().map(answer).collect()
}

#[test]
fn the_kernel_half_has_the_same_buckets() {
    let Some(compiler) = compiler() else {
        skip!("there is no C compiler");
    };
    let folder = tempfile::tempdir().unwrap();
    let program = compile(compiler, folder.path());

    let buckets: Vec<u64> = (0..BUCKETS as u64).collect();
    for (index, (_, start)) in answers(&program, &buckets).into_iter().enumerate() {
        assert_eq!(start, start_ns(index), "start of bucket {index}");
    }

    // Both sides of each boundary, of those beyond the last bucket, of each power of two, and
    // the ends.
    let boundaries = (0..BUCKETS + 200).map(start_ns);
    let powers = (0..u64::BITS).map(|bit| 1 << bit);
    let edges = boundaries.chain(powers).chain([u64::MAX]);
    let times: Vec<u64> = edges
        .flat_map(|ns| [ns.saturating_sub(1), ns, ns.saturating_add(1)])
        .collect();
    let answered = answers(&program, &times);
    assert_eq!(answered.len(), times.len());
    for (ns, (index, _)) in times.iter().zip(answered) {
        assert_eq!(index, bucket(*ns), "bucket of {ns} ns");
    }
}
