//! Checks that are made one after the other: their verdicts on standard output, and their count
//! as the last line.

use std::io::Write;

use anyhow::{Context, Result};

/// The count so far, and the place of the verdicts.
pub struct Checks<'a> {
    out: Box<dyn Write + 'a>,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl<'a> Checks<'a> {
    /// Counts from 0, and writes to `out`.
    pub fn new(out: impl Write + 'a) -> Self {
        Self {
            out: Box::new(out),
            passed: 0,
            failed: 0,
            skipped: 0,
        }
    }

    /// Counts a check that passed.
    ///
    /// # Errors
    ///
    /// As for all functions here: the verdict cannot be written.
    pub fn pass(&mut self, text: &str) -> Result<()> {
        self.passed += 1;
        self.line(&format!("ok      {text}"))
    }

    /// Counts a check that failed, and shows its output, indented.
    pub fn fail<'t>(&mut self, text: &str, said: impl Iterator<Item = &'t str>) -> Result<()> {
        self.failed += 1;
        self.line(&format!("FAILED  {text}"))?;
        for line in said {
            self.remark(line)?;
        }
        Ok(())
    }

    /// Counts a check that this machine cannot make. `test` is its name in the list of skips; if
    /// it may not be skipped, it has failed.
    pub fn skip(&mut self, test: &str, name: &str, why: &str) -> Result<()> {
        self.skip_if(sfs_skip::check(test, why), name, why)
    }

    fn skip_if(&mut self, allowed: Result<(), String>, name: &str, why: &str) -> Result<()> {
        match allowed {
            Ok(()) => {
                self.skipped += 1;
                self.line(&format!("skipped {name}: {why}"))
            }
            Err(sentence) => self.fail(name, std::iter::once(sentence.as_str())),
        }
    }

    /// Writes a line about the last check, below its verdict.
    pub fn remark(&mut self, text: &str) -> Result<()> {
        self.line(&format!("        {text}"))
    }

    /// Writes a line.
    pub fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "{text}").context("cannot write to standard output")
    }

    /// Writes the count. Returns the exit status: 1 if a check failed.
    pub fn conclude(mut self) -> Result<u8> {
        let count = format!(
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        );
        self.line(&count)?;
        Ok(u8::from(self.failed > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what was written, and the exit status.
    fn made(checks: impl FnOnce(&mut Checks) -> Result<()>) -> (String, u8) {
        let mut out = Vec::new();
        let mut all = Checks::new(&mut out);
        checks(&mut all).unwrap();
        let status = all.conclude().unwrap();
        (String::from_utf8(out).unwrap(), status)
    }

    #[test]
    fn the_last_line_counts_all_checks() {
        let (out, status) = made(|checks| {
            checks.pass("one")?;
            checks.remark("a remark")?;
            checks.skip_if(Ok(()), "two", "no KVM")
        });
        let want = "ok      one\n        a remark\nskipped two: no KVM\n\
                    1 passed, 0 failed, 1 skipped\n";
        assert_eq!((out.as_str(), status), (want, 0));
    }

    #[test]
    fn one_failure_is_exit_status_1() {
        let (out, status) = made(|checks| {
            checks.fail("one", "first\nsecond".lines())?;
            checks.pass("two")
        });
        let want = "FAILED  one\n        first\n        second\nok      two\n\
                    1 passed, 1 failed, 0 skipped\n";
        assert_eq!((out.as_str(), status), (want, 1));
    }

    #[test]
    fn a_skip_that_is_not_allowed_is_a_failure() {
        let (out, status) =
            made(|checks| checks.skip_if(Err("not listed".into()), "one", "no KVM"));
        let want = "FAILED  one\n        not listed\n0 passed, 1 failed, 0 skipped\n";
        assert_eq!((out.as_str(), status), (want, 1));
    }
}
