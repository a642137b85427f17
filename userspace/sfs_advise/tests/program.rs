//! The program with a trace instead of a recording: all but the BPF program, which needs a guest
//! (`sfs_loader_cases/src/advice.rs`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use faas_data::trace;
use faas_workload::table1::{Table1, Version};
use faas_workload::{Amount, Workload};
use serde_json::Value;

/// Writes a trace of Table I with that load for four CPUs, and returns its path.
fn trace(folder: &Path, invocations: u32, load: f64) -> PathBuf {
    let durations = Table1 {
        version: Version::Artefact,
        scale: 0.1,
    };
    let amount = Amount {
        invocations,
        load,
        cpus: 4,
        seed: 1,
    };
    let made = Workload::new(&durations).make(amount).unwrap();
    let path = folder.join("trace.csv");
    fs::write(&path, trace::to_csv(&made)).unwrap();
    path
}

fn advise(path: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_advise"));
    command.arg("--from").arg(path).args(["--cpus", "4"]);
    command.args(options).output().unwrap()
}

fn json(path: &Path) -> Value {
    let output = advise(path, &["--json"]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_busy_trace_has_a_prediction_for_each_scheduler() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), 300, 1.0);
    let report = json(&path);
    assert_eq!(report["seen"]["ended"], 300);
    let rows = report["predictions"].as_array().unwrap();
    let roles: Vec<&Value> = rows.iter().map(|row| &row["role"]).collect();
    assert_eq!(roles, ["base", "sfs", "default"]);
    for row in rows {
        assert_eq!(row["ended"], 300, "{row}");
        assert_eq!(row["findings"], Value::Array(Vec::new()), "{row}");
    }
    let mean = |row: usize, class: &str| rows[row][class]["mean_ms"].as_f64().unwrap();
    // What scx_sfs is for.
    for row in [1, 2] {
        assert!(mean(row, "short") < mean(0, "short"), "{rows:#?}");
    }
    assert!(report["verdict"]["advice"] != "none", "{report:#}");
    // The same trace gives the same report.
    assert_eq!(report, json(&path));
}

#[test]
fn a_trace_of_a_machine_that_is_almost_idle_has_nothing_to_gain() {
    let folder = tempfile::tempdir().unwrap();
    let report = json(&trace(folder.path(), 150, 0.02));
    assert_eq!(report["verdict"]["advice"], "no_gain", "{report:#}");
    let sentence = report["verdict"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("load is too low"), "{sentence}");
}

#[test]
fn the_text_fits_80_columns_and_has_no_colours_in_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    for (invocations, want) in [(200, "simulated kernel"), (20, "No advice: 20 invocations")] {
        let output = advise(&trace(folder.path(), invocations, 0.9), &[]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(want), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let wide: Vec<&str> = text
            .lines()
            .filter(|line| line.chars().count() > 80)
            .collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }
}

#[test]
fn what_is_no_trace_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    fs::write(&path, "arrival_us,function,phases\n5,f,cpu:x\n").unwrap();
    for (path, word) in [
        (path, "trace.csv:2"),
        (folder.path().join("none.csv"), "none.csv"),
    ] {
        let output = advise(&path, &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    }
}
