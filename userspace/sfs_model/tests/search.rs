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
        assert!(text(&one).contains(" wakes up"), "{}", text(&one));
    }
}

/// Seeds on which callbacks pause and wait for each other's locks repeat as well, and are another
/// run without pauses.
#[test]
fn callbacks_interleave() {
    let mut seen = 0;
    for seed in (1..=40).map(|seed: u64| seed.to_string()) {
        let one = text(&model(&["run", &seed, "--ms", "50"]));
        let Some((pauses, _)) = races(&one).filter(|&(_, waits)| waits > 20) else {
            continue;
        };
        seen += 1;
        assert!(pauses > 100, "{one}");
        assert_eq!(one, text(&model(&["run", &seed, "--ms", "50"])));
        let without = ["run", &seed, "--ms", "50", "--only", "without=races"];
        let without = text(&model(&without));
        assert_eq!(races(&without), None);
        assert_ne!(one.lines().last(), without.lines().last());
    }
    assert!(seen >= 3, "{seen} seeds");
}

/// On some machines the kernel serves all tasks itself for a while, and some have a newer kernel. That
/// is another run than without, and all invariants hold.
#[test]
fn bypasses_and_newer_kernels_happen() {
    let mut seen = [0; 2];
    for seed in (1..=40).map(|seed: u64| seed.to_string()) {
        let one = model(&["run", &seed, "--ms", "100"]);
        assert!(one.status.success(), "{}", text(&one));
        for (seen, without) in seen.iter_mut().zip(["without=bypass", "without=newer"]) {
            let other = model(&["run", &seed, "--ms", "100", "--only", without]);
            *seen += usize::from(text(&one).lines().last() != text(&other).lines().last());
        }
    }
    let expected = seen.iter().all(|seen| (2..=25).contains(seen));
    assert!(expected, "{seen:?} seeds");
}

/// Pauses, and waits for locks.
fn races(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find(|line| line.starts_with("races: "))?;
    let mut numbers = line.split(' ').filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
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
        let seed = seed.to_string();
        let output = model(&["run", &seed, "--ms", "100"]);
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

/// Without cpu_release(), a displaced task waits for the real-time task, beside idle CPUs.
#[test]
fn lost_releases_are_found() {
    let is_found = |seed: u64| {
        let seed = seed.to_string();
        let output = model(&["run", &seed, "--ms", "200", "--lost-releases"]);
        assert!(
            output.status.code().is_some_and(|status| status < 2),
            "it crashed"
        );
        text(&output).contains("has idled for")
    };
    assert!(
        (1..=200).any(is_found),
        "no seed shows that releases are lost"
    );
}

/// Returns the first seed from `start` on whose run with `arguments`, without the rules at each
/// callback, prints a text in which `is_it` finds something. Rare events have a start shortly
/// before one of their seeds, for the time that it saves.
fn first_seed(start: u64, arguments: &[&str], mut is_it: impl FnMut(&str) -> bool) -> u64 {
    let shows = |seed: &u64| {
        let seed = seed.to_string();
        let output = model(&[&["run", &seed, "--unwatched"], arguments].concat());
        assert!(output.status.code().is_some_and(|code| code < 2), "{seed}");
        is_it(&text(&output))
    };
    let found = (start..start + 600).find(shows);
    found.unwrap_or_else(|| panic!("no seed with {arguments:?}"))
}

/// A report of overload that the loader does not see is not answered.
#[test]
fn lost_events_are_found() {
    first_seed(1, &["--lost-events"], |text| {
        text.contains("a report of overload is never answered")
    });
}

/// If tasks cannot be moved, a switch of the mode leaves them behind.
#[test]
fn stuck_queues_are_found() {
    for (mode, start) in [("FairOnly", 40), ("Filter", 190)] {
        let left = format!("tasks are left behind at a switch to {mode}");
        first_seed(start, &["--stuck-queues", "--findings", "300"], |text| {
            text.contains(&left)
        });
    }
}

/// The number in front of `what` in the line about the loader.
fn number_before(text: &str, what: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("loader: "))?;
    let before = line.split_once(what)?.0;
    before.rsplit_once(' ')?.1.parse().ok()
}

/// Among a few seeds are machines without a loader, and loaders that do all that a loader does.
#[test]
fn loaders_do_all_that_they_can() {
    let mut missing = vec![
        "no loader",
        "fair-only mode",
        "and back",
        "dismissed",
        "late",
        "ranks",
        "killed",
    ];
    let some = |text: &str, what| number_before(text, what).is_some_and(|number| number > 0);
    first_seed(230, &[], |text| {
        missing.retain(|what| match *what {
            "no loader" => text.contains("loader: "),
            "fair-only mode" => !some(text, " times and left "),
            "and back" => !some(text, " times, "),
            "dismissed" => !some(text, " reports dismissed"),
            "late" => !some(text, " ms, "),
            "ranks" => !text.contains(", ranks in force"),
            _ => !text.contains(", killed"),
        });
        missing.is_empty()
    });
}

#[test]
fn a_finding_is_made_small() {
    let is_found = |text: &str| text.contains("has idled for");
    let seed = first_seed(1, &["--lost-kicks"], is_found).to_string();
    let large = text(&model(&["run", &seed, "--lost-kicks", "--unwatched"]));
    let arguments = ["shrink", &seed, "--lost-kicks", "--unwatched"];
    let output = model(&[&arguments[..], &["--seconds", "15"]].concat());
    let told = text(&output);
    assert!(output.status.success() && is_found(&told), "{told}");
    assert!(
        told.contains(" runs ") && told.contains(" waits in "),
        "{told}"
    );
    // The command that it prints shows the same.
    let first = told.lines().next().unwrap_or_default();
    let (_, command) = first.split_once("sfs_model ").expect("a command");
    let command: Vec<&str> = command.split(' ').collect();
    let small = text(&model(&command));
    let last_line = small.lines().last();
    assert!(
        is_found(&small) && last_line == told.lines().last(),
        "{small}"
    );
    let tasks = |text: &str| {
        let before = text.rsplit_once(" tasks in").map(|(before, _)| before);
        before.and_then(|text| text.rsplit_once(' ')?.1.parse::<u64>().ok())
    };
    assert!(
        tasks(&small).is_some() && tasks(&small) < tasks(&large),
        "{small}"
    );
}

#[test]
fn a_seed_without_a_finding_is_not_made_small() {
    let output = model(&["shrink", "1", "--ms", "20"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output), "seed 1 has no finding in 20 ms\n");
}

#[test]
fn a_search_counts() {
    let output = model(&["search", "--seconds", "1", "--seed", "8", "--jobs", "2"]);
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
        &["run", "1", "--only", "cpus=0"],
        &["run", "1", "--only", "without=dirt"],
        &["shrink", "1", "--seconds", "0"],
    ] {
        assert_eq!(model(arguments).status.code(), Some(2), "{arguments:?}");
    }
}
