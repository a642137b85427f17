//! The metrics, the alert rules and the dashboard in a real Prometheus (make test-metrics).

mod common;

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{export, free_address, options, root, ControlLoop, LIMIT};
use serde_json::Value;
use sfs_metrics::catalogue::families;
use sfs_metrics::form::Form;
use sfs_metrics::Exporter;
use sfs_skip::skip;
use tempfile::TempDir;

const NONE: &str = "no Prometheus was fetched (make test-metrics fetches it)";

/// Returns the folder of prometheus and promtool: that of vm/fetch-prometheus.
fn programs() -> Option<PathBuf> {
    let cache = env::var_os("SCX_SFS_CACHE").map_or(root().join(".cache"), PathBuf::from);
    let folder = cache.join("prometheus/usr/bin");
    folder.join("promtool").is_file().then_some(folder)
}

fn monitoring(file: &str) -> PathBuf {
    root().join("packaging/monitoring").join(file)
}

/// Runs promtool, and returns what it said.
///
/// # Panics
///
/// It has failed.
fn promtool(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(folder.join("promtool"))
        .args(arguments)
        .output();
    said(output.unwrap(), arguments)
}

fn said(output: Output, what: &[&str]) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what:?}: {text}{errors}");
    text
}

#[test]
fn promtool_finds_no_fault_in_the_metrics() {
    let Some(folder) = programs() else {
        skip!(NONE)
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("metrics");
    fs::write(&file, Form::Text.encode(families(&export(10))).unwrap()).unwrap();
    let check = Command::new(folder.join("promtool"))
        .args(["check", "metrics"])
        .stdin(fs::File::open(&file).unwrap())
        .output();
    assert_eq!(said(check.unwrap(), &["check metrics"]), "");
}

#[test]
fn each_alert_is_raised_by_its_defect_and_by_nothing_else() {
    let Some(folder) = programs() else {
        skip!(NONE)
    };
    let (rules, tests) = (monitoring("alerts.yml"), monitoring("alerts-test.yml"));
    promtool(
        &folder,
        &["check", "rules", "--lint-fatal", rules.to_str().unwrap()],
    );
    promtool(&folder, &["test", "rules", tests.to_str().unwrap()]);
    let (rules, tests) = (
        fs::read_to_string(rules).unwrap(),
        fs::read_to_string(tests).unwrap(),
    );
    let alerts: Vec<_> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    for alert in alerts {
        // Once where nothing is wrong, and once where something is.
        let named = |before: &str| tests.contains(&format!("{before}alertname: {alert}"));
        assert!(named("eval_time: 1h, ") && named("\n        "), "{alert}");
    }
}

/// A Prometheus that scrapes one exporter every second.
struct Prometheus {
    folder: PathBuf,
    process: Child,
    url: String,
    dir: TempDir,
}

impl Prometheus {
    fn start(folder: &Path, target: SocketAddr, features: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let configuration = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [{}]\n\
             scrape_configs:\n  - job_name: scx_sfs\n    static_configs: [{{targets: ['{target}']}}]\n",
            fs::canonicalize(monitoring("alerts.yml")).unwrap().display()
        );
        let file = dir.path().join("prometheus.yml");
        fs::write(&file, configuration).unwrap();
        promtool(folder, &["check", "config", file.to_str().unwrap()]);
        let listen = free_address();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let process = Command::new(folder.join("prometheus"))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={listen}"))
            .args(features)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self {
            folder: folder.to_owned(),
            process,
            url: format!("http://{listen}"),
            dir,
        }
    }

    /// Returns the answer to a query: a list of series, each with a value.
    fn query(&self, query: &str) -> Vec<(Value, f64)> {
        let arguments = ["query", "instant", "-o", "json", &self.url, query];
        let text = promtool(&self.folder, &arguments);
        let all: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
        let one = |series: Value| {
            let number = series["value"][1].as_str()?.parse().ok()?;
            Some((series["metric"].clone(), number))
        };
        all.into_iter().filter_map(one).collect()
    }

    /// Waits until a query has an answer with a value of which `wanted` is true.
    fn wait_for(&self, query: &str, wanted: impl Fn(f64) -> bool) -> Vec<(Value, f64)> {
        let until = Instant::now() + LIMIT;
        loop {
            let ready = Command::new(self.folder.join("promtool"))
                .args(["query", "instant", "-o", "json", &self.url, query])
                .output()
                .unwrap();
            if ready.status.success() {
                let all = self.query(query);
                if all.iter().any(|(_, value)| wanted(*value)) {
                    return all;
                }
            }
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "{query}: {}", log());
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An exporter with its control loop, and a Prometheus that has scraped it twice.
fn scraped(folder: &Path, features: &[&str]) -> (Exporter, ControlLoop, Prometheus) {
    let (control, address) = (ControlLoop::start(), free_address());
    let wanted = options(&["--metrics-listen", &address.to_string()]);
    let exporter = Exporter::launch(&wanted, control.asker()).unwrap().unwrap();
    let prometheus = Prometheus::start(folder, address, features);
    prometheus.wait_for("scx_sfs_arrivals_total", |arrivals| arrivals >= 121.0);
    (exporter, control, prometheus)
}

/// Checks a value that all scrapes agree on.
fn assert_about(prometheus: &Prometheus, query: &str, expected: f64, tolerance: f64) {
    let all = prometheus.query(query);
    assert_eq!(all.len(), 1, "{query}: {all:?}");
    let off = (all[0].1 - expected).abs();
    assert!(
        off <= tolerance * expected,
        "{query}: {all:?}, not {expected}"
    );
}

#[test]
fn prometheus_reads_the_metrics_and_the_dashboard_finds_them() {
    let Some(folder) = programs() else {
        skip!(NONE)
    };
    let (_exporter, _control, prometheus) = scraped(&folder, &[]);
    assert_about(&prometheus, "up", 1.0, 0.0);
    assert_about(&prometheus, "scx_sfs_slice_seconds", 0.1, 1e-9);
    assert_about(
        &prometheus,
        "count(scx_sfs_function_cpu_seconds_total)",
        3.0,
        0.0,
    );
    let build = prometheus.query("scx_sfs_build_info");
    assert_eq!(build[0].0["version"], "1.2.3");
    // 80 ms of CPU time for each of its invocations, of which there are as many as of the others.
    let share = "scx_sfs_function_cpu_seconds_total{function='other'} / on () \
                 (sum(scx_sfs_completions_total) / 3)";
    assert_about(&prometheus, share, 0.08, 1e-6);
    // 6 ms, within a classic bucket of factor 2.
    let median = |of: &str| format!("histogram_quantile(0.5, {of}{{function='thumbnail'}})");
    let classic = median("scx_sfs_function_turnaround_seconds_bucket");
    assert_about(&prometheus, &classic, 0.006, 0.5);
    assert_about(
        &prometheus,
        "histogram_quantile(0.5, scx_sfs_queue_delay_seconds_bucket)",
        0.0015,
        0.5,
    );
    check_dashboard(&prometheus);
    assert_eq!(prometheus.query("ALERTS{alertstate='firing'}"), []);
}

#[test]
fn prometheus_reads_native_histograms() {
    let Some(folder) = programs() else {
        skip!(NONE)
    };
    let (_exporter, _control, prometheus) =
        scraped(&folder, &["--enable-feature=native-histograms"]);
    let name = "scx_sfs_function_turnaround_seconds";
    let of = |function: &str| format!("{name}{{function='{function}'}}");
    for (function, ms) in [("thumbnail", 6.0), ("other", 100.0)] {
        for share in [0.01, 0.5, 0.99] {
            let query = format!("histogram_quantile({share}, {})", of(function));
            // A bucket is 9 % wide.
            assert_about(&prometheus, &query, ms / 1e3, 0.1);
        }
    }
    let mean = format!("histogram_sum({0}) / histogram_count({0})", of("thumbnail"));
    assert_about(&prometheus, &mean, 0.006, 1e-6);
    let count = format!(
        "histogram_count({}) / on () (sum(scx_sfs_completions_total) / 3)",
        of("other")
    );
    assert_about(&prometheus, &count, 1.0, 0.0);
    // The classic buckets are not kept beside them.
    assert_eq!(prometheus.query(&format!("{name}_bucket")), []);
    assert_eq!(
        prometheus
            .query("scx_sfs_queue_delay_seconds_bucket{le='+Inf'}")
            .len(),
        1
    );
    check_dashboard(&prometheus);
}

/// Serves the first text once, and then the second one, until the process ends.
fn serve(texts: [String; 2]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let [first, then] = &texts;
        let answers = std::iter::once(first).chain(std::iter::repeat(then));
        for (stream, text) in listener.incoming().zip(answers) {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\
                        Connection: close\r\n";
            let length = text.len();
            let _ = write!(stream, "{head}Content-Length: {length}\r\n\r\n{text}");
        }
    });
    address
}

#[test]
fn the_dashboard_shows_a_live_machine() {
    const UNSEEN: &str = "make test-package takes the metrics of a live machine";
    let (Some(folder), Some(live)) = (programs(), env::var_os("SCX_SFS_LIVE_METRICS")) else {
        skip!(UNSEEN)
    };
    let texts = ["metrics-1.txt", "metrics-2.txt"]
        .map(|name| fs::read_to_string(root().join(&live).join(name)).unwrap());
    let total = |text: &str| -> f64 {
        let line = |line: &str| {
            line.strip_prefix("scx_sfs_completions_total ")
                .map(str::to_owned)
        };
        text.lines().find_map(line).unwrap().parse().unwrap()
    };
    let [before, after] = [total(&texts[0]), total(&texts[1])];
    assert!(after > before, "{before} completions, and then {after}");
    let prometheus = Prometheus::start(&folder, serve(texts), &[]);
    prometheus.wait_for("increase(scx_sfs_completions_total[1m])", |more| more > 0.0);
    check_dashboard(&prometheus);
    // The 99th percentile of the slowest function's turnaround is a time, and not "no data".
    let slowest = "max(histogram_quantile(0.99, sum by (le, function) \
                   (rate(scx_sfs_function_turnaround_seconds_bucket[1m]))))";
    let slowest = prometheus.query(slowest);
    assert!(slowest[0].1 > 0.05 && slowest[0].1 < 60.0, "{slowest:?}");
}

/// Each query of the dashboard has an answer.
fn check_dashboard(prometheus: &Prometheus) {
    let text = fs::read_to_string(monitoring("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries.push((
                panel["title"].clone(),
                target["expr"].as_str().unwrap().to_owned(),
            ));
        }
    }
    assert!(queries.len() > 30, "{}", queries.len());
    for (title, query) in queries {
        let query = query
            .replace("$instance", ".*")
            .replace("$function", ".*")
            .replace("$__rate_interval", "1m");
        let found = prometheus.query(&query);
        assert!(!found.is_empty(), "{title}: no answer to {query}");
    }
}
