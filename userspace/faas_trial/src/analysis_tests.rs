//! Trials that are made up, with and without an effect.

use super::*;
use crate::calibrate::Capacity;
use crate::counters::Counts;
use crate::file::{About, Work, SCHEMA};
use crate::plan::{trace, Plan};
use faas_workload::random::Random;

/// A trial in which scx_sfs changes each turnaround by the factor `effect`, and each replay
/// has its own factor of chance with the standard deviation `noise` of its logarithm.
pub(crate) fn synthetic(effect: f64, noise: f64) -> Trial {
    let plan = Plan::new(10, &[0.9], 3).unwrap();
    let mut random = Random::new(7);
    let blocks = plan.blocks.iter().map(|block| {
        let invocations = trace(block, plan.span_s, 4, 0.995).unwrap();
        let rows = block.order.map(|row| {
            let luck = (noise * random.normal()).exp();
            let factor = if row == Row::ScxSfs { effect } else { 1.0 };
            let time = |one: &Invocation| {
                let queued = one.service_us() as f64 * 4.0 * luck * factor;
                Some(queued as u64 + 1)
            };
            Replayed {
                row,
                status: "ok".to_string(),
                speed: 1000.0,
                frequency_mhz: [None, Some(2400.5)],
                busy: Some(0.9),
                steal: Some(0.0),
                counters: Counts::default(),
                late_us: 3.25,
                turnaround_us: invocations.iter().map(time).collect(),
                delay_us: vec![Some(0); invocations.len()],
                cpu_us: invocations.iter().map(Invocation::service_us).collect(),
            }
        });
        Measured {
            arrival_us: invocations.iter().map(|one| one.arrival_us).collect(),
            service_us: invocations.iter().map(Invocation::service_us).collect(),
            rows: rows.to_vec(),
        }
    });
    let blocks = blocks.collect();
    Trial {
        schema: SCHEMA.to_string(),
        version: "0.1.0".to_string(),
        work: Work::CpuTime,
        plan,
        about: About {
            cpu_model: "a CPU".to_string(),
            cpus: 4,
            kernel: "6.18".to_string(),
            scx_sfs: Some("0.1.0".to_string()),
            clock: "tsc".to_string(),
            governor: String::new(),
            smt: Some(false),
            is_virtual: false,
            is_emulated: false,
        },
        clocks_s: Some([500, 501]),
        capacity: Capacity {
            alone: [1.0; 3],
            busy: [1.0; 3],
            available: 0.995,
        },
        costs: None,
        blocks,
    }
}

fn findings(trial: &Trial, row: Row) -> Vec<Finding> {
    let said = analyse(trial);
    let lines = said.lines.iter().filter(|line| line.row == row);
    lines.map(|line| line.finding).collect()
}

#[test]
fn a_large_effect_is_found_and_its_size_too() {
    let trial = synthetic(0.5, 0.02);
    crate::verify::shape(&trial).unwrap();
    let said = analyse(&trial);
    assert_eq!((said.against.len(), said.remarks.len()), (0, 0), "{said:?}");
    assert_eq!(findings(&trial, Row::ScxSfs), [Finding::Smaller; 5]);
    assert_eq!(findings(&trial, Row::Again), [Finding::Noise; 5]);
    assert_eq!(findings(&trial, Row::Renice), [Finding::None; 5]);
    let line = said
        .lines
        .iter()
        .find(|line| line.row == Row::ScxSfs)
        .unwrap();
    let [low, high] = line.interval.unwrap();
    assert!(low < 0.5 && 0.5 < high && high < 0.55, "{line:?}");
    assert_eq!(
        findings(&synthetic(2.0, 0.02), Row::ScxSfs),
        [Finding::Larger; 5]
    );
}

#[test]
fn without_an_effect_nothing_is_found() {
    for noise in [0.0, 0.02, 0.05] {
        let found = findings(&synthetic(1.0, noise), Row::ScxSfs);
        assert_eq!(found, [Finding::None; 5], "{noise}");
    }
}

#[test]
fn an_effect_below_the_noise_is_none_and_great_noise_is_called_so() {
    assert_eq!(
        findings(&synthetic(0.97, 0.05), Row::ScxSfs),
        [Finding::None; 5]
    );
    assert_eq!(
        findings(&synthetic(0.5, 0.6), Row::ScxSfs),
        [Finding::TooNoisy; 5]
    );
}

#[test]
fn what_speaks_against_a_trial_takes_all_its_results() {
    type Change = fn(&mut Trial);
    let changes: [(Change, &str); 5] = [
        (
            |trial| trial.clocks_s = Some([500, 50]),
            "it counted 500 s, the hardware's 50 s",
        ),
        (|trial| trial.about.is_emulated = true, "emulated"),
        (
            |trial| trial.blocks[0].rows[1].speed = 1200.0,
            "factor of 1.20",
        ),
        (
            |trial| {
                for row in trial.blocks.iter_mut().flat_map(|block| &mut block.rows) {
                    row.steal = Some(0.05);
                }
            },
            "took 5.0 %",
        ),
        (
            |trial| {
                trial.blocks.pop();
            },
            "ended early",
        ),
    ];
    for (change, want) in changes {
        let mut trial = synthetic(0.5, 0.02);
        change(&mut trial);
        let said = analyse(&trial);
        assert!(
            said.against.len() == 1 && said.against[0].contains(want),
            "{said:?}"
        );
        assert_eq!(findings(&trial, Row::ScxSfs), [Finding::NotAResult; 5]);
    }
}

#[test]
fn a_row_whose_scheduler_was_gone_has_no_result() {
    let mut trial = synthetic(0.5, 0.02);
    let sfs = |row: &&mut Replayed| row.row == Row::ScxSfs;
    let row = trial.blocks[0].rows.iter_mut().find(sfs).unwrap();
    row.status = "ejected".to_string();
    let said = analyse(&trial);
    assert!(
        said.remarks[0].contains("`ejected` in 1 replays"),
        "{said:?}"
    );
    assert_eq!(findings(&trial, Row::ScxSfs), [Finding::NotAResult; 5]);
    assert_eq!(findings(&trial, Row::Renice), [Finding::None; 5]);
    let line = said
        .lines
        .iter()
        .find(|line| line.row == Row::ScxSfs)
        .unwrap();
    assert_eq!(line.blocks, trial.blocks.len() - 1);
}

#[test]
fn failed_invocations_and_late_arrivals_are_told() {
    let mut trial = synthetic(0.5, 0.02);
    let is_renice = |row: &&mut Replayed| row.row == Row::Renice;
    let row = trial.blocks[0].rows.iter_mut().find(is_renice).unwrap();
    (row.turnaround_us[0], row.delay_us[0]) = (None, None);
    for row in trial.blocks.iter_mut().flat_map(|block| &mut block.rows) {
        row.late_us = 50_000.0;
    }
    let said = analyse(&trial);
    assert!(said
        .remarks
        .iter()
        .any(|what| what.contains("renice: 1 invocations failed")));
    assert!(said
        .remarks
        .iter()
        .any(|what| what.contains("eevdf: arrivals were late by")));
    assert_eq!(findings(&trial, Row::Renice), [Finding::NotAResult; 5]);
}
