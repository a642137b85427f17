//! The kernel half in the model: runs repeat, a search finds nothing, and a broken machine is
//! found out. Each seed runs in a process of its own.

use std::process::{Command, Output};

fn model(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_model"));
    let output = command
        .args(arguments)
        .env_remove("SEED")
        .env_remove("SECONDS")
        .output();
    output.expect("the program runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_seed_repeats() {
    for seed in ["1", "2", "3", "10"] {
        let arguments = ["run", seed, "--ms", "100", "--timeline"];
        let (one, other) = (model(&arguments), model(&arguments));
        assert!(one.status.success(), "{}", text(&one));
        assert_eq!(text(&one), text(&other));
        assert!(text(&one).contains("Wake("), "{}", text(&one));
    }
}

#[test]
fn seeds_differ() {
    let last = |seed| text(&model(&["run", seed, "--ms", "50"]));
    let digest = |text: String| {
        text.split("digest ")
            .nth(1)
            .map(|rest| rest[..16].to_owned())
    };
    assert_ne!(digest(last("1")), digest(last("2")));
}

#[test]
fn no_seed_violates_an_invariant() {
    for seed in 1..=40 {
        let output = model(&["run", &seed.to_string(), "--ms", "100"]);
        assert!(output.status.success(), "{}", text(&output));
    }
}

/// Without kicks, work waits beside idle CPUs until a timer finds it.
#[test]
fn lost_kicks_are_found() {
    let found = (1..=20).filter(|seed: &u64| {
        let output = model(&["run", &seed.to_string(), "--ms", "300", "--lost-kicks"]);
        assert!(
            output.status.code().is_some_and(|status| status < 2),
            "it crashed"
        );
        text(&output).contains("has idled for")
    });
    assert!(found.count() > 0, "no seed shows that kicks are lost");
}

/// A timer lets tasks go when their group has quota again.
#[test]
fn late_timers_are_found() {
    let is_found = (1..=60).any(|seed: u64| {
        let output = model(&["run", &seed.to_string(), "--ms", "200", "--late-timers"]);
        assert!(
            output.status.code().is_some_and(|status| status < 2),
            "it crashed"
        );
        text(&output).contains("tasks wait for quota in group")
    });
    assert!(is_found, "no seed shows that timers are late");
}

#[test]
fn a_search_counts() {
    let output = model(&["search", "--seconds", "1", "--seed", "5", "--jobs", "2"]);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    let line = text.lines().last().unwrap_or_default();
    assert!(line.ends_with(", 0 seeds with findings"), "{line}");
    assert!(!line.starts_with("0 seeds"), "{line}");
}

#[test]
fn bad_arguments_are_refused() {
    for arguments in [
        &["run"][..],
        &["run", "x"],
        &["run", "1", "--ms", "0"],
        &["search", "--seconds", "0"],
    ] {
        assert_eq!(model(arguments).status.code(), Some(2), "{arguments:?}");
    }
}
