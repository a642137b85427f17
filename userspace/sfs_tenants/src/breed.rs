//! Breeds new plans from successful ones: small changes of one, and parts of two. The same seed
//! gives the same plans.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::tenant::{Plan, Step, Strategy};

/// Limits of a plan's parts, of a part's steps, and of a plan's tasks: larger
/// plans are not worth their time.
const MOST_PARTS: usize = 3;
const MOST_STEPS: usize = 8;
const MOST_TASKS: usize = 96;

/// Limit of tasks in a part that multiplies: each task makes 16 more.
const MOST_MULTIPLIED: usize = 12;

/// Bounds of CPU times and sleeps, in us. Burns range from a negligible 50 us to more than S and
/// a turn of FAIR.
const BURNS: (f64, f64) = (50.0, 300_000.0);
const SLEEPS: (f64, f64) = (20.0, 60_000.0);

/// Makes new plans.
pub struct Breeder {
    random: ChaCha8Rng,
    cpus: usize,
}

impl Breeder {
    /// Returns a breeder for a machine with `cpus` CPUs.
    pub fn new(seed: u64, cpus: usize) -> Self {
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            cpus,
        }
    }

    /// Returns a number from 0 to `count` - 1.
    pub fn below(&mut self, count: usize) -> usize {
        // The bias of the remainder is negligible for such numbers.
        (self.random.next_u64() % count.max(1) as u64) as usize
    }

    /// Returns a new plan made from one or both plans.
    pub fn breed(&mut self, one: &Plan, other: &Plan) -> Plan {
        let mut plan = if self.below(4) == 0 {
            self.cross(one, other)
        } else {
            one.clone()
        };
        for _ in 0..=self.below(3) {
            self.change(&mut plan);
        }
        self.keep_in_bounds(&mut plan);
        plan
    }

    /// Returns a part of each, or the first steps of one and the last steps of the other.
    fn cross(&mut self, one: &Plan, other: &Plan) -> Plan {
        let (mut left, right) = (self.part_of(one), self.part_of(other));
        if self.below(2) == 0 {
            return Plan(vec![left, right]);
        }
        let (cut, from) = (
            self.below(left.steps.len()) + 1,
            self.below(right.steps.len()),
        );
        left.steps.truncate(cut);
        left.steps.extend(&right.steps[from..]);
        Plan(vec![left])
    }

    fn part_of(&mut self, plan: &Plan) -> Strategy {
        plan.0[self.below(plan.0.len())].clone()
    }

    fn change(&mut self, plan: &mut Plan) {
        if self.below(12) == 0 {
            return self.change_parts(plan);
        }
        let part = self.below(plan.0.len());
        let part = &mut plan.0[part];
        match self.below(8) {
            0 => part.tasks = self.scaled(part.tasks as f64, 1.0, MOST_TASKS as f64) as usize,
            1 => part.tasks = 1 + self.below(4 * self.cpus),
            2 | 3 => {
                let (place, step) = (self.below(part.steps.len() + 1), self.step());
                part.steps.insert(place, step);
            }
            4 if part.steps.len() > 1 => {
                let place = self.below(part.steps.len());
                part.steps.remove(place);
            }
            _ => {
                let place = self.below(part.steps.len());
                part.steps[place] = self.changed(part.steps[place]);
            }
        }
    }

    /// Adds or removes a part.
    fn change_parts(&mut self, plan: &mut Plan) {
        if plan.0.len() > 1 && self.below(2) == 0 {
            let part = self.below(plan.0.len());
            plan.0.remove(part);
        } else {
            let step = self.step();
            plan.0.push(Strategy {
                tasks: 1 + self.below(2 * self.cpus),
                steps: vec![self.burn(), step],
            });
        }
    }

    /// Returns the step with another number if it burns or sleeps, otherwise another step.
    fn changed(&mut self, step: Step) -> Step {
        match step {
            Step::Burn(us) => Step::Burn(self.scaled(us as f64, BURNS.0, BURNS.1) as u64),
            Step::Call(us) => Step::Call(self.scaled(us as f64, BURNS.0, BURNS.1) as u64),
            Step::Sleep(us) => Step::Sleep(self.scaled(us as f64, SLEEPS.0, SLEEPS.1) as u64),
            _ => self.step(),
        }
    }

    /// Returns a random step: burns and sleeps most often, then steps that begin invocations.
    fn step(&mut self) -> Step {
        match self.below(21) {
            0..=3 => self.burn(),
            4..=6 => Step::Sleep(self.between(SLEEPS)),
            7 | 8 => Step::Accept,
            9 => Step::AcceptInVain,
            10 => Step::Receive,
            11 => Step::Fork,
            12 => Step::Multiply,
            13 => Step::Thread,
            14 => Step::Exec,
            15 => Step::Group,
            16 => Step::Rename,
            17 => Step::Yield,
            18 => Step::Nice(self.below(40) as i32 - 20),
            19 => Step::Call(self.between(BURNS)),
            _ => Step::Pin(self.below(self.cpus + 1)),
        }
    }

    fn burn(&mut self) -> Step {
        Step::Burn(self.between(BURNS))
    }

    /// Returns a number between the two, with the same probability in each decade.
    fn between(&mut self, (low, high): (f64, f64)) -> u64 {
        (low * (high / low).powf(self.unit())) as u64
    }

    /// Multiplies or divides by up to four, within bounds.
    fn scaled(&mut self, value: f64, low: f64, high: f64) -> f64 {
        (value * 4f64.powf(2.0 * self.unit() - 1.0))
            .round()
            .clamp(low, high)
    }

    fn unit(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn keep_in_bounds(&mut self, plan: &mut Plan) {
        plan.0.truncate(MOST_PARTS);
        let mut left = MOST_TASKS;
        for part in &mut plan.0 {
            part.steps.truncate(MOST_STEPS);
            let multiplies = part.steps.contains(&Step::Multiply);
            let most = if multiplies { MOST_MULTIPLIED } else { left };
            part.tasks = part.tasks.clamp(1, most.min(left).max(1));
            left = left.saturating_sub(part.tasks);
        }
        if !plan.0.iter().any(|part| part.steps.iter().any(Step::burns)) {
            let burn = self.burn();
            plan.0[0].steps.insert(0, burn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        text.parse().unwrap()
    }

    #[test]
    fn the_same_seed_breeds_the_same() {
        let (one, other) = (plan("4 burn:1000 accept"), plan("8 burn:5 sleep:7 exec"));
        let all = |seed| -> Vec<Plan> {
            let mut breeder = Breeder::new(seed, 4);
            (0..50).map(|_| breeder.breed(&one, &other)).collect()
        };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
    }

    #[test]
    fn bred_plans_can_be_played() {
        let mut breeder = Breeder::new(7, 4);
        let mut last = (
            plan("4 burn:1000 accept"),
            plan("12 burn:20000 sleep:11000"),
        );
        for _ in 0..5000 {
            let new = breeder.breed(&last.0, &last.1);
            assert_eq!(plan(&new.to_string()), new);
            let tasks: usize = new.0.iter().map(|part| part.tasks).sum();
            assert!(tasks <= MOST_TASKS + MOST_PARTS && new.0.len() <= MOST_PARTS);
            last = (new, last.0);
        }
    }

    #[test]
    fn each_step_occurs() {
        let mut breeder = Breeder::new(3, 2);
        let words: std::collections::BTreeSet<String> = (0..2000)
            .map(|_| breeder.step().to_string())
            .map(|step| step.split(':').next().unwrap().to_owned())
            .collect();
        assert_eq!(words.len(), 15, "{words:?}");
    }
}
