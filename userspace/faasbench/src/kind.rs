//! What a phase of an invocation really does: kinds of computing and kinds of
//! blocking. A phase takes the time that the trace says, whatever its kind.

use clap::ValueEnum;
use std::fmt;

/// How a `cpu` phase uses its CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Work {
    /// Arithmetic in registers, no memory
    Spin,
    /// Recursive Fibonacci numbers, as in the SFS paper
    Fib,
    /// Counting primes by trial division
    Primes,
    /// STREAM's copy, scale, add and triad over arrays larger than the L2 cache
    Stream,
    /// Writing and deleting files in the temporary folder
    File,
    /// Parsing, changing and rendering JSON
    Json,
    /// Rendering Markdown to HTML
    Markdown,
    /// Scoring the sentiment of English sentences
    Sentiment,
}

impl Work {
    /// All kinds, in the order of [`Work::number`].
    pub const ALL: [Self; 8] = [
        Self::Spin,
        Self::Fib,
        Self::Primes,
        Self::Stream,
        Self::File,
        Self::Json,
        Self::Markdown,
        Self::Sentiment,
    ];

    /// Its place in [`Work::ALL`].
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The kind with this number; spin if there is none.
    pub fn from_number(number: u64) -> Self {
        *Self::ALL.get(number as usize).unwrap_or(&Self::Spin)
    }
}

/// How an `io` phase blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Blocking {
    /// Sleeping until a timer fires
    Sleep,
    /// Reading from a pipe that another process writes to when the time is over
    Pipe,
    /// Writing, syncing and reading a file in the temporary folder until the
    /// time is over: blocks only as far as the disk makes it wait
    File,
}

impl Blocking {
    /// All kinds, in the order of [`Blocking::number`].
    pub const ALL: [Self; 3] = [Self::Sleep, Self::Pipe, Self::File];

    /// Its place in [`Blocking::ALL`].
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The kind with this number; sleep if there is none.
    pub fn from_number(number: u64) -> Self {
        *Self::ALL.get(number as usize).unwrap_or(&Self::Sleep)
    }
}

/// What phases do whose kind the trace leaves open.
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

/// The kind called `name`.
///
/// # Errors
/// With a phrase that lists the kinds that there are.
pub fn parse<K: ValueEnum>(name: &str) -> Result<K, String> {
    K::from_str(name, false).map_err(|_| format!("want one of {}", names::<K>()))
}

/// The names of all kinds, with commas between.
pub fn names<K: ValueEnum>() -> String {
    let all: Vec<String> = K::value_variants().iter().map(name).collect();
    all.join(", ")
}

fn name<K: ValueEnum>(kind: &K) -> String {
    kind.to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_string())
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name(self))
    }
}

impl fmt::Display for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_name_and_number() {
        for work in Work::ALL {
            assert_eq!(parse::<Work>(&work.to_string()), Ok(work));
            assert_eq!(Work::from_number(work.number()), work);
        }
        for blocking in Blocking::ALL {
            assert_eq!(parse::<Blocking>(&blocking.to_string()), Ok(blocking));
            assert_eq!(Blocking::from_number(blocking.number()), blocking);
        }
        assert_eq!(Work::value_variants(), Work::ALL);
        assert_eq!(Blocking::value_variants(), Blocking::ALL);
        let error = parse::<Blocking>("tape").unwrap_err();
        assert_eq!(error, "want one of sleep, pipe, file");
    }
}
