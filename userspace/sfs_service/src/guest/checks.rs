//! Runs checks, prints a line for each, and counts.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use sfs_testbed::clock::now;

/// A check: what it is about, and a function that fails with what was not as it should be.
pub struct Check {
    /// Its name in the output.
    pub name: &'static str,
    /// Runs it.
    pub run: fn() -> Result<()>,
}

/// The checks so far.
pub struct Checks<W> {
    out: W,
    /// Tells more about the service after a failure: whole lines.
    account: fn() -> String,
    passed: u32,
    failed: u32,
}

impl<W: Write> Checks<W> {
    /// Prints to `out`. `account` tells about the service after a failure.
    pub fn new(out: W, account: fn() -> String) -> Self {
        Self {
            out,
            account,
            passed: 0,
            failed: 0,
        }
    }

    /// Runs a check and prints its line.
    ///
    /// # Errors
    ///
    /// Nothing can be printed.
    pub fn run(&mut self, check: &Check) -> Result<()> {
        let begin = now();
        match (check.run)() {
            Ok(()) => {
                self.passed += 1;
                let seconds = whole_seconds(begin, now());
                writeln!(self.out, "ok      {} ({seconds} s)", check.name)?;
            }
            Err(error) => {
                self.failed += 1;
                writeln!(self.out, "FAILED  {}", check.name)?;
                write!(self.out, "{}", indented(&format!("{error:#}")))?;
                write!(self.out, "{}", (self.account)())?;
            }
        }
        Ok(())
    }

    /// Prints the last line, and returns the exit status: 1 if a check has failed.
    ///
    /// # Errors
    ///
    /// It cannot be printed.
    pub fn conclude(mut self) -> Result<u8> {
        writeln!(self.out, "{} passed, {} failed", self.passed, self.failed)?;
        Ok(u8::from(self.failed > 0))
    }
}

/// The difference of two times on a clock that shows whole seconds.
fn whole_seconds(begin: Duration, end: Duration) -> u64 {
    end.as_secs() - begin.as_secs()
}

/// The lines of `text`, each behind eight blanks.
pub fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("        {line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    const GOOD: Check = Check {
        name: "it works",
        run: || Ok(()),
    };
    const BAD: Check = Check {
        name: "it does not",
        run: || bail!("the state is\ndisabled"),
    };

    fn outcome(checks: &[Check]) -> (u8, String) {
        let mut out = Vec::new();
        let mut all = Checks::new(&mut out, || "ActiveState=failed\n".to_owned());
        for check in checks {
            all.run(check).unwrap();
        }
        let status = all.conclude().unwrap();
        (status, String::from_utf8(out).unwrap())
    }

    #[test]
    fn each_check_has_a_line_and_a_failure_its_reason() {
        let (status, out) = outcome(&[GOOD, BAD, GOOD]);
        assert_eq!(status, 1);
        let want = "ok      it works (0 s)\nFAILED  it does not\n        the state is\n        \
            disabled\nActiveState=failed\nok      it works (0 s)\n2 passed, 1 failed\n";
        // It may take place as a second begins.
        assert_eq!(out.replace("(1 s)", "(0 s)"), want);
        assert_eq!(outcome(&[GOOD]).0, 0);
    }

    #[test]
    fn a_second_has_passed_when_the_clock_shows_another() {
        let times =
            |begin, end| whole_seconds(Duration::from_millis(begin), Duration::from_millis(end));
        assert_eq!(times(900, 1100), 1);
        assert_eq!(times(1100, 1900), 0);
    }
}
