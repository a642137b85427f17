//! The three applications of the SFS paper's OpenLambda evaluation (Section
//! IX): fib, md and sa, with the durations of Table I.
//!
//! md reads a JSON file and turns it into Markdown; sa reads a dictionary of
//! sentiments and scores a sentence. The text does not say in which proportion
//! the three are mixed; here it is a third each.

use super::random::Random;
use super::stream;
use faas_data::kind::{Kind, Work};
use faas_data::trace::{Invocation, Phase};

/// The applications.
pub const APPLICATIONS: [Work; 3] = [Work::Fib, Work::Md, Work::Sa];

/// Draws the application of each invocation, from a stream of its own so that
/// durations stay those of the same seed in `table1`: a function `fib27`
/// becomes `fib27`, `md27` or `sa27`, with that kind of work.
pub fn assign(invocations: &mut [Invocation], seed: u64) {
    let mut random = Random::stream(seed, stream::APPLICATION);
    for one in invocations {
        let application = APPLICATIONS[random.below(APPLICATIONS.len())];
        let n = one.function.trim_start_matches("fib").to_string();
        one.function = format!("{}{n}", application.name());
        for phase in &mut one.phases {
            if let Phase::Cpu { work, .. } = phase {
                *work = Some(application);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table1::{Table1, Version};
    use super::super::{generate, Amount};
    use super::*;

    #[test]
    fn a_third_each_with_the_durations_of_table1() {
        let table1 = Table1 {
            version: Version::Text,
            scale: 1.0,
        };
        let amount = Amount {
            invocations: 30_000,
            load: 0.8,
            cpus: 72,
            seed: 3,
        };
        let plain = generate(&table1, amount);
        let mut mixed = plain.clone();
        assign(&mut mixed, 3);
        for work in APPLICATIONS {
            let of = |one: &&Invocation| one.function.starts_with(work.name());
            let share = mixed.iter().filter(of).count() as f64 / 30_000.0;
            // Three standard errors: 3 x sqrt(2 / 9 / 30,000) = 0.0082
            assert!((share - 1.0 / 3.0).abs() < 0.0082, "{work}: {share}");
        }
        for (mixed, plain) in mixed.iter().zip(&plain) {
            assert_eq!(mixed.service_us(), plain.service_us());
            assert_eq!(mixed.arrival_us, plain.arrival_us);
            let n = plain.function.strip_prefix("fib").unwrap();
            assert!(mixed.function.ends_with(n), "{}", mixed.function);
            let name = mixed.function.strip_suffix(n).unwrap();
            let phase = mixed.phases[0].to_string();
            assert_eq!(phase, format!("cpu:{}@{name}", plain.service_us()));
        }
    }
}
