//! Checks that hold for any input; the fuzz targets run them, too.

use std::ffi::{c_char, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use scx_sfs::options::Options;
use sfs_bpf::bpf_intf::SFS_MAX_SPANS;
use sfs_bpf::exit::End;
use sfs_bpf::exit_text::{dump_lines, RawExit};
use sfs_cgroups::SandboxPattern;
use sfs_state::history::{History, MOST_EJECTIONS};
use sfs_statistics::FunctionReport;
use sfs_statistics::{answers_to, Answer, Metrics, Request};
use sfs_text::LINE_CHARS;

/// Minimum kind of an exit with an error (`scx_exit_kind` of the kernel).
const ERROR: i32 = 1024;

/// Maximum length of a request for statistics, in bytes.
const MAX_REQUEST: usize = 4096;

fn is_plain(text: &str) -> bool {
    !text.contains(char::is_control) && !text.contains(['\u{202e}', '\u{2028}'])
}

/// Any text of the kernel about an end, and any dump, separated by NULs: they
/// are printed as plain lines.
pub fn check_exit_text(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let mut chars = || -> Vec<c_char> {
        let part = parts.next().unwrap_or_default();
        part.iter().map(|byte| *byte as c_char).collect()
    };
    let (reason, message) = (chars(), chars());
    let raw = RawExit {
        kind: ERROR + i32::from(bytes.first().copied().unwrap_or(0)),
        code: bytes.len().is_multiple_of(2).then_some(1),
        cpu: bytes.len().is_multiple_of(3).then_some(2),
        reason: &reason,
        message: &message,
    };
    let said = raw.into_info().report().expect_err("it is not an error");
    let said = format!("{said:#}");
    assert!(
        is_plain(&said) && said.len() <= 4 * (2 * LINE_CHARS + 100),
        "{said:?}"
    );
    let is_empty = reason.is_empty();
    assert!(
        said.starts_with(if is_empty { "<UNKNOWN>" } else { "EXIT: " }),
        "{said:?}"
    );
    for line in dump_lines(parts.next().unwrap_or_default()) {
        assert!(line.starts_with("dump:") && is_plain(&line), "{line:?}");
    }
}

/// Any requests for statistics: each is answered or refused in a line of JSON,
/// and a request that is too long is the last one.
pub fn check_statistics(bytes: &[u8]) {
    let said = answers_to(bytes, |what| {
        Ok(match what {
            Request::Metrics => Answer::Metrics(Box::default()),
            Request::Functions { most } => Answer::Functions(vec![hostile(); most.min(3)]),
            #[allow(unreachable_patterns)]
            _ => anyhow::bail!("unknown"),
        })
    });
    let mut expected = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        expected += 1;
        if line.len() > MAX_REQUEST || (line.len() == MAX_REQUEST && !line.ends_with(b"\n")) {
            break;
        }
    }
    let said = String::from_utf8(said).expect("an answer is UTF-8");
    assert_eq!(said.lines().count(), expected, "{said}");
    for line in said.lines() {
        let answer: serde_json::Value = serde_json::from_str(line).expect("an answer is JSON");
        let is_good = answer["errno"] == 0;
        assert!(is_good || answer["args"]["resp"].is_string(), "{line}");
        assert!(!line.contains(char::is_control), "{line:?}");
        if let Ok(metrics) = serde_json::from_value::<Metrics>(answer["args"]["resp"].clone()) {
            assert_eq!(metrics.arrivals, 0);
        }
    }
}

fn hostile() -> FunctionReport {
    FunctionReport {
        key: 7,
        function: "\nname\u{1b}[2J".into(),
        completions: 1,
        p50_ms: None,
        p90_ms: None,
        p99_ms: Some(1.0),
        rank: None,
        work_share: 0.5,
    }
}

/// Any arguments, one per line, and any line of `SCX_SFS_FLAGS`, split at
/// blanks as systemd does: they are accepted, or refused with a sentence.
pub fn check_options(bytes: &[u8]) {
    let own = |word: &[u8]| OsString::from_vec(word.to_vec());
    check_arguments(bytes.split(|byte| *byte == b'\n').map(own).collect());
    let words = bytes.split(u8::is_ascii_whitespace);
    check_arguments(words.filter(|word| !word.is_empty()).map(own).collect());
}

fn check_arguments(mut arguments: Vec<OsString>) {
    arguments.insert(0, sfs_bpf::NAME.into());
    match Options::from_arguments(&arguments) {
        Ok(options) => {
            if let Err(error) = options.settings() {
                assert!(!format!("{error:#}").is_empty());
            }
            assert!(options.boundaries().count() >= options.boundary.len());
            assert!(!options.policy.to_string().is_empty());
            let _ = options.identity();
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!([0, 2].contains(&error.exit_code()), "{error}");
        }
    }
}

/// Any pattern for `--cgroup`, on the first line, and any path after it: a
/// function's name is a part of the path.
pub fn check_pattern(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (pattern, path) = text.split_once('\n').unwrap_or((&text, &text));
    match SandboxPattern::parse(pattern) {
        Ok(pattern) => {
            for by_parent in [false, true] {
                let name = pattern.function_of(path, by_parent);
                assert!(name.is_none_or(|name| name.len() <= path.len()), "{path}");
            }
        }
        Err(sentence) => assert!(!sentence.is_empty()),
    }
}

/// The boot id that a history must have.
const BOOT: &str = "boot";

/// Any history file, after a line with the time: the result is bounded, and
/// what is then written can be read again.
pub fn check_history(bytes: &[u8]) {
    let split = bytes.iter().position(|byte| *byte == b'\n');
    let (time, content) = split.map_or((bytes, bytes), |at| (&bytes[..at], &bytes[at + 1..]));
    // The last value means no end. The clock never reaches it.
    let now: u64 = String::from_utf8_lossy(time).parse().unwrap_or(0);
    let now = now.min(u64::MAX - 1);
    let folder = tempfile::tempdir().expect("no folder");
    let file = folder.path().join("history.json");
    fs::write(&file, content).expect("no file");
    let end = if bytes.len().is_multiple_of(2) {
        End::Stalled
    } else {
        End::Unloaded
    };

    let mut history = History::open_at(&file, BOOT);
    assert!(history.ejections(now) <= MOST_EJECTIONS);
    assert!(history.pause(now) <= Duration::from_secs(60));
    let past = history.begin(now, bytes.len().is_multiple_of(3));
    assert!(past.len() <= SFS_MAX_SPANS as usize, "{past:?}");
    assert!(past.iter().all(|span| span.from < now), "{past:?}");
    let killed = History::open_at(&file, BOOT);
    assert_eq!(killed.last_end(), Some(End::Killed));

    history.end(now, end, Some(now));
    let next = History::open_at(&file, BOOT);
    assert_eq!(next.last_end(), Some(end));
    assert_eq!(next.ejections(now), history.ejections(now));
    assert_eq!(next.pause(now), history.pause(now));
    assert!(!end.is_ejection() || next.ejections(now) > 0);
}
