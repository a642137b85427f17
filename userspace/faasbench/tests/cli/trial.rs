//! `faasbench trial` and `faasbench verify`, up to where a kernel with sched_ext is needed.

use crate::place::Place;
use std::path::Path;

/// The file of the trial in the VM that docs/trial.md tells of.
fn kept() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/trial-vm.json");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_dry_run_prints_the_plan_and_runs_nothing() {
    let place = Place::new();
    let plan = |seed: u32| {
        let shown = place.succeed(&format!(
            "trial --dry-run --minutes 20 --loads 0.8 --seed {seed}"
        ));
        assert!(
            shown.starts_with(&format!("Plan (seed {seed}): ")),
            "{shown}"
        );
        let (plan, _) = shown.split_once("\nIt starts processes").unwrap();
        let (_, table) = plan.split_once("\n\n").unwrap();
        table.to_string()
    };
    assert_eq!(plan(3), plan(3));
    assert_ne!(plan(3), plan(4));
    assert_eq!(place.names(Path::new("")), Vec::<String>::new());
}

#[test]
fn what_cannot_be_a_trial_is_refused_and_leaves_no_file() {
    let place = Place::new();
    for (arguments, want) in [
        ("--minutes 2", "2 minutes are too few for 2 loads"),
        ("--loads 0.5,0.5", "one to four different loads"),
        ("--loads 0.1,0.2,0.3,0.4,0.5", "one to four different loads"),
        ("--loads 3", "want a number from 0.05 to 2"),
        ("--minutes 0", "0 is not in 1..=1440"),
    ] {
        let said = place.fail(&format!("trial {arguments}"));
        assert!(said.contains(want), "{arguments}: {said}");
    }
    // Even where a trial could be run, nobody can be asked here.
    let said = place.fail("trial --minutes 5 --loads 0.9 --scx-sfs ./none");
    assert!(
        said.contains("no trial: ") && said.contains("`./none`"),
        "{said}"
    );
    assert_eq!(place.names(Path::new("")), Vec::<String>::new());
}

#[test]
fn the_trial_in_the_vm_agrees_with_itself_and_is_no_result() {
    let place = Place::new();
    place.write("t.json", &kept());
    let shown = place.succeed("verify t.json");
    assert!(
        shown.contains("\nNot a result: nothing in this table"),
        "{shown}"
    );
    assert!(
        shown.contains("\n- the CPUs are emulated by a program"),
        "{shown}"
    );
    assert!(
        !shown.contains("smaller") && !shown.contains("larger"),
        "{shown}"
    );
    assert!(
        shown.ends_with("follow from the figures in the file.\n"),
        "{shown}"
    );
}

#[test]
fn a_changed_file_is_found_out() {
    let place = Place::new();
    for (from, to, want) in [
        ("\"is_emulated\":true", "\"is_emulated\":false", "SHA-256"),
        (
            "\"is_emulated\":true",
            "\"is_emulated\":false",
            "speaks against the trial",
        ),
        ("\"not-a-result\"", "\"smaller\"", "told is"),
        (
            "\"seed\":1,",
            "\"seed\":2,",
            "the plan is not the one of seed 2",
        ),
        ("\"delay_us\":[", "\"delay_us\":[7,", "times for"),
    ] {
        place.write("t.json", &kept().replace(from, to));
        let said = place.fail("verify t.json");
        assert!(said.contains(want), "{from}: {said}");
        assert!(said.contains("t.json does not agree with itself"), "{said}");
    }
}

#[test]
fn what_is_no_file_of_a_trial_is_named() {
    let place = Place::new();
    place.write("list.json", "[1, 2]");
    place.write("cut.json", &kept()[..5000]);
    let newer = kept().replace("faasbench.trial/1", "faasbench.trial/2");
    place.write("newer.json", &newer);
    for (name, want) in [
        ("list.json", "list.json is no file of faasbench trial"),
        ("cut.json", "cut.json is no file of faasbench trial"),
        ("newer.json", "has the format `faasbench.trial/2`"),
        ("none.json", "cannot read none.json"),
        (".", "cannot read ."),
    ] {
        let said = place.fail(&format!("verify {name}"));
        assert!(said.contains(want), "{name}: {said}");
    }
}
