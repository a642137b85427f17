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
    // Two rows of four seeds with six figures, and six ratios.
    assert_eq!(
        (rows(&tree, "out/runs.csv"), rows(&tree, "out/seeds.csv")),
        (48, 6)
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
    assert_eq!(rows(&tree, "out/runs.csv"), 36);
}

#[test]
fn troubles_of_a_seed_are_shown_and_count_against_the_row() {
    let tree = tree!();
    let said = tree
        .bench("ps scx_broken scx_lost srtf", &[("SEEDS", "2")])
        .ended(3);
    assert!(
        said.stdout
            .contains("! scx_broken: not loaded in seeds 1, 2\n"),
        "{said:?}"
    );
    assert!(said
        .stdout
        .contains("! scx_lost: lost with its machine in seeds 1, 2\n"));
    let table = tree.read("out/seeds.csv");
    assert!(line(&table, ",scx_lost,").contains(",2,0,,"), "{table}");
    said.says("seed 2: scx_lost (lost)")
        .says("4 of 8 rows are no clean measurement");
}

#[test]
fn settings_that_contradict_each_other() {
    let tree = tree!();
    tree.write("a.csv", "arrival_us,function,phases\n0,f,cpu:1\n");
    for (name, value, text) in [
        ("SEED", "3", "SEED is one seed, and SEEDS are several"),
        ("TRACE", "a.csv", "a TRACE has no seeds"),
        ("SCHEDULERS", "ps", "SCHEDULERS names only one"),
        ("SEEDS", "0", "want a number of seeds"),
    ] {
        let variables = [("SEEDS", "2"), (name, value)];
        tree.bench(SIMULATED, &variables).ended(2).says(text);
    }
    assert!(!tree.has("out"));
}
