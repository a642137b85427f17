//! `scx_sfs hint` as a user runs it, with a socket in place of the scheduler.

use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use sfs_hint::{decode, Hint, MAX_DATAGRAM_BYTES};
use tempfile::TempDir;

struct Bench {
    _dir: TempDir,
    path: PathBuf,
    socket: UnixDatagram,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hint.sock");
        let socket = UnixDatagram::bind(&path).unwrap();
        let patience = Some(Duration::from_secs(10));
        socket.set_read_timeout(patience).unwrap();
        Self {
            _dir: dir,
            path,
            socket,
        }
    }

    fn received(&self) -> Vec<u8> {
        let mut buffer = [0; MAX_DATAGRAM_BYTES + 1];
        let length = self.socket.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    }

    fn hint(&self, arguments: &[&str], input: &str) -> Output {
        let to = self.path.to_str().unwrap();
        hint(&[&["--to", to], arguments].concat(), input)
    }
}

fn hint(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_scx_sfs"))
        .arg("hint")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read its input may have closed it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn one_hint_in_either_form() {
    let bench = Bench::new();
    let all = [
        "1234",
        "--arrival-us=5",
        "--function=my function",
        "--service-us=12000",
        "--start=530081",
    ];
    let output = bench.hint(&all, "");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    let text = bench.received();
    assert_eq!(
        String::from_utf8_lossy(&text),
        "pid=1234 arrival_us=5 function=\"my function\" service_us=12000 start=530081\n"
    );
    assert!(bench
        .hint(&[&all[..], &["--binary"]].concat(), "")
        .status
        .success());
    let binary = bench.received();
    assert!(binary.len() < text.len());
    assert_eq!(decode(&binary), decode(&text));
}

#[test]
fn lines_of_standard_input() {
    let bench = Bench::new();
    let output = bench.hint(&["--stdin", "--rate", "1000"], "1234\n\n pid=5 \r\n");
    assert!(output.status.success(), "{output:?}");
    assert!(said(&output).contains("2 hints sent, 0 dropped, 0 lines refused"));
    assert_eq!(decode(&bench.received()).unwrap(), [Hint::of(1234)]);
    assert_eq!(decode(&bench.received()).unwrap(), [Hint::of(5)]);
}

#[test]
fn bad_lines_are_named_and_the_others_sent() {
    let bench = Bench::new();
    let long = "x".repeat(10_000);
    let output = bench.hint(&["--stdin"], &format!("1\nx=2\n{long}\n3"));
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    for part in [
        "line 2: unknown key \"x\"",
        "line 3: longer than 2048 bytes",
        "2 hints sent, 0 dropped, 2 lines refused",
    ] {
        assert!(said.contains(part), "no {part:?} in: {said}");
    }
    assert_eq!(decode(&bench.received()).unwrap(), [Hint::of(1)]);
    assert_eq!(decode(&bench.received()).unwrap(), [Hint::of(3)]);
}

#[test]
fn a_listener_that_does_not_read_is_abandoned() {
    let bench = Bench::new();
    let lines = "1\n".repeat(2000);
    let output = bench.hint(&["--stdin"], &lines);
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(
        said.contains("dropped, 0 lines refused") && !said.contains(" 0 dropped"),
        "{said}"
    );
    assert_eq!(decode(&bench.received()).unwrap(), [Hint::of(1)]);
}

#[test]
fn a_missing_listener_is_one_clear_sentence() {
    let output = hint(&["--to", "/no/such/socket", "12"], "");
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(
        said.starts_with("scx_sfs: cannot send hints to /no/such/socket: does scx_sfs run with")
    );
    assert_eq!(said.lines().count(), 1);
}

#[test]
fn help_and_completions_include_it() {
    let scx_sfs = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_scx_sfs"))
            .args(arguments)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["--completions", "bash"],
        &["--completions", "fish"],
    ] {
        let text = scx_sfs(arguments);
        for part in ["hint-listen", "hint-owner", "hint "] {
            assert!(text.contains(part), "no {part:?} in {arguments:?}");
        }
    }
    assert!(scx_sfs(&["hint", "--help"]).contains("--stdin"));
}
