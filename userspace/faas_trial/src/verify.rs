//! Computes everything in a file again, and finds what does not agree.

use crate::analysis::analyse;
use crate::file::{Kept, Measured, Replayed, Trial};
use crate::plan::{trace, Plan, Row};
use anyhow::{bail, ensure, Result};
use std::collections::BTreeSet;

/// Differences of printed numbers up to this are those of rounding.
const ROUNDING: f64 = 2e-6;

/// Checks that each part of a trial has the length and the order that the others imply.
///
/// # Errors
/// With the first part that has not.
pub fn shape(trial: &Trial) -> Result<()> {
    let (done, planned) = (trial.blocks.len(), trial.plan.blocks.len());
    ensure!(
        done <= planned,
        "there are {done} blocks, of {planned} in the plan"
    );
    for (number, (planned, block)) in (1..).zip(trial.plan.blocks.iter().zip(&trial.blocks)) {
        let invocations = block.service_us.len();
        ensure!(
            block.arrival_us.len() == invocations,
            "block {number} has not as many arrivals as service times"
        );
        let order: Vec<Row> = block.rows.iter().map(|row| row.row).collect();
        ensure!(
            order == planned.order,
            "the rows of block {number} are not in the order of the plan"
        );
        for row in &block.rows {
            row_fits(row, invocations, block)
                .map_err(|error| error.context(format!("block {number}, {}", row.row.name())))?;
        }
    }
    Ok(())
}

/// Checks one replay of a block.
fn row_fits(row: &Replayed, invocations: usize, block: &Measured) -> Result<()> {
    let lengths = [
        row.turnaround_us.len(),
        row.delay_us.len(),
        row.cpu_us.len(),
    ];
    let wanted = match row.status.as_str() {
        "not-loaded" | "lost" => 0,
        _ => invocations,
    };
    ensure!(
        lengths == [wanted; 3],
        "there are {lengths:?} times for {wanted} invocations"
    );
    ensure!(row.speed.is_finite(), "the speed is no number");
    let times = row.turnaround_us.iter().zip(&row.delay_us);
    for (id, (turnaround, delay)) in times.enumerate() {
        match (turnaround, delay) {
            (None, None) => {}
            (Some(turnaround), Some(delay)) if delay <= turnaround && *turnaround > 0 => {
                let least = block.service_us[id].saturating_sub(1000) / 2;
                ensure!(
                    *turnaround >= least,
                    "invocation {id} was done in {turnaround} us, and needs {}",
                    block.service_us[id]
                );
            }
            _ => bail!("the times of invocation {id} contradict each other"),
        }
    }
    Ok(())
}

/// What does not agree in a file; empty if everything does.
pub fn check(kept: &Kept) -> Vec<String> {
    let trial = &kept.trial;
    let mut all = Vec::new();
    if let Err(error) = shape(trial) {
        // Nothing can be computed from it.
        return vec![format!("{error:#}")];
    }
    match kept.digest() {
        Ok(digest) if digest == kept.sha256 => {}
        _ => all.push("the content has another SHA-256 than the file says".to_string()),
    }
    match Plan::new(trial.plan.minutes, &loads(trial), trial.plan.seed) {
        Ok(plan) if plan == trial.plan => {}
        _ => all.push(format!(
            "the plan is not the one of seed {} and {} minutes",
            trial.plan.seed, trial.plan.minutes
        )),
    }
    all.extend(traces(trial));
    all.extend(conclusions(kept));
    all
}

/// The loads of a plan, none of which may be hidden.
fn loads(trial: &Trial) -> Vec<f64> {
    let mut seen = BTreeSet::new();
    let mut loads = trial.plan.loads.clone();
    loads.retain(|load| seen.insert(load.to_bits()));
    loads
}

/// Whether the traces are those of the seeds.
fn traces(trial: &Trial) -> Vec<String> {
    let pairs = (1..).zip(trial.plan.blocks.iter().zip(&trial.blocks));
    let differing = pairs.filter(|(_, (planned, block))| {
        let (cpus, available) = (trial.about.cpus, trial.capacity.available);
        let Ok(made) = trace(planned, trial.plan.span_s, cpus, available) else {
            return true;
        };
        let same = |one: &faas_data::trace::Invocation, arrival: &u64, service: &u64| {
            one.arrival_us == *arrival && one.service_us() == *service
        };
        let times = block.arrival_us.iter().zip(&block.service_us);
        made.len() != block.arrival_us.len()
            || !made
                .iter()
                .zip(times)
                .all(|(one, (arrival, service))| same(one, arrival, service))
    });
    let named = differing.map(|(number, _): (usize, _)| {
        format!("block {number}: the trace is not the one of its seed, load and capacity")
    });
    named.collect()
}

/// Whether what was said follows from what was measured.
fn conclusions(kept: &Kept) -> Vec<String> {
    let said = &kept.said;
    let again = analyse(&kept.trial);
    let mut all = Vec::new();
    if said.against != again.against {
        all.push("what speaks against the trial does not follow from its figures".to_string());
    }
    if said.remarks != again.remarks {
        all.push("the remarks do not follow from the figures".to_string());
    }
    if said.lines.len() != again.lines.len() {
        all.push(format!(
            "{} comparisons are told, {} follow from the figures",
            said.lines.len(),
            again.lines.len()
        ));
    }
    for (told, line) in said.lines.iter().zip(&again.lines) {
        let near = |one: f64, other: f64| (one - other).abs() <= ROUNDING * other.abs().max(1.0);
        let same = told.load == line.load
            && (&told.figure, told.row, told.blocks) == (&line.figure, line.row, line.blocks)
            && told.finding == line.finding
            && near(told.ratio, line.ratio)
            && match (told.interval, line.interval) {
                (Some(one), Some(other)) => near(one[0], other[0]) && near(one[1], other[1]),
                (one, other) => one == other,
            }
            && match (told.p, line.p) {
                (Some(one), Some(other)) => near(one, other),
                (one, other) => one == other,
            };
        if !same {
            all.push(format!(
                "load {}, {}, {}: told is {:.4} ({}), computed is {:.4} ({})",
                line.load,
                line.row.name(),
                line.figure,
                told.ratio,
                told.finding.words(),
                line.ratio,
                line.finding.words()
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::synthetic;

    fn kept() -> Kept {
        let trial = synthetic(0.5, 0.02);
        let said = analyse(&trial);
        Kept::new(trial, said).unwrap()
    }

    fn found(change: impl Fn(&mut Kept)) -> String {
        let mut changed = kept();
        change(&mut changed);
        check(&changed).join("; ")
    }

    /// Makes the digest fit again, as a careful forger does.
    fn sign(kept: &mut Kept) {
        kept.sha256 = kept.digest().unwrap();
    }

    #[test]
    fn what_was_written_is_read_back_and_agrees() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        std::fs::write(&path, kept().text().unwrap()).unwrap();
        let read = Kept::read(&path).unwrap();
        assert_eq!(read, kept());
        assert_eq!(check(&read), Vec::<String>::new());
    }

    #[test]
    fn any_change_is_found_by_the_digest() {
        let told = found(|kept| kept.trial.about.kernel = "7.0".into());
        assert!(told.contains("SHA-256"), "{told}");
    }

    #[test]
    fn a_changed_time_is_found_though_the_digest_fits() {
        let told = found(|kept| {
            kept.trial.blocks[0].rows[0].turnaround_us[3] = Some(99_000_000);
            sign(kept);
        });
        assert!(
            !told.contains("SHA-256") && told.contains("computed is"),
            "{told}"
        );
    }

    #[test]
    fn a_changed_conclusion_is_found_though_the_digest_fits() {
        let told = found(|kept| {
            let lines = &mut kept.said.lines;
            lines.iter_mut().for_each(|line| line.ratio *= 0.9);
            sign(kept);
        });
        assert!(told.contains("computed is"), "{told}");
        let told = found(|kept| {
            kept.trial.about.is_emulated = true;
            sign(kept);
        });
        assert!(told.contains("speaks against the trial"), "{told}");
        let told = found(|kept| {
            kept.said.lines.pop();
            sign(kept);
        });
        assert!(told.contains("comparisons are told"), "{told}");
    }

    #[test]
    fn traces_and_orders_are_those_of_the_seed() {
        let told = found(|kept| {
            kept.trial.blocks[1].service_us[0] += 1;
            sign(kept);
        });
        assert!(told.contains("block 2: the trace"), "{told}");
        let told = found(|kept| {
            kept.trial.plan.blocks[0].seed += 1;
            sign(kept);
        });
        assert!(told.contains("the plan is not the one of seed"), "{told}");
        let told = found(|kept| kept.trial.blocks[0].rows.swap(0, 1));
        assert!(told.contains("order of the plan"), "{told}");
    }

    #[test]
    fn times_that_cannot_be_are_refused() {
        let changed =
            |change: fn(&mut Replayed)| found(|kept| change(&mut kept.trial.blocks[0].rows[0]));
        let told = changed(|row| row.delay_us[0] = None);
        assert!(told.contains("invocation 0 contradict"), "{told}");
        let told = changed(|row| (row.turnaround_us[0], row.delay_us[0]) = (Some(1), Some(0)));
        assert!(told.contains("was done in 1 us"), "{told}");
        let told = changed(|row| {
            row.cpu_us.pop();
        });
        assert!(told.contains("times for"), "{told}");
    }
}
