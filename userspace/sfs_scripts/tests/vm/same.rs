//! What a guest brings back, and that it is the same, to the byte, each time.

use crate::{guest, script};
use sfs_scripts::{Place, Said};
use std::fs;

/// Runs `vm/race` in a guest, whose console and results go to files numbered `n`.
fn race(place: &Place, n: u32) -> Said {
    guest(&[
        "--console",
        &place.text(&format!("console{n}")),
        "--env",
        "GREETING=it's \"me\"",
        "--in",
        &script("race").display().to_string(),
        "--in",
        &format!("{}:/data/in", place.text("input")),
        "--out",
        &format!("/out:{}", place.text(&format!("out{n}"))),
        "--",
        "sh",
        "-c",
        "cat /data/in && exec sh /bin/race",
    ])
}

/// Files of both runs have the same bytes.
#[track_caller]
fn same(place: &Place, first: &str, second: &str) {
    let [first_bytes, second_bytes] =
        [first, second].map(|name| fs::read(place.path(name)).unwrap());
    assert!(first_bytes == second_bytes, "{first} and {second} differ");
}

#[test]
fn a_race_is_the_same_again() {
    let place = Place::new();
    place.write("input", "brought in\n");
    let said = race(&place, 1);
    assert_eq!(said.status, 7, "{said:#?}");
    assert!(said.out.contains("brought in\n"), "{said:#?}");
    assert!(said.out.contains("GREETING=it's \"me\"\n"), "{said:#?}");
    assert!(said.err.contains("to stderr"), "{said:#?}");
    assert!(!said.out.contains("to stderr"), "{said:#?}");
    assert!(place.read("out1/sub/interrupts").contains("ttyS1"));
    assert_eq!(
        fs::metadata(place.path("out1/random")).unwrap().len(),
        4 << 20
    );

    let again = race(&place, 2);
    assert_eq!(again.status, 7, "{again:#?}");
    assert!(said.out == again.out, "standard output differs");
    same(&place, "console1", "console2");
    for file in ["sub/interrupts", "dmesg", "random"] {
        same(&place, &format!("out1/{file}"), &format!("out2/{file}"));
    }
}

/// A guest under perturbation `k` shows what it sees; its console goes to `console`.
fn perturbed(place: &Place, k: &str, console: &str) -> String {
    const SHOW: &str = "env; dmesg; cat /proc/interrupts /proc/kallsyms | head -n 200; head -c 64 /dev/urandom | od";
    let console = place.text(console);
    let arguments = [
        "--perturb",
        k,
        "--console",
        &console,
        "--",
        "sh",
        "-c",
        SHOW,
    ];
    guest(&arguments).succeeded().to_owned()
}

#[test]
fn a_perturbation_is_the_same_again_and_another_is_not() {
    let place = Place::new();
    let [first, again, other] = [("7", "first"), ("7", "again"), ("8", "other")]
        .map(|(k, console)| perturbed(&place, k, console));
    assert!(first.contains("VM_PERTURB=7\n"), "{first}");
    assert!(first == again, "the same perturbation differs");
    same(&place, "first", "again");
    assert!(other.contains("smp: Brought up 1 node, 4 CPUs"), "{other}");
    // Addresses and random numbers are others; each of these lines is there once.
    let others: std::collections::HashSet<&str> = other.lines().collect();
    let differing = first.lines().filter(|line| !others.contains(line)).count();
    assert!(differing > 100, "{differing} lines differ");
}
