//! The exporter over real sockets.

mod common;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use common::{ask, export, free_address, get, options, ControlLoop, LIMIT};
use sfs_metrics::catalogue::{families, Kind};
use sfs_metrics::form::Form;
use sfs_metrics::Exporter;
use sfs_statistics::Desk;

#[test]
fn each_format_is_served_to_who_wants_it() {
    let (control, address) = (ControlLoop::start(), free_address());
    let listen = address.to_string();
    let _exporter =
        Exporter::launch(&options(&["--metrics-listen", &listen]), control.asker()).unwrap();
    let (head, body) = get(address, "/metrics", "*/*");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("Content-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    let text = String::from_utf8(body).unwrap();
    assert!(text.contains("\nscx_sfs_arrivals_total 31\n"), "{text}");
    assert!(!text.contains("# EOF"));
    let (head, body) = get(
        address,
        "/metrics?x",
        "application/openmetrics-text;version=1.0.0",
    );
    assert!(
        head.contains("Content-Type: application/openmetrics-text"),
        "{head}"
    );
    let text = String::from_utf8(body).unwrap();
    assert!(text.contains("# TYPE scx_sfs_build info\n"), "{text}");
    assert!(
        text.contains("# UNIT scx_sfs_slice_seconds seconds\n"),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"));
    let (head, body) = get(address, "/metrics", Form::Protobuf.content_type());
    assert!(
        head.contains("proto=io.prometheus.client.MetricFamily"),
        "{head}"
    );
    assert!(body.windows(20).any(|some| some == b"scx_sfs_arrivals_tot"));
    for (path, status) in [("/", "404"), ("/metricsx", "404")] {
        let (head, _) = get(address, path, "*/*");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
}

#[test]
fn clients_get_the_format_that_they_prefer() {
    let prometheus = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                      encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,\
                      text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for (accept, form) in [
        (prometheus, Form::Protobuf),
        (prometheus.split_once(',').unwrap().1, Form::OpenMetrics),
        (
            "text/plain;q=0.9, application/openmetrics-text;q=0.1",
            Form::Text,
        ),
        ("application/vnd.google.protobuf", Form::Text),
        ("text/html, */*;q=0.1", Form::Text),
        ("application/openmetrics-text;q=0", Form::Text),
        ("application/openmetrics-text;q=x,,;;=", Form::Text),
        ("", Form::Text),
    ] {
        assert_eq!(Form::accepted(accept), form, "{accept}");
    }
}

#[test]
fn a_unix_socket_has_its_mode_and_takes_no_other_file_away() {
    let (control, dir) = (ControlLoop::start(), tempfile::tempdir().unwrap());
    let path = dir.path().join("socket");
    let listen = format!("unix:{}", path.display());
    let wanted = ["--metrics-listen", &listen, "--metrics-mode", "0640"];
    // The second one finds the socket of the first.
    for _ in 0..2 {
        let _exporter = Exporter::launch(&options(&wanted), control.asker()).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let mut stream = UnixStream::connect(&path).unwrap();
        let (_, body) = ask(&mut stream, "/metrics", "*/*");
        assert!(body.starts_with(b"# HELP scx_sfs_build_info"));
    }
    fs::remove_file(&path).unwrap();
    fs::write(&path, "precious").unwrap();
    let refused = Exporter::launch(&options(&wanted), control.asker());
    let said = format!("{:#}", refused.err().unwrap());
    assert!(said.contains("is no socket"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn a_port_in_use_is_one_sentence() {
    let (control, address) = (ControlLoop::start(), free_address());
    let listen = address.to_string();
    let wanted = options(&["--metrics-listen", &listen]);
    let first = Exporter::launch(&wanted, control.asker()).unwrap();
    let said = format!(
        "{:#}",
        Exporter::launch(&wanted, control.asker()).err().unwrap()
    );
    assert!(
        said.starts_with(&format!("cannot serve metrics at {listen}: ")),
        "{said}"
    );
    // Its end frees the port at once, as a reload needs it.
    drop(first);
    assert!(Exporter::launch(&wanted, control.asker())
        .unwrap()
        .is_some());
}

/// However often somebody asks, the control loop is asked once a second.
#[test]
fn the_control_loop_is_asked_once_a_second() {
    let (control, address) = (ControlLoop::start(), free_address());
    let listen = address.to_string();
    let _exporter =
        Exporter::launch(&options(&["--metrics-listen", &listen]), control.asker()).unwrap();
    assert_eq!(control.asked(), 0);
    let begin = Instant::now();
    for _ in 0..30 {
        get(address, "/metrics", "*/*");
        get(address, "/metrics", "application/openmetrics-text");
    }
    let seconds = begin.elapsed().as_secs();
    assert!(
        control.asked() <= 1 + seconds,
        "{} in {seconds} s",
        control.asked()
    );
    // The pause after each connection bounds the rate.
    assert!(begin.elapsed() >= Duration::from_millis(600));
}

#[test]
fn clients_that_stall_hold_up_nobody_for_long() {
    let (control, address) = (ControlLoop::start(), free_address());
    let listen = address.to_string();
    let exporter =
        Exporter::launch(&options(&["--metrics-listen", &listen]), control.asker()).unwrap();
    let silent = TcpStream::connect(address).unwrap();
    let mut slow = TcpStream::connect(address).unwrap();
    slow.write_all(b"GET /metrics HT").unwrap();
    let mut wrong = TcpStream::connect(address).unwrap();
    wrong.write_all(b"\x16\x03\x01 TLS\r\n\r\n").unwrap();
    let mut long = TcpStream::connect(address).unwrap();
    long.write_all(&[b'x'; 8192]).unwrap();
    let (head, _) = get(address, "/metrics", "*/*");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    for (stream, status) in [(&mut wrong, "400"), (&mut long, "431")] {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut said = String::new();
        match stream.read_to_string(&mut said) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said:?}"),
        }
    }
    // Nor do they hold up the end.
    let _silent: Vec<_> = (0..20)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let begin = Instant::now();
    drop(exporter);
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
    drop(silent);
}

#[test]
fn a_control_loop_that_has_ended_is_an_error_of_the_service() {
    let (desk, address) = (Desk::new().unwrap(), free_address());
    let listen = address.to_string();
    let _exporter =
        Exporter::launch(&options(&["--metrics-listen", &listen]), desk.asker()).unwrap();
    drop(desk);
    let (head, body) = get(address, "/metrics", "*/*");
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert_eq!(body, b"no metrics: the control loop has ended\n");
}

#[test]
fn the_textfile_is_whole_readable_and_gone_at_the_end() {
    let (control, dir) = (ControlLoop::start(), tempfile::tempdir().unwrap());
    let path = dir.path().join("scx_sfs.prom");
    let wanted = options(&["--metrics-textfile", path.to_str().unwrap()]);
    let exporter = Exporter::launch(&wanted, control.asker()).unwrap();
    let until = Instant::now() + LIMIT;
    while !path.exists() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    let text = fs::read(&path).unwrap();
    assert_eq!(text, Form::Text.encode(families(&export(10))).unwrap());
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    drop(exporter);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    // A folder that is not there stops nothing.
    let wanted = options(&["--metrics-textfile", "/nonexistent/scx_sfs.prom"]);
    drop(Exporter::launch(&wanted, control.asker()).unwrap());
}

#[test]
fn nothing_is_started_where_nobody_wants_metrics() {
    let control = ControlLoop::start();
    assert!(Exporter::launch(&options(&[]), control.asker())
        .unwrap()
        .is_none());
}

#[test]
fn names_and_help_follow_the_conventions() {
    let all = families(&export(1));
    assert!(all.len() > 55, "{}", all.len());
    let mut names: Vec<_> = all.iter().map(|one| one.exposed_name()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all.len());
    for one in &all {
        let name = one.exposed_name();
        assert!(
            name.starts_with("scx_sfs_") && one.help.ends_with('.'),
            "{name}"
        );
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.chars().all(is_plain), "{name}");
        assert!(
            !["_us", "_ms", "_ns", "_us_total", "_ns_total"]
                .iter()
                .any(|end| name.ends_with(end)),
            "{name}"
        );
        assert_eq!(
            name.ends_with("_total"),
            one.kind == Kind::Counter,
            "{name}"
        );
    }
}

/// Each statistic of --help-stats is a metric, in its base unit.
#[test]
fn each_statistic_is_exported() {
    let names: Vec<_> = families(&export(1))
        .iter()
        .map(|one| one.exposed_name())
        .collect();
    let statistics = serde_json::to_value(sfs_statistics::Metrics::default()).unwrap();
    let renamed = [
        ("mode", "fair_only"),
        ("build", "build_info"),
        ("policy", "policy_info"),
        ("last_exit", "last_exit_info"),
    ];
    for name in statistics.as_object().unwrap().keys() {
        if sfs_metrics::catalogue::CONTAINED.contains(&name.as_str()) {
            continue;
        }
        let new = renamed
            .iter()
            .find(|(old, _)| old == name)
            .map(|(_, new)| *new);
        let base = new.unwrap_or_else(|| {
            name.strip_suffix("_us")
                .or(name.strip_suffix("_s"))
                .unwrap_or(name)
        });
        let forms = ["", "_total", "_seconds"].map(|end| format!("scx_sfs_{base}{end}"));
        assert!(forms.iter().any(|form| names.contains(form)), "{name}");
    }
}
