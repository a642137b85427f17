//! The behaviour suite's output on one machine.

use super::machine::Machine;

/// Its row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The kernel's release, if it came up.
    pub release: Option<String>,
    /// `40 passed, 1 failed, 2 skipped`, or why there is no such line.
    pub total: String,
    /// Instructions that the verifier looked at, and of which program how many.
    verifier: Option<String>,
    /// The cases that failed.
    pub failed: Vec<String>,
}

impl Said {
    /// From standard output (TAP) and standard error of tests/run.
    pub fn parse(out: &str, errors: &str) -> Self {
        let total = out.lines().rev().find(|line| is_total(line));
        let total = total.map(str::to_string);
        let last = errors.lines().last().unwrap_or_default();
        let release = errors.lines().find_map(|line| {
            let rest = line.strip_prefix("run: kernel ")?;
            Some(rest.split_once(',')?.0.to_string())
        });
        Self {
            release,
            total: total.unwrap_or_else(|| format!("no result: {last}")),
            verifier: out.lines().find_map(verifier),
            failed: out.lines().filter_map(failed).collect(),
        }
    }

    /// The row of the table.
    pub fn row(&self, machine: &Machine) -> String {
        let or_none = |text: &str| match text {
            "" => "-".to_string(),
            _ => text.to_string(),
        };
        let cells = [
            self.release
                .clone()
                .unwrap_or_else(|| machine.kernel.clone()),
            machine.cpus.clone(),
            machine.accel.clone(),
            self.total.clone(),
            or_none(self.verifier.as_deref().unwrap_or_default()),
            or_none(&self.failed.join(" ")),
        ];
        format!("| {} |", cells.join(" | "))
    }
}

/// Whether `line` counts the cases.
fn is_total(line: &str) -> bool {
    line.split_once(" passed, ")
        .is_some_and(|(count, _)| count.parse::<u32>().is_ok())
}

/// From `..., 20 programs, 12345 instructions, 678 of them for NAME`: `12345 (NAME 678)`.
fn verifier(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(" programs, ")?;
    let (all, rest) = rest.split_once(" instructions, ")?;
    let (most, name) = rest.split_once(" of them for ")?;
    Some(format!("{all} ({name} {most})"))
}

/// The name in `not ok 7 - NAME # ...`.
fn failed(line: &str) -> Option<String> {
    let (number, rest) = line.strip_prefix("not ok ")?.split_once(" - ")?;
    number.parse::<u32>().ok()?;
    rest.split(' ').next().map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_what_the_suite_said() {
        let out = "TAP version 14\n1..3\nok 1 - a # about\nnot ok 2 - b # about\n\
            #   26 programs, 90000 instructions, 8000 of them for sfs_dispatch\n\
            not ok 3 - c # about\n1 passed, 2 failed, 0 skipped\n";
        let errors = "run: kernel 6.18.5+deb14-amd64, 4 CPUs, icount\nrun: more\n";
        let machine: Machine = "6.18".parse().unwrap();
        assert_eq!(
            Said::parse(out, errors).row(&machine),
            "| 6.18.5+deb14-amd64 | 4 | icount | 1 passed, 2 failed, 0 skipped | 90000 (sfs_dispatch 8000) | b c |"
        );
    }

    #[test]
    fn a_suite_without_a_result_says_why() {
        let machine: Machine = "6.18:8:tcg".parse().unwrap();
        let said = Said::parse("ok 1 - passed, almost\n", "one\nrun: the guest panicked\n");
        assert_eq!(
            said.row(&machine),
            "| 6.18 | 8 | tcg | no result: run: the guest panicked | - | - |"
        );
    }
}
