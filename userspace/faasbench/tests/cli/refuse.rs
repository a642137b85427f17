//! Bad input: one message that names it, and no file written.

use crate::common::{can_measure, CANNOT_MEASURE};
use crate::place::{Place, TINY};
use sfs_skip::skip;
use std::path::Path;

#[test]
fn bad_input_is_named_and_nothing_is_written() {
    let place = Place::new();
    place.write(
        "bad.csv",
        "arrival_us,function,phases\n5,f,cpu:1\n4,f,cpu:1\n",
    );
    place.write(
        "cut.csv",
        "arrival_us,function,phases\n5,f,cpu:1\n6,f,cpu:1",
    );
    place.write("empty.csv", "");
    place.write("list.txt", "nothing of use\n");
    place.write("one.txt", "f f.py 20 1 1\n");
    place.write("times.txt", "5\n1h\n");
    place.write("zero.txt", "0\n");
    place.write("file", "");
    let run = "run --scheduler eevdf --cpus 1 --out out --trace";
    let gen = "gen table1 --cpus 2 --invocations";
    let cases = [
        (
            format!("{run} bad.csv"),
            "bad.csv:3: arrival 4 is before the previous one",
        ),
        (
            format!("{run} cut.csv"),
            "cut.csv:3: the last line has no newline",
        ),
        (format!("{run} empty.csv"), "empty.csv:1: the file is empty"),
        (format!("{run} none.csv"), "cannot read none.csv"),
        (
            format!("{run} bad.csv --refill 20,10001"),
            "want 1 to 4 whole numbers of us from 0 to 10000",
        ),
        (
            "calibrate --repetitions 0".to_string(),
            "invalid value '0' for '--repetitions <N>'",
        ),
        (
            format!("{gen} 0"),
            "invalid value '0' for '--invocations <N>'",
        ),
        (format!("{gen} -4"), "--invocations"),
        (format!("{gen} 99999999999999999999"), "--invocations"),
        (
            format!("{gen} 4 --load nan"),
            "want a number from 0.001 to 100",
        ),
        (
            format!("{gen} 4 --scale 0"),
            "want a number from 0.001 to 1000",
        ),
        (
            format!("{gen} 4 --frobnicate"),
            "unexpected argument '--frobnicate'",
        ),
        (
            format!("{gen} 4 -o no/such/t.csv"),
            "cannot write no/such/t.csv",
        ),
        (
            format!("{gen} 4 --arrivals often"),
            "want poisson, uniform, bursty, replay:FILE or azure:FILE",
        ),
        (
            format!("{gen} 4 --arrivals replay:times.txt"),
            "times.txt:2: `1h` is not a time",
        ),
        (
            format!("{gen} 4 --arrivals replay:zero.txt"),
            "zero.txt: all its arrivals are at the same time",
        ),
        (
            format!("{gen} 4 --popularity zipf:1"),
            "--popularity needs --functions",
        ),
        (
            format!("{gen} 4 --functions 1 --popularity skewed"),
            "needs 2 functions",
        ),
        (
            format!("{gen} 4 --within-cv 1"),
            "--within-cv needs --functions",
        ),
        (format!("{gen} 4 --io-ms 5..2"), "want LOW..HIGH"),
        (
            format!("{gen} 4 --io-share 1.1"),
            "want a number from 0 to 1",
        ),
        (
            format!("{gen} 9 --spikes 2 --spike-invocations 4"),
            "2 spikes of 4 invocations do not fit into 9",
        ),
        (format!("{gen} 9 --spikes 2"), "--spike-invocations"),
        (
            "gen empirical --cpus 1 --invocations 2 --durations times.txt".into(),
            "times.txt:2: `1h` is not a time",
        ),
        (
            "gen lognormal --cpus 1 --invocations 2 --min-us 9 --max-us 8".into(),
            "less than a thousandth",
        ),
        (
            "gen lognormal --cpus 1 --invocations 1000000 --load 0.001".into(),
            "longer than 115 days",
        ),
        (
            "convert azure --invocations none.csv --durations bad.csv".into(),
            "cannot read none.csv",
        ),
        (
            "convert azure --invocations bad.csv --durations bad.csv -o t.csv".into(),
            "bad.csv:1: no column HashOwner",
        ),
        (
            "convert azure --invocations bad.csv --durations bad.csv --minutes 9..8".into(),
            "want A..B as 480..539",
        ),
        (
            "convert azure --invocations bad.csv --durations bad.csv --cap-top 0.1 --drop-top 1"
                .into(),
            "cannot be used with",
        ),
        (
            "convert azure --invocations bad.csv --durations bad.csv --load 1".into(),
            "--cpus <C>",
        ),
        (
            "convert fc list.txt -o t.csv".into(),
            "list.txt: none of its lines is a request",
        ),
        (
            "convert fc list.txt --baselines list.txt".into(),
            "list.txt: none of its lines is a baseline",
        ),
        ("convert fc none.txt".into(), "cannot read none.txt"),
        (
            "convert sfs one.txt --skip 1".into(),
            "--skip 1 leaves nothing of 1 invocations",
        ),
        (
            "gen table1 --invocations 2 --cpus 1 --mean-ms 5 --scale 2".into(),
            "cannot be used with",
        ),
        ("convert sfs none.txt".into(), "cannot read none.txt"),
        (
            "convert sfs list.txt -o t.csv".into(),
            "list.txt: none of its lines",
        ),
        (
            "summarize bad.csv --trace bad.csv --cpus 1".into(),
            "bad.csv:3:",
        ),
        ("report none.json".into(), "cannot read none.json"),
        ("report bad.csv".into(), "bad.csv is not JSON"),
        (
            "report bad.csv --out file/x".into(),
            "cannot create the folder file/x",
        ),
        ("".into(), "Usage: faasbench <COMMAND>"),
    ];
    let before = place.names(Path::new(""));
    for (arguments, message) in cases {
        let said = place.fail(&arguments);
        assert!(said.contains(message), "{arguments}: {said}");
    }
    assert_eq!(place.names(Path::new("")), before);
}

#[test]
fn invalid_runs_are_refused_before_measuring() {
    let place = Place::new();
    place.write("t.csv", TINY);
    place.write("file", "");
    let run = "run --trace t.csv --out out";
    let cases = [
        (
            format!("{run} --cpus 1 --scheduler scx_none"),
            "unknown scheduler `scx_none`",
        ),
        (
            format!("{run} --cpus 1 --scheduler fifo --scheduler-args --x"),
            "fifo is part of the kernel and takes no",
        ),
        (
            format!("{run} --cpus 1 --scheduler eevdf --prestart 3"),
            "--prestart and --handler need --sandbox warm or cgroup",
        ),
        (
            format!("{run} --cpus 1 --scheduler eevdf --sandbox warm --cgroup-weight 3"),
            "need --sandbox cgroup",
        ),
        (
            format!("{run} --cpus 1 --scheduler eevdf --sandbox bare-metal"),
            "[possible values: process, warm, cgroup]",
        ),
        (
            format!("{run} --cpus 1 --scheduler eevdf --work dream"),
            "[possible values: spin, fib, primes,",
        ),
        (
            format!("{run} --cpus 1 --scheduler eevdf --name a/b"),
            "want a name such as",
        ),
    ];
    for (arguments, message) in cases {
        let said = place.fail(&arguments);
        assert!(said.contains(message), "{arguments}: {said}");
    }
    assert_eq!(place.names(Path::new("")), ["file", "t.csv"]);
}

#[test]
fn runs_that_this_machine_cannot_measure_are_refused() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let place = Place::new();
    place.write("t.csv", TINY);
    place.write("file", "");
    let said = place.fail("run --trace t.csv --out out --cpus 4096 --scheduler eevdf");
    assert!(said.contains("--cpus is 4096, but only"), "{said}");
    let said = place.fail("run --trace t.csv --out file --cpus 1 --scheduler eevdf");
    assert!(said.contains("cannot create the folder file"), "{said}");
    assert_eq!(place.names(Path::new("")), ["file", "t.csv"]);
}
