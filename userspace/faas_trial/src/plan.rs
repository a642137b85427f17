//! What a trial runs, in which order, and for how long.
//!
//! A block replays one trace under each row, in an order that the seed draws; in four blocks
//! of a load each row has each place once. Each load has
//! the same number of blocks; one of each load, in an order that the seed draws, makes a
//! round. So what changes slowly on the machine, such as its temperature, meets all rows and
//! loads alike.

use anyhow::{bail, Result};
use faas_data::trace::Invocation;
use faas_workload::random::Random;
use faas_workload::table1::{Table1, Version};
use faas_workload::{Amount, Workload};
use serde::{Deserialize, Serialize};

/// Blocks of each load at least: with fewer, an interval says hardly anything.
pub const FEWEST: u32 = 3;

/// Blocks of each load that a trial aims at, before replays become longer.
const WANTED: u32 = 8;

/// Arrivals of a replay last at least and at most as long as this, in seconds.
const SPAN_S: (f64, f64) = (8.0, 60.0);

/// Time of a row beside the arrivals: to load a scheduler, to calibrate, to let the last
/// invocations end. In seconds.
const AROUND_S: f64 = 6.0;

/// Time of the calibration at the start, in seconds.
const BEFORE_S: f64 = 10.0;

/// Invocations of a trace at least: the durations are scaled down until there are as many.
const INVOCATIONS: f64 = 240.0;

/// The stream of random numbers for orders.
const ORDERS: u64 = 17;

/// A row of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Row {
    /// The kernel's own scheduler.
    #[serde(rename = "eevdf")]
    Eevdf,
    /// scx_sfs without options.
    #[serde(rename = "scx_sfs")]
    ScxSfs,
    /// The kernel's own scheduler, and a daemon that renices.
    #[serde(rename = "renice")]
    Renice,
    /// The kernel's own scheduler once more: what differs from the first row is noise.
    #[serde(rename = "eevdf again")]
    Again,
}

impl Row {
    /// All, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Eevdf, Self::ScxSfs, Self::Renice, Self::Again];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eevdf => "eevdf",
            Self::ScxSfs => "scx_sfs",
            Self::Renice => "renice",
            Self::Again => "eevdf again",
        }
    }
}

/// One trace under all rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The load, as a share of the measured capacity.
    pub load: f64,
    /// The seed of the trace.
    pub seed: u64,
    /// The rows, the first one first.
    pub order: [Row; 4],
}

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The seed of orders and traces.
    pub seed: u64,
    /// How long it may take, in minutes.
    pub minutes: u32,
    /// The loads, as shares of the measured capacity.
    pub loads: Vec<f64>,
    /// For how long invocations of a replay arrive, in seconds.
    pub span_s: f64,
    /// The blocks, the first one first.
    pub blocks: Vec<Block>,
}

impl Plan {
    /// A plan for this time (in minutes, 1 or more) and these loads (1 or more of them).
    ///
    /// # Errors
    /// If the time is too short for [`FEWEST`] blocks of each load.
    pub fn new(minutes: u32, loads: &[f64], seed: u64) -> Result<Self> {
        let time_s = f64::from(minutes) * 60.0 - BEFORE_S;
        let rows = (loads.len() * Row::ALL.len()) as f64;
        let span_s = (time_s / (rows * f64::from(WANTED)) - AROUND_S).clamp(SPAN_S.0, SPAN_S.1);
        // In whole seconds, which a file keeps exactly.
        let span_s = span_s.floor();
        let blocks = (time_s / (rows * (span_s + AROUND_S))) as u32;
        if blocks < FEWEST {
            let least = f64::from(FEWEST) * rows * (SPAN_S.0 + AROUND_S) + BEFORE_S;
            bail!(
                "{minutes} minutes are too few for {} loads: want at least {}, or fewer --loads",
                loads.len(),
                (least / 60.0).ceil()
            );
        }
        Ok(Self {
            seed,
            minutes,
            loads: loads.to_vec(),
            span_s,
            blocks: draw(loads, blocks, seed),
        })
    }

    /// About how long it takes, in seconds.
    pub fn seconds(&self) -> f64 {
        let rows = (self.blocks.len() * Row::ALL.len()) as f64;
        BEFORE_S + rows * (self.span_s + AROUND_S)
    }

    /// Blocks of each load.
    pub fn rounds(&self) -> usize {
        self.blocks.len() / self.loads.len().max(1)
    }
}

/// Draws `rounds` rounds of blocks.
fn draw(loads: &[f64], rounds: u32, seed: u64) -> Vec<Block> {
    let mut random = Random::stream(seed, ORDERS);
    let mut squares = vec![Vec::new(); loads.len()];
    let mut all = Vec::new();
    for round in 1..=u64::from(rounds) {
        let mut loads: Vec<(usize, f64)> = loads.iter().copied().enumerate().collect();
        shuffle(&mut loads, &mut random);
        for (number, load) in loads {
            let square = &mut squares[number];
            if square.is_empty() {
                *square = latin(&mut random);
            }
            all.extend(square.pop().map(|order| Block {
                load,
                seed: seed.wrapping_mul(1000).wrapping_add(round),
                order,
            }));
        }
    }
    all
}

/// Four orders in which each row has each place once, so that no row is always the first.
fn latin(random: &mut Random) -> Vec<[Row; 4]> {
    let mut rows = Row::ALL;
    shuffle(&mut rows, random);
    let turned = |by: usize| {
        let mut turned = rows;
        turned.rotate_left(by);
        turned
    };
    let mut all: Vec<[Row; 4]> = (0..Row::ALL.len()).map(turned).collect();
    shuffle(&mut all, random);
    all
}

/// Fisher and Yates.
fn shuffle<T>(list: &mut [T], random: &mut Random) {
    for last in (1..list.len()).rev() {
        list.swap(last, random.below(last + 1));
    }
}

/// The factor of all durations of Table I for a machine of this capacity in CPUs: 1, or less
/// on a small one, so that a replay has enough invocations.
pub fn scale(capacity: f64, span_s: f64, load: f64) -> f64 {
    let mean_s = Version::Text.mean_ms() / 1e3;
    let most = span_s * capacity * load / (INVOCATIONS * mean_s);
    // In thousandths, which a file keeps exactly.
    (most.min(1.0) * 1e3).ceil() / 1e3
}

/// The trace of a block: Table I of the SFS paper, for `cpus` CPUs of which a share of
/// `available` (above 0, at most 1) was there when all were asked for.
///
/// # Errors
/// If the numbers make no trace, as those of a file that was changed may not.
pub fn trace(block: &Block, span_s: f64, cpus: u32, available: f64) -> Result<Vec<Invocation>> {
    let capacity = f64::from(cpus) * available;
    let sane = |value: f64, most: f64| value > 0.0 && value <= most;
    if !sane(block.load, 10.0) || !sane(span_s, 3600.0) || !sane(available, 1.0) || cpus == 0 {
        bail!(
            "no trace has a load of {} on {capacity} CPUs for {span_s} s",
            block.load
        );
    }
    let durations = Table1 {
        version: Version::Text,
        scale: scale(capacity, span_s, block.load),
    };
    let mean_s = Version::Text.mean_ms() / 1e3 * durations.scale;
    let invocations = (span_s * capacity * block.load / mean_s).round().max(2.0);
    let amount = Amount {
        invocations: invocations.min(f64::from(faas_workload::MAX_INVOCATIONS)) as u32,
        load: block.load * available,
        cpus,
        seed: block.seed,
    };
    Workload::new(&durations).make(amount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faas_data::trace::offered_load;

    #[test]
    fn every_block_has_all_rows_and_every_round_all_loads() {
        let plan = Plan::new(60, &[0.7, 0.9], 5).unwrap();
        assert!(plan.rounds() >= FEWEST as usize, "{plan:?}");
        for block in &plan.blocks {
            let mut rows = block.order;
            rows.sort();
            assert_eq!(rows, Row::ALL);
        }
        for round in plan.blocks.chunks(2) {
            let mut loads: Vec<f64> = round.iter().map(|block| block.load).collect();
            loads.sort_by(f64::total_cmp);
            assert_eq!(loads, [0.7, 0.9]);
            assert_eq!(round[0].seed, round[1].seed);
        }
        let orders = |plan: &Plan| plan.blocks.iter().map(|one| one.order).collect::<Vec<_>>();
        assert!(orders(&plan).windows(2).any(|two| two[0] != two[1]));
        assert_eq!(plan, Plan::new(60, &[0.7, 0.9], 5).unwrap());
        assert_ne!(
            orders(&plan),
            orders(&Plan::new(60, &[0.7, 0.9], 6).unwrap())
        );
    }

    #[test]
    fn in_four_blocks_of_a_load_each_row_has_each_place_once() {
        let plan = Plan::new(120, &[0.7, 0.9], 5).unwrap();
        for load in [0.7, 0.9] {
            let blocks: Vec<&Block> = plan.blocks.iter().filter(|one| one.load == load).collect();
            assert!(blocks.len() >= 4);
            for place in 0..4 {
                let mut rows: Vec<Row> = blocks[..4].iter().map(|one| one.order[place]).collect();
                rows.sort();
                assert_eq!(rows, Row::ALL);
            }
        }
    }

    #[test]
    fn a_plan_keeps_to_its_time_or_is_refused() {
        for minutes in [4, 5, 10, 30, 60, 600] {
            let plan = Plan::new(minutes, &[0.9], 1).unwrap();
            assert!(plan.seconds() <= f64::from(minutes) * 60.0, "{plan:?}");
            assert!(plan.seconds() >= f64::from(minutes) * 45.0, "{plan:?}");
        }
        let refused = Plan::new(3, &[0.5, 0.7, 0.9], 1).unwrap_err().to_string();
        assert!(refused.contains("want at least 9"), "{refused}");
    }

    #[test]
    fn a_trace_offers_the_load_of_what_was_available() {
        let block = &Plan::new(10, &[0.8], 1).unwrap().blocks[0];
        for (cpus, available) in [(1, 1.0), (2, 0.5), (64, 0.99)] {
            let trace = trace(block, 20.0, cpus, available).unwrap();
            let load = offered_load(&trace, cpus).unwrap();
            assert!((load - 0.8 * available).abs() < 0.01, "{load}");
            assert!(trace.len() >= 200, "{}", trace.len());
            let last_s = trace.last().unwrap().arrival_us as f64 / 1e6;
            assert!((10.0..40.0).contains(&last_s), "{last_s}");
        }
        assert!(trace(block, 20.0, 0, 1.0).is_err() && trace(block, f64::NAN, 1, 1.0).is_err());
    }
}
