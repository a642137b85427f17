//! Traces: what arrives when, and what it needs.
//!
//! CSV with the header `arrival_us,function,phases` or
//! `arrival_us,function,phases,class`, rows in the order of their arrivals,
//! times in microseconds, `phases` such as `io:20000;cpu:150000`. What a phase
//! does beside taking its time, as in `cpu:150000@fib`, makes no difference
//! here and is not looked at. Otherwise the reader is strict: what it does not
//! understand is an error with its line.

use crate::time::MAX_US;
use anyhow::{Context, Result};
use csv::{ReaderBuilder, StringRecord, Terminator};
use std::path::Path;

const HEADER: [&str; 4] = ["arrival_us", "function", "phases", "class"];

/// One step of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Computes until it has had this much CPU time, in microseconds.
    Cpu(u64),
    /// Blocks for this long, in microseconds.
    Io(u64),
}

/// One request to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Arrival in microseconds since the start of the trace, at most [`MAX_US`].
    pub arrival_us: u64,
    /// The function's name.
    pub function: String,
    /// Its steps, at least one; together at most [`MAX_US`].
    pub phases: Vec<Phase>,
}

impl Invocation {
    /// An invocation that only computes, for `service_us` microseconds.
    pub fn cpu(arrival_us: u64, function: &str, service_us: u64) -> Self {
        Self {
            arrival_us,
            function: function.to_string(),
            phases: vec![Phase::Cpu(service_us)],
        }
    }

    /// Service time in microseconds: the CPU time that it needs.
    pub fn service_us(&self) -> u64 {
        let cpu = |phase: &Phase| match phase {
            Phase::Cpu(us) => *us,
            Phase::Io(_) => 0,
        };
        self.phases.iter().map(cpu).sum()
    }

    /// Service time and time blocked, in microseconds.
    pub fn uncontended_us(&self) -> u64 {
        let time = |phase: &Phase| match phase {
            Phase::Cpu(us) | Phase::Io(us) => *us,
        };
        self.phases.iter().map(time).sum()
    }
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct InputError {
    /// The file as the user named it.
    pub file: String,
    /// Line number, from 1.
    pub line: u64,
    /// One sentence.
    pub message: String,
}

/// Reads and checks the trace at `path`; it has at least one invocation.
///
/// # Errors
/// If the file cannot be read, or [`InputError`] for the first line that is not
/// as the format says.
pub fn read(path: &Path) -> Result<Vec<Invocation>> {
    let file = path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {file}"))?;
    Ok(parse(&file, &bytes)?)
}

/// Reads the file of durations at `path`: one whole number of microseconds, 1
/// or more, on each line.
///
/// # Errors
/// As [`read`].
pub fn read_durations(path: &Path) -> Result<Vec<u64>> {
    let file = path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {file}"))?;
    let mut durations = Vec::new();
    for_each_row(&file, &bytes, |_, row| {
        if row.len() != 1 {
            return Err(format!("want one duration, found {} fields", row.len()));
        }
        durations.push(positive("the duration", &row[0])?);
        Ok(())
    })?;
    Ok(durations)
}

/// Parses a trace. `file` is its name for messages.
///
/// # Errors
/// For the first line that is not as the format says.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Invocation>, InputError> {
    let mut columns = 0;
    let mut invocations: Vec<Invocation> = Vec::new();
    for_each_row(file, bytes, |line, row| {
        if line == 1 {
            columns = check_header(row)?;
            return Ok(());
        }
        let invocation = parse_row(row, columns)?;
        let previous = invocations.last().map_or(0, |before| before.arrival_us);
        if invocation.arrival_us < previous {
            return Err(format!(
                "arrival {} is before the previous one, {previous}: rows must be sorted by arrival",
                invocation.arrival_us
            ));
        }
        invocations.push(invocation);
        Ok(())
    })?;
    if invocations.is_empty() {
        return Err(error(file, 1, "the trace has no invocations"));
    }
    Ok(invocations)
}

fn error(file: &str, line: u64, message: &str) -> InputError {
    InputError {
        file: file.to_string(),
        line,
        message: message.to_string(),
    }
}

/// Hands every line with its number to `take`. Lines are as Unix has them, and
/// none is empty: the csv crate would pass over those in silence.
fn for_each_row(
    file: &str,
    bytes: &[u8],
    mut take: impl FnMut(u64, &StringRecord) -> Result<(), String>,
) -> Result<(), InputError> {
    let Some((last, body)) = bytes.split_last() else {
        return Err(error(file, 1, "the file is empty"));
    };
    let lines = body.split(|byte| *byte == b'\n');
    let (count, empty) = (
        lines.clone().count(),
        lines.clone().position(<[u8]>::is_empty),
    );
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .quoting(false)
        .terminator(Terminator::Any(b'\n'))
        .from_reader(bytes);
    let mut row = StringRecord::new();
    for index in 0..count {
        let at = |message: &str| error(file, index as u64 + 1, message);
        if empty == Some(index) {
            return Err(at("the line is empty"));
        }
        if index + 1 == count && *last != b'\n' {
            return Err(at("the last line has no newline: the file is cut off"));
        }
        reader
            .read_record(&mut row)
            .map_err(|_| at("not UTF-8 text"))?;
        take(index as u64 + 1, &row).map_err(|message| at(&message))?;
    }
    Ok(())
}

/// The number of columns, if the header is one of the two.
fn check_header(row: &StringRecord) -> Result<usize, String> {
    let fields: Vec<&str> = row.iter().collect();
    if fields == HEADER || fields == HEADER[..3] {
        return Ok(fields.len());
    }
    Err(format!(
        "the header is `{}`, want `{}` and perhaps `,class`",
        shorten(&fields.join(",")),
        HEADER[..3].join(",")
    ))
}

fn parse_row(row: &StringRecord, columns: usize) -> Result<Invocation, String> {
    if row.len() != columns {
        return Err(format!("want {columns} fields, found {}", row.len()));
    }
    if columns == HEADER.len() && !matches!(&row[3], "" | "LS" | "LD") {
        return Err(format!(
            "class `{}` is not LS, LD or empty",
            shorten(&row[3])
        ));
    }
    Ok(Invocation {
        arrival_us: number("arrival", &row[0])?,
        function: name(&row[1])?,
        phases: parse_phases(&row[2])?,
    })
}

fn name(text: &str) -> Result<String, String> {
    let allowed = |c: char| !c.is_control() && !c.is_whitespace() && c != '"';
    if text.is_empty() || text.len() > 255 || !text.chars().all(allowed) {
        return Err(format!("`{}` is not a function name", shorten(text)));
    }
    Ok(text.to_string())
}

fn parse_phases(text: &str) -> Result<Vec<Phase>, String> {
    let mut total: u64 = 0;
    let mut phases = Vec::new();
    for part in text.split(';') {
        let (phase, us) = parse_phase(part)?;
        total = total.saturating_add(us);
        phases.push(phase);
    }
    if total > MAX_US {
        return Err(format!("the phases add up to more than {MAX_US}"));
    }
    Ok(phases)
}

fn parse_phase(text: &str) -> Result<(Phase, u64), String> {
    let wrong = || {
        let text = shorten(text);
        format!("phase `{text}` is not `cpu:MICROSECONDS` or `io:MICROSECONDS`")
    };
    let (kind, value) = text.split_once(':').ok_or_else(wrong)?;
    let phase = match kind {
        "cpu" => Phase::Cpu,
        "io" => Phase::Io,
        _ => return Err(wrong()),
    };
    let value = match value.split_once('@') {
        Some((_, "")) => return Err(wrong()),
        Some((value, _)) => value,
        None => value,
    };
    let us = positive("the time of a phase", value)?;
    Ok((phase(us), us))
}

fn positive(what: &str, text: &str) -> Result<u64, String> {
    match number(what, text)? {
        0 => Err(format!("{what} is 0, want 1 or more")),
        us => Ok(us),
    }
}

/// A whole number of at most [`MAX_US`]: digits only.
fn number(what: &str, text: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{what} `{}` is not a whole number", shorten(text)));
    }
    match text.parse::<u64>() {
        Ok(value) if value <= MAX_US => Ok(value),
        _ => Err(format!("{what} `{}` is more than {MAX_US}", shorten(text))),
    }
}

/// At most 60 characters of `text`, so that a broken line does not flood the
/// message about it.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<Invocation>, String> {
        parse("t.csv", text.as_bytes()).map_err(|error| error.to_string())
    }

    fn row(text: &str) -> Result<Vec<Invocation>, String> {
        rows(&format!("arrival_us,function,phases\n{text}\n"))
    }

    #[test]
    fn phases_are_read_and_added_up() {
        let one = &row("5,f,io:20000;cpu:150000;io:1;cpu:7").unwrap()[0];
        assert_eq!(one.arrival_us, 5);
        assert_eq!(one.phases[0], Phase::Io(20_000));
        assert_eq!(one.service_us(), 150_007);
        assert_eq!(one.uncontended_us(), 170_008);
    }

    #[test]
    fn kinds_of_work_make_no_difference() {
        let kinds = row("5,f,io:2@pipe;cpu:15@fib").unwrap();
        assert_eq!(kinds, row("5,f,io:2;cpu:15").unwrap());
        assert!(row("5,f,cpu:15@").is_err() && row("5,f,cpu:@fib").is_err());
    }

    #[test]
    fn classes_are_checked_and_forgotten() {
        let head = "arrival_us,function,phases,class\n";
        assert_eq!(
            rows(&format!("{head}1,f,cpu:1,LS\n2,f,cpu:1,\n"))
                .unwrap()
                .len(),
            2
        );
        assert_eq!(
            rows(&format!("{head}1,f,cpu:1,XX\n")).unwrap_err(),
            "t.csv:2: class `XX` is not LS, LD or empty"
        );
    }

    #[test]
    fn errors_name_file_line_and_reason() {
        let wrong_phase = "is not `cpu:MICROSECONDS` or `io:MICROSECONDS`";
        let cases = [
            ("x,f,cpu:1", "2: arrival `x` is not a whole number"),
            ("-5,f,cpu:1", "2: arrival `-5` is not a whole number"),
            ("1,f", "2: want 3 fields, found 2"),
            ("1,f,cpu:1,LS", "2: want 3 fields, found 4"),
            ("1,f,cpu:1\n\n2,f,cpu:1", "3: the line is empty"),
            ("1,f,cpu:1\n", "3: the line is empty"),
            ("1,,cpu:1", "2: `` is not a function name"),
            ("1,\"f\",cpu:1", "2: `\"f\"` is not a function name"),
            ("1,f,cpu:0", "2: the time of a phase is 0, want 1 or more"),
            ("1,f,gpu:5", &format!("2: phase `gpu:5` {wrong_phase}")),
            ("1,f,cpu:1;", &format!("2: phase `` {wrong_phase}")),
            (
                "1,f,cpu:1\r",
                "2: the time of a phase `1\r` is not a whole number",
            ),
            (
                "1,f,cpu:10000000000000;cpu:1",
                "2: the phases add up to more than 10000000000000",
            ),
            (
                "99999999999999999999,f,cpu:1",
                "2: arrival `99999999999999999999` is more than 10000000000000",
            ),
            (
                "7,f,cpu:1\n5,f,cpu:1",
                "3: arrival 5 is before the previous one, 7: rows must be sorted by arrival",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(row(text).unwrap_err(), format!("t.csv:{message}"));
        }
    }

    #[test]
    fn files_that_are_no_traces_are_refused() {
        let cases = [
            ("", "1: the file is empty"),
            (
                "a,b\n",
                "1: the header is `a,b`, want `arrival_us,function,phases` and perhaps `,class`",
            ),
            (
                "arrival_us,function,phases\n",
                "1: the trace has no invocations",
            ),
            (
                "arrival_us,function,phases\n1,f,cpu:1\n2,f,cpu:15",
                "3: the last line has no newline: the file is cut off",
            ),
            ("\n", "1: the line is empty"),
        ];
        for (text, message) in cases {
            assert_eq!(rows(text).unwrap_err(), format!("t.csv:{message}"));
        }
        let error = parse("t.csv", b"arrival_us,function,phases\n1,\xff,cpu:1\n").unwrap_err();
        assert_eq!(error.to_string(), "t.csv:2: not UTF-8 text");
    }
}
