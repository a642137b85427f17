//! Perturbations of cases, for `vm/run --perturb K`: each case begins at another moment and on
//! another CPU, which reveals dependence on either.

use std::time::Duration;

use anyhow::{Context, Result};
use nix::unistd::Pid;

use crate::clock::sleep;
use crate::process::confine;

const VARIABLE: &str = "VM_PERTURB";

/// Two ticks at HZ=250: all phases of a tick occur.
const LONGEST_SHIFT_US: u64 = 8000;

/// The number K of the perturbation, or none.
#[derive(Clone, Copy, Default)]
pub struct Perturbation(Option<u64>);

impl Perturbation {
    /// Returns the perturbation that the environment asks for (`VM_PERTURB`).
    ///
    /// # Errors
    ///
    /// The variable is not a number.
    pub fn of_environment() -> Result<Self> {
        match std::env::var(VARIABLE) {
            Ok(number) => {
                let number = number.parse();
                Ok(Self(Some(
                    number.with_context(|| format!("{VARIABLE} is not a number"))?,
                )))
            }
            Err(_) => Ok(Self(None)),
        }
    }

    /// Moves the calling process to one of `cpus` CPUs and sleeps for up to 8 ms there; both
    /// depend only on K and `what`. Afterwards the process may use all CPUs. Returns a description,
    /// or `None` if there is no perturbation.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn displace(self, what: &str, cpus: usize) -> Result<Option<String>> {
        let Some(number) = self.0 else {
            return Ok(None);
        };
        let drawn = draw(number, what);
        let cpu = usize::try_from(drawn >> 32)? % cpus;
        let shift = Duration::from_micros(drawn % LONGEST_SHIFT_US);
        let me = Pid::from_raw(0);
        confine(me, &[cpu])?;
        sleep(shift);
        confine(me, &(0..cpus).collect::<Vec<_>>())?;
        Ok(Some(format!(
            "perturbation {number}: {shift:?} later, from CPU {cpu} on"
        )))
    }

    /// Sleeps for up to 8 ms, depending only on K and `what`, if there is a perturbation.
    pub fn delay(self, what: &str) {
        if let Some(number) = self.0 {
            sleep(Duration::from_micros(draw(number, what) % LONGEST_SHIFT_US));
        }
    }
}

/// Returns a hash of `number` and `what`: FNV-1a, then the last step of SplitMix64, because the
/// former's upper bits hardly depend on the last characters.
fn draw(number: u64, what: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in number.to_le_bytes().into_iter().chain(what.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{draw, Perturbation, LONGEST_SHIFT_US};

    #[test]
    fn all_phases_and_cpus_occur() {
        let draws: Vec<u64> = (1..=200).map(|number| draw(number, "a case")).collect();
        let phases: HashSet<u64> = draws
            .iter()
            .map(|one| one % LONGEST_SHIFT_US / 500)
            .collect();
        let cpus: HashSet<u64> = draws.iter().map(|one| (one >> 32) % 4).collect();
        assert_eq!((phases.len(), cpus.len()), (16, 4));
    }

    #[test]
    fn the_same_again_for_the_same_case() {
        assert_eq!(draw(3, "one"), draw(3, "one"));
        assert_ne!(draw(3, "one"), draw(3, "two"));
        assert_ne!(draw(3, "one"), draw(4, "one"));
    }

    #[test]
    fn nothing_happens_without_perturbation() {
        let none = Perturbation::default().displace("a case", 1);
        assert!(none.is_ok_and(|done| done.is_none()));
    }
}
