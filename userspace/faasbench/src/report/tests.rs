use super::*;
use crate::result::{Exit, Record};
use crate::scheduler::Status;
use crate::summary::{summarise, SchedulerInfo, Setting};
use crate::trace::{Invocation, Trace};

/// A run of five invocations of 10 ms, all slowed down by `factor`.
fn row(name: &str, factor: u64, status: Status) -> Summary {
    let invocations: Vec<Invocation> = (0..5)
        .map(|id| Invocation::cpu(id * 10_000, "f".into(), 10_000))
        .collect();
    let trace = Trace {
        name: "t".into(),
        sha256: "0123456789abcdef".into(),
        invocations,
    };
    let record = |(id, one): (usize, &Invocation)| Record {
        id,
        function: one.function.clone(),
        arrival_us: one.arrival_us,
        start_us: Some(one.arrival_us),
        end_us: Some(one.arrival_us + factor * one.service_us()),
        cpu_us: one.service_us(),
        service_us: one.service_us(),
        voluntary_switches: 1,
        involuntary_switches: factor,
        exit: Exit::Code(0),
        runqueue_wait_us: None,
    };
    let records: Vec<Record> = trace.invocations.iter().enumerate().map(record).collect();
    let records = if status == Status::NotLoaded {
        &[]
    } else {
        &records[..]
    };
    let setting = Setting {
        cpus: 2,
        scheduler: SchedulerInfo {
            name: name.into(),
            version: "1".into(),
            args: "<&>".into(),
            status,
            detail: String::new(),
        },
        kernel: "k".into(),
        accel: "native".into(),
        sandbox: None,
    };
    summarise(&trace, records, &setting, &[1])
}

fn rows() -> Vec<Summary> {
    vec![
        row("eevdf", 4, Status::Ok),
        row("scx_sfs", 1, Status::Ok),
        row("scx_broken", 1, Status::NotLoaded),
        row("scx_gone", 8, Status::Ejected),
    ]
}

#[test]
fn the_terminal_shows_ratios_and_sentences() {
    let text = text(&Comparison::new(rows(), "eevdf"));
    assert!(text.contains("10.0 (0.25x)"), "{text}");
    assert!(
        text.contains(
            "scx_sfs against eevdf: short functions finish 4.0x faster on average; \
         4.0x fewer involuntary switches."
        ) || text.contains("long ones")
    );
    assert!(
        text.contains("scx_broken: did not load, nothing was measured."),
        "{text}"
    );
    assert!(text.contains("scx_gone: gone during the replay"), "{text}");
    assert!(text.contains("short functions take 2.0x as long"), "{text}");
}

#[test]
fn the_same_summaries_make_the_same_page_of_its_own() {
    let page = || page::html(&Comparison::new(rows(), "eevdf"));
    let once = page();
    assert_eq!(once, page());
    assert!(once.contains("&lt;&amp;&gt;") && !once.contains("<&>"));
    for elsewhere in ["http", "src=", "@import", "url("] {
        assert!(!once.contains(elsewhere), "{elsewhere}");
    }
}

#[test]
fn without_a_baseline_there_are_no_ratios() {
    let comparison = Comparison::new(rows(), "other");
    assert_eq!(comparison.base(), None);
    assert!(!text(&comparison).contains("0x)"));
    assert!(charts::relative(&comparison).is_none());
    let broken = Comparison::new(vec![row("eevdf", 1, Status::NotLoaded)], "eevdf");
    assert_eq!(broken.base(), None);
    assert!(page::html(&broken).contains("did not load"));
}

#[test]
fn rows_of_different_traces_are_told_apart() {
    let mut rows = rows();
    assert_eq!(Comparison::new(rows.clone(), "eevdf").mismatch(), None);
    rows[1].trace.sha256 = "other".into();
    rows[1].kernel = "other".into();
    let mismatch = Comparison::new(rows, "eevdf").mismatch().unwrap();
    assert!(mismatch.ends_with("trace, kernel."), "{mismatch}");
}

#[test]
fn simulated_rows_are_marked_and_compared() {
    let mut rows = rows();
    rows.truncate(2);
    rows.insert(0, row("srtf", 1, Status::Ok));
    rows[0].accel = "simulated".into();
    rows[0].kernel = "simulated".into();
    let comparison = Comparison::new(rows, "eevdf");
    assert_eq!(comparison.mismatch(), None);
    let text = text(&comparison);
    assert!(text.contains("\n srtf (simulated) "), "{text}");
    // Nothing on switches: a simulation's cost nothing.
    let said = "srtf (simulated) against eevdf: short functions finish 4.0x faster on average.\n";
    assert!(text.contains(said), "{text}");
    let page = page::html(&comparison);
    assert!(page.contains("kernel k, machine: native"), "{page}");
    assert!(page.contains("</svg>srtf (simulated)</li>"));
}

#[test]
fn many_rows_get_different_lines() {
    let rows = (0..18)
        .map(|n| row(&format!("s{n}"), 1, Status::Ok))
        .collect();
    let comparison = Comparison::new(rows, "s3");
    let mut all: Vec<String> = (0..18).map(|n| charts::classes(&comparison, n)).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 18);
}

#[test]
fn a_second_report_leaves_its_own_list_out() {
    let dir = tempfile::tempdir().unwrap();
    let one = dir.path().join("eevdf.json");
    std::fs::write(&one, json::to_text(&rows()[0]).unwrap()).unwrap();
    write(std::slice::from_ref(&one), None, "eevdf").unwrap();
    let list = dir.path().join("summary.json");
    let first = std::fs::read(&list).unwrap();
    write(&[one, list.clone()], None, "eevdf").unwrap();
    assert_eq!(std::fs::read(&list).unwrap(), first);
    assert!(first.starts_with(b"[{\n  \"schema\": \"faasbench.summary/1\""));
    assert!(write(&[list], None, "eevdf").is_err());
}
