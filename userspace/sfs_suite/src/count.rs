//! How many cases passed, failed and were skipped.

use std::fmt;
use std::ops::AddAssign;

/// A count line of a test program: `3 passed, 1 failed, 0 skipped`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Cases that passed.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
    /// Cases that the machine could not try.
    pub skipped: usize,
}

impl Count {
    /// Reads such a line.
    ///
    /// ```
    /// use sfs_suite::count::Count;
    ///
    /// let line = "3 passed, 1 failed, 0 skipped";
    /// assert_eq!(Count::parse(line).unwrap().to_string(), line);
    /// assert_eq!(Count::parse("ok 1 - a # about"), None);
    /// ```
    pub fn parse(line: &str) -> Option<Self> {
        let (passed, rest) = line.split_once(" passed, ")?;
        let (failed, rest) = rest.split_once(" failed, ")?;
        Some(Self {
            passed: passed.parse().ok()?,
            failed: failed.parse().ok()?,
            skipped: rest.strip_suffix(" skipped")?.parse().ok()?,
        })
    }

    /// Moves `cases` of those that passed to those that failed, as far as there are any.
    pub fn fail(&mut self, cases: usize) {
        let moved = cases.min(self.passed);
        self.passed -= moved;
        self.failed += moved;
    }

    /// Moves one case of those that failed to those that passed, if there is one.
    pub fn forgive(&mut self) {
        let moved = self.failed.min(1);
        self.failed -= moved;
        self.passed += moved;
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(
            formatter,
            "{passed} passed, {failed} failed, {skipped} skipped"
        )
    }
}
