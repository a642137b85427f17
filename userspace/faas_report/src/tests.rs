use super::*;
use faas_data::result::{Exit, Record};
use faas_data::summary::fixed::{FixedWork, Taken};
use faas_data::summary::Status;
use faas_data::summary::{summarise, SchedulerInfo, Setting};
use faas_data::trace::{Invocation, Trace};

/// A run of five invocations of 10 ms, all slowed down by `factor`.
fn row(name: &str, factor: u64, status: Status) -> Summary {
    let invocations: Vec<Invocation> = (0..5)
        .map(|id| Invocation::cpu(id * 10_000, "f", 10_000))
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
        alone_us: None,
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
    assert!(text.contains("10.0 (0.25)"), "{text}");
    assert!(text.contains("\nscx_broken !"), "{text}");
    let said = text.replace('\n', " ");
    for sentence in [
        "scx_sfs against eevdf: short functions finish 4.0x faster on average; 4.0x fewer \
         involuntary switches.",
        "! scx_broken: did not load, nothing was measured.",
        "! scx_gone: gone during the replay, the rest ran under EEVDF.",
        "scx_gone against eevdf: short functions take 2.0x as long on average",
    ] {
        assert!(said.contains(sentence), "{text}");
    }
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
    let mismatch = Comparison::new(rows.clone(), "eevdf").mismatch().unwrap();
    assert!(
        mismatch.contains("trace: t 0123456789ab (eevdf, scx_broken, scx_gone), t other (scx_sfs)"),
        "{mismatch}"
    );
    assert!(mismatch.ends_with("kernel: k (eevdf, scx_broken, scx_gone), other (scx_sfs)."));
    let comparison = Comparison::new(rows, "eevdf");
    assert_eq!(comparison.differs(1), ["trace", "kernel"]);
    assert!(comparison.differs(0).is_empty());
    let page = page::html(&comparison);
    assert!(page.contains("<small class=\"warn\">other trace, other kernel</small>"));
    assert!(page.contains("The rows differ in more than the scheduler"));
    assert!(text(&comparison).contains("\nscx_sfs !"));
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
    assert!(text.contains("\nsrtf (sim)"), "{text}");
    // Nothing about switches: in a simulation they cost nothing.
    let said = "srtf (simulated) against eevdf: short functions finish 4.0x faster on average.\n";
    assert!(text.contains(said), "{text}");
    let page = page::html(&comparison);
    assert!(page.contains("kernel k, machine: native"), "{page}");
    assert!(page.contains("</svg>srtf (simulated)</label>"), "{page}");
}

#[test]
fn many_rows_look_different_and_keep_their_colours() {
    let names = ["eevdf", "scx_sfs", "scx_sfs+a", "scx_sfs+b", "x", "y", "z"];
    let rows = |names: &[&str]| {
        let rows = names.iter().map(|name| row(name, 1, Status::Ok));
        Comparison::new(rows.collect(), "eevdf")
    };
    let all = style::styles(&rows(&names));
    for (index, style) in all.iter().enumerate() {
        assert!(!all[..index].contains(style), "{}", names[index]);
        assert_eq!(style.colour, style::Style::of(names[index]).colour);
    }
    // The same alone as with other rows.
    assert_eq!(style::styles(&rows(&["x"]))[0].colour, all[4].colour);
    let twins = style::styles(&rows(&["x", "x", "x"]));
    assert!(twins[0] != twins[1] && twins[1] != twins[2] && twins[0] != twins[2]);
}

#[test]
fn a_late_run_is_marked() {
    let mut rows = rows();
    // As in an older summary without the mark. Mean turnaround is 10 ms, of
    // which 1 % is 0.1 ms.
    rows[1].arrival_lag = None;
    for (mean, late) in [(0.1, false), (0.11, true)] {
        rows[1].arrival_lag_ms = Some(faas_data::summary::Lag {
            mean,
            p99: 1.0,
            max: 2.5,
        });
        assert_eq!(rows[1].is_late(), late);
        let comparison = Comparison::new(rows.clone(), "eevdf");
        let said = "scx_sfs: arrivals were late by 0.11 ms on average (at most 2.5 ms)";
        assert_eq!(text(&comparison).replace('\n', " ").contains(said), late);
        let mark = "scx_sfs<small class=\"warn\">late</small>";
        assert_eq!(page::html(&comparison).contains(mark), late);
    }
}

#[test]
fn the_best_row_ran_completely() {
    let mut rows = rows();
    rows[3] = row("srtf", 1, Status::Ok);
    rows[3].accel = "simulated".into();
    rows.push(row("scx_quick", 1, Status::Ejected));
    let mut losing = row("scx_losing", 1, Status::Ok);
    losing.failed = 1;
    rows.push(losing);
    let mut elsewhere = row("scx_elsewhere", 1, Status::Ok);
    elsewhere.trace.cpus = 64;
    rows.push(elsewhere);
    let comparison = Comparison::new(rows, "eevdf");
    let table = table::main(&comparison);
    let best: Vec<bool> = table.rows.iter().map(|row| row[1].best).collect();
    assert_eq!(best, [false, true, false, false, false, false, false]);
    let reading = words::reading(&comparison).join(" ");
    assert!(
        reading.starts_with(
            "Short functions finish soonest under scx_sfs, 10.0 ms on average (eevdf: 40.0 ms)."
        ),
        "{reading}"
    );
    let gain =
        "(srtf, simulated) the short ones would take 10.0 ms: of what there is to gain over \
                eevdf, scx_sfs gains 100 %.";
    assert!(reading.ends_with(gain), "{reading}");
}

#[test]
fn a_win_of_the_baseline_is_reported() {
    let rows = vec![row("eevdf", 1, Status::Ok), row("fifo", 4, Status::Ok)];
    let reading = words::reading(&Comparison::new(rows, "eevdf"));
    let first = "Short functions finish soonest under eevdf, 10.0 ms on average (fifo: 40.0 ms).";
    assert_eq!(reading[0], first);
    let alone = Comparison::new(vec![row("eevdf", 1, Status::Ok)], "eevdf");
    assert!(words::reading(&alone).is_empty());
}

#[test]
fn fixed_work_is_in_both_tables_and_only_then() {
    let plain = [row("eevdf", 2, Status::Ok), row("scx_sfs", 1, Status::Ok)];
    let head = "CPU / CPU alone";
    let columns = |rows: &[Summary]| table::main(&Comparison::new(rows.to_vec(), "eevdf")).columns;
    assert!(!columns(&plain).iter().any(|one| one == head));
    let mut fixed = plain.clone();
    let all = Taken {
        invocations: 1,
        cpu_ms: 22.0,
        alone_ms: 20.0,
        cpu_over_alone: 1.1,
    };
    fixed[0].fixed_work = Some(FixedWork {
        all,
        kinds: Default::default(),
        calibration: None,
    });
    let at = columns(&fixed).iter().position(|one| one == head).unwrap();
    let comparison = Comparison::new(fixed.to_vec(), "eevdf");
    let cells = |row: usize| table::main(&comparison).rows[row][at].text.clone();
    assert_eq!((cells(0).as_str(), cells(1).as_str()), ("1.100", "-"));
    let said = table::terminal(&comparison);
    assert!(
        said.contains("that it takes alone:\n  1.100  eevdf"),
        "{said}"
    );
    assert!(!table::terminal(&Comparison::new(plain.to_vec(), "eevdf")).contains("alone"));
}

#[test]
fn thirteen_rows_fit_a_terminal_of_80_columns() {
    let names = [
        "eevdf",
        "fifo",
        "rr",
        "batch",
        "srtf",
        "ideal",
        "scx_sfs",
        "scx_bpfland",
        "scx_flash",
        "scx_cosmos",
        "scx_rusty",
        "scx_p2dq",
        "scx_lavd",
    ];
    let rows = names
        .iter()
        .zip(1..)
        .map(|(name, factor)| row(name, factor, Status::Ok));
    let text = text(&Comparison::new(rows.collect(), "eevdf"));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn every_picture_is_present_and_accessible() {
    let comparison = Comparison::new(rows(), "eevdf");
    let page = page::html(&comparison);
    let names: Vec<String> = charts::all(&comparison)
        .into_iter()
        .map(|picture| picture.name)
        .collect();
    let want = [
        "cdf-turnaround",
        "cdf-slowdown",
        "cdf-rte",
        "turnaround-ratio",
        "switch-ratio",
        "turnaround-by-service",
        "slice",
        "queue-delay",
    ];
    assert_eq!(names, want);
    let pictures = page.matches("role=\"img\"").count();
    assert_eq!(page.matches("<title id=").count(), pictures);
    assert_eq!(page.matches("<desc id=").count(), pictures);
    // Six single pictures, and two times one for each of three rows.
    assert_eq!(pictures, 6 + 2 * 3);
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
}

#[test]
fn classes_and_functions_have_tables() {
    let mut rows = rows();
    let page = page::html(&Comparison::new(rows.clone(), "eevdf"));
    assert!(!page.contains("Class ") && !page.contains("<h2>Functions"));
    for row in &mut rows {
        row.classes.insert("LS".into(), row.short);
        if let Some(function) = row.functions.get("f").copied() {
            row.functions.insert("g".into(), function);
        }
    }
    let page = page::html(&Comparison::new(rows, "eevdf"));
    assert!(page.contains("Class LS: latency-sensitive."));
    assert!(page.contains("Turnaround of 2 of 2 functions"));
}

#[test]
fn pictures_are_written_as_files_and_repeat() {
    let dir = tempfile::tempdir().unwrap();
    let comparison = Comparison::new(rows(), "eevdf");
    let folder = |name: &str| dir.path().join(name);
    for name in ["one", "two"] {
        files::write_svg(&comparison, &folder(name)).unwrap();
    }
    let mut count = 0;
    for entry in std::fs::read_dir(folder("one")).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        let again = std::fs::read(folder("two").join(entry.file_name())).unwrap();
        assert_eq!(bytes, again, "{entry:?}");
        count += 1;
    }
    assert_eq!(count, 8);
    std::fs::write(folder("file"), "").unwrap();
    let error = files::write_svg(&comparison, &folder("file")).unwrap_err();
    assert!(format!("{error:#}").contains("cannot create the folder"));
}

#[test]
fn a_second_report_ignores_its_own_list() {
    let dir = tempfile::tempdir().unwrap();
    let one = dir.path().join("eevdf.json");
    std::fs::write(&one, json::to_text(&rows()[0]).unwrap()).unwrap();
    let write = |summaries: &[PathBuf]| {
        super::write(&Request {
            summaries,
            out: None,
            baseline: "eevdf",
            svg: None,
            json: false,
        })
    };
    write(std::slice::from_ref(&one)).unwrap();
    let list = dir.path().join("summary.json");
    let first = std::fs::read(&list).unwrap();
    write(&[one, list.clone()]).unwrap();
    assert_eq!(std::fs::read(&list).unwrap(), first);
    assert!(first.starts_with(b"[{\n  \"schema\": \"faasbench.summary/1\""));
    assert!(write(&[list]).is_err());
}
