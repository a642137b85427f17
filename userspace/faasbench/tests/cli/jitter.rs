//! `faasbench jitter` and `faasbench seeds`.

use crate::place::{Place, TINY};

#[test]
fn a_copy_has_the_same_invocations_at_other_times() {
    let place = Place::new();
    place.write("t.csv", TINY);
    let copy = place.succeed("jitter t.csv --by 50us --seed 2");
    assert_eq!(copy, place.succeed("jitter t.csv --by 50us --seed 2"));
    assert_ne!(copy, place.succeed("jitter t.csv --by 50us --seed 3"));
    let work = |text: &str| {
        let mut work: Vec<String> = text
            .lines()
            .map(|line| line.split_once(',').unwrap().1.into())
            .collect();
        work.sort();
        work
    };
    assert_eq!(work(&copy), work(TINY));
    // What it writes is a trace.
    place.write("copy.csv", &copy);
    place.succeed("jitter copy.csv --by 1ms -o again.csv");
    assert_eq!(place.read("again.csv").lines().count(), 5);
}

#[test]
fn bad_input_is_refused() {
    let place = Place::new();
    place.write("t.csv", TINY);
    place.write("list.json", "{}");
    for (arguments, text) in [
        ("jitter t.csv --by 50", "want a time from 1us"),
        ("jitter t.csv", "--by"),
        ("jitter none.csv --by 50us", "none.csv"),
        ("seeds none.json", "none.json"),
        ("seeds list.json", "is not a list of runs"),
        ("seeds list.json --trim 50", "--trim"),
    ] {
        let said = place.fail(arguments);
        assert!(said.contains(text), "{arguments}: {said}");
    }
    // Nothing is left behind by what failed.
    assert_eq!(
        place.names(std::path::Path::new(".")),
        ["list.json", "t.csv"]
    );
}
