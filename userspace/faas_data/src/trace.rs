//! Traces: arrivals and their work.
//!
//! CSV with the header `arrival_us,function,phases` or
//! `arrival_us,function,phases,class`, one row per invocation, in order of
//! arrival. Times are microseconds. `phases` is a sequence such as
//! `io:20000;cpu:150000`; a phase may have a kind after its time, as in
//! `cpu:150000@fib` or `io:20000@pipe` (see [`crate::kind`]), otherwise the run
//! decides. `class` is `LS` (latency-sensitive), `LD` (latency-tolerant) or
//! empty. The reader is strict: anything else is an error with its line, never
//! a guess.

use crate::fixed::Kernel;
use crate::input::{self, InputError, MAX_US};
use crate::kind::{Blocking, Kind, Work};
use anyhow::Result;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};
use std::path::Path;

const HEADER: &str = "arrival_us,function,phases";
const HEADER_WITH_CLASS: &str = "arrival_us,function,phases,class";

/// One step of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Computes until it has used some CPU time.
    Cpu {
        /// That time in microseconds.
        us: u64,
        /// The kind of work, if given.
        work: Option<Work>,
    },
    /// Blocks.
    Io {
        /// For how long, in microseconds.
        us: u64,
        /// The kind of blocking, if given.
        blocking: Option<Blocking>,
    },
}

impl Phase {
    /// Computing of any kind, for `us` microseconds of CPU time.
    pub fn cpu(us: u64) -> Self {
        Self::Cpu { us, work: None }
    }

    /// Blocking of any kind, for `us` microseconds.
    pub fn io(us: u64) -> Self {
        Self::Io { us, blocking: None }
    }

    /// Its time in microseconds: of CPU or blocked.
    pub fn us(&self) -> u64 {
        match self {
            Self::Cpu { us, .. } | Self::Io { us, .. } => *us,
        }
    }

    /// Its kind of work, if that is fixed.
    pub fn fixed(&self) -> Option<Kernel> {
        match self {
            Self::Cpu { work, .. } => work.and_then(Work::fixed),
            Self::Io { .. } => None,
        }
    }

    /// The CPU time that it needs, in microseconds.
    pub fn cpu_us(&self) -> u64 {
        match self {
            Self::Cpu { us, .. } => *us,
            Self::Io { .. } => 0,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu { us, work: None } => write!(f, "cpu:{us}"),
            Self::Cpu {
                us,
                work: Some(work),
            } => write!(f, "cpu:{us}@{work}"),
            Self::Io { us, blocking: None } => write!(f, "io:{us}"),
            Self::Io {
                us,
                blocking: Some(blocking),
            } => write!(f, "io:{us}@{blocking}"),
        }
    }
}

/// The urgency of an invocation, according to the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Latency-sensitive.
    Ls,
    /// Latency-tolerant.
    Ld,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ls => "LS",
            Self::Ld => "LD",
        })
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Arrival in microseconds since the start of the trace, at most [`MAX_US`].
    pub arrival_us: u64,
    /// The function's name.
    pub function: String,
    /// Its steps, at least one; together at most [`MAX_US`].
    pub phases: Vec<Phase>,
    /// Its class, if the workload has classes.
    pub class: Option<Class>,
}

impl Invocation {
    /// An invocation that only computes, for `service_us` microseconds.
    pub fn cpu(arrival_us: u64, function: impl Into<String>, service_us: u64) -> Self {
        Self {
            arrival_us,
            function: function.into(),
            phases: vec![Phase::cpu(service_us)],
            class: None,
        }
    }

    /// Service time in microseconds: the CPU time that it needs.
    pub fn service_us(&self) -> u64 {
        self.phases.iter().map(Phase::cpu_us).sum()
    }

    /// Uncontended duration in microseconds: service time plus time blocked,
    /// which is its turnaround on an idle machine.
    pub fn uncontended_us(&self) -> u64 {
        self.phases.iter().map(Phase::us).sum()
    }
}

/// A trace as read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The file's name without folder and `.csv`.
    pub name: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// The invocations in order of arrival, at least one.
    pub invocations: Vec<Invocation>,
}

impl Trace {
    /// Reads and checks a trace.
    ///
    /// # Errors
    /// If the file cannot be read or is malformed.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = input::read(path)?;
        let stem = path.file_stem().unwrap_or_default();
        Ok(Self {
            name: stem.to_string_lossy().into_owned(),
            sha256: hex_sha256(&bytes),
            invocations: parse(&path.display().to_string(), &bytes)?,
        })
    }
}

/// SHA-256 of `bytes` in hexadecimal.
pub fn hex_sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The load that `invocations` offer to `cpus` CPUs: the sum of their service
/// times / (`cpus` x the span from the first to the last arrival).
///
/// `None` if all arrive at once, so that there is no span.
pub fn offered_load(invocations: &[Invocation], cpus: u32) -> Option<f64> {
    let span = invocations.last()?.arrival_us - invocations.first()?.arrival_us;
    let service: u64 = invocations.iter().map(Invocation::service_us).sum();
    (span > 0).then(|| service as f64 / (f64::from(cpus) * span as f64))
}

/// Parses the text of a trace; `file` is its name for messages.
///
/// # Errors
/// For the first malformed line, or if there is none.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Invocation>, InputError> {
    let lines = input::lines(file, bytes)?;
    let at = |line: usize, message: String| InputError {
        file: file.to_string(),
        line,
        message,
    };
    let with_class = match lines[0].1 {
        HEADER => false,
        HEADER_WITH_CLASS => true,
        other => return Err(at(1, wrong_header(other))),
    };
    let mut invocations: Vec<Invocation> = Vec::with_capacity(lines.len() - 1);
    for (line, text) in &lines[1..] {
        let invocation = parse_row(text, with_class).map_err(|message| at(*line, message))?;
        let previous = invocations.last().map_or(0, |before| before.arrival_us);
        if invocation.arrival_us < previous {
            let message = format!(
                "arrival {} is before the previous one, {previous}: rows must be sorted by arrival",
                invocation.arrival_us
            );
            return Err(at(*line, message));
        }
        invocations.push(invocation);
    }
    if invocations.is_empty() {
        return Err(at(1, "the trace has no invocations".to_string()));
    }
    Ok(invocations)
}

fn wrong_header(found: &str) -> String {
    let found = input::shorten(found, 60);
    format!("the header is `{found}`, want `{HEADER}` or `{HEADER_WITH_CLASS}`")
}

fn parse_row(text: &str, with_class: bool) -> Result<Invocation, String> {
    let fields: Vec<&str> = text.split(',').collect();
    let want = if with_class { 4 } else { 3 };
    if fields.len() != want {
        return Err(format!("want {want} fields, found {}", fields.len()));
    }
    let arrival_us = input::number("arrival", fields[0], MAX_US)?;
    if !input::is_name(fields[1]) {
        let name = input::shorten(fields[1], 40);
        return Err(format!("`{name}` is not a function name"));
    }
    let class = match fields.get(3) {
        None | Some(&"") => None,
        Some(&"LS") => Some(Class::Ls),
        Some(&"LD") => Some(Class::Ld),
        Some(other) => {
            let other = input::shorten(other, 40);
            return Err(format!("class `{other}` is not LS, LD or empty"));
        }
    };
    Ok(Invocation {
        arrival_us,
        function: fields[1].to_string(),
        phases: parse_phases(fields[2])?,
        class,
    })
}

fn parse_phases(text: &str) -> Result<Vec<Phase>, String> {
    let phases: Vec<Phase> = text.split(';').map(parse_phase).collect::<Result<_, _>>()?;
    // Each is at most MAX_US, and even 2^20 phases on a line would fit.
    let total: u64 = phases.iter().map(Phase::us).fold(0, u64::saturating_add);
    if total > MAX_US {
        return Err(format!("the phases add up to more than {MAX_US}"));
    }
    Ok(phases)
}

fn parse_phase(text: &str) -> Result<Phase, String> {
    let wrong = || {
        let text = input::shorten(text, 40);
        format!("phase `{text}` is not `cpu:MICROSECONDS` or `io:MICROSECONDS`")
    };
    let (step, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (value, suffix) = match rest.split_once('@') {
        Some((value, suffix)) => (value, Some(suffix)),
        None => (rest, None),
    };
    let us = input::number("the time of a phase", value, MAX_US)?;
    if us == 0 {
        return Err(format!("phase `{text}` takes no time"));
    }
    match step {
        "cpu" => Ok(Phase::Cpu {
            us,
            work: parse_kind("cpu", suffix)?,
        }),
        "io" => Ok(Phase::Io {
            us,
            blocking: parse_kind("io", suffix)?,
        }),
        _ => Err(wrong()),
    }
}

/// The kind after the `@` of a phase, if any.
fn parse_kind<K: Kind>(step: &str, suffix: Option<&str>) -> Result<Option<K>, String> {
    let wrong = |suffix: &str, want: String| {
        format!(
            "`{}` is not a kind of {step} phase: {want}",
            input::shorten(suffix, 40)
        )
    };
    suffix
        .map(|suffix| K::parse(suffix).map_err(|want| wrong(suffix, want)))
        .transpose()
}

/// The text of a trace, as [`parse`] reads it. It has the class column if any
/// invocation has a class.
pub fn to_csv(invocations: &[Invocation]) -> String {
    let with_class = invocations.iter().any(|one| one.class.is_some());
    let mut text = String::from(if with_class {
        HEADER_WITH_CLASS
    } else {
        HEADER
    });
    text.push('\n');
    for one in invocations {
        let phases: Vec<String> = one.phases.iter().map(Phase::to_string).collect();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{},{},{}",
            one.arrival_us,
            one.function,
            phases.join(";")
        );
        if with_class {
            let class = one.class.map(|class| class.to_string());
            let _ = write!(text, ",{}", class.unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(text: &str) -> Result<Vec<Invocation>, String> {
        parse("t.csv", text.as_bytes()).map_err(|error| error.to_string())
    }

    fn row(text: &str) -> Result<Vec<Invocation>, String> {
        rows(&format!("{HEADER}\n{text}\n"))
    }

    #[test]
    fn phases_are_read_and_added_up() {
        let one = &row("5,f,io:20000;cpu:150000;io:1;cpu:7").unwrap()[0];
        assert_eq!(one.arrival_us, 5);
        assert_eq!(one.phases.len(), 4);
        assert_eq!(one.service_us(), 150_007);
        assert_eq!(one.uncontended_us(), 170_008);
        // The kind of a phase makes no difference.
        let kinds = &row("5,f,io:2@pipe;cpu:5000@fib").unwrap()[0];
        assert_eq!((kinds.service_us(), kinds.uncontended_us()), (5000, 5002));
    }

    #[test]
    fn traces_survive_a_round_trip() {
        let plain = format!("{HEADER}\n0,a,cpu:1\n0,b,io:2;cpu:3\n");
        assert_eq!(to_csv(&rows(&plain).unwrap()), plain);
        let kinds = format!("{HEADER}\n0,a,io:2@pipe;cpu:3@fib;io:4@sleep;cpu:5@spin\n");
        assert_eq!(to_csv(&rows(&kinds).unwrap()), kinds);
        let classes = format!("{HEADER_WITH_CLASS}\n0,a,cpu:1,LS\n9,b,cpu:1,\n9,c,cpu:2,LD\n");
        assert_eq!(to_csv(&rows(&classes).unwrap()), classes);
    }

    #[test]
    fn errors_name_file_line_and_reason() {
        let cases = [
            ("x,f,cpu:1", "t.csv:2: arrival `x` is not a whole number"),
            ("-5,f,cpu:1", "t.csv:2: arrival `-5` is not a whole number"),
            (
                "99999999999999999999,f,cpu:1",
                "t.csv:2: arrival `99999999999999999999` is more than 10000000000000",
            ),
            ("1,f", "t.csv:2: want 3 fields, found 2"),
            ("1,f,cpu:1,LS", "t.csv:2: want 3 fields, found 4"),
            ("1,f,cpu:1\n\n2,f,cpu:1", "t.csv:3: want 3 fields, found 1"),
            (
                "1,f,cpu:1\r",
                "t.csv:2: the line ends in a carriage return, want a newline only",
            ),
            ("1,\"f\",cpu:1", "t.csv:2: `\"f\"` is not a function name"),
            (
                "1,f,cpu:@fib",
                "t.csv:2: the time of a phase `` is not a whole number",
            ),
            ("", "t.csv:2: want 3 fields, found 1"),
            ("1,,cpu:1", "t.csv:2: `` is not a function name"),
            ("1,f,cpu:0", "t.csv:2: phase `cpu:0` takes no time"),
            (
                "1,f,gpu:5",
                "t.csv:2: phase `gpu:5` is not `cpu:MICROSECONDS` or `io:MICROSECONDS`",
            ),
            (
                "1,f,cpu:5@gpu",
                "t.csv:2: `gpu` is not a kind of cpu phase: want one of spin, fib, primes, stream, \
                 file, json, markdown, sentiment, md, sa, chase-32k, chase-1m, chase-8m, sum-32k, \
                 sum-1m, sum-8m, branch-32k, branch-1m, branch-8m",
            ),
            (
                "1,f,io:5@",
                "t.csv:2: `` is not a kind of io phase: want one of sleep, pipe, file",
            ),
            (
                "1,f,cpu:1;",
                "t.csv:2: phase `` is not `cpu:MICROSECONDS` or `io:MICROSECONDS`",
            ),
            (
                "1,f,cpu:10000000000000;cpu:1",
                "t.csv:2: the phases add up to more than 10000000000000",
            ),
            (
                "7,f,cpu:1\n5,f,cpu:1",
                "t.csv:3: arrival 5 is before the previous one, 7: rows must be sorted by arrival",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(row(text).unwrap_err(), message);
        }
    }

    #[test]
    fn headers_classes_and_emptiness_are_checked() {
        assert!(rows("arrival,function\n")
            .unwrap_err()
            .starts_with("t.csv:1: the header is"));
        assert_eq!(
            rows(&format!("{HEADER}\n")).unwrap_err(),
            "t.csv:1: the trace has no invocations"
        );
        let error = rows(&format!("{HEADER_WITH_CLASS}\n1,f,cpu:1,XX\n")).unwrap_err();
        assert_eq!(error, "t.csv:2: class `XX` is not LS, LD or empty");
        let cut = rows(&format!("{HEADER}\n1,f,cpu:1\n2,f,cpu:15")).unwrap_err();
        assert_eq!(
            cut,
            "t.csv:3: the last line has no newline: the file is cut off"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_trace_that_reads_back_or_an_error(
            text in "[0-9a-z,:;@\n\r]{0,80}|.{0,80}",
            headed in any::<bool>(),
        ) {
            let head = if headed { format!("{HEADER}\n") } else { String::new() };
            if let Ok(found) = rows(&format!("{head}{text}\n")) {
                prop_assert_eq!(rows(&to_csv(&found)), Ok(found));
            }
        }
    }

    #[test]
    fn offered_load_is_service_over_capacity() {
        // 30 + 50 ms of service in 100 ms on 2 CPUs: 0.4
        let two = row("10000,f,cpu:30000\n110000,f,io:9;cpu:50000").unwrap();
        assert_eq!(offered_load(&two, 2), Some(0.4));
        assert_eq!(offered_load(&two[..1], 2), None);
    }

    #[test]
    fn sha256_agrees_with_the_standard() {
        // FIPS 180-2, appendix B.1
        assert_eq!(
            hex_sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
