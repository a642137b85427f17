//! A searching attacker: plays many plans against an honest tenant, breeds new
//! ones from those that gained most, and prints the best.

use std::path::Path;

use anyhow::{Context, Result};

use crate::breed::Breeder;
use crate::matches::{Arena, Length, Outcome};
use crate::tenant::Plan;
use sfs_testbed::case::Bench;
use sfs_testbed::clock::ms;

/// The settings of a search.
#[derive(Debug)]
pub struct Search {
    /// Number of times that new plans are bred.
    pub generations: u32,
    /// Determines the new plans.
    pub seed: u64,
    /// Options of scx_sfs, or "eevdf".
    pub options: String,
    /// Whether plans are judged by the neighbour's loss instead of the
    /// attacker's gain.
    pub harms: bool,
    /// A plan to play alone, in a long match, instead of a search.
    pub replay: Option<String>,
}

/// Number of plans kept from generation to generation.
const KEPT: usize = 12;

/// Number of plans bred in a generation.
const BRED: usize = 2;

/// Maximum number of further matches of the best plan. Without them, of many
/// plans that gain nothing, the luckiest would stay first.
const TRIALS: usize = 4;

/// Number of plans played again at the end, in long matches.
const SHOWN: usize = 10;

/// Limit of a plan's gain, or harm, relative to the due.
const MOST: f64 = 1.05;

/// Short, so that there can be many. Saved tokens and debts at the start are a few per cent of
/// the measured time.
const TRIAL: Length = Length {
    warm_up: ms(250),
    measured: ms(700),
};

const REPLAY: Length = Length {
    warm_up: ms(500),
    measured: ms(3000),
};

/// The first plans: one for each kind of step.
const FIRST: [&str; 14] = [
    "4 burn:50000 accept",
    "4 burn:1000 accept",
    "4 burn:30000 accept-in-vain",
    "4 burn:10000 fork",
    "4 burn:10000 thread",
    "6 burn:20000 exec",
    "8 burn:10000 receive",
    "12 burn:20000 sleep:11000",
    "12 burn:3000 sleep:1000",
    "6 burn:20000 group fork",
    "16 burn:10000 yield",
    "8 burn:10000 rename accept",
    "4 burn:10000 multiply accept",
    "8 nice:-20 pin:0 burn:20000 pin:1 burn:20000 accept",
];

/// A plan and the results of its matches.
struct Played {
    plan: Plan,
    outcomes: Vec<Outcome>,
}

impl Played {
    fn mean(&self, of: impl Fn(&Outcome) -> f64) -> f64 {
        self.outcomes.iter().map(of).sum::<f64>() / self.outcomes.len().max(1) as f64
    }
}

impl Default for Search {
    fn default() -> Self {
        Self {
            generations: 0,
            seed: 1,
            options: "--policy sfs --cgroup fn/*".to_owned(),
            harms: false,
            replay: None,
        }
    }
}

impl Search {
    /// Searches, or plays one plan, and prints the results. Returns whether no
    /// plan gains, or harms, more than 5 % over its due.
    ///
    /// # Errors
    ///
    /// The scheduler does not load, or is ejected (the error names the plan).
    pub fn run(&self, program: &Path, cpus: usize) -> Result<bool> {
        let notes = std::fs::File::options()
            .write(true)
            .open("/dev/null")
            .context("cannot open /dev/null")?;
        let bench = Bench::new(program, cpus, notes);
        let arena = Arena::open(&bench, &self.options)?;
        let best = match &self.replay {
            Some(plan) => vec![plan.parse()?],
            None => self.find(&arena, cpus)?,
        };
        let holds = self.show(&arena, &best)?;
        arena.close()?;
        Ok(holds)
    }

    /// Returns the mean gain or harm of a plan: 1 is the due.
    fn fitness(&self, played: &Played) -> f64 {
        played.mean(|outcome| {
            if self.harms {
                2.0 - outcome.neighbour()
            } else {
                outcome.gain()
            }
        })
    }

    /// Returns the best plans, the best first.
    fn find(&self, arena: &Arena, cpus: usize) -> Result<Vec<Plan>> {
        let mut breeder = Breeder::new(self.seed, cpus);
        let mut all = Vec::new();
        for text in FIRST {
            all.push(try_out(arena, text.parse()?)?);
        }
        self.settle(arena, &mut all, 0)?;
        for generation in 1..=self.generations {
            for _ in 0..BRED {
                let (one, other) = (parent(&mut breeder), parent(&mut breeder));
                let plan = breeder.breed(&all[one].plan, &all[other].plan);
                if all.iter().all(|played| played.plan != plan) {
                    all.push(try_out(arena, plan)?);
                }
            }
            self.settle(arena, &mut all, generation)?;
        }
        all.truncate(SHOWN);
        Ok(all.into_iter().map(|played| played.plan).collect())
    }

    /// Sorts the plans, keeps the best ones, and plays the first once more.
    fn settle(&self, arena: &Arena, all: &mut Vec<Played>, generation: u32) -> Result<()> {
        self.sort(all);
        all.truncate(KEPT);
        if let Some(best) = all.first_mut().filter(|best| best.outcomes.len() < TRIALS) {
            best.outcomes.push(arena.play(&best.plan, TRIAL)?);
        }
        self.sort(all);
        if let Some(best) = all.first() {
            println!(
                "generation {generation}: {:.1} % of its due, its neighbour {:.1} %, in {} matches: {}",
                100.0 * best.mean(Outcome::gain),
                100.0 * best.mean(Outcome::neighbour),
                best.outcomes.len(),
                best.plan
            );
        }
        Ok(())
    }

    fn sort(&self, all: &mut [Played]) {
        all.sort_by(|a, b| self.fitness(b).total_cmp(&self.fitness(a)));
    }

    /// Plays the best plans again, in long matches, and prints them. Returns whether none gains
    /// too much.
    fn show(&self, arena: &Arena, best: &[Plan]) -> Result<bool> {
        let mut all = Vec::new();
        for plan in best {
            let outcomes = vec![arena.play(plan, REPLAY)?];
            let plan = plan.clone();
            all.push(Played { plan, outcomes });
        }
        self.sort(&mut all);
        println!("{} again, for {:?} each:", all.len(), REPLAY.measured);
        println!("  of its due  neighbour  machine  in debt  plan");
        for played in &all {
            println!(
                "  {:8.1} %  {:7.1} %  {:5.1} %  {:7}  {}",
                100.0 * played.mean(Outcome::gain),
                100.0 * played.mean(Outcome::neighbour),
                100.0 * played.mean(|outcome| outcome.of_all),
                played.mean(|outcome| outcome.in_debt as f64),
                played.plan
            );
        }
        let Some(first) = all.first() else {
            return Ok(true);
        };
        let most = self.fitness(first);
        println!(
            "best: {:.1} %, replay with: --options '{}'{} --replay '{}'",
            100.0 * most,
            self.options,
            if self.harms { " --harm" } else { "" },
            first.plan
        );
        Ok(most <= MOST)
    }
}

fn try_out(arena: &Arena, plan: Plan) -> Result<Played> {
    let outcomes = vec![arena.play(&plan, TRIAL)?];
    Ok(Played { plan, outcomes })
}

/// Returns the better of two random places; 0 is the best.
fn parent(breeder: &mut Breeder) -> usize {
    breeder.below(KEPT).min(breeder.below(KEPT))
}
