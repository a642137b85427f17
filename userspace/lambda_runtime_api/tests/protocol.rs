//! The program with sandboxes that do nothing: the test requests their events
//! itself.

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{sleep, spawn, JoinHandle};
use std::time::Duration;
use tempfile::TempDir;

/// A platform with one function, `f`, and one sandbox.
struct Platform {
    process: Child,
    invoke: u16,
    runtime: u16,
    hints: UnixDatagram,
    _place: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Platform {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A free port may be taken before it is used, so run one platform at a time.
fn alone() -> MutexGuard<'static, ()> {
    static PORTS: Mutex<()> = Mutex::new(());
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn free_ports() -> (u16, u16) {
    let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    // Both at the same time, or they may be the same.
    let both = (bind(), bind());
    (port(&both.0), port(&both.1))
}

impl Platform {
    fn start() -> Self {
        let alone = alone();
        let place = TempDir::new().unwrap();
        let path = place.path().join("hints");
        let hints = UnixDatagram::bind(&path).unwrap();
        hints
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let (invoke, runtime) = free_ports();
        let process = Command::new(env!("CARGO_BIN_EXE_lambda_runtime_api"))
            .args(["--function", "f", "--invoke-port", &invoke.to_string()])
            .args(["--runtime-port", &runtime.to_string(), "--hint-to"])
            .arg(path)
            .args(["--", "sleep", "30"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            process,
            invoke,
            runtime,
            hints,
            _place: place,
            _alone: alone,
        }
    }

    /// Invokes `f`; the answer comes from the thread.
    fn invoke(&self, event: &str) -> JoinHandle<(String, String)> {
        let mut peer = connect("127.0.0.1", self.invoke);
        let request = post("/2015-03-31/functions/f/invocations", event);
        peer.get_mut().write_all(request.as_bytes()).unwrap();
        spawn(move || {
            let (head, body) = answer(&mut peer);
            (head[..12].to_string(), body)
        })
    }

    /// A connection of the sandbox to its Runtime API.
    fn sandbox(&self) -> BufReader<TcpStream> {
        connect("127.0.1.1", self.runtime)
    }

    /// The process id and the text of the next hint.
    fn hint(&self) -> (i32, String) {
        let mut buffer = [0; 200];
        let length = self.hints.recv(&mut buffer).unwrap();
        let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
        let pid = text.strip_prefix("pid=").unwrap().split(' ').next();
        (pid.unwrap().parse().unwrap(), text)
    }
}

fn connect(host: &str, port: u16) -> BufReader<TcpStream> {
    for _ in 0..200 {
        if let Ok(stream) = TcpStream::connect((host, port)) {
            return BufReader::new(stream);
        }
        sleep(Duration::from_millis(50));
    }
    panic!("nobody listens at {host}:{port}");
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}")
}

fn answer(peer: &mut BufReader<TcpStream>) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(peer.read_line(&mut head).unwrap() > 0, "no answer: {head}");
    }
    let length = header(&head, "Content-Length").parse().unwrap();
    let mut body = vec![0; length];
    peer.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn header(head: &str, name: &str) -> String {
    let prefix = format!("{name}: ");
    let found = head.lines().find_map(|line| line.strip_prefix(&prefix));
    found
        .unwrap_or_else(|| panic!("no {name} in {head}"))
        .to_string()
}

/// Asks for the next event; its id and body.
fn next(peer: &mut BufReader<TcpStream>) -> (String, String) {
    let request = "GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: x\r\n\r\n";
    peer.get_mut().write_all(request.as_bytes()).unwrap();
    let (head, body) = answer(peer);
    assert!(header(&head, "Lambda-Runtime-Deadline-Ms")
        .parse::<u64>()
        .is_ok());
    let arn = header(&head, "Lambda-Runtime-Invoked-Function-Arn");
    assert!(arn.ends_with(":function:f"), "{arn}");
    (header(&head, "Lambda-Runtime-Aws-Request-Id"), body)
}

/// Posts the outcome of invocation `id`; returns the status of the answer.
fn report(peer: &mut BufReader<TcpStream>, id: &str, kind: &str, body: &str) -> String {
    let path = format!("/2018-06-01/runtime/invocation/{id}/{kind}");
    peer.get_mut()
        .write_all(post(&path, body).as_bytes())
        .unwrap();
    answer(peer).0[9..12].to_string()
}

#[test]
fn events_go_to_the_sandbox_and_results_come_back() {
    let platform = Platform::start();
    let mut sandbox = platform.sandbox();
    for (kind, status) in [("response", "200"), ("error", "502")] {
        let invocation = platform.invoke("{\"x\":1}");
        let (id, event) = next(&mut sandbox);
        assert_eq!(event, "{\"x\":1}");
        let (_, hint) = platform.hint();
        assert!(
            hint.contains(" arrival_us=") && hint.ends_with(" function=f"),
            "{hint}"
        );
        assert_eq!(report(&mut sandbox, "of-another", kind, "no"), "400");
        assert_eq!(report(&mut sandbox, &id, kind, "[2]"), "202");
        assert_eq!(report(&mut sandbox, &id, kind, "twice"), "400");
        let want = (format!("HTTP/1.1 {status}"), "[2]".to_string());
        assert_eq!(invocation.join().unwrap(), want);
    }
}

#[test]
fn the_event_of_a_dead_sandbox_is_answered_and_the_next_one_served() {
    let platform = Platform::start();
    let invocation = platform.invoke("{}");
    next(&mut platform.sandbox());
    let (pid, _) = platform.hint();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    let (status, body) = invocation.join().unwrap();
    assert_eq!(status, "HTTP/1.1 502");
    assert!(body.contains("the sandbox ended"), "{body}");

    let invocation = platform.invoke("{}");
    let mut sandbox = platform.sandbox();
    let (id, _) = next(&mut sandbox);
    assert_ne!(platform.hint().0, pid);
    assert_eq!(report(&mut sandbox, &id, "response", "1"), "202");
    assert_eq!(invocation.join().unwrap().0, "HTTP/1.1 200");
}

#[test]
fn a_sandbox_that_cannot_start_ends_the_program() {
    let _alone = alone();
    for (command, message) in [
        ("false", "a sandbox of f ended before it asked for an event"),
        ("/no/such/program", "cannot start /no/such/program for f"),
    ] {
        let (invoke, runtime) = free_ports();
        let output = Command::new(env!("CARGO_BIN_EXE_lambda_runtime_api"))
            .args(["--function", "f", "--invoke-port", &invoke.to_string()])
            .args(["--runtime-port", &runtime.to_string(), "--", command])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            said.contains(message) && !said.contains("panicked"),
            "{said}"
        );
    }
}
