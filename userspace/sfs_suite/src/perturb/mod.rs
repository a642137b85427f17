//! `tests/run --perturb N`: the same cases on N machines that differ a little.

pub mod samples;
pub mod table;
pub mod verdict;

use crate::cases::Cases;
use crate::guest::{self, Guests};
use crate::kind::Kind;
use crate::pool;
use crate::run::FAILED;
use anyhow::Result;
use samples::Samples;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::Path;
use table::Table;

/// Cases per guest: few, because repeating a failure repeats all cases of its guest.
const CASES_OF_A_SAMPLE: usize = 6;

/// The parts of the guests.
#[derive(Debug)]
pub struct Perturbations<'a> {
    /// Where guests come from.
    pub guests: &'a Guests<'a>,
    /// The machine and the options of scx_sfs, as words of tests/run.
    pub words: Vec<(&'static str, &'a str)>,
    /// The user's patterns for the cases.
    pub patterns: &'a [String],
    /// Guests at the same time.
    pub jobs: usize,
}

/// One guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Which machine.
    pub perturbation: u16,
    /// The place among the guests of this perturbation, from 1 on.
    pub number: usize,
    /// The machine of its own that its cases need, if they do.
    pub kind: Option<Kind>,
    /// The cases that it runs.
    pub cases: Vec<String>,
}

/// The guests for these perturbations.
pub fn plan(cases: &Cases, perturbations: RangeInclusive<u16>) -> Vec<Sample> {
    let plain = cases
        .plain
        .chunks(CASES_OF_A_SAMPLE)
        .map(|some| (None, some));
    let apart = cases.apart.iter().flat_map(|(kind, cases)| {
        let chunks = cases.chunks(CASES_OF_A_SAMPLE);
        chunks.map(|some| (Some(*kind), some))
    });
    let of_each: Vec<_> = plain.chain(apart).collect();
    let samples = perturbations.flat_map(|perturbation| {
        (1..)
            .zip(&of_each)
            .map(move |(number, (kind, cases))| Sample {
                perturbation,
                number,
                kind: *kind,
                cases: cases.to_vec(),
            })
    });
    samples.collect()
}

/// Runs the guests that have no result in the folder `out` yet (in a temporary folder without
/// it), and prints the table of all results there. Returns the exit status.
///
/// # Errors
/// If the folder has results of something else, a file cannot be written or a guest cannot be
/// started, and [`sfs_jobs::failure::Failure::Interrupted`]; results of guests that ended are
/// kept.
pub fn run(
    perturbations: &Perturbations,
    cases: &Cases,
    range: RangeInclusive<u16>,
    out: Option<&Path>,
) -> Result<u8> {
    let plan = plan(cases, range);
    let samples = Samples::open(perturbations, out, plan.len())?;
    let (done, missing): (Vec<_>, Vec<_>) =
        plan.into_iter().partition(|sample| samples.has(sample));
    let ended = pool::for_each(perturbations.jobs, missing, |sample| samples.draw(&sample))?;
    let ended = done.len() + ended.into_iter().filter(|ended| *ended).count();
    let table = Table::new(samples.verdicts()?);
    guest::print(&table.lines(&perturbations.words), "");
    if ended < samples.planned {
        let missing = samples.planned - ended;
        let _ = writeln!(
            std::io::stderr(),
            "run: {missing} of {} guests were ended from outside and have no result",
            samples.planned
        );
        return Ok(FAILED);
    }
    Ok(if table.has_failures() { FAILED } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_has_six_cases_of_one_kind_at_most() {
        let names = |letters: &str| letters.chars().map(String::from).collect::<Vec<_>>();
        let cases = Cases {
            plain: names("abcdefg"),
            apart: vec![(Kind::Disk, names("x"))],
        };
        let plan = plan(&cases, 3..=4);
        let brief: Vec<_> = plan
            .iter()
            .map(|sample| {
                let cases = sample.cases.concat();
                (sample.perturbation, sample.number, sample.kind, cases)
            })
            .collect();
        let of = |perturbation| {
            [
                (perturbation, 1, None, "abcdef".to_string()),
                (perturbation, 2, None, "g".to_string()),
                (perturbation, 3, Some(Kind::Disk), "x".to_string()),
            ]
        };
        assert_eq!(brief, [of(3), of(4)].concat());
    }
}
