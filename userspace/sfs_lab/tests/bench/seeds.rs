//! Several seeds: each has its folder, resumes by itself, and counts in one table.

use crate::tree::{tree, Tree};

/// A simulated comparison, which needs no VM.
const SIMULATED: &str = "ps srtf";

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    let found = text.lines().find(|line| line.starts_with(start));
    found.unwrap_or_else(|| panic!("no line '{start}' in {text}"))
}

/// The number of data lines of a CSV file.
fn rows(tree: &Tree, path: &str) -> usize {
    tree.read(path).lines().count() - 1
}

#[test]
fn each_seed_is_one_observation() {
    let tree = tree!();
    let said = tree.bench(SIMULATED, &[("SEEDS", "4")]).ended(0);
    assert_eq!(tree.booted(), "");
    assert!(line(&said.stdout, "srtf (sim)").contains(" mean turnaround "));
    // Two rows of four seeds with eight figures, and eight ratios.
    assert_eq!(
        (rows(&tree, "out/runs.csv"), rows(&tree, "out/seeds.csv")),
        (64, 8)
    );
    let traces =
        [1, 2].map(|seed| tree.read(&format!("out/seed-{seed}/table1-artefact.trace.csv")));
    assert_ne!(traces[0], traces[1]);
    assert!(tree.has("out/seed-4/report.html"));
    assert!(tree
        .read("out/seeds.md")
        .contains("paired by seed (1 to 4)"));
    // The same files give the same table.
    let again = tree.bench(SIMULATED, &[("SEEDS", "4")]).ended(0);
    let table = |text: &str| text[text.find("scheduler").unwrap()..].to_string();
    assert_eq!(table(&again.stdout), table(&said.stdout));
    again.says("srtf (2 of 2) is finished from an earlier run");
}

#[test]
fn measured_seeds_are_kept_when_there_are_more() {
    let tree = tree!();
    tree.bench("eevdf scx_sfs", &[("SEEDS", "1-2")]).ended(0);
    assert_eq!(tree.booted(), "eevdf scx_sfs eevdf scx_sfs");
    tree.bench("eevdf scx_sfs", &[("SEEDS", "3")]).ended(0);
    assert_eq!(tree.booted(), "eevdf scx_sfs");
    assert_eq!(rows(&tree, "out/runs.csv"), 48);
}

#[test]
fn troubles_of_a_seed_are_shown_and_count_against_the_row() {
    let tree = tree!();
    let said = tree
        .bench("ps scx_broken scx_lost srtf", &[("SEEDS", "2")])
        .ended(3);
    assert!(
        said.stdout
            .contains("! scx_broken at load 1.0: not loaded in seeds 1, 2\n"),
        "{said:?}"
    );
    assert!(said
        .stdout
        .contains("! scx_lost at load 1.0: lost with its machine in seeds 1, 2\n"));
    let table = tree.read("out/seeds.csv");
    assert!(
        line(&table, "1.0,all,scx_lost,").contains(",2,0,,"),
        "{table}"
    );
    said.says("seed-2: scx_lost (lost)")
        .says("4 of 8 rows are no clean measurement");
}

#[test]
fn copies_of_one_trace_differ_in_their_arrivals_only() {
    let tree = tree!();
    let jitter = [("JITTER", "50us"), ("SEEDS", "2"), ("SEED", "7")];
    let said = tree.bench(SIMULATED, &jitter).ended(0);
    assert!(
        said.stdout.contains("arrivals moved by up to 50us"),
        "{said:?}"
    );
    let trace = |copy: u32, name: &str| tree.read(&format!("out/copy-{copy}/{name}.trace.csv"));
    let original = trace(1, "table1-artefact");
    assert_eq!(original, trace(2, "table1-artefact"));
    let moved = trace(1, "table1-artefact-moved");
    assert!(moved != original && moved != trace(2, "table1-artefact-moved"));
    // A trace of one's own can be copied as well, and each command goes on with its folder.
    tree.write("own.trace.csv", &original);
    let own = [
        ("JITTER", "50us"),
        ("SEEDS", "2"),
        ("TRACE", "own.trace.csv"),
        ("OUT", "own"),
    ];
    tree.bench(SIMULATED, &own).ended(0);
    assert_eq!(tree.read("own/copy-1/own-moved.trace.csv"), moved);
}

#[test]
fn loads_are_in_one_table_steady_ones_first() {
    let tree = tree!();
    let loads = [("LOADS", "1.2 0.5"), ("SEEDS", "2"), ("TRIM", "10")];
    let said = tree.bench(SIMULATED, &loads).ended(0);
    assert!(said.stdout.contains("no steady state"), "{said:?}");
    assert!(tree.has("out/load-0.5/seed-2/srtf.csv") && tree.has("out/load-1.2/seed-1/ps.csv"));
    let table = tree.read("out/seeds.csv");
    let starts: Vec<String> = table
        .lines()
        .skip(1)
        .step_by(8)
        .map(|line| line.split(',').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        starts,
        ["0.5 all", "0.5 middle 80 %", "1.2 all", "1.2 middle 80 %"]
    );
    // One seed has ratios, but no interval that could stand out.
    let one = [("LOADS", "0.5"), ("OUT", "one")];
    let said = tree.bench(SIMULATED, &one).ended(0);
    assert!(
        said.stdout.contains("None of 8 rows stands out."),
        "{said:?}"
    );
    assert!(tree.has("one/load-0.5/seed-5/ps.csv"));
}

#[test]
fn settings_that_contradict_each_other() {
    let tree = tree!();
    tree.write("a.csv", "arrival_us,function,phases\n0,f,cpu:1\n");
    let two = ("SEEDS", "2");
    let refused: [(&[(&str, &str)], &str); 11] = [
        (
            &[two, ("SEED", "3")],
            "SEED is one seed, and SEEDS are several",
        ),
        (&[two, ("TRACE", "a.csv")], "a TRACE has no seeds"),
        (&[two, ("SCHEDULERS", "ps")], "SCHEDULERS names only one"),
        (&[("SEEDS", "0")], "want a number of seeds"),
        (&[("JITTER", "50us")], "SEEDS says how many"),
        (
            &[("JITTER", "50us"), ("LOADS", "1.0")],
            "SEEDS says how many",
        ),
        (&[("TRIM", "10")], "TRIM is for the table of SEEDS or LOADS"),
        (&[two, ("TRIM", "50")], "TRIM"),
        (
            &[("LOADS", "1.0"), ("LOAD", "1.0")],
            "LOAD is one load, and LOADS are several",
        ),
        (&[("LOADS", "0.5 0.5")], "has a load twice"),
        (
            &[("LOADS", "0.5"), ("TRACE", "a.csv")],
            "a TRACE has its own load",
        ),
    ];
    for (variables, text) in refused {
        tree.bench(SIMULATED, variables).ended(2).says(text);
    }
    assert!(!tree.has("out"));
    // faasbench itself says why it refuses.
    let soon = [two, ("JITTER", "50")];
    tree.bench(SIMULATED, &soon)
        .ended(2)
        .says("want a time from 1us");
}
