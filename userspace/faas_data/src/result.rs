//! Results: measurements, one row per invocation.
//!
//! CSV with the header [`HEADER`]. `id` is the invocation's row in the trace,
//! counted from 0. Times are microseconds since the start of the replay,
//! rounded down; `arrival_us` is the planned arrival. `cpu_us` is all CPU time
//! of the process, including its start and exit (`wait4`'s user and system
//! time); `service_us` is the CPU time requested of it. `exit` is its exit
//! code, `signal:N` if a signal ended it, or `fork:ERRNO` if it could not be
//! started. For a request to a platform it is 0 on success, `http:STATUS` for
//! another status, or `net:ERRNO` if its connection failed. `start_us` and
//! `end_us` are empty if an invocation did not get that far; only rows with an
//! `exit` other than 0 may have empty times. `runqueue_wait_us` is the time for
//! which it was runnable without running, until it completed. For a warm
//! sandbox the kernel counts it (`/proc/PID/schedstat`); for a forked process
//! it is the time since the fork minus the time that it ran and blocked. It is
//! empty if unknown, for example if files may have made such a process wait.
//! Files of earlier versions end with the column `exit`. If any invocation does
//! fixed work ([`crate::fixed`]), a column follows: `alone_us` is the CPU time
//! that it takes alone, by calibration; empty for invocations that count CPU
//! time.
//!
//! For a warm sandbox, `cpu_us`, switches and `runqueue_wait_us` are the
//! increases since it began to wait for this request. An invocation failed with
//! code N if its work failed with errno N, and with the status of its sandbox
//! if that ended before it answered.

use crate::input::{self, InputError, MAX_US};
use crate::trace::Invocation;
use anyhow::Result;
use std::fmt::{self, Write};
use std::path::Path;

/// The first line of a result.
pub const HEADER: &str = "id,function,arrival_us,start_us,end_us,cpu_us,service_us,\
                          voluntary_switches,involuntary_switches,exit,runqueue_wait_us";

/// The first line of a result without run-queue waits, which can also be read.
const HEADER_WITHOUT_WAIT: &str = "id,function,arrival_us,start_us,end_us,cpu_us,service_us,\
                                   voluntary_switches,involuntary_switches,exit";

/// The first line of a result with fixed work.
const HEADER_WITH_ALONE: &str = "id,function,arrival_us,start_us,end_us,cpu_us,service_us,\
                                 voluntary_switches,involuntary_switches,exit,\
                                 runqueue_wait_us,alone_us";

/// How an invocation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code; 0 is success.
    Code(u32),
    /// This signal ended it.
    Signal(u32),
    /// It could not be started, with this errno.
    Fork(u32),
    /// The platform answered with this HTTP status.
    Http(u32),
    /// Its connection to the platform failed, with this errno.
    Net(u32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Signal(signal) => write!(f, "signal:{signal}"),
            Self::Fork(errno) => write!(f, "fork:{errno}"),
            Self::Http(status) => write!(f, "http:{status}"),
            Self::Net(errno) => write!(f, "net:{errno}"),
        }
    }
}

/// The measurements of one invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Row in the trace, counted from 0.
    pub id: usize,
    /// The function's name.
    pub function: String,
    /// Planned arrival in microseconds since the start of the replay.
    pub arrival_us: u64,
    /// When it first ran, in the same time.
    pub start_us: Option<u64>,
    /// When it completed, in the same time.
    pub end_us: Option<u64>,
    /// CPU time that its process used, in microseconds.
    pub cpu_us: u64,
    /// CPU time requested of it, in microseconds.
    pub service_us: u64,
    /// Number of times it blocked.
    pub voluntary_switches: u64,
    /// Number of times it was preempted.
    pub involuntary_switches: u64,
    /// How it ended.
    pub exit: Exit,
    /// Time for which it was runnable without running, in microseconds.
    pub runqueue_wait_us: Option<u64>,
    /// CPU time that its process takes alone, in microseconds, if its work is
    /// fixed.
    pub alone_us: Option<u64>,
}

impl Record {
    /// Start and end in microseconds, if it completed successfully.
    pub fn completed(&self) -> Option<(u64, u64)> {
        match self.exit {
            Exit::Code(0) => Some((self.start_us?, self.end_us?)),
            _ => None,
        }
    }
}

/// Upper bound of the length in bytes of the result of these invocations.
pub fn most_bytes(invocations: &[Invocation]) -> u64 {
    // Ten numbers of up to 20 digits, "signal:" and a number, and 12 separators.
    const NUMBERS: usize = 10 * 20 + 17 + 12;
    let row = |one: &Invocation| (one.function.len() + NUMBERS) as u64;
    HEADER_WITH_ALONE.len() as u64 + 1 + invocations.iter().map(row).sum::<u64>()
}

/// The text of a result.
pub fn to_csv(records: &[Record]) -> String {
    let is_fixed = records.iter().any(|one| one.alone_us.is_some());
    let mut text = format!("{}\n", if is_fixed { HEADER_WITH_ALONE } else { HEADER });
    for one in records {
        push_row(&mut text, one);
        let _ = write!(text, ",{}", time(one.runqueue_wait_us));
        if is_fixed {
            let _ = write!(text, ",{}", time(one.alone_us));
        }
        text.push('\n');
    }
    text
}

/// The text of a result without the column of run-queue waits, for runs that
/// cannot measure them.
pub fn to_csv_without_waits(records: &[Record]) -> String {
    let mut text = format!("{HEADER_WITHOUT_WAIT}\n");
    for one in records {
        push_row(&mut text, one);
        text.push('\n');
    }
    text
}

/// Adds the row of `one` up to the column `exit`.
fn push_row(text: &mut String, one: &Record) {
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "{},{},{},{},{},{},{},{},{},{}",
        one.id,
        one.function,
        one.arrival_us,
        time(one.start_us),
        time(one.end_us),
        one.cpu_us,
        one.service_us,
        one.voluntary_switches,
        one.involuntary_switches,
        one.exit,
    );
}

fn time(us: Option<u64>) -> String {
    us.map(|us| us.to_string()).unwrap_or_default()
}

/// Reads the result at `path` of the trace `invocations`, as [`parse`].
///
/// # Errors
/// If it cannot be read, or as [`parse`].
pub fn read(path: &Path, invocations: &[Invocation]) -> Result<Vec<Record>> {
    let bytes = input::read(path)?;
    Ok(parse(&path.display().to_string(), &bytes, invocations)?)
}

/// Parses a result of `trace` and checks that it belongs to it: every
/// invocation once, in order, or none (nothing could be measured). `file` is
/// its name for messages.
///
/// # Errors
/// For the first line that is malformed or does not belong to the trace.
pub fn parse(file: &str, bytes: &[u8], trace: &[Invocation]) -> Result<Vec<Record>, InputError> {
    let lines = input::lines(file, bytes)?;
    let at = |line: usize, message: String| InputError {
        file: file.to_string(),
        line,
        message,
    };
    let columns = match lines[0].1 {
        HEADER_WITH_ALONE => 12,
        HEADER => 11,
        HEADER_WITHOUT_WAIT => 10,
        _ => 0,
    };
    if columns == 0 {
        let found = input::shorten(lines[0].1, 60);
        return Err(at(1, format!("the header is `{found}`, want `{HEADER}`")));
    }
    let mut records = Vec::with_capacity(lines.len() - 1);
    for (line, text) in &lines[1..] {
        let record = parse_row(text, columns)
            .and_then(|record| check(record, records.len(), trace))
            .map_err(|message| at(*line, message))?;
        records.push(record);
    }
    if !records.is_empty() && records.len() < trace.len() {
        let message = format!(
            "the result ends after {} of the trace's {} invocations",
            records.len(),
            trace.len()
        );
        return Err(at(lines.len(), message));
    }
    Ok(records)
}

fn parse_row(text: &str, columns: usize) -> Result<Record, String> {
    let fields: Vec<&str> = text.split(',').collect();
    let wrong = || format!("want {columns} fields, found {}", fields.len());
    if fields.len() != columns {
        return Err(wrong());
    }
    let [id, function, arrival, start, end, cpu, service, voluntary, involuntary, exit] =
        *fields.first_chunk().ok_or_else(wrong)?;
    let wait = fields.get(10).unwrap_or(&"");
    let alone = fields.get(11).unwrap_or(&"");
    let optional = |what: &str, text: &str| match text {
        "" => Ok(None),
        text => input::number(what, text, MAX_US).map(Some),
    };
    Ok(Record {
        id: input::number("id", id, u64::from(u32::MAX))? as usize,
        function: function.to_string(),
        arrival_us: input::number("arrival", arrival, MAX_US)?,
        start_us: optional("start", start)?,
        end_us: optional("end", end)?,
        cpu_us: input::number("CPU time", cpu, MAX_US)?,
        service_us: input::number("service time", service, MAX_US)?,
        voluntary_switches: input::number("voluntary switches", voluntary, MAX_US)?,
        involuntary_switches: input::number("involuntary switches", involuntary, MAX_US)?,
        exit: parse_exit(exit)?,
        runqueue_wait_us: optional("run-queue wait", wait)?,
        alone_us: optional("CPU time alone", alone)?,
    })
}

fn parse_exit(text: &str) -> Result<Exit, String> {
    let (kind, value) = text.split_once(':').unwrap_or(("code", text));
    let most = if kind == "http" { 999 } else { 255 };
    let value = input::number("exit", value, most)? as u32;
    match kind {
        "code" if !text.contains(':') => Ok(Exit::Code(value)),
        "signal" => Ok(Exit::Signal(value)),
        "fork" => Ok(Exit::Fork(value)),
        "http" => Ok(Exit::Http(value)),
        "net" => Ok(Exit::Net(value)),
        _ => Err(format!(
            "exit `{}` is not a code, signal:N, fork:ERRNO, http:STATUS or net:ERRNO",
            input::shorten(text, 40)
        )),
    }
}

fn check(record: Record, row: usize, trace: &[Invocation]) -> Result<Record, String> {
    let Some(invocation) = trace.get(row) else {
        return Err(format!("the trace has only {} invocations", trace.len()));
    };
    if record.id != row {
        return Err(format!("want the row of id {row}, found id {}", record.id));
    }
    let same = record.function == invocation.function
        && record.arrival_us == invocation.arrival_us
        && record.service_us == invocation.service_us();
    if !same {
        return Err(format!("id {row} is another invocation in the trace"));
    }
    let arrival = Some(record.arrival_us);
    let missing = record.start_us.is_none() || record.end_us.is_none();
    if record.exit == Exit::Code(0) && missing {
        return Err("exit is 0, but start or end is missing".to_string());
    }
    if !missing && (record.start_us < arrival || record.end_us < record.start_us) {
        return Err("arrival, start and end are not in this order".to_string());
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace() -> Vec<Invocation> {
        vec![Invocation::cpu(5, "f", 10), Invocation::cpu(6, "g", 20)]
    }

    fn read(rows: &str) -> Result<Vec<Record>, String> {
        let text = format!("{HEADER}\n{rows}");
        parse("r.csv", text.as_bytes(), &trace()).map_err(|error| error.to_string())
    }

    #[test]
    fn results_survive_a_round_trip() {
        for rows in [
            "",
            "0,f,5,6,17,11,10,1,2,0,4\n1,g,6,7,30,21,20,0,0,signal:9,\n",
            "0,f,5,6,,3,10,0,1,7,0\n1,g,6,,,0,20,0,0,fork:11,\n",
            "0,f,5,6,9,0,10,0,0,http:503,\n1,g,6,,,0,20,0,0,net:111,\n",
        ] {
            let records = read(rows).unwrap();
            assert_eq!(to_csv(&records), format!("{HEADER}\n{rows}"));
        }
    }

    #[test]
    fn fixed_work_has_a_column_of_its_own() {
        let rows = "0,f,5,6,17,11,10,1,2,0,4,10\n1,g,6,7,30,21,20,0,0,0,,\n";
        let text = format!("{HEADER_WITH_ALONE}\n{rows}");
        let records = parse("r.csv", text.as_bytes(), &trace()).unwrap();
        let alone: Vec<_> = records.iter().map(|one| one.alone_us).collect();
        assert_eq!((alone, to_csv(&records)), (vec![Some(10), None], text));
        let short = format!("{HEADER}\n{rows}");
        assert!(parse("r.csv", short.as_bytes(), &trace()).is_err());
    }

    #[test]
    fn files_without_run_queue_waits_are_read() {
        let rows = "0,f,5,6,17,11,10,1,2,0\n1,g,6,7,30,21,20,0,0,0\n";
        let text = format!("{HEADER_WITHOUT_WAIT}\n{rows}");
        let records = parse("r.csv", text.as_bytes(), &trace()).unwrap();
        assert!(records.iter().all(|one| one.runqueue_wait_us.is_none()));
        assert_eq!(to_csv_without_waits(&records), text);
        assert!(parse("r.csv", format!("{HEADER}\n{rows}").as_bytes(), &trace()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_result_that_reads_back_or_an_error(
            text in "([01],[fg],[56],[5-9]?,[7-9]?,[0-9],[12]0,1,2,[a-z0-9:]{1,9},[0-9]?\n){0,3}|.{0,80}",
        ) {
            if let Ok(found) = read(&text) {
                let again = parse("r.csv", to_csv(&found).as_bytes(), &trace());
                prop_assert_eq!(again, Ok(found));
            }
        }
    }

    #[test]
    fn only_success_with_both_times_is_completed() {
        let records = read("0,f,5,6,17,11,10,1,2,0,\n1,g,6,7,30,21,20,0,0,3,\n").unwrap();
        assert_eq!(records[0].completed(), Some((6, 17)));
        assert_eq!(records[1].completed(), None);
    }

    #[test]
    fn a_result_of_another_trace_is_refused() {
        let cases = [
            (
                "1,g,6,7,30,21,20,0,0,0,\n",
                "r.csv:2: want the row of id 0, found id 1",
            ),
            (
                "0,f,5,6,17,11,99,1,2,0,\n",
                "r.csv:2: id 0 is another invocation in the trace",
            ),
            (
                "0,f,5,6,17,11,10,1,2,0,\n",
                "r.csv:2: the result ends after 1 of the trace's 2 invocations",
            ),
            (
                "0,f,5,6,,11,10,1,2,0,\n",
                "r.csv:2: exit is 0, but start or end is missing",
            ),
            (
                "0,f,5,4,17,11,10,1,2,0,\n",
                "r.csv:2: arrival, start and end are not in this order",
            ),
            ("0,f,5\n", "r.csv:2: want 11 fields, found 3"),
            (
                "0,f,5,6,17,11,10,1,2,0,x\n",
                "r.csv:2: run-queue wait `x` is not a whole number",
            ),
            (
                "0,f,5,6,17,11,10,1,2,code:0,\n",
                "r.csv:2: exit `code:0` is not a code, signal:N, fork:ERRNO, http:STATUS or net:ERRNO",
            ),
        ];
        for (rows, message) in cases {
            assert_eq!(read(rows).unwrap_err(), message);
        }
    }
}
