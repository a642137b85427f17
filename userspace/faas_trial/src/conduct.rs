//! Runs the plan.

use crate::calibrate::{speed, Capacity, Costs};
use crate::counters::Watch;
use crate::file::{round, About, Measured, Replayed, Trial, Work, SCHEMA};
use crate::machine::Machine;
use crate::plan::{trace, Block, Plan, Row};
use anyhow::{bail, Context, Result};
use faas_data::result::Record;
use faas_data::trace::Invocation;
use std::time::{Duration, Instant};

/// Replays traces under the rows of a trial.
pub trait Runner {
    /// Replays `trace` under `row`, and leaves the kernel's own scheduler behind.
    ///
    /// # Errors
    /// If the replay could not be completed. A scheduler that does not load is an
    /// [`Outcome`].
    fn replay(&mut self, row: Row, trace: &[Invocation]) -> Result<Outcome>;
}

/// What a replay has measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// `ok`, or what went wrong with the scheduler, in one word.
    pub status: String,
    /// The scheduler's version.
    pub version: String,
    /// The mean delay of the load generator, in microseconds.
    pub late_us: f64,
    /// One record for each invocation, in the order of the trace; none if the scheduler did
    /// not load.
    pub records: Vec<Record>,
}

/// The time after which no further block begins, for a plan.
pub fn patience(plan: &Plan) -> Duration {
    Duration::from_secs_f64(plan.seconds() * 1.5 + 60.0)
}

/// The time after which the guard ends a trial of this plan.
pub fn deadline(plan: &Plan) -> Duration {
    patience(plan) + Duration::from_secs_f64(plan.seconds() / 2.0 + 300.0)
}

/// Runs `plan` on `cpus` and tells each step by `tell`. A trial that takes much longer than
/// planned ends early, with the blocks that are complete.
///
/// # Errors
/// If something cannot be measured, or not even one block was.
pub fn conduct(
    plan: Plan,
    cpus: &[usize],
    runner: &mut dyn Runner,
    tell: &dyn Fn(&str),
) -> Result<Trial> {
    let machine = Machine::this();
    let end = Instant::now() + patience(&plan);
    tell("calibration");
    let capacity = Capacity::measure(cpus)?;
    let costs = Costs::measure(cpus)
        .inspect_err(|error| tell(&format!("costs are not known: {error:#}")))
        .ok();
    let mut trial = Trial {
        schema: SCHEMA.to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        work: Work::CpuTime,
        about: about(&machine, cpus.len() as u32),
        plan,
        clocks_s: None,
        capacity,
        costs,
        blocks: Vec::new(),
    };
    let clocks = || Some((Instant::now(), machine.rtc_s()?));
    let begun = clocks();
    let blocks = trial.plan.blocks.clone();
    for (number, block) in (1..).zip(&blocks) {
        if Instant::now() > end {
            tell("it takes much longer than planned: no further block");
            break;
        }
        let title = format!("block {number} of {}, load {}", blocks.len(), block.load);
        let measured = run_block(&mut trial, block, cpus, runner, &|row| {
            tell(&format!("{title}: {row}"));
        });
        let measured = measured.with_context(|| format!("block {number}"))?;
        trial.blocks.push(measured);
    }
    trial.clocks_s = clocks().zip(begun).map(|((now, rtc), (then, rtc_then))| {
        [(now - then).as_secs(), rtc.saturating_sub(rtc_then)]
    });
    if trial.blocks.is_empty() {
        bail!("no block was completed");
    }
    Ok(trial)
}

/// What is kept of the machine.
fn about(machine: &Machine, cpus: u32) -> About {
    About {
        cpu_model: machine.cpu_model(),
        cpus,
        kernel: machine.kernel(),
        scx_sfs: None,
        clock: machine.clock(),
        governor: machine.governor(),
        smt: machine.smt(),
        is_virtual: machine.is_virtual(),
        is_emulated: machine.is_emulated(),
    }
}

fn run_block(
    trial: &mut Trial,
    block: &Block,
    cpus: &[usize],
    runner: &mut dyn Runner,
    tell: &dyn Fn(&str),
) -> Result<Measured> {
    let about = &mut trial.about;
    let invocations = trace(
        block,
        trial.plan.span_s,
        about.cpus,
        trial.capacity.available,
    )?;
    let mut rows = Vec::new();
    for row in block.order {
        tell(row.name());
        let (version, replayed) = run_row(row, &invocations, cpus, runner)?;
        if row == Row::ScxSfs && replayed.status == "ok" {
            about.scx_sfs = Some(version);
        }
        rows.push(replayed);
    }
    Ok(Measured {
        arrival_us: invocations.iter().map(|one| one.arrival_us).collect(),
        service_us: invocations.iter().map(Invocation::service_us).collect(),
        rows,
    })
}

/// Replays one row between two looks at the machine.
fn run_row(
    row: Row,
    invocations: &[Invocation],
    cpus: &[usize],
    runner: &mut dyn Runner,
) -> Result<(String, Replayed)> {
    let machine = Machine::this();
    let speed = speed(cpus)?;
    let frequency = || machine.frequency_mhz().map(round);
    let (before, ticks) = (frequency(), machine.ticks());
    let watch = Watch::begin(cpus);
    let outcome = runner.replay(row, invocations)?;
    let counters = watch.end();
    let shares = machine.ticks().since(ticks);
    let times = |of: &dyn Fn(&Record, (u64, u64)) -> u64| -> Vec<Option<u64>> {
        let records = outcome.records.iter();
        records
            .map(|record| Some(of(record, record.completed()?)))
            .collect()
    };
    let replayed = Replayed {
        row,
        status: outcome.status,
        speed,
        frequency_mhz: [before, frequency()],
        busy: shares.map(|shares| round(shares.busy)),
        steal: shares.map(|shares| round(shares.steal)),
        counters,
        late_us: round(outcome.late_us),
        turnaround_us: times(&|record, (_, end_us)| end_us - record.arrival_us),
        delay_us: times(&|record, (start_us, _)| start_us - record.arrival_us),
        cpu_us: outcome.records.iter().map(|record| record.cpu_us).collect(),
    };
    Ok((outcome.version, replayed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyse;
    use crate::file::Kept;
    use crate::verify::{check, shape};
    use faas_data::result::Exit;
    use faas_replay::cpus;

    /// Says that each invocation took twice as long as it needs, and scx_sfs none.
    struct Fake {
        rows: Vec<Row>,
        fails: bool,
    }

    impl Runner for Fake {
        fn replay(&mut self, row: Row, trace: &[Invocation]) -> Result<Outcome> {
            self.rows.push(row);
            if self.fails {
                bail!("the dispatcher ended early");
            }
            let record = |(id, one): (usize, &Invocation)| Record {
                id,
                function: one.function.clone(),
                arrival_us: one.arrival_us,
                start_us: Some(one.arrival_us),
                end_us: Some(one.arrival_us + 2 * one.service_us()),
                cpu_us: one.service_us(),
                service_us: one.service_us(),
                voluntary_switches: 0,
                involuntary_switches: 0,
                exit: Exit::Code(0),
                runqueue_wait_us: None,
                alone_us: None,
            };
            let is_loaded = row != Row::ScxSfs;
            let records = trace.iter().enumerate().filter(|_| is_loaded).map(record);
            Ok(Outcome {
                status: if is_loaded { "ok" } else { "not-loaded" }.to_string(),
                version: "1".to_string(),
                late_us: 1.0,
                records: records.collect(),
            })
        }
    }

    fn plan() -> Plan {
        let mut plan = Plan::new(5, &[0.9], 1).unwrap();
        plan.blocks.truncate(2);
        plan
    }

    #[test]
    fn blocks_run_in_the_order_of_the_plan_and_can_be_verified() {
        let mut runner = Fake {
            rows: Vec::new(),
            fails: false,
        };
        let cpus = cpus::usable().unwrap();
        let trial = conduct(plan(), &cpus, &mut runner, &|_| ()).unwrap();
        let wanted: Vec<Row> = plan().blocks.iter().flat_map(|block| block.order).collect();
        assert_eq!(runner.rows, wanted);
        shape(&trial).unwrap();
        assert_eq!(trial.about.scx_sfs, None);
        let said = analyse(&trial);
        assert!(said.lines.iter().all(|line| line.row != Row::ScxSfs));
        let text = Kept::new(trial, said).unwrap().text().unwrap();
        let kept: Kept = serde_json::from_str(&text).unwrap();
        // But for the plan, which the test has cut off.
        let told = check(&kept);
        assert!(told.len() == 1 && told[0].contains("the plan"), "{told:?}");
    }

    #[test]
    fn a_replay_that_fails_ends_the_trial() {
        let mut runner = Fake {
            rows: Vec::new(),
            fails: true,
        };
        let cpus = cpus::usable().unwrap();
        let error = conduct(plan(), &cpus, &mut runner, &|_| ()).unwrap_err();
        assert_eq!(format!("{error:#}"), "block 1: the dispatcher ended early");
    }

    #[test]
    fn a_trial_ends_by_itself_before_its_guard_ends_it() {
        for minutes in [5, 60] {
            let plan = Plan::new(minutes, &[0.9], 1).unwrap();
            assert!(deadline(&plan) > patience(&plan) + Duration::from_secs(300));
            assert!(patience(&plan).as_secs_f64() > plan.seconds());
        }
    }
}
