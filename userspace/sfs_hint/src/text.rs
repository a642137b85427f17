//! The text form: one line per hint.
//!
//! ```text
//! pid=1234 arrival_us=86400000123 function=resize service_us=12000
//! pid=1234 function="resize, then crop" start=530081
//! 1234
//! 1234 86400000123
//! ```
//!
//! Only the process id is required; keys come in any order, each once. The last
//! two lines are the tuple (process id, time of arrival) that the paper's
//! OpenLambda port sends. Words are separated by blanks or tabs; empty lines
//! are ignored. Times are whole microseconds, except `start`, the start time of
//! the process in clock ticks since boot; 0 means "not given".

use std::fmt::Write;

use crate::error::{excerpt, Problem};
use crate::hint::{check_function, HintRef};

const SEPARATORS: [char; 2] = [' ', '\t'];

/// Parses one line. `None`: the line is empty.
///
/// # Errors
///
/// The error in the line.
pub fn parse_line(line: &str) -> Option<Result<HintRef<'_>, Problem>> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut words = Words { rest: line };
    let first = words.next()?;
    Some(match first {
        Ok(Word::Bare(pid)) => parse_tuple(pid, words),
        Ok(Word::Pair(..)) => parse_pairs(Words { rest: line }),
        Err(problem) => Err(problem),
    })
}

/// `PID` or `PID ARRIVAL_US`.
fn parse_tuple<'a>(pid: &'a str, mut words: Words<'a>) -> Result<HintRef<'a>, Problem> {
    let pid = match parse_pid(pid) {
        Err(_) if !pid.starts_with(|c: char| c.is_ascii_digit()) => {
            return Err(Problem::NoKey(excerpt(pid)))
        }
        pid => pid?,
    };
    let arrived_at_ns = match words.next().transpose()? {
        None => None,
        Some(Word::Bare(arrival)) => parse_us("arrival_us", arrival)?,
        Some(Word::Pair(..)) => return Err(Problem::NoPid),
    };
    match words.next().transpose()? {
        None => Ok(HintRef {
            pid,
            arrived_at_ns,
            ..HintRef::default()
        }),
        Some(Word::Bare(word) | Word::Pair(word, _)) => Err(Problem::NoKey(excerpt(word))),
    }
}

fn parse_pairs(words: Words<'_>) -> Result<HintRef<'_>, Problem> {
    let (mut pid, mut arrival, mut function) = (None, None, None);
    let (mut service, mut start) = (None, None);
    for word in words {
        match word? {
            Word::Bare(word) => return Err(Problem::NoKey(excerpt(word))),
            Word::Pair("pid", value) => set(&mut pid, "pid", parse_pid(value)?)?,
            Word::Pair("arrival_us", value) => {
                set(&mut arrival, "arrival_us", parse_us("arrival_us", value)?)?;
            }
            Word::Pair("service_us", value) => {
                set(&mut service, "service_us", parse_us("service_us", value)?)?;
            }
            Word::Pair("start", value) => set(&mut start, "start", parse_ticks(value)?)?,
            Word::Pair("function", value) => {
                check_function(value)?;
                set(&mut function, "function", value)?;
            }
            Word::Pair(key, _) => return Err(Problem::UnknownKey(excerpt(key))),
        }
    }
    Ok(HintRef {
        pid: pid.ok_or(Problem::NoPid)?,
        arrived_at_ns: arrival.flatten(),
        function,
        service_ns: service.flatten(),
        started_ticks: start.flatten(),
    })
}

fn set<T>(slot: &mut Option<T>, key: &'static str, value: T) -> Result<(), Problem> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Problem::Twice(key)),
    }
}

fn parse_pid(value: &str) -> Result<i32, Problem> {
    let pid = parse_digits(value).and_then(|pid| i32::try_from(pid).ok());
    pid.filter(|&pid| pid > 0).ok_or_else(|| Problem::Number {
        key: "pid",
        value: excerpt(value),
        want: "a process id",
    })
}

/// Returns microseconds as ns, or `None` for 0.
fn parse_us(key: &'static str, value: &str) -> Result<Option<u64>, Problem> {
    let ns = parse_digits(value).and_then(|us| us.checked_mul(1000));
    ns.map(|ns| (ns > 0).then_some(ns))
        .ok_or_else(|| Problem::Number {
            key,
            value: excerpt(value),
            want: "microseconds",
        })
}

/// Returns clock ticks, or `None` for 0.
fn parse_ticks(value: &str) -> Result<Option<u64>, Problem> {
    let ticks = parse_digits(value);
    ticks
        .map(|ticks| (ticks > 0).then_some(ticks))
        .ok_or_else(|| Problem::Number {
            key: "start",
            value: excerpt(value),
            want: "clock ticks since boot",
        })
}

/// Like `str::parse`, but without signs.
fn parse_digits(value: &str) -> Option<u64> {
    let digits = value.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| value.parse().ok()).flatten()
}

enum Word<'a> {
    /// A word without a key.
    Bare(&'a str),
    /// A key and its value, without the quotes.
    Pair(&'a str, &'a str),
}

struct Words<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Words<'a> {
    type Item = Result<Word<'a>, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.trim_start_matches(SEPARATORS);
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(SEPARATORS).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        self.rest = behind;
        let Some((key, value)) = word.split_once('=') else {
            return Some(Ok(Word::Bare(word)));
        };
        if !value.starts_with('"') {
            return Some(Ok(Word::Pair(key, value)));
        }
        let quoted = &rest[key.len() + 2..];
        let Some((value, behind)) = quoted.split_once('"') else {
            return Some(Err(Problem::Quote));
        };
        if !behind.is_empty() && !behind.starts_with(SEPARATORS) {
            return Some(Err(Problem::Quote));
        }
        self.rest = behind;
        Some(Ok(Word::Pair(key, value)))
    }
}

/// Appends `hint`, which must be valid, to `line`, without a line end. Times
/// are rounded down to microseconds.
pub(crate) fn write_line(hint: &HintRef<'_>, line: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(line, "pid={}", hint.pid);
    if let Some(us) = hint.arrived_at_ns.map(|ns| ns / 1000).filter(|&us| us > 0) {
        let _ = write!(line, " arrival_us={us}");
    }
    if let Some(function) = hint.function {
        let quote = if function.contains(SEPARATORS) {
            "\""
        } else {
            ""
        };
        let _ = write!(line, " function={quote}{function}{quote}");
    }
    if let Some(us) = hint.service_ns.map(|ns| ns / 1000).filter(|&us| us > 0) {
        let _ = write!(line, " service_us={us}");
    }
    if let Some(ticks) = hint.started_ticks.filter(|&ticks| ticks > 0) {
        let _ = write!(line, " start={ticks}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<HintRef<'_>, Problem> {
        parse_line(line).expect("the line is not empty")
    }

    #[test]
    fn all_keys_in_any_order() {
        let all = HintRef {
            pid: 1234,
            arrived_at_ns: Some(86_400_000_123_000),
            function: Some("resize"),
            service_ns: Some(12_000_000),
            started_ticks: Some(530_081),
        };
        for line in [
            "pid=1234 arrival_us=86400000123 function=resize service_us=12000 start=530081",
            "start=530081 service_us=12000 function=resize arrival_us=86400000123 pid=1234",
            "  pid=1234\tarrival_us=86400000123  function=\"resize\" service_us=12000 \tstart=530081 \r",
        ] {
            assert_eq!(parse(line), Ok(all), "{line:?}");
        }
    }

    #[test]
    fn only_the_process_id_is_required() {
        let bare = HintRef {
            pid: 77,
            ..HintRef::default()
        };
        assert_eq!(parse("pid=77"), Ok(bare));
        assert_eq!(parse("77"), Ok(bare));
        assert_eq!(parse("77 0"), Ok(bare));
        assert_eq!(parse("pid=77 arrival_us=0 service_us=0 start=0"), Ok(bare));
        let arrived = HintRef {
            arrived_at_ns: Some(5_000),
            ..bare
        };
        assert_eq!(parse("77 5"), Ok(arrived));
        assert!(parse_line("").is_none() && parse_line(" \t\r").is_none());
    }

    #[test]
    fn names_may_have_blanks_and_equal_signs() {
        let function = |line| parse(line).map(|hint| hint.function.unwrap_or("").to_owned());
        assert_eq!(function("pid=1 function=\"a b\""), Ok("a b".to_owned()));
        assert_eq!(function("function=\"a  b\" pid=1"), Ok("a  b".to_owned()));
        assert_eq!(function("pid=1 function=a=b"), Ok("a=b".to_owned()));
        assert_eq!(function("pid=1 function=größe"), Ok("größe".to_owned()));
    }

    #[test]
    fn errors_name_the_problem() {
        for (line, problem) in [
            ("function=x", "no process id"),
            ("pid=0", "pid=\"0\" is not a whole number"),
            ("pid=-1", "pid=\"-1\""),
            ("pid=+1", "pid=\"+1\""),
            ("pid=", "pid=\"\""),
            ("pid=2147483648", "a process id"),
            ("pid=1 pid=1", "pid is given twice"),
            (
                "pid=1 arrival_us=5 arrival_us=0",
                "arrival_us is given twice",
            ),
            ("pid=1 pdi=1", "unknown key \"pdi\""),
            ("pid=1 stray", "\"stray\" has no key"),
            ("hello", "\"hello\" has no key"),
            ("12x", "pid=\"12x\""),
            ("1 2 3", "\"3\" has no key"),
            ("1 2x", "arrival_us=\"2x\""),
            ("1 function=x", "no process id; want pid=N"),
            ("pid=1 arrival_us=18446744073709551615", "microseconds"),
            ("pid=1 service_us=1.5", "service_us=\"1.5\""),
            ("pid=1 start=-4", "start=\"-4\""),
            ("pid=1 start=18446744073709551616", "clock ticks"),
            ("pid=1 start=4 start=4", "start is given twice"),
            ("pid=1 function=", "1 to 64 bytes, not 0"),
            ("pid=1 function=\"\"", "1 to 64 bytes, not 0"),
            ("pid=1 function=\"a", "function=\"NAME\""),
            ("pid=1 function=\"a\"b", "function=\"NAME\""),
            ("pid=1 function=a\"b", "double quotes"),
            ("pid=1 function=a\u{7}", "control characters"),
        ] {
            let said = parse(line).expect_err(line).to_string();
            assert!(said.contains(problem), "{line:?}: {said}");
        }
    }

    #[test]
    fn errors_quote_only_an_excerpt() {
        let line = format!("pid=1 {}=1", "k".repeat(2000));
        assert!(parse(&line).unwrap_err().to_string().len() < 120);
    }
}
