//! Input files of workloads: durations and gaps.

use anyhow::Result;
use faas_data::input::{self, InputError, MAX_US};
use faas_data::trace;
use std::path::Path;

/// Prefix of a trace's first line.
const TRACE: &[u8] = b"arrival_us,";

/// Reads a file of times, one per line: microseconds, or a number with the unit
/// `us`, `ms` or `s`. Empty lines and lines that begin with `#` are ignored.
///
/// # Errors
/// If it cannot be read, has no times, or for the first line that is not one.
pub fn times_us(path: &Path) -> Result<Vec<f64>> {
    let bytes = input::read(path)?;
    Ok(parse_times(&path.display().to_string(), &bytes)?)
}

/// The times in the text of a file named `file`, in microseconds.
fn parse_times(file: &str, bytes: &[u8]) -> Result<Vec<f64>, InputError> {
    let at = |line, message| InputError {
        file: file.to_string(),
        line,
        message,
    };
    let mut times = Vec::new();
    for (line, text) in input::lines(file, bytes)? {
        let text = text.trim();
        if !text.is_empty() && !text.starts_with('#') {
            times.push(time_us(text).map_err(|message| at(line, message))?);
        }
    }
    if times.is_empty() {
        return Err(at(1, "this file has no times".to_string()));
    }
    Ok(times)
}

/// A time in microseconds: a number, alone or with the unit `us`, `ms` or `s`.
///
/// # Errors
/// With a phrase that quotes the text.
pub fn time_us(text: &str) -> Result<f64, String> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let found = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (digits, factor) = found.unwrap_or((text, 1.0));
    let us = decimal(digits).map(|value| value * factor);
    us.filter(|us| *us <= MAX_US as f64).ok_or_else(|| {
        let text = input::shorten(text, 40);
        format!("`{text}` is not a time such as 250, 250us, 1.5ms or 2s, up to 115 days")
    })
}

/// A number of digits and at most one point.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let number = text.parse().ok()?;
    text.bytes().all(plain).then_some(number)
}

/// Reads the gaps between arrivals, in microseconds: from a trace, or from a
/// file of times as [`times_us`] reads it.
///
/// # Errors
/// If the file cannot be read, is neither, or has no gap above zero.
pub fn gaps_us(path: &Path) -> Result<Vec<u64>> {
    let bytes = input::read(path)?;
    let file = path.display().to_string();
    let gaps: Vec<u64> = if bytes.starts_with(TRACE) {
        let invocations = trace::parse(&file, &bytes)?;
        let gap = |two: &[trace::Invocation]| two[1].arrival_us - two[0].arrival_us;
        invocations.windows(2).map(gap).collect()
    } else {
        let times = parse_times(&file, &bytes)?;
        times.into_iter().map(|us| us.round() as u64).collect()
    };
    let sum = gaps.iter().try_fold(0u64, |sum, gap| sum.checked_add(*gap));
    match sum {
        Some(1..) => Ok(gaps),
        Some(0) => anyhow::bail!("{file}: all its arrivals are at the same time"),
        None => anyhow::bail!("{file}: its gaps add up to more than 2^64 microseconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(text: &str) -> Result<Vec<u64>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let error = |error: anyhow::Error| error.to_string();
        let name = file.path().display().to_string();
        gaps_us(file.path())
            .map_err(error)
            .map_err(|text| text.replace(&name, "g"))
    }

    #[test]
    fn times_have_units_or_are_microseconds() {
        let text = "# IATs\n250\n250us\n1.5ms\n\n 2s\n.5\n";
        let want = [250.0, 250.0, 1500.0, 2e6, 0.5];
        assert_eq!(parse_times("t", text.as_bytes()).unwrap(), want);
    }

    #[test]
    fn invalid_times_are_refused_with_the_line() {
        for bad in [
            "-1", "1e3", "inf", "nan", "ms", ".", "1h", "1 ms", "101d", "9e9s",
        ] {
            let error = parse_times("t", format!("5\n{bad}\n").as_bytes()).unwrap_err();
            let said = error.to_string();
            assert!(
                said.starts_with(&format!("t:2: `{bad}` is not a time")),
                "{said}"
            );
        }
        assert!(parse_times("t", b"10000001s\n").is_err());
        let none = parse_times("t", b"# nothing\n").unwrap_err().to_string();
        assert_eq!(none, "t:1: this file has no times");
    }

    #[test]
    fn gaps_come_from_a_trace_or_a_list() {
        let trace = "arrival_us,function,phases\n5,f,cpu:1\n5,f,cpu:1\n9,f,cpu:1\n";
        assert_eq!(gaps(trace), Ok(vec![0, 4]));
        assert_eq!(gaps("1ms\n0\n"), Ok(vec![1000, 0]));
        let still = "g: all its arrivals are at the same time";
        assert_eq!(gaps("0\n0\n").unwrap_err(), still);
        let one = "arrival_us,function,phases\n5,f,cpu:1\n";
        assert_eq!(gaps(one).unwrap_err(), still);
        assert_eq!(
            gaps("arrival_us,function,phases\nx,f,cpu:1\n").unwrap_err(),
            "g:2: arrival `x` is not a whole number"
        );
    }
}
