//! The verdict on a case on one machine.

use crate::blocks;
use std::fmt;

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It failed, or its guest said nothing about it.
    Failed,
    /// The machine could not try it.
    Skipped,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let mut all = [Self::Passed, Self::Failed, Self::Skipped].into_iter();
        all.find(|outcome| outcome.name() == name)
    }
}

/// A line of a file of verdicts: the case, its outcome, the perturbation, and all cases of
/// the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The case.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// On which machine.
    pub perturbation: u16,
    /// All cases of the guest, in order.
    pub cases: Vec<String>,
}

impl Verdict {
    /// The verdicts on `cases`, from what their guest said. A case of which it said nothing
    /// has failed.
    pub fn all(said: &str, cases: &[String], perturbation: u16) -> Vec<Self> {
        let of = |name: &str| {
            let mut lines = said.lines();
            let found = lines.find_map(|line| {
                let (case, passed) = blocks::case(line)?;
                let outcome = match passed {
                    false => Outcome::Failed,
                    true if line.contains(" # SKIP ") => Outcome::Skipped,
                    true => Outcome::Passed,
                };
                (case == name).then_some(outcome)
            });
            found.unwrap_or(Outcome::Failed)
        };
        let verdicts = cases.iter().map(|name| Self {
            name: name.clone(),
            outcome: of(name),
            perturbation,
            cases: cases.to_vec(),
        });
        verdicts.collect()
    }

    /// Reads such a line.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        Some(Self {
            name: words.next()?.to_string(),
            outcome: Outcome::parse(words.next()?)?,
            perturbation: words.next()?.parse().ok()?,
            cases: words.map(str::to_string).collect(),
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let (name, outcome) = (&self.name, self.outcome.name());
        let cases = self.cases.join(" ");
        write!(formatter, "{name} {outcome} {} {cases}", self.perturbation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_of_which_nothing_is_said_has_failed() {
        let said =
            "1..4\nok 1 - a # about\n#   1.0 s\nok 2 - b # SKIP not here\nnot ok 3 - c # about\n";
        let cases = ["a", "b", "c", "d"].map(String::from);
        let lines: Vec<String> = Verdict::all(said, &cases, 7)
            .iter()
            .map(Verdict::to_string)
            .collect();
        assert_eq!(
            lines,
            [
                "a passed 7 a b c d",
                "b skipped 7 a b c d",
                "c failed 7 a b c d",
                "d failed 7 a b c d",
            ]
        );
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for line in ["a passed 7 a b", "disk_x failed 9999 disk_x"] {
            assert_eq!(Verdict::parse(line).unwrap().to_string(), line);
        }
        for line in ["", "a", "a is 7 a", "a passed many a"] {
            assert_eq!(Verdict::parse(line), None, "{line}");
        }
    }
}
