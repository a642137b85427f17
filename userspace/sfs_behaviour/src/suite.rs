//! Lists cases, and runs them one after another with TAP output.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use sfs_testbed::case::Case;
use sfs_testbed::kernel_log::KernelLog;
use sfs_testbed::runner::{self, Verdict};
use sfs_testbed::{clock, scheduler, waste};
use sfs_text::LINE_CHARS;

use crate::options::Part;

/// Prints `cases`, one a line: all, or those of the kind `apart`.
pub fn list(cases: &[&Case], apart: Option<&str>) {
    for case in cases
        .iter()
        .filter(|case| apart.is_none() || case.apart() == apart)
    {
        // Whoever reads the list may have seen enough (head): no error.
        if writeln!(io::stdout(), "{:36} {}", case.name, case.about).is_err() {
            return;
        }
    }
}

/// Runs the cases of the kind `apart` (`None`: those that need no machine of their own) that
/// are in `part`, with the loader `program`. Each has its number in `cases`, and the first
/// part prints the plan, so that the parts together are one TAP stream. Returns whether all
/// have passed.
///
/// # Errors
///
/// A case cannot be run at all, the watch for wasted CPUs cannot be loaded, or the kernel's log cannot
/// be read.
pub fn run(cases: &[&Case], apart: Option<&str>, part: Part, program: &Path) -> Result<bool> {
    let cpus = std::thread::available_parallelism()?.get();
    let machine = waste::Machine::this(cpus);
    let mut counts = Counts::default();
    let numbered: Vec<(usize, &&Case)> = (1..)
        .zip(cases)
        .filter(|(_, case)| case.apart() == apart)
        .collect();
    let (mut watch, mut log) = (waste::watch()?, KernelLog::open()?);
    if part.first == 1 && (apart.is_none() || numbered.len() == cases.len()) {
        println!("TAP version 14\n1..{}", cases.len());
    }
    for (number, case) in numbered.into_iter().skip(part.first - 1).step_by(part.of) {
        let start = clock::now();
        watch.start()?;
        let (verdict, notes) = runner::run(case, program, cpus)?;
        let waste = waste::notes(&watch.stop()?, &scheduler::take_spans(), machine);
        let warnings = log.notes()?;
        let took = clock::since(start);
        counts.add(&verdict);
        println!("{}", result_line(number, case, &verdict, &notes));
        for note in notes.into_iter().chain(waste).chain(warnings) {
            println!("#   {}", sfs_text::line(note, LINE_CHARS));
        }
        println!("#   {:.1} s", took.as_secs_f64());
    }
    let Counts {
        passed,
        failed,
        skipped,
    } = counts;
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(failed == 0)
}

/// Numbers of cases by verdict.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Counts {
    fn add(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Passed => &mut self.passed,
            Verdict::Failed => &mut self.failed,
            Verdict::Skipped => &mut self.skipped,
        } += 1;
    }
}

/// Returns the TAP line of a case that has ended. The reason of a skip is the last note.
fn result_line(number: usize, case: &Case, verdict: &Verdict, notes: &[String]) -> String {
    let Case { name, about, .. } = case;
    match verdict {
        Verdict::Passed => format!("ok {number} - {name} # {about}"),
        Verdict::Failed => format!("not ok {number} - {name} # {about}"),
        Verdict::Skipped => {
            let why = notes.last().map_or("", String::as_str);
            format!("ok {number} - {name} # SKIP {why}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_number_name_and_reason() {
        let case = Case {
            name: "one",
            about: "what it shows",
            run: |_| Ok(()),
        };
        let notes = ["measured".to_owned(), "no disk".to_owned()];
        let line = |verdict| result_line(7, &case, &verdict, &notes);
        assert_eq!(line(Verdict::Passed), "ok 7 - one # what it shows");
        assert_eq!(line(Verdict::Failed), "not ok 7 - one # what it shows");
        assert_eq!(line(Verdict::Skipped), "ok 7 - one # SKIP no disk");
    }
}
