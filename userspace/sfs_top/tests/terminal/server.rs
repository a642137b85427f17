//! A server that answers as a scheduler with 30 functions does.

use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;
use sfs_statistics::{answers_to, Answer, FunctionReport, Metrics, Request};

pub struct Server {
    path: PathBuf,
    clients: Arc<Mutex<Vec<UnixStream>>>,
}

impl Server {
    /// Serves at `path` until it is stopped.
    pub fn start(path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let clients = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&clients);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                all.lock().unwrap().push(stream.try_clone().unwrap());
                thread::spawn(move || serve(&stream));
            }
        });
        Self {
            path: path.to_owned(),
            clients,
        }
    }

    /// Closes all connections, and takes no more.
    pub fn stop(&self) {
        std::fs::remove_file(&self.path).unwrap();
        for client in self.clients.lock().unwrap().drain(..) {
            let _ = client.shutdown(Shutdown::Both);
        }
    }
}

fn serve(stream: &UnixStream) {
    let mut lines = BufReader::new(stream).lines();
    let mut out = stream;
    while let Some(Ok(line)) = lines.next() {
        let answer = answers_to(format!("{line}\n").as_bytes(), |what| Ok(answer(&what)));
        if out.write_all(&answer).is_err() {
            return;
        }
    }
}

fn answer(what: &Request) -> Answer {
    match what {
        Request::Metrics => Answer::Metrics(Box::new(Metrics {
            policy: "learned".into(),
            build: "0.1.0 x86_64-unknown-linux-gnu".into(),
            slice_us: 12_345,
            cpus: 4,
            functions: 30,
            arrivals: 50,
            uptime_s: 7,
            ..Metrics::default()
        })),
        Request::Functions { most } => {
            Answer::Functions((1..=30).map(function).take(*most).collect())
        }
        _ => Answer::Configuration(Ok(json!({"pid": 4711, "keys": []}))),
    }
}

fn function(at: u32) -> FunctionReport {
    FunctionReport {
        key: 0,
        function: format!("functions/f{at:02}"),
        completions: 100 * at,
        p50_ms: Some(1.0),
        p90_ms: Some(2.0),
        p99_ms: Some(3.0),
        rank: Some(1),
        work_share: 1.0 / f64::from(30 + at),
    }
}
