//! The table of the cases that failed.

use super::verdict::{Outcome, Verdict};
use crate::count::Count;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// All verdicts, by the perturbation.
#[derive(Debug)]
pub struct Table(Vec<Verdict>);

impl Table {
    /// Of these verdicts.
    pub fn new(mut verdicts: Vec<Verdict>) -> Self {
        verdicts.sort_by(|a, b| {
            (a.perturbation, &a.name, &a.cases).cmp(&(b.perturbation, &b.name, &b.cases))
        });
        Self(verdicts)
    }

    /// Whether a case failed.
    pub fn has_failures(&self) -> bool {
        self.count().failed > 0
    }

    /// The cases that failed, the most frequent first: how often, under which perturbations,
    /// and the commands that run their guests again, with `words` as options. Then the count.
    pub fn lines(&self, words: &[(&str, &str)]) -> Vec<String> {
        let options: String = words
            .iter()
            .map(|(name, value)| format!(" {name} {}", quoted(value)))
            .collect();
        let mut cases: BTreeMap<&str, (usize, Vec<&Verdict>)> = BTreeMap::new();
        for verdict in &self.0 {
            let (of, failed) = cases.entry(&verdict.name).or_default();
            *of += 1;
            if verdict.outcome == Outcome::Failed {
                failed.push(verdict);
            }
        }
        let mut failed: Vec<_> = cases
            .into_iter()
            .filter(|(_, (_, failed))| !failed.is_empty())
            .collect();
        failed.sort_by_key(|(_, (_, failed))| Reverse(failed.len()));
        let mut lines = Vec::new();
        for (name, (of, failed)) in failed {
            let times = failed.len();
            let under: Vec<_> = failed
                .iter()
                .map(|verdict| verdict.perturbation.to_string())
                .collect();
            let under = under.join(", ");
            lines.push(String::new());
            lines.push(format!(
                "{name}: failed {times} of {of} times, under {under}"
            ));
            lines.extend(failed.iter().map(|verdict| {
                let (perturbation, cases) = (verdict.perturbation, verdict.cases.join(" "));
                format!("    tests/run{options} --perturbation {perturbation} {cases}")
            }));
        }
        lines.extend([String::new(), self.count().to_string()]);
        lines
    }

    fn count(&self) -> Count {
        let of = |wanted| {
            let outcomes = self.0.iter().map(|verdict| verdict.outcome);
            outcomes.filter(|outcome| *outcome == wanted).count()
        };
        Count {
            passed: of(Outcome::Passed),
            failed: of(Outcome::Failed),
            skipped: of(Outcome::Skipped),
        }
    }
}

/// A word that a shell reads back as it was.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+:,=".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_listed_with_the_commands_that_repeat_them() {
        let verdicts = [
            "bad failed 10 a bad",
            "a passed 10 a bad",
            "bad failed 2 a bad",
            "a failed 2 a bad",
            "c skipped 2 c",
        ];
        let verdicts = verdicts.iter().filter_map(|line| Verdict::parse(line));
        let table = Table::new(verdicts.collect());
        assert!(table.has_failures());
        assert_eq!(
            table.lines(&[("--cpus", "2"), ("--with", "--slice-us 1")]),
            [
                "",
                "bad: failed 2 of 2 times, under 2, 10",
                "    tests/run --cpus 2 --with '--slice-us 1' --perturbation 2 a bad",
                "    tests/run --cpus 2 --with '--slice-us 1' --perturbation 10 a bad",
                "",
                "a: failed 1 of 2 times, under 2",
                "    tests/run --cpus 2 --with '--slice-us 1' --perturbation 2 a bad",
                "",
                "1 passed, 3 failed, 1 skipped",
            ]
        );
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("2x2x2"), "2x2x2");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
