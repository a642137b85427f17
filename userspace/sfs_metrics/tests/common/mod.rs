//! A control loop for the tests: answers the exporter with figures of a machine that works.

// Each test uses a part of this.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Parser;
use sfs_metrics::MetricsOptions;
use sfs_statistics::times::{Ended, TimesByFunction};
use sfs_statistics::{Answer, Asker, Delays, Desk, Export, FunctionReport, Metrics, Request};

/// Far longer than anything takes, on any machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The functions: names, CPU time and wait of an invocation in ms. The last one is a hostile name.
pub const FUNCTIONS: [(&str, u64, u64); 3] = [
    ("resize", 80, 20),
    ("thumbnail", 5, 1),
    ("x\"} 1\nscx_sfs_arrivals_total 7 \\", 2, 2),
];

/// Returns what a machine exports after `rounds` invocations of each function.
pub fn export(rounds: u64) -> Export {
    let mut times = TimesByFunction::new(2);
    let reports: Vec<_> = (1..).zip(FUNCTIONS).map(report).collect();
    times.choose(&reports[1..]);
    for _ in 0..rounds {
        for (key, (_, service, wait)) in (1..).zip(FUNCTIONS) {
            times.note(&Ended {
                function: key,
                service_ns: service * 1_000_000,
                turnaround_ns: (service + wait) * 1_000_000,
                queued_ns: wait * 1_000_000,
                killed: false,
            });
        }
    }
    let (functions, other) = times.report();
    let mut buckets = vec![0; 32];
    buckets[11] = 3 * rounds;
    Export {
        metrics: Metrics {
            arrivals: 3 * rounds + 1,
            completions: 3 * rounds,
            slice_us: 100_000,
            policy: "learned".into(),
            build: "1.2.3".into(),
            last_exit: "none".into(),
            functions: 3,
            rank_tables: 2,
            cpus: 4,
            uptime_s: rounds,
            ..Metrics::default()
        },
        delays: Delays {
            buckets,
            sum_ns: rounds * 3_000_000,
        },
        functions,
        other,
    }
}

fn report((key, (name, service, _)): (u64, (&str, u64, u64))) -> FunctionReport {
    FunctionReport {
        key,
        function: name.into(),
        completions: 1,
        p50_ms: Some(service as f64),
        p90_ms: None,
        p99_ms: Some(service as f64 * 1.5),
        rank: Some(3),
        work_share: 0.25,
    }
}

/// A thread that answers like a control loop.
pub struct ControlLoop {
    asker: Asker,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl ControlLoop {
    /// Starts it. Ten invocations of each function end between two answers.
    pub fn start() -> Self {
        let desk = Desk::new().unwrap();
        let (asker, stop) = (desk.asker(), Arc::new(AtomicBool::new(false)));
        let asked = Arc::new(AtomicU64::new(0));
        let thread = thread::spawn({
            let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    for one in desk.take() {
                        assert_eq!(one.what, Request::Export);
                        let rounds = 10 * (1 + asked.fetch_add(1, Ordering::Relaxed));
                        one.reply(Answer::Export(Box::new(export(rounds))));
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        Self {
            asker,
            stop,
            asked,
            thread: Some(thread),
        }
    }

    /// Returns a reader's end.
    pub fn asker(&self) -> Asker {
        self.asker.clone()
    }

    /// Returns how often it was asked.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for ControlLoop {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: MetricsOptions,
}

/// Returns these options.
pub fn options(arguments: &[&str]) -> MetricsOptions {
    let all = std::iter::once(&"test").chain(arguments);
    Line::try_parse_from(all).unwrap().options
}

/// Returns a loopback address with a port that was free a moment ago.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Returns the head and the content of the answer to a GET request.
pub fn get(address: SocketAddr, path: &str, accept: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    ask(&mut stream, path, accept)
}

/// The same on a connection.
pub fn ask(stream: &mut (impl Read + Write), path: &str, accept: &str) -> (String, Vec<u8>) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    let end = said
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let body = said.split_off(end + 4);
    (String::from_utf8(said).unwrap(), body)
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
