//! What a phase of an invocation does: kinds of computing and of blocking. A
//! phase takes the time in the trace, whatever its kind, unless its work is
//! fixed: then it takes as long as that needs.

use crate::fixed::Kernel;
use std::fmt;

/// Common to both kinds of phases.
pub trait Kind: Copy + Send + Sync + 'static {
    /// All kinds, in the order of their numbers.
    const ALL: &'static [Self];

    /// Its name, in traces and on command lines.
    fn name(self) -> &'static str;

    /// A short description.
    fn about(self) -> &'static str;

    /// The kind called `name`.
    ///
    /// # Errors
    /// With a phrase that lists the known kinds.
    fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|kind| kind.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|kind| kind.name()).collect();
            format!("want one of {}", names.join(", "))
        })
    }
}

/// How a `cpu` phase uses its CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// No-operation instructions: nothing but CPU time.
    Spin,
    /// Recursive Fibonacci numbers, as in the SFS paper.
    Fib,
    /// Counting primes by trial division.
    Primes,
    /// STREAM's copy, scale, add and triad over arrays larger than the L2 cache.
    Stream,
    /// Writing and deleting files in the temporary folder.
    File,
    /// Parsing, changing and rendering JSON.
    Json,
    /// Rendering Markdown to HTML.
    Markdown,
    /// Scoring the sentiment of English sentences.
    Sentiment,
    /// md of the SFS paper: reading a JSON file and making Markdown of it.
    Md,
    /// sa of the SFS paper: reading a dictionary and scoring a sentence.
    Sa,
    /// As many iterations as take the time of the phase on an idle machine.
    Fixed(Kernel),
}

impl Work {
    /// Its index in [`Kind::ALL`].
    pub fn number(self) -> u64 {
        let place = Self::ALL.iter().position(|kind| *kind == self);
        place.unwrap_or(0) as u64
    }

    /// The kind of fixed work, if it is fixed.
    pub fn fixed(self) -> Option<Kernel> {
        match self {
            Self::Fixed(kernel) => Some(kernel),
            _ => None,
        }
    }

    /// The kind with this number; spin if there is none.
    pub fn from_number(number: u64) -> Self {
        *Self::ALL.get(number as usize).unwrap_or(&Self::Spin)
    }
}

impl Kind for Work {
    const ALL: &'static [Self] = &[
        Self::Spin,
        Self::Fib,
        Self::Primes,
        Self::Stream,
        Self::File,
        Self::Json,
        Self::Markdown,
        Self::Sentiment,
        Self::Md,
        Self::Sa,
        Self::Fixed(Kernel::ALL[0]),
        Self::Fixed(Kernel::ALL[1]),
        Self::Fixed(Kernel::ALL[2]),
        Self::Fixed(Kernel::ALL[3]),
        Self::Fixed(Kernel::ALL[4]),
        Self::Fixed(Kernel::ALL[5]),
        Self::Fixed(Kernel::ALL[6]),
        Self::Fixed(Kernel::ALL[7]),
        Self::Fixed(Kernel::ALL[8]),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Fib => "fib",
            Self::Primes => "primes",
            Self::Stream => "stream",
            Self::File => "file",
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Sentiment => "sentiment",
            Self::Md => "md",
            Self::Sa => "sa",
            Self::Fixed(kernel) => kernel.name(),
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Spin => "No-operation instructions: nothing but CPU time",
            Self::Fib => "Recursive Fibonacci numbers, as in the SFS paper",
            Self::Primes => "Counting primes by trial division",
            Self::Stream => {
                "STREAM's copy, scale, add and triad over arrays larger than the L2 cache"
            }
            Self::File => "Writing and deleting files in the temporary folder",
            Self::Json => "Parsing, changing and rendering JSON",
            Self::Markdown => "Rendering Markdown to HTML",
            Self::Sentiment => "Scoring the sentiment of English sentences",
            Self::Md => "md of the SFS paper: reading a JSON file and making Markdown of it",
            Self::Sa => "sa of the SFS paper: reading a dictionary and scoring a sentence",
            Self::Fixed(kernel) => kernel.about(),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How an `io` phase blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blocking {
    /// Sleeping until a timer fires.
    Sleep,
    /// Reading from a pipe that another process writes to at the end of the
    /// time.
    Pipe,
    /// Writing, syncing and reading a file in the temporary folder until the
    /// time is over; blocks only while it waits for the disk.
    File,
}

impl Blocking {
    /// Its place in [`Kind::ALL`].
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The kind with this number; sleep if there is none.
    pub fn from_number(number: u64) -> Self {
        *Self::ALL.get(number as usize).unwrap_or(&Self::Sleep)
    }
}

impl Kind for Blocking {
    const ALL: &'static [Self] = &[Self::Sleep, Self::Pipe, Self::File];

    fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Pipe => "pipe",
            Self::File => "file",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Sleep => "Sleeping until a timer fires",
            Self::Pipe => {
                "Reading from a pipe that another process writes to at the end of the time"
            }
            Self::File => {
                "Writing, syncing and reading a file in the temporary folder until the time is \
                 over; blocks only while it waits for the disk"
            }
        }
    }
}

impl fmt::Display for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kinds of phases for which the trace has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// Of `cpu` phases.
    pub work: Work,
    /// Of `io` phases.
    pub blocking: Blocking,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            work: Work::Spin,
            blocking: Blocking::Sleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that all kinds are found by name and number, and that these are
    /// unique.
    fn check<K: Kind + PartialEq + fmt::Debug + fmt::Display>(
        number: fn(K) -> u64,
        from_number: fn(u64) -> K,
    ) {
        for (index, kind) in K::ALL.iter().enumerate() {
            assert_eq!(K::parse(&kind.to_string()), Ok(*kind));
            assert_eq!(
                (number(*kind), from_number(number(*kind))),
                (index as u64, *kind)
            );
            assert!(!kind.about().is_empty());
        }
        assert_eq!(from_number(u64::MAX), K::ALL[0]);
    }

    #[test]
    fn every_kind_of_fixed_work_is_a_kind() {
        let fixed = Work::ALL.iter().filter_map(|work| work.fixed());
        assert_eq!(fixed.collect::<Vec<_>>(), Kernel::ALL);
    }

    #[test]
    fn kinds_are_found_by_name_and_number() {
        check(Work::number, Work::from_number);
        check(Blocking::number, Blocking::from_number);
        let error = Blocking::parse("tape").unwrap_err();
        assert_eq!(error, "want one of sleep, pipe, file");
    }
}
