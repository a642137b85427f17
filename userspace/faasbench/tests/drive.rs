//! `faasbench drive` against a platform of the test's own.

mod common;

use common::{can_measure, CANNOT_MEASURE};
use sfs_skip::skip;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use tempfile::TempDir;

/// A platform that is not ready for the first requests, then does well: except
/// for the function `busy`, which answers 503, `cut`, which closes the
/// connection in the middle of its answer, and `mute`, which says nothing.
struct Platform {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Platform {
    fn start(not_ready: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let number = count.fetch_add(1, SeqCst);
                std::thread::spawn(move || answer(stream.unwrap(), number < not_ready));
            }
        });
        Self { port, requests }
    }
}

fn answer(mut stream: TcpStream, early: bool) {
    let mut request = Vec::new();
    let mut buffer = [0; 512];
    while !request.ends_with(b"}") {
        let count = stream.read(&mut buffer).unwrap();
        request.extend(&buffer[..count]);
    }
    let text = String::from_utf8(request).unwrap();
    assert!(text.contains("{\"phases\":\""), "{text}");
    let of = |name: &str| text.starts_with(&format!("POST /run/{name} HTTP/1.1\r\n"));
    if early || of("busy") {
        let _ = stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    } else if of("cut") {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n12");
    } else if of("mute") {
        let _ = stream.read(&mut buffer);
    } else {
        // In pieces, as networks deliver.
        for piece in [
            "HTTP/1.1 200 OK\r\nContent-Le",
            "ngth: 56\r\n\r\n{\"start_ns\":0,",
            "\"cpu_us\":7,\"voluntary\":1,\"involuntary\":23}",
        ] {
            let _ = stream.write_all(piece.as_bytes());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// Runs `drive` in a new folder with this trace.
fn drive(place: &TempDir, rows: &str, arguments: &str) -> Output {
    let trace = format!("arrival_us,function,phases\n{rows}");
    std::fs::write(place.path().join("t.csv"), trace).unwrap();
    let cpus = std::thread::available_parallelism().unwrap();
    Command::new(env!("CARGO_BIN_EXE_faasbench"))
        .args(["drive", "--trace", "t.csv", "--scheduler", "eevdf"])
        .args(["--out", "out", "--cpus", &cpus.to_string()])
        .args(arguments.split_whitespace())
        .current_dir(place.path())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_request_has_a_row_whatever_becomes_of_it() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let platform = Platform::start(0);
    let place = TempDir::new().unwrap();
    let rows = "0,f,cpu:2000\n1000,busy,cpu:2000\n2000,cut,cpu:2000\n3000,mute,io:5;cpu:2000\n\
                4000,gone,cpu:2000\n5000,f,cpu:3000\n";
    // The port of a listener that is gone.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let arguments = format!(
        "--target http://127.0.0.1:{}/run/{{function}} --target gone=http://{} \
         --warm-up 0 --timeout-s 1",
        platform.port,
        gone.unwrap()
    );
    let output = drive(&place, rows, &arguments);
    assert!(output.status.success(), "{}", said(&output));
    let csv = std::fs::read_to_string(place.path().join("out/eevdf.csv")).unwrap();
    let exits: Vec<&str> = csv
        .lines()
        .skip(1)
        .map(|row| row.rsplit(',').nth(1).unwrap())
        .collect();
    assert_eq!(
        exits,
        ["0", "http:503", "net:74", "net:110", "net:111", "0"]
    );
    let last: Vec<&str> = csv.lines().last().unwrap().split(',').collect();
    assert_eq!(last[5..], ["7", "3000", "1", "23", "0", ""]);
    let json = std::fs::read_to_string(place.path().join("out/eevdf.json")).unwrap();
    assert!(json.contains("\"failed\": 4"), "{json}");
    // The result is one that `summarize` reads.
    let summarize = Command::new(env!("CARGO_BIN_EXE_faasbench"))
        .args([
            "summarize",
            "out/eevdf.csv",
            "--trace",
            "t.csv",
            "--cpus",
            "1",
        ])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(summarize.status.success(), "{}", said(&summarize));
}

#[test]
fn the_first_arrival_waits_until_the_platform_is_ready() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let platform = Platform::start(4);
    let place = TempDir::new().unwrap();
    let arguments = format!(
        "--target http://127.0.0.1:{}/run/{{function}} --warm-up 3",
        platform.port
    );
    let output = drive(&place, "0,f,cpu:2000\n0,g,cpu:2000\n", &arguments);
    assert!(output.status.success(), "{}", said(&output));
    // 3 for each of two functions, 4 of these again, and the trace.
    assert_eq!(platform.requests.load(SeqCst), 12);
}

#[test]
fn invalid_drives_are_refused() {
    let place = TempDir::new().unwrap();
    let fail = |arguments: &str| {
        let output = drive(&place, "0,f,cpu:2000\n", arguments);
        assert!(matches!(output.status.code(), Some(1 | 2)));
        assert!(!place.path().join("out").exists());
        said(&output)
    };
    let error = fail("--target g=http://127.0.0.1:1");
    assert!(error.contains("no --target for the function f"), "{error}");
    assert!(fail("--target nowhere").contains("want [FUNCTION=]http://HOST:PORT/PATH"));
    assert!(fail("").contains("--target"));
    let arguments = "--target http://127.0.0.1:1";
    let fixed = drive(&place, "0,f,cpu:2000@chase-1m\n", arguments);
    assert_eq!(fixed.status.code(), Some(1));
    let error = said(&fixed);
    assert!(
        error.contains("the trace has phases of chase-1m"),
        "{error}"
    );
    let grown = drive(
        &place,
        "0,f,cpu:2000\n",
        &format!("{arguments} --refill 50"),
    );
    assert_eq!(grown.status.code(), Some(1));
    assert!(said(&grown).contains("--refill needs the functions of `faasbench run`"));
    assert!(!place.path().join("out").exists());
}

#[test]
fn a_platform_that_never_becomes_ready_is_an_error() {
    if !can_measure() {
        skip!(CANNOT_MEASURE);
    }
    let place = TempDir::new().unwrap();
    let arguments = "--target http://127.0.0.1:1 --ready-s 1";
    let output = drive(&place, "0,f,cpu:2000\n", arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(!place.path().join("out").exists());
    let error = said(&output);
    let want = "the target of f was not ready within 1 s: Connection refused";
    assert!(error.contains(want), "{error}");
}
